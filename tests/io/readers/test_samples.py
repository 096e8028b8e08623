"""Raw samples of each format, trimmed by hand from what the sources wrote (read where they lie, skipped where they do not)."""

from pathlib import Path

import pytest
from reader_logs import Read

SAMPLES = Path(__file__).parents[4] / "shared/samples"

pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="the raw samples are not on this machine (../shared/samples)"
)

# folder: format, systems, runs, one value by hand
EXPECTED = {
    "agentboard": ("agentboard", 1, 6, {"instance": "3", "steps": [8.0], "return": [1.0]}),
    "harbor": ("harbor", 1, 1, {"return": 1.0, "tokens": 300.0, "cost": 0.25}),
    "inspect_ai": ("inspect", 1, 1, {"system": "ollama/llama3.1", "instance": "1", "score": 0.0}),
    "intercode": ("intercode", 4, 19, {"instance": "nl2bash_fs_1/0", "return": [0.8, 0.81, 1.0], "truncated": False}),
    "openhands_index": (
        "openhands-index",
        2,
        20,
        {"instance": "cachetools", "success": 1.0, "cost": 1.4693500000000002},
    ),
    "swebench_leaderboards": ("swebench", 2, 6, {"instance": "astropy__astropy-12907", "turns": 14.0, "success": 1.0}),
    "tales": ("tales", 2, 2, {"instance": "JerichoEnvZork1", "trial": 20241001, "max_score": 350.0}),
    "tau2_bench": ("tau2", 1, 2, {"instance": "13", "turns": 2.0, "cost": 0.11343299999999999}),
    "terminal_bench": (
        "terminal-bench",
        3,
        6,
        {"system": "openhands-sonnet", "score": 0.0, "max_score": 2.0, "truncated": True},
    ),
    "theagentcompany": (
        "theagentcompany",
        1,
        7,
        {"instance": "pm-monthly-attendance-slides", "score": 3.0, "max_score": 4.0, "steps": 36.0},
    ),
}


@pytest.mark.parametrize("folder", EXPECTED)
def test_sample(folder: str) -> None:
    name, systems, runs, cells = EXPECTED[folder]
    read = Read(SAMPLES / folder)
    assert (read.name, len(read.systems), len(read.rows)) == (name, systems, runs)
    assert any(all(row[column] == value for column, value in cells.items()) for row in read.rows.values())
