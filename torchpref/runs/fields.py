"""The integer fields of runs brought into order: padding, names, the best times of instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.runs.units import MILLION, NEVER, UNKNOWN


def tidy_padding(fields: dict[str, Any]) -> None:
    """Running maximum; behind the last step, and where no run is, one defined value."""
    returns, lengths, present = fields["returns"], fields["lengths"], fields["present"]
    lengths = torch.where(present, lengths, 0).long()
    steps = torch.arange(returns.shape[-1], device=returns.device)
    inside = steps < lengths.unsqueeze(-1)
    if returns.shape[-1]:
        returns = torch.where(inside, returns, 0).to(torch.int32).cummax(-1).values
        last = (lengths - 1).clamp(min=0).unsqueeze(-1)
        fields["times"] = {
            clock: torch.where(inside, ticks, torch.where(lengths.unsqueeze(-1) > 0, ticks.gather(-1, last), 0))
            for clock, ticks in fields["times"].items()
        }
    fields["returns"], fields["lengths"] = returns, lengths
    if fields["truncated"] is not None:
        truncated = fields["truncated"] & present
        fields["truncated"] = truncated if bool(truncated.any()) else None


def checked_families(families: Sequence[str | None] | None, instances: int) -> tuple[str | None, ...] | None:
    """One label per instance; None for all where no instance has one."""
    if families is None:
        return None
    if isinstance(families, str):
        raise UsageError(f"families must be a list of labels, got the one string {families!r}")
    labels = tuple(None if label is None else str(label) for label in families)
    if len(labels) != instances:
        raise DataError(f"families has {len(labels)} labels; wanted one per instance, {instances}, in their order")
    return labels if any(label is not None for label in labels) else None


def sort_names(fields: dict[str, Any]) -> None:
    """Systems by name, instances by benchmark and name, so that the order of rows in a file never matters."""
    systems, instances, benchmarks = fields["systems"], fields["instances"], fields["benchmarks"]
    keys = list(zip(benchmarks, instances, strict=True))
    for what, names in (("system", systems), ("instance", keys)):
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"the {what} {twice!r} stands twice among the names; names must be distinct")
    cols = sorted(range(len(systems)), key=lambda i: systems[i])
    rows = sorted(range(len(keys)), key=lambda i: keys[i])
    if cols != list(range(len(cols))):
        index = torch.as_tensor(cols, device=fields["returns"].device)
        _reorder(fields, index, dim=1)
        fields["systems"] = tuple(systems[i] for i in cols)
    if rows != list(range(len(rows))):
        index = torch.as_tensor(rows, device=fields["returns"].device)
        _reorder(fields, index, dim=0)
        for name in ("reference_times", "best_times"):
            if fields[name] is not None:
                fields[name] = {clock: ticks.index_select(0, index) for clock, ticks in fields[name].items()}
        if fields["families"] is not None:
            fields["families"] = tuple(fields["families"][i] for i in rows)
        fields["instances"] = tuple(instances[i] for i in rows)
        fields["benchmarks"] = tuple(benchmarks[i] for i in rows)


def _reorder(fields: dict[str, Any], index: Tensor, dim: int) -> None:
    for name in ("returns", "lengths", "present", "truncated"):
        if fields[name] is not None:
            fields[name] = fields[name].index_select(dim, index)
    fields["times"] = {clock: ticks.index_select(dim, index) for clock, ticks in fields["times"].items()}


def best_times(returns: Tensor, present: Tensor, ticks: Tensor) -> Int[Tensor, " instance"]:
    """Least positive time of success of each instance over all runs; UNKNOWN where there is none."""
    if not returns.shape[-1]:
        return torch.full((returns.shape[0],), UNKNOWN, device=returns.device)
    solved = returns >= MILLION
    first = solved.to(torch.int8).argmax(-1, keepdim=True)
    when = ticks.gather(-1, first).squeeze(-1)
    usable = solved[..., -1] & present & (when > 0)
    best = torch.where(usable, when, NEVER).flatten(1)
    if not best.shape[1]:
        return torch.full((returns.shape[0],), UNKNOWN, device=returns.device)
    least = best.amin(1)
    return torch.where(least == NEVER, UNKNOWN, least)
