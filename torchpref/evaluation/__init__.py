"""Evaluations of all systems, comparisons of two, and gates."""
