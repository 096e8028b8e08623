"""Inspect logs: ``.eval`` archives and ``.json`` files, read without ``inspect_ai``.

The system is the model, and the solver where the log names one; the benchmark the task, the instance the sample's id, the
trial its epoch. Scores are numbers, truth values, the letters C, P, I and N (1, 1/2, 0, 0), or objects of these; of several
scorers one is chosen with ``scorer`` (``name`` or ``name.key``), the first unless one is named. Intermediate scores give
progress at their working time. ``seconds`` are working time, ``turns`` the model's turns, ``tokens`` all tokens used. A sample
with an error and without a score has no outcome; one that a limit stopped is truncated. Source: inspect_ai
``log/_log.py``, log version 2.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from torchpref.errors import DataError, UsageError
from torchpref.io.files.archives import Archive, first_member
from torchpref.io.files.documents import decode, parse, read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, positive_option, several, text_of, total
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
#: Roles of models that are not the agent.
_JUDGES = ("grader", "judge", "scorer", "user", "user_simulator", "simulator")
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MEMBER = re.compile(r"samples/.+\.json")
_FIRST = re.compile(r"_journal/|header\.json$|samples/|summaries\.json$|reductions\.json$")


def detect(source: Source) -> bool:
    """An archive with a journal or samples, or an object with ``eval`` that holds task and model."""
    if source.head.startswith(b"PK\x03\x04"):
        return _FIRST.match(first_member(source.head)) is not None
    outline = source.outline
    return {"version", "status", "eval"} <= outline.keys() or (
        outline.has("eval", "task") and outline.has("eval", "model")
    )


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per sample and epoch of each log."""
    READER.check_options(options)
    scorer = options.get("scorer")
    if scorer is not None and not isinstance(scorer, str):
        raise UsageError(f"scorer has to be the name of a scorer, not {scorer!r}")
    notes = Notes()
    most = positive_option(options, "max_score") or 1.0
    runs = Runs(notes, "score")
    for source in sources:
        if source.head.startswith(b"PK"):
            with Archive(source.path) as archive:
                header = _header(archive)
                samples = (
                    (name, parse(decode(archive.read(name), name), f"{source.path}: {name}"))
                    for name in _members(archive)
                )
                _log(source, header, samples, scorer, most, runs)
        else:
            log = read_object(source.path, notes.repeated(source.path))
            listed = list_at(log, "samples")
            _log(source, log, ((f"sample {n}", value) for n, value in enumerate(listed, 1)), scorer, most, runs)
    return runs.tidy(several([source.path for source in sources]))


def _members(archive: Archive) -> list[str]:
    return [name for name in archive.infos if _MEMBER.fullmatch(name)]


def _header(archive: Archive) -> dict[str, Any]:
    """The log without its samples; of a log that was never finished, what it began with."""
    for name in ("header.json", "_journal/start.json"):
        if name in archive.infos:
            header = parse(decode(archive.read(name), f"{archive.path}: {name}"), f"{archive.path}: {name}")
            if isinstance(header, dict):
                return header if name == "header.json" else {"status": "started", **header}
            raise DataError(f"{archive.path}: {name} is no object; is this an Inspect log?")
    raise DataError(f"{archive.path}: neither header.json nor _journal/start.json; is this an Inspect log?")


def _log(
    source: Source,
    log: Mapping[str, Any],
    samples: Iterator[tuple[str, Any]],
    scorer: str | None,
    most: float,
    runs: Runs,
) -> None:
    notes = runs.notes
    spec = dict_at(log, "eval")
    names = [text_of(spec.get("model")), text_of(spec.get("solver"))]
    system = " + ".join(name for name in names if name) or "unnamed"
    benchmark = text_of(spec.get("task")) or ""
    status = text_of(log.get("status")) or "not given"
    if status != "success":
        notes.add(
            "logs_not_finished",
            "logs of evaluations that did not end well: the samples that have a score are read",
            system=system,
            example=f"{source.path}: status {status}",
        )
    runs.reading(source.path)
    judges = _judges(spec, log)
    whose = {
        "home": source.path.absolute().parent if names[0] else source.path.absolute(),
        "naming": "whole" if names[0] else "partial",
        "details": {
            name: _short(
                spec.get(name) or (log.get("plan") or {}).get(name) if isinstance(log.get("plan"), dict) else None
            )
            for name in ("solver_args", "model_args", "agent_args")
        },
        "setting": {
            "dataset": text_of(dict_at(spec, "dataset").get("name")),
            "version": text_of(spec.get("task_version")) if spec.get("task_version") not in (0, "0") else None,
            **{str(name): _short(value) for name, value in dict_at(spec, "task_args").items()},
        },
    }
    found = 0
    for name, value in samples:
        where = f"{source.path}: {name}"
        sample = notes.record(value, where)
        if sample is not None:
            found += 1
            _sample(sample, where, system, benchmark, scorer, most, runs, judges, whose)
    if not found:
        notes.add(
            "logs_without_samples",
            "logs without samples (written with log_samples off, or never begun)",
            system=system,
            example=source.path,
        )


def _short(value: Any) -> str | None:
    if value in (None, "", {}, []):
        return None
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= 60 else f"{text[:40]}… {digest(text)[:6]}"


def _judges(spec: Mapping[str, Any], log: Mapping[str, Any]) -> set[str]:
    """Models that grade and do not act: those of the role grader, unless the agent is the same model."""
    roles = dict_at(spec, "model_roles")
    names = {text_of(dict_at(roles, role).get("model")) or text_of(roles.get(role)) for role in _JUDGES}
    return {name for name in names if name} - {text_of(spec.get("model")) or ""}


def _sample(
    sample: Mapping[str, Any],
    where: str,
    system: str,
    benchmark: str,
    scorer: str | None,
    most: float,
    runs: Runs,
    judges: set[str],
    whose: Mapping[str, Any],
) -> None:
    notes = runs.notes
    instance = text_of(sample.get("id"))
    if instance is None:
        notes.add("records_without_instance", "records that name no instance were left out", example=where)
        return
    scores = dict_at(sample, "scores") or ({"score": sample["score"]} if isinstance(sample.get("score"), dict) else {})
    name, key = _choose(scorer, scores, where, system, notes)
    value = _value(dict_at(scores, name).get("value") if name else None, key, where, name, notes)
    if sample.get("invalidation") is not None:
        notes.add(
            "samples_invalidated",
            "samples that were marked as invalid have no outcome",
            system=system,
            example=f"{where}: {str(dict_at(sample, 'invalidation').get('reason'))[:80]}",
        )
        value = None
    failed = sample.get("error") is not None
    if failed:
        notes.add(
            "samples_with_errors",
            "samples that ended with an error; those without a score have no outcome",
            system=system,
            example=f"{where}: {str(dict_at(sample, 'error').get('message'))[:80]}",
        )
    elif value is None and sample.get("invalidation") is None:
        notes.add("samples_without_score", "samples without a score that can be read", system=system, example=where)
    events = [
        event
        for event in list_at(sample, "events") or list_at(sample, "transcript", "events")
        if isinstance(event, dict)
    ]
    acts, judged = _own(events, judges)
    end = _end(sample, acts, where, notes, judges, judged)
    points = [] if value is None else _progress(acts, name, key, len(scores) == 1, where, notes, judges)
    points.append({**end, "score": value})
    for clock in ("seconds", "turns", "tokens", "cost"):  # the end is no earlier than what came before it
        latest = max((point[clock] for point in points if point.get(clock) is not None), default=None)
        if points[-1][clock] is not None:
            points[-1][clock] = latest
    epoch = notes.whole(sample.get("epoch"), where, "epoch")
    runs.add(
        system,
        instance,
        points,
        benchmark=benchmark,
        trial=1 if epoch is None else epoch,
        truncated=sample.get("limit") is not None,
        max_score=most,
        identity=digest(sample),
        content=digest(sample["input"]) if sample.get("input") else None,
        **whose,
    )


def _own(
    events: Sequence[Mapping[str, Any]], judges: set[str]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The events of the agent, and the model events of those that judge it or play its user.

    A model event is a judge's where its span, or one around it, is of type scorer, or where its role is that of a judge.
    """
    spans: dict[Any, tuple[Any, bool]] = {}
    own: list[Mapping[str, Any]] = []
    judged: list[Mapping[str, Any]] = []
    for event in events:
        kind = event.get("event")
        if kind == "span_begin" and isinstance(event.get("id"), str):
            above = event.get("parent_id")
            inside = spans[above][1] if isinstance(above, str) and above in spans else False
            spans[event["id"]] = (above, inside or event.get("type") in ("scorer", "scorers"))
        elif kind == "model":
            span = event.get("span_id")
            scoring = isinstance(span, str) and span in spans and spans[span][1]
            role, model = event.get("role"), event.get("model")
            if scoring or role in _JUDGES or (isinstance(model, str) and model in judges):
                judged.append(event)
                continue
        own.append(event)
    return own, judged


def _choose(
    scorer: str | None, scores: Mapping[str, Any], where: str, system: str, notes: Notes
) -> tuple[str, str | None]:
    """The name of the scorer to read and the key within its value."""
    if scorer is not None:
        if scorer in scores:
            return scorer, None
        name, dot, key = scorer.rpartition(".")
        if dot and name in scores:
            return name, key
        if scores:
            raise UsageError(f"{where}: no scorer is called {scorer!r}; there are: {', '.join(map(str, scores))}")
        return "", None
    if len(scores) > 1:
        notes.add(
            "several_scorers",
            f"samples with several scores: the first is read; choose with scorer= (one of {', '.join(map(str, scores))})"[
                :400
            ],
            system=system,
            example=where,
        )
    return next(iter(scores), ""), None


def _value(value: Any, key: str | None, where: str, name: str, notes: Notes) -> float | None:
    """A score as a number."""
    if isinstance(value, dict):
        if not value:
            return None
        if key is None and len(value) != 1:
            raise UsageError(
                f"{where}: the score of {name!r} is an object; choose one of its values with scorer=, such as "
                f"{', '.join(f'{name}.{k}' for k in list(value)[:8]) or name}"
            )
        if key is not None and key not in value:
            raise UsageError(f"{where}: the score of {name!r} has no {key!r}; it has: {', '.join(map(str, value))}")
        value = value[key] if key is not None else next(iter(value.values()))
    elif key is not None and value is not None:  # Inspect writes NaN for a sample that was not scored
        if not (isinstance(value, float) and math.isnan(value)):
            notes.number([], where, f"score {name}.{key}")
        return None
    elif isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, str):
        with suppress(KeyError):
            return _LETTERS[value]
        if value.lower() in _WORDS:
            return _WORDS[value.lower()]
    return notes.number(value, where, f"score {name}")


def _used(usage: Any, field: str, where: str, notes: Notes, without: Collection[str] = ()) -> float | None:
    """A field of the usage, over all models but some."""
    models = (value for name, value in usage.items() if name not in without) if isinstance(usage, dict) else ()
    return total(notes.clock(model.get(field), where, field) for model in models if isinstance(model, dict))


def _end(
    sample: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    where: str,
    notes: Notes,
    judges: set[str],
    judged: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    working = notes.clock(sample.get("working_time"), where, "working_time")
    seconds = working if working is not None else notes.clock(sample.get("total_time"), where, "total_time")
    turns = notes.clock(sample.get("turn_count"), where, "turn_count")
    answers = sum(event.get("event") == "model" for event in events)
    acting = {text_of(event.get("model")) for event in events if event.get("event") == "model"}
    grading = {event["model"] for event in judged if isinstance(event.get("model"), str)} | judges
    usage = {}
    for clock, field in (("tokens", "total_tokens"), ("cost", "total_cost")):
        # A judge that is another model is left out by its name; one that is the agent's own model call by call.
        used = _used(sample.get("model_usage"), field, where, notes, grading - acting)
        same = [event for event in judged if text_of(event.get("model")) in acting]
        if used is not None and same:
            spent = [notes.clock(dict_at(event, "output", "usage").get(field), where, field) for event in same]
            used = None if None in spent else max(used - (total(spent) or 0.0), 0.0)
        usage[clock] = used
    took = total(notes.clock(event.get("working_time"), where, "working_time") for event in judged)
    if seconds is not None and took is not None:
        seconds = max(seconds - took, 0.0)
    if judged:
        notes.add(
            "judges_not_counted",
            "calls of models that grade or play the user are not the agent's turns, tokens, cost or time; calls",
            severity="note",
            count=len(judged),
            example=where,
        )
    counted = turns if turns is not None and not judged else float(answers) if answers else None
    return {"seconds": seconds, "turns": counted or None, **usage}


def _progress(
    events: Sequence[Mapping[str, Any]],
    name: str,
    key: str | None,
    alone: bool,
    where: str,
    notes: Notes,
    judges: set[str],
) -> list[dict[str, Any]]:
    """The intermediate scores of the scorer that is read."""
    points: list[dict[str, Any]] = []
    answers = 0
    for event in events:
        answers += event.get("event") == "model"
        if event.get("event") != "score" or event.get("intermediate") is not True:
            continue
        by = text_of(event.get("scorer"))
        if by != name and not (by is None and alone):
            continue
        value = _value(dict_at(event, "score").get("value"), key, where, name, notes)
        if value is not None:
            points.append(
                {
                    "seconds": notes.clock(event.get("working_start"), where, "working_start"),
                    "turns": float(answers) if answers else None,
                    "tokens": _used(event.get("model_usage"), "total_tokens", where, notes, judges),
                    "cost": _used(event.get("model_usage"), "total_cost", where, notes, judges),
                    "score": value,
                }
            )
    return points


READER = Reader(
    name="inspect",
    title="Inspect logs (.eval and .json)",
    gives=("seconds", "turns", "tokens", "cost", "intermediate scores"),
    detect=detect,
    read=read,
    options={
        "scorer": "which scorer to read: its name, or name.key where its value is an object",
        "max_score": "what a full score is, where scores are not in [0, 1]",
    },
    extra="inspect",
)
