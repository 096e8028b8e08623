"""Naming the columns of somebody's table in the words of the tidy table, joining some of them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchpref.errors import DataError, UsageError
from torchpref.runs.tidy.schema import CLOCKS, COLUMNS, FAMILIES, MARK, NAMES, PLACE, ROW, VALUES, is_tidy

if TYPE_CHECKING:
    import polars

#: How ``columns=`` may be given: a mapping, ``"A=B,C=D+E"``, or a list of ``"A=B"``.
ColumnsLike = Mapping[str, str] | str | Sequence[str] | None
JOINT = "/"


def parse_columns(columns: ColumnsLike) -> dict[str, str]:
    """The mapping from the tidy table's names to columns of the file.

    Raises:
        UsageError: a part without ``=``, a name that the tidy table does not have, or a name given twice.
    """
    if not columns:
        return {}
    pairs: list[tuple[str, str]] = []
    if isinstance(columns, Mapping):
        pairs = [(str(name), str(source)) for name, source in columns.items()]
    else:
        for part in columns.split(",") if isinstance(columns, str) else columns:
            name, equals, source = str(part).partition("=")
            if not equals:
                raise UsageError(f"columns: {part!r} is not of the form NAME=COLUMN, such as system=model")
            pairs.append((name.strip(), source.strip()))
    mapping: dict[str, str] = {}
    for name, source in pairs:
        if not is_tidy(name):
            raise UsageError(
                f"columns: {name!r} is not a column of the tidy table{suggest(name, COLUMNS)}; on the left stands one of "
                f"{', '.join((*NAMES, 'step', *CLOCKS, *VALUES))}, max_score, truncated, reference_time, families"
            )
        if name in mapping:
            raise UsageError(f"columns: {name!r} is given twice ({mapping[name]!r} and {source!r})")
        if not source:
            raise UsageError(f"columns: {name}= names no column")
        mapping[name] = source
    return mapping


def suggest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` where a known name is close to a given one, else nothing."""
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=2, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(by_lower[each]) for each in close)}?)" if close else ""


def listed(names: Iterable[str], limit: int = 40) -> str:
    """Names for a message, cut where they are many."""
    shown = [name for name in names if name not in (ROW, PLACE, MARK)]
    more = f", … ({len(shown)} in all)" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def sources_of(name: str, source: str, available: Sequence[str], where: str) -> list[str]:
    """The columns that make one tidy column: a single one, or several joined by ``+``; empty for a constant.

    Raises:
        DataError: one of them does not exist; the message lists those that do.
    """
    if source in available:
        return [source]
    if name == "max_score" and _is_number(source):
        return []
    if name in CLOCKS and (ends := _difference(source, available)):
        return list(ends)
    parts = [part.strip() for part in source.split("+")]
    for part in parts:
        if part not in available:
            raise DataError(
                f"{where}: there is no column {part!r} for {name}={source}{suggest(part, available)}; "
                f"the columns are: {listed(available)}"
            )
    if len(parts) > 1 and name not in (*NAMES, FAMILIES):
        joined = ", ".join((*NAMES, FAMILIES))
        raise UsageError(f"columns: {name}={source} joins columns, but only names can be joined ({joined})")
    return parts


def _difference(source: str, available: Collection[str]) -> tuple[str, str] | None:
    """The two columns of ``END-START``; None where no column names stand on both sides of a minus."""
    if source in available:
        return None
    places = [at for at, letter in enumerate(source) if letter == "-"]
    pairs = [(source[:at].strip(), source[at + 1 :].strip()) for at in places]
    return next(((end, start) for end, start in pairs if end in available and start in available), None)


def needed(mapping: Mapping[str, str], available: Sequence[str], where: str) -> list[str]:
    """The columns of a file that have to be read: the mapped ones, and those that carry a tidy name themselves."""
    wanted = {part for name, source in mapping.items() for part in sources_of(name, source, available, where)}
    wanted |= {name for name in available if is_tidy(name) and name not in mapping}
    return [name for name in available if name in wanted]


def rename(frame: polars.DataFrame, mapping: Mapping[str, str], where: str) -> polars.DataFrame:
    """The columns of the tidy table out of a file's columns; joined names stand with ``/`` between them.

    A joined name is empty only where all of its parts are.
    """
    import polars as pl

    from torchpref.runs.tidy.cells import names_expr

    available = [name for name in frame.columns if name not in (ROW, PLACE, MARK)]
    expressions: list[polars.Expr | polars.Series] = []
    for name in dict.fromkeys([*COLUMNS, *mapping, *filter(is_tidy, available)]):
        if name in mapping:
            parts = sources_of(name, mapping[name], available, where)
            ends = _difference(mapping[name], available) if name in CLOCKS else None
            if ends is not None:
                expressions.append(_elapsed(frame, *ends, name, where))
            elif not parts:
                expressions.append(pl.lit(float(mapping[name])).alias(name))
            elif len(parts) == 1:
                expressions.append(pl.col(parts[0]).alias(name))
            else:
                cells = [names_expr(part, frame.schema[part]) for part in parts]
                joined = pl.concat_str([cell.fill_null("") for cell in cells], separator=JOINT)
                expressions.append(
                    pl.when(pl.any_horizontal(cell.is_not_null() for cell in cells)).then(joined).alias(name)
                )
        elif name in available:
            expressions.append(pl.col(name))
    expressions += [pl.col(name) for name in (ROW, PLACE, MARK) if name in frame.columns]
    return frame.select(expressions)


def _elapsed(frame: polars.DataFrame, end: str, start: str, name: str, where: str) -> polars.Series:
    """Seconds between two columns of time stamps or numbers; a negative length is not known."""
    import polars as pl

    from torchpref.runs.tidy.cells import EMPTY_WORDS
    from torchpref.runs.tidy.durations import moment_of

    def moments(column: str) -> list[float | None]:
        cells = frame[column]
        if cells.dtype.is_temporal():
            cells = cells.cast(pl.Datetime("us")).cast(pl.Int64) / 1e6
        found: list[float | None] = []
        for cell in cells.to_list():
            text = "" if cell is None else str(cell).strip()
            value = None if text.lower() in EMPTY_WORDS else moment_of(text)
            if value is None and text.lower() not in EMPTY_WORDS and text.lower() != "nan":
                raise DataError(
                    f"{where}: {text[:40]!r} in the column {column!r} is neither a time stamp nor a number, as "
                    f"{name}={end}-{start} needs; write time stamps like 2026-01-31T12:00:00"
                )
            found.append(value)
        return found

    pairs = zip(moments(end), moments(start), strict=True)
    lengths = [None if last is None or first is None else round(last - first, 6) for last, first in pairs]
    return pl.Series(name, [None if length is None or length < 0 else length for length in lengths], dtype=pl.Float64)


def value_column(names: Collection[str], mapped: Mapping[str, str], available: Sequence[str], place: str) -> str:
    """The column of a tidy table that says what was reached.

    Args:
        names: the tidy columns that there are.
        mapped: those of them that the user named; one of these goes before others that merely have a tidy name.
        available: the columns of the file, for the message.
        place: what is read, for the message.

    Raises:
        DataError: there is none, there are two, or a column that belongs to it is missing; the columns are listed.
    """
    problems = [
        f"there is no column {name!r}{suggest(name, available)}" for name in ("system", "instance") if name not in names
    ]
    values = [name for name in VALUES if name in names]
    chosen = [name for name in values if name in mapped] or values
    if len(chosen) > 1:
        raise DataError(
            f"{place}: there are {len(chosen)} columns that say what was reached ({', '.join(chosen)}), and only one "
            f"can be used; choose with columns, such as {chosen[0]}={mapped.get(chosen[0], chosen[0])}"
        )
    if not chosen:
        problems.append(
            f"no column says what was reached: one of {', '.join(VALUES)} is needed (return in [0, 1]; score with max_score)"
        )
    if problems:
        from torchpref.runs.tidy.recognise import command

        raise DataError(
            f"{place}: {'; '.join(problems)}; the columns are: {listed(available)}; map each with columns, such as: "
            f"{command(place, mapped, names)}"
        )
    if chosen == ["score"] and "max_score" not in names:
        column = mapped.get("score", "score")
        raise DataError(
            f"{place}: scores need max_score, the highest score that can be reached; map a column or give a number "
            f"with columns, such as score={column},max_score=100, or use return={column} if the scores are in [0, 1]"
        )
    return chosen[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
