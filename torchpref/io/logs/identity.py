"""Who is who, and what is one task: runs of a log named by everything that tells them apart.

A name is extended only where it has to be: by the fields in which runs of one name differ, by the folder where a field of the
name is null, by a mark of the input where one id stands for two. What was done is noted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from torchpref.io.logs.records import Notes

Floats = NDArray[np.float64]
Naming = Literal["whole", "partial", "folder"]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Run:
    """One run: whose, on what, and its points in order, as columns (the value and the clocks; NaN is unknown).

    Attributes:
        trial: its number, or None where the log numbers none.
        identity: what two records of one run have in common, besides their points.
        place: the file that it was read from.
        home: the folder or file that holds a submission, if the log has such a thing.
        naming: how far the system's name says who ran: ``"whole"``, ``"partial"`` where a field of it is null, ``"folder"``
            where it is the name of a folder.
        details: what else a person would name a system by (version, arguments), by field.
        setting: what else defines the tasks of a benchmark (data set, split, arguments), by field.
        content: a short mark of the task's input, if the log has it.
    """

    system: str
    benchmark: str
    instance: str
    trial: int | None
    truncated: bool | None
    length: int
    columns: Mapping[str, Floats]
    max_score: float | None
    identity: Hashable
    place: Path | None = None
    home: Path | None = None
    naming: Naming = "whole"
    details: Mapping[str, str] = field(default_factory=dict)
    setting: Mapping[str, str] = field(default_factory=dict)
    content: str | None = None

    def fingerprint(self) -> Hashable:
        """What two records of one run have in common."""
        given = {name: column.tobytes() for name, column in self.columns.items() if not np.isnan(column).all()}
        return self.identity, self.truncated, self.max_score, self.length, tuple(sorted(given.items()))


def systems_apart(runs: Sequence[Run], notes: Notes) -> list[Run]:
    """Runs with names of systems that say all that tells the systems apart."""
    result = list(runs)
    for name, where in _grouped(result, lambda run: run.system).items():
        fields = _differing([result[i].details for i in where])
        if fields:
            for i in where:
                result[i] = replace(result[i], system=_with(result[i].system, _shown(result[i].details, fields)))
            notes.add(
                "systems_told_apart",
                "systems of one name are told apart by what else the logs say; names",
                severity="note",
                example=f"{name}: {', '.join(sorted({result[i].system for i in where})[:4])}",
            )
    for name, where in _grouped(result, lambda run: run.system).items():
        homes = sorted({place for i in where if (place := result[i].home) is not None})
        if len(homes) < 2:
            continue
        labels = dict(zip(homes, _labels(homes), strict=True))
        naming = {result[i].naming for i in where}
        if "partial" in naming or ("folder" in naming and _overlap([result[i] for i in where])):
            for i in where:
                home = result[i].home
                if home is not None:
                    result[i] = replace(result[i], system=_by_home(result[i], labels[home]))
            notes.add(
                "systems_named_by_folder",
                "names of systems that the logs give only in part are completed by where they lie (give NAME=PATH to name them "
                "yourself); names",
                severity="note",
                example=f"{name}: {', '.join(labels.values())}",
            )
        else:
            notes.add(
                "systems_in_several_places",
                "systems whose runs lie in several places are taken as one, for the logs name them alike (if they are not, "
                "give NAME=PATH for each, or --columns system=@folder); systems",
                system=name,
                example=f"{name}: {', '.join(map(str, homes[:4]))}",
            )
    return result


def tasks_apart(runs: Sequence[Run], notes: Notes) -> list[Run]:
    """Runs with names of benchmarks and instances that are the same only if all that defines the task is."""
    result = list(runs)
    for name, where in _grouped(result, lambda run: run.benchmark).items():
        fields = _differing([result[i].setting for i in where])
        if fields:
            _rename_benchmark(result, where, fields)
            names = sorted({result[i].benchmark for i in where})
            notes.add(
                "tasks_told_apart",
                f"benchmarks of one name whose settings differ ({', '.join(fields)}) are taken as different ones; names",
                example=f"{name or 'the tasks'}: {', '.join(names[:4])}",
            )
    for (_, instance), where in _grouped(result, lambda run: (run.benchmark, run.instance)).items():
        contents = {content for i in where if (content := result[i].content) is not None}
        if len(contents) > 1:
            for i in where:
                result[i] = replace(result[i], instance=_with(instance, f"input {result[i].content or 'not given'}"))
            notes.add(
                "inputs_differ",
                "instances of one id whose inputs differ between logs are taken as different ones; ids",
                example=f"{instance}: {result[where[0]].place} and {result[where[-1]].place}",
            )
    return result


def _grouped(runs: Sequence[Run], key: Callable[[Run], Key]) -> dict[Key, list[int]]:
    groups: dict[Key, list[int]] = defaultdict(list)
    for position, run in enumerate(runs):
        groups[key(run)].append(position)
    return groups


def _rename_benchmark(runs: list[Run], where: Iterable[int], fields: Sequence[str]) -> None:
    for i in where:
        runs[i] = replace(runs[i], benchmark=_with(runs[i].benchmark, _shown(runs[i].setting, fields)).strip())


def _differing(all_fields: Sequence[Mapping[str, str]]) -> list[str]:
    """Fields that do not have one value in all."""
    first = all_fields[0]
    if all(fields == first for fields in all_fields):
        return []
    names = dict.fromkeys(name for fields in all_fields for name in fields)
    return [name for name in names if len({fields.get(name) for fields in all_fields}) > 1]


def _shown(values: Mapping[str, str], fields: Sequence[str]) -> str:
    return ", ".join(f"{name}={values.get(name, 'none')}" for name in fields)


def _with(name: str, more: str) -> str:
    return f"{name} ({more})"


def _by_home(run: Run, label: str) -> str:
    return label if run.naming == "folder" or run.system == "unnamed" else _with(run.system, label)


def _labels(homes: Sequence[Path]) -> list[str]:
    """Short names of different paths: as many of the last parts as tell them apart, without those that all share."""
    parts = [home.parts for home in homes]
    depth = next(
        (n for n in range(1, max(map(len, parts)) + 1) if len({p[-n:] for p in parts}) == len(parts)),
        max(map(len, parts)),
    )
    return ["/".join(p[-depth:]) for p in parts]


def _overlap(runs: Sequence[Run]) -> bool:
    """Whether different runs of two homes stand under one key."""
    seen: dict[Hashable, Run] = {}
    for run in runs:
        first = seen.setdefault((run.benchmark, run.instance, run.trial), run)
        if first.home != run.home and first.fingerprint() != run.fingerprint():
            return True
    return False
