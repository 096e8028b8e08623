"""What it means when measures disagree about two systems: gain early, gain at the end, accidents.

The rules are those that the pairs of :mod:`torchpref.sgrl.ladders` show: RPP above LR where a system gains early, LR above
RPP where it gains at the end, IPP for a system, and above both, where single slow
stretches cost it what it gains on the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torchpref.report.shapes import PairMeasureLike

#: A difference of two mean preferences is spoken of from this size on, and from so many of its standard errors on.
_SIZE, _ERRORS = 0.05, 3.0


def disagreement(first: str, second: str, measures: Mapping[str, PairMeasureLike]) -> tuple[str, ...]:
    """Sentences on how RPP and IPP differ from LR; none where they agree or one of them was not compared.

    Args:
        first, second: names of the systems.
        measures: what was found; values above 0 prefer the first.
    """
    if not {"lr", "rpp"} <= measures.keys():
        return ()
    lr, rpp = measures["lr"], measures["rpp"]
    early = _above(rpp, lr)
    found = []
    if early:
        ahead, behind = (first, second) if early > 0 else (second, first)
        found.append(
            f"RPP favours {ahead} more than LR does ({_two(rpp, lr, early)}): {ahead} gains early, {behind} at the end"
        )
    ipp = measures.get("ipp")
    if ipp is not None:
        spoilt = _above(ipp, lr)
        if spoilt and _above(ipp, rpp) == spoilt and spoilt * ipp.mean >= _SIZE:
            hit = first if spoilt > 0 else second
            found.append(
                f"IPP favours {hit} more than LR and RPP do ({_two(ipp, lr, spoilt)} by LR): single slow stretches "
                f"(accidents) cost {hit} what it gains on the others"
            )
    return tuple(found)


def _above(one: PairMeasureLike, other: PairMeasureLike) -> int:
    """1 where ``one`` prefers the first more than ``other`` does, −1 where it prefers it less, 0 where one cannot say."""
    shares = {(each.benchmark, each.instance): each.share for each in other.deciding}
    both = [each.share - shares[each.benchmark, each.instance] for each in one.deciding
            if (each.benchmark, each.instance) in shares]  # fmt: skip
    if len(both) < 2 or len(both) < len(one.deciding):
        return 0
    gaps = np.array(both)
    total, error = float(gaps.sum()), float(gaps.std(ddof=1) * np.sqrt(len(gaps)))
    return int(np.sign(total)) if abs(total) >= max(_SIZE, _ERRORS * error) else 0


def _two(one: PairMeasureLike, other: PairMeasureLike, sign: int) -> str:
    return f"{sign * one.mean + 0.0:+.2f} against {sign * other.mean + 0.0:+.2f}"
