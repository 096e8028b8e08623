"""A Stable-Baselines3 callback that compares checkpoints with a reference policy (Stable-Baselines3 2.9).

A critic method needs a stationary reward, so the preference is used here to judge, not to train: every so often the policy
plays the reference's instances, and its runs are compared with the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from torchpref.errors import MissingExtraError, UsageError
from torchpref.pairwise.preferences import preferences, run_scores
from torchpref.rl.traces import Trace, curve_of_rewards, pad_traces
from torchpref.runs.measures import describe
from torchpref.runs.trajectories import Trajectories

try:
    from stable_baselines3.common.callbacks import BaseCallback
except ImportError as error:
    raise MissingExtraError("stable_baselines3", "sb3") from error

REFERENCE = "reference"


class CompareWithReference(BaseCallback):
    """Every ``every`` steps of training, plays the given seeds and compares with the reference policy's runs of them.

    Logs ``preference/<measure>`` (mean Δ over the seeds, above 0 where the checkpoint is preferred), ``preference/success`` and
    ``preference/time`` (mean steps to success). ``history`` keeps the same, ``runs`` all runs for :func:`torchpref.evaluate`.

    Args:
        make_env: makes one environment, with its time limit, for playing; not the one that is trained in.
        reference: the policy to compare with: a model with ``predict``, or a function from an observation to an action.
        seeds: the seeds of the instances, one episode each.
        every: steps of training between comparisons.
        key: the entry of ``info`` with the return reached so far, as ``LatchedEvents`` writes it.
        max_score: instead of ``key``: rewards are summed and divided by this.
        measure: ``sr``, ``pr``, ``lr``, ``rpp`` or ``ipp``.
        deterministic: how policies with ``predict`` act.
        save_best: where to save the model whenever its preference over the reference is the highest so far.
    """

    def __init__(
        self,
        make_env: Callable[[], Any],
        reference: Any,
        seeds: Sequence[int],
        every: int,
        *,
        key: str | None = None,
        max_score: float | None = None,
        measure: str = "rpp",
        deterministic: bool = True,
        save_best: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if every < 1 or not seeds:
            raise UsageError(
                f"every must be at least 1 and seeds must not be empty, got every={every}, {len(seeds)} seeds"
            )
        if key is not None and max_score is not None:
            raise UsageError("give either key, an entry of info, or max_score, to sum rewards; not both")
        self.make_env = make_env
        self.reference = reference
        self.seeds = list(seeds)
        self.every = every
        self.key = "return" if key is None and max_score is None else key
        self.max_score = max_score
        self.measure = describe(measure).name
        self.deterministic = deterministic
        self.save_best = None if save_best is None else Path(save_best)
        self.history: list[dict[str, float]] = []
        self._played: dict[str, list[Trace]] = {}
        self._next = every
        self._env: Any = None

    @property
    def runs(self) -> Trajectories:
        """All runs so far: systems are the reference and the checkpoints, instances the seeds."""
        return self._trajectories(list(self._played))

    def _on_training_start(self) -> None:
        self._env = self.make_env()
        self._next = self.num_timesteps + self.every
        if REFERENCE not in self._played:
            self._played[REFERENCE] = self._play(self.reference)

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next:
            self._next += self.every * (1 + (self.num_timesteps - self._next) // self.every)
            self._compare()
        return True

    def _on_training_end(self) -> None:
        if not self.history or self.history[-1]["steps"] != self.num_timesteps:
            self._compare()
        self._env.close()

    def _compare(self) -> None:
        name = f"checkpoint-{self.num_timesteps:09d}"
        self._played[name] = self._play(self.model)
        pair = self._trajectories([REFERENCE, name])
        value = preferences(pair, self.measure)[name, REFERENCE].mean
        solved = run_scores(pair, "sr")[0][:, pair.systems.index(name), 0].bool()
        entry = {"steps": float(self.num_timesteps), self.measure: value, "success": float(solved.double().mean())}
        if bool(solved.any()):
            times = [_steps_to_success(trace) for trace in self._played[name]]
            known = [time for time in times if time is not None]
            entry["time"] = sum(known) / len(known)
        for label, number in entry.items():
            if label != "steps":
                self.logger.record(f"preference/{label}", number)
        if self.save_best is not None and all(value > past[self.measure] for past in self.history):
            self.model.save(self.save_best)
        self.history.append(entry)
        if self.verbose:
            print(f"{name}: {self.measure.upper()} over the reference {value:+.3f}, success {entry['success']:.2f}")

    def _trajectories(self, systems: list[str]) -> Trajectories:
        traces = [self._played[system][row] for row in range(len(self.seeds)) for system in systems]
        padded = pad_traces(traces, len(systems))
        returns = padded["returns"]
        assert returns is not None
        return Trajectories(
            returns,
            padded["lengths"],
            truncated=padded["truncated"],
            systems=systems,
            instances=[f"seed-{seed:04d}" for seed in self.seeds],
        )

    def _play(self, policy: Any) -> list[Trace]:
        return [self._episode(policy, seed) for seed in self.seeds]

    def _episode(self, policy: Any, seed: int) -> Trace:
        observation, _ = self._env.reset(seed=seed)
        rewards: list[float] = []
        returns: list[float] = []
        while True:
            if hasattr(policy, "predict"):
                action, _ = policy.predict(observation, deterministic=self.deterministic)
            else:
                action = policy(observation)
            observation, reward, terminated, truncated, info = self._env.step(action)
            if self.max_score is None:
                if self.key not in info:
                    raise UsageError(
                        f"info has no {self.key!r}; wrap the environment in torchpref.rl.LatchedEvents, or give max_score"
                    )
                returns.append(float(info[self.key]))
            else:
                rewards.append(float(reward))
            if terminated or truncated:
                break
        if self.max_score is not None:
            returns = curve_of_rewards(torch.tensor(rewards, dtype=torch.float64), self.max_score).tolist()
        return Trace(tuple(returns), truncated=bool(truncated and not terminated))


def _steps_to_success(trace: Trace) -> int | None:
    return next((number + 1 for number, value in enumerate(trace.returns) if value >= 1), None)


__all__ = ["REFERENCE", "CompareWithReference"]
