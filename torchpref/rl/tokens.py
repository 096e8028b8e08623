"""From rewards on tokens to curves, and back to advantages on tokens: what trainers of language models hand over.

They put a reward on a token, the last one of a response or of a turn, and a mask over the model's own tokens. The curve is
what these rewards add up to, the clock counts the model's own tokens or its turns.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from torchpref.errors import DataError, TorchPrefWarning, UsageError
from torchpref.rl.advantages import Scale
from torchpref.rl.ragged import GroupIds, ragged_advantages, ragged_rewards, value_of
from torchpref.rl.rollouts import numbers

Negative = Literal["ignore", "subtract", "refuse"]
TokenClock = Literal["tokens", "turns"]


def curve_of_token_rewards(
    rewards: Float[Tensor, "row token"],
    mask: Float[Tensor, "row token"],
    *,
    max_score: float = 1.0,
    negative: Negative = "ignore",
    clock: TokenClock = "tokens",
) -> tuple[Float[Tensor, "row token"], Float[Tensor, "row token"]]:
    """Returns reached so far and times, float64, at every token; for ``preference_rewards(returns, times=, clock=)``.

    The return is the sum of the rewards up to a token, divided by ``max_score``, the sum of a perfect run; more than that
    counts as 1, with a warning. It never falls.

    Args:
        rewards: the reward that lies on each token.
        mask: not 0 where a token is the model's own: outputs of tools and padding are not.
        max_score: what the rewards of a perfect run sum to.
        negative: what a reward below 0 does. ``"ignore"`` (default): it counts as 0, with a warning: a failure that is
            scored -1 is a failure. ``"subtract"``: it lowers the sum, which later rewards have to make up for. ``"refuse"``:
            an error. A penalty of KL in the rewards belongs into the loss: it is a negative reward on every token.
        clock: count the model's own ``tokens`` or its ``turns``, stretches of own tokens.

    Raises:
        DataError: shapes that do not fit, a reward that is not a number, or a negative one where these are refused.
    """
    rewards, mask = numbers(rewards, "rewards"), numbers(mask, "mask")
    if rewards.dim() != 2 or rewards.shape != mask.shape:
        raise DataError(
            f"rewards and mask must both be [row, token], got shapes {list(rewards.shape)} and {list(mask.shape)}"
        )
    if negative not in get_args(Negative):
        raise UsageError(f"negative must be 'ignore', 'subtract' or 'refuse', got {negative!r}")
    if clock not in get_args(TokenClock):
        raise UsageError(f"clock must be 'tokens' or 'turns', got {clock!r}")
    if not 0 < max_score < float("inf"):
        raise UsageError(
            f"max_score is what the rewards of a perfect run sum to and must be positive, got {max_score!r}"
        )
    values = rewards.double()
    if not bool(values.isfinite().all()):
        raise DataError(
            f"the reward at [row, token] = {(~values.isfinite()).nonzero()[0].tolist()} is not a finite number"
        )
    below = int((values < 0).sum())
    if below and negative == "refuse":
        raise DataError(
            f"{below} rewards of tokens are negative, the first at [row, token] = {(values < 0).nonzero()[0].tolist()}; "
            "negative='ignore' counts them as 0, 'subtract' lets them lower the sum"
        )
    if below and negative == "ignore":
        _tell("negative", f"{below} rewards of tokens are negative and count as 0 (negative='ignore')")
        values = values.clamp(min=0)
    reached = values.cumsum(-1) / max_score
    # As in curve_of_rewards, a sum of float32 that exceeds the maximum by rounding is the maximum.
    above = int((reached > 1 + 1e-6).any(-1).sum())
    if above:
        _tell(
            "above",
            f"the rewards of {above} rows sum to more than max_score={max_score:g}, which counts as {max_score:g}",
        )
    own = mask != 0
    if clock == "turns":
        own = own & ~torch.nn.functional.pad(own[:, :-1], (1, 0))
    return reached.clamp(0, 1).cummax(-1).values if reached.shape[-1] else reached, own.cumsum(-1).double()


def token_advantages(
    rewards: Float[Tensor, "row token"],
    mask: Float[Tensor, "row token"],
    group: GroupIds,
    *,
    run: Sequence[Hashable] | None = None,
    order: Sequence[int] | None = None,
    measure: str = "rpp",
    max_score: float = 1.0,
    negative: Negative = "ignore",
    clock: TokenClock = "tokens",
    credit: Literal["to-go"] | None = None,
    scale: Scale = "none",
    **options: Any,
) -> Float[Tensor, "row token"]:
    """The advantage of every token, float32, 0 where the mask is: one number per run, or credit to-go.

    Args:
        rewards, mask, max_score, negative, clock: as in :func:`curve_of_token_rewards`.
        group: the group of each row: runs of one prompt.
        run: the run of each row, where a run is spread over several rows, as when a context was cut and begun anew. Such
            rows are joined end to end, and never compared with each other.
        order: the place of each row within its run; by default rows stand in order.
        measure, credit, options: as in :func:`torchpref.rl.preference_rewards`.
        scale: as in :func:`torchpref.rl.group_advantages`.
    """
    if credit is not None and scale != "none":
        raise UsageError("credit='to-go' gives advantages by level, which are not divided by the group's deviation")
    rewards, mask = numbers(rewards, "rewards"), numbers(mask, "mask")
    rows = len(rewards)
    ids = [value_of(name) for name in group]
    if len(ids) != rows:
        raise DataError(f"there are {len(ids)} group ids for {rows} rows")
    if not rewards.numel():
        return torch.zeros(rewards.shape, device=rewards.device)
    joined = _Rows.of(ids, range(rows) if run is None else run, order, rows)
    returns, times = curve_of_token_rewards(
        joined.join(rewards), joined.join(mask), max_score=max_score, negative=negative, clock=clock
    )
    shared: dict[str, Any] = {"times": times, "clock": clock, **options}
    if credit is not None:
        advantages = ragged_rewards(returns, None, joined.group, measure, credit=credit, **shared)
    else:
        values = ragged_rewards(returns, None, joined.group, measure, **shared)
        advantages = ragged_advantages(values, joined.group, scale=scale).unsqueeze(-1).expand_as(returns)
    return torch.where(mask != 0, joined.split(advantages), 0).float()


class _Rows:
    """Which rows make which run, in their order."""

    def __init__(self, pieces: list[list[int]], group: list[Hashable]) -> None:
        self.pieces = pieces
        self.group = group
        self.longest = max(map(len, pieces))

    @classmethod
    def of(cls, group: Sequence[Hashable], run: Sequence[Hashable], order: Sequence[int] | None, count: int) -> _Rows:
        if len(run) != count or (order is not None and len(order) != count):
            raise DataError(f"run and order must name one value for each of the {count} rows")
        rows: dict[Hashable, list[int]] = {}
        for row in range(count) if order is None else sorted(range(count), key=lambda row: int(order[row])):
            rows.setdefault(value_of(run[row]), []).append(row)
        for name, members in rows.items():
            if len({group[row] for row in members}) > 1:
                raise DataError(f"the rows {members} of run {name!r} are of different groups; a run belongs to one")
        return cls(list(rows.values()), [group[members[0]] for members in rows.values()])

    def join(self, values: Tensor) -> Float[Tensor, "run token"]:
        """``[row, token]`` to ``[run, piece × token]``, zeros where a run has fewer pieces."""
        width = values.shape[1]
        full = values.new_zeros((len(self.pieces), self.longest * width))
        for number, members in enumerate(self.pieces):
            full[number, : len(members) * width] = values[members].flatten()
        return full

    def split(self, values: Float[Tensor, "run token"]) -> Float[Tensor, "row token"]:
        """Back to rows."""
        width = values.shape[1] // self.longest
        result = values.new_zeros((sum(map(len, self.pieces)), width))
        for number, members in enumerate(self.pieces):
            result[members] = values[number, : len(members) * width].view(len(members), width)
        return result


_TOLD: set[str] = set()


def _tell(what: str, message: str) -> None:
    """Warn once per process: these happen at every step of a training."""
    if what not in _TOLD:
        _TOLD.add(what)
        warnings.warn(f"{message}; said once", TorchPrefWarning, stacklevel=4)


__all__ = ["Negative", "TokenClock", "curve_of_token_rewards", "token_advantages"]
