"""Choosing columns and rows of a tidy frame by the names that a user gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torchpref.runs.tidy.columns import rename
from torchpref.runs.tidy.places import place_words, with_places
from torchpref.runs.tidy.schema import ROW, Tidy
from torchpref.runs.tidy.where import Condition, filter_rows


def refine(tidy: Tidy, mapping: Mapping[str, str], conditions: Sequence[Condition]) -> Tidy:
    """Map columns and keep rows of a frame that is there already."""
    frame = tidy.frame
    if ROW not in frame.columns:
        frame = frame.with_row_index(ROW)
    columns = tidy.columns or tuple(name for name in frame.columns if not name.startswith("__"))
    frame = with_places(frame, place_words([*mapping.values(), *(column for column, _, _ in conditions)]))
    own = [condition for condition in conditions if condition[0] in frame.columns or condition[0] not in mapping]
    frame = filter_rows(frame, own, tidy.place)
    frame = rename(frame, mapping, tidy.place)
    frame = filter_rows(frame, [condition for condition in conditions if condition not in own], tidy.place)
    return replace(tidy, frame=frame, mapped={**tidy.mapped, **mapping}, columns=columns)
