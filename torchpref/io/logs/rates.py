"""Whether a success rate that a log reports is the one that its instances give."""

from __future__ import annotations

from collections.abc import Sequence

from torchpref.io.logs.records import Notes


def compare_rate(
    notes: Notes, system: str, name: str, reported: float | None, outcomes: Sequence[bool | None], tolerance: float
) -> None:
    """Note a reported rate, in percent, that the known outcomes do not give.

    A rate is taken over all instances, those with an unknown outcome counted as failures, as leaderboards do, or over the
    known ones; it agrees if it is within ``tolerance`` of either.
    """
    known = [outcome for outcome in outcomes if outcome is not None]
    if reported is None or not known:
        return
    solved = 100.0 * sum(known)
    rates = (solved / len(outcomes), solved / len(known))
    if all(abs(rate - reported) > tolerance for rate in rates):
        notes.add(
            "rates_disagree",
            "reported success rates that the outcomes of the instances do not give: the instances count",
            system=system,
            example=f"{name}: reported {reported:g} %, {rates[1]:.2f} % of {len(known)} instances",
        )
