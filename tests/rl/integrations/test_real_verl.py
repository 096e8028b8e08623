"""In verl itself: ``make test-trainers`` installs it, without its own dependencies, beside what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

pytest.importorskip("verl", reason="needs verl, which has an environment of its own: make test-trainers")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def core() -> Any:
    from verl.trainer.ppo import core_algos

    import torchpref.rl.integrations.verl  # noqa: F401

    return core_algos


def batch() -> Any:
    import numpy as np
    from verl import DataProto

    generator = torch.Generator().manual_seed(0)
    mask = (torch.arange(12) < torch.randint(3, 13, (16, 1), generator=generator)).long()
    mask[:, 4] = 0  # an output of a tool
    rewards = torch.zeros(16, 12)
    rewards[:, 2], rewards[torch.arange(16), mask.cumsum(-1).argmax(-1)] = 0.25, 0.75
    rewards[::3] /= 2
    uid = np.array([f"prompt_{row // 4}" for row in range(16)], dtype=object)
    return DataProto.from_dict(
        tensors={"token_level_rewards": rewards, "response_mask": mask}, non_tensors={"uid": uid}
    )


@pytest.mark.parametrize(("name", "options"), [("preference", {}), ("preference_to_go", {"credit": "to-go"})])
def test_the_trainers_own_call(core: Any, name: str, options: dict[str, Any]) -> None:
    from verl.trainer.ppo.ray_trainer import compute_advantage

    from torchpref.rl import ragged_advantages, ragged_rewards
    from torchpref.rl.tokens import curve_of_token_rewards

    data = batch()
    ids = list(data.non_tensor_batch["uid"])
    done = compute_advantage(data, adv_estimator=name, config=None)
    mask = data.batch["response_mask"]
    returns, times = curve_of_token_rewards(data.batch["token_level_rewards"], mask)
    values = ragged_rewards(returns, None, ids, times=times, clock="tokens", **options)
    if not options:
        values = ragged_advantages(values, ids).unsqueeze(-1)
    assert torch.equal(done.batch["advantages"], (values * mask).float())
    assert torch.equal(done.batch["returns"], done.batch["advantages"])
    assert bool((done.batch["advantages"] != 0).any())


def test_outputs_of_a_session_are_joined(core: Any) -> None:
    pytest.importorskip("verl.trainer.ppo.v1.utils", exc_type=ImportError)
    from verl.trainer.ppo.v1 import utils

    from torchpref.rl.tokens import token_advantages

    data = batch()
    keys = [f"prompt_{row // 4}_{row % 4 // 2}_{row % 2}" for row in range(16)]  # two sessions of two outputs each
    done = utils.compute_advantage_for_multi_trajectories(data, keys, adv_estimator="preference", config=None)
    wanted = token_advantages(
        data.batch["token_level_rewards"], data.batch["response_mask"], list(data.non_tensor_batch["uid"]),
        run=[key.rsplit("_", 1)[0] for key in keys],
    )  # fmt: skip
    assert torch.equal(done.batch["advantages"], wanted)


ENTRY = """
import sys, importlib.metadata as m
class Distribution(m.Distribution):
    def read_text(self, name):
        return {{'entry_points.txt': '[verl.plugins]\\ntorchpref = torchpref.rl.integrations.verl\\n',
                'METADATA': 'Name: torchpref-entry\\nVersion: 1\\n'}}.get(name)
    def locate_file(self, path): return path
class Finder:
    @staticmethod
    def find_spec(*rest): return None
    @staticmethod
    def find_distributions(context=m.DistributionFinder.Context()):
        return [Distribution()] if context.name in (None, 'torchpref-entry') else []
sys.meta_path.append(Finder)
import verl
print('core_algos' in str([n for n in sys.modules if n.startswith('verl.trainer.ppo')]))
{ray}
from verl.trainer.ppo import core_algos
print('preference' in core_algos.ADV_ESTIMATOR_REGISTRY)
"""


@pytest.mark.parametrize(("switch", "there"), [("1", "True"), ("0", "False")])
def test_verl_finds_the_entry_point(switch: str, there: str) -> None:
    """The distribution is made up, the loading is verl's; its registry is not imported before it is asked for."""
    environment = {**os.environ, "TORCHPREF_VERL": switch}
    ran = subprocess.run(
        [sys.executable, "-c", ENTRY.format(ray="")], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split()[-2:] == ["False", there]


WORKER = """
import ray
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
@ray.remote
def registered():
    from verl.trainer.ppo import core_algos
    return sorted(name for name in core_algos.ADV_ESTIMATOR_REGISTRY if str(name).startswith('preference'))
print(*ray.get(registered.remote()))
ray.shutdown()
"""


@pytest.mark.slow
def test_a_worker_of_ray_has_it() -> None:
    """Through the environment variable that verl reads in every process; an installed torchpref needs none."""
    environment = {**os.environ, "VERL_USE_EXTERNAL_MODULES": "torchpref.rl.integrations.verl"}
    ran = subprocess.run(
        [sys.executable, "-c", WORKER], env=environment, capture_output=True, text=True, timeout=180, check=True
    )
    assert ran.stdout.split()[-2:] == ["preference", "preference_to_go"]
