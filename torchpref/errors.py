"""The errors and the warning that torchpref raises.

Everything that torchpref raises on purpose derives from :class:`TorchPrefError`, so one ``except`` clause is enough; its
message names the place, the value and the remedy.
"""

from __future__ import annotations


class TorchPrefError(Exception):
    """Base of every error raised on purpose by torchpref."""


class DataError(TorchPrefError, ValueError):
    """The data cannot be used as they are: a value out of range, a column that is missing, a file that is cut short."""


class UsageError(TorchPrefError, ValueError):
    """A call that asks for something that does not exist: an unknown measure, clock, system or option."""


class MissingExtraError(TorchPrefError, ImportError):
    """An optional package is needed and not installed.

    Args:
        package: the package that could not be imported.
        extra: the extra of torchpref that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}, which is not installed; install it with: pip install 'torchpref[{extra}]'"
        )
        self.package = package
        self.extra = extra


class TorchPrefWarning(UserWarning):
    """Something that a user should know about the data or the result; shown once, with a count."""
