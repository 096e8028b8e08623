"""Exact distributions of times: against fractions enumerated path by path, and against sampling."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from torchpref.errors import UsageError
from torchpref.sgrl.exact import exact_times, expected_preference, sooner
from torchpref.sgrl.tabular import TabularTask

EPSILONS = (0.0, 0.25, 0.5, 1.0)


def detour() -> TabularTask:
    """Two ways to the first level, which differ in how far it then is: from 0 by 1 (then 4 at once) or by 2."""
    successors = np.array([[1, 2, 0], [3, 1, 0], [4, 2, 0], [5, 3, 3], [4, 3, 5], [5, 5, 5]])
    return TabularTask(
        successors=successors,
        level=np.array([0, 0, 0, 0.4, 0.4, 1.0]),
        starts=np.array([0]),
        instances=("detour",),
        actions=("a", "b", "c"),
        environment_actions=(0, 1, 2),
        labels=np.arange(6)[:, None],
        features=("state",),
    )


def enumerated(task: TabularTask, epsilon: Fraction, horizon: int) -> dict[tuple[int | None, ...], Fraction]:
    """Chance of each tuple of times to the levels, None where not reached: every path, one by one."""
    n_actions = task.successors.shape[1]
    result: dict[tuple[int | None, ...], Fraction] = {}
    for path in product(range(n_actions), repeat=horizon):
        chance, state = Fraction(1), int(task.starts[0])
        times: list[int | None] = [None] * len(task.levels)
        for step, action in enumerate(path, start=1):
            chance *= epsilon / n_actions + (1 - epsilon if action == task.planner[state] else 0)
            state = int(task.successors[state, action])
            times = [
                step if time is None and task.level[state] >= level else time
                for time, level in zip(times, task.levels, strict=True)
            ]
        result[tuple(times)] = result.get(tuple(times), Fraction(0)) + chance
    return result


def test_times_and_waits_equal_those_of_every_path() -> None:
    task, horizon = detour(), 7
    exact = exact_times(task, EPSILONS, horizon)
    for policy, epsilon in enumerate(EPSILONS):
        outcomes = enumerated(task, Fraction(epsilon), horizon)
        for level in range(2):
            for step in range(horizon + 1):
                by = sum(p for t, p in outcomes.items() if t[level] is not None and t[level] <= step)
                assert exact.reached[policy, level, step] == pytest.approx(float(by), abs=1e-14)
                waited = sum(
                    p
                    for t, p in outcomes.items()
                    if t[level] is not None and t[level] - (t[level - 1] if level else 0) <= step
                )
                assert exact.waited[policy, level, step] == pytest.approx(float(waited), abs=1e-14)


def test_expected_preferences_equal_the_mean_over_all_pairs_of_paths() -> None:
    task, horizon = detour(), 6
    never = 10**9
    exact = exact_times(task, EPSILONS, horizon)
    outcomes = [enumerated(task, Fraction(epsilon), horizon) for epsilon in EPSILONS]
    heights = [Fraction(2, 5), Fraction(3, 5)]
    rpp, ipp = expected_preference(exact, "RPP"), expected_preference(exact, "ipp")
    for a, b in product(range(len(EPSILONS)), repeat=2):
        mean_rpp = mean_ipp = Fraction(0)
        for (s, p), (t, q) in product(outcomes[a].items(), outcomes[b].items()):
            for level, height in enumerate(heights):
                mine, other = (never if x[level] is None else x[level] for x in (s, t))
                mean_rpp += p * q * height * ((mine < other) - (mine > other))
                mine, other = (never if x[level] is None else x[level] - (x[level - 1] if level else 0) for x in (s, t))
                mean_ipp += p * q * height * ((mine < other) - (mine > other))
        assert rpp[a, b] == pytest.approx(float(mean_rpp), abs=1e-13)
        assert ipp[a, b] == pytest.approx(float(mean_ipp), abs=1e-13)


def test_sooner_by_hand() -> None:
    # Surely at step 1, surely at step 2, never, and at step 2 with chance one half.
    chances = np.array([[[0, 1, 1]], [[0, 0, 1]], [[0, 0, 0]], [[0, 0, 0.5]]])
    expected = [[0, 1, 1, 1], [-1, 0, 1, 0.5], [-1, -1, 0, -0.5], [-1, -0.5, 0.5, 0]]
    np.testing.assert_allclose(sooner(chances)[..., 0], expected, atol=1e-15)


def test_other_measures_have_no_exact_expectation_here() -> None:
    with pytest.raises(UsageError, match="rpp and ipp, not for 'lr'"):
        expected_preference(exact_times(detour(), EPSILONS, 3), "lr")


def test_several_levels_in_one_step_are_refused() -> None:
    task = detour()
    jump = TabularTask(
        successors=np.array([[1], [2], [2]]),
        level=np.array([0, 0, 1.0]),
        starts=np.array([0]),
        instances=("jump",),
        actions=("a",),
        environment_actions=(0,),
        labels=np.arange(3)[:, None],
        features=task.features,
    )
    assert exact_times(jump, [0.0], 3).reached[0, 0].tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="starts with level"):
        exact_times(TabularTask(**{**vars_of(task), "starts": np.array([3])}), [0.0], 3)
    successors = task.successors.copy()
    successors[0, 2] = 5
    with pytest.raises(ValueError, match="several levels at once"):
        exact_times(TabularTask(**{**vars_of(task), "successors": successors}), [0.0], 3)


def vars_of(task: TabularTask) -> dict[str, object]:
    return {name: getattr(task, name) for name in TabularTask.__dataclass_fields__}


def test_real_episodes_are_as_fast_as_calculated() -> None:
    """Sampled times to the levels of DoorKey against their exact distribution, within five standard errors."""
    pytest.importorskip("minigrid", reason="DoorKey needs the extra sgrl: pip install 'torchpref[sgrl]'")
    from torchpref.sgrl.environments import Player
    from torchpref.sgrl.minigrid import DOOR_KEY
    from torchpref.sgrl.tabular import random_actions

    task = DOOR_KEY.task(4)
    exact = exact_times(task, [0.6], 80)
    player, runs = Player(DOOR_KEY, task, 4, DOOR_KEY.make(80)), 400
    times, waits = np.full((runs, 3), 10**6), np.full((runs, 3), 10**6)
    for run in range(runs):
        episode = player.play(random_actions(f"sample/{run}", 0.6, 5, 80))
        before = 0
        for step, level in zip(episode.steps, episode.returns, strict=True):
            index = round(level * 3) - 1
            if index >= 0 and times[run, index] == 10**6:
                times[run, index], waits[run, index] = step, step - before
                before = step
    for sampled, chances in ((times, exact.reached[0]), (waits, exact.waited[0])):
        share = (sampled[:, :, None] <= np.arange(81)).mean(axis=0)
        error = np.sqrt(np.maximum(chances * (1 - chances), 1e-12) / runs)
        assert (np.abs(share - chances) <= 5 * error + 1e-9).all()
