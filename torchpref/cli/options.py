"""The options that several commands share, and what becomes of them. Nothing heavy is imported here."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from torchpref.errors import UsageError
from torchpref.runs.measures import JUDGE as JUDGE

if TYPE_CHECKING:
    from torchpref.runs.findings import Finding
    from torchpref.runs.trajectories import Trajectories


class Weights(StrEnum):
    """What counts equally in means."""

    instance = "instance"
    benchmark = "benchmark"


class ZeroTime(StrEnum):
    """What a level reached at exactly 0 seconds, tokens or cost means."""

    unknown = "unknown"
    keep = "keep"


class Undecided(StrEnum):
    """What a gate does where nothing can be said."""

    passes = "pass"
    fails = "fail"


class Test(StrEnum):
    """How a mean preference is tested."""

    flips = "sign-flip"
    mean = "mean"


class Missing(StrEnum):
    """What becomes of missing runs and unknown outcomes."""

    exclude = "exclude"
    failure = "failure"


class Claim(StrEnum):
    """What a board claims."""

    this_benchmark = "this benchmark"
    new_tasks = "new tasks"


_READING, _COMPARING, _LOOKING, _WRITING = "Reading", "Comparing", "Looking early", "Writing"


def _option(panel: str, *names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel, **more)


def whole(text: str) -> int:
    """A whole number from the command line."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def real(text: str) -> float:
    """A number from the command line."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number, such as 0.05") from None


Format = Annotated[str, _option(_READING, "--format", help="Log format; see: torchpref formats.")]
Columns = Annotated[
    list[str] | None,
    _option(
        _READING, "--columns", metavar="A=B,...", help="Which column is what: system=model,instance=split+task_id."
    ),
]
Where = Annotated[
    list[str] | None,
    _option(_READING, "--where", metavar="COL=VALUE", help="Rows to keep, or COL!=VALUE; may be repeated."),
]
Families = Annotated[
    str | None,
    _option(
        _READING,
        "--families",
        metavar="COLUMN",
        help="Column with the family of each instance (a repository): families, not instances, are independent.",
    ),
]
ZeroTimeOption = Annotated[
    ZeroTime, _option(_READING, "--zero-time", help="A level reached at exactly 0 seconds, tokens or cost.")
]
MissingOption = Annotated[Missing, _option(_READING, "--missing", help="Missing runs and unknown outcomes.")]
Clip = Annotated[bool, _option(_READING, "--clip", help="Returns above 1 count as 1, instead of being an error.")]
Strict = Annotated[bool, _option(_READING, "--strict", help="Stop where a value would be repaired.")]
Resolution = Annotated[
    list[str] | None, _option(_READING, "--resolution", metavar="CLOCK=SIZE", help="Size of a tick of a clock.")
]
ReaderOption = Annotated[
    list[str] | None, _option(_READING, "--option", metavar="NAME=VALUE", help="An option of the log format.")
]
Encoding = Annotated[str | None, _option(_READING, "--encoding", help="Of text tables that are not UTF-8.")]
Clock = Annotated[
    str | None, _option(_COMPARING, "--clock", help="Clock to compare on: steps, turns, seconds, tokens, cost, time.")
]
Systems = Annotated[
    list[str] | None,
    _option(_COMPARING, "--systems", metavar="NAME", help="Systems by name or pattern; !PATTERN leaves out."),
]
Benchmarks = Annotated[
    list[str] | None,
    _option(_COMPARING, "--benchmark", metavar="NAME", help="Benchmarks by name or pattern; !PATTERN leaves out."),
]
Measures = Annotated[
    list[str] | None,
    _option(_COMPARING, "--measure", metavar="M", help="sr, pr, spl, lr, rpp, ipp, the first judges; all by default."),
]
WeightsOption = Annotated[Weights, _option(_COMPARING, "--weights", help="What counts equally in means.")]
Grid = Annotated[
    str,
    _option(_COMPARING, "--grid", metavar="G", help="Levels: exact, a number M for 1/M, 2/M, ... 1, or 0.5,1."),
]
Device = Annotated[str | None, _option(_COMPARING, "--device", help="Where to compute: cpu, cuda, cuda:1.")]
Bootstrap = Annotated[
    int, _option(_COMPARING, "--bootstrap", metavar="N", parser=whole, help="Replicates behind intervals; 0 for none.")
]
Seed = Annotated[int, _option(_COMPARING, "--seed", metavar="N", parser=whole, help="Seed of all random draws.")]
Measure = Annotated[
    str, _option(_COMPARING, "--measure", metavar="M", help="What decides: sr, pr, spl, lr, rpp or ipp.")
]
Margin = Annotated[
    float,
    _option(
        _COMPARING, "--margin", metavar="X", parser=real, help="How much worse is acceptable, as a mean preference."
    ),
]
MinEffect = Annotated[
    float,
    _option(
        _COMPARING, "--min-effect", metavar="X", parser=real, help="The least mean preference that counts as worse."
    ),
]
Alpha = Annotated[
    float,
    _option(_COMPARING, "--alpha", metavar="X", parser=real, help="The chance of failing a system that is not worse."),
]
UndecidedOption = Annotated[
    Undecided,
    _option(_COMPARING, "--undecided", help="Whether an undecided verdict passes (exit 0) or fails (exit 3)."),
]
TestOption = Annotated[
    Test,
    _option(
        _COMPARING, "--test", help="sign-flip, or mean: betting, which holds for every distribution and finds less."
    ),
]
Equivalence = Annotated[
    float,
    _option(_COMPARING, "--margin", metavar="X", parser=real, help="Test whether the two are within X of each other, too."),
]
Power = Annotated[
    float, _option(_COMPARING, "--power", metavar="X", parser=real, help="Wanted chance of finding the difference.")
]
Trials = Annotated[
    list[int] | None,
    _option(_COMPARING, "--trials", metavar="K", parser=whole, help="Also the number with K runs each; may be repeated."),
]
Level = Annotated[float, _option(_COMPARING, "--level", metavar="X", parser=real, help="Level of the intervals.")]
KnownOrder = Annotated[
    str | None,
    _option(_COMPARING, "--known-order", metavar="A,B,...", help="Systems whose true order is known, best first."),
]
Resamples = Annotated[
    int, _option(_COMPARING, "--resamples", metavar="N", parser=whole, help="Bootstrap replicates, and random halves.")
]
Json = Annotated[
    str | None,
    _option(_WRITING, "--json", metavar="FILE", help="Write the result as JSON; - prints it instead of the tables."),
]
Markdown = Annotated[
    str | None, _option(_WRITING, "--markdown", metavar="FILE", help="Write the verdict as Markdown, for a comment.")
]
JUnit = Annotated[
    str | None, _option(_WRITING, "--junit", metavar="FILE", help="Write the verdict as a JUnit test case.")
]
Html = Annotated[
    str | None, _option(_WRITING, "--html", metavar="FILE", help="Write a report page; needs the extra report.")
]
Planned = Annotated[
    int,
    _option(_LOOKING, "--planned", metavar="N", parser=whole, help="How many instances will be run at most."),
]
MaybePlanned = Annotated[
    int | None,
    _option(
        _LOOKING,
        "--planned",
        metavar="N",
        parser=whole,
        help="Look before all N planned instances have run; may exit with 4.",
    ),
]
Effect = Annotated[
    float,
    _option(
        _LOOKING, "--effect", metavar="X", parser=real, help="With --planned: how much worse would be of interest."
    ),
]
History = Annotated[
    list[str] | None,
    _option(
        _LOOKING, "--history", metavar="PATH", help="Others' runs on all instances, where one of the two ran a part."
    ),
]
ClocksOption = Annotated[
    str | None,
    _option(
        _COMPARING, "--clocks", metavar="C,C", help="Bounds that hold whatever these clocks are worth: steps,cost."
    ),
]
Order = Annotated[
    str | None,
    _option(_LOOKING, "--order", metavar="FILE", help="Names of all planned instances in their order, one a line."),
]
GivenUp = Annotated[
    list[str] | None,
    _option(
        _LOOKING, "--given-up", metavar="NAME", help="An instance that will not be run; 'gaps' for whatever is missing."
    ),
]
Final = Annotated[
    bool, _option(_LOOKING, "--final", help="No run is to come, for a reason that is not in the results.")
]
State = Annotated[
    str | None, _option(_LOOKING, "--state", metavar="FILE", help="Keeps later looks to what was named at the first.")
]
Top = Annotated[
    int | None,
    _option(_LOOKING, "--top", metavar="K", parser=whole, help="Who is among the first K; all pairs without."),
]
ClaimOption = Annotated[
    Claim, _option(_LOOKING, "--claim", help="About this benchmark, or about new tasks like these.")
]
Once = Annotated[bool, _option(_LOOKING, "--once", help="Look once instead of whenever files change.")]
Every = Annotated[
    float, _option(_LOOKING, "--every", metavar="S", parser=real, help="Seconds between glances at the files.")
]


#: A comma between two mapped columns; one in the name of a column is not followed by ``NAME=``.
_MAPPED = re.compile(r",\s*(?=\w+\s*=|$)")


@dataclass(frozen=True)
class Reading:
    """How runs are read and which of them are chosen, as the command line says it.

    The fields are options of every command that reads runs; see :func:`reads_runs`.
    """

    paths: Sequence[str]
    format: Format = "auto"
    columns: Columns = None
    where: Where = None
    zero_time: ZeroTimeOption = ZeroTime.unknown
    missing: MissingOption = Missing.exclude
    strict: Strict = False
    clip: Clip = False
    resolution: Resolution = None
    option: ReaderOption = None
    encoding: Encoding = None
    clock: Clock = None
    systems: Systems = None
    benchmark: Benchmarks = None
    families: Families = None

    def runs(self) -> Trajectories:
        """The runs."""
        from torchpref.io import read

        sizes = _assignments(self.resolution, "--resolution")
        found = read(
            list(self.paths),
            self.format,
            clock=self.clock,
            strict=self.strict,
            clip=self.clip,
            zero_time=self.zero_time.value,
            missing=self.missing.value,
            resolution={name: _size(name, size) for name, size in sizes.items()},
            **self.table_options(),
        )
        for finding in found.findings:
            if finding.kind == "columns_recognised":
                print(finding.message.rpartition(";")[0], file=sys.stderr)
        if not self.systems and not self.benchmark:
            return found
        return found.select(
            systems=_split(self.systems, found.systems) if self.systems else None,
            benchmarks=_split(self.benchmark, found.benchmarks) if self.benchmark else None,
        )

    def and_two_systems(self, usage: str) -> tuple[Reading, str, str]:
        """The reading without the last two arguments, and these: the names of two systems."""
        if len(self.paths) < 3:
            raise UsageError(f"{usage}: name what to read, then two systems; got {len(self.paths)} of at least 3")
        *paths, first, second = self.paths
        return replace(self, paths=paths), first, second

    def table_options(self) -> dict[str, Any]:
        """What the readers are told about columns, rows, text and the log format."""
        return {
            "columns": [
                *(part for text in self.columns or () for part in _MAPPED.split(text) if part.strip()),
                *([f"families={self.families}"] if self.families else []),
            ],
            "where": list(self.where or ()),
            "encoding": self.encoding,
            **_assignments(self.option, "--option"),
        }

    def noted(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result for JSON, with how the runs were read among its options; what was not asked for is left out."""
        record: dict[str, Any] = {"paths": list(self.paths), "format": self.format, "missing": self.missing.value}
        record["strict"] = self.strict
        if self.clip:
            record["clip"] = True
        for name in ("columns", "where", "resolution", "option", "encoding", "systems", "benchmark", "families"):
            if getattr(self, name):
                record[name] = getattr(self, name)
        return {**result, "options": {**record, **result.get("options", {})}}


_PATHS = "Logs or tables: files, folders, patterns in quotes; NAME=PATH names a system."


def reads_runs(metavar: str = "PATH...", help: str = _PATHS) -> Any:
    """Turn a command that takes a :class:`Reading` into one with an argument for paths and an option for every field.

    Args:
        metavar: what stands for the arguments in the help text.
        help: the help text of the arguments.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        hints = get_type_hints(Reading, include_extras=True)
        hints["paths"] = Annotated[list[str], typer.Argument(metavar=metavar, help=help, show_default=False)]
        kind = inspect.Parameter.KEYWORD_ONLY
        shared = [
            inspect.Parameter(
                field.name,
                kind,
                annotation=hints[field.name],
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
            )
            for field in fields(Reading)
        ]

        @wraps(command)
        def run(**values: Any) -> None:
            reading = Reading(**{field.name: values.pop(field.name) for field in fields(Reading)})
            command(reading, **values)

        parameters = [*shared, *(parameter.replace(kind=kind) for parameter in own)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del run.__wrapped__
        return run

    return decorate


def order(path: str | None) -> list[str] | None:
    """Names of instances from a file, one a line; blank lines are passed over.

    Raises:
        UsageError: the file cannot be read, or names nothing.
    """
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            names = [line.strip() for line in file if line.strip()]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--order {path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not names:
        raise UsageError(f"--order {path}: names no instance; wanted one a line")
    return names


def given_up(names: Sequence[str] | None) -> Any:
    """Names of instances that will not be run, or ``"gaps"``."""
    return "gaps" if names and list(names) == ["gaps"] else list(names or ())


def _assignments(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    result = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {text}: wanted NAME=VALUE")
        result[name.strip()] = value.strip()
    return result


def _size(clock: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--resolution {clock}={text}: {text!r} is not a number, such as 0.001") from None


def _split(patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names and patterns; one that is no name itself may be several with commas between them."""
    names = set(known)
    return [
        part
        for text in patterns
        for part in ([text] if text in names else (each.strip() for each in text.split(",")))
        if part
    ]


def measures(texts: Sequence[str] | None) -> str:
    """Names of measures in the order given, all if none is named; several may stand in one text with commas between."""
    return ",".join(texts) if texts else "all"


def warnings(runs: Trajectories, clock: str | None, systems: Sequence[str]) -> list[Finding]:
    """The warnings about some runs that concern some of their systems, or no system in particular."""
    from torchpref.runs.audit import audit

    chosen = clock or runs.default_clock
    found = audit(runs.with_options(clock=chosen) if chosen else runs)
    return [each for each in found.warnings if not each.systems or set(each.systems) & set(systems)]


def grid(text: str) -> str | int | list[float]:
    """``exact``, a number of levels, ``uniform(M)`` or levels with commas between them.

    Raises:
        UsageError: anything else.
    """
    text = text.strip()
    if text.isdigit():
        return int(text)
    if not text or text[0].isalpha():
        return text
    try:
        return [float(level) for level in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--grid {text}: wanted exact, a number of levels such as 20, or levels such as 0.25,0.5,1"
        ) from None
