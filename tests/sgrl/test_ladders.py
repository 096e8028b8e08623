"""Policies that stumble, waypoints and ladders: exact times against every path in fractions and against simulation."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import torchpref as tp
from torchpref.errors import DataError, UsageError
from torchpref.sgrl.exact import exact_times
from torchpref.sgrl.ladders import LADDERS, PAIRS, ladder, make
from torchpref.sgrl.stumbling import Policy, chances, play
from torchpref.sgrl.tabular import TabularTask
from torchpref.sgrl.waypoints import SIDE, WALLS, waypoint_task


def line() -> TabularTask:
    """0 – 1 – 2 – 3 in a row: 1 earns a half, 3 the whole."""
    return TabularTask(
        successors=np.array([[0, 1], [1, 2], [1, 3], [3, 3]]),
        level=np.array([0, 0.5, 0.5, 1.0]),
        starts=np.array([0]),
        instances=("line",),
        actions=("back", "on"),
        environment_actions=(0, 1),
        labels=np.arange(4)[:, None],
        features=("cell",),
    )


POLICIES = (
    Policy("plans", (0.25, 0.5), (1.0, 1.0)),
    Policy("lost", (0.25, 0.5), (0.75, 0.5)),
    Policy("detours", (0.25, 0.5), (0.75, 0.5), 0.25),
)


def enumerated(task: TabularTask, policy: Policy, horizon: int) -> dict[tuple[int, int], Fraction]:
    """Chance that a level is earned at a step: (state, stumbled) step by step, every branch by itself, from the text."""
    epsilon, steady = [Fraction(e) for e in policy.epsilon], [Fraction(q) for q in policy.steady]
    recovery, actions = Fraction(policy.recovery), task.successors.shape[1]
    levels = task.levels.tolist()
    found: dict[tuple[int, int], Fraction] = {}

    def earned(state: int) -> int:
        return sum(level <= task.level[state] for level in levels)

    def go(state: int, stumbled: bool, step: int, chance: Fraction) -> None:
        if step > horizon or chance == 0 or earned(state) == len(levels):
            return
        at = earned(state)
        for action, planned in product(range(actions), (True, False)):
            if planned and (stumbled or action != task.planner[state]):
                continue
            here = (1 - epsilon[at]) if planned else (Fraction(1) if stumbled else epsilon[at]) / actions
            to = int(task.successors[state, action])
            if earned(to) > at:
                for level in range(at, earned(to)):
                    found[level, step] = found.get((level, step), Fraction(0)) + chance * here
                if earned(to) < len(levels):
                    sure = steady[earned(to)]
                    go(to, False, step + 1, chance * here * sure)
                    go(to, True, step + 1, chance * here * (1 - sure))
            elif stumbled:
                go(to, False, step + 1, chance * here * recovery)
                go(to, True, step + 1, chance * here * (1 - recovery))
            else:
                go(to, False, step + 1, chance * here)

    start = int(task.starts[0])
    go(start, False, 1, steady[0])
    go(start, True, 1, 1 - steady[0])
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_exact_times_equal_those_of_every_path(policy: Policy) -> None:
    horizon = 6
    got = np.diff(chances(line(), [policy], horizon)[0], axis=1, prepend=0.0)
    wanted = enumerated(line(), policy, horizon)
    for level, step in product(range(2), range(horizon + 1)):
        assert got[level, step] == pytest.approx(float(wanted.get((level, step), 0)), abs=1e-15)


def test_without_stumbling_the_times_are_those_of_the_plain_policy() -> None:
    task = waypoint_task(3)
    plain = exact_times(task, [0.1, 0.4], 80).reached
    ours = chances(task, [Policy(str(e), (e,) * 5, (1.0,) * 5) for e in (0.1, 0.4)], 80)
    assert np.abs(plain - ours).max() < 1e-12


def test_a_start_on_the_way_stumbles_by_the_chance_of_its_own_level() -> None:
    task = dataclasses.replace(line(), starts=np.array([1]))
    got = chances(task, [Policy("x", (0.0, 0.0), (0.0, 1.0))], 3)[0]
    assert got[1].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("name", ["speed, no failures", "reliability, all levels", "detours"])
def test_exact_distributions_equal_simulation(name: str) -> None:
    """All cells (policy, level, step) of a few maps: the z values of the counts have standard deviation one."""
    recipe = dataclasses.replace(ladder(name), instances=6)
    bench = make(recipe)
    draws = 4000
    times = bench.play(draws, seed=11)
    edges = [20, 40, 60, 80, 100, 140, recipe.horizon]
    by = np.stack([((times >= 0) & (times <= edge)).sum(0) for edge in edges], axis=-1)
    chance = bench.exact[..., edges]
    some = (chance > 0.005) & (chance < 0.995)
    by, chance = by[some], chance[some]
    z = (by - draws * chance) / np.sqrt(draws * chance * (1 - chance))
    assert 0.9 < z.std() < 1.1
    assert abs(z.mean()) < 0.2
    assert np.abs(z).max() < 4.5


def test_runs_are_the_same_for_the_same_seed_and_a_part_is_a_part_of_the_whole() -> None:
    task, policies = waypoint_task(0), ladder("reach").policies
    whole = play(task, policies, 150, 4, 5)
    assert (play(task, policies, 150, 2, 5) == whole[:2]).all()
    assert (play(task, policies, 150, 4, 6) != whole).any()


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("levels", [2, 3, 5])
def test_every_ladder_is_in_order_on_a_few_maps(name: str, levels: int) -> None:
    recipe = ladder(name, levels)
    assert len(recipe.policies) == 11 and len(set(recipe.policies)) == 11
    assert make(dataclasses.replace(recipe, instances=3)).dominated.all()


def test_a_wrong_order_is_refused() -> None:
    recipe = dataclasses.replace(ladder("speed, no failures"), instances=2)
    turned = dataclasses.replace(recipe, policies=recipe.policies[::-1])
    with pytest.raises(DataError, match=r"on 2 of 2 instances, map-000 the first"):
        make(turned)
    with pytest.raises(DataError):
        make(dataclasses.replace(recipe, policies=recipe.policies[:1] * 2))


def test_maps_are_as_described() -> None:
    for seed in range(20):
        task = waypoint_task(seed)
        assert task.successors.shape == (6 * SIDE * SIDE, 4)
        assert 5 <= task.shortest[0] < 100
        inner = task.successors[: SIDE * SIDE]
        stuck = (inner == np.arange(SIDE * SIDE)[:, None]).all(1)
        assert stuck.sum() >= WALLS
    assert waypoint_task(1, 2).levels.tolist() == [0.5, 1.0]


def test_bad_recipes_are_refused() -> None:
    with pytest.raises(UsageError, match="the ladders are speed, no failures"):
        ladder("speed")
    with pytest.raises(UsageError, match="at least two levels, got 1"):
        ladder("reach", 1)
    with pytest.raises(UsageError, match="between 0 and 1, got 1.5"):
        Policy("x", (1.5,), (1.0,))
    with pytest.raises(UsageError, match="2 levels have an epsilon, 1 a chance"):
        Policy("x", (0.5, 0.5), (1.0,))
    with pytest.raises(UsageError, match="made for 2 levels, the task has 5"):
        play(waypoint_task(0), [POLICIES[0]], 10, 1, 0)


def test_runs_carry_times_returns_and_references() -> None:
    bench = make(dataclasses.replace(ladder("reliability, all levels"), instances=3))
    times = bench.play(2, seed=1)
    one, both = bench.runs(times[0]), bench.runs(times)
    assert one.instances == ("map-000", "map-001", "map-002")
    assert len(both.instances) == 6
    assert one.reference_times["steps"].tolist() == [int(task.shortest[0]) for task in bench.tasks]
    found = tp.preferences(one, "sr").system_means()
    wanted = (times[0][..., -1] >= 0).mean(0)
    assert np.argmax(wanted) == int(found.argmax()) or wanted.max() == wanted[int(found.argmax())]


def test_ipp_fails_on_a_pair_in_order() -> None:
    """Sooner to every level on every map that is counted, and yet IPP prefers the other."""
    bench = make(PAIRS["slow start"])
    kept = bench.dominated
    assert 70 <= kept.sum() <= 100
    runs = bench.runs(bench.play(40, seed=3))
    maps = {task.instances[0] for task, ok in zip(bench.tasks, kept, strict=True) if ok}
    rows = [name.split()[1] in maps for name in runs.instances]
    means = {
        measure: float(prefs.delta[rows, 0].mean())
        for measure, prefs in tp.all_preferences(runs, ["lr", "rpp", "ipp"]).items()
    }
    assert means["rpp"] > 0.85 and means["lr"] > 0.75
    assert means["ipp"] < 0
