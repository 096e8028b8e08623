"""What the report page shows, as plain values: leaderboards, preferences, Δ of every instance, curves."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from torchpref.report.numbers import printable
from torchpref.runs.curves import LEVEL_PAD, curves
from torchpref.runs.measures import CURVE_MEASURES, MEASURES, describe
from torchpref.runs.units import MILLION, UNKNOWN

if TYPE_CHECKING:
    from torchpref.report.shapes import EvaluationLike, MeasureLike

#: In the page Δ is a whole number of hundredths; this stands for "not compared".
NOT_COMPARED = 127


def page_data(result: EvaluationLike, budget: int) -> dict[str, Any]:
    """Everything that the page's script needs, in at most about ``budget`` bytes.

    Δ of every instance and pair, and the curves of all runs, are what grows. If they do not fit, Δ is kept for as many
    measures as fit (the one that judges first, then LR, RPP, IPP), then for as many of the leading systems; curves are
    left out if they do not fit into what remains. ``data["limits"]`` says in words what is missing.
    """
    runs = result.runs
    data: dict[str, Any] = {
        "systems": [printable(name) for name in runs.systems],
        "instances": [printable(name) for name in runs.instances],
        "benchmarks": [printable(name) for name in runs.benchmarks],
        "clock": result.clock,
        "trials": runs.shape[2],
        "judge": result.judge,
        "measures": {name: _measure(result, name) for name in result.measures},
        "limits": [],
    }
    left = budget - len(json.dumps(data))
    left -= _add_deltas(result, data, left)
    _add_curves(result, data, left)
    return data


def _measure(result: EvaluationLike, name: str) -> dict[str, Any]:
    one = result.measures[name]
    rows = []
    for row in result.rows(name):
        i = result.systems.index(row["system"])
        record = {
            "system": i,
            "rank": row["rank"],
            "score": _rounded(row["score"]),
            "low": _rounded(row["score_low"]),
            "high": _rounded(row["score_high"]),
            "mean": _rounded(row["mean_preference"]),
            "success": _rounded(row["success_rate"]),
            "partial": _rounded(row["partial_return"]),
            "median": _significant(row["median_time"]),
            "instances": row["instances"],
        }
        if one.split is not None:
            record |= {key.replace(" ", "_"): _rounded(values[i].item()) for key, values in one.split.items()}
        if one.board is not None and result.systems[i] in one.board.systems:
            place = one.board.systems.index(result.systems[i])
            record["ranks"] = one.board.rank_interval[place].tolist()
        rows.append(record)
    return {
        "title": describe(name).title,
        "description": describe(name).description,
        "temporal": describe(name).temporal,
        "status": one.status,
        "tie_rate": _rounded(one.tie_rate, 6),
        "run_pairs": one.run_pairs,
        "rows": rows,
        "split": one.split is not None,
        "groups": _groups(one, result.systems),
        "mean": [[_rounded(value) for value in row] for row in one.mean_preference.tolist()],
    }


def _groups(one: MeasureLike, systems: tuple[str, ...]) -> list[list[int]]:
    """Systems that cannot be told apart, by position."""
    if one.board is None:
        return []
    return [[systems.index(name) for name in group] for group in one.board.groups if len(group) > 1]


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None or value != value else round(value, digits)


def _significant(value: float | None) -> float | None:
    return None if value is None or value != value else float(f"{value:.6g}")


def _add_deltas(result: EvaluationLike, data: dict[str, Any], left: int) -> int:
    """Δ of every instance and pair of systems for as many measures, then systems, as fit; returns the bytes used."""
    wanted = dict.fromkeys((result.judge, *CURVE_MEASURES, *reversed(MEASURES)))
    available = [name for name in wanted if _has_preferences(result, name)]
    count, instances = len(result.systems), len(result.runs.instances)
    if not available or count < 2:
        return 0

    def size(systems: int) -> int:
        return instances * systems * (systems - 1) // 2 * 4 // 3

    keep = count
    while keep > 2 and size(keep) > left:
        keep -= 1
    chosen = sorted(result.measures[available[0]].order[:keep])
    used = 0
    deltas: dict[str, str] = {}
    for name in available:
        if used + size(keep) > left:
            break
        deltas[name] = base64.b64encode(_delta(result, name, chosen).tobytes()).decode()
        used += len(deltas[name])
    data["deltas"], data["delta_systems"] = deltas, chosen
    if keep < count:
        data["limits"].append(
            f"Instances can be looked at for the first {keep} of {count} systems only, to keep the page small."
        )
    if len(deltas) < len(available):
        there, missing = (
            ", ".join(name.upper() for name in available if (name in deltas) == kept) for kept in (True, False)
        )
        data["limits"].append(f"Instances can be looked at for {there or 'no measure'}, not for {missing}.")
    return used


def _has_preferences(result: EvaluationLike, name: str) -> bool:
    return name in result.measures and result.measures[name].preferences is not None


def _delta(result: EvaluationLike, name: str, chosen: list[int]) -> Any:
    """int8 ``[pair, instance]`` of Δ in hundredths, pairs of the chosen systems in lexicographic order."""
    prefs = result.measures[name].preferences
    assert prefs is not None
    delta = prefs.delta.cpu().numpy()
    hundredths = np.where(np.isnan(delta), NOT_COMPARED, np.rint(np.nan_to_num(delta) * 100)).astype(np.int8)
    # A small preference must not look like a tie.
    hundredths = np.where((hundredths == 0) & (np.nan_to_num(delta) != 0), np.sign(delta), hundredths).astype(np.int8)
    own = {system: position for position, system in enumerate(prefs.systems)}
    rows = np.full((len(chosen) * (len(chosen) - 1) // 2, delta.shape[0]), NOT_COMPARED, dtype=np.int8)
    names = [result.systems[i] for i in chosen]
    index = 0
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            if names[a] in own and names[b] in own:
                rows[index] = hundredths[:, prefs.pair_index(names[a], names[b])[0]]
            index += 1
    return rows


def _add_curves(result: EvaluationLike, data: dict[str, Any], left: int) -> None:
    """Per instance and system a list of trials, each a flat list time, level, time, level …; -1 is an unknown time."""
    runs = result.runs.to("cpu")
    if result.clock is None:
        return
    jumps = curves(runs, result.clock)
    real = (jumps.levels != LEVEL_PAD).numpy()
    # About eleven characters per jump, and three per run.
    if 11 * int(real.sum()) + 3 * int(runs.present.sum()) > left:
        data["limits"].append("Return curves are left out, to keep the page small.")
        return
    levels = jumps.levels.numpy()
    times = jumps.ticks.numpy() * runs.resolution[result.clock]
    unknown = jumps.ticks.numpy() == UNKNOWN
    present = runs.present.numpy()
    chosen = data.get("delta_systems", range(len(runs.systems)))
    table: list[list[Any]] = []
    for i in range(len(runs.instances)):
        row: list[Any] = []
        for s in chosen:
            cell = []
            for t in range(runs.shape[2]):
                if present[i, s, t]:
                    cell.append(_flat(levels[i, s, t], times[i, s, t], unknown[i, s, t], real[i, s, t]))
            row.append(cell)
        table.append(row)
    data["curves"] = table
    reference = runs.reference_ticks(result.clock).numpy()
    data["reference"] = [
        None if tick == UNKNOWN else float(f"{tick * runs.resolution[result.clock]:.6g}") for tick in reference
    ]


def _flat(levels: Any, times: Any, unknown: Any, real: Any) -> list[float]:
    flat: list[float] = []
    for k in np.flatnonzero(real):
        time = -1 if unknown[k] else float(f"{times[k]:.6g}")
        flat += [int(time) if time == int(time) else time, float(f"{levels[k] / MILLION:.6g}")]
    return flat
