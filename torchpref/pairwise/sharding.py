"""Mean preferences of a partitioned Parquet data set by several processes, on one machine or many.

Started with torchrun, one line does it::

    torchrun --nproc-per-node 2 -m torchpref.pairwise.sharding FOLDER --clock cost --json result.json

Each process reads its own files and compares the instances in them; what is exchanged at the end are sums in whole
numbers, so the result is that of a single process, to the bit. A process that dies ends the job with an error on all.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from torchpref.errors import TorchPrefError, UsageError
from torchpref.pairwise.means import MeanPreferences, MeanTotals
from torchpref.pairwise.streaming import (
    CHUNK_ROWS,
    Options,
    Survey,
    _bar,
    add_all,
    benchmark_weights,
    grouped,
    needed_clock,
    parquet_files,
    survey_of,
    weight_limit,
)
from torchpref.runs.curves import Grid
from torchpref.runs.measures import MEASURES, resolve_measures
from torchpref.runs.units import ZeroTime

if TYPE_CHECKING:
    from torchpref.runs.tidy.columns import ColumnsLike
    from torchpref.runs.tidy.where import WhereLike

#: How long a process waits for the slowest one before it gives up. A process that dies is noticed at once.
TIMEOUT = timedelta(minutes=30)


class ProcessLostError(TorchPrefError, RuntimeError):
    """Another process of the job died or could not be reached."""


@contextmanager
def process_group(timeout: timedelta = TIMEOUT) -> Iterator[tuple[int, int]]:
    """Join the job that torchrun started, and leave it in good order; gives (number of this process, how many).

    Without torchrun, or inside a group that is there already, nothing is started. gloo serves CPU tensors, NCCL those on
    a GPU.
    """
    if dist.is_initialized():
        yield dist.get_rank(), dist.get_world_size()
        return
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) < 2:
        yield 0, 1
        return
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=timeout)
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        # gloo's threads may hold tensors for a moment after the last exchange; ending then would abort the process.
        gc.collect()
        dist.destroy_process_group()
        time.sleep(0.2)


def gather(value: Any, world: int) -> list[Any]:
    """What every process passed, in the order of processes."""
    if world == 1:
        return [value]
    found: list[Any] = [None] * world
    with _partners():
        dist.all_gather_object(found, value)
    return found


@contextmanager
def _partners() -> Iterator[None]:
    """An exchange that fails because of another process says so."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, TorchPrefError):
            raise
        raise ProcessLostError(
            f"process {dist.get_rank()} of {dist.get_world_size()} lost another one, so the job ends without a result; the "
            f"first error above says why ({str(error).splitlines()[0]})"
        ) from error


def sharded_preferences(
    paths: str | Path | Sequence[str | Path],
    measures: str | Sequence[str] = "all",
    *,
    clock: str | None = None,
    columns: ColumnsLike = None,
    where: WhereLike = None,
    strict: bool = False,
    zero_time: ZeroTime = "unknown",
    resolution: Mapping[str, float] | None = None,
    weights: str | Mapping[str, float] = "instance",
    grid: Grid = "exact",
    chunk_rows: int = CHUNK_ROWS,
    scratch: str | Path | None = None,
    progress: bool | None = None,
) -> dict[str, MeanPreferences]:
    """Mean preferences of a Parquet data set, shared out over the processes of a torchrun job; the same on all of them.

    Arguments and results are those of :func:`torchpref.stream_preferences`. Files are dealt out to the processes; if
    there are fewer files than processes, or an instance stands in files of several of them, every process reads all files
    and keeps its share of the instances.

    Raises:
        ProcessLostError: another process died.
    """
    names = resolve_measures(measures)
    options = Options(clock, columns, where, strict, zero_time, resolution)
    with process_group() as (rank, world):
        files = parquet_files(paths)
        mine, options, survey = _share(files, options, rank, world)
        found = gather((survey.per_benchmark, survey.clocks), world)
        sizes: dict[str, int] = {}
        for per_benchmark, _ in found:
            for name, size in per_benchmark.items():
                sizes[name] = sizes.get(name, 0) + size
        clocks = tuple(dict.fromkeys(name for _, there in found for name in there))
        chosen = needed_clock(names, clocks, clock)
        given = benchmark_weights(weights, sizes)
        with (
            _bar(progress if rank == 0 else False) as tell,
            grouped(mine, survey, options, chunk_rows, scratch) as ready,
        ):
            # The copy of badly sorted files is the process's own already.
            own = options if survey.grouped else replace(options, share=None)
            totals = add_all(ready, survey, own, names, chosen, given, weight_limit(given), grid, chunk_rows, tell)
        return _reduced(totals, world).preferences(chosen)


def _share(files: list[Path], options: Options, rank: int, world: int) -> tuple[list[Path], Options, Survey]:
    """The files and instances of one process, no instance with two of them."""
    if len(files) >= world:
        mine = files[rank::world]
        survey = survey_of(mine, options)
        keys = gather(survey.keys.to_numpy(), world)
        together = torch.cat([torch.from_numpy(part.view("int64").copy()) for part in keys])
        if len(torch.unique(together)) == len(together):
            return mine, options, survey
    options = replace(options, share=(rank, world))
    return files, options, survey_of(files, options)


def _reduced(totals: MeanTotals, world: int) -> MeanTotals:
    """The sums of all processes."""
    if world == 1:
        return totals
    others = gather((totals.systems, totals.n_instances, dict(totals.findings)), world)
    names = tuple(sorted({name for systems, _, _ in others for name in systems}))
    mine = totals.over(names)
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    with _partners():
        tensors = [tensor for part in mine.sums.values() for tensor in part.tensors()]
        for tensor in [*tensors, mine.runs_per_system]:
            moved = tensor.to(device)
            dist.all_reduce(moved)
            tensor.copy_(moved)
    findings: MeanTotals = MeanTotals.nothing((), 1.0)
    for _, _, noticed in others:
        findings = findings + replace(MeanTotals.nothing((), 1.0), findings=noticed)
    return replace(mine, n_instances=sum(count for _, count, _ in others), findings=findings.findings)


# ------------------------------------------------------------------------------------------------------ command line


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="torchrun --nproc-per-node N -m torchpref.pairwise.sharding",
        description="Mean preferences between systems from a Parquet data set, shared out over processes.",
    )
    parser.add_argument("paths", nargs="+", help="folders or files of tidy Parquet tables")
    parser.add_argument("--measure", action="append", choices=MEASURES, help="a measure; all six where none is named")
    parser.add_argument("--clock", help="the clock")
    parser.add_argument("--columns", help="columns under other names: A=B,C=D+E")
    parser.add_argument("--where", action="append", help="only some rows: COL=VALUE")
    parser.add_argument("--weights", choices=("instance", "benchmark"), default="instance")
    parser.add_argument("--zero-time", choices=("unknown", "keep"), default="unknown")
    parser.add_argument("--grid", default="exact", help="exact or uniform(M)")
    parser.add_argument("--chunk-rows", type=int, default=CHUNK_ROWS, help="steps in memory at a time")
    parser.add_argument("--json", help="file for the result")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status."""
    options = _arguments(arguments)
    rank = int(os.environ.get("RANK", "0"))
    try:
        with process_group() as (rank, _):
            result = sharded_preferences(
                options.paths,
                options.measure or "all",
                clock=options.clock,
                columns=options.columns,
                where=options.where,
                weights=options.weights,
                zero_time=options.zero_time,
                grid=options.grid,
                chunk_rows=options.chunk_rows,
            )
            if rank == 0:
                _show(result, options.json)
    except TorchPrefError as error:
        print(f"process {rank}: {error}", file=sys.stderr, flush=True)
        return 2 if isinstance(error, UsageError) else 1
    return 0


def _show(result: dict[str, MeanPreferences], path: str | None) -> None:
    for prefs in result.values():
        print(prefs)
    if path is not None:
        Path(path).write_text(json.dumps({name: prefs.to_dict() for name, prefs in result.items()}, indent=1) + "\n")
