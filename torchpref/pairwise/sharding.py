"""Mean preferences of a partitioned Parquet data set by several processes, on one machine or many.

Started with torchrun, one line does it::

    torchrun --nproc-per-node 2 -m torchpref.distributed FOLDER --clock cost --json result.json

Each process reads its own files and compares the instances in them; what is exchanged at the end are sums in whole
numbers, so the result is that of a single process, to the bit. A process that dies ends the job with an error on all.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from torchpref.errors import TorchPrefError
from torchpref.pairwise.means import MeanPreferences, MeanTotals
from torchpref.pairwise.streaming import (
    CHUNK_ROWS,
    Options,
    Survey,
    add_all,
    benchmark_weights,
    grouped,
    needed_clock,
    parquet_files,
    row_bar,
    survey_of,
    weight_limit,
)
from torchpref.runs.curves import Grid
from torchpref.runs.measures import resolve_measures
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
            row_bar(progress if rank == 0 else False) as tell,
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
