"""Readers: a log format or a table in, :class:`torchpref.Trajectories` out."""

from torchpref.io.reading import read, read_tidy

__all__ = ["read", "read_tidy"]
