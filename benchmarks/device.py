"""The CUDA kernel on a GPU: equal to the CPU's, and how many comparisons it does in a second. Under five minutes.

    python benchmarks/device.py

Prints tables; nothing is written. Needs a CUDA device and Triton.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

import torch  # noqa: E402
from kernels_data import all_pairs, curves  # noqa: E402


def device_seconds(call: Callable[[], object], repeat: int = 20) -> float:
    """Median time on the device."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeat):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def check() -> int:
    """Hold the kernel against the CPU's on the corpus of hard curves; the number of cases."""
    from kernels.corpus import KINDS, SHAPES, assert_same, pairs_of
    from kernels.corpus import curves as hard
    from torchpref.kernels.cpu import choose as cpu
    from torchpref.kernels.cuda import launch as cuda

    for kind in KINDS:
        for shape in SHAPES:
            data = hard(kind, shape)
            pairs = pairs_of(data)
            ours = cuda.compare_pairs(data.to("cuda"), pairs.cuda()).to("cpu")
            assert_same(ours, cpu.compare_pairs(data, pairs), f"{kind.name} {shape}")
    return len(KINDS) * len(SHAPES)


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("no CUDA device: nothing to measure")
    from torchpref.kernels.cuda import launch as cuda

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"equal to the CPU on {check()} cases\n")
    print("| instances, systems, levels | data | all: 10⁹/s | RPP alone: 10⁹/s | from curves ms |")
    print("| --- | --- | --- | --- | --- |")
    for shape in ((500, 34, 10), (1000, 100, 20), (200, 50, 200), (1000, 1000, 20)):
        for kind in ("steps", "unknown and truncated"):
            data = curves(*shape, kind).to("cuda")
            pairs = all_pairs(shape[1]).cuda()
            tables = cuda.build(data)
            comparisons = shape[0] * len(pairs) * shape[2]

            def compare(only_rpp: bool, tables: cuda.Tables = tables, pairs: torch.Tensor = pairs) -> None:
                cuda.compare_tables(tables, pairs, int(pairs.max()) + 1, only_rpp=only_rpp)

            complete = device_seconds(lambda compare=compare: compare(False))
            rpp = device_seconds(lambda compare=compare: compare(True))
            whole = device_seconds(lambda data=data, pairs=pairs: cuda.compare_pairs(data, pairs), repeat=5)
            row = (
                str(shape),
                kind,
                f"{comparisons / complete / 1e9:.0f}",
                f"{comparisons / rpp / 1e9:.0f}",
                f"{1e3 * whole:.1f}",
            )
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
