"""What every test runs under: one thread, reproducible examples, no GPU test without a GPU."""

import os
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

from profiles import examples
from torchpref.kernels import choice

torch.set_num_threads(1)

settings.register_profile("local", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def _fresh_ledger() -> Iterator[None]:
    """Which kernel works depends on how much was done before: nothing, at the beginning of every test."""
    before = dict(choice.LEDGER.spent)
    choice.LEDGER.spent.clear()
    yield
    choice.LEDGER.spent.clear()
    choice.LEDGER.spent.update(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)
