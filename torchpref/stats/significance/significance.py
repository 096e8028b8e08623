"""Which pairs of systems differ: a test of every pair, corrected for their number, with an effect size and its interval.

The hypothesis is that two systems are exchangeable on every instance: where both ran it equally often, Δ is as likely to
have either sign; where the numbers of trials differ, the labels of the runs are exchangeable. p-values are exact wherever
they can be and simulated otherwise; :attr:`Significance.methods` says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.pairwise.square import as_square
from torchpref.report.numbers import signed
from torchpref.runs.measures import ALPHA, LEVEL
from torchpref.runs.names import two_names
from torchpref.runs.plain import plain
from torchpref.stats.resampling.instances import Seed, resolve_seed, units_of
from torchpref.stats.significance.corrections import CORRECTIONS, adjust, resolve_correction
from torchpref.stats.significance.effects import check_level, pair_effects, to_tensor
from torchpref.stats.significance.mean_test import METHOD, mean_tests
from torchpref.stats.significance.pair_tests import METHODS, PairTests, paired_t_tests, sign_flip_tests

if TYPE_CHECKING:
    import polars

    from torchpref.pairwise.preferences import Preferences


@dataclass(frozen=True, eq=False, repr=False)
class Significance:
    """Tests of all pairs.

    Attributes:
        measure: short name of the measure.
        systems: names.
        pairs: int64 ``[pair, 2]``, positions in ``systems``.
        p: float64 ``[pair]``, two-sided; 1 where every instance is tied, NaN where nothing is shared.
        adjusted: float64 ``[pair]``, corrected for the number of pairs tested; significant where at most ``alpha``.
        mean: float64 ``[pair]``, the effect Δ̄; > 0 prefers the first.
        interval: float64 ``[pair, 2]``, its interval at ``level``, not corrected for the number of pairs.
        instances: int64 ``[pair]``, shared instances.
        decided: int64 ``[pair]``, those with Δ ≠ 0.
        methods: how each p-value was found.
        correction: short name of the correction.
        alpha: error rate.
        level: level of the intervals.
        flips: number of simulated flips, 0 where none was needed.
        seed: of the simulation.
        order_range: float64 ``[pair, 2]``, for ``test="mean"`` the 5 and 95 % quantiles of p over orders; else None.
    """

    measure: str
    systems: tuple[str, ...]
    pairs: Int[Tensor, "pair 2"]
    p: Float[Tensor, " pair"]
    adjusted: Float[Tensor, " pair"]
    mean: Float[Tensor, " pair"]
    interval: Float[Tensor, "pair 2"]
    instances: Int[Tensor, " pair"]
    decided: Int[Tensor, " pair"]
    methods: tuple[str, ...]
    correction: str
    alpha: float
    level: float
    flips: int
    seed: int
    order_range: Float[Tensor, "pair 2"] | None = None

    @property
    def significant(self) -> Bool[Tensor, " pair"]:
        """Pairs whose adjusted p-value is at most α."""
        return self.adjusted <= self.alpha

    @property
    def tested(self) -> int:
        """Number of pairs that share an instance; the correction counts these."""
        return int((~torch.isnan(self.p)).sum())

    @property
    def discriminative_power(self) -> float:
        """Share of the tested pairs that are significant; NaN where none was tested."""
        return int(self.significant.sum()) / self.tested if self.tested else float("nan")

    def square(self, values: Tensor) -> Tensor:
        """A value per pair as a symmetric ``[system, system]`` matrix, NaN on the diagonal."""
        square = as_square(values.double(), self.pairs, len(self.systems), 1)
        return square.fill_diagonal_(torch.nan)

    def __getitem__(self, names: tuple[str, str]) -> dict[str, Any]:
        """One pair, turned so that a mean above 0 prefers the first name."""
        first, second = two_names(names, 'result["A", "B"]')
        for name in (first, second):
            if name not in self.systems:
                raise UsageError(f"no system {name!r} among {len(self.systems)}: {', '.join(self.systems[:5])} …")
        if first == second:
            raise UsageError(f"a system is not compared with itself: {first!r}")
        low, high = sorted(map(self.systems.index, (first, second)))
        index = int(((self.pairs[:, 0] == low) & (self.pairs[:, 1] == high)).nonzero()[0])
        row = self._row(index)
        if self.systems[low] != first:
            row["mean"] = None if row["mean"] is None else -row["mean"] + 0.0
            row["low"], row["high"] = (None if x is None else -x + 0.0 for x in (row["high"], row["low"]))
            row["a"], row["b"] = first, second
        return row

    def _row(self, index: int) -> dict[str, Any]:
        a, b = self.pairs[index].tolist()
        values = {
            "mean": float(self.mean[index]),
            "low": float(self.interval[index, 0]),
            "high": float(self.interval[index, 1]),
            "p": float(self.p[index]),
            "adjusted": float(self.adjusted[index]),
        }
        return {
            "a": self.systems[a],
            "b": self.systems[b],
            **{key: plain(value) for key, value in values.items()},
            "significant": bool(self.significant[index]),
            "instances": int(self.instances[index]),
            "decided": int(self.decided[index]),
            "method": self.methods[index],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per pair."""
        return [self._row(index) for index in range(len(self.pairs))]

    def to_dict(self) -> dict[str, Any]:
        """Options and a row per pair, plain values; None where a value does not exist."""
        return {
            "measure": self.measure,
            "correction": self.correction,
            "alpha": self.alpha,
            "level": self.level,
            "flips": self.flips,
            "seed": self.seed,
            "tested": self.tested,
            "discriminative_power": self.discriminative_power if self.tested else None,
            "pairs": self.rows(),
        }

    def to_frame(self) -> polars.DataFrame:
        """A row per pair."""
        import polars as pl

        schema: dict[str, Any] = {
            "a": pl.String,
            "b": pl.String,
            **dict.fromkeys(("mean", "low", "high", "p", "adjusted"), pl.Float64),
            "significant": pl.Boolean,
            "instances": pl.Int64,
            "decided": pl.Int64,
            "method": pl.String,
        }
        return pl.DataFrame(self.rows(), schema=schema)

    def __repr__(self) -> str:
        found = int(self.significant.sum())
        head = (
            f"{self.measure.upper()}: {found} of {self.tested} pairs significant at {self.alpha:g} "
            f"({CORRECTIONS[self.correction]})"
        )
        skipped = len(self.pairs) - self.tested
        if skipped:
            head += f"; {skipped} share no instance"
        order = np.lexsort((-self.mean.abs().numpy(), np.nan_to_num(self.p.numpy(), nan=2.0)))
        lines = []
        for index in order[:10]:
            row = self._row(int(index))
            if row["p"] is None:
                break
            limits = "" if row["low"] is None else f" [{signed(row['low'], 4)}, {signed(row['high'], 4)}]"
            tested = f"p = {row['p']:.3g}, adjusted {row['adjusted']:.3g}"
            lines.append(f"  {row['a']} − {row['b']}: {signed(row['mean'], 4)}{limits}  {tested}")
        if self.tested > 10:
            lines.append(f"  … and {self.tested - 10} more")
        return "\n".join([head, *lines])


def significance(
    prefs: Preferences,
    correction: str | None = "holm",
    *,
    test: Literal["sign-flip", "t", "mean"] = "sign-flip",
    alpha: float = ALPHA,
    level: float = LEVEL,
    flips: int | None = None,
    seed: Seed = 0,
) -> Significance:
    """Test every pair of systems for a difference.

    Args:
        prefs: the preferences.
        correction: ``holm``, ``bh``, ``by``, ``max-t`` or ``none``.
        test: ``sign-flip``, or ``t`` for the t-test over instances that goes with the intervals: like them it adds two
            instances of opposite sign, without which ten instances in {−1, 0, 1} would reject far too often under Holm; or
            ``mean``: betting, which tests "the mean is 0" for every distribution (sign flips are exact for exchangeable
            systems) and finds less. Its p depends on a seeded order; ``order_range`` says how much.
        alpha: error rate that :attr:`Significance.significant` uses.
        level: level of the effects' intervals.
        flips: flips where simulation is needed; at least 10 · pairs / α and at least 9,999 are always taken.
        seed: for simulation.

    Raises:
        UsageError: an unknown correction or test, a level or α outside (0, 1).
    """
    correction = resolve_correction(correction)
    check_level(alpha)
    number = resolve_seed(seed)
    effects = pair_effects(prefs, level)
    tests = paired_t_tests(effects) if test == "t" else None
    if test not in ("sign-flip", "t", "mean"):
        raise UsageError(f"unknown test {test!r}; use 'sign-flip', 't' or 'mean'")
    if correction == "max-t" and test != "sign-flip":
        raise UsageError(f"max-T is a correction of the sign-flip test; use Holm with test={test!r}")
    order_range = None
    if test == "mean":
        bets = mean_tests(prefs.delta.cpu().numpy(), prefs.weights.cpu().numpy(), units_of(prefs), number)
        order_range = to_tensor(np.stack([bets.low, bets.high], axis=1))
        compared = ~np.isnan(bets.p)
        tests = PairTests(bets.p, np.fmin(bets.below, bets.above), np.where(compared, METHODS.index(METHOD), 0))
    if tests is None:
        tests = sign_flip_tests(prefs, alpha, flips, number, max_t=correction == "max-t")
    adjusted = tests.max_t if correction == "max-t" else adjust(tests.p, correction)
    assert adjusted is not None
    return Significance(
        measure=prefs.measure,
        systems=prefs.systems,
        pairs=prefs.pairs.cpu(),
        p=to_tensor(tests.p),
        adjusted=to_tensor(adjusted),
        mean=to_tensor(effects.mean),
        interval=to_tensor(np.stack([effects.low, effects.high], axis=1)),
        instances=torch.from_numpy(effects.instances),
        decided=torch.from_numpy(effects.decided),
        methods=tuple(METHODS[code] for code in tests.methods),
        correction=correction,
        alpha=float(alpha),
        level=float(level),
        flips=tests.flips,
        seed=number,
        order_range=order_range,
    )


__all__ = ["Significance", "sign_flip_tests", "significance"]
