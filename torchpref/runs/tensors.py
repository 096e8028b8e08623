"""Checks of tensors given to :class:`torchpref.Trajectories`, and their conversion to millionths and ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchpref.errors import DataError, UsageError
from torchpref.runs.units import UNKNOWN, default_resolution, to_millionths, to_ticks

_AXES = ("instance", "system", "trial", "step")


def checked_fields(
    returns: Tensor,
    lengths: Tensor | None,
    *,
    times: Mapping[str, Tensor] | None,
    present: Tensor | None,
    truncated: Tensor | None,
    systems: Sequence[str] | None,
    instances: Sequence[str] | None,
    benchmarks: Sequence[str] | str | None,
    reference_time: Tensor | Mapping[str, Tensor] | None,
    resolution: Mapping[str, float] | None,
    clock: str | None,
) -> dict[str, Any]:
    """The integer fields of a Trajectories, from float tensors; raises DataError where something does not fit."""
    returns = torch.as_tensor(returns)
    no_trials = returns.dim() == 3
    if returns.dim() not in (3, 4):
        raise DataError(
            f"returns must be [instance, system, step] or [instance, system, trial, step], got shape {list(returns.shape)}"
        )

    def full(given: Any, what: str, with_steps: bool) -> Tensor:
        tensor: Tensor = torch.as_tensor(given, device=returns.device)
        if no_trials and tensor.dim() == (3 if with_steps else 2):
            tensor = tensor.unsqueeze(2)
        wanted = shape if with_steps else shape[:3]
        if tuple(tensor.shape) != wanted:
            axes = _AXES if with_steps else _AXES[:3]
            raise DataError(
                f"{what} has shape {list(tensor.shape)}, but returns ask for [{', '.join(axes)}] = {list(wanted)}"
            )
        return tensor

    values = returns.unsqueeze(2) if no_trials else returns
    shape = tuple(values.shape)
    device = values.device
    n_instances, n_systems, n_trials, n_steps = shape
    if not n_trials:
        raise DataError(
            f"returns have no trials (shape {list(shape)}); give at least one, and mark missing runs with present="
        )

    length = torch.full(shape[:3], n_steps, device=device) if lengths is None else full(lengths, "lengths", False)
    if length.is_floating_point() or length.dtype is torch.bool:
        raise DataError(f"lengths must be whole numbers, got {length.dtype}")
    length = length.long()
    here = (
        torch.ones(shape[:3], dtype=torch.bool, device=device)
        if present is None
        else full(present, "present", False).bool()
    )
    bad = here & ((length < 0) | (length > n_steps))
    if bool(bad.any()):
        place = bad.nonzero()[0].tolist()
        raise DataError(
            f"lengths[{place}] is {int(length[tuple(place)])}; a length lies between 0 and {n_steps}, the steps given"
        )
    inside = (torch.arange(n_steps, device=device) < length.unsqueeze(-1)) & here.unsqueeze(-1)

    names = {
        "systems": _names(systems, n_systems, "system"),
        "instances": _names(instances, n_instances, "instance"),
    }
    if isinstance(benchmarks, str):
        benchmarks = [benchmarks] * n_instances
    names["benchmarks"] = ("",) * n_instances if benchmarks is None else _names(benchmarks, n_instances, "benchmark")

    clocks = dict(times) if times is not None else {}
    if times is None:
        clocks["steps"] = torch.arange(1, n_steps + 1, device=device).expand(shape)
    sizes = {name: float((resolution or {}).get(name, default_resolution(name))) for name in clocks}
    for name in resolution or {}:
        if name not in clocks:
            raise UsageError(
                f"a resolution is given for the clock {name!r}, which these runs do not have: {', '.join(clocks)}"
            )
    return {
        "returns": _millionths(values, inside),
        "lengths": length,
        "present": here,
        "times": {
            name: _ticks(full(value, f"times[{name!r}]", True), inside, sizes[name], name)
            for name, value in clocks.items()
        },
        "truncated": None if truncated is None else full(truncated, "truncated", False).bool(),
        **names,
        "resolution": sizes,
        "reference_times": _references(reference_time, clocks, sizes, clock, n_instances, device),
    }


def _names(names: Sequence[str] | None, count: int, what: str) -> tuple[str, ...]:
    if names is None:
        width = len(str(count))
        return tuple(f"{what}-{number:0{width}d}" for number in range(1, count + 1))
    if isinstance(names, str):
        raise UsageError(f"{what} names must be a list of strings, got the one string {names!r}")
    result = tuple(str(name) for name in names)
    if len(result) != count:
        raise DataError(f"{len(result)} {what} names are given, but the tensors hold {count}")
    return result


def _millionths(values: Tensor, inside: Tensor) -> Tensor:
    if values.dtype is torch.bool:
        values = values.double()
    elif not values.is_floating_point():
        integer = values.long()
        bad = inside & (integer != 0) & (integer != 1)
        if bool(bad.any()):
            place = bad.nonzero()[0].tolist()
            raise DataError(
                f"returns[{place}] is the whole number {int(integer[tuple(place)])}; give returns as floats in [0, 1] "
                "(scores divided by the run's maximum score)"
            )
    values = values.double()
    bad = inside & ~((values >= 0) & (values <= 1))
    if bool(bad.any()):
        place = bad.nonzero()[0].tolist()
        value = float(values[tuple(place)])
        remedy = (
            "mark missing runs with present=, and shorter ones with lengths="
            if value != value
            else "divide scores by the run's maximum score, or clip them"
        )
        raise DataError(f"returns[{place}] is {value!r}, not in [0, 1] ({int(bad.sum())} such values); {remedy}")
    return to_millionths(torch.where(inside, values, 0.0))


def _ticks(values: Tensor, inside: Tensor, resolution: float, clock: str) -> Tensor:
    ticks = to_ticks(torch.where(inside, values.double(), 0.0), resolution, clock)
    if ticks.shape[-1] > 1:
        # Unknown times are passed over: each known one is held against the latest known one before it.
        latest = ticks.cummax(-1).values
        back = inside[..., 1:] & (ticks[..., 1:] != UNKNOWN) & (ticks[..., 1:] < latest[..., :-1])
        if bool(back.any()):
            place = back.nonzero()[0].tolist()
            place[-1] += 1
            before = int(latest[(*place[:-1], place[-1] - 1)]) * resolution
            raise DataError(
                f"clock {clock!r} goes backwards at index {place}: {float(values[tuple(place)])!r} after {before:g}; "
                "sort the steps of each run by time, or leave unknown times as NaN"
            )
    return ticks


def _references(
    reference_time: Tensor | Mapping[str, Tensor] | None,
    clocks: Mapping[str, Any],
    sizes: Mapping[str, float],
    clock: str | None,
    n_instances: int,
    device: torch.device,
) -> dict[str, Tensor]:
    if reference_time is None:
        return {}
    if not isinstance(reference_time, Mapping):
        if clock is None and len(clocks) != 1:
            raise UsageError(
                "reference_time is one tensor, but the runs carry several clocks; give a mapping such as "
                f"{{{next(iter(clocks))!r}: ...}}"
            )
        reference_time = {clock or next(iter(clocks)): reference_time}
    result = {}
    for name, value in reference_time.items():
        if name not in clocks:
            raise UsageError(f"a reference time is given for the clock {name!r}, which these runs do not have")
        value = torch.as_tensor(value, dtype=torch.float64, device=device)
        if tuple(value.shape) != (n_instances,):
            raise DataError(
                f"reference_time has shape {list(value.shape)}, wanted one number per instance: [{n_instances}]"
            )
        result[name] = to_ticks(value, sizes[name], f"reference_time of {name}")
    return result
