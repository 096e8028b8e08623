"""What was named at the start and what was used at each look: one small JSON file that keeps later looks to it.

Choosing the measure, the clock, the order or the number of instances after results are known would undo what makes stopping
valid, so a file that says otherwise is refused. So are results that changed after they were used: a run added to an
instance, or one that is gone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchpref.errors import DataError, UsageError

_VERSION = 1
#: How what was named is called in messages.
_WORDS = {
    "measure": "the measure",
    "clock": "the clock",
    "planned": "the number of planned instances",
    "order": "the order of instances",
    "families": "the families of tasks",
    "seed": "the seed",
    "systems": "the systems",
}


@dataclass(frozen=True)
class LooksState:
    """The content of a state file.

    Attributes:
        named: what was named at the start, as plain values.
        used: per pair or system and per instance, in the planned order, the numbers that were used.
        looks: a dictionary per look, the earliest first.
    """

    named: Mapping[str, Any]
    used: Mapping[str, Sequence[Sequence[int]]]
    looks: Sequence[Mapping[str, Any]]


def read_state(path: str | os.PathLike[str]) -> LooksState | None:
    """The state in a file; None where there is no file yet.

    Raises:
        DataError: the file is not such a state, or is damaged.
    """
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError, ValueError) as error:
        raise DataError(f"{os.fspath(path)}: the state of looks cannot be read ({error})") from error
    if not isinstance(record, dict) or record.get("torchpref_looks") != _VERSION:
        raise DataError(f"{os.fspath(path)}: this is no state of looks that this version can read; name another file")
    named, used, looks = (record.get(key) for key in ("named", "used", "looks"))
    if not (isinstance(named, dict) and isinstance(used, dict) and isinstance(looks, list)):
        raise DataError(f"{os.fspath(path)}: the state of looks is damaged; restore it from a copy")
    return LooksState(named, used, looks)


def write_state(path: str | os.PathLike[str], state: LooksState) -> None:
    """Write the state as a whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    from torchpref.io.files.whole import written_whole

    record = {"torchpref_looks": _VERSION, "named": state.named, "looks": list(state.looks), "used": state.used}
    try:
        with written_whole(os.fspath(path)) as partial:
            partial.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{os.fspath(path)}: the state cannot be written ({error.strerror or error})") from error


def check_named(path: str | os.PathLike[str], before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse what differs from what was named at the start.

    Raises:
        UsageError: names what differs, both values, and the remedy.
    """
    for key in now:
        if key not in before or before[key] == now[key]:
            continue
        what = _WORDS.get(key, key)
        detail = f"it was {_brief(before[key])} at the first look and is {_brief(now[key])} now"
        if key in ("order", "families") and isinstance(before[key], list) and isinstance(now[key], list):
            place = next(
                (i for i, (a, b) in enumerate(zip(before[key], now[key], strict=False)) if a != b),
                min(len(before[key]), len(now[key])),
            )
            at = [values[place] if place < len(values) else "nothing" for values in (before[key], now[key])]
            detail = f"position {place + 1} was {at[0]!r} at the first look and is {at[1]!r} now"
        raise UsageError(
            f"{os.fspath(path)}: {what} may not change between looks: {detail}. Go on as it was named, or begin anew with "
            "another state file and new runs"
        )


def check_used(
    path: str | os.PathLike[str],
    key: str,
    names: Sequence[str],
    before: Sequence[Sequence[int]],
    now: Sequence[Sequence[int]],
) -> None:
    """Refuse results that are not what they were when they were used.

    Args:
        path: the state file.
        key: the pair or system, for the message.
        names: instances in the planned order.
        before, now: per instance the numbers of runs, the family, the result.

    Raises:
        DataError: names the first instance that differs.
    """
    for position, old in enumerate(before):
        new = now[position] if position < len(now) else None
        if new is not None and list(new) == list(old):
            continue
        name = names[position] if position < len(names) else f"number {position + 1}"
        if new is None or sum(new[:-2]) < sum(old[:-2]):
            what = f"was used at an earlier look ({_runs(old)}) and is gone or lacks runs now; restore its logs"
        elif list(new[:-2]) != list(old[:-2]):
            what = f"was used with {_runs(old)} and has {_runs(new)} now; leave the runs out that were added afterwards"
        elif new[-2] != old[-2]:
            what = "is of another family than when it was used; name families as at the first look"
        else:
            what = "has another result than when it was used; restore its logs"
        raise DataError(f"{os.fspath(path)}: {key}: instance {name!r} {what}")


def _runs(numbers: Sequence[int]) -> str:
    return " and ".join(str(count) for count in numbers[:-2]) + " runs"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
