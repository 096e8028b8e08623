"""The adapters on data of the shape that each trainer hands over, as its version in ``docs/hooks.md`` does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import types
from types import SimpleNamespace as Record
from typing import Any

import pytest
import torch

import torchpref as tp
from torchpref.rl import curve_of_token_rewards, group_advantages, pad_traces, preference_rewards, ragged_rewards
from torchpref.rl.tokens import token_advantages

CURVES = [[0.0, 0.5, 1.0], [0.5, 1.0], [0.5], []]


def rewards_of(curves: list[Any], **options: Any) -> list[float]:
    return preference_rewards(**pad_traces(curves, len(curves)), **options)[0].tolist()


def advantages_of(curves: list[Any], **options: Any) -> list[float]:
    return group_advantages(preference_rewards(**pad_traces(curves, len(curves)), **options))[0].tolist()


@pytest.fixture
def fresh_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchpref.rl.tokens._TOLD", set())


# --------------------------------------------------------------------------------------------------------- tokens

#: Two rollouts of one prompt: own tokens, an output of a tool, own tokens, padding.
REWARDS = torch.tensor([[0.0, 0.5, 0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.5, 0.0, 0.0, 0.0]])
MASK = torch.tensor([[1, 1, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0]])


def test_curves_of_token_rewards() -> None:
    returns, times = curve_of_token_rewards(REWARDS, MASK)
    assert returns.tolist() == [[0.0, 0.5, 0.5, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5, 0.5, 0.5]]
    assert times.tolist() == [[1, 2, 2, 3, 4, 4], [1, 2, 3, 3, 3, 3]]
    assert curve_of_token_rewards(REWARDS, MASK, clock="turns")[1].tolist() == [[1, 1, 1, 2, 2, 2], [1] * 6]
    tenths = torch.full((1, 10), 0.1)
    assert float(curve_of_token_rewards(tenths, tenths)[0][0, -1]) == 1.0


def test_negative_rewards_have_a_policy(fresh_warnings: None) -> None:
    rewards, mask = torch.tensor([[-1.0, 0.0, 1.0], [0.0, 0.5, -0.25]]), torch.ones(2, 3)
    with pytest.warns(tp.TorchPrefWarning, match="2 rewards of tokens are negative and count as 0"):
        assert curve_of_token_rewards(rewards, mask)[0].tolist() == [[0.0, 0.0, 1.0], [0.0, 0.5, 0.5]]
    curve_of_token_rewards(rewards, mask)  # said once
    assert curve_of_token_rewards(rewards, mask, negative="subtract")[0].tolist() == [[0.0] * 3, [0.0, 0.5, 0.5]]
    with pytest.raises(tp.DataError, match=r"2 rewards .* \[0, 0\]"):
        curve_of_token_rewards(rewards, mask, negative="refuse")
    with pytest.warns(tp.TorchPrefWarning, match="1 rows sum to more than max_score=0.5"):
        assert float(curve_of_token_rewards(rewards, mask, negative="subtract", max_score=0.5)[0][1, 1]) == 1.0
        curve_of_token_rewards(torch.tensor([[0.6]]), torch.ones(1, 1), max_score=0.5)
    with pytest.raises(tp.DataError, match="not a finite number"):
        curve_of_token_rewards(torch.tensor([[torch.nan]]), torch.ones(1, 1))
    with pytest.raises(tp.DataError, match="must both be"):
        curve_of_token_rewards(rewards, mask[:1])
    for wrong in ({"negative": "clamp"}, {"clock": "steps"}, {"max_score": 0}):
        with pytest.raises(tp.UsageError):
            curve_of_token_rewards(rewards, mask, **wrong)


def test_advantages_of_tokens_are_those_of_the_curves() -> None:
    ids = ["p", "p"]
    returns, times = curve_of_token_rewards(REWARDS, MASK)
    values = ragged_rewards(returns, None, ids, times=times, clock="tokens")
    plain = token_advantages(REWARDS, MASK, ids)
    assert plain.tolist() == ((values - values.mean())[:, None] * MASK).float().tolist()
    to_go = token_advantages(REWARDS, MASK, ids, credit="to-go")
    credit = preference_rewards(returns[None], times=times[None], clock="tokens", credit="to-go")[0]
    assert to_go.tolist() == (credit * MASK).float().tolist()
    assert torch.equal(to_go[:, 0], plain[:, 0])
    assert not to_go[0, 5] and to_go[0, 2] == 0.0
    with pytest.raises(tp.UsageError, match="not divided"):
        token_advantages(REWARDS, MASK, ids, credit="to-go", scale="group")
    assert token_advantages(torch.zeros(0, 4), torch.zeros(0, 4), []).shape == (0, 4)


def test_rows_of_one_run_are_joined() -> None:
    """The first run is given in two rows, in the wrong order: it is the same as in one."""
    rows = torch.tensor([[0.0, 0.5, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]])
    mask = torch.tensor([[1, 1, 0], [1, 1, 0], [1, 1, 1]])
    for credit in (None, "to-go"):
        whole = token_advantages(REWARDS, MASK, ["p", "p"], credit=credit)
        parts = token_advantages(rows, mask, ["p"] * 3, run=["a", "a", "b"], order=[1, 0, 0], credit=credit)
        assert parts[1].tolist() == [*whole[0, :2].tolist(), 0.0]
        assert parts[0].tolist() == [*whole[0, 3:5].tolist(), 0.0]
        assert parts[2].tolist() == whole[1, :3].tolist()
    # Compared with each other, the first part of the successful run would be the worst of three.
    apart = token_advantages(rows, mask, ["p"] * 3)
    assert apart[1, 0] != parts[1, 0]
    with pytest.raises(tp.DataError, match="different groups"):
        token_advantages(rows, mask, ["p", "q", "p"], run=["a", "a", "b"])
    with pytest.raises(tp.DataError, match="2 group ids for 3 rows"):
        token_advantages(rows, mask, ["p", "q"])


# ------------------------------------------------------------------------------------------------------- registries


def module(name: str, monkeypatch: pytest.MonkeyPatch, **contents: Any) -> None:
    """A module of that name, with the ones above it."""
    parts = name.split(".")
    for depth in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), types.ModuleType(".".join(parts[:depth])))
    made = types.ModuleType(name)
    vars(made).update(contents)
    monkeypatch.setitem(sys.modules, name, made)


def registry() -> tuple[dict[str, Any], Any]:
    found: dict[str, Any] = {}
    return found, lambda name: lambda function: found.setdefault(name, function)


def test_skyrl(monkeypatch: pytest.MonkeyPatch) -> None:
    found, decorator = registry()
    module("skyrl.backends.skyrl_train.utils.ppo_utils", monkeypatch, register_advantage_estimator=decorator)
    from torchpref.rl.integrations import skyrl

    skyrl.register(measure="lr")
    everything = torch.ones_like(MASK)
    advantages, returns = found["preference"](
        token_level_rewards=REWARDS,
        response_mask=everything,
        index=["p", "p"],
        loss_mask=MASK,
        config=None,
        values=None,
    )
    assert torch.equal(advantages, token_advantages(REWARDS, MASK, ["p", "p"], measure="lr"))
    assert torch.equal(advantages, returns)
    without, _ = found["preference"](token_level_rewards=REWARDS, response_mask=everything, index=["p", "p"])
    assert torch.equal(without, token_advantages(REWARDS, everything, ["p", "p"], measure="lr"))


@pytest.mark.parametrize("path", ["rllm.trainer.algorithms.advantage", "rllm.experimental.common.advantage"])
def test_rllm(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    found, decorator = registry()
    module(path, monkeypatch, register_rllm_adv_estimator=decorator)
    if "experimental" in path:
        monkeypatch.setitem(sys.modules, "rllm.trainer", None)
    from torchpref.rl.integrations import rllm

    rllm.register("liked", measure="rpp")
    group = Record(trajectories=[Record(steps=[Record(reward=value) for value in curve]) for curve in CURVES])
    advantages, returns = found["liked"]([[0.0] * 4], None, traj_groups=[group])
    assert advantages[0].tolist() == pytest.approx(advantages_of(CURVES))
    assert returns is advantages


def test_verl_joins_the_outputs_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchpref.rl.integrations import verl

    found, decorator = registry()
    core = Record(register_adv_est=decorator)
    verl._add(core, "preference", {})  # type: ignore[arg-type]
    rows = torch.tensor([[0.0, 0.5, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]])
    mask = torch.tensor([[1, 1, 0], [1, 1, 0], [1, 1, 1]])
    inputs = {"token_level_rewards": rows, "response_mask": mask, "index": ["u_1"] * 3, "config": None}

    def compute(data: Any, batch_keys: list[str], adv_estimator: str) -> Any:
        return found[adv_estimator](**data)

    utils = types.ModuleType("utils")
    utils.compute_advantage_for_multi_trajectories = compute  # type: ignore[attr-defined]
    verl._keep_rows(utils)
    keys = ["u_1_0_1", "u_1_0_0", "u_1_7_0"]
    joined, _ = utils.compute_advantage_for_multi_trajectories(inputs, keys, "preference")
    wanted = token_advantages(rows, mask, ["u"] * 3, run=["a", "a", "b"], order=[1, 0, 0])
    assert torch.equal(joined, wanted)
    apart, _ = compute(inputs, keys, "preference")
    assert torch.equal(apart, token_advantages(rows, mask, ["u"] * 3))
    with pytest.raises(tp.UsageError, match="no uid"):
        found["preference"](token_level_rewards=rows, response_mask=mask)
    verl._keep_rows(types.ModuleType("older"))  # a verl without sessions


CHILD = """
import sys
before = set(sys.modules)
import importlib.metadata
{load}
new = set(sys.modules) - before
print(len([name for name in new if name.split('.')[0] == 'torchpref']), *sorted({{'torch', 'numpy', 'verl', 'ray'}} & new))
print(sum(type(finder).__name__ == '_WhenImported' for finder in sys.meta_path))
"""


@pytest.mark.parametrize(("switch", "hooks"), [("1", 3), ("0", 0), ("off", 0)])
def test_the_entry_point_of_verl_imports_nothing(switch: str, hooks: int, tmp_path: Any) -> None:
    import os

    load = "import torchpref.rl.integrations.verl"
    environment = {**os.environ, "TORCHPREF_VERL": switch}
    ran = subprocess.run(
        [sys.executable, "-c", CHILD.format(load=load)], env=environment, capture_output=True, text=True, check=True
    )
    modules, finders = ran.stdout.splitlines()
    assert modules == "4"  # torchpref, .rl, .rl.integrations, .rl.integrations.verl; neither torch nor numpy
    assert int(finders) == hooks


def test_the_entry_point_is_named_in_the_project() -> None:
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["verl.plugins"] == {"torchpref": "torchpref.rl.integrations.verl"}


def test_the_hook_waits_for_the_import(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchpref.rl.integrations import verl

    (tmp_path / "late_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[int] = []
    before = list(sys.meta_path)
    verl._when_imported("late_module", lambda module: seen.append(module.value))
    verl._when_imported("late_module", lambda module: seen.append(module.value + 1))
    assert seen == []
    import late_module  # type: ignore[import-not-found]

    assert sorted(seen) == [1, 2] and late_module.value == 1
    assert sys.meta_path == before
    verl._when_imported("late_module", lambda module: seen.append(9))
    assert seen[-1] == 9
    del sys.modules["late_module"]


# ---------------------------------------------------------------------------------------------------------- groups


def test_art() -> None:
    from torchpref.rl.integrations.art import prefer

    def group(curves: list[Any]) -> Record:
        return Record(trajectories=[Record(metadata={"curve": json.dumps(curve)}, reward=0.0) for curve in curves])

    done = asyncio.run(prefer()(group(CURVES)))
    assert [one.reward for one in done.trajectories] == pytest.approx(rewards_of(CURVES))
    assert asyncio.run(prefer()(group([]))).trajectories == []
    assert asyncio.run(prefer(drop_tied=True)(group([[1.0], [1.0]]))) is None
    assert asyncio.run(prefer(drop_tied=True)(group([[1.0], [0.0, 1.0]]))) is not None
    unscored = asyncio.run(prefer()(group([[1.0], None, [0.5]])))
    assert [one.reward for one in unscored.trajectories] == pytest.approx([1.245, -0.245])
    timed = [{"returns": [1.0], "times": [2]}, {"returns": [1.0], "times": [9]}]
    done = asyncio.run(prefer(lambda one: json.loads(one.metadata["curve"]), clock="tokens")(group(timed)))
    assert [one.reward for one in done.trajectories] == pytest.approx([1.49, 0.51])


def test_verifiers() -> None:
    from torchpref.rl.integrations.verifiers import prefer

    class Trace(Record):
        def record_reward(self, name: str, value: float, weight: float = 1.0) -> None:
            self.rewards[name] = value

    traces = [Trace(info={"curve": curve}, rewards={}, agent=Record(trainable=True)) for curve in [*CURVES, None]]
    judge = Trace(info={}, rewards={}, agent=Record(trainable=False))
    prefer(Record(traces=[judge, *traces]))
    assert [one.rewards["preference"] for one in traces[:4]] == pytest.approx(rewards_of(CURVES))
    assert traces[4].rewards == {} and judge.rewards == {}
    prefer(Record(traces=traces), lambda trace: trace.info["curve"], name="liked", measure="lr", anchor=None)
    assert [one.rewards["liked"] for one in traces[:4]] == pytest.approx(rewards_of(CURVES, measure="lr", anchor=None))


def test_tinker_cookbook() -> None:
    from torchpref.rl.integrations.tinker_cookbook import prefer

    def trajectory(*steps: tuple[float, int]) -> Record:
        return Record(transitions=[Record(reward=reward, ac=Record(tokens=[0] * count)) for reward, count in steps])

    group = [trajectory((0.5, 3), (0.5, 4)), trajectory((0.0, 2), (1.0, 2)), trajectory((-0.5, 1)), trajectory()]
    timed = [
        {"returns": [0.5, 1.0], "times": [3, 7]},
        {"returns": [0.0, 1.0], "times": [2, 4]},
        {"returns": [0.0], "times": [1]},
        {"returns": [], "times": []},
    ]
    result = prefer(group)
    wanted = rewards_of(timed, clock="tokens")
    # The cookbook adds the rewards of the steps again: together they are the preference.
    sums = [sum(step.reward for step in one.transitions) for one in group]
    assert [reward + total for (reward, _), total in zip(result, sums, strict=True)] == pytest.approx(wanted)
    assert [metrics["solved"] for _, metrics in result] == [1.0, 1.0, 0.0, 0.0]
    by_turns = prefer(group, clock="turns", anchor=None)
    timed[0]["times"], timed[1]["times"] = [1, 2], [1, 2]
    assert by_turns[0][0] + 1.0 == pytest.approx(rewards_of(timed, clock="turns", anchor=None)[0])
    own = prefer(group[:2], lambda one: [1.0] if len(one.transitions[0].ac.tokens) == 3 else [0.5, 1.0])
    assert own[0][1] == {"preference": pytest.approx(rewards_of([[1.0], [0.5, 1.0]])[0])}


def test_areal() -> None:
    from torchpref.rl.integrations.areal import prefer

    batch = {
        "rewards": torch.tensor([1.0, 1.0, -1.0]),
        "loss_mask": torch.tensor([[0, 1, 1, 1], [0, 1, 0, 0], [0, 1, 1, 0]]),
        "input_ids": torch.zeros(3, 4),
    }
    timed = [{"returns": [1.0], "times": [3]}, {"returns": [1.0], "times": [1]}, {"returns": [0.0], "times": [2]}]
    replaced = prefer(batch)
    assert replaced["rewards"].tolist() == pytest.approx(rewards_of(timed, clock="tokens"))
    assert replaced["input_ids"] is batch["input_ids"] and batch["rewards"].tolist() == [1.0, 1.0, -1.0]
    own = prefer(batch, lambda batch, row: CURVES[row], measure="lr")
    assert own["rewards"].tolist() == pytest.approx(rewards_of(CURVES[:3], measure="lr"))


def test_slime() -> None:
    from torchpref.rl.integrations.slime import post_process_rewards

    def sample(group: int, reward: Any, length: int, curve: Any = None, mask: Any = None) -> Record:
        metadata = {} if curve is None else {"curve": curve}
        return Record(group_index=group, reward=reward, response_length=length, metadata=metadata, loss_mask=mask)

    samples = [
        sample(0, 1.0, 5),
        sample(1, 0.0, 5, [0.5]),
        sample(0, 1.0, 9, mask=[1, 1, 0]),
        sample(1, 1.0, 5, [0.5, 1.0]),
    ]
    raw, trained = post_process_rewards(Record(), samples)
    assert raw == [1.0, 0.0, 1.0, 1.0]
    timed = [{"returns": [1.0], "times": [5]}, {"returns": [1.0], "times": [2]}]
    assert [trained[0], trained[2]] == pytest.approx(advantages_of(timed, clock="tokens"))
    assert [trained[1], trained[3]] == pytest.approx(advantages_of([[0.5], [0.5, 1.0]]))
    named = [sample(0, {"score": 1.0}, 1), sample(0, {"score": -1.0}, 2)]
    raw, trained = post_process_rewards(Record(reward_key="score", torchpref={"measure": "lr"}), named)
    assert raw == [1.0, -1.0] and trained == pytest.approx([0.99, -0.99])


def test_prime_rl() -> None:
    from torchpref.rl.integrations.prime_rl import score_group

    given: dict[int, float] = {}
    traces = [Record(info={"curve": curve}, agent=Record(trainable=True), number=k) for k, curve in enumerate(CURVES)]
    judge = Record(info={}, agent=Record(trainable=False), number=9)
    episodes = [Record(traces=[traces[0], judge, traces[1]]), Record(traces=traces[2:])]
    score_group(episodes, assign=lambda trace, advantage: given.__setitem__(trace.number, advantage))
    assert [given[k] for k in range(4)] == pytest.approx(advantages_of(CURVES))
    assert len(given) == 4
