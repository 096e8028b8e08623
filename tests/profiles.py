"""How many examples property tests look at: a quick look in `make test`, all in `make test-all`, many at night.

``HYPOTHESIS_PROFILE=nightly make test-all`` takes hours.
"""

import os

SHARES = {"quick": 0.25, "full": 1.0, "nightly": 50.0}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "full")
if PROFILE not in SHARES:
    raise ValueError(f"HYPOTHESIS_PROFILE is {PROFILE!r}; it is one of {', '.join(SHARES)}")


def examples(full: int) -> int:
    """The number of examples for a test that looks at ``full`` of them in the profile of that name."""
    return max(10, int(full * SHARES[PROFILE]))
