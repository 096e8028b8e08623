"""From a tidy table to integers."""
