"""How results look: tables for the terminal and for papers. Names are imported where they are first used."""

from __future__ import annotations

from typing import Any

# Public name -> module that defines it.
_EXPORTS = {
    "evaluation_latex": "text",
    "evaluation_markdown": "text",
    "evaluation_tables": "tables",
    "print_parts": "pieces",
    "render": "pieces",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _EXPORTS:
        raise AttributeError(f"module 'torchpref.report' has no attribute {name!r}")
    value = getattr(import_module(f"torchpref.report.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
