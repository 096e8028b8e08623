"""What a reader of a log format is made of: a file with its beginning, and the reader's two functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchpref.errors import UsageError
from torchpref.io.files.source import Source

if TYPE_CHECKING:
    from torchpref.runs.tidy.schema import Tidy


def never(source: Source) -> bool:
    """The companion test of a reader that needs no second file."""
    return False


@dataclass(frozen=True)
class Reader:
    """A log format that can be read.

    Attributes:
        name: the word for ``--format``.
        title: what people call it.
        gives: the clocks that it can give, then anything else worth knowing.
        detect: whether a file's content is of this format and holds runs.
        read: the tidy rows of files of this format, companions among them.
        companion: whether a file's content belongs to runs of this format without being one (a report, a table).
        options: the options that ``read`` takes, with what each does.
        extra: the extra of torchpref that it may need.
    """

    name: str
    title: str
    gives: tuple[str, ...]
    detect: Callable[[Source], bool]
    read: Callable[[Sequence[Source], Mapping[str, Any]], Tidy]
    companion: Callable[[Source], bool] = never
    options: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``UsageError`` for an option that this reader does not have."""
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            known = ", ".join(sorted(self.options)) or "none"
            raise UsageError(
                f"format {self.name!r} has no option {', '.join(map(repr, unknown))}; its options: {known}"
            )
