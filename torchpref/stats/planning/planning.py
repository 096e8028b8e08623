"""How many instances, and trials, it takes to tell systems apart.

For the sign-flip test of a mean preference d with mean square s² the number of instances is (z_α s + z_β √(s² − d²))² / d²
(for Δ in {−1, 0, 1} Connor's formula for McNemar's test, *Sample size for testing differences in proportions for the
paired-sample design*, 1987). d is estimated from the data at hand, and effects that look interesting are overestimated more
often than not: the interval for the number says how far to trust it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.pairwise.preferences import preferences
from torchpref.runs.measures import ALPHA, LEVEL
from torchpref.runs.plain import plain
from torchpref.stats.planning.power import sample_of
from torchpref.stats.planning.trial_noise import trial_noise
from torchpref.stats.significance.corrections import resolve_correction
from torchpref.stats.significance.effects import Effects, check_level, pair_effects, to_tensor
from torchpref.stats.significance.margins import check_margin

if TYPE_CHECKING:
    import polars

    from torchpref.pairwise.preferences import Preferences

#: Numbers of trials per instance that are tabulated where the data have repeated trials.
TRIALS = (1, 2, 4, 8, 16)
#: Fewer decided instances than this are no basis for a plan.
LEAST_TO_PLAN = 10
#: Up to so many pairs are simulated where the power has to be.
_EACH_BY_ITSELF = 30


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Instances needed to separate each pair.

    Attributes:
        measure: short name of the measure.
        systems: names.
        pairs: int64 ``[pair, 2]``.
        power: chance of finding the difference, if it is as large as it was here.
        alpha: error rate, and ``alpha_each`` what is left of it for one pair.
        alpha_each: see ``alpha``.
        correction: ``"holm"`` (planned for its strictest step, α / pairs) or ``"none"``.
        mean: float64 ``[pair]``, observed Δ̄.
        instances: int64 ``[pair]``, instances at hand.
        needed: float64 ``[pair]``, instances needed with trials as they are; infinite where Δ̄ is 0, NaN where not compared.
        interval: float64 ``[pair, 2]``, from the interval of Δ̄ at ``level``; infinite where that holds 0.
        success_rate: float64 ``[pair]``, instances that the difference in success rate would need; infinite where there is
            none.
        trials: per number of trials of each run float64 ``[pair]``, instances needed; empty without repeated trials.
        level: level of the intervals.
        power_now: float64 ``[pair]``, the power with the instances at hand, if the difference is as large as it was here.
        status: per pair ``"ok"``, or in words why its numbers say little.
        margin: what is planned is to show that ``new`` is not worse than −margin; 0 for a plan to find the difference.
        new: the system that the margin is for, or None.
    """

    measure: str
    systems: tuple[str, ...]
    pairs: Int[Tensor, "pair 2"]
    power: float
    alpha: float
    alpha_each: float
    correction: str
    mean: Float[Tensor, " pair"]
    instances: Int[Tensor, " pair"]
    needed: Float[Tensor, " pair"]
    interval: Float[Tensor, "pair 2"]
    success_rate: Float[Tensor, " pair"]
    trials: dict[int, Float[Tensor, " pair"]]
    level: float
    power_now: Float[Tensor, " pair"]
    status: tuple[str, ...]
    margin: float = 0.0
    new: str | None = None

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per pair; None where a number is infinite or does not exist."""
        return [
            {
                "a": self.systems[a],
                "b": self.systems[b],
                "mean": plain(self.mean[i]),
                "instances": int(self.instances[i]),
                "needed": plain(self.needed[i]),
                "needed_low": plain(self.interval[i, 0]),
                "needed_high": plain(self.interval[i, 1]),
                "needed_by_success_rate": plain(self.success_rate[i]),
                "power_now": plain(self.power_now[i]),
                "status": self.status[i],
                **{f"needed_with_{k}_trials": plain(values[i]) for k, values in self.trials.items()},
            }
            for i, (a, b) in enumerate(self.pairs.tolist())
        ]

    def to_frame(self) -> polars.DataFrame:
        """A row per pair."""
        import polars as pl

        rows = self.rows()
        names = [
            "a",
            "b",
            "mean",
            "instances",
            "needed",
            "needed_low",
            "needed_high",
            "needed_by_success_rate",
            "power_now",
            "status",
        ]
        names += [f"needed_with_{k}_trials" for k in self.trials]
        types: dict[str, Any] = {"a": pl.String, "b": pl.String, "status": pl.String, "instances": pl.Int64}
        return pl.DataFrame(
            {name: pl.Series([row[name] for row in rows], dtype=types.get(name, pl.Float64)) for name in names}
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "measure": self.measure,
            "power": self.power,
            "alpha": self.alpha,
            "correction": self.correction,
            "alpha_each": self.alpha_each,
            "level": self.level,
            "margin": self.margin,
            "new": self.new,
            "pairs": self.rows(),
        }

    def __repr__(self) -> str:
        tests = round(self.alpha / self.alpha_each)
        rule = f"{self.alpha:g}" + (f" / {tests} pairs (Holm)" if self.correction == "holm" and tests > 1 else "")
        aim = f" to show that {self.new} is fine within the margin {self.margin:g}" if self.margin else ""
        lines = [f"{self.measure.upper()}: instances needed{aim} for power {self.power:g} at {rule}"]
        order = np.argsort(np.nan_to_num(self.needed.numpy(), nan=np.inf), kind="stable")
        for i in order[:10].tolist():
            a, b = self.pairs[i].tolist()
            low, high = self.interval[i].tolist()
            lines.append(
                f"  {self.systems[a]} − {self.systems[b]} ({float(self.mean[i]):+.3f}): "
                f"{_count(float(self.needed[i]))} [{_count(low)}, {_count(high)}], "
                f"by success rate {_count(float(self.success_rate[i]))}; power with {int(self.instances[i])}: "
                f"{float(self.power_now[i]):.2f}"
                + ("" if self.status[i] == "ok" else f"; {self.status[i]}")
            )
            lines += [f"    with {k} trials each: {_count(float(values[i]))}" for k, values in self.trials.items()]
        if len(order) > 10:
            lines.append(f"  … and {len(order) - 10} more")
        return "\n".join(lines)


def plan(
    prefs: Preferences,
    *,
    power: float = 0.8,
    alpha: float = ALPHA,
    correction: str | None = "holm",
    level: float = LEVEL,
    margin: float = 0.0,
    new: str | None = None,
    trials: Sequence[int] = TRIALS,
) -> Plan:
    """Instances (and trials) needed to separate each pair of systems.

    Args:
        prefs: preferences of a first sample of instances.
        power: wanted chance of a significant result.
        alpha: error rate.
        correction: ``"holm"``: planned for α / pairs, the strictest step, so that any one pair is found with this power
            whatever the others are; ``"none"``: for α.
        level: level of the intervals for the numbers.
        margin: with a margin above 0 the plan is to show, one-sided, that ``new`` is not worse than −margin against each of its
            rivals, as :func:`torchpref.gate` does; other pairs have no number.
        new: the system that the margin is for.
        trials: numbers of trials of each run that are tabulated where the data have repeated trials.

    Raises:
        UsageError: power, α or level outside (0, 1), another correction, a margin without a system.
    """
    check_level(level)
    check_level(alpha)
    if not alpha < power < 1:
        raise UsageError(f"the power lies between alpha and 1, such as 0.8; got {power!r}")
    correction = resolve_correction(correction)
    if correction not in ("holm", "none"):
        raise UsageError(f"a plan is made for 'holm' or 'none'; got {correction!r}")
    check_margin("margin", margin)
    if (margin > 0) != (new is not None) or (new is not None and new not in prefs.systems):
        raise UsageError(f"a margin is planned for one system, new=NAME, and new for a margin; got {margin!r} and {new!r}")
    if not all(isinstance(count, int) and count > 0 for count in trials):
        raise UsageError(f"numbers of trials are whole and at least 1, got {list(trials)!r}")
    effects = pair_effects(prefs, level)
    tests = int((~np.isnan(effects.mean)).sum())
    each = alpha / max(1, tests) if correction == "holm" else alpha
    rule = _Rule(each, power)
    square, decided = _moments(prefs)
    needed, power_now = _finished(prefs, effects, each, power, margin, new)
    ends = np.sort(np.abs(np.stack([effects.low, effects.high], 1)), axis=1)
    ends[(effects.low <= 0) & (effects.high >= 0), 0] = 0.0
    interval = np.stack([rule.instances(ends[:, side], square, decided) for side in (1, 0)], 1)
    if margin > 0:
        interval = np.full_like(interval, np.nan)
    else:
        interval = np.stack([np.fmin(interval[:, 0], needed), np.fmax(interval[:, 1], needed)], 1)

    simple = prefs if prefs.measure == "sr" else preferences(prefs.runs, "sr", weights=prefs.weights.cpu())
    by_rate = needed if simple is prefs else _finished(simple, pair_effects(simple, level), each, power, margin, new)[0]

    by_trials: dict[int, Tensor] = {}
    noise = trial_noise(prefs)
    if noise is not None and not margin:
        between = np.maximum(square - noise.now, effects.mean**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            finished = needed / rule.instances(effects.mean, square, decided)
        for count in trials:
            each_count = rule.instances(effects.mean, between + noise.with_trials(count), decided)
            by_trials[count] = to_tensor(np.ceil(np.where(np.isfinite(finished), finished * each_count, each_count) - 1e-9))
    return Plan(
        measure=prefs.measure,
        systems=prefs.systems,
        pairs=prefs.pairs.cpu(),
        power=power,
        alpha=alpha,
        alpha_each=each,
        correction=correction,
        mean=to_tensor(effects.mean),
        instances=torch.from_numpy(effects.instances),
        needed=to_tensor(needed),
        interval=to_tensor(interval),
        success_rate=to_tensor(by_rate),
        trials=by_trials,
        level=level,
        power_now=to_tensor(power_now),
        status=tuple(_status(int(count), float(mean)) for count, mean in zip(effects.decided, effects.mean, strict=True)),
        margin=margin,
        new=new,
    )


def _status(decided: int, mean: float) -> str:
    if mean != mean:
        return "the two share no instance"
    if decided < LEAST_TO_PLAN:
        return f"only {decided} decided instances: too few to plan by, {LEAST_TO_PLAN} are the least"
    return "ok"


def _finished(
    prefs: Preferences, effects: Effects, alpha: float, power: float, margin: float, new: str | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Instances needed and power now, by the test's own power: exact or simulated (by its approximation for many pairs)."""
    pairs = len(prefs.pairs)
    needed, now = np.full((2, pairs), np.nan)
    for pair, (a, b) in enumerate(prefs.pairs.tolist()):
        mean = float(effects.mean[pair])
        if mean != mean or (new is not None and new not in (prefs.systems[a], prefs.systems[b])):
            continue
        if new is None:
            sample = sample_of(prefs, pair, 1 if mean >= 0 else -1, 0.0, alpha / 2)
        else:
            sample = sample_of(prefs, pair, 1 if prefs.systems[a] == new else -1, -margin, alpha)
        needed[pair] = sample.needed(power) if pairs <= _EACH_BY_ITSELF or sample.ternary else sample.about(power)
        if pairs <= _EACH_BY_ITSELF or sample.ternary:
            now[pair] = sample.power(int(effects.instances[pair]))
    return needed, now


@dataclass(frozen=True)
class _Rule:
    """Sample sizes at an error rate for one pair and a power."""

    alpha: float
    power: float

    def instances(
        self, mean: NDArray[np.float64], square: NDArray[np.float64], decided: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Instances for |Δ̄| = ``mean`` and mean square ``square``; at least so many that all decided alike are significant.

        Args:
            mean: float64 ``[pair]``.
            square: float64 ``[pair]``, mean of Δ².
            decided: float64 ``[pair]``, share of instances with Δ ≠ 0.
        """
        from scipy.special import ndtri

        size = np.abs(mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(np.maximum(square - size**2, 0.0))
            count = (
                (-ndtri(self.alpha / 2) * np.sqrt(np.maximum(square, size**2)) + ndtri(self.power) * spread) / size
            ) ** 2
            least = math.ceil(1 - math.log2(self.alpha)) / decided
        count = np.where(size > 0, np.ceil(np.maximum(count, least) - 1e-9), np.inf)
        return np.where(np.isnan(mean), np.nan, count)


def _moments(prefs: Preferences) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of Δ² (with weights: the variance of the sum, per instance) and share of decided instances, per pair."""
    weight = prefs.mask.cpu().numpy() * prefs.weights.cpu().numpy()[:, None]
    clean = np.nan_to_num(prefs.delta.cpu().numpy())
    with np.errstate(divide="ignore", invalid="ignore"):
        square = (weight**2 * clean**2).sum(0) * (weight > 0).sum(0) / weight.sum(0) ** 2
        decided = ((clean != 0) & (weight > 0)).sum(0) / (weight > 0).sum(0)
    return square, decided


def _count(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "∞" if number == math.inf else "–"
