"""Instances and runs drawn anew."""
