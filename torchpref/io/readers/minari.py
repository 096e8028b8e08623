"""Minari data sets: HDF5 with a group ``episode_{i}`` each.

Rewards, terminations and truncations have length T, observations and infos T + 1 (they begin with those of the reset), so the
first of a success flag in infos is not a step. The system is the data set, the instance the episode's seed where it has one,
else its number. Terminal rewards are often discounted by time already (MiniGrid), and no data set states its maximum: see the
options. Nothing outside the file is followed. Source: Farama-Foundation/Minari, ``minari/dataset/_storages/hdf5_storage.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchpref.errors import DataError, MissingExtraError
from torchpref.io.readers.base import Reader, Source
from torchpref.io.readers.episodes_common import (
    MAX_STEPS,
    OPTIONS,
    SUCCESS_KEYS,
    Rule,
    add_episode,
    episode_of,
    rule_of,
)
from torchpref.io.readers.naming import GENERIC, folder
from torchpref.io.readers.records import Notes, several, text_of
from torchpref.io.readers.runs import Runs

if TYPE_CHECKING:
    from torchpref.io.tidy import Tidy

_MAGIC = b"\x89HDF\r\n\x1a\n"
_EPISODE = re.compile(r"episode_(\d{1,12})")


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
    try:
        h5py = import_module("h5py")
    except ImportError as error:
        raise MissingExtraError("h5py", "minari") from error
    notes = Notes()
    runs = Runs(notes, "return")
    for source in sources:
        if companion(source):
            continue
        try:
            with h5py.File(source.path, "r") as file:
                _file(file, source.path, rule, runs, h5py)
        except (
            OSError,
            RuntimeError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            MemoryError,
        ) as error:
            if isinstance(error, DataError) or type(error).__module__.startswith("torchpref"):
                raise
            raise DataError(f"{source.path}: HDF5 that cannot be read ({error}); was it cut short?") from error
    return runs.tidy(several([source.path for source in sources]))


def _file(file: Any, path: Path, rule: Rule, runs: Runs, h5py: Any) -> None:
    names = sorted((int(match[1]), name) for name in file if (match := _EPISODE.fullmatch(name)))
    if not names:
        raise DataError(f"{path}: no group episode_0; is this a Minari data set?")
    system = rule.system or text_of(_plain(file.attrs.get("dataset_id"))) or folder(path, GENERIC)
    for number, name in names:
        where = f"{path}: {name}"
        group = _own(file, name, h5py)
        if not isinstance(group, h5py.Group) or "rewards" not in group:
            runs.notes.add("records_unreadable", "records that are no objects were left out", example=where)
            continue
        arrays = {
            key: _array(group, key, where, h5py) for key in ("rewards", "terminations", "truncations") if key in group
        }
        infos = _own(group, "infos", h5py) if "infos" in group else None
        if isinstance(infos, h5py.Group):
            arrays |= {key: _array(infos, key, where, h5py) for key in SUCCESS_KEYS if key in infos}
        seed = text_of(_plain(group.attrs.get("seed")))
        if seed is None:
            runs.notes.add(
                "episodes_without_seed",
                "episodes without a seed are matched by their number, which says nothing unless all systems ran the same",
                system=system,
                example=where,
            )
        add_episode(
            runs, rule, system, seed or str(number), episode_of(arrays, where), where, identity=f"{path}#{name}"
        )


def _own(group: Any, name: str, h5py: Any) -> Any:
    """A member of a group, unless it is a link to another file."""
    if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
        raise DataError(f"{group.file.filename}: {name} is a link to another file, which is not followed")
    return group[name]


def _array(group: Any, name: str, where: str, h5py: Any) -> Any:
    data = _own(group, name, h5py)
    if not isinstance(data, h5py.Dataset):
        raise DataError(f"{where}: {name} is no array")
    if data.size is None or data.size > MAX_STEPS + 1 or data.is_virtual or data.external:
        raise DataError(f"{where}: {name} of shape {data.shape} is not read (too large, or kept in another file)")
    return data[()]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int) else None


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
