"""Minimising the Bradley–Terry objective: L-BFGS by autograd for one problem, damped Newton steps for one or many."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

GRADIENT_TOLERANCE = 1e-12
_SETTLED = 1e-9  # a Newton step below this leaves an error of its square
_MAX_NEWTON = 1000
_WIDE = 1e10  # curvatures further apart than this leave Cholesky too few digits
_TINY = 1e-300


@dataclass(frozen=True)
class Problems:
    """A batch of problems, float64.

    Attributes:
        y: [problem, system, system] in [0, 1], y_BA = 1 − y_AB.
        weights: [problem, system, system], symmetric, their sum over unordered pairs 1; 0 where a pair does not count
            and between components, which are thereby solved side by side.
        labels: int64 [problem, system], the component of each system; Σθ = 0 within each.
        ground: bool [problem, system], one system of each component: its θ is held while a Newton step is computed.
        ridge: the coefficient of Σθ²/2.
    """

    y: Float[Tensor, "problem system system"]
    weights: Float[Tensor, "problem system system"]
    labels: Int[Tensor, "problem system"]
    ground: Bool[Tensor, "problem system"]
    ridge: float = 0.0

    @classmethod
    def of(
        cls,
        y: Float[Tensor, "problem system system"],
        weights: Float[Tensor, "problem system system"],
        labels: Int[Tensor, "problem system"],
        ridge: float = 0.0,
    ) -> Problems:
        """From weights of any scale; pairs between components are left out unless there is a ridge."""
        if ridge == 0:
            weights = torch.where(labels[:, :, None] == labels[:, None, :], weights, 0.0)
        # The system with most weight holds its component.
        heaviest = torch.sort(weights.sum(-1), dim=-1, descending=True, stable=True).indices
        sorted_labels = labels.gather(-1, heaviest)
        seen = (sorted_labels[:, :, None] == sorted_labels[:, None, :]).tril(-1).any(-1)
        ground = torch.zeros_like(seen).scatter(-1, heaviest, ~seen)
        return cls(y, normalised(weights), labels, ground, ridge)

    def take(self, index: Int[Tensor, " some"]) -> Problems:
        """Some of the problems."""
        if index.numel() == self.y.shape[0]:
            return self
        return Problems(self.y[index], self.weights[index], self.labels[index], self.ground[index], self.ridge)

    def centred(self, theta: Float[Tensor, "problem system"]) -> Float[Tensor, "problem system"]:
        """``theta`` with its mean within each component taken off."""
        sums = torch.zeros_like(theta).scatter_add(-1, self.labels, theta)
        sizes = torch.zeros_like(theta).scatter_add(-1, self.labels, torch.ones_like(theta))
        return theta - (sums / sizes.clamp_min(1)).gather(-1, self.labels)

    def objective(self, theta: Float[Tensor, "problem system"]) -> Float[Tensor, " problem"]:
        """Σ_{A<B} w_AB [−y log σ(d) − (1 − y) log σ(−d)] + ridge/2 Σθ² with d = θ_A − θ_B."""
        d = theta[:, :, None] - theta[:, None, :]
        loss = -torch.nn.functional.logsigmoid(-d) - self.y * d
        return (self.weights * loss).sum((-2, -1)) / 2 + self.ridge / 2 * (theta * theta).sum(-1)

    def gradient(
        self, theta: Float[Tensor, "problem system"]
    ) -> tuple[Float[Tensor, "problem system"], Float[Tensor, "problem system system"]]:
        """The gradient of :meth:`objective`, and p = σ(θ_A − θ_B)."""
        # torch.sigmoid rounds the last entries of a tensor otherwise than the rest: a problem would depend on its place.
        p = 1 / (1 + torch.exp(theta[:, None, :] - theta[:, :, None]))
        return (self.weights * (p - self.y)).sum(-1) + self.ridge * theta, p

    def newton_step(
        self, slope: Float[Tensor, "problem system"], p: Float[Tensor, "problem system system"]
    ) -> Float[Tensor, "problem system"]:
        """H⁻¹ slope; up to a constant per component where there is no ridge.

        By Cholesky with one system of each component held, or with the ridge. Where the curvatures of compared pairs are
        too far apart for that, by an elimination without subtractions.
        """
        curvature = self.weights * p * p.transpose(-2, -1)
        diagonal = curvature.sum(-1)
        held = torch.where(self.ground, diagonal.clamp_min(_TINY), 0.0)
        excess = held if self.ridge == 0 else torch.full_like(diagonal, self.ridge)
        hessian = torch.diag_embed(diagonal + excess) - curvature
        factor, failed = torch.linalg.cholesky_ex(hessian)
        least = torch.where(self.weights > 0, curvature, float("inf")).amin((-2, -1))
        hard = (failed > 0) | (curvature.amax((-2, -1)) > _WIDE * least)
        if not bool(hard.any()):
            return torch.cholesky_solve(slope[:, :, None], factor)[:, :, 0]
        step = torch.empty_like(slope)
        step[~hard] = torch.cholesky_solve(slope[~hard][:, :, None], factor[~hard])[:, :, 0]
        step[hard] = _solve_without_subtraction(curvature[hard], excess[hard], slope[hard])
        return step


def normalised(weights: Float[Tensor, "problem system system"]) -> Float[Tensor, "problem system system"]:
    """Weights divided by their sum over unordered pairs; all zero where nothing is compared."""
    total = weights.sum((-2, -1), keepdim=True) / 2
    return torch.where(total > 0, weights / total, 0.0)


def _solve_without_subtraction(
    off: Float[Tensor, "problem system system"],
    excess: Float[Tensor, "problem system"],
    x: Float[Tensor, "problem system"],
) -> Float[Tensor, "problem system"]:
    """Solves (diag(Σ off + excess) − off) z = x, off and excess ≥ 0, exactly to a few roundings per entry of the factor.

    A pivot is the sum of what is left beside it, so nothing cancels (Grassmann, Taksar and Heyman, *Regenerative analysis
    and steady state distributions for Markov chains*, 1985).
    """
    off, excess, x = off.clone(), excess.clone(), x.clone()
    count = x.shape[-1]
    pivots = torch.empty_like(x)
    for k in range(count):
        row = off[:, k, k + 1 :]
        pivots[:, k] = row.sum(-1) + excess[:, k] + _TINY
        factor = row / pivots[:, k, None]
        off[:, k + 1 :, k + 1 :] += factor[:, :, None] * row[:, None, :]
        excess[:, k + 1 :] += factor * excess[:, k, None]
        x[:, k + 1 :] += factor * x[:, k, None]
    for k in range(count - 1, -1, -1):
        x[:, k] = (x[:, k] + (off[:, k, k + 1 :] * x[:, k + 1 :]).sum(-1)) / pivots[:, k]
    return x


class _LBFGS(torch.optim.LBFGS):
    """``torch.optim.LBFGS`` whose construction does not import torch._dynamo.

    ``Optimizer.add_param_group`` is wrapped to switch the compiler off, and the wrapper imports the compiler first:
    more than a second for nothing in a process that compiles nothing.
    """

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As in the base class."""
        inspect.unwrap(torch.optim.Optimizer.add_param_group)(self, param_group)


def lbfgs(problems: Problems, theta: Float[Tensor, "problem system"]) -> tuple[Float[Tensor, "problem system"], int]:
    """Near the minimum of one problem by L-BFGS with strong Wolfe line search; also the iterations used."""
    point = theta.clone().requires_grad_(True)
    optimizer = _LBFGS(
        [point], lr=1.0, max_iter=100, tolerance_grad=1e-6, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        point.grad = None
        loss = problems.objective(point).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    with torch.enable_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    return point.detach(), int(optimizer.state[point]["n_iter"])


def newton(
    problems: Problems, theta: Float[Tensor, "problem system"]
) -> tuple[Float[Tensor, "problem system"], Float[Tensor, " problem"], Int[Tensor, " problem"]]:
    """The minimum to rounding, from any start, by damped Newton steps.

    A step that changes no compared θ_A − θ_B by more than r is taken in full where r ≤ 1 and shortened to log(1 + r)/r
    beyond. The logistic loss is generalised self-concordant, so every such step descends (Bach, *Self-concordant
    analysis for logistic regression*, 2010; Sun and Tran-Dinh, *Generalized self-concordant functions*, 2019). Each
    problem stops by itself, so a result does not depend on the rest of the batch.

    Returns:
        theta, max |gradient| and the number of steps, per problem.
    """
    theta = problems.centred(theta)
    slope, p = problems.gradient(theta)
    size = _largest_entry(slope)
    steps = torch.zeros(theta.shape[0], dtype=torch.int64, device=theta.device)
    active = torch.arange(theta.shape[0] if theta.shape[1] else 0, device=theta.device)
    for _ in range(_MAX_NEWTON):
        if active.numel() == 0:
            break
        some = problems.take(active)
        before, size_before = theta[active], size[active]
        step = some.centred(some.newton_step(slope, p))
        trial = some.centred(before - _step_length(some, step)[:, None] * step)
        slope, p = some.gradient(trial)
        size_after = _largest_entry(slope)
        # Where rounding is all that is left a step can make things worse by a little: keep the better point.
        stalled = (size_before < GRADIENT_TOLERANCE) & (size_after >= size_before)
        settled = (_largest_entry(step) < _SETTLED) & (size_after < GRADIENT_TOLERANCE)
        theta = theta.index_put((active,), torch.where(stalled[:, None], before, trial))
        size = size.index_put((active,), torch.where(stalled, size_before, size_after))
        steps = steps.index_add(0, active, torch.ones_like(active))
        going = ~(stalled | settled)
        active, slope, p = active[going], slope[going], p[going]
    return theta, size, steps


def _step_length(problems: Problems, step: Float[Tensor, "problem system"]) -> Float[Tensor, " problem"]:
    reach = step.amax(-1) - step.amin(-1)
    if bool((reach > 1).any()):  # the bound needs compared pairs only, which matters on sparse graphs
        across = (step[:, :, None] - step[:, None, :]).abs()
        reach = torch.where(problems.weights > 0, across, 0.0).amax((-2, -1))
    return torch.where(reach > 1, torch.log1p(reach) / reach, 1.0)


def _largest_entry(slope: Float[Tensor, "problem system"]) -> Float[Tensor, " problem"]:
    return slope.abs().amax(-1) if slope.shape[-1] else slope.new_zeros(slope.shape[0])


class ImplicitSolution(torch.autograd.Function):
    """Gives a solution the gradients that the implicit function theorem assigns to it.

    At the minimum the gradient G(θ, y, w) is zero, hence dθ = −H⁻¹ dG. With u = H⁻¹ v for an incoming v, the gradient
    with respect to y_AB is w_AB (u_A − u_B) / 2, over both orders of a pair, and likewise for the weights.
    """

    @staticmethod
    def forward(ctx: Any, y: Tensor, weights: Tensor, theta: Tensor, problems: Problems) -> Tensor:
        """``weights`` as given; ``problems`` holds them normalised, and ``theta`` is their solution."""
        ctx.save_for_backward(y, weights, theta)
        ctx.problems = problems
        return theta.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients with respect to y and the weights; 0 for pairs that did not count."""
        y, weights, theta = ctx.saved_tensors
        problems: Problems = ctx.problems
        counted = problems.weights > 0
        _, p = problems.gradient(theta)
        u = problems.newton_step(problems.centred(upstream), p)
        across = (u[:, :, None] - u[:, None, :]) / 2
        for_y = torch.where(counted, problems.weights * across, 0.0)
        # Weights are divided by their sum, and with a ridge the data's part of the gradient, −ridge θ, depends on it.
        total = torch.where(counted, weights, 0.0).sum((-2, -1), keepdim=True) / 2
        drift = problems.ridge * (u * theta).sum(-1)[:, None, None] / 2
        for_weights = torch.where(counted, -((p - y) * across + drift) / total, 0.0)
        return for_y, for_weights, None, None
