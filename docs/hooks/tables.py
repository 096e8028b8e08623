"""Tables read off the program: the options of a command, the figures of meta-evaluation."""

from __future__ import annotations

from enum import Enum
from typing import Any, get_type_hints


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
    (callback,) = [one.callback for one in app.registered_commands if one.callback and one.callback.__name__ == command]
    # Where typer keeps an option's values differs from version to version; the function says them itself.
    types = get_type_hints(callback)
    rows = ["| option | what it does | default |", "|---|---|---|"]
    for parameter in parameters:
        named = parameter.param_type_name == "option"
        if named and parameter.name == "help":
            continue
        values = _choices(types[parameter.name])
        metavar = parameter.metavar if isinstance(parameter.metavar, str) else ""
        kind = f"`{metavar}`" if metavar else " or ".join(f"`{value}`" for value in values)
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
