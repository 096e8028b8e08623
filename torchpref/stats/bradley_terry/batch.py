"""Bradley–Terry for many replicates of one problem: the same solution as the single fit, thousands per second.

For resampling. Each replicate is solved by damped Newton steps from a start near its solution: on the CPU by compiled
code, replicate by replicate; on other devices by batched torch operations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from torchpref.errors import UsageError
from torchpref.stats.bradley_terry import graph as bt_graph
from torchpref.stats.bradley_terry import solver as bt_solver
from torchpref.stats.bradley_terry.graph import ROUNDING

STATUSES = (bt_graph.OK, bt_graph.SEPARATED, bt_graph.DISCONNECTED, bt_graph.SINGLE, bt_graph.EMPTY)
_MARGIN = 1e-9  # a mean may leave [0, 1] by rounding; it then counts as 0 or 1
_CELLS = 2**22  # pairs in both orders that torch takes at once: about 0.3 GB of temporaries


class BatchFit(NamedTuple):
    """Solutions of a batch.

    Attributes:
        theta: float64 [replicate, system]. Where a replicate has no finite solution: finite within the largest strongly
            connected component of two or more, with Σθ = 0 there; −∞ for systems that were only ever preferred less
            than those, directly or by way of others, +∞ for the opposite; NaN for systems that cannot be placed. Where
            no component has two systems, −∞ for one below all others, +∞ for one above all, NaN for the rest.
        status: int64 [replicate], the place of the status in :data:`STATUSES`.
    """

    theta: Float[Tensor, "replicate system"]
    status: Int[Tensor, " replicate"]


def fit_pairs(
    y: Float[Tensor, "replicate pair"],
    weights: Float[Tensor, "#replicate pair"] | None,
    systems: int,
    start: Float[Tensor, "*replicate system"] | None = None,
) -> BatchFit:
    """Scores of every replicate, equal to those of :func:`torchpref.stats.bradley_terry.model`, without gradients.

    A pair is (a, b) with a < b, in the order (0, 1), (0, 2), …, as in Preferences.

    Args:
        y: y_ab in [0, 1] per replicate; NaN where not compared.
        weights: w_ab, at least 0, [1 or replicate, pair]; None is 1 for every compared pair.
        systems: the number of systems.
        start: [system] or [replicate, system], where to start; the solution of the whole data is best. None starts from
            the mean preferences. Entries that are not finite start at 0. No effect on the result beyond rounding.

    Raises:
        UsageError: shapes that do not fit together, y outside [0, 1], weights negative.
    """
    pairs = systems * (systems - 1) // 2
    if y.dim() != 2 or y.shape[1] != pairs:
        raise UsageError(f"y must be [replicate, {pairs}] for {systems} systems, got shape {list(y.shape)}")
    replicates = y.shape[0]
    y = y.detach().double()
    weights = y.new_ones(1, pairs) if weights is None else weights.detach().to(y.device).double()
    if weights.dim() != 2 or weights.shape[0] not in (1, replicates) or weights.shape[1] != pairs:
        raise UsageError(f"weights must be [1 or {replicates}, {pairs}], got shape {list(weights.shape)}")
    starts = y.new_zeros(0, systems) if start is None else start.detach().to(y.device).double()
    starts = starts[None] if starts.dim() == 1 else starts
    if starts.shape[0] not in (0, 1, replicates) or starts.shape[1:] != (systems,):
        raise UsageError(f"start must be [{systems}] or [{replicates}, {systems}], got shape {list(starts.shape)}")
    if systems < 2 or replicates == 0:
        code = STATUSES.index(bt_graph.SINGLE if systems == 1 else bt_graph.EMPTY)
        return BatchFit(y.new_zeros(replicates, systems), torch.full((replicates,), code, device=y.device))
    if bool(((y < -_MARGIN) | (y > 1 + _MARGIN)).any()):
        raise UsageError("y must lie in [0, 1] (y = (mean preference + 1) / 2)")
    if not float(weights.amin()) >= 0:
        raise UsageError("weights must be finite and at least 0")
    if y.device.type == "cpu":
        return _fit_compiled(y, weights, starts, systems)
    return _fit_torch(y, weights, starts, systems)


def _fit_compiled(y: Tensor, weights: Tensor, starts: Tensor, systems: int) -> BatchFit:
    from torchpref.stats.bradley_terry import compiled as bt_kernel

    rows, shared, begin = (tensor.contiguous().numpy() for tensor in (y, weights, starts))
    if systems <= bt_kernel.MAX_SYSTEMS:
        theta, status, _ = bt_kernel.run(rows, shared, begin, systems)
        return BatchFit(torch.from_numpy(theta), torch.from_numpy(status))

    theta = np.empty((rows.shape[0], systems))
    status = np.empty(rows.shape[0], dtype=np.int64)
    for index, row in enumerate(rows):
        weight = shared[index if shared.shape[0] > 1 else 0]
        before = begin[index if begin.shape[0] > 1 else 0] if begin.size else None
        theta[index], status[index] = _fit_large(row, weight, before, systems)
    return BatchFit(torch.from_numpy(theta), torch.from_numpy(status))


def _fit_large(
    y: NDArray[np.float64], weights: NDArray[np.float64], start: NDArray[np.float64] | None, systems: int
) -> tuple[NDArray[np.float64], int]:
    from torchpref.stats.bradley_terry import compiled as bt_kernel

    counted = ~np.isnan(y) & (weights > 0)
    y = np.where(counted, y, 0.5)
    weights = np.where(counted, weights, 0.0)
    if (counted & (y >= ROUNDING) & (y <= 1 - ROUNDING)).all():  # complete, hence strongly connected
        return bt_kernel.fit_large(y, weights, start), 0
    y = np.where(y < ROUNDING, 0.0, np.where(y > 1 - ROUNDING, 1.0, y))
    wins = _wins(y, weights, systems)
    parts = bt_graph.components(wins)
    if parts.status == bt_graph.OK:
        return bt_kernel.fit_large(y, weights, start), 0
    theta = _limits(wins, parts)
    keep = np.flatnonzero(parts.scored)
    if keep.size:
        inside, upper = np.ix_(keep, keep), np.triu_indices(keep.size, 1)
        theta[keep] = bt_kernel.fit_large(
            _square(y, systems)[inside][upper],
            _square(weights, systems)[inside][upper],
            None if start is None else start[keep],
        )
    return theta, STATUSES.index(parts.status)


def _square(pairs: NDArray[np.float64], systems: int) -> NDArray[np.float64]:
    """[system, system] with the pairs above the diagonal and zeros elsewhere."""
    square = np.zeros((systems, systems))
    square[np.triu_indices(systems, 1)] = pairs
    return square


def _wins(y: NDArray[np.float64], weights: NDArray[np.float64], systems: int) -> NDArray[np.bool_]:
    """bool [system, system]: who was ever preferred to whom."""
    upper = _square(np.where(weights > 0, y, 0.0), systems) > 0
    lower = _square(np.where(weights > 0, 1 - y, 0.0), systems) > 0
    return np.logical_or(upper, lower.T)


def _limits(graph: NDArray[np.bool_], parts: bt_graph.Components) -> NDArray[np.float64]:
    """0 within the scored component, −∞ below it, +∞ above it, NaN beside it.

    Without one, −∞ for a system below all others, +∞ for one above all others.
    """
    limits = np.full(graph.shape[0], np.nan)
    if parts.largest >= 0:
        root = int(np.argmax(parts.scored))
        limits[bt_graph.reachable(graph.T, root)] = np.inf
        limits[bt_graph.reachable(graph, root)] = -np.inf
        limits[parts.scored] = 0.0
    elif parts.status == bt_graph.SEPARATED:
        first, last = np.argmin(parts.labels), np.argmax(parts.labels)
        limits[first] = np.inf if bt_graph.reachable(graph, int(first)).all() else np.nan
        limits[last] = -np.inf if bt_graph.reachable(graph.T, int(last)).all() else np.nan
    return limits


def _fit_torch(y: Tensor, weights: Tensor, starts: Tensor, systems: int) -> BatchFit:
    """On any device, in chunks that bound the memory."""
    replicates = y.shape[0]
    chunk = max(1, _CELLS // (systems * systems))
    theta = y.new_empty(replicates, systems)
    status = torch.zeros(replicates, dtype=torch.int64, device=y.device)
    starts = starts if starts.shape[0] else y.new_zeros(1, systems)
    for low in range(0, replicates, chunk):
        part = slice(low, low + chunk)
        theta[part], status[part] = _fit_chunk(
            y[part],
            (weights[part] if weights.shape[0] > 1 else weights).expand_as(y[part]),
            (starts[part] if starts.shape[0] > 1 else starts).expand_as(theta[part]),
            systems,
        )
    return BatchFit(theta, status)


def _fit_chunk(y: Tensor, weights: Tensor, starts: Tensor, systems: int) -> tuple[Tensor, Tensor]:
    counted = ~torch.isnan(y) & (weights > 0)
    y = torch.where(counted, y, 0.5)
    y = torch.where(y < ROUNDING, 0.0, torch.where(y > 1 - ROUNDING, 1.0, y))
    weights = torch.where(counted, weights, 0.0)
    first, second = torch.triu_indices(systems, systems, 1, device=y.device)
    square_y = y.new_full((y.shape[0], systems, systems), 0.5)
    square_y[:, first, second], square_y[:, second, first] = y, 1 - y
    square_w = torch.zeros_like(square_y)
    square_w[:, first, second] = square_w[:, second, first] = weights

    labels = torch.zeros(y.shape[0], systems, dtype=torch.int64, device=y.device)
    status = torch.zeros(y.shape[0], dtype=torch.int64, device=y.device)
    limits = torch.zeros(y.shape[0], systems, dtype=torch.float64, device=y.device)
    suspects = (~(counted & (y > 0) & (y < 1))).any(-1)  # all others are complete, hence strongly connected
    indices = torch.nonzero(suspects)[:, 0]
    wins = ((square_y[indices] > 0) & (square_w[indices] > 0)).cpu().numpy()
    for index, graph in zip(indices.tolist(), wins, strict=True):
        parts = bt_graph.components(graph)
        if parts.status != bt_graph.OK:
            status[index] = STATUSES.index(parts.status)
            labels[index] = torch.from_numpy(parts.labels)
            limits[index] = torch.from_numpy(_limits(graph, parts))
    problems = bt_solver.Problems.of(square_y, square_w, labels)
    theta, _, _ = bt_solver.newton(problems, torch.where(torch.isfinite(starts), starts, 0.0))
    return torch.where(limits == 0, theta, limits), status


def warm_up() -> None:
    """Compile what fits many problems on the CPU; see :func:`torchpref.kernels.warm_up`."""
    from torchpref.stats.bradley_terry import compiled as bt_kernel

    for systems in (3, bt_kernel.MAX_SYSTEMS + 1):
        y = torch.full((1, systems * (systems - 1) // 2), 0.5, dtype=torch.float64)
        y[:, 0] = 0.75
        fit_pairs(y, None, systems)
    hessian = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64).numpy()
    bt_kernel._factorise(2, hessian)  # what is taken where LAPACK finds no factor
    bt_kernel._solve(2, hessian, np.zeros(2))
