"""Corrections of p-values for testing many pairs; NaN stands for no test and counts nowhere.

Holm (1979) bounds the chance of any false rejection; Benjamini and Hochberg (1995) the expected share of false ones under
independence or positive dependence; Benjamini and Yekutieli (2001) the same under any dependence. Single-step max-T needs
the statistics themselves and is in :mod:`torchpref.stats.significance.flips`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import UsageError

#: What a user may ask for, and the names in words.
CORRECTIONS = {
    "holm": "Holm",
    "bh": "Benjamini-Hochberg",
    "by": "Benjamini-Yekutieli",
    "max-t": "single-step max-T",
    "none": "no correction",
}
_ALIASES = {
    "benjamini-hochberg": "bh",
    "fdr": "bh",
    "fwer": "holm",
    "benjamini-yekutieli": "by",
    "maxt": "max-t",
    "max_t": "max-t",
}


def resolve_correction(name: str | None) -> str:
    """The short name of a correction, in any case."""
    key = "none" if name is None else str(name).strip().lower()
    key = _ALIASES.get(key, key)
    if key not in CORRECTIONS:
        raise UsageError(f"unknown correction {name!r}; use {', '.join(CORRECTIONS)}")
    return key


def adjust(p: NDArray[np.float64], correction: str) -> NDArray[np.float64]:
    """Adjusted p-values along the last axis: reject where they are at most α.

    Args:
        p: p-values ``[..., pair]``; NaN where a pair was not tested.
        correction: ``holm``, ``bh``, ``by`` or ``none``.
    """
    if correction == "none":
        return p.copy()
    order = np.argsort(p, axis=-1, kind="stable")  # NaN goes last
    ascending = np.take_along_axis(p, order, axis=-1)
    tests = np.count_nonzero(~np.isnan(p), axis=-1, keepdims=True)
    rank = np.arange(1, p.shape[-1] + 1)
    if correction == "holm":
        raised = np.fmax.accumulate(ascending * np.maximum(tests - rank + 1, 1), axis=-1)
    elif correction in ("bh", "by"):
        harmonic = np.concatenate([[1.0], np.cumsum(1 / np.arange(1, p.shape[-1] + 1))])
        factor = tests * (harmonic[tests] if correction == "by" else 1.0)
        raised = np.flip(np.fmin.accumulate(np.flip(ascending * factor / rank, -1), axis=-1), -1)
    else:
        raise UsageError(f"{correction!r} is no correction of p-values; use holm, bh, by or none")
    raised = np.where(np.isnan(ascending), np.nan, np.minimum(raised, 1.0))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, raised, axis=-1)
    return adjusted
