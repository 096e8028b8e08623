"""The examples of the page on rewards run as they stand; those of the page of hooks are at least Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
#: TRL and Gymnasium announce their own future.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def example(name: str) -> str:
    (code,) = re.findall(rf"<!-- run: {name} -->\n```python\n(.*?)```", (DOCS / "rl.md").read_text(), re.DOTALL)
    return code


def test_loop_of_your_own(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium", reason="needs the extra rl")
    found: dict[str, Any] = {"__name__": "example"}
    exec(example("gymnasium"), found)
    assert "success 1.00" in capsys.readouterr().out
    assert sum(found["steps"]) / len(found["steps"]) < 7


def test_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tiny model in the place of the named one, which would be downloaded."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("trl", reason="needs the extra trl")
    from rl import tiny_llm

    monkeypatch.chdir(tmp_path)
    tiny_llm.saved(tmp_path / "tiny", tiny_llm.tokenizer())
    code = example("trl")
    assert code.count('"Qwen/Qwen3-0.6B"') == 1
    code = code.replace('"Qwen/Qwen3-0.6B"', '"tiny"').replace(
        "max_steps=20", 'max_steps=2, report_to="none", use_cpu=True'
    )
    found: dict[str, Any] = {"__name__": "example"}
    exec(code, found)
    assert found["reward"].group_size == 8


def test_the_readme_shows_the_example_that_runs() -> None:
    assert f"```python\n{example('trl')}```" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_hooks_are_python() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "hooks.md").read_text(), re.DOTALL)
    assert len(blocks) == 8
    for block in blocks:
        compile(block, "hooks.md", "exec")
