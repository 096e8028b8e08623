"""Meta-evaluation: is a measure valid, reliable, sensitive and free of bias on given data?

:func:`meta_evaluate` gives every figure of docs/definitions.md with an interval; :func:`explain` says what a figure means.
"""

from torchpref.meta.definitions import DEFINITIONS, FIGURES, explain
from torchpref.meta.estimates import Estimate
from torchpref.meta.evaluate import meta_evaluate
from torchpref.meta.false_alarms import FalseAlarms, false_alarms
from torchpref.meta.result import MetaEvaluation, MetaTable
from torchpref.meta.series import Series
from torchpref.meta.subgoals import change_subgoals

__all__ = [
    "DEFINITIONS",
    "FIGURES",
    "Estimate",
    "FalseAlarms",
    "MetaEvaluation",
    "MetaTable",
    "Series",
    "change_subgoals",
    "explain",
    "false_alarms",
    "meta_evaluate",
]
