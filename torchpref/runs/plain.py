"""Numbers as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor


def plain(values: Any, whole: bool = False) -> Any:
    """A number, a tensor or nested lists of numbers as plain Python, None where a value does not exist or is infinite.

    Args:
        values: the numbers.
        whole: give ints.
    """
    if isinstance(values, Tensor):
        values = values.detach().tolist()
    if isinstance(values, list):
        return [plain(each, whole) for each in values]
    if not math.isfinite(values):
        return None
    return int(values) if whole else float(values) if not isinstance(values, int) else values
