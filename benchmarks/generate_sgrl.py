"""Play the SGRL suite and the demo in the real environments and write the Parquet files that ship.

"dominance" is the evidence for the policies' true order, worked out exactly from the transition functions.

    python benchmarks/generate_sgrl.py [NAME ...] [--output FOLDER]

Needs the extra ``sgrl``. Each run draws its random numbers from its own names, so the result is always
the same.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from torchpref.sgrl.order import write_dominance
from torchpref.sgrl.suites import DATA, SUITES, write

EVIDENCE = "dominance"


def main() -> None:
    """Write what is named on the command line, everything by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join([*SUITES, EVIDENCE])}; all by default"
    )
    parser.add_argument("--output", type=Path, default=DATA, help="folder to write to (default: the package's data)")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    for name in options.names or [*SUITES, EVIDENCE]:
        start = time.perf_counter()
        path = write_dominance(options.output) if name == EVIDENCE else write(name, options.output)
        print(f"{path.name}: {path.stat().st_size:,} bytes, {time.perf_counter() - start:.1f} s")
    print(f"in all {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
