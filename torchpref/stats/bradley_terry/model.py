"""The Bradley–Terry model: one score per system from mean preferences, with a status where no finite scores exist.

Bradley and Terry, *Rank analysis of incomplete block designs I*, Biometrika 39 (1952); outcomes may be any number in
[0, 1], as in *Offline Preference-Based Trajectory Evaluation*, arXiv 2606.17541.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.report.numbers import signed
from torchpref.runs.plain import plain
from torchpref.stats.bradley_terry import graph as bt_graph
from torchpref.stats.bradley_terry import solver as bt_solver

if TYPE_CHECKING:
    import polars

    from torchpref.pairwise.preferences import Preferences

TIE = 1e-9  # scores closer than this are equal in ranks
_MIN_RIDGE = 1e-9
REGULARISED = "regularised"


@dataclass(frozen=True, eq=False, repr=False)
class BradleyTerry:
    """Scores of one problem or of a batch; for a batch the fields that are not tensors are nested lists.

    Attributes:
        systems: names, the order of every tensor here.
        theta: float64 [..., system], natural log-odds with Σθ = 0; NaN where no finite score exists.
        status: ``ok``; ``separated`` (some systems were never preferred to some others, so that their distance has no
            finite value); ``disconnected`` (some systems were never compared, not even by way of others); ``single``;
            ``empty``; ``regularised`` (separated or disconnected, and finite because of the ridge).
        message: the status in words, naming systems.
        tiers: lists of names, best first, where the strongly connected components are totally ordered; else None.
        gradient_norm: max |gradient| of the objective at the solution; a tensor [...] for a batch.
        iterations: L-BFGS and Newton iterations; a tensor [...] for a batch.
        ridge: the ridge that was used.
        rank_values: what :meth:`ranks` gives.
    """

    systems: tuple[str, ...]
    theta: Float[Tensor, "*batch system"]
    status: Any
    message: Any
    tiers: Any
    gradient_norm: Any
    iterations: Any
    ridge: float
    rank_values: Float[Tensor, "*batch system"]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading dimensions: () for one problem."""
        return tuple(self.theta.shape[:-1])

    def ranks(self) -> Float[Tensor, "*batch system"]:
        """Ranks from 1, best first, float64; equal scores (closer than 1e-9) share the smallest rank.

        Where there are tiers every system of a higher tier ranks before every system of a lower one, and within a tier
        its own scores decide; NaN for systems that cannot be ordered against the scored ones.
        """
        return self.rank_values.clone()

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; None where a score or a rank does not exist."""
        return {
            "systems": list(self.systems),
            "status": self.status,
            "message": self.message,
            "theta": plain(self.theta),
            "rank": plain(self.rank_values, whole=True),
            "tiers": self.tiers,
            "gradient_norm": plain(torch.as_tensor(self.gradient_norm)),
            "iterations": plain(torch.as_tensor(self.iterations), whole=True),
            "ridge": self.ridge,
        }

    def to_frame(self) -> polars.DataFrame:
        """One row per system (and problem, numbered from 0 in row-major order, where there are several)."""
        import polars as pl

        problems = self.theta.shape[:-1].numel()
        count = len(self.systems)
        columns = {
            "system": list(self.systems) * problems,
            "rank": pl.Series(plain(self.rank_values.reshape(-1), whole=True), dtype=pl.Int64),
            "theta": pl.Series(plain(self.theta.reshape(-1)), dtype=pl.Float64),
        }
        if self.batch_shape:
            columns = {"problem": [p for p in range(problems) for _ in range(count)], **columns}
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        if self.batch_shape:
            statuses = _leaves(self.status)
            counts = ", ".join(f"{statuses.count(s)} {s}" for s in sorted(set(statuses)))
            return f"BradleyTerry({len(self.systems)} systems, {list(self.batch_shape)} problems: {counts or 'none'})"
        width = max([6, *(len(name) for name in self.systems)])
        order = sorted(range(len(self.systems)), key=lambda i: (_last_if_nan(self.rank_values[i]), i))
        rows = [f"rank  {'system':<{width}}  log-odds"]
        for i in order:
            rank, theta = float(self.rank_values[i]), float(self.theta[i])
            place = "-" if np.isnan(rank) else f"{rank:.0f}"
            score = signed(theta, 4) or "-"
            rows.append(f"{place:>4}  {self.systems[i]:<{width}}  {score:>8}")
        return "\n".join([*rows, f"{self.status}: {self.message}"])


def bradley_terry(
    preferences: Preferences | Float[Tensor, "*batch system system"],
    weights: Float[Tensor, "*batch system system"] | None = None,
    *,
    ridge: float = 0.0,
    systems: Sequence[str] | None = None,
) -> BradleyTerry:
    """Scores θ that minimise, with Σθ = 0 and in float64,

        −Σ_{A<B} w_AB [y_AB log σ(θ_A − θ_B) + (1 − y_AB) log σ(θ_B − θ_A)] / Σ_{A<B} w_AB  +  ridge/2 · Σ_A θ_A²

    by L-BFGS on autograd's gradient, finished by Newton steps to max |gradient| < 1e-12. A batch is solved by damped Newton
    steps from 0, each problem to the same bits whatever stands beside it.

    Without a ridge a finite minimum exists if and only if the graph with an edge A → B wherever y_AB > 0 is strongly
    connected, which is checked first. Where it is not, θ is given within the largest strongly connected component (of
    several the one in the highest tier, then the one with the first system; two systems at least), with Σθ = 0 there,
    and is NaN elsewhere. Any ridge > 0 makes every score finite; they then depend on the ridge.

    θ carries gradients with respect to ``y`` and ``weights`` where these require them (once differentiable).

    Args:
        preferences: :class:`torchpref.Preferences`, or y [..., system, system] in [0, 1] with y_BA = 1 − y_AB: y_AB is
            (mean preference + 1) / 2, NaN where a pair was not compared; the diagonal is ignored.
        weights: w, the same shape (or one that broadcasts to it), symmetric, at least 0; where None the weights of
            ``preferences``, or 1 for every compared pair of a tensor.
        ridge: 0, or at least 1e-9.
        systems: names; where None those of ``preferences``, or "0", "1", ….

    Returns:
        A :class:`BradleyTerry` with theta [..., system] on the device of the input.

    Raises:
        UsageError: y or weights have a wrong shape or value; the message shows which.
    """
    if isinstance(preferences, Tensor):
        given = preferences
    elif hasattr(preferences, "mean") and hasattr(preferences, "weight_sums"):
        given = (preferences.mean() + 1) / 2
        weights = preferences.weight_sums() if weights is None else weights
        systems = preferences.systems if systems is None else systems
    else:
        raise UsageError(
            f"bradley_terry takes Preferences or a tensor y [..., system, system], got {type(preferences).__name__}"
        )
    if not (ridge == 0 or _MIN_RIDGE <= ridge < float("inf")):
        raise UsageError(f"ridge must be 0 or at least {_MIN_RIDGE:g}, got {ridge!r}")
    y, w = checked(given, weights)
    names = _checked_names(systems, y.shape[-1])

    batch = y.shape[:-2]
    count = y.shape[-1]
    y, w = y.reshape(batch.numel(), count, count), w.reshape(batch.numel(), count, count)
    parts = _graphs(y.detach(), w.detach())
    grouping = [part.islands if ridge > 0 else part.labels for part in parts]
    labels = torch.from_numpy(np.stack(grouping) if grouping else np.zeros((0, count), dtype=np.int64)).to(y.device)
    with torch.no_grad():
        problems = bt_solver.Problems.of(y.detach(), w.detach(), labels, ridge)
        start = torch.zeros(y.shape[:2], dtype=torch.float64, device=y.device)
        # L-BFGS looks at the sum over problems: in a batch the last bit of one would depend on the others.
        near, used = bt_solver.lbfgs(problems, start) if start.numel() and not batch else (start, 0)
        near = torch.where(torch.isfinite(near).all(-1, keepdim=True), near, start)
        theta, norms, steps = bt_solver.newton(problems, near)
    if y.requires_grad or w.requires_grad:
        theta = bt_solver.ImplicitSolution.apply(y, w, theta, problems)  # type: ignore[no-untyped-call]

    ranks = _ranks(theta.detach().cpu().numpy(), parts, ridge)
    if ridge == 0:
        scored = np.stack([part.scored for part in parts]) if parts else np.zeros((0, count), dtype=bool)
        theta = torch.where(torch.from_numpy(scored).to(y.device), theta, float("nan"))
    norms, steps = norms.reshape(batch), (steps + used).reshape(batch)
    return BradleyTerry(
        systems=names,
        theta=theta.reshape(*batch, count),
        status=_nested([_status(part, ridge) for part in parts], batch),
        message=_nested([_message(part, names, ridge) for part in parts], batch),
        tiers=_nested([_tiers(part, names) for part in parts], batch),
        gradient_norm=norms if batch else float(norms),
        iterations=steps if batch else int(steps),
        ridge=float(ridge),
        rank_values=torch.from_numpy(ranks).to(y.device).reshape(*batch, count),
    )


def checked(
    y: Float[Tensor, "*batch system system"], weights: Float[Tensor, "*batch system system"] | None
) -> tuple[Float[Tensor, "*batch system system"], Float[Tensor, "*batch system system"]]:
    """y and weights in float64 with NaN replaced: where a pair does not count, y is 1/2 and the weight 0.

    Raises:
        UsageError: shapes, values outside [0, 1], y_AB + y_BA ≠ 1, weights negative, not finite or not symmetric.
    """
    if y.dim() < 2 or y.shape[-1] != y.shape[-2]:
        raise UsageError(f"y must be [..., system, system], got shape {list(y.shape)}")
    # A margin for rounding on the way here, also where y was computed in float32; clipped afterwards.
    margin = max(1e-9, 16 * torch.finfo(y.dtype).eps) if y.is_floating_point() else 0.0
    y = y.double()
    count = y.shape[-1]
    apart = ~torch.eye(count, dtype=torch.bool, device=y.device)
    here = ~torch.isnan(y) & apart
    _require(here == here.transpose(-2, -1), y, "y is NaN for a pair in one order and a number in the other")
    _require(~here | ((y >= -margin) & (y <= 1 + margin)), y, "y must lie in [0, 1] (y = (mean preference + 1) / 2)")
    total = y + y.transpose(-2, -1)
    _require(~here | ((total - 1).abs() <= margin), y, "y must satisfy y_AB + y_BA = 1")
    if weights is None:
        w = here.double()
    else:
        try:
            y, w = torch.broadcast_tensors(y, weights.double().to(y.device))  # type: ignore[no-untyped-call]
        except RuntimeError:
            w = weights
        if w.shape != y.shape or y.shape[-1] != count:
            raise UsageError(f"weights of shape {list(weights.shape)} do not fit y of shape {list(y.shape)}")
        here = here.expand(y.shape)
        _require(~apart | (torch.isfinite(w) & (w >= 0)), w, "weights must be finite and at least 0")
        scale = torch.maximum(w, w.transpose(-2, -1))
        _require(~apart | ((w - w.transpose(-2, -1)).abs() <= 1e-9 * scale), w, "weights must be symmetric")
        w = torch.where(here, (w + w.transpose(-2, -1)) / 2, 0.0)
    used = here & (w > 0)
    y = torch.where(used, y, 0.5)
    y = (y + 1 - y.transpose(-2, -1)) / 2
    y = torch.where(y < bt_graph.ROUNDING, 0.0, torch.where(y > 1 - bt_graph.ROUNDING, 1.0, y))
    return y, w


def _require(good: Tensor, values: Tensor, rule: str) -> None:
    if bool(good.all()):
        return
    where = torch.nonzero(~good)[0].tolist()
    value, entries = float(values[tuple(where)]), int((~good).sum())
    raise UsageError(f"{rule}; at {where} it is {value:g} ({entries} such {'entry' if entries == 1 else 'entries'})")


def _checked_names(systems: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if systems is None:
        return tuple(str(i) for i in range(count))
    if len(systems) != count:
        raise UsageError(f"{len(systems)} names were given for {count} systems")
    return tuple(systems)


def _graphs(y: Tensor, w: Tensor) -> list[bt_graph.Components]:
    wins = ((y > 0) & (w > 0)).cpu().numpy()
    complete = bt_graph.components(~np.eye(wins.shape[-1], dtype=bool))
    full = wins.sum((-2, -1)) == wins.shape[-1] * (wins.shape[-1] - 1)
    return [complete if whole else bt_graph.components(graph) for whole, graph in zip(full, wins, strict=True)]


def _ranks(theta: NDArray[np.float64], parts: list[bt_graph.Components], ridge: float) -> NDArray[np.float64]:
    """Competition ranks [problem, system]: by tier, then by score, chains of near-equal scores sharing a rank."""
    ranks = np.full(theta.shape, np.nan)
    for row, score, part in zip(ranks, theta, parts, strict=True):
        members = np.arange(score.size) if ridge > 0 else np.flatnonzero(part.ranked)
        tier = np.zeros(members.size, dtype=np.int64) if ridge > 0 else part.labels[members]
        order = np.lexsort((-score[members], tier))
        scores, tier = score[members][order], tier[order]
        starts = np.ones(members.size, dtype=bool)
        starts[1:] = (tier[1:] != tier[:-1]) | (scores[:-1] - scores[1:] >= TIE)
        places = np.maximum.accumulate(np.where(starts, np.arange(1, members.size + 1), 0))
        row[members[order]] = places
    return ranks


def _status(part: bt_graph.Components, ridge: float) -> str:
    return REGULARISED if ridge > 0 and part.status in (bt_graph.SEPARATED, bt_graph.DISCONNECTED) else part.status


def _message(part: bt_graph.Components, names: tuple[str, ...], ridge: float) -> str:
    if _status(part, ridge) == REGULARISED:
        return f"finite only because of the ridge {ridge:g}; without it: {bt_graph.describe(part, names)}"
    return bt_graph.describe(part, names)


def _tiers(part: bt_graph.Components, names: tuple[str, ...]) -> list[list[str]] | None:
    if not part.chain:
        return None
    tiers = int(part.labels.max()) + 1 if names else 0
    return [[names[i] for i in np.flatnonzero(part.labels == tier)] for tier in range(tiers)]


def _nested(values: list[Any], shape: Sequence[int]) -> Any:
    """A flat list in row-major order as nested lists of ``shape``; its one value for the shape ()."""
    if not shape:
        return values[0]
    size = len(values) // shape[0] if shape[0] else 0
    return [_nested(values[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def _leaves(nested: Any) -> list[str]:
    return [leaf for item in nested for leaf in _leaves(item)] if isinstance(nested, list) else [nested]


def _last_if_nan(value: Tensor) -> float:
    return float("inf") if bool(torch.isnan(value)) else float(value)
