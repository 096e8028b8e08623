"""The fixture ``torchpref_gate`` for test suites: fail a test where a new version is worse than the one it replaces.

pytest loads this module in every run of every project that has torchpref installed, so nothing is imported here before the
fixture is used, and ``-p no:torchpref`` keeps even this module out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from torchpref.evaluation.gating import GateResult


class Gate:
    """Gates on runs of two versions."""

    def assert_not_worse(
        self,
        base: Any,
        new: Any,
        *,
        runs: Any = None,
        undecided: Literal["pass", "fail"] = "pass",
        reading: dict[str, Any] | None = None,
        **options: Any,
    ) -> GateResult:
        """Fail where ``new`` is worse than ``base``.

        Args:
            base, new: logs or tables of the two versions, each of one system; or, with ``runs``, the names of two systems.
            runs: :class:`torchpref.Trajectories` that hold both.
            undecided: ``"fail"`` to fail as well where nothing can be said.
            reading: options of :func:`torchpref.read`, such as ``{"format": "inspect", "clock": "turns"}``.
            options: options of :func:`torchpref.gate`, such as ``measure="sr"`` or ``margin=0.05``.

        Returns:
            what :func:`torchpref.gate` decides.

        Raises:
            AssertionError: it is worse; the message says by how much and how sure that is.
        """
        from torchpref.evaluation.gating import gate
        from torchpref.io.reading import read

        names = (base, new)
        if runs is None:
            runs, names = read({"base": base, "new": new}, **(reading or {})), ("base", "new")
        result: GateResult = gate(runs, *names, undecided=undecided, **options)
        if result.exit_code in (1, 3):
            raise AssertionError(result.line)
        return result


@pytest.fixture
def torchpref_gate() -> Gate:
    """Compares runs of two versions; see :class:`Gate`."""
    return Gate()
