"""What the columns of somebody's table are, by the words that people use; what is not clear is asked for, never guessed.

A column that bears a name of the tidy table itself goes first, then one that the user mapped; only then are names compared
without case, blanks and dashes with the words below.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchpref.errors import DataError
from torchpref.runs.findings import Finding
from torchpref.runs.tidy.durations import seconds_of
from torchpref.runs.tidy.schema import CLOCKS, FAMILIES, REFERENCE, VALUES, is_tidy

if TYPE_CHECKING:
    import polars

#: What people call the columns of the tidy table.
WORDS: dict[str, tuple[str, ...]] = {
    "system": ("system", "model", "agent", "model_name", "agent_name", "model_id", "policy", "algorithm", "algo", "llm"),
    "instance": (
        "instance", "task", "task_id", "instance_id", "problem", "problem_id", "task_name", "question", "question_id",
        "example_id", "sample_id", "case_id", "test_case", "scenario", "puzzle",
    ),
    "benchmark": ("benchmark", "dataset", "suite"),
    "trial": ("trial", "attempt", "attempt_id", "rollout", "repeat", "repetition", "replicate", "run_number", "trial_id"),
    "step": ("step",),
    "success": (
        "success", "resolved", "passed", "solved", "correct", "is_correct", "is_resolved", "is_success", "succeeded",
        "is_solved", "is_passed",
    ),
    "return": ("return", "progress", "progression", "progress_rate", "partial_credit", "completion_rate"),
    "score": ("score", "points"),
    "reward": ("reward",),
    "max_score": ("max_score", "maximum_score", "max_points", "points_possible", "total_points"),
    "steps": ("steps", "num_steps", "n_steps", "step_count"),
    "turns": ("turns", "num_turns", "n_turns", "api_calls", "llm_calls", "num_calls"),
    "seconds": (
        "seconds", "secs", "duration_s", "duration_sec", "duration_seconds", "latency_s", "latency_seconds", "runtime_s",
        "runtime_seconds", "elapsed_s", "elapsed_seconds", "time_s", "time_seconds", "wall_time_s", "wall_time_seconds",
        "execution_time_s", "seconds_elapsed",
    ),
    "time": (
        "time", "duration", "latency", "runtime", "elapsed", "elapsed_time", "wall_time", "walltime", "wall_clock",
        "execution_time", "total_time",
    ),
    "tokens": ("tokens", "total_tokens", "n_tokens", "num_tokens", "tokens_used", "token_count"),
    "cost": ("cost", "usd", "cost_usd", "total_cost", "total_cost_usd", "price", "price_usd", "dollars"),
    "truncated": ("truncated",),
}  # fmt: skip
#: Columns of time stamps whose difference is how long a run took.
_BEGIN = ("started_at", "start_time", "started", "start", "begin", "begin_time", "start_timestamp")
_END = (
    "finished_at",
    "end_time",
    "ended_at",
    "finished",
    "end",
    "completed_at",
    "finish_time",
    "end_timestamp",
    "stop_time",
)
#: Numbers that may be a further trial, or part of the task.
SEEDS = ("seed", "epoch", "random_seed")
_ROLES = {word: role for role, words in WORDS.items() for word in words}
#: Roles that a table may do without; where two columns could have one of them, neither is taken.
_OPTIONAL = {"benchmark", "trial", "step", "max_score", *CLOCKS, "truncated"}


def plain(name: str) -> str:
    """A column's name without case, with ``_`` for blanks, dashes and points; units in brackets are part of it."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s\-./()\[\]_]+", "_", spaced.lower()).strip("_")


def role_of(name: str) -> str | None:
    """What a column may be, by its name; None where the name says nothing."""
    return _ROLES.get(plain(name))


def may_be_used(name: str) -> bool:
    """Whether a column may be of use by its name alone."""
    return is_tidy(name) or role_of(name) is not None or plain(name) in (*_BEGIN, *_END, *SEEDS)


@dataclass(frozen=True)
class Recognised:
    """What was recognised.

    Attributes:
        mapping: tidy names and columns, those that the user gave first.
        found: those of them that were recognised.
        left: roles that may be left out, with the columns between which nobody can choose.
    """

    mapping: dict[str, str]
    found: dict[str, str]
    left: dict[str, list[str]]

    def findings(self) -> tuple[Finding, ...]:
        """A note of what was recognised, the outcome first."""
        if not self.found:
            return ()
        order = sorted(self.found, key=lambda name: name not in VALUES)
        shown = ",".join(f"{name}={self.found[name]}" for name in order)
        more = "".join(f"; {' or '.join(columns)} could be {name}" for name, columns in self.left.items())
        message = f"columns were recognised by their names ({shown}{more}; name others with columns); columns"
        return (Finding("columns_recognised", "note", len(self.found), message, (), ()),)


def recognise(available: Sequence[str], mapping: Mapping[str, str], place: str, *, named: bool = False) -> Recognised:
    """Columns for the tidy names that neither the table nor the user gives.

    Args:
        available: the columns of the table.
        mapping: what the user mapped.
        place: what is read, for messages.
        named: whether the system has a name already.

    Raises:
        DataError: two columns could be the system, the instance, or the outcome.
    """
    used = {part.strip() for source in mapping.values() for part in (source, *source.split("+"), *source.split("-"))}
    taken = {*mapping, *(name for name in available if is_tidy(name))}
    candidates: dict[str, list[str]] = {}
    for name in available:
        role = role_of(name)
        if role is not None and role not in taken and name not in used and not is_tidy(name):
            candidates.setdefault(role, []).append(name)
    found: dict[str, str] = {}
    left: dict[str, list[str]] = {}
    for role, columns in candidates.items():
        if role in VALUES or (role == "system" and named):
            continue
        if len(columns) == 1:
            found[role] = columns[0]
        elif role in _OPTIONAL:
            left[role] = columns
        else:
            raise DataError(_ask(place, role, columns))
    if "time" in found and "seconds" in {*taken, *found}:
        del found["time"]
    if not any(name in taken for name in VALUES):
        _outcome(candidates, found, place)
    if not any(name in {*taken, *found} for name in CLOCKS):
        begin = [name for name in available if plain(name) in _BEGIN and name not in used]
        end = [name for name in available if plain(name) in _END and name not in used]
        if len(begin) == len(end) == 1:
            found["seconds"] = f"{end[0]}-{begin[0]}"
    return Recognised({**mapping, **found}, found, left)


def _outcome(candidates: Mapping[str, list[str]], found: dict[str, str], place: str) -> None:
    """The column that says what was reached: success beside a score stays a pair that is compared later."""
    values = {role: columns for role, columns in candidates.items() if role in VALUES}
    if not values:
        return
    several = next((columns for columns in values.values() if len(columns) > 1), None)
    if several is not None:
        role = next(role for role, columns in values.items() if columns is several)
        raise DataError(_ask(place, role, several))
    if len(values) > 1 and set(values) not in ({"success", "score"}, {"success", "return"}):
        columns = [columns[0] for columns in values.values()]
        options = " or ".join(f"{role}={columns[0]}" for role, columns in values.items())
        raise DataError(
            f"{place}: {len(columns)} columns could say what was reached ({', '.join(columns)}); choose with columns: {options}"
        )
    found |= {role: columns[0] for role, columns in values.items()}


def _ask(place: str, role: str, columns: Sequence[str]) -> str:
    choices = [f"{role}={name}" for name in columns]
    if role in ("system", "instance"):
        choices.append(f"{role}={'+'.join(columns)}")
    return (
        f"{place}: {len(columns)} columns could be the {role} ({', '.join(columns)}); choose with columns, such as "
        f"--columns {' or --columns '.join(choices)}"
    )


def with_units(frame: polars.DataFrame, found: Mapping[str, str]) -> polars.DataFrame:
    """A column that was recognised as ``time`` is ``seconds`` where its cells name their unit."""
    import polars as pl

    if "time" not in found or frame.schema["time"] != pl.String or "seconds" in frame.columns:
        return frame
    cells = frame["time"].drop_nulls().str.strip_chars()
    cells = cells.filter((cells != "") & cells.cast(pl.Float64, strict=False).is_null())
    if len(cells) and any(seconds_of(text) is not None for text in cells.head(100)):
        return frame.rename({"time": "seconds"})
    return frame


def ask_for_seed(before: polars.DataFrame, after: polars.DataFrame, mapping: Mapping[str, str], place: str) -> None:
    """Raise where runs repeat and a column could tell whether they are trials or other tasks.

    Args:
        before: the table with its own columns.
        after: the same rows with the tidy columns.
        mapping: which columns are which.
        place: what is read, for the message.
    """
    used = {part.strip() for source in mapping.values() for part in source.split("+")}
    seeds = [name for name in before.columns if plain(name) in SEEDS and name not in used]
    if not seeds or "trial" in after.columns or "step" in after.columns:
        return
    keys = [name for name in ("system", "benchmark", "instance") if name in after.columns]
    if after.select(keys).is_duplicated().any():
        instance = mapping.get("instance", "instance")
        raise DataError(
            f"{place}: a system has several runs on one instance, and there is a column {seeds[0]!r}: say with columns whether "
            f"it numbers the trials (--columns trial={seeds[0]}) or makes the task (--columns instance={instance}+{seeds[0]})"
        )


def command(place: str, mapping: Mapping[str, str], names: Collection[str]) -> str:
    """A whole command with every column that is needed; COLUMN stands for those that nobody knows."""
    given = {name: mapping.get(name, name) for name in (*mapping, *names) if is_tidy(name)}
    values = [name for name in VALUES if name in given]
    wanted = {"system": given.get("system", "COLUMN"), "instance": given.get("instance", "COLUMN")}
    wanted |= {name: given[name] for name in values[:1]} or {"success": "COLUMN"}
    wanted |= {
        name: source for name, source in mapping.items() if name not in wanted and name not in (FAMILIES, REFERENCE)
    }
    path = place if " and " not in place and place not in ("the frame", "the table") else "PATH"
    return f"torchpref evaluate {path} --columns " + ",".join(f"{name}={source}" for name, source in wanted.items())
