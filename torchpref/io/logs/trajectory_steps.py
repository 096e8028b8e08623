"""What an ATIF trajectory tells about a run: its steps, time, tokens and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchpref.io.logs.records import Notes, dict_at, list_at, total


def clocks(trajectory: Mapping[str, Any], where: object, notes: Notes) -> dict[str, float | None]:
    """The clocks at the end of a trajectory.

    ``steps`` are the agent's, without those copied from an earlier trajectory for context; ``seconds`` from the first to the
    last step; ``tokens`` (prompt and completion) and ``cost`` as ``final_metrics`` says, else added up over the steps.
    """
    steps = [step for step in list_at(trajectory, "steps") if isinstance(step, dict)]
    copied = [step for step in steps if step.get("is_copied_context") is True]
    if copied:
        notes.add(
            "context_copied",
            "steps copied from an earlier trajectory for context are not counted",
            severity="note",
            count=len(copied),
            example=where,
        )
        steps = [step for step in steps if step.get("is_copied_context") is not True]
    own = [step for step in steps if step.get("source") == "agent"]
    stamps = [step["timestamp"] for step in steps if step.get("timestamp") is not None]
    final = dict_at(trajectory, "final_metrics")

    def summed(name: str) -> float | None:
        return total(notes.clock(dict_at(step, "metrics").get(name), where, name) for step in own)

    tokens = [
        notes.clock(final.get(f"total_{name}"), where, f"total_{name}")
        if final.get(f"total_{name}") is not None
        else summed(name)
        for name in ("prompt_tokens", "completion_tokens")
    ]
    cost = final.get("total_cost_usd")
    return {
        "steps": float(len(own)) if steps else None,
        "seconds": notes.elapsed(stamps[0], stamps[-1], where) if len(stamps) > 1 else None,
        "tokens": total(tokens),
        "cost": notes.clock(cost, where, "total_cost_usd") if cost is not None else summed("cost_usd"),
    }
