"""Rewards from preferences: how much sooner than its rivals a rollout reached each level of return.

The reward of a rollout is the mean of Δ against the other rollouts of its group, or against a fixed pool, anchored on
success by default. Everything is computed on the input's device and nothing waits for it. DESIGN.md section 4; the
measures are those of *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.rl.pairwise import compare_rollouts
from torchpref.rl.rollouts import Inputs, Rollouts, broken, check_inputs, rollouts
from torchpref.rl.scores import reference_ticks, rollout_scores
from torchpref.runs.measures import CURVE_MEASURES, describe
from torchpref.runs.units import MILLION

Output = Literal["signed", "win_rate"]
Anchor = Literal["success", "return"] | None

#: Weight of the preference beside the anchor; below one half, so that success comes first.
DEFAULT_WEIGHT = 0.49


def preference_rewards(
    returns: Float[Tensor, "batch group step"],
    lengths: Int[Tensor, "batch group"] | None = None,
    measure: str = "rpp",
    *,
    times: Tensor | None = None,
    clock: str | None = None,
    resolution: float | None = None,
    truncated: Bool[Tensor, "batch group"] | None = None,
    valid: Bool[Tensor, "batch group"] | None = None,
    reference_time: Float[Tensor, " batch"] | None = None,
    output: Output = "signed",
    anchor: Anchor = "success",
    weight: float = DEFAULT_WEIGHT,
) -> Float[Tensor, "batch group"]:
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

    Groups whose rollouts are all tied give equal rewards, hence no advantage. Dividing by the group's standard deviation
    is not recommended: it blows a difference of one step up to full size. See
    :func:`torchpref.rl.group_advantages`.

    Args:
        returns: return reached so far at each step, in [0, 1]; any dtype, read as float64 and rounded to millionths. A
            return that falls keeps what it had reached. Give float32 or better where levels must match exactly.
        lengths: steps of each rollout, all by default; what stands behind is ignored. 0: a rollout without a step.
        measure: ``sr``, ``pr``, ``spl``, ``lr``, ``rpp`` or ``ipp``, in any case.
        times: the time of each step in the clock's unit, NaN where not known; by default steps are counted from 1.
        clock: name of the clock of ``times``, which sets its resolution and, for seconds, tokens and cost, makes a time of
            exactly 0 an unknown one; see :class:`torchpref.Trajectories`.
        resolution: size of a tick, in the clock's unit; by the clock's name by default.
        truncated: rollouts stopped by their limit at the time of their last step (which may differ within a group): at a
            level they had not reached, a rival that reached it later ties. Not those that ended by themselves.
        valid: False for rollouts that do not count: their reward is 0, and no other is compared with them.
        reference_time: SPL's L of each group; the least positive time of success in the group by default.
        output: ``"signed"``, or ``"win_rate"``: the preference mapped to [0, 1], (1 + preference)/2. Successes then come
            first with any ``weight`` below 1.
        anchor, weight: see above.

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
    _check_options(output, anchor, weight)
    name = describe(measure).name
    inputs = check_inputs(returns, lengths, times, clock, resolution, truncated, valid)
    inputs, unusable = _without_broken(inputs)
    preference, final = _group_preference(inputs, name, reference_time)
    return _finish(preference, final, inputs.valid, unusable, returns.dtype, output, anchor, weight)


def pool_rewards(
    returns: Float[Tensor, "batch rollout step"],
    lengths: Int[Tensor, "batch rollout"] | None,
    pool_returns: Float[Tensor, "batch reference pool_step"],
    pool_lengths: Int[Tensor, "batch reference"] | None = None,
    measure: str = "rpp",
    *,
    times: Tensor | None = None,
    pool_times: Tensor | None = None,
    clock: str | None = None,
    resolution: float | None = None,
    truncated: Bool[Tensor, "batch rollout"] | None = None,
    pool_truncated: Bool[Tensor, "batch reference"] | None = None,
    valid: Bool[Tensor, "batch rollout"] | None = None,
    pool_valid: Bool[Tensor, "batch reference"] | None = None,
    reference_time: Float[Tensor, " batch"] | None = None,
    output: Output = "signed",
    anchor: Anchor = "success",
    weight: float = DEFAULT_WEIGHT,
) -> Float[Tensor, "batch rollout"]:
    """The reward of every rollout from its comparison with a fixed pool of runs of the same start.

    As long as the pool stays the same the reward of a rollout does not depend on the policy's other rollouts: it is
    stationary, as PPO and other methods with a critic need it. Arguments and guarantees are those of
    :func:`preference_rewards`; the preference is the mean over the valid runs of the pool. A pool without batch axis,
    ``[reference, step]``, serves the whole batch. SPL needs ``reference_time`` here.
    """
    _check_options(output, anchor, weight)
    name = describe(measure).name
    if name == "spl" and reference_time is None:
        raise UsageError(
            "against a pool SPL needs reference_time, one per batch entry; it would change with every batch else"
        )

    def shared(tensor: Tensor | None, dims: int) -> Tensor | None:
        if tensor is None or tensor.dim() != dims - 1:
            return tensor
        return tensor.expand(len(returns), *tensor.shape)

    pool_full = shared(pool_returns, 3)
    assert pool_full is not None
    if pool_full.dim() == 3 and len(pool_full) != len(returns):
        raise DataError(f"returns have {len(returns)} batch entries, the pool {len(pool_full)}")
    mine = check_inputs(returns, lengths, times, clock, resolution, truncated, valid)
    theirs = check_inputs(
        pool_full,
        shared(pool_lengths, 2),
        shared(pool_times, 3),
        clock,
        resolution,
        shared(pool_truncated, 2),
        shared(pool_valid, 2),
        what="pool_returns",
    )
    mine, unusable = _without_broken(mine)
    theirs, _ = _without_broken(theirs)
    rows, columns = rollouts(mine), rollouts(theirs)
    preference = _mean_preference(rows, columns, name, reference_ticks(rows, mine, name, reference_time))
    return _finish(preference, rows.final, mine.valid, unusable, returns.dtype, output, anchor, weight)


# --------------------------------------------------------------------------------------------------------------- parts


def _check_options(output: str, anchor: str | None, weight: float) -> None:
    if output not in ("signed", "win_rate"):
        raise UsageError(f"output must be 'signed' or 'win_rate', got {output!r}")
    if anchor not in ("success", "return", None):
        raise UsageError(f"anchor must be 'success', 'return' or None, got {anchor!r}")
    limit = 0.5 if output == "signed" else 1.0
    if anchor is not None and not 0 <= weight < limit:
        raise UsageError(
            f"weight must lie in [0, {limit:g}), or failures could outscore successes; got {weight!r}. "
            "anchor=None gives the preference alone"
        )


def _without_broken(inputs: Inputs) -> tuple[Inputs, Tensor | None]:
    """Rollouts with unusable values taken out, where they were not already refused."""
    if inputs.returns.device.type == "cpu" and not torch.compiler.is_compiling():
        return inputs, None
    bad = broken(inputs)
    return replace(inputs, valid=inputs.valid & ~bad), bad


def _group_preference(
    inputs: Inputs, measure: str, reference_time: Tensor | None
) -> tuple[Float[Tensor, "batch group"], Int[Tensor, "batch group"]]:
    """Mean Δ against the others of the group, float64, and the highest return of each rollout in millionths."""
    runs = rollouts(inputs)
    return _mean_preference(runs, None, measure, reference_ticks(runs, inputs, measure, reference_time)), runs.final


def _mean_preference(
    rows: Rollouts, columns: Rollouts | None, measure: str, reference: Tensor | None
) -> Float[Tensor, "batch row"]:
    """Mean Δ over the valid columns that are not the row itself; 0 where there is none."""
    unit = describe(measure).unit
    if measure in CURVE_MEASURES:
        delta = compare_rollouts(rows, columns, measure)
        here = rows.valid
        there = rows.valid if columns is None else columns.valid
    else:
        score, here = rollout_scores(rows, measure, reference)
        other, there = (score, here) if columns is None else rollout_scores(columns, measure, reference)
        delta = score.unsqueeze(-1) - other.unsqueeze(-2)
        tied = delta.abs() <= describe(measure).tolerance
        delta = torch.where(tied | ~(here.unsqueeze(-1) & there.unsqueeze(-2)), 0, delta)
    rivals = there.sum(-1, keepdim=True) - (here.long() if columns is None else 0)
    return _row_sums(delta).double() / (rivals.clamp(min=1) * unit).double()


def _row_sums(delta: Int[Tensor, "batch row column"]) -> Int[Tensor, "batch row"]:
    """Sums over columns; on the CPU in one thread, because waking others takes longer than this does."""
    if delta.device.type != "cpu" or torch.compiler.is_compiling():
        return delta.sum(-1)
    return torch.from_numpy(delta.numpy().sum(-1))


def result_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype is torch.float64 else torch.float32


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


__all__ = ["DEFAULT_WEIGHT", "Anchor", "Output", "pool_rewards", "preference_rewards"]
