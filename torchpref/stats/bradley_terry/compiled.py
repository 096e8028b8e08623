"""Bradley–Terry for many problems on the CPU: compiled code per problem, nothing shared between problems.

Every problem is computed by the same code whatever stands beside it, so a result does not depend on how problems are cut
into chunks or spread over threads. Import this module where it is used: it imports numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchpref.kernels.compiled import jit, split
from torchpref.kernels.compiled import run as run_all
from torchpref.kernels.compiled import threads as thread_count
from torchpref.stats.bradley_terry.graph import ROUNDING

MAX_SYSTEMS = 64  # a set of systems is one 64-bit word

OK, SEPARATED, DISCONNECTED = 0, 1, 2
_ONE = np.uint64(1)
_MAX_STEPS = 1000
# Below this step the factor is kept: the next error is at most this share of the present one.
_KEEP_FACTOR = 1e-3
_SETTLED_FRESH, _SETTLED_KEPT = 1e-8, 1e-11


def _compiled(function: Callable[..., Any]) -> Any:
    return jit(function, fastmath={"reassoc", "contract"})


@_compiled
def _closure(reach: Any, count: Any) -> None:
    """Adds to each system's set whatever its members reach (Warshall on words)."""
    for k in range(count):
        bit = _ONE << np.uint64(k)
        for a in range(count):
            if reach[a] & bit:
                reach[a] |= reach[k]


@_compiled
def _size(members: Any) -> Any:
    size = 0
    while members:
        members &= members - _ONE
        size += 1
    return size


@_compiled
def _largest_component(reach: Any, reached: Any, count: Any) -> Any:
    """The largest strongly connected component as a set, as bt_graph chooses it; empty where none has two systems."""
    best = 0
    for a in range(count):
        best = max(best, _size(reach[a] & reached[a]))
    if best == 1:
        return np.uint64(0)
    for a in range(count):
        members = reach[a] & reached[a]
        if _size(members) < best:
            continue
        beaten = False
        for b in range(count):
            outside = reached[a] & ~members
            if (outside >> np.uint64(b)) & _ONE and _size(reach[b] & reached[b]) == best:
                beaten = True
        if not beaten:
            return members
    return np.uint64(0)


@_compiled
def _pass(m: Any, y: Any, w: Any, theta: Any, slope: Any, e: Any, hessian: Any, with_hessian: Any) -> None:
    """The gradient into ``slope`` and, if asked for, the Hessian above its diagonal."""
    low, high = theta[0], theta[0]
    for a in range(m):
        low, high = min(low, theta[a]), max(high, theta[a])
    wide = high - low > 600.0  # exp would leave the range of float64
    for a in range(m):
        slope[a] = 0.0
        e[a] = 0.0 if wide else math.exp(theta[a])
    at = 0
    for a in range(m):
        ea = e[a]
        gradient_a = 0.0
        if wide:
            for b in range(a + 1, m):
                p = 1.0 / (1.0 + math.exp(theta[b] - theta[a]))
                r = w[at] * (p - y[at])
                gradient_a += r
                slope[b] -= r
                if with_hessian:
                    hessian[a, b] = -w[at] * p / (1.0 + math.exp(theta[a] - theta[b]))
                at += 1
        elif with_hessian:
            row = hessian[a]
            for b in range(a + 1, m):
                inverse = 1.0 / (ea + e[b])
                p = ea * inverse
                r = w[at] * (p - y[at])
                gradient_a += r
                slope[b] -= r
                row[b] = -w[at] * p * (e[b] * inverse)
                at += 1
        else:
            for b in range(a + 1, m):
                r = w[at] * (ea / (ea + e[b]) - y[at])
                gradient_a += r
                slope[b] -= r
                at += 1
        slope[a] += gradient_a


@_compiled
def _factorise(m: Any, hessian: Any) -> None:
    """H = UᵀDU in place in the upper triangle, with the last system held.

    Every row of H sums to zero, so a pivot is the sum of what is left beside it: nothing is ever subtracted, and each
    entry of the factor is exact to a few roundings however far apart the curvatures are (Grassmann, Taksar and Heyman,
    *Regenerative analysis and steady state distributions for Markov chains*, 1985).
    """
    for k in range(m - 1):
        pivot = hessian[k]
        total = 1e-300
        for j in range(k + 1, m):
            total -= pivot[j]
        inverse = 1.0 / total
        pivot[k] = total
        for i in range(k + 1, m):
            factor = pivot[i] * inverse
            row = hessian[i]
            for j in range(i + 1, m):
                row[j] -= factor * pivot[j]
        for j in range(k + 1, m):
            pivot[j] *= inverse


@_compiled
def _solve(m: Any, factor: Any, x: Any) -> None:
    """x ← H⁻¹ x, centred, with the factor of _factorise."""
    for k in range(m - 1):
        row = factor[k]
        xk = x[k]
        for j in range(k + 1, m):
            x[j] -= row[j] * xk
        x[k] = xk / row[k]
    x[m - 1] = 0.0
    mean = 0.0
    for k in range(m - 2, -1, -1):
        row = factor[k]
        total = x[k]
        for j in range(k + 1, m):
            total -= row[j] * x[j]
        x[k] = total
        mean += total
    mean /= m
    for k in range(m):
        x[k] -= mean


@_compiled
def _solve_cholesky(m: Any, factor: Any, x: Any) -> None:
    """As _solve, with LAPACK's factor: H = UᵀU."""
    for k in range(m):
        row = factor[k]
        xk = x[k] / row[k]
        x[k] = xk
        for j in range(k + 1, m):
            x[j] -= row[j] * xk
    mean = 0.0
    for k in range(m - 1, -1, -1):
        row = factor[k]
        total = x[k]
        for j in range(k + 1, m):
            total -= row[j] * x[j]
        x[k] = total / row[k]
        mean += x[k]
    mean /= m
    for k in range(m):
        x[k] -= mean


@_compiled
def _mean_start(m: Any, y: Any, w: Any, theta: Any, total: Any) -> None:
    """θ from each system's mean preference, its log-odds: near enough to save some steps."""
    for a in range(m):
        theta[a] = 0.0
        total[a] = 0.0
    at = 0
    for a in range(m):
        won, weight = 0.0, 0.0
        for b in range(a + 1, m):
            won += w[at] * y[at]
            weight += w[at]
            theta[b] += w[at] * (1.0 - y[at])
            total[b] += w[at]
            at += 1
        theta[a] += won
        total[a] += weight
    for a in range(m):
        share = theta[a] / total[a]
        share = min(max(share, 0.02), 0.98)
        theta[a] = math.log(share / (1.0 - share))


@_compiled
def _advance(m: Any, w: Any, step: Any, theta: Any) -> Any:
    """Takes a damped step on θ, keeps Σθ = 0, and says how far the undamped step reaches."""
    reach = _reach(m, w, step)
    length = math.log1p(reach) / reach if reach > 1.0 else 1.0
    mean = 0.0
    for a in range(m):
        theta[a] -= length * step[a]
        mean += theta[a]
    mean /= m
    for a in range(m):
        theta[a] -= mean
    return reach


@_compiled
def _hold(m: Any, hessian: Any) -> None:
    """Completes H by its diagonal and makes it regular by holding the system of most curvature."""
    for a in range(m):
        hessian[a, a] = 0.0
    for a in range(m):
        total = 0.0
        for b in range(a + 1, m):
            total -= hessian[a, b]
            hessian[b, b] -= hessian[a, b]
        hessian[a, a] += total
    held = 0
    for a in range(m):
        if hessian[a, a] > hessian[held, held]:
            held = a
    hessian[held, held] *= 2.0


@_compiled
def _reach(m: Any, w: Any, step: Any) -> Any:
    """The largest change of a compared difference."""
    low, high = step[0], step[0]
    for a in range(m):
        low, high = min(low, step[a]), max(high, step[a])
    if high - low <= 1.0:
        return high - low
    most = 0.0
    at = 0
    for a in range(m):
        for b in range(a + 1, m):
            if w[at] > 0.0:
                most = max(most, abs(step[a] - step[b]))
            at += 1
    return most


@_compiled
def _newton(m: Any, y: Any, w: Any, theta: Any, step: Any, e: Any, hessian: Any) -> Any:
    """Damped Newton steps on θ in place, as in bt_solver.newton; the number of steps taken."""
    before = 1.0
    for taken in range(_MAX_STEPS):
        fresh = before > _KEEP_FACTOR
        _pass(m, y, w, theta, step, e, hessian, fresh)
        if fresh:
            _factorise(m, hessian)
        _solve(m, hessian, step)
        reach = _advance(m, w, step, theta)
        if reach < (_SETTLED_FRESH if fresh else _SETTLED_KEPT):
            return taken + 1
        if not fresh and reach > 0.5 * before:
            reach = 1.0  # the kept factor no longer helps
        before = reach
    return _MAX_STEPS


@_compiled
def _link(y: Any, w: Any, reach: Any) -> Any:
    """Whom each system was ever preferred to, with itself; and whether every pair was compared and won both ways."""
    count = reach.size
    for a in range(count):
        reach[a] = _ONE << np.uint64(a)
    complete = True
    at = 0
    for a in range(count):
        for b in range(a + 1, count):
            counted = w[at] > 0.0 and y[at] == y[at]
            if counted and y[at] >= ROUNDING:
                reach[a] |= _ONE << np.uint64(b)
            else:
                complete = False
            if counted and y[at] <= 1.0 - ROUNDING:
                reach[b] |= _ONE << np.uint64(a)
            else:
                complete = False
            at += 1
    return complete


@_compiled
def _turned(reach: Any, reached: Any) -> None:
    """Adds to each system's set those whose sets it is in."""
    for a in range(reach.size):
        for b in range(reach.size):
            reached[a] |= ((reach[b] >> np.uint64(a)) & _ONE) << np.uint64(b)


@_compiled
def _scored(reach: Any, reached: Any, linked: Any) -> Any:
    """The status, and the set of systems with a finite score; ``reach`` becomes who is below each, ``reached`` who above."""
    count = reach.size
    everyone = ~np.uint64(0) >> np.uint64(64 - count)
    linked[:] = reach
    _turned(reach, linked)
    _closure(reach, count)
    reached[:] = 0
    _turned(reach, reached)
    if reach[0] == everyone and reached[0] == everyone:
        return OK, everyone
    _closure(linked, count)
    return SEPARATED if linked[0] == everyone else DISCONNECTED, _largest_component(reach, reached, count)


@_compiled
def _gather(y: Any, w: Any, who: Any, m: Any, count: Any, local_y: Any, local_w: Any) -> None:
    """The pairs among the first ``m`` of ``who``, y within rounding of 0 or 1 being 0 or 1, and weights of sum 1."""
    total = 0.0
    at = 0
    for i in range(m):
        a = who[i]
        offset = a * (2 * count - a - 1) // 2 - a - 1
        for j in range(i + 1, m):
            source = offset + who[j]
            if w[source] > 0.0 and y[source] == y[source]:
                value = y[source]
                local_y[at] = 0.0 if value < ROUNDING else 1.0 if value > 1.0 - ROUNDING else value
                local_w[at] = w[source]
            else:
                local_y[at] = 0.5
                local_w[at] = 0.0
            total += local_w[at]
            at += 1
    for pair in range(at):
        local_w[pair] /= total


@_compiled
def fit_block(y: Any, weights: Any, starts: Any, theta: Any, status: Any, steps: Any, first: Any, last: Any) -> None:
    """Fits the problems ``first`` to ``last`` (excluded); see bt_batch.fit_pairs.

    y and weights are [problem, pair] over all pairs a < b in order, NaN or 0 where not compared. Weights and starts
    [problem, system] may have one row for all, starts also none.
    """
    count = theta.shape[1]
    reach = np.zeros(count, np.uint64)
    reached = np.zeros(count, np.uint64)
    linked = np.zeros(count, np.uint64)
    who = np.zeros(count, np.int64)
    local_y = np.zeros(max(1, y.shape[1]))
    local_w = np.zeros(max(1, y.shape[1]))
    local_theta = np.zeros(count)
    step = np.zeros(count)
    e = np.zeros(count)
    hessian = np.zeros((count, count))
    everyone = ~np.uint64(0) >> np.uint64(64 - count)
    for problem in range(first, last):
        row_w = weights[problem if weights.shape[0] > 1 else 0]
        keep = everyone
        status[problem] = OK
        if not _link(y[problem], row_w, reach):
            status[problem], keep = _scored(reach, reached, linked)
        m = 0
        for a in range(count):
            if (keep >> np.uint64(a)) & _ONE:
                who[m] = a
                m += 1
        steps[problem] = 0
        if m > 0:
            _gather(y[problem], row_w, who, m, count, local_y, local_w)
            if starts.shape[0] == 0:
                _mean_start(m, local_y, local_w, local_theta, step)
            for i in range(m):
                if starts.shape[0] > 0:
                    value = starts[problem if starts.shape[0] > 1 else 0, who[i]]
                    local_theta[i] = value if value - value == 0.0 else 0.0
            steps[problem] = _newton(m, local_y, local_w, local_theta, step, e, hessian)
        else:
            keep = everyone
        for a in range(count):
            if keep & ~reached[a] == 0 and status[problem] != OK:
                theta[problem, a] = -np.inf
            elif keep & ~reach[a] == 0 and status[problem] != OK:
                theta[problem, a] = np.inf
            else:
                theta[problem, a] = np.nan
        for i in range(m):
            theta[problem, who[i]] = local_theta[i]


def fit_large(y: NDArray[np.float64], w: NDArray[np.float64], theta: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """One problem that is strongly connected and whose Cholesky factor is better left to LAPACK: θ [system].

    Takes y and w [pair] without NaN (weight 0 where not compared), and where to start.
    """
    m = int(round((1 + math.sqrt(1 + 8 * y.size)) / 2))
    w = w / w.sum()
    step, e, hessian = np.zeros(m), np.zeros(m), np.zeros((m, m))
    if theta is None:
        theta = np.zeros(m)
        _mean_start(m, y, w, theta, step)
    theta = np.where(np.isfinite(theta), theta, 0.0)
    factor = None
    before = 1.0
    for _ in range(_MAX_STEPS):
        fresh = before > _KEEP_FACTOR
        _pass(m, y, w, theta, step, e, hessian, fresh)
        if fresh:
            _hold(m, hessian)
            # Read by columns the upper triangle is the lower one, which LAPACK takes without a transposition.
            lower, failed = torch.linalg.cholesky_ex(torch.from_numpy(hessian).mT)
            factor = None if failed else lower.mT.numpy()
            if factor is None:  # curvatures too far apart for LAPACK
                _factorise(m, hessian)
        if factor is None:
            _solve(m, hessian, step)
        else:
            _solve_cholesky(m, factor, step)
        reach = _advance(m, w, step, theta)
        if reach < (_SETTLED_FRESH if fresh else _SETTLED_KEPT):
            break
        before = 1.0 if not fresh and reach > 0.5 * before else reach
    return theta


def run(
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    starts: NDArray[np.float64],
    systems: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """theta [problem, system], status and steps [problem]; the problems are spread over torch's threads."""
    problems = y.shape[0]
    theta = np.zeros((problems, systems))
    status, steps = np.zeros(problems, np.int64), np.zeros(problems, np.int64)

    def block(first: int, last: int) -> None:
        fit_block(y, weights, starts, theta, status, steps, first, last)

    run_all(block, split(problems, min(thread_count(), problems // 64)))
    return theta, status, steps
