"""Play the SGRL suite and the demo in the real environments and write the Parquet files that ship with the package.

    python benchmarks/generate_sgrl.py [NAME ...] [--output FOLDER]

Needs the extra ``sgrl``. Each run draws its random numbers from its own names, so the result is the same every time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from torchpref.sgrl.suites import DATA, SUITES, write


def main() -> None:
    """Write the sets named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(SUITES)}; all by default")
    parser.add_argument("--output", type=Path, default=DATA, help="folder to write to (default: the package's data)")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or SUITES:
        start = time.perf_counter()
        path = write(name, options.output)
        print(f"{path.name}: {path.stat().st_size:,} bytes, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
