"""Tests of pairs of systems, and corrections for many pairs."""
