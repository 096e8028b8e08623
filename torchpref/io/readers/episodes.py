"""Gymnasium episodes and tensors of returns: ``.npz``, and ``.pt`` loaded with weights only.

Two layouts:

- one episode: ``rewards`` [T] with, if known, ``terminations``, ``truncations`` and ``success``, each [T] or [T + 1] (then
  beginning with the reset); scalars or texts ``system``, ``instance`` or ``seed``, ``trial``. The system is the folder and
  the instance the name of the file where they are not given.
- a batch: ``returns`` (levels so far, in [0, 1]) or ``rewards`` (increments, with ``max_score``) of shape [instance, system,
  step] or [instance, system, trial, step] with, if known, ``lengths``, ``present``, ``truncated`` without the step axis,
  clocks named ``seconds``, ``tokens``, ``cost``, ``turns``, ``time`` of the shape of the returns, and the names ``systems``,
  ``instances`` and ``benchmarks``.

Pickles are never loaded: arrays of objects and ``.pt`` files that need more than tensors are refused.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchpref.errors import DataError
from torchpref.io.files.archives import Archive, first_member
from torchpref.io.files.source import Source
from torchpref.io.logs.episodes import OPTIONS, Rule, add_episode, episode_of, floats, rule_of
from torchpref.io.logs.naming import folder, folder_path
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, file_digest, integer_of, several, text_of
from torchpref.io.logs.runs import Runs
from torchpref.runs.tidy.schema import CLOCKS

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

MAX_ELEMENTS = 1 << 28


def detect(source: Source) -> bool:
    """A zip archive of arrays or of tensors."""
    name = first_member(source.head)
    return name.endswith((".npy", "/data.pkl", "/.format_version"))


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per episode, or per cell of a batch."""
    READER.check_options(options)
    rule = rule_of(options)
    notes = Notes()
    runs = Runs(notes, "return")
    for source in sources:
        numpy = first_member(source.head).endswith(".npy")
        arrays = _npz(source.path) if numpy else _pt(source.path)
        leading = arrays.get("returns", arrays.get("rewards"))
        if not isinstance(leading, np.ndarray) or leading.ndim == 0:
            raise DataError(
                f"{source.path}: neither 'returns' nor 'rewards' among its arrays ({', '.join(sorted(arrays)) or 'none'})"
            )
        if leading.ndim > 1:
            _batch(arrays, source.path, rule, runs)
        elif "rewards" in arrays:
            _episode(arrays, source.path, rule, runs)
        else:
            raise DataError(
                f"{source.path}: 'returns' has one axis; it needs [instance, system, step] or a trial axis before step"
            )
    return runs.tidy(several([source.path for source in sources]))


def _npz(path: Path) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    with Archive(path) as archive:
        for name in archive.infos:
            if name.endswith(".npy"):
                try:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(
                        io.BytesIO(archive.read(name)), allow_pickle=False
                    )
                except (
                    ValueError,
                    EOFError,
                    TypeError,
                    SyntaxError,
                    OverflowError,
                    MemoryError,
                    UnicodeDecodeError,
                ) as error:
                    if isinstance(error, DataError):
                        raise
                    raise DataError(
                        f"{path}: {name} cannot be read ({error}); pickled arrays are never loaded"
                    ) from error
    return arrays


def _pt(path: Path) -> dict[str, Any]:
    import torch

    with Archive(path) as archive:
        for name, info in archive.infos.items():
            if info.compress_type != zipfile.ZIP_STORED:
                raise DataError(f"{path}: {name} is compressed, which torch.save never does; refused")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DataError(
            f"{path}: holds more than tensors, and pickles are never loaded; save a dict of tensors, or .npz"
        ) from error
    except Exception as error:  # a damaged file fails in many ways inside torch
        raise DataError(f"{path}: cannot be loaded ({str(error)[:200]}); is it damaged?") from error
    if isinstance(content, torch.Tensor):
        content = {"returns": content}
    if not isinstance(content, dict):
        raise DataError(f"{path}: holds a {type(content).__name__}; save a dict of tensors with 'returns' or 'rewards'")
    return {str(key): _plain(value, path, key) for key, value in content.items()}


def _plain(value: Any, path: Path, key: object) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        try:
            if value.numel() > MAX_ELEMENTS:
                raise DataError(f"{path}: {key} has {value.numel():,} elements, more than {MAX_ELEMENTS:,}")
            tensor = value.detach().to_dense() if value.layout != torch.strided else value.detach()
            array = (tensor.double() if tensor.is_floating_point() else tensor).numpy()
        except (RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: {key} cannot be read as an array ({error})") from error
        return array
    return value


def _name(arrays: Mapping[str, Any], key: str) -> str | None:
    value = arrays.get(key)
    if isinstance(value, np.ndarray):
        value = value.item() if value.size == 1 else None
    return text_of(value)


def _episode(arrays: Mapping[str, Any], path: Path, rule: Rule, runs: Runs) -> None:
    named = rule.system or _name(arrays, "system")
    system = named or folder(path)
    runs.reading(path)
    instance = _name(arrays, "instance") or _name(arrays, "seed") or path.stem
    trial = integer_of(_name(arrays, "trial"))
    add_episode(
        runs,
        rule,
        system,
        instance,
        episode_of(arrays, path),
        path,
        trial=trial,
        identity=file_digest(path),
        home=None if named else folder_path(path),
        naming="whole" if named else "folder",
    )


def _names(arrays: Mapping[str, Any], key: str, size: int, path: Path) -> list[str]:
    given = arrays.get(key)
    if given is None:
        return [str(number) for number in range(size)]
    names = [
        text_of(name)
        for name in (
            given.reshape(-1).tolist()
            if isinstance(given, np.ndarray)
            else given
            if isinstance(given, list | tuple)
            else [given]
        )
    ]
    if len(names) != size or None in names:
        raise DataError(f"{path}: {key} has {len(names)} names for {size}; give a name for each")
    return [str(name) for name in names]


def _cells(arrays: Mapping[str, Any], key: str, shape: tuple[int, ...], path: Path) -> NDArray[np.float64] | None:
    if arrays.get(key) is None:
        return None
    array = np.asarray(arrays[key])
    if array.shape not in (shape, shape[:2] + shape[3:]):
        raise DataError(f"{path}: {key} has shape {list(array.shape)}; expected {list(shape)}")
    if array.dtype.kind not in "biuf":
        raise DataError(f"{path}: {key} holds {array.dtype}, not numbers")
    return array.astype(np.float64).reshape(shape)


def _batch(arrays: Mapping[str, Any], path: Path, rule: Rule, runs: Runs) -> None:
    key = "returns" if "returns" in arrays else "rewards"
    values = np.asarray(arrays[key])
    if values.ndim not in (3, 4):
        raise DataError(
            f"{path}: {key} has shape {list(values.shape)}; expected [instance, system, step], or with a trial axis before step"
        )
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: {key} holds {values.dtype}, not numbers")
    values = values.astype(np.float64)
    if values.ndim == 3:
        values = values[:, :, None]
    runs.reading(path)
    n, m, trials, steps = values.shape
    shape, whole = (n, m, trials), values.shape
    lengths = _cells(arrays, "lengths", shape, path)
    if lengths is not None and not (np.isfinite(lengths).all() and (lengths >= 0).all() and (lengths <= steps).all()):
        raise DataError(f"{path}: lengths have to lie between 0 and {steps}")
    present, truncated = _cells(arrays, "present", shape, path), _cells(arrays, "truncated", shape, path)
    clocks = {name: cells for name in CLOCKS if (cells := _cells(arrays, name, whole, path)) is not None}
    systems, instances = _names(arrays, "systems", m, path), _names(arrays, "instances", n, path)
    benchmarks = _names(arrays, "benchmarks", n, path) if "benchmarks" in arrays else [""] * n
    for i in range(n):
        for s in range(m):
            for trial in range(trials):
                if present is not None and not present[i, s, trial]:
                    continue
                where = f"{path}: {systems[s]} on {instances[i]}, trial {trial}"
                length = steps if lengths is None else int(lengths[i, s, trial])
                run = floats(values[i, s, trial, :length], where, key)
                if key == "rewards":
                    if rule.max_score is None:
                        raise DataError(
                            f"{path}: 'rewards' are increments; give max_score=, or save the levels as 'returns'"
                        )
                    run = np.cumsum(run) / rule.max_score
                times = {name: column[i, s, trial, :length] for name, column in clocks.items()}
                points = [
                    {
                        "steps": float(t + 1),
                        **{name: _time(column[t], where, runs.notes) for name, column in times.items()},
                        "return": float(run[t]),
                    }
                    for t in range(length)
                ]
                stopped = None if truncated is None else bool(truncated[i, s, trial])
                runs.add(
                    systems[s],
                    instances[i],
                    points,
                    benchmark=benchmarks[i],
                    trial=trial,
                    truncated=stopped,
                    identity=(file_digest(path), i, s),
                )


def _time(value: float, where: str, notes: Notes) -> float | None:
    return None if np.isnan(value) else notes.clock(float(value), where, "time")


READER = Reader(
    name="episodes",
    title="Gymnasium episodes and tensors (.npz, .pt)",
    gives=("steps", "seconds", "tokens", "cost", "turns", "time"),
    detect=detect,
    read=read,
    options=OPTIONS,
)
