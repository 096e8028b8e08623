"""What the pages of the documentation show is what the program does: every block of Python and of the shell is run.

A block of Python is a doctest; a block ``console`` has commands after ``$`` and what they print, with ``...`` for what is left
out; a block with a title and no language of these is written to a file of that name. All blocks of a page run in order, in
one empty folder.
"""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import torchpref as tp
from torchpref.cli.app import app, main

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
#: Their code needs trainers, a model or hours; tests/rl/test_docs.py runs or compiles it.
ELSEWHERE = {"rl.md", "hooks.md"}
#: What these show is made by mkdocs, by a benchmark, by make or in CI; no other page may be without a block that is run.
NOTHING_TO_RUN = {"contributing.md", "how-sure.md", "in-ci.md"} | {page for page in PAGES if page.startswith("api/")}
BLOCK = re.compile(r"^( *)```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^ *```$", re.M | re.S)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _in_order(want: str, got: str) -> bool:
    """Whether the output is as shown, ``...`` standing for anything."""
    return doctest.OutputChecker().check_output(want, got, FLAGS)


def _console(text: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Run the commands of a block; how many they were."""
    run = 0
    for each in re.split(r"^\$ ", text, flags=re.M)[1:]:
        joined = each.replace("\\\n", " ")
        line, _, want = joined.partition("\n")
        words = shlex.split(line, comments=True)
        if words[0] != "torchpref":
            continue
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words[1:])
        got = capsys.readouterr()
        assert ended.value.code in (0, 1, 4, None), f"{line}\n{got.err}"
        if want.strip():
            assert _in_order(want, got.out), f"$ {line}\nwanted:\n{want}\ngot:\n{got.out}"
        run += 1
    return run


def test_pages_that_are_not_run_are_there() -> None:
    assert ELSEWHERE | NOTHING_TO_RUN <= set(PAGES)


@pytest.mark.parametrize("name", [page for page in PAGES if page not in ELSEWHERE])
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    known: dict[str, Any] = {"tp": tp}
    run = 0
    for indent, language, title, body in BLOCK.findall((DOCS / name).read_text(encoding="utf-8")):
        text = "\n".join(line.removeprefix(indent) for line in body.split("\n"))
        if language == "console":
            run += _console(text, capsys)
        elif language == "python":
            assert ">>>" in text, f"{name}: a block of Python without a prompt is not run:\n{text}"
            test = doctest.DocTestParser().get_doctest(text, known, name, name, 0)
            report: list[str] = []
            result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
            known = test.globs
            run += result.attempted
            assert not result.failed, "".join(report)
        elif title:
            Path(title).write_text(text, encoding="utf-8")
    assert (run == 0) == (name in NOTHING_TO_RUN), f"{name}: {run} commands and examples are run"


def test_the_runner_sees_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    _console("$ torchpref --version\ntorchpref ...\n", capsys)
    with pytest.raises(AssertionError, match="wanted"):
        _console("$ torchpref --version\ntorchpref of another kind\n", capsys)


def test_every_command_has_its_options() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    commands = {command.callback.__name__ for command in app.registered_commands if command.callback}
    assert set(re.findall(r"<!-- options: (\w+) -->", page)) == commands
    assert set(re.findall(r"^## torchpref (\w+)", page, flags=re.M)) == commands


def test_navigation_names_every_page() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w/-]+\.md)$", navigation, flags=re.M))
    made = {f"notebooks/{path.stem}.md" for path in (DOCS.parent / "notebooks").glob("*.ipynb")}
    assert named == set(PAGES) | made


def test_every_public_name_is_in_the_reference() -> None:
    named = set()
    for page in (DOCS / "api").glob("*.md"):
        named |= set(re.findall(r"^::: torchpref[\w.]*\.(\w+)$", page.read_text(encoding="utf-8"), flags=re.M))
    public = {name for name in dir(tp) if name in tp._EXPORTS}
    assert public - {"MEASURES"} <= named


def test_option_tables_are_read_off_the_program() -> None:
    found: dict[str, Any] = {"__name__": "tables"}
    exec((DOCS / "hooks" / "tables.py").read_text(encoding="utf-8"), found)
    table = found["options_table"]("evaluate")
    assert "| `--zero-time` `unknown` or `keep` | A level reached at exactly 0" in table
    assert table.count("\n") > 15
    assert "tie rate" in found["figures_table"]().lower()
