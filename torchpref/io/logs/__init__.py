"""What the readers of logs share."""
