"""Files: where they are, how they begin, and what they hold."""
