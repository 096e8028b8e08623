"""Bradley–Terry problems and slow, obvious judges of their solutions."""

import itertools

import numpy as np
import torch


def square(upper: torch.Tensor, systems: int) -> torch.Tensor:
    """y [..., system, system] from y_ab [..., pair], a < b; 1/2 on the diagonal."""
    first, second = torch.triu_indices(systems, systems, 1)
    y = torch.full((*upper.shape[:-1], systems, systems), 0.5, dtype=torch.float64)
    y[..., first, second] = upper.double()
    y[..., second, first] = 1 - upper.double()
    return y


def random_problem(systems: int, seed: int = 0, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """A complete problem with noise and unequal weights."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=systems) * spread
    noise = rng.normal(size=(systems, systems)) * 0.3
    y = torch.from_numpy(1 / (1 + np.exp(-(theta[:, None] - theta[None, :] + noise))))
    w = torch.from_numpy(rng.uniform(0.5, 2.0, size=(systems, systems)))
    first, second = torch.triu_indices(systems, systems, 1)
    weights = torch.zeros_like(w)
    weights[first, second] = weights[second, first] = w[first, second]
    return square(y[first, second], systems), weights


def minorise_maximise(y: np.ndarray, w: np.ndarray, steps: int = 20_000) -> np.ndarray:
    """Zermelo's iteration (Hunter, *MM algorithms for generalized Bradley–Terry models*, 2004), to its fixed point."""
    wins = np.where(np.eye(len(y), dtype=bool), 0.0, w * y).sum(1)
    w = np.where(np.eye(len(y), dtype=bool), 0.0, w)
    theta = np.zeros(len(y))
    for _ in range(steps):
        p = np.exp(theta)
        new = np.log(wins / (w / (p[:, None] + p[None, :])).sum(1))
        new -= new.mean()
        change = np.abs(new - theta).max()
        theta = new
        if change < 1e-14:
            break
    return theta


def reachability(wins: np.ndarray) -> np.ndarray:
    """bool [system, system]: whether a path of wins leads from one to the other, by Warshall's algorithm."""
    reach = wins | np.eye(len(wins), dtype=bool)
    for k in range(len(wins)):
        reach |= reach[:, [k]] & reach[[k], :]
    return reach


def slow_components(wins: np.ndarray) -> tuple[str, list[set[int]], bool, set[int]]:
    """Status, strongly connected components, whether they are totally ordered, and the component to score (or none)."""
    count = len(wins)
    reach = reachability(wins)
    groups = {frozenset(b for b in range(count) if reach[a, b] and reach[b, a]) for a in range(count)}
    linked = reachability(wins | wins.T).all()
    ordered = all(reach[min(x), min(y)] != reach[min(y), min(x)] for x, y in itertools.combinations(groups, 2))
    most = max(len(group) for group in groups)
    candidates = [g for g in groups if len(g) == most]
    unbeaten = [g for g in candidates if not any(reach[min(h), min(g)] for h in candidates if h != g)]
    chosen = min(unbeaten, key=min)
    status = "ok" if len(groups) == 1 else "separated" if linked else "disconnected"
    tiers = sorted(groups, key=lambda g: -reach[min(g)].sum())
    return status, [set(g) for g in tiers], ordered, set(chosen) if most > 1 else set()
