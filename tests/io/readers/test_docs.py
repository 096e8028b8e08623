"""The page about logs and tables: its example runs, and it names every format and option."""

import doctest
from pathlib import Path

from torchpref.io.readers import readers

PAGE = Path(__file__).parents[3] / "docs/readers.md"


def test_the_example_runs_and_says_what_is_shown() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried >= 8 and not failed


def test_every_format_and_option_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for reader in readers():
        assert f"| `{reader.name}` |" in text
        for option in reader.options:
            assert f"{option}=" in text
