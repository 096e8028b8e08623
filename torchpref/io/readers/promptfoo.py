"""promptfoo's ``output.json``: one result per test, provider and prompt.

The system is the provider's label or id, with the prompt's label where results of one provider come from several prompts; the
instance the test's description or its number, told apart by its variables. The outcome is ``success``; a result with
``failureReason`` 2 (an error, not a failed assertion) has none. ``seconds`` are the latency, ``tokens`` those of the response,
without those of graders. Source: promptfoo ``src/types/index.ts``, result version 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchpref.io.files.documents import read_object
from torchpref.io.files.source import Source
from torchpref.io.logs.reader import Reader
from torchpref.io.logs.records import Notes, dict_at, digest, list_at, several, text_of
from torchpref.io.logs.runs import Runs

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy

#: ``failureReason`` of a result that ended with an error.
_ERROR = 2


def detect(source: Source) -> bool:
    """An object with ``results.results`` of providers."""
    outline = source.outline
    return (
        outline.kind == "object" and "results" in outline.keys() and outline.has("results", "results", "*", "provider")
    )


def read(sources: Sequence[Source], options: Mapping[str, Any]) -> Tidy:
    """One run per result."""
    READER.check_options(options)
    notes = Notes()
    runs = Runs(notes, "success")
    for source in sources:
        runs.reading(source.path)
        for number, value in enumerate(list_at(read_object(source.path), "results", "results"), 1):
            where = f"{source.path}, result {number}"
            record = notes.record(value, where)
            if record is not None:
                _add(record, where, source, runs)
    return runs.tidy(several([source.path for source in sources]))


def _add(record: Mapping[str, Any], where: str, source: Source, runs: Runs) -> None:
    notes = runs.notes
    provider = record.get("provider")
    named = text_of(provider)
    if isinstance(provider, dict):
        named = text_of(provider.get("label")) or text_of(provider.get("id"))
    instance = text_of(dict_at(record, "testCase").get("description")) or text_of(record.get("testIdx"))
    if instance is None:
        notes.add("records_without_instance", "records that name no instance were left out", example=where)
        return
    success = notes.truth(record.get("success"), where, "success")
    if notes.number(record.get("failureReason"), where, "failureReason") == _ERROR:
        notes.add(
            "results_with_errors",
            "results that ended with an error have no outcome",
            system=named,
            example=f"{where}: {str(record.get('error'))[:80]}",
        )
        success = None
    latency = notes.clock(record.get("latencyMs"), where, "latencyMs")
    variables = dict_at(record, "vars")
    point = {
        "success": success,
        "seconds": None if latency is None else latency / 1000,
        "tokens": notes.clock(dict_at(record, "response", "tokenUsage").get("total"), where, "tokens"),
        "cost": notes.clock(record.get("cost"), where, "cost"),
    }
    runs.add(
        named or "unnamed",
        instance,
        [point],
        identity=digest(record),
        home=source.path.absolute(),
        naming="whole" if named else "partial",
        details={"prompt": text_of(dict_at(record, "prompt").get("label"))},
        content=digest(variables) if variables else None,
    )


READER = Reader(
    name="promptfoo",
    title="promptfoo results",
    gives=("seconds", "tokens", "cost", "success"),
    detect=detect,
    read=read,
)
