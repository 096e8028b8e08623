"""Tables read off the program: the options of a command, the figures of meta-evaluation."""

from __future__ import annotations

from enum import Enum
from typing import Any


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _choices(annotation: Any) -> list[str]:
    return (
        [str(each.value) for each in annotation]
        if isinstance(annotation, type) and issubclass(annotation, Enum)
        else []
    )


def options_table(command: str) -> str:
    """The arguments and options of a command as a Markdown table, read off the program."""
    import typer

    from torchpref.cli.app import app

    parameters: list[Any] = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    rows = ["| option | what it does | default |", "|---|---|---|"]
    for parameter in parameters:
        named = parameter.param_type_name == "option"
        if named and parameter.name == "help":
            continue
        values = _choices(parameter.type_descriptor.annotation) if parameter.metavar is None else []
        kind = " or ".join(f"`{value}`" for value in values) or (f"`{parameter.metavar}`" if parameter.metavar else "")
        name = f"`{parameter.opts[0]}` {kind}".strip() if named else kind
        given = getattr(parameter.default, "value", parameter.default)
        default = "" if given is None or given is False or callable(given) else f"`{given}`"
        rows.append(f"| {_cell(name)} | {_cell(parameter.help or '')} | {default} |")
    return "\n".join(rows)


def figures_table() -> str:
    """The figures of meta-evaluation and what they mean."""
    from torchpref.meta import DEFINITIONS

    rows = ["| figure | group | what it is |", "|---|---|---|"]
    for key, one in DEFINITIONS.items():
        rows.append(f"| {_cell(one.title.strip())} (`{key}`) | {one.group} | {_cell(one.text)} |")
    return "\n".join(rows)
