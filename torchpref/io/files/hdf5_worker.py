"""Reads HDF5 in a process of its own, for a damaged file can keep the HDF5 library busy for ever, or end its process.

:mod:`torchpref.io.files.hdf5` starts it by the path of this file, so that it imports h5py and NumPy only. A request is a line
of JSON; an answer is ``MAGIC``, the length of a JSON object as 8 bytes, the object, and the bytes of one array where it has
``nbytes``. It ends when its input ends or, where the library keeps it busy, when the time of the request is over.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
from typing import Any, BinaryIO

MAGIC = b"tpH5"
_EPISODE = re.compile(r"episode_(\d{1,12})")
#: Kinds of NumPy types that are sent: truth values, integers and floating point numbers.
_NUMBERS = "biuf"


class RefusedError(Exception):
    """A file that is whole but not read; the arguments are the place within the file and the problem."""


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else prints does not get between the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = os.fdopen(os.dup(0), "rb")
    silent = open(os.devnull, "w")
    for line in requests:
        request = json.loads(line)
        limit = float(request["seconds"])

        def say(answer: dict[str, Any], data: Any = None, limit: float = limit) -> None:
            faulthandler.cancel_dump_traceback_later()
            _send(answers, answer, data)
            faulthandler.dump_traceback_later(limit, exit=True, file=silent)

        faulthandler.dump_traceback_later(limit, exit=True, file=silent)
        if not _answer(request, say):
            return
        faulthandler.cancel_dump_traceback_later()


def _send(stream: BinaryIO, answer: dict[str, Any], data: Any) -> None:
    if data is not None:
        answer |= {"dtype": data.dtype.str, "shape": data.shape, "nbytes": data.nbytes}
    text = json.dumps(answer).encode()
    stream.write(MAGIC + len(text).to_bytes(8, "little") + text)
    if data is not None and data.nbytes:
        stream.write(memoryview(data.reshape(-1)).cast("B"))
    stream.flush()


def _answer(request: dict[str, Any], say: Any) -> bool:
    """Answer one request; whether this process can go on, which it cannot where a damaged file stays open."""
    try:
        import h5py
    except ImportError as error:
        say({"kind": "missing", "problem": str(error), "more": True})
        return True
    try:
        with h5py.File(request["path"], "r") as file:
            _file(file, request, say, h5py)
        last: dict[str, Any] = {"kind": "end"}
    except RefusedError as error:
        last = {"kind": "refused", "place": error.args[0], "problem": error.args[1]}
    except Exception as error:
        last = {"kind": "damaged", "problem": str(error)}
    try:
        last["more"] = not h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)
    except Exception:
        last["more"] = False
    say(last)
    return bool(last["more"])


def _file(file: Any, request: dict[str, Any], say: Any, h5py: Any) -> None:
    names = sorted((int(match[1]), name) for name in file if (match := _EPISODE.fullmatch(name)))
    if not names:
        raise RefusedError("", "no group episode_0; is this a Minari data set?")
    say({"kind": "file", "dataset_id": _plain(file.attrs.get("dataset_id"))})
    for number, name in names:
        group = _own(file, name, name, h5py)
        if not isinstance(group, h5py.Group) or "rewards" not in group:
            say({"kind": "unreadable", "name": name})
            continue
        for key in request["arrays"]:
            if key in group:
                _array(group, key, name, request["most"], say, h5py)
        infos = _own(group, "infos", name, h5py) if "infos" in group else None
        if isinstance(infos, h5py.Group):
            for key in request["infos"]:
                if key in infos:
                    _array(infos, key, name, request["most"], say, h5py)
        say({"kind": "episode", "name": name, "number": number, "seed": _plain(group.attrs.get("seed"))})


def _own(group: Any, name: str, place: str, h5py: Any) -> Any:
    """A member of a group, unless it is a link to another file."""
    if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
        raise RefusedError(place, f"{name} is a link to another file, which is not followed")
    return group[name]


def _array(group: Any, name: str, place: str, most: int, say: Any, h5py: Any) -> None:
    """Send one array; of one that holds no numbers only the type and the shape."""
    data = _own(group, name, place, h5py)
    if not isinstance(data, h5py.Dataset):
        raise RefusedError(place, f"{name} is no array")
    if data.size is None or data.size > most or data.is_virtual or data.external:
        raise RefusedError(place, f"{name} of shape {data.shape} is not read (too large, or kept in another file)")
    if data.dtype.kind not in _NUMBERS:
        say({"kind": "array", "name": name, "shape": data.shape})
        return
    import numpy as np

    say({"kind": "array", "name": name}, np.ascontiguousarray(data[()]).reshape(data.shape))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    return value if isinstance(value, str | int | float) else None


if __name__ == "__main__":
    main()
