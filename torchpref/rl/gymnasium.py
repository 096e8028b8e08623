"""Return curves of episodes in Gymnasium's vector environments, under all three autoreset modes (Gymnasium 1.x).

Two wrappers. :class:`LatchedEvents` goes around each single environment, where its state can be seen, and says in ``info``
how much has been reached. :class:`RecordReturns` goes around the vector environment and hands out finished episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchpref.errors import DataError, MissingExtraError, UsageError
from torchpref.rl.traces import Trace

try:
    import gymnasium
    import numpy as np
    from gymnasium.vector import AutoresetMode, VectorWrapper
except ImportError as error:
    raise MissingExtraError("gymnasium", "rl") from error


@dataclass(frozen=True)
class Step:
    """What an event is judged by: the environment and what its last step gave."""

    env: Any
    observation: Any
    reward: float
    terminated: bool
    info: dict[str, Any]


class LatchedEvents(gymnasium.Wrapper):
    """Says in ``info["return"]`` which share of the task's events have happened, and keeps them when they are undone.

    ``info["events"]`` is a bool array, one entry per event. Putting down the key does not lower the return, and neither
    does an environment that goes on after the end.

    Args:
        env: the environment; its time limit may be inside or outside.
        events: name and test of each event; the test gets a :class:`Step` (``step.env`` is the unwrapped environment) and is
            asked after every step until it says yes.
        weights: share of the return that each event is worth, summing to 1; equal by default.

    Example:
        ``LatchedEvents(gymnasium.make("Taxi-v4"), {"aboard": lambda s: (s.env.s // 4) % 5 == 4, "delivered": lambda s:
        s.terminated})``
    """

    def __init__(
        self, env: Any, events: Mapping[str, Callable[[Step], Any]], weights: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(env)
        if not events:
            raise UsageError("no event is given")
        if weights is not None and (set(weights) != set(events) or abs(sum(weights.values()) - 1) > 1e-9):
            raise UsageError(f"weights must be given for {', '.join(events)} and sum to 1, got {dict(weights)}")
        self.events = dict(events)
        self.weights = [1 / len(events) if weights is None else float(weights[name]) for name in events]
        self.happened = np.zeros(len(events), dtype=bool)

    def reset(self, **options: Any) -> Any:
        """A new episode, in which nothing has happened."""
        observation, info = self.env.reset(**options)
        self.happened = np.zeros(len(self.events), dtype=bool)
        return observation, self._told(info)

    def step(self, action: Any) -> Any:
        """One step, and what has happened by now."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        step = Step(self.env.unwrapped, observation, float(reward), bool(terminated), info)
        self.happened = np.array(
            [before or bool(test(step)) for before, test in zip(self.happened, self.events.values(), strict=True)]
        )
        return observation, reward, terminated, truncated, self._told(info)

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        # A float even where nothing has happened: vector environments make one array of the type of the first value. And
        # thirds must not add up to less than everything.
        reached = float(sum(weight for weight, happened in zip(self.weights, self.happened, strict=True) if happened))
        return {**info, "return": 1.0 if self.happened.all() else reached, "events": self.happened.copy()}


@dataclass(frozen=True)
class Episode:
    """One finished episode.

    Attributes:
        env: position of its environment in the vector environment.
        number: how many episodes that environment had finished before.
        returns: return reached so far after each step; the first action is step 1.
        terminated: whether the episode ended by itself.
        truncated: whether it was stopped by a limit and did not end by itself in the same step.
    """

    env: int
    number: int
    returns: tuple[float, ...]
    terminated: bool
    truncated: bool

    @property
    def trace(self) -> Trace:
        """The episode as a trace that carries the truncation mark, for :func:`torchpref.rl.traces.pad_traces`."""
        return Trace(self.returns, truncated=self.truncated)


@dataclass
class _Running:
    """The episode that an environment is in; ``over`` from its end to its next start."""

    number: int = 0
    returns: list[float] = field(default_factory=list)
    score: float = 0.0
    over: bool = False


class RecordReturns(VectorWrapper):
    """Records the return curve of every episode of a vector environment; ``pop()`` hands out those that have finished.

    The step that only resets an environment (``NEXT_STEP``) is no step of the task; the last step's info is looked for
    where it is (``final_info`` under ``SAME_STEP``); steps past the end, before ``reset(options={"reset_mask": ...})``, do not
    count (``DISABLED``). Episodes that a full reset interrupts are dropped.

    Args:
        env: a vector environment whose metadata name its autoreset mode, as Gymnasium's do.
        key: the entry of ``info`` that holds the return reached so far, as :class:`LatchedEvents` writes it.
        max_score: instead of ``key``: rewards are summed and divided by this, the sum of a perfect episode. Never use it with
            a reward that already contains time, such as MiniGrid's.
    """

    def __init__(self, env: Any, *, key: str | None = None, max_score: float | None = None) -> None:
        super().__init__(env)
        if key is not None and max_score is not None:
            raise UsageError("give either key, an entry of info, or max_score, to sum rewards; not both")
        if max_score is not None and not max_score > 0:
            raise UsageError(f"max_score must be positive, got {max_score!r}")
        mode = (env.metadata or {}).get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            raise UsageError(
                f"the vector environment does not say how it resets (metadata['autoreset_mode'] is {mode!r}); set it to one of "
                "gymnasium.vector.AutoresetMode"
            )
        self.mode = mode
        self.key = "return" if key is None and max_score is None else key
        self.max_score = max_score
        self._running = [_Running() for _ in range(self.num_envs)]
        self._finished: list[Episode] = []

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Start new episodes: of all environments, or of those in ``options["reset_mask"]``."""
        mask = None if options is None else options.get("reset_mask")
        chosen = np.ones(self.num_envs, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
        result = self.env.reset(seed=seed, options=options)
        for running, restart in zip(self._running, chosen, strict=True):
            if restart:
                self._start(running)
        return result

    def step(self, actions: Any) -> Any:
        """One step of all environments; what it reached is added to their curves."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        for index, running in enumerate(self._running):
            if running.over:
                if self.mode == AutoresetMode.NEXT_STEP:
                    self._start(running)
                continue
            terminated, truncated = bool(terminations[index]), bool(truncations[index])
            done = terminated or truncated
            running.returns.append(self._reached(index, running, float(rewards[index]), infos, done))
            if not done:
                continue
            self._finished.append(
                Episode(index, running.number, tuple(running.returns), terminated, truncated and not terminated)
            )
            running.number += 1
            running.over = True
            if self.mode == AutoresetMode.SAME_STEP:
                self._start(running)
        return observations, rewards, terminations, truncations, infos

    def pop(self) -> list[Episode]:
        """The episodes that have finished since the last call, in the order in which they did."""
        finished, self._finished = self._finished, []
        return finished

    def _start(self, running: _Running) -> None:
        running.returns, running.score, running.over = [], 0.0, False

    def _reached(self, index: int, running: _Running, reward: float, infos: dict[str, Any], done: bool) -> float:
        if self.max_score is not None:
            running.score += reward
            value = running.score / self.max_score
            value = 1.0 if 1 < value < 1 + 1e-6 else max(0.0, value)
        else:
            assert self.key is not None
            told = infos.get("final_info", {}) if done and self.mode == AutoresetMode.SAME_STEP else infos
            here = told.get(f"_{self.key}")
            if self.key not in told or (here is not None and not here[index]):
                raise DataError(
                    f"info has no {self.key!r} for environment {index}; wrap each environment in LatchedEvents, "
                    "name another key, or give max_score to sum rewards"
                )
            value = float(told[self.key][index])
        if not 0 <= value <= 1:
            raise DataError(
                f"environment {index} reached {value!r} at step {len(running.returns) + 1}, which is not in [0, 1]; "
                "max_score is the sum of rewards of a perfect episode"
            )
        return value


__all__ = ["Episode", "LatchedEvents", "RecordReturns", "Step"]
