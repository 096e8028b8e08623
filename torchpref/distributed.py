"""``torchrun … -m torchpref.distributed``: streamed preferences over several processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from torchpref.cli import options as opt
from torchpref.cli import output as out
from torchpref.errors import TorchPrefError, UsageError
from torchpref.pairwise.sharding import process_group, sharded_preferences
from torchpref.pairwise.streaming import CHUNK_ROWS

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def run(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Folders or files of tidy Parquet tables.")],
    measure: opt.Measures = None,
    clock: opt.Clock = None,
    columns: opt.Columns = None,
    where: opt.Where = None,
    weights: opt.WeightsOption = opt.Weights.instance,
    zero_time: opt.ZeroTimeOption = opt.ZeroTime.unknown,
    grid: opt.Grid = "exact",
    chunk_rows: Annotated[
        int, typer.Option(metavar="N", parser=opt.whole, help="Steps in memory at a time.")
    ] = CHUNK_ROWS,
    json: opt.Json = None,
) -> None:
    """Mean preferences between systems from a Parquet data set, shared out over the processes of torchrun."""
    out.check_target(json, "--json", paths)
    tables = opt.Reading(paths, columns=columns, where=where).table_options()
    with process_group() as (rank, _):
        result = sharded_preferences(
            paths,
            opt.measures(measure),
            clock=clock,
            columns=tables["columns"],
            where=tables["where"],
            weights=weights.value,
            zero_time=zero_time.value,
            grid=opt.grid(grid),
            chunk_rows=chunk_rows,
        )
        if rank == 0:
            if json != "-":
                print(*result.values(), sep="\n")
            if json is not None:
                out.write_json(json, {name: prefs.to_dict() for name, prefs in result.items()})


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status."""
    try:
        app(
            args=None if arguments is None else list(arguments),
            prog_name="torchrun --nproc-per-node N -m torchpref.distributed",
        )
    except SystemExit as ended:  # by typer, which has said what is wrong with the call
        return int(ended.code or 0)
    except TorchPrefError as error:
        print(f"process {os.environ.get('RANK', '0')}: {error}", file=sys.stderr, flush=True)
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
