"""Rewards from preferences: how much sooner than its rivals a rollout reached each level of return.

The reward of a rollout is the mean of Δ against the other rollouts of its group, or against a fixed pool, anchored on
success by default. Everything is computed on the input's device and nothing waits for it. docs/rl.md shows how; the
measures are those of *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.rl.credit import preference_to_go, reached_before
from torchpref.rl.pairwise import compare_rollouts
from torchpref.rl.rollouts import Inputs, Rollouts, broken, check_inputs, numbers, rollouts
from torchpref.rl.scores import reference_ticks, rollout_scores
from torchpref.runs.measures import CURVE_MEASURES, describe
from torchpref.runs.units import MILLION

Output = Literal["signed", "win_rate"]
Anchor = Literal["success", "return"] | None
Combine = Literal["lexicographic", "mean"]
Credit = Literal["to-go"] | None
#: One clock's times, or those of several by name; None: steps are counted.
Times = Tensor | Mapping[str, Tensor | None] | None

#: Weight of the preference beside the anchor; below one half, so that success comes first.
DEFAULT_WEIGHT = 0.49


def preference_rewards(
    returns: Float[Tensor, "batch group step"],
    lengths: Int[Tensor, "batch group"] | None = None,
    measure: str = "rpp",
    *,
    times: Times = None,
    clock: str | None = None,
    resolution: float | Mapping[str, float] | None = None,
    combine: Combine | None = None,
    truncated: Bool[Tensor, "batch group"] | None = None,
    valid: Bool[Tensor, "batch group"] | None = None,
    reference_time: Float[Tensor, " batch"] | None = None,
    output: Output = "signed",
    anchor: Anchor = "success",
    weight: float | None = None,
    credit: Credit = None,
) -> Float[Tensor, "batch group ..."]:
    """The reward of every rollout from its comparison with the others of its group.

    The preference of rollout i is the mean over the other valid rollouts j of Δ(i, j), in [-1, 1]; 0 where there is no
    other. An *anchor* keeps it from rewarding failures that were quick:

    - ``"success"``: 1 if the rollout reached full return, plus ``weight`` × preference. With ``weight`` < ½ every success
      of a group outscores every failure of it.
    - ``"return"``: the highest return reached, plus ``weight`` × preference. Successes come first only while
      ``weight`` < (1 - r)/2, r being the highest return below 1; ½ of the smallest last step up to success.
    - ``None``: the preference alone. RPP and IPP then do not respect success: a rollout that takes two early levels fast
      and never finishes beats one that finishes slowly, and policies learn just that. LR alone keeps successes first. The
      signed rewards of a group sum to zero, so their mean is a flat curve: log success and time beside it.

    Groups whose rollouts are all tied give equal rewards, hence no advantage. Dividing by the group's standard deviation,
    see :func:`torchpref.rl.group_advantages`, blows a difference of one step up to full size.

    ``credit="to-go"`` gives every step its own number, ``[batch, group, step]``: the sum over all levels that the rollout had
    not reached before that step, success (or return) among them, of its part in the reward less the group's mean part of
    the level. These are advantages already. At a rollout's first step the number is what it has over the group's mean; a step
    after the last level that anyone reached, and one behind the end, has 0. For ``rpp``, which is a sum over levels.

    Args:
        returns: return reached so far at each step, in [0, 1]; any dtype, arrays and nested lists too; read as float64 and
            rounded to millionths, so that 1.0000001 is success. A return that falls keeps what it had reached. Give float32
            or better where levels must match exactly.
        lengths: steps of each rollout, all by default; what stands behind is ignored. 0: a rollout without a step.
        measure: ``sr``, ``pr``, ``spl``, ``lr``, ``rpp`` or ``ipp``, in any case.
        times: the time of each step in the clock's unit, NaN where not known, in float32 or better; by default steps are
            counted from 1. Several clocks at once as a mapping from their names, None for counted steps.
        clock: name of the clock of ``times``, in any case, which sets its resolution and, for seconds, tokens and cost, makes
            a time of exactly 0 an unknown one; see :class:`torchpref.Trajectories`.
        resolution: size of a tick, in the clock's unit; by the clock's name by default. A mapping for several clocks.
        combine: with several clocks, ``"lexicographic"`` (default): Δ of two rollouts is that of the first clock on which it
            is not 0, so that the second only breaks ties of the first; or ``"mean"``: the mean of their Δ.
        truncated: rollouts stopped by their limit at the time of their last step (which may differ within a group): at a
            level they had not reached, a rival that reached it later ties. Not those that ended by themselves.
        valid: False for rollouts that do not count: their reward is 0, and no other is compared with them.
        reference_time: SPL's L of each group; the least positive time of success in the group by default.
        output: ``"signed"``, or ``"win_rate"``: the preference mapped to [0, 1], (1 + preference)/2. Successes then come
            first with any ``weight`` below 1.
        anchor, weight: see above; ``weight`` is 0.49 by default, and an error where there is no anchor to weigh it against.
        credit: see above.

    Returns:
        float32 (float64 if ``returns`` is) on the device of ``returns``. On the CPU, values that cannot be used raise; on
        other devices and inside ``torch.compile``, where looking would mean waiting, such a rollout has the reward NaN and
        is left out for the others.

    Raises:
        DataError: shapes that do not fit, or unusable values on the CPU.
        UsageError: an unknown option, or a ``weight`` that would let failures outscore successes.

    Example:
        >>> import torch
        >>> returns = torch.tensor([[[0.0, 0.5, 1.0], [0.5, 0.5, 1.0], [0.0, 0.0, 0.5]]])
        >>> preference_rewards(returns, measure="lr", anchor=None)
        tensor([[ 0.,  1., -1.]])
    """
    weight = checked_weight(output, anchor, weight)
    name = describe(measure).name
    _check_use(name, times, reference_time, combine, credit)
    returns = numbers(returns, "returns")
    inputs = _on_every_clock(returns, lengths, times, clock, resolution, truncated, valid)
    inputs, unusable = _without_broken(inputs)
    runs = [rollouts(one) for one in inputs]
    if credit == "to-go":
        return _finish_to_go(runs, inputs[0], unusable, returns.dtype, output, anchor, weight)
    pairs = [
        _Pairs(run, None, reference_ticks(run, one, name, reference_time))
        for run, one in zip(runs, inputs, strict=True)
    ]
    preference = _mean_preference(pairs, name, combine)
    return _finish(preference, runs[0].final, runs[0].valid, unusable, returns.dtype, output, anchor, weight)


def pool_rewards(
    returns: Float[Tensor, "batch rollout step"],
    lengths: Int[Tensor, "batch rollout"] | None,
    pool_returns: Float[Tensor, "batch reference pool_step"],
    pool_lengths: Int[Tensor, "batch reference"] | None = None,
    measure: str = "rpp",
    *,
    times: Times = None,
    pool_times: Times = None,
    clock: str | None = None,
    resolution: float | Mapping[str, float] | None = None,
    combine: Combine | None = None,
    truncated: Bool[Tensor, "batch rollout"] | None = None,
    pool_truncated: Bool[Tensor, "batch reference"] | None = None,
    valid: Bool[Tensor, "batch rollout"] | None = None,
    pool_valid: Bool[Tensor, "batch reference"] | None = None,
    reference_time: Float[Tensor, " batch"] | None = None,
    output: Output = "signed",
    anchor: Anchor = "success",
    weight: float | None = None,
) -> Float[Tensor, "batch rollout"]:
    """The reward of every rollout from its comparison with a fixed pool of runs of the same start.

    As long as the pool stays the same the reward of a rollout does not depend on the policy's other rollouts: it is
    stationary, as PPO and other methods with a critic need it. Arguments and guarantees are those of
    :func:`preference_rewards`; the preference is the mean over the valid runs of the pool. A pool without batch axis,
    ``[reference, step]``, serves the whole batch. SPL needs ``reference_time`` here. ``times`` and ``pool_times`` go together:
    seconds cannot be compared with counted steps.
    """
    weight = checked_weight(output, anchor, weight)
    name = describe(measure).name
    _check_use(name, times, reference_time, combine, None)
    if (times is None) != (pool_times is None):
        given, missing = ("pool_times", "times") if times is None else ("times", "pool_times")
        raise DataError(
            f"{given} are given and {missing} are not: both sides are timed by one clock, or both count steps"
        )
    several = isinstance(times, Mapping) or isinstance(pool_times, Mapping)
    if several and (
        not isinstance(times, Mapping) or not isinstance(pool_times, Mapping) or list(times) != list(pool_times)
    ):
        raise DataError("times and pool_times must name the same clocks in the same order")
    returns, pool_returns = numbers(returns, "returns"), numbers(pool_returns, "pool_returns")
    if name == "spl" and reference_time is None:
        raise UsageError(
            "against a pool SPL needs reference_time, one per batch entry; it would change with every batch else"
        )

    def shared(values: Tensor | None, dims: int) -> Tensor | None:
        if values is None:
            return None
        tensor = numbers(values, "the pool's values")
        return tensor if tensor.dim() != dims - 1 else tensor.expand(len(returns), *tensor.shape)

    pool_full = shared(pool_returns, 3)
    assert pool_full is not None
    if pool_full.dim() == 3 and len(pool_full) != len(returns):
        raise DataError(f"returns have {len(returns)} batch entries, the pool {len(pool_full)}")
    full_times = (
        {clock_: shared(value, 3) for clock_, value in pool_times.items()}
        if isinstance(pool_times, Mapping)
        else shared(pool_times, 3)
    )
    mine = _on_every_clock(returns, lengths, times, clock, resolution, truncated, valid)
    theirs = _on_every_clock(
        pool_full, shared(pool_lengths, 2), full_times, clock, resolution, shared(pool_truncated, 2), shared(pool_valid, 2),
        what="pool_returns",
    )  # fmt: skip
    mine, unusable = _without_broken(mine)
    theirs, _ = _without_broken(theirs)
    pairs = []
    for one, other in zip(mine, theirs, strict=True):
        rows = rollouts(one)
        pairs.append(_Pairs(rows, rollouts(other), reference_ticks(rows, one, name, reference_time)))
    preference = _mean_preference(pairs, name, combine)
    final, here = pairs[0].rows.final, pairs[0].rows.valid
    return _finish(preference, final, here, unusable, returns.dtype, output, anchor, weight)


# --------------------------------------------------------------------------------------------------------------- parts


def checked_weight(output: str, anchor: str | None, weight: float | None) -> float:
    """The weight beside the anchor, its default where None; refuses options that contradict each other."""
    if output not in ("signed", "win_rate"):
        raise UsageError(f"output must be 'signed' or 'win_rate', got {output!r}")
    if anchor not in ("success", "return", None):
        raise UsageError(f"anchor must be 'success', 'return' or None, got {anchor!r}")
    if anchor is None:
        if weight is not None:
            raise UsageError(
                f"weight={weight!r} weighs the preference against an anchor, and there is none: anchor=None gives the "
                "preference alone; leave weight out, or multiply the result"
            )
        return 1.0
    weight = DEFAULT_WEIGHT if weight is None else weight
    limit = 0.5 if output == "signed" else 1.0
    if not 0 <= weight < limit:
        raise UsageError(
            f"weight must lie in [0, {limit:g}), or failures could outscore successes; got {weight!r}. "
            "anchor=None gives the preference alone"
        )
    return weight


def _check_use(measure: str, times: object, reference_time: object, combine: str | None, credit: str | None) -> None:
    """Options that would be ignored are errors."""
    if reference_time is not None and measure != "spl":
        raise UsageError(f"reference_time is SPL's shortest time; {measure.upper()} has no use for it")
    if combine not in (*get_args(Combine), None):
        raise UsageError(f"combine must be 'lexicographic' or 'mean', got {combine!r}")
    several = isinstance(times, Mapping)
    if combine is not None and not several:
        raise UsageError("combine needs several clocks: times as a mapping from their names")
    if several and measure not in CURVE_MEASURES:
        raise UsageError(f"several clocks are for LR, RPP and IPP, not for {measure.upper()}")
    if credit not in ("to-go", None):
        raise UsageError(f"credit must be 'to-go' or None, got {credit!r}")
    if credit is not None and measure != "rpp":
        raise UsageError(f"credit='to-go' needs a measure that is a sum over levels, 'rpp'; {measure!r} is not")
    if credit is not None and several and combine != "mean":
        raise UsageError("credit='to-go' with several clocks needs combine='mean', which is a sum over levels too")


def _on_every_clock(
    returns: Tensor,
    lengths: Tensor | None,
    times: Times,
    clock: str | None,
    resolution: float | Mapping[str, float] | None,
    truncated: Tensor | None,
    valid: Tensor | None,
    what: str = "returns",
) -> list[Inputs]:
    """:func:`check_inputs` for each clock; one entry where there are not several."""
    if not isinstance(times, Mapping):
        if isinstance(resolution, Mapping):
            raise UsageError("resolution as a mapping goes with times as a mapping")
        return [check_inputs(returns, lengths, times, clock, resolution, truncated, valid, what)]
    if clock is not None or not times:
        raise UsageError(
            "several clocks are named by the keys of times, first the one that counts most; leave clock out"
        )
    if resolution is not None and not (isinstance(resolution, Mapping) and set(resolution) <= set(times)):
        raise UsageError(f"resolution must be a mapping from some of the clocks {', '.join(times)}, got {resolution!r}")
    sizes = {} if resolution is None else resolution
    return [
        check_inputs(returns, lengths, value, name, sizes.get(name), truncated, valid, what)
        for name, value in times.items()
    ]


def _without_broken(inputs: list[Inputs]) -> tuple[list[Inputs], Tensor | None]:
    """Rollouts with unusable values taken out, where they were not already refused."""
    if inputs[0].returns.device.type == "cpu" and not torch.compiler.is_compiling():
        return inputs, None
    bad = broken(inputs[0])
    for other in inputs[1:]:
        bad = bad | broken(other)
    return [replace(one, valid=one.valid & ~bad) for one in inputs], bad


@dataclass(frozen=True)
class _Pairs:
    """Rollouts on one clock and what they are held against, None for each other; SPL's reference in ticks."""

    rows: Rollouts
    columns: Rollouts | None
    reference: Tensor | None


def _mean_preference(pairs: list[_Pairs], measure: str, combine: str | None) -> Float[Tensor, "batch row"]:
    """Mean Δ over the valid columns that are not the row itself; 0 where there is none."""
    unit = describe(measure).unit
    delta, there = _deltas(pairs[0], measure)
    for more in pairs[1:]:
        other = _deltas(more, measure)[0]
        delta = delta + other if combine == "mean" else torch.where(delta == 0, other, delta)
    if combine == "mean":
        unit *= len(pairs)
    rivals = there.sum(-1, keepdim=True) - (there.long() if pairs[0].columns is None else 0)
    return _row_sums(delta).double() / (rivals.clamp(min=1) * unit).double()


def _deltas(pairs: _Pairs, measure: str) -> tuple[Int[Tensor, "batch row column"], Bool[Tensor, "batch column"]]:
    """Δ in parts of the measure's unit, and which columns can be compared."""
    rows, columns = pairs.rows, pairs.columns
    if measure in CURVE_MEASURES:
        return compare_rollouts(rows, columns, measure), (rows if columns is None else columns).valid
    score, here = rollout_scores(rows, measure, pairs.reference)
    other, there = (score, here) if columns is None else rollout_scores(columns, measure, pairs.reference)
    delta = score.unsqueeze(-1) - other.unsqueeze(-2)
    tied = delta.abs() <= describe(measure).tolerance
    return torch.where(tied | ~(here.unsqueeze(-1) & there.unsqueeze(-2)), 0, delta), there


def _row_sums(delta: Int[Tensor, "batch row column"]) -> Int[Tensor, "batch row"]:
    """Sums over columns; on the CPU in one thread, because waking others takes longer than this does."""
    if delta.device.type != "cpu" or torch.compiler.is_compiling():
        return delta.sum(-1)
    return torch.from_numpy(delta.numpy().sum(-1))


def result_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype is torch.float64 else torch.float32


def _finish_to_go(
    runs: list[Rollouts],
    inputs: Inputs,
    unusable: Bool[Tensor, "batch group"] | None,
    dtype: torch.dtype,
    output: str,
    anchor: str | None,
    weight: float,
) -> Float[Tensor, "batch group step"]:
    """What each step has over the group's mean, from the levels that its rollout had not reached before it."""
    first = runs[0]
    value = preference_to_go(first)
    for more in runs[1:]:
        value = value + preference_to_go(more)
    value = value * (weight / len(runs) / (2 if output == "win_rate" else 1))
    before, valid = reached_before(first), first.valid
    count = valid.sum(-1, keepdim=True).clamp(min=1)
    if anchor == "success":
        won = (first.solved & valid).double()
        value = value + torch.where(before < MILLION, (won - won.sum(-1, keepdim=True) / count).unsqueeze(-1), 0)
    elif anchor == "return":
        final = first.final.unsqueeze(-1)
        # Of every rollout of the group, what it has above the level that this one had reached before this step.
        above = (torch.where(valid, first.final, 0)[:, None, None, :] - before.unsqueeze(-1)).clamp(min=0).sum(-1)
        value = value + ((final - before).double() - above.double() / count.unsqueeze(-1)) / MILLION
    step = torch.arange(before.shape[-1], device=before.device)
    value = torch.where((step < inputs.lengths.unsqueeze(-1)) & valid.unsqueeze(-1), value, 0)
    if unusable is not None:
        value = torch.where(unusable.unsqueeze(-1), torch.nan, value)
    return value.to(result_dtype(dtype))


def _finish(
    preference: Float[Tensor, "batch group"],
    final: Int[Tensor, "batch group"],
    valid: Bool[Tensor, "batch group"],
    unusable: Bool[Tensor, "batch group"] | None,
    dtype: torch.dtype,
    output: str,
    anchor: str | None,
    weight: float,
) -> Float[Tensor, "batch group"]:
    """The preference as asked for, with its anchor; 0 for rollouts that do not count, NaN for unusable ones."""
    reward = (preference + 1) / 2 if output == "win_rate" else preference
    if anchor == "success":
        reward = (final >= MILLION).double() + weight * reward
    elif anchor == "return":
        reward = final.double() / MILLION + weight * reward
    reward = torch.where(valid, reward, 0)
    if unusable is not None:
        reward = torch.where(unusable, torch.nan, reward)
    return reward.to(result_dtype(dtype))


__all__ = [
    "DEFAULT_WEIGHT",
    "Anchor",
    "Combine",
    "Credit",
    "Output",
    "Times",
    "checked_weight",
    "pool_rewards",
    "preference_rewards",
]
