"""Benchmarks whose true order is known: shortest-path planners that act at random more or less often.

The runs ship with the package (:func:`load`); playing them again (:func:`generate`) needs the extra ``sgrl``.
"""

from torchpref.sgrl.suites import SUITES, Suite, generate, load

__all__ = ["SUITES", "Suite", "generate", "load"]
