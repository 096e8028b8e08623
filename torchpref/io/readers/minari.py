"""Minari data sets: HDF5 with a group ``episode_{i}`` each.

Rewards, terminations and truncations have length T, observations and infos T + 1 (they begin with those of the reset), so the
first of a success flag in infos is not a step. The system is the data set, the instance the episode's seed where it has one,
else its number. Terminal rewards are often discounted by time already (MiniGrid), and no data set states its maximum: see the
options. Nothing outside the file is followed. Source: Farama-Foundation/Minari, ``minari/dataset/_storages/hdf5_storage.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchpref.errors import MissingExtraError
from torchpref.io.files.hdf5 import answers
from torchpref.io.files.source import Source
from torchpref.io.logs.episodes import MAX_STEPS, OPTIONS, SUCCESS_KEYS, Rule, add_episode, episode_of, rule_of
from torchpref.io.logs.naming import GENERIC, folder
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_MAGIC = b"\x89HDF\r\n\x1a\n"
_ARRAYS = ("rewards", "terminations", "truncations")


def detect(source: Source) -> bool:
    """An HDF5 file."""
    return source.head.startswith(_MAGIC)


def companion(source: Source) -> bool:
    """Minari's ``metadata.json``."""
    return "minari_version" in source.outline.keys() and "dataset_id" in source.outline.keys()


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per episode."""
    READER.check_options(options)
    rule = rule_of(options)
    if find_spec("h5py") is None:
        raise MissingExtraError("h5py", "minari")
    notes = Notes()
    runs = Runs(notes, "return")
    for source in sources:
        if not companion(source):
            runs.reading(source.path)
            with closing(answers(source.path, _ARRAYS, SUCCESS_KEYS, MAX_STEPS + 1)) as found:
                _file(found, source.path, rule, runs)
    return runs.tidy(several([source.path for source in sources]))


def _file(found: Iterable[tuple[Mapping[str, Any], Any]], path: Path, rule: Rule, runs: Runs) -> None:
    """One run per episode among the answers about a file."""
    system = ""
    arrays: dict[str, Any] = {}
    for answer, data in found:
        if answer["kind"] == "file":
            system = rule.system or text_of(answer["dataset_id"]) or folder(path, GENERIC)
        elif answer["kind"] == "array":
            arrays[answer["name"]] = data
        elif answer["kind"] == "unreadable":
            where = f"{path}: {answer['name']}"
            runs.notes.add("records_unreadable", "records that are no objects were left out", example=where)
        else:
            where = f"{path}: {answer['name']}"
            seed = text_of(answer["seed"])
            if seed is None:
                runs.notes.add(
                    "episodes_without_seed",
                    "episodes without a seed are matched by their number, which says nothing unless all systems ran the "
                    "same",
                    system=system,
                    example=where,
                )
            instance = seed or str(answer["number"])
            identity = f"{path}#{answer['name']}"
            add_episode(runs, rule, system, instance, episode_of(arrays, where), where, identity=identity)
            arrays = {}


READER = Reader(
    name="minari",
    title="Minari data sets (HDF5)",
    gives=("steps", "reward per step"),
    detect=detect,
    read=read,
    companion=companion,
    options=OPTIONS,
    extra="minari",
)
