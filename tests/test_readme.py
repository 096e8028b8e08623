"""What the README shows is what the program prints."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from torchpref.cli.app import app, main

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_output_is_that_of_the_demo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["demo"])
    printed = capsys.readouterr().out
    shown = blocks("text")
    assert len(shown) == 3
    for block in shown:
        assert block.strip() in printed


def test_python_runs_and_says_what_is_shown() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert tried >= 8 and not failed


def test_commands_exist() -> None:
    known = {command.callback.__name__ for command in app.registered_commands if command.callback}
    inline = re.findall(r"`(torchpref [^`]*)`", README.read_text(encoding="utf-8"))
    named = set(re.findall(r"torchpref (\w+)", "\n".join(blocks("") + inline)))
    assert {"evaluate", "compare", "gate", "audit", "meta", "convert", "formats"} <= named <= known
