"""The command line. Whatever is heavy is imported by the command that needs it, so that ``--help`` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from torchpref.cli import options as opt
from torchpref.cli import output as out
from torchpref.errors import TorchPrefError, UsageError
from torchpref.runs.measures import ALPHA, LEVEL

app = typer.Typer(
    name="torchpref",
    help="Compare runs of agents by when each reached each level of return, and rank the systems that made them.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"torchpref {version('torchpref')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
@opt.reads_runs()
def evaluate(
    reading: opt.Reading,
    measure: opt.Measures = None,
    weights: opt.WeightsOption = opt.Weights.instance,
    grid: opt.Grid = "exact",
    device: opt.Device = None,
    bootstrap: opt.Bootstrap = 0,
    seed: opt.Seed = 0,
    json: opt.Json = None,
    html: opt.Html = None,
) -> None:
    """Rank the systems: tie rates of all measures, and a leaderboard for each."""
    out.check_targets(json, html, reading.paths)
    from torchpref.evaluation.evaluate import evaluate
    from torchpref.report.tables import evaluation_tables

    measures = opt.measures(measure)
    result = evaluate(
        reading.runs(),
        measures,
        bootstrap=bootstrap,
        seed=seed,
        clock=reading.clock,
        weights=weights.value,
        grid=opt.grid(grid),
        device=device,
    )
    if json is not None:
        out.write_json(json, reading.noted(result.to_dict()))
    if html is not None:
        out.write_text(html, result.to_html(), "--html")
    if "-" not in (json, html):
        out.show(evaluation_tables(result))


@app.command()
@opt.reads_runs("PATH... A B", "Logs or tables, then the names of two systems.")
def compare(
    reading: opt.Reading,
    measure: opt.Measures = None,
    weights: opt.WeightsOption = opt.Weights.instance,
    grid: opt.Grid = "exact",
    level: opt.Level = LEVEL,
    history: opt.History = None,
    clocks: opt.ClocksOption = None,
    margin: opt.Equivalence = 0.0,
    seed: opt.Seed = 0,
    json: opt.Json = None,
) -> None:
    """Compare two systems in depth: mean preferences, the split, levels, and the instances that decide."""
    reading, first, second = reading.and_two_systems("compare PATH... A B")
    out.check_target(json, "--json", reading.paths)
    from torchpref.evaluation.comparison import compare
    from torchpref.report.pair_tables import comparison_tables
    from torchpref.report.tables import findings_parts

    runs = reading.runs()
    measures = opt.measures(measure)
    result = compare(
        runs,
        first,
        second,
        measures,
        clock=reading.clock,
        weights=weights.value,
        grid=opt.grid(grid),
        level=level,
        seed=seed,
        history=replace(reading, paths=[*reading.paths, *history]).runs() if history else None,
        clocks=[part.strip() for part in clocks.split(",") if part.strip()] if clocks else None,
        margin=margin,
    )
    if json is not None:
        out.write_json(json, reading.noted(result.to_dict()))
    if json != "-":
        out.show(comparison_tables(result) + findings_parts(opt.warnings(runs, reading.clock, (first, second))))


@app.command()
@opt.reads_runs("PATH... BASE NEW", "Logs or tables, then the system that is in use and the one that is to replace it.")
def gate(
    reading: opt.Reading,
    measure: opt.Measure = opt.JUDGE,
    weights: opt.WeightsOption = opt.Weights.instance,
    grid: opt.Grid = "exact",
    margin: opt.Margin = 0.0,
    min_effect: opt.MinEffect = 0.0,
    alpha: opt.Alpha = ALPHA,
    undecided: opt.UndecidedOption = opt.Undecided.passes,
    test: opt.TestOption = opt.Test.flips,
    planned: opt.MaybePlanned = None,
    effect: opt.Effect = 0.1,
    order: opt.Order = None,
    given_up: opt.GivenUp = None,
    final: opt.Final = False,
    state: opt.State = None,
    seed: opt.Seed = 0,
    json: opt.Json = None,
    markdown: opt.Markdown = None,
    junit: opt.JUnit = None,
    html: opt.Html = None,
) -> None:
    """Exit with 1 if NEW is significantly worse than BASE, with 0 if it is fine or undecided, with 4 to go on (--planned)."""
    reading, base, new = reading.and_two_systems("gate PATH... BASE NEW")
    for path, option in (
        (json, "--json"), (markdown, "--markdown"), (junit, "--junit"), (html, "--html"), (state, "--state")
    ):  # fmt: skip
        out.check_target(path, option, reading.paths)
    if html is not None and planned is None:
        raise UsageError("--html shows the looks of a gate with --planned; say how many instances are planned")
    from torchpref.evaluation.gating import gate
    from torchpref.report.gate_report import gate_annotation, gate_junit, gate_markdown

    early: dict[str, Any] = {
        "order": opt.order(order),
        "given_up": opt.given_up(given_up),
        "final": final,
        "state": state,
    }
    if planned is not None:
        early |= {"planned": planned, "effect": effect}
    runs = reading.runs()
    result = gate(
        runs,
        base,
        new,
        measure=measure,
        margin=margin,
        min_effect=min_effect,
        alpha=alpha,
        undecided=undecided.value,
        test=test.value,
        clock=reading.clock,
        weights=weights.value,
        grid=opt.grid(grid),
        seed=seed,
        **early,
    )
    if json is not None:
        out.write_json(json, reading.noted(result.to_dict()))
    if markdown is not None:
        out.write_text(markdown, gate_markdown(result))
    if junit is not None:
        out.write_text(junit, gate_junit(result))
    if html is not None:
        from torchpref.report.looking_page import looking_page

        out.write_text(html, looking_page(result), "--html")
    if "-" not in (json, markdown, junit, html):
        print(result.line)
        out.tell_github(gate_annotation(result), gate_markdown(result))
    for finding in opt.warnings(runs, reading.clock, (base, new)):
        out.warn(str(finding))
    raise typer.Exit(result.exit_code)


@app.command()
@opt.reads_runs("PATH... A B", "Logs or tables, then the names of two systems; with --margin B is the one to be shown fine.")
def plan(
    reading: opt.Reading,
    measure: opt.Measure = opt.JUDGE,
    weights: opt.WeightsOption = opt.Weights.instance,
    grid: opt.Grid = "exact",
    power: opt.Power = 0.8,
    margin: opt.Margin = 0.0,
    trials: opt.Trials = None,
    alpha: opt.Alpha = ALPHA,
    json: opt.Json = None,
) -> None:
    """Say how many instances it takes to find the difference of A and B, or to show that B is fine within a margin."""
    reading, first, second = reading.and_two_systems("plan PATH... A B")
    out.check_target(json, "--json", reading.paths)
    from torchpref.evaluation.two_systems import plan_two

    result = plan_two(
        reading.runs(),
        first,
        second,
        measure=measure,
        power=power,
        margin=margin,
        trials=trials or None,
        alpha=alpha,
        clock=reading.clock,
        weights=weights.value,
        grid=opt.grid(grid),
    )
    if json is not None:
        out.write_json(json, reading.noted(result.to_dict()))
    if json != "-":
        print(result)


@app.command()
@opt.reads_runs()
def watch(
    reading: opt.Reading,
    planned: opt.Planned,
    top: opt.Top = None,
    claim: opt.ClaimOption = opt.Claim.this_benchmark,
    measure: opt.Measure = opt.JUDGE,
    grid: opt.Grid = "exact",
    alpha: opt.Alpha = ALPHA,
    order: opt.Order = None,
    given_up: opt.GivenUp = None,
    final: opt.Final = False,
    state: opt.State = None,
    once: opt.Once = False,
    every: opt.Every = 5.0,
    seed: opt.Seed = 0,
    json: opt.Json = None,
    html: opt.Html = None,
) -> None:
    """Say while runs arrive who is settled, who needs more runs and which come next; exit with 4 while any are needed."""
    out.check_targets(json, html, reading.paths)
    out.check_target(state, "--state", reading.paths)
    from torchpref.evaluation.monitor import monitor
    from torchpref.report.looking_tables import monitor_tables

    def look() -> bool:
        result = monitor(
            reading.runs(),
            planned=planned,
            goal="pairs" if top is None else f"top{top}",
            claim=claim.value,
            measure=measure,
            clock=reading.clock,
            grid=opt.grid(grid),
            alpha=alpha,
            order=opt.order(order),
            given_up=opt.given_up(given_up),
            final=final,
            state=state,
            seed=seed,
        )
        if json is not None:
            out.write_json(json, reading.noted(result.to_dict()))
        if html is not None:
            from torchpref.report.looking_page import looking_page

            out.write_text(html, looking_page(result), "--html")
        if "-" not in (json, html):
            out.show(monitor_tables(result))
        return result.settled

    settled = look()
    if not once and not settled:
        from torchpref.io.files.walk import changes

        for _ in changes(reading.paths, every):
            settled = look()
            if settled:
                break
    raise typer.Exit(0 if settled else GO_ON)


@app.command()
@opt.reads_runs()
def meta(
    reading: opt.Reading,
    measure: opt.Measures = None,
    weights: opt.WeightsOption = opt.Weights.instance,
    grid: opt.Grid = "exact",
    known_order: opt.KnownOrder = None,
    resamples: opt.Resamples = 1000,
    alpha: opt.Alpha = ALPHA,
    seed: opt.Seed = 0,
    json: opt.Json = None,
) -> None:
    """Evaluate the measures themselves: ties, reliability, power, bias, accuracy, how many instances they need."""
    out.check_target(json, "--json", reading.paths)
    from torchpref.meta import meta_evaluate
    from torchpref.report.tables import findings_parts

    runs = reading.runs()
    result = meta_evaluate(
        runs,
        opt.measures(measure),
        clock=reading.clock,
        known_order=[part.strip() for part in known_order.split(",")] if known_order else None,
        weights=weights.value,
        grid=opt.grid(grid),
        resamples=resamples,
        alpha=alpha,
        seed=seed,
        progress=sys.stderr.isatty(),
    )
    if json is not None:
        out.write_json(json, reading.noted(result.to_dict()))
    if json != "-":
        print(result)
        out.show(findings_parts(opt.warnings(runs, reading.clock, runs.systems)))


@app.command()
@opt.reads_runs()
def audit(reading: opt.Reading, json: opt.Json = None) -> None:
    """Say what is in these logs, and what is suspicious about them."""
    out.check_target(json, "--json", reading.paths)
    from torchpref.report.audit_tables import audit_tables
    from torchpref.runs.audit import audit

    found = audit(reading.runs())
    if json is not None:
        out.write_json(json, reading.noted(found.to_dict()))
    if json != "-":
        out.show(audit_tables(found))


@app.command()
def demo(json: opt.Json = None) -> None:
    """Show the whole thing on data that ships with the package."""
    out.check_target(json, "--json")
    import os

    from torchpref.evaluation.evaluate import evaluate
    from torchpref.io import read
    from torchpref.report.demo import demo_tables
    from torchpref.sgrl.suites import suite

    data = suite("demo")
    result = evaluate(read(data.path))
    about = (
        "Ten planners drive a taxi: each takes the shortest way, but acts at random with probability eps. So their true "
        "order is known: the smaller eps, the better. Each is run once from each of 100 starts, for 200 steps at most."
    )
    if json is not None:
        out.write_json(json, result.to_dict())
    if json != "-":
        out.show(demo_tables(result, data.systems, about, os.path.relpath(data.path)))


@app.command()
def formats(json: opt.Json = None) -> None:
    """List the log formats that can be read."""
    out.check_target(json, "--json")
    from torchpref.io.convert import formats
    from torchpref.report.formats import formats_tables

    found = formats()
    if json is not None:
        out.write_json(json, [each.to_dict() for each in found])
    if json != "-":
        out.show(formats_tables(found))


@app.command()
def convert(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH... OUTPUT", help="Logs or tables, then the table to write: .parquet, .csv, .tsv or .jsonl."
        ),
    ],
    format: opt.Format = "auto",
    columns: opt.Columns = None,
    where: opt.Where = None,
    option: opt.ReaderOption = None,
    encoding: opt.Encoding = None,
) -> None:
    """Write logs of any format as one tidy table."""
    if len(paths) < 2:
        raise UsageError("convert PATH... OUTPUT: name what to read, then the table to write")
    from torchpref.io.convert import convert

    reading = opt.Reading(paths[:-1], format, columns, where, option=option, encoding=encoding)
    print(convert(reading.paths, paths[-1], format, **reading.table_options()))


#: Exit code of ``gate --planned`` and ``watch`` while more runs are needed.
GO_ON = 4
#: Exit code of a fault in torchpref itself; not 1, which says of ``gate`` that the new system is worse.
FAULT = 70


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 0, or 2 after one message where the data or the call are wrong."""
    out.prepare_streams()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="torchpref")
        sys.stdout.flush()
    except TorchPrefError as error:
        _leave(str(error), 2)
    except BrokenPipeError:
        out.silence()
        sys.exit(0)
    except OSError as error:
        _leave(f"the result could not be written ({error.strerror or error})", 2)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer makes it a failure, but nobody reads any longer
            out.silence()
            sys.exit(0)
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            out.silence()
        except OSError as error:
            _leave(f"the result could not be written ({error.strerror or error})", 2)
        raise
    except Exception:
        import traceback

        traceback.print_exc()
        _leave("this is a fault in torchpref; please report it with the lines above", FAULT)


def _leave(message: str, code: int) -> None:
    """One message on standard error, and the exit code."""
    out.silence()
    out.complain(message)
    sys.exit(code)
