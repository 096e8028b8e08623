"""Verdicts where continuous integration shows them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
import torch

import torchpref as tp
from torchpref.cli.app import main
from torchpref.report.gate_report import gate_annotation, gate_junit, gate_markdown


def runs(base: float, new: float, names: tuple[str, str] = ("base", "new")) -> tp.Trajectories:
    """Two systems on 40 tasks, solved by the first so many of them at once."""
    solved = torch.zeros(40, 2, 1)
    solved[: round(40 * base), 0], solved[: round(40 * new), 1] = 1, 1
    return tp.Trajectories(solved, systems=list(names))


@pytest.fixture
def table(tmp_path):
    def write(base: float, new: float) -> str:
        path = tmp_path / "runs.csv"
        runs(base, new).to_frame().explode("return", "steps").write_csv(path)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("new", "options", "tag", "level"),
    [
        (0.2, {}, "failure", "error"),
        (0.9, {"margin": 0.1}, None, "notice"),
        (0.85, {}, "skipped", "warning"),
        (0.85, {"undecided": "fail"}, "failure", "error"),
    ],
    ids=["worse", "fine", "undecided", "undecided that fails"],
)
def test_every_verdict_has_its_place(new, options, tag, level):
    result = tp.gate(runs(0.9, new), "base", "new", measure="sr", **options)
    case = ElementTree.fromstring(gate_junit(result)).find("testsuite/testcase")
    assert [child.tag for child in case if child.tag != "system-out"] == ([tag] if tag else [])
    assert gate_annotation(result).startswith(f"::{level} title=torchpref gate: {result.verdict}::")
    assert "\n" not in gate_annotation(result) and result.verdict in gate_markdown(result).splitlines()[0]
    assert f"{result.mean:+.3f}" in gate_markdown(result)


def test_names_cannot_leave_their_place():
    odd = ("a|b<c>&\"'\n", "`x` </testcase>\x1b[31m")
    result = tp.gate(runs(0.9, 0.2, odd), *odd, measure="sr")
    assert "\n" not in ElementTree.fromstring(gate_junit(result)).find("testsuite/testcase").get("name")
    assert "<c>" not in gate_markdown(result) and "\x1b" not in gate_markdown(result) + gate_annotation(result)


def test_the_command_writes_them_and_tells_github(table, tmp_path, monkeypatch, capsys):
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    files = {name: tmp_path / name for name in ("gate.md", "gate.xml")}
    arguments = ["--measure", "sr", "--markdown", str(files["gate.md"]), "--junit", str(files["gate.xml"])]
    with pytest.raises(SystemExit) as ended:
        main(["gate", table(0.9, 0.2), "base", "new", *arguments])
    assert ended.value.code == 1
    assert "::error title=torchpref gate: worse::" in capsys.readouterr().out
    assert "worse" in files["gate.md"].read_text() and "<failure" in files["gate.xml"].read_text()
    assert summary.read_text().strip() == files["gate.md"].read_text().strip()


def test_outside_of_github_nothing_of_it_is_said(table, monkeypatch, capsys):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    with pytest.raises(SystemExit):
        main(["gate", table(0.9, 0.2), "base", "new", "--measure", "sr"])
    assert "::error" not in capsys.readouterr().out
