"""The compiled CPU kernels against the exact judge and, on larger data, against the reference kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import Case, cases
from exact import MEASURES as JUDGE
from exact import compare_trials
from kernels.corpus import KINDS, SHAPES, Kind, assert_same, curves, pairs_of
from profiles import examples
from torchpref.errors import DataError
from torchpref.kernels import reference
from torchpref.kernels.cpu import choose as cpu
from torchpref.kernels.cpu import grid as cpu_grid
from torchpref.kernels.cpu.merge import compare_runs, count_jumps
from torchpref.kernels.pair_sums import PairSums
from torchpref.runs.curves import LEVEL_PAD, Curves
from torchpref.runs.curves import curves as curves_of
from torchpref.runs.units import MILLION, NEVER

FORMS = ("grid", "merge", None)


def assert_judged(case: Case, sums: PairSums, unit: int = MILLION) -> None:
    systems = len(case.runs[0])
    pairs = [(a, b) for a in range(systems) for b in range(a + 1, systems)]
    for instance in range(len(case.runs)):
        for index, (a, b) in enumerate(pairs):
            ours, theirs = case.present(instance, a), case.present(instance, b)
            for name, scale in (("lr", 1), ("rpp", unit), ("ipp", unit)):
                total, ties, _ = compare_trials(ours, theirs, JUDGE[name])
                assert int(getattr(sums, name)[instance, index]) == total * scale, (name, instance, a, b)
                assert getattr(sums, f"{name}_ties")[instance, index] == ties, (name, instance, a, b)
            solved = sooner = 0
            for x in ours:
                for y in theirs:
                    wins = [x.final() >= MILLION, y.final() >= MILLION]
                    solved += int(JUDGE["lr"](x, y)) if sum(wins) == 1 else 0
                    sooner += int(JUDGE["lr"](x, y)) if sum(wins) == 2 else 0
            assert sums.lr_solved[instance, index] == solved
            assert sums.lr_sooner[instance, index] == sooner


@pytest.mark.parametrize("form", FORMS)
@given(case=cases(max_instances=2, max_steps=6))
def test_equals_the_judge(case: Case, form: cpu.Form | None) -> None:
    jumps = curves_of(case.trajectories())
    assert_judged(case, cpu.compare_pairs(jumps, pairs_of(jumps), form))


@pytest.mark.parametrize("form", FORMS)
@given(
    case=cases(
        max_instances=2, max_systems=3, max_trials=1, unknown=False, truncation=False, missing=False, max_steps=9
    )
)
def test_equals_the_judge_where_all_is_known(case: Case, form: cpu.Form | None) -> None:
    jumps = curves_of(case.trajectories())
    assert_judged(case, cpu.compare_pairs(jumps, pairs_of(jumps), form))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_the_reference_on_the_corpus(kind: Kind, shape: tuple[int, int, int, int, int]) -> None:
    data = curves(kind, shape)
    pairs = pairs_of(data)
    expected = reference.compare_pairs(data, pairs)
    for form in FORMS:
        assert_same(cpu.compare_pairs(data, pairs, form), expected, str(form))


@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS), systems=st.integers(2, 4), jumps=st.integers(0, 40))
@settings(max_examples=examples(60))
def test_equals_the_reference_on_longer_curves(seed: int, kind: Kind, systems: int, jumps: int) -> None:
    data = curves(kind, (3, systems, 1, jumps, 50), seed)
    pairs = pairs_of(data)
    expected = reference.compare_pairs(data, pairs)
    for form in FORMS:
        assert_same(cpu.compare_pairs(data, pairs, form), expected, str(form))


def test_kernels_do_differ_from_wrong_results() -> None:
    """The comparison itself can fail: another order of times gives other sums."""
    data = curves(KINDS[0], (7, 4, 1, 6, 8))
    turned = Curves(data.levels, torch.where(data.ticks == NEVER, NEVER, 100 - data.ticks.flip(1)), None, data.present)
    with pytest.raises(AssertionError):
        assert_same(cpu.compare_pairs(data, pairs_of(data)), reference.compare_pairs(turned, pairs_of(data)))


def test_some_pairs_in_any_order_either_way_round() -> None:
    data = curves(Kind("mixed", unknown=0.1, truncated=0.2), (9, 5, 2, 6, 8))
    pairs = torch.tensor([[3, 1], [0, 4], [1, 3], [2, 0]])
    expected = reference.compare_pairs(data, pairs)
    for form in FORMS:
        assert_same(cpu.compare_pairs(data, pairs, form), expected)
    assert torch.equal(expected.rpp[:, 0], -expected.rpp[:, 2])


@pytest.mark.parametrize("last", [2**14 - 1, 2**14, 2**14 + 1, 2**30 - 1, 2**30, 2**30 + 1, 2**61 - 1])
@pytest.mark.parametrize("truncated", [False, True])
def test_the_edges_of_narrow_times(last: int, truncated: bool) -> None:
    ticks = torch.tensor([[0, last], [1, last - 1], [0, last - 1], [last - 1, last]])
    levels = torch.tensor([[5, MILLION]] * 4, dtype=torch.int32)
    levels[2, 1], ticks[2, 1] = LEVEL_PAD, NEVER
    bound = torch.tensor([NEVER, NEVER, last + 1, NEVER]) if truncated else None
    data = Curves(
        levels.view(1, 4, 1, 2),
        ticks.view(1, 4, 1, 2),
        None if bound is None else bound.view(1, 4, 1),
        torch.ones((1, 4, 1), dtype=torch.bool),
    )
    for form in ("grid", "merge"):
        assert_same(cpu.compare_pairs(data, pairs_of(data), form), reference.compare_pairs(data, pairs_of(data)))


@pytest.mark.parametrize("top", [32767, 32768, 999_999])
def test_the_edge_of_narrow_widths(top: int) -> None:
    levels = torch.tensor([[1, top], [2, top], [top, LEVEL_PAD]], dtype=torch.int32).view(1, 3, 1, 2)
    ticks = torch.tensor([[1, 5], [2, 4], [3, NEVER]]).view(1, 3, 1, 2)
    data = Curves(levels, ticks, None, torch.ones((1, 3, 1), dtype=torch.bool))
    assert_same(cpu.compare_pairs(data, pairs_of(data), "grid"), reference.compare_pairs(data, pairs_of(data)))


def test_instances_of_all_kinds_and_depths_together() -> None:
    parts = [curves(kind, (11, 4, 1, jumps, 60)) for kind in KINDS for jumps in (2, 40)]
    width = 40

    def pad(tensor: torch.Tensor, value: int) -> torch.Tensor:
        return torch.nn.functional.pad(tensor, (0, width - tensor.shape[-1]), value=value)

    data = Curves(
        levels=torch.cat([pad(part.levels, LEVEL_PAD) for part in parts]),
        ticks=torch.cat([pad(part.ticks, NEVER) for part in parts]),
        bound=torch.cat([part.present.long() * 0 + NEVER if part.bound is None else part.bound for part in parts]),
        present=torch.cat([part.present for part in parts]),
    )
    shuffled = data.instances(torch.randperm(len(data.levels), generator=torch.Generator().manual_seed(1)))  # type: ignore[arg-type]
    expected = reference.compare_pairs(shuffled, pairs_of(data))
    for form in FORMS:
        assert_same(cpu.compare_pairs(shuffled, pairs_of(data), form), expected)


def test_small_tables_and_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = curves(KINDS[6], (90, 4, 1, 6, 8))
    expected = cpu.compare_pairs(data, pairs_of(data), "grid")
    monkeypatch.setattr(cpu_grid, "TABLE_BYTES", 1)
    monkeypatch.setattr(cpu_grid, "TILE_BYTES", 1)
    assert_same(cpu.compare_pairs(data, pairs_of(data), "grid"), expected)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_nothing(threads: int) -> None:
    for shape in SHAPES:
        data = curves(KINDS[6], shape)
        expected = [cpu.compare_pairs(data, pairs_of(data), form) for form in FORMS]
        torch.set_num_threads(threads)
        try:
            for form, sums in zip(FORMS, expected, strict=True):
                assert_same(cpu.compare_pairs(data, pairs_of(data), form), sums)
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(1)


def test_a_level_out_of_range_is_refused() -> None:
    data = Curves(
        torch.tensor([[[[MILLION + 1]], [[3]]]], dtype=torch.int32),
        torch.ones((1, 2, 1, 1), dtype=torch.int64),
        None,
        torch.ones((1, 2, 1), dtype=torch.bool),
    )
    with pytest.raises(DataError, match="instance 0 has a level outside"):
        cpu.compare_pairs(data, pairs_of(data))


@pytest.mark.parametrize("shape", [(0, 3, 1, 2), (2, 0, 1, 2), (2, 1, 1, 2), (2, 3, 0, 2), (2, 3, 1, 0)])
def test_empty_data(shape: tuple[int, int, int, int]) -> None:
    data = Curves(
        torch.full(shape, LEVEL_PAD, dtype=torch.int32),
        torch.full(shape, NEVER),
        None,
        torch.ones(shape[:3], dtype=torch.bool),
    )
    for form in FORMS:
        assert_same(cpu.compare_pairs(data, pairs_of(data), form), reference.compare_pairs(data, pairs_of(data)))


def test_the_cheaper_form_is_chosen() -> None:
    few = cpu.as_runs(curves(Kind("few"), (64, 10, 1, 4, 4)))
    assert not cpu.choose(few, cpu_grid.describe(few), 45).any()
    rng = np.random.default_rng(0)
    levels = np.sort(rng.permutation(MILLION)[: 40 * 400].reshape(1, 40, 1, 400) + 1, -1).astype(np.int32)
    ticks = np.broadcast_to(np.arange(1, 401), levels.shape).copy()
    data = Curves(torch.from_numpy(levels), torch.from_numpy(ticks), None, torch.ones((1, 40, 1), dtype=torch.bool))
    many = cpu.as_runs(data)
    assert cpu.choose(many, cpu_grid.describe(many), 780).all()


def test_merged_runs_are_antisymmetric() -> None:
    runs = cpu.as_runs(curves(KINDS[6], (20, 4, 1, 6, 8)))
    counts = count_jumps(runs.levels)
    for instance in range(20):
        forth = compare_runs(runs.levels, runs.ticks, runs.bound, counts, True, instance, 0, 1)
        back = compare_runs(runs.levels, runs.ticks, runs.bound, counts, True, instance, 1, 0)
        assert forth == tuple(-value for value in back)


def test_kernels_work_after_a_fork() -> None:
    """A forked child has none of the parent's threads; DataLoader workers are such children."""
    script = """
        import os, sys
        sys.path.insert(0, "tests")
        import torch
        from kernels.corpus import KINDS, curves, pairs_of
        from torchpref.kernels.cpu import choose as cpu
        torch.set_num_threads(3)
        data = curves(KINDS[0], (70, 5, 1, 10, 12))
        ours = cpu.compare_pairs(data, pairs_of(data))
        child = os.fork()
        if child == 0:
            same = torch.equal(cpu.compare_pairs(data, pairs_of(data)).rpp, ours.rpp)
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=os.environ, timeout=120, check=False)
    assert done.returncode == 0
