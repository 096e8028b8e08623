"""The command line. Whatever is heavy is imported by the command that needs it, so that ``--help`` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from torchpref import cli_options as opt
from torchpref import cli_output as out
from torchpref.errors import TorchPrefError

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
        from torchpref import __version__

        print(f"torchpref {__version__}")
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
) -> None:
    """Rank the systems: tie rates of all measures, and a leaderboard for each."""
    out.check_target(json, "--json")
    from torchpref.evaluate import evaluate
    from torchpref.measures import resolve_measures
    from torchpref.report.tables import evaluation_tables

    measures = resolve_measures(",".join(measure) if measure else "all")
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
        record = result.to_dict()
        out.write_json(json, {**record, "options": {**reading.options(), **record["options"]}})
    if json != "-":
        out.show(evaluation_tables(result))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits with 0, or 2 after one message where the data or the call are wrong."""
    out.prepare_streams()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="torchpref")
    except TorchPrefError as error:
        sys.stdout.flush()
        out.complain(str(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
