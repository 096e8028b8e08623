"""2,000 damaged logs for each reader: no exception but the project's own, and no case that takes two seconds.

Hypothesis draws seeds, each of which makes ten cases; a failure names its edits. Half the cases damage bytes (flip, cut,
repeat, insert), half the JSON's structure (replace, remove, double, wrap), so that both the parsing and what comes after it
are reached.
"""

from __future__ import annotations

import io
import json
import random
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reader_logs import DATA, LOGS, log

from torchpref.errors import TorchPrefError, TorchPrefWarning
from torchpref.io.detect import detect_format
from torchpref.io.files import hdf5
from torchpref.io.files.archives import Archive
from torchpref.io.files.source import Source
from torchpref.io.readers import reader_named
from torchpref.runs.tidy.build import build

CASES = 2_000
CASES_PER_SEED = 10
SECONDS = 2.0
OPTIONS: dict[str, dict[str, Any]] = {
    "minari": {"max_score": 1},
    "episodes": {"max_score": 1},
    "tau2": {"progress": "actions"},
}
# The one file that is damaged, and the companions that stay as they are.
FILES: dict[str, tuple[str, ...]] = {
    "agentboard": ("alpha/logs/tool-query.jsonl",),
    "tales": ("gpt-x/ZorkOne/a0_s20241001.jsonl",),
    "theagentcompany": ("one/results/eval_ds-sql-image.json", "one/README.md"),
    "openhands-index": ("results/model-1/instance_results/swe-bench.json", "results/model-1/scores.json"),
    "openhands": ("m_maxiter_100/output.jsonl", "m_maxiter_100/output.report.json"),
    "swe-agent": ("trajectories/run-1/x-1/x-1.traj", "trajectories/run-1/results.json"),
    "swebench-reports": ("alpha.run1.json",),
    "verifiers": ("env--m1/aaa/results.jsonl", "env--m1/aaa/metadata.json"),
    "promptfoo": ("output.json",),
    "swebench": ("leaderboards.json",),
    "terminal-bench": ("r1/results.json",),
    "harbor": ("chain__ddd/result.json",),
    "atif": ("weather__aaa/agent/trajectory.json", "report.json"),
    "inspect": ("small.json",),
    "tau2": ("results.json",),
    "tau-bench": ("tool-calling-m-1.json",),
    "intercode": ("ic_bash_multiturn_10_turns_fs_1.json",),
    "minari": ("main_data.hdf5",),
    "episodes": ("batch.npz",),
}
TOKENS = (
    *(b"null", b"NaN", b"Infinity", b"-1", b"1e400", b'""', b"[]", b"{}", b"[[", b"}", b"true", b'"x"', b",", b":"),
    *(
        b"9" * 5000,
        b"[" * 3000,
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x00",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\r\n",
        b'{"a":' * 1500,
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e300, 1e-300, 10**30, 2**63, float("nan"), float("inf"), float("-inf")),
    *("", "x", "0.5", "nan", "1e999", "C", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "\ud800", "\x00", "a" * 3000),
    *([], {}, [[]], [None], [0.5, "x", None], {"": None}, {"value": {"a": {"b": []}}}, [[1, 0.5]], {"resolved": 3}),
)  # fmt: skip
Edit = tuple[int, int, int]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) in a JSON value."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        holder = pending.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list) and holder[key]:
                pending.append(holder[key])
    return found


def damage_structure(text: str, edit: Edit) -> str:
    """One value of the JSON in a text replaced, removed, doubled or wrapped."""
    kind, where, what = edit
    try:
        values = [json.loads(text)]
        many = False
    except (ValueError, RecursionError):
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
            many = True
        except (ValueError, RecursionError):
            return text
    found = places(values)
    if not found:
        return text
    holder, key = found[where % len(found)]
    if kind % 4 == 0:
        holder[key] = VALUES[what % len(VALUES)]
    elif kind % 4 == 1:
        del holder[key]
    elif kind % 4 == 2:
        if isinstance(holder, list):
            holder.insert(key, holder[key])
        else:
            holder[f"{key}{what % 3 or ''}"] = holder[key]
            holder[key] = VALUES[what % len(VALUES)]
    else:
        holder[key] = [holder[key]] if what % 2 else {"x": holder[key]}
    try:
        return "\n".join(json.dumps(value) for value in values) if many or len(values) != 1 else json.dumps(values[0])
    except RecursionError:
        return text


def damage_bytes(content: bytes, edit: Edit) -> bytes:
    """A few bytes changed, removed, repeated or put in, or the end cut off."""
    kind, where, what = edit
    if not content:
        return content
    at = where % len(content)
    length = what % 64 + 1
    match kind % 6:
        case 0:
            return content[:at] + bytes([content[at] ^ (1 << what % 8)]) + content[at + 1 :]
        case 1:
            return content[:at] + content[at + length :]
        case 2:
            return content[: at + length] + content[at:]
        case 3:
            return content[:at] + TOKENS[what % len(TOKENS)] + content[at:]
        case 4:
            return content[:at] + TOKENS[what % len(TOKENS)] + content[at + length :]
        case _:
            return content[:at]


def damaged(content: bytes, changes: list[Edit]) -> bytes:
    for edit in changes:
        if edit[0] < 8:
            content = damage_bytes(content, edit)
        else:
            try:
                content = damage_structure(content.decode("utf-8"), edit).encode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                content = damage_bytes(content, edit)
    return content


def small_inspect(folder: Path) -> None:
    """The JSON log without what no reader looks at."""
    record = json.loads((DATA / "older.json").read_text())
    for sample in record["samples"]:
        sample["events"] = [
            {
                key: event.get(key)
                for key in ("event", "working_start", "intermediate", "score", "scorer", "model_usage")
            }
            for event in sample["events"]
            if event["event"] in ("score", "model")
        ]
        for key in ("messages", "attachments", "events_data", "store", "output"):
            sample.pop(key, None)
    (folder / "small.json").write_text(
        json.dumps({key: record[key] for key in ("version", "status", "eval", "samples")})
    )


def prepared(tmp: Path, name: str) -> list[Path]:
    folder = log(name, tmp)
    if name == "inspect":
        small_inspect(folder)
    return [folder / file for file in FILES[name]]


def attempt(name: str, paths: list[Path], building: bool) -> None:
    """Read the files as ``auto`` would and as the format by name, and if asked build runs of what was read."""
    started = time.process_time()  # not the wall clock: other work may hold the machine
    try:
        sources = [Source.open(path, path.parent) for path in paths]
        reader = reader_named(name)
        try:
            found = detect_format(sources)
            if found.reader is not None:
                tidy = found.reader.read(found.sources, OPTIONS.get(found.reader.name, {}))
                if building:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", TorchPrefWarning)
                        build(tidy, clock=None, strict=False, zero_time="unknown", resolution=None, missing="exclude")
        except TorchPrefError:
            pass
        if not reader.detect(sources[0]):
            reader.read(sources, OPTIONS.get(name, {}))
    except TorchPrefError as error:
        assert str(error)
    spent = time.process_time() - started
    assert spent < SECONDS, f"took {spent:.1f} s"


def run(name: str, paths: list[Path], change: Callable[[bytes, list[Edit]], bytes]) -> None:
    target, content = paths[0], paths[0].read_bytes()

    @settings(
        max_examples=CASES // CASES_PER_SEED, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(st.integers(0, 2**63))
    def cases(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(CASES_PER_SEED):
            edits = [
                (draw.randrange(16), draw.randrange(2**32), draw.randrange(2**16)) for _ in range(draw.randint(1, 4))
            ]
            target.write_bytes(change(content, edits))
            try:
                attempt(name, paths, building=not draw.randrange(40))
            except BaseException as error:
                error.add_note(f"edits = {edits}")
                raise

    cases()


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: files are written tens of thousands of times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(LOGS) - {"minari"}))
def test_damaged_logs(quick: Path, name: str) -> None:
    run(name, prepared(quick, name), damaged)


@pytest.mark.slow
def test_damaged_hdf5(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5, "SECONDS", 3.0)
    run("minari", prepared(quick, "minari"), damaged)


@pytest.mark.slow
def test_damaged_samples_within_an_archive(quick: Path) -> None:
    """An .eval whose members are whole but hold damaged JSON."""
    with Archive(DATA / "limited.eval") as archive:
        members = {name: archive.read(name) for name in archive.infos}
    target = quick / "x.eval"
    sample = next(name for name in members if name.startswith("samples/"))

    def change(content: bytes, changes: list[Edit]) -> bytes:
        which = sample if changes[0][1] % 4 else "header.json"
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in (which, *({sample, "header.json"} - {which})):
                archive.writestr(name, damaged(members[name], changes) if name == which else members[name])
        return buffer.getvalue()

    target.write_bytes(b"PK")
    run("inspect", [target], change)
