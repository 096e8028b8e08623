"""Preferences between systems: of every instance, their means, and of more than memory holds."""
