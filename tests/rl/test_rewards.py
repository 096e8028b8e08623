"""Rewards equal those worked out from ``tp.preferences`` on the same runs, for every option."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torchpref as tp
from cases import Case, cases
from torchpref.kernels import choice
from torchpref.rl import group_advantages, pool_rewards, preference_rewards, ragged_advantages, ragged_rewards
from torchpref.rl.pairwise import compare_rollouts
from torchpref.rl.rollouts import check_inputs, rollouts
from torchpref.runs.units import to_ticks

MEASURES = ("sr", "pr", "spl", "lr", "rpp", "ipp")
CLOCKS = ("time", "seconds", "cost")


def kernel(compiled: bool) -> AbstractContextManager[object]:
    """Numba for everything, or torch operations for everything."""
    return patch.object(choice, "groups_compiled", lambda device, pairs, steps, by_step: compiled)


def deltas(runs: tp.Trajectories, measure: str, clock: str | None) -> torch.Tensor:
    """Δ(row, column) [instance, system, system], NaN where the two are not compared."""
    prefs = tp.preferences(runs, measure, clock=clock)
    size = len(runs.systems)
    square = torch.full((len(runs.instances), size, size), math.nan, dtype=torch.float64)
    first, second = prefs.pairs[:, 0], prefs.pairs[:, 1]
    square[:, first, second] = prefs.delta
    square[:, second, first] = -prefs.delta
    return square


def expected(runs: tp.Trajectories, measure: str, clock: str | None, output: str, anchor: str | None, weight: float):
    square = deltas(runs, measure, clock)
    compared = (~square.isnan()).sum(-1)
    preference = torch.nan_to_num(square).sum(-1) / compared.clamp(min=1)
    if output == "win_rate":
        preference = (preference + 1) / 2
    final = runs.returns[:, :, 0].amax(-1) if runs.shape[-1] else torch.zeros(runs.shape[:2])
    if anchor == "success":
        preference = (final >= 10**6).double() + weight * preference
    if anchor == "return":
        preference = final.double() / 1e6 + weight * preference
    return torch.where(runs.present[:, :, 0], preference, 0.0)


def tensors(runs: tp.Trajectories, clock: str) -> dict[str, torch.Tensor]:
    """The arguments of preference_rewards that describe these runs (one trial each)."""
    times = runs.times[clock][:, :, 0].double() * runs.resolution[clock]
    return {
        "returns": runs.returns[:, :, 0].double() / 1e6,
        "lengths": runs.lengths[:, :, 0],
        "times": torch.where(runs.times[clock][:, :, 0] < 0, math.nan, times),
        "valid": runs.present[:, :, 0],
        "truncated": None if runs.truncated is None else runs.truncated[:, :, 0],
    }


@given(
    case=cases(max_trials=1, max_instances=2, max_systems=5),
    measure=st.sampled_from(MEASURES),
    clock=st.sampled_from(CLOCKS),
    output=st.sampled_from(["signed", "win_rate"]),
    anchor=st.sampled_from(["success", "return", None]),
    padding=st.integers(0, 2),
    compiled=st.booleans(),
)
def test_equal_to_preferences_on_any_clock(
    case: Case, measure: str, clock: str, output: str, anchor: str | None, padding: int, compiled: bool
) -> None:
    runs = case.trajectories(padding, clock)
    given_ = tensors(runs, clock)
    with kernel(compiled):
        rewards = preference_rewards(
            measure=measure,
            clock=clock,
            resolution=case.resolution,
            output=output,
            anchor=anchor,
            weight=None if anchor is None else 0.3,
            **given_,
        )
    assert rewards.dtype is torch.float64
    torch.testing.assert_close(rewards, expected(runs, measure, clock, output, anchor, 0.3), rtol=0, atol=1e-12)


def crowded(groups: int = 300) -> tp.Trajectories:
    """Many groups with few levels and few ticks, so that levels are shared, steps share ticks, times are unknown between
    equal ones, and rivals reach levels just before and just after a rollout was stopped."""
    generator = torch.Generator().manual_seed(11)
    shape = (groups, 5, 6)
    times = torch.randint(0, 5, shape, generator=generator).double().sort(-1).values
    times[torch.rand(shape, generator=generator) < 0.2] = math.nan
    return tp.Trajectories(
        torch.randint(0, 4, shape, generator=generator) / 3,
        torch.randint(0, 7, shape[:2], generator=generator),
        times={"time": times},
        present=torch.rand(shape[:2], generator=generator) < 0.9,
        truncated=torch.rand(shape[:2], generator=generator) < 0.3,
    )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("measure", MEASURES)
def test_equal_to_preferences_on_crowded_groups(measure: str, compiled: bool) -> None:
    runs = crowded()
    given_ = tensors(runs, "time")
    with kernel(compiled):
        rewards = preference_rewards(measure=measure, anchor=None, **given_)
        del given_["times"]
        counted = preference_rewards(measure=measure, anchor=None, **given_)
    torch.testing.assert_close(rewards, expected(runs, measure, "time", "signed", None, 0), rtol=0, atol=1e-12)
    by_steps = tp.Trajectories(
        given_["returns"], given_["lengths"], present=given_["valid"], truncated=given_["truncated"]
    )
    torch.testing.assert_close(counted, expected(by_steps, measure, "steps", "signed", None, 0), rtol=0, atol=1e-12)


@given(
    case=cases(max_trials=1, max_instances=3, max_systems=5, max_steps=7),
    measure=st.sampled_from(MEASURES),
    marked=st.booleans(),
    compiled=st.booleans(),
)
def test_equal_to_preferences_when_steps_are_counted(case: Case, measure: str, marked: bool, compiled: bool) -> None:
    given_ = tensors(case.trajectories(), "time")
    truncated = given_["truncated"] if marked else None
    runs = tp.Trajectories(given_["returns"], given_["lengths"], present=given_["valid"], truncated=truncated)
    with kernel(compiled):
        rewards = preference_rewards(
            given_["returns"], given_["lengths"], measure, valid=given_["valid"], truncated=truncated, anchor=None
        )
    torch.testing.assert_close(rewards, expected(runs, measure, "steps", "signed", None, 0), rtol=0, atol=1e-12)


@given(
    case=cases(max_trials=1, max_instances=1, max_systems=5),
    measure=st.sampled_from(["lr", "rpp"]),
    compiled=st.booleans(),
)
def test_by_step_equals_by_level(case: Case, measure: str, compiled: bool) -> None:
    """Counting steps oneself, as a clock, is the same as letting them be counted."""
    given_ = tensors(case.trajectories(), "time")
    del given_["times"]
    steps = torch.arange(1, given_["returns"].shape[-1] + 1).expand(given_["returns"].shape)
    with kernel(compiled):
        counted = preference_rewards(measure=measure, anchor=None, **given_)
        timed = preference_rewards(measure=measure, anchor=None, times=steps, clock="steps", **given_)
    assert torch.equal(counted, timed)


@given(
    case=cases(max_trials=1, max_instances=2, max_systems=5),
    measure=st.sampled_from(MEASURES),
    split=st.integers(0, 5),
    steps_counted=st.booleans(),
    compiled=st.booleans(),
)
def test_pool_equals_preferences(case: Case, measure: str, split: int, steps_counted: bool, compiled: bool) -> None:
    """Some systems are the rollouts, the others the pool; the pool may be empty, and of another length."""
    runs = case.trajectories()
    given_ = tensors(runs, "time")
    clock = "steps" if steps_counted else "time"
    if steps_counted:
        given_["times"] = None
        runs = tp.Trajectories(
            given_["returns"], given_["lengths"], present=given_["valid"], truncated=given_["truncated"]
        )
    reference = torch.full((len(runs.instances),), 3.0, dtype=torch.float64)
    with_reference = tp.Trajectories.from_integers(
        returns=runs.returns, lengths=runs.lengths, present=runs.present, times=runs.times, systems=runs.systems,
        instances=runs.instances, benchmarks=runs.benchmarks, truncated=runs.truncated, resolution=runs.resolution,
        reference_times={clock: to_ticks(reference, runs.resolution[clock])},
    )  # fmt: skip
    square = deltas(with_reference, measure, clock)[:, :split, split:]
    compared = (~square.isnan()).sum(-1)
    wanted = torch.nan_to_num(square).sum(-1) / compared.clamp(min=1)

    def part(cut: slice) -> dict[str, torch.Tensor | None]:
        return {name: None if value is None else value[:, cut] for name, value in given_.items()}

    mine, pool = part(slice(split)), {f"pool_{name}": value for name, value in part(slice(split, None)).items()}
    pad = torch.nn.functional.pad
    pool["pool_returns"] = pad(pool["pool_returns"], (0, 2), value=0.9)
    if pool["pool_times"] is not None:
        pool["pool_times"] = pad(pool["pool_times"], (0, 2))
    options = {} if steps_counted else {"clock": "time"}
    with kernel(compiled):
        if measure == "spl":
            options["reference_time"] = reference
        rewards = pool_rewards(measure=measure, anchor=None, **mine, **pool, **options)
    torch.testing.assert_close(rewards, wanted, rtol=0, atol=1e-12)


def test_a_pool_without_batch_axis_serves_all() -> None:
    returns = torch.rand(3, 2, 5).cumsum(-1).clamp(max=1)
    pool = torch.rand(4, 6).cumsum(-1).clamp(max=1)
    shared = pool_rewards(returns, None, pool)
    assert torch.equal(shared, pool_rewards(returns, None, pool.expand(3, 4, 6)))
    # Stationary: what the other rollouts do changes nothing.
    assert torch.equal(shared[:, :1], pool_rewards(returns[:, :1], None, pool))
    with pytest.raises(tp.UsageError, match="reference_time"):
        pool_rewards(returns, None, pool, measure="spl")


@given(
    case=cases(max_trials=1, max_instances=3, max_systems=4),
    measure=st.sampled_from(MEASURES),
    seed=st.integers(0, 100),
    bounded=st.booleans(),
)
def test_ragged_equals_padded(case: Case, measure: str, seed: int, bounded: bool) -> None:
    """Rollouts in any order, told apart by id, missing ones left away: the same numbers."""
    given_ = tensors(case.trajectories(), "time")
    batch, size = given_["valid"].shape
    padded = preference_rewards(measure=measure, resolution=1e-6, **given_)
    group = torch.arange(batch).repeat_interleave(size) * 7 - 3
    order = torch.randperm(batch * size, generator=torch.Generator().manual_seed(seed))
    order = order[given_["valid"].flatten()[order]]
    flat = {name: None if value is None else value.flatten(0, 1)[order] for name, value in given_.items()}
    rewards = ragged_rewards(
        group=group[order], measure=measure, resolution=1e-6, shape=(batch + 1, size + 1) if bounded else None, **flat
    )
    assert torch.equal(rewards, padded.flatten()[order])
    advantages = ragged_advantages(rewards, group[order])
    assert torch.equal(advantages, group_advantages(padded, given_["valid"]).flatten()[order])
    names = [f"group {number}" for number in group[order].tolist()]
    assert torch.equal(rewards, ragged_rewards(group=names, measure=measure, resolution=1e-6, **flat))


def test_dtypes_and_autocast() -> None:
    """Halves and quarters are exact in every dtype; so are bools, for success alone."""
    generator = torch.Generator().manual_seed(1)
    returns = torch.randint(0, 5, (6, 4, 9), generator=generator).double().cummax(-1).values / 4
    lengths = torch.randint(0, 10, (6, 4), generator=generator)
    for measure in MEASURES:
        exact = preference_rewards(returns, lengths, measure)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            rewards = preference_rewards(returns.to(dtype), lengths.int(), measure)
            assert rewards.dtype is torch.float32
            assert torch.equal(rewards, exact.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(preference_rewards(returns, lengths, measure), exact)
        done = returns >= 1
        wanted = preference_rewards(done.double(), lengths, measure).float()
        assert torch.equal(preference_rewards(done, lengths, measure), wanted)
        assert torch.equal(preference_rewards(done.long(), lengths, measure), wanted)


def test_levels_are_rounded_from_float64() -> None:
    """A third in float32, and a third as written by another logger, are one level."""
    returns = torch.tensor([[[1 / 3, 1.0], [0.333333, 1.0]]], dtype=torch.float64)
    assert preference_rewards(returns, anchor=None).tolist() == [[0.0, 0.0]]
    assert preference_rewards(returns.float(), anchor=None).tolist() == [[0.0, 0.0]]


def test_blocks_change_nothing() -> None:
    returns = torch.rand(7, 3, 11, dtype=torch.float64).cummax(-1).values
    runs = rollouts(check_inputs(returns, None, None, None, None, None, None))
    for measure in ("lr", "rpp", "ipp"):
        whole = compare_rollouts(runs, None, measure)
        for cells in (1, 3 * 3 * 11 * 2, 10**9):
            assert torch.equal(compare_rollouts(runs, None, measure, max_cells=cells), whole)


def test_design_example_where_a_failure_wins() -> None:
    """Levels at 1, 2, never against 5, 6, 7: RPP is +1/3 for the one that fails; the anchor puts success first."""
    returns = torch.zeros(1, 2, 7, dtype=torch.float64)
    returns[0, 0, 0:] = 1 / 3
    returns[0, 0, 1:] = 2 / 3
    returns[0, 1, 4:] = 1 / 3
    returns[0, 1, 5:] = 2 / 3
    returns[0, 1, 6:] = 1
    bare = preference_rewards(returns, anchor=None)
    torch.testing.assert_close(bare, torch.tensor([[1 / 3, -1 / 3]]).double(), atol=1e-6, rtol=0)
    anchored = preference_rewards(returns)
    assert anchored[0, 1] > anchored[0, 0]
    assert preference_rewards(returns, measure="lr", anchor=None).tolist() == [[-1.0, 1.0]]


@given(case=cases(max_trials=1, max_systems=5, max_instances=2), measure=st.sampled_from(MEASURES))
def test_successes_outscore_failures(case: Case, measure: str) -> None:
    given_ = tensors(case.trajectories(), "time")
    for output, weight in (("signed", 0.49), ("win_rate", 0.98)):
        rewards = preference_rewards(measure=measure, output=output, weight=weight, **given_)
        solved = (given_["returns"].amax(-1) >= 1) if given_["returns"].shape[-1] else torch.zeros_like(rewards) > 0
        for row, valid, won in zip(rewards, given_["valid"], solved, strict=True):
            best_failure = row[valid & ~won].amax() if (valid & ~won).any() else torch.tensor(-1.0)
            worst_success = row[valid & won].amin() if (valid & won).any() else torch.tensor(3.0)
            assert worst_success > best_failure


def test_groups_without_rivals_and_without_steps() -> None:
    one = torch.tensor([[[0.5, 1.0]]])
    assert preference_rewards(one, anchor=None).tolist() == [[0.0]]
    assert preference_rewards(one, anchor=None, output="win_rate").tolist() == [[0.5]]
    assert preference_rewards(one).tolist() == [[1.0]]
    for shape in ((0, 4, 3), (2, 0, 3), (2, 4, 0)):
        for measure in MEASURES:
            rewards = preference_rewards(torch.zeros(shape), measure=measure)
            assert rewards.shape == shape[:2]
            assert not rewards.any()
    assert ragged_rewards(torch.zeros(0, 3), None, torch.zeros(0, dtype=torch.long)).shape == (0,)
    with pytest.raises(tp.DataError, match="2 groups of up to 2"):
        ragged_rewards(torch.zeros(3, 1), None, ["a", "b", "a"], shape=(2, 1))


def test_an_invalid_rollout_changes_nothing() -> None:
    returns = torch.rand(3, 5, 8, dtype=torch.float64).cummax(-1).values
    returns[:, 4] = math.nan
    valid = torch.tensor([True] * 4 + [False]).expand(3, 5)
    for measure in MEASURES:
        rewards = preference_rewards(returns, None, measure, valid=valid)
        assert torch.equal(rewards[:, :4], preference_rewards(returns[:, :4], None, measure))
        assert not rewards[:, 4].any()


def test_bad_values_raise_on_the_cpu() -> None:
    good = torch.zeros(1, 2, 3)
    for value, word in ((1.5, "1.5"), (-0.25, "-0.25"), (math.nan, "nan")):
        bad = good.clone()
        bad[0, 1, 2] = value
        with pytest.raises(tp.DataError, match=rf"returns\[0, 1, 2\] is {word}"):
            preference_rewards(bad)
        assert preference_rewards(bad, torch.tensor([[3, 2]])).tolist() == [[0.0, 0.0]]
    with pytest.raises(tp.DataError, match=r"lengths\[0, 1\] is 4"):
        preference_rewards(good, torch.tensor([[3, 4]]))
    with pytest.raises(tp.DataError, match=r"times\[0, 0, 2\] is 1\.0"):
        preference_rewards(good, times=torch.tensor([[[1.0, 2.0, 1.0]] * 2]))
    with pytest.raises(tp.DataError, match=r"\[2, 3\]"):
        preference_rewards(good[0])
    with pytest.raises(tp.DataError, match="whole numbers"):
        preference_rewards(good, torch.zeros(1, 2))
    with pytest.raises(tp.DataError, match="times have shape"):
        preference_rewards(good, times=torch.zeros(1, 2, 4))
    with pytest.raises(tp.DataError, match="valid has shape"):
        preference_rewards(good, valid=torch.ones(2, dtype=torch.bool))


def test_wrong_options_raise() -> None:
    good = torch.zeros(1, 2, 3)
    for weight in (0.5, 1.0, -0.1, math.nan):
        with pytest.raises(tp.UsageError, match="outscore"):
            preference_rewards(good, weight=weight)
    preference_rewards(good, weight=0.9, output="win_rate")
    with pytest.raises(tp.UsageError, match="output"):
        preference_rewards(good, output="rank")  # type: ignore[arg-type]
    with pytest.raises(tp.UsageError, match="anchor"):
        preference_rewards(good, anchor="none")  # type: ignore[arg-type]
    with pytest.raises(tp.UsageError, match="unknown measure"):
        preference_rewards(good, measure="mrr")
    with pytest.raises(tp.UsageError, match="needs times"):
        preference_rewards(good, clock="seconds")


def test_advantages() -> None:
    rewards = torch.tensor([[1.0, 0.5, 0.0], [0.3, 0.3, 0.3], [1.0, 0.0, 9.0]])
    valid = torch.tensor([[True] * 3, [True] * 3, [True, True, False]])
    plain = group_advantages(rewards, valid)
    torch.testing.assert_close(plain, torch.tensor([[0.5, 0.0, -0.5], [0.0, 0.0, 0.0], [0.5, -0.5, 0.0]]))
    assert plain[1].tolist() == [0.0, 0.0, 0.0]
    for size in range(2, 20):  # the mean of equal numbers is not always that number
        for value in (0.1, 0.3, 1 / 3, 1.49):
            assert not group_advantages(torch.full((1, size), value)).any()
    scaled = group_advantages(rewards, valid, scale="group")
    torch.testing.assert_close(scaled[0], torch.tensor([1.0, 0.0, -1.0]), atol=1e-5, rtol=0)
    assert scaled[1].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(tp.UsageError, match="scale"):
        group_advantages(rewards, scale="batch")  # type: ignore[arg-type]


@given(case=cases(max_trials=1, max_systems=4, max_instances=1), measure=st.sampled_from(MEASURES))
def test_a_tied_group_has_no_advantage(case: Case, measure: str) -> None:
    given_ = tensors(case.trajectories(), "time")
    same = {
        name: None if value is None else value[:, :1].expand(-1, 4, *value.shape[2:]) for name, value in given_.items()
    }
    rewards = preference_rewards(measure=measure, **same)
    assert group_advantages(rewards, same["valid"]).tolist() == [[0.0] * 4]


def _random_batch(device: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    returns = (torch.rand(6, 5, 12, generator=generator).cumsum(-1) / 4).clamp(max=1).mul(4).floor() / 4
    times = torch.rand(6, 5, 12, generator=generator).cumsum(-1)
    times[torch.rand(6, 5, 12, generator=generator) < 0.1] = math.nan
    batch = {
        "returns": returns,
        "lengths": torch.randint(0, 13, (6, 5), generator=generator),
        "times": times,
        "truncated": torch.rand(6, 5, generator=generator) < 0.3,
        "valid": torch.rand(6, 5, generator=generator) < 0.8,
    }
    return {name: value.to(device) for name, value in batch.items()}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("timed", [True, False])
def test_no_value_is_ever_asked_for(measure: str, timed: bool) -> None:
    """Tensors on the device ``meta`` have no values: whoever asks for one, and would wait for a GPU, fails."""
    batch = _random_batch("meta")
    if not timed:
        del batch["times"]
    spl = {"reference_time": torch.ones(6, device="meta")} if measure == "spl" else {}
    rewards = preference_rewards(measure=measure, **spl, **batch)
    assert rewards.shape == (6, 5) and rewards.is_meta
    assert group_advantages(rewards, batch["valid"], scale="group").shape == (6, 5)
    pool = {f"pool_{name}": value for name, value in batch.items()}
    assert pool_rewards(measure=measure, **spl, **batch, **pool).is_meta
    if measure == "rpp":
        assert preference_rewards(credit="to-go", **batch).shape == (6, 5, 12)
    flat = {name: value.flatten(0, 1) for name, value in batch.items()}
    group = torch.zeros(30, dtype=torch.long, device="meta")
    assert ragged_rewards(group=group, measure=measure, shape=(6, 5), **flat).is_meta
    assert ragged_advantages(rewards.flatten(), group, flat["valid"], shape=(6, 5)).is_meta


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own imports
@pytest.mark.parametrize(
    ("measure", "backend"), [("lr", "aot_eager"), ("rpp", "inductor"), ("ipp", "aot_eager"), ("spl", "aot_eager")]
)
def test_compiles_into_one_graph(measure: str, backend: str) -> None:
    batch = _random_batch("cpu")
    compiled = torch.compile(preference_rewards, fullgraph=True, backend=backend)
    if backend == "aot_eager":  # on any clock too; the other backend takes half a minute for a graph
        assert torch.equal(compiled(measure=measure, **batch), preference_rewards(measure=measure, **batch))
    del batch["times"]
    assert torch.equal(compiled(measure=measure, **batch), preference_rewards(measure=measure, **batch))
    # Where nothing may be looked at, an unusable rollout is NaN and left out for the others.
    batch["valid"][:] = True
    batch["lengths"][:] = 12
    whole = preference_rewards(measure=measure, **{**batch, "valid": batch["valid"] & (torch.arange(5) != 2)})
    batch["returns"][:, 2, 3] = 1.5
    rewards = compiled(measure=measure, **batch)
    assert rewards[:, 2].isnan().all()
    keep = [0, 1, 3, 4]
    assert torch.equal(rewards[:, keep], whole[:, keep])


@pytest.mark.gpu
@pytest.mark.parametrize("measure", MEASURES)
def test_equal_on_the_device_without_waiting(measure: str) -> None:
    batch = _random_batch("cpu")
    wanted = preference_rewards(measure=measure, **batch)
    on_device = {name: value.cuda() for name, value in batch.items()}
    preference_rewards(measure=measure, **on_device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        rewards = preference_rewards(measure=measure, **on_device)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert rewards.is_cuda
    assert torch.equal(rewards.cpu(), wanted)
