"""Rewards from preferences: how much sooner than its rivals a rollout reached each level of return.

The reward of a rollout is the mean of Δ against the other rollouts of its group, or against a fixed pool, anchored on
success by default. Everything is computed on the input's device and nothing waits for it. DESIGN.md section 4; the
measures are those of *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.grid import LEVEL_PAD
from torchpref.measures import CURVE_MEASURES, describe
from torchpref.rl.rollouts import Inputs, Rollouts, broken, check_inputs, rollouts
from torchpref.trajectories import MILLION, NEVER, UNKNOWN

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
    is not recommended: it blows a difference of one step up to full size. See :func:`group_advantages`.

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
    preference = _mean_preference(rows, columns, name, _reference_ticks(rows, mine, name, reference_time))
    return _finish(preference, rows.final, mine.valid, unusable, returns.dtype, output, anchor, weight)


def ragged_rewards(
    returns: Float[Tensor, "rollout step"],
    lengths: Int[Tensor, " rollout"] | None,
    group: Int[Tensor, " rollout"] | Sequence[Hashable],
    measure: str = "rpp",
    *,
    times: Tensor | None = None,
    truncated: Tensor | None = None,
    valid: Tensor | None = None,
    shape: tuple[int, int] | None = None,
    **options: Any,
) -> Float[Tensor, " rollout"]:
    """Rewards of rollouts in groups of any size, told apart by an id.

    Args:
        returns, lengths, measure, times, truncated, valid: as in :func:`preference_rewards`, without the batch axis.
        group: the group of each rollout, whole numbers or a list of anything that can be hashed; in any order.
        shape: (groups, rollouts of the largest group) or upper bounds of both, if known: spares waiting for the device.
        options: those of :func:`preference_rewards`.
    """
    if returns.dim() != 2:
        raise DataError(f"returns must be [rollout, step], got shape {list(returns.shape)}")
    device = returns.device
    count = len(returns)
    if not isinstance(group, Tensor):
        numbers: dict[Hashable, int] = {}
        group = torch.tensor(
            [numbers.setdefault(name, len(numbers)) for name in group], dtype=torch.long, device=device
        )
    if tuple(group.shape) != (count,):
        raise DataError(f"{len(group)} group ids are given for {count} rollouts")
    if not count:
        return torch.zeros(0, dtype=_result_dtype(returns.dtype), device=device)
    order = torch.argsort(group, stable=True)
    ids = group[order]
    index = torch.arange(count, device=device)
    fresh = torch.cat([torch.ones_like(ids[:1], dtype=torch.bool), ids[1:] != ids[:-1]])
    row = fresh.long().cumsum(0) - 1
    column = index - torch.where(fresh, index, 0).cummax(0).values
    if shape is None:
        shape = (int(row[-1]) + 1, int(column.max()) + 1)
    groups, size = shape
    place = torch.empty_like(index).scatter_(0, order, row * size + column)

    def spread(tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        full = torch.zeros((groups * size, *tensor.shape[1:]), dtype=tensor.dtype, device=device)
        full[place] = tensor.to(device)
        return full.view(groups, size, *tensor.shape[1:])

    padded = spread(returns)
    assert padded is not None
    if lengths is None:
        lengths = torch.full((count,), returns.shape[1], device=device)
    if valid is None:
        valid = torch.ones(count, dtype=torch.bool, device=device)
    rewards = preference_rewards(
        padded,
        spread(lengths),
        measure,
        times=spread(times),
        truncated=spread(truncated),
        valid=spread(valid),
        **options,
    )
    return rewards.reshape(-1)[place]


def group_advantages(
    rewards: Float[Tensor, "batch group"],
    valid: Bool[Tensor, "batch group"] | None = None,
    *,
    scale: Literal["none", "group"] = "none",
    epsilon: float = 1e-6,
) -> Float[Tensor, "batch group"]:
    """Rewards less the mean of their group; 0 for rollouts that are not valid.

    ``scale="group"`` divides by the group's standard deviation (n - 1) plus ``epsilon``, as GRPO does by default. Not
    recommended here: a group that differs in one step of one rollout gets advantages of full size.

    Equal rewards give exactly 0, whatever their value.
    """
    if scale not in ("none", "group"):
        raise UsageError(f"scale must be 'none' or 'group', got {scale!r}")
    here = torch.ones_like(rewards, dtype=torch.bool) if valid is None else valid
    count = here.sum(-1, keepdim=True).clamp(min=1)
    top = torch.where(here, rewards, -torch.inf).amax(-1, keepdim=True)
    offset = torch.where(here, rewards - top, 0)
    centred = torch.where(here, offset - offset.sum(-1, keepdim=True) / count, 0)
    if scale == "none":
        return centred
    deviation = (centred.square().sum(-1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    return centred / (deviation + epsilon)


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
    return _mean_preference(runs, None, measure, _reference_ticks(runs, inputs, measure, reference_time)), runs.final


def _mean_preference(
    rows: Rollouts, columns: Rollouts | None, measure: str, reference: Tensor | None
) -> Float[Tensor, "batch row"]:
    """Mean Δ over the valid columns that are not the row itself; 0 where there is none."""
    unit = describe(measure).unit
    if measure in CURVE_MEASURES:
        from torchpref.rl.pairwise import compare_rollouts

        delta = compare_rollouts(rows, columns, measure)
        here = rows.valid
        there = rows.valid if columns is None else columns.valid
    else:
        score, here = _scores(rows, measure, reference)
        other, there = (score, here) if columns is None else _scores(columns, measure, reference)
        delta = score.unsqueeze(-1) - other.unsqueeze(-2)
        tied = delta.abs() <= describe(measure).tolerance
        delta = torch.where(tied | ~(here.unsqueeze(-1) & there.unsqueeze(-2)), 0, delta)
    rivals = there.sum(-1, keepdim=True) - (here.long() if columns is None else 0)
    return delta.sum(-1).double() / (rivals.clamp(min=1) * unit).double()


def _scores(runs: Rollouts, measure: str, reference: Tensor | None) -> tuple[Tensor, Tensor]:
    """SR, PR or SPL of every rollout in parts of the measure's unit, and which rollouts have one."""
    if measure == "sr":
        return runs.solved.long(), runs.valid
    if measure == "pr":
        return runs.final.long(), runs.valid
    assert reference is not None
    unit = describe("spl").unit
    when = _time_of_success(runs)
    limit = reference.unsqueeze(-1)
    reached = (when != NEVER) & (when != UNKNOWN)
    late = reached & (limit != UNKNOWN) & (when > limit)
    share = torch.round(limit.double() / when.clamp(min=1).double() * unit).long()
    return torch.where(late, share, torch.where(reached, unit, 0)), runs.valid & (when != UNKNOWN)


def _time_of_success(runs: Rollouts) -> Int[Tensor, "batch rollout"]:
    """The tick at which full return was reached; ``NEVER`` or ``UNKNOWN``."""
    levels, ticks = runs.jumps()
    if not levels.shape[-1]:
        return torch.full(runs.valid.shape, NEVER, device=levels.device)
    full = (levels >= MILLION) & (levels != LEVEL_PAD)
    first = full.to(torch.int8).argmax(-1, keepdim=True)
    return torch.where(runs.solved, ticks.gather(-1, first).squeeze(-1), NEVER)


def _reference_ticks(
    runs: Rollouts, inputs: Inputs, measure: str, reference_time: Tensor | None
) -> Int[Tensor, " batch"] | None:
    """SPL's L per group in ticks: the given one where it is positive, else the least positive time of success."""
    if measure != "spl":
        return None
    when = _time_of_success(runs)
    best = torch.where(runs.valid & (when > 0), when, NEVER)
    best = best.amin(-1) if best.shape[-1] else torch.full(best.shape[:1], NEVER, device=best.device)
    best = torch.where(best == NEVER, UNKNOWN, best)
    if reference_time is None:
        return best
    given = torch.as_tensor(reference_time, device=best.device)
    if tuple(given.shape) != tuple(best.shape):
        raise DataError(f"reference_time has shape {list(given.shape)}, wanted one per batch entry: {list(best.shape)}")
    scaled = given.double() * inputs.per_unit
    ticks = torch.round(torch.nan_to_num(scaled)).long()
    return torch.where(ticks > 0, ticks, best)


def _result_dtype(dtype: torch.dtype) -> torch.dtype:
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
    return reward.to(_result_dtype(dtype))


__all__ = ["DEFAULT_WEIGHT", "group_advantages", "pool_rewards", "preference_rewards", "ragged_rewards"]
