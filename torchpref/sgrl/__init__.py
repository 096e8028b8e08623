"""Benchmarks whose true order is known: shortest-path planners that act at random more or less often.

Three environments (Taxi, MiniGrid FourRooms and DoorKey-8x8), each with a set in which every policy succeeds
and only time differs, and one in which some runs fail. The runs ship with the package (:func:`load`), as does
the evidence for the order (:func:`known_order`, :func:`dominance`); playing them again (:func:`generate`),
working out the evidence anew (:func:`compute_dominance`) and the environments as tables (:func:`tasks`) need
the extra ``sgrl``.
"""

from torchpref.sgrl.order import compute_dominance, dominance, known_order
from torchpref.sgrl.suites import SUITES, Suite, generate, load, tasks
from torchpref.sgrl.tabular import TabularTask, concatenate

__all__ = [
    "SUITES",
    "Suite",
    "TabularTask",
    "compute_dominance",
    "concatenate",
    "dominance",
    "generate",
    "known_order",
    "load",
    "tasks",
]
