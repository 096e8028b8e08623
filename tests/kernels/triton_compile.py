"""Compile the Triton kernel for an H100 or H200 (sm_90) without a device, and print registers and spills per variant.

A script, run by test_cuda.py in a process of its own: there the kernel must not be the interpreter's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from torchpref.kernels.cuda.kernel import compare_tiles
from torchpref.kernels.cuda.launch import BLOCK, warps

TABLES = ("widths", "here", "solved", "slots", "tiles", "flags")
OUTPUTS = ("lr", "rpp", "ipp", "lr_ties", "rpp_ties", "ipp_ties", "lr_solved", "lr_sooner")
NUMBERS = ("n_tiles", "n_levels", "n_systems", "n_pairs")


def signature(time: str, trials: int) -> dict[str, str]:
    kinds = dict.fromkeys(("low", "high"), f"*{time}") | dict.fromkeys(TABLES, "*i32") | dict.fromkeys(NUMBERS, "i32")
    if trials == 1:
        kinds |= dict.fromkeys(OUTPUTS, "*i32") | {"lr": "*i8"}
    else:
        kinds |= dict.fromkeys(OUTPUTS, "*i32") | {"rpp": "*i64", "ipp": "*i64"}
    return {name: kinds.get(name, "constexpr") for name in compare_tiles.arg_names}


def compile_variant(time: str, trials: int, general: bool, complete: bool) -> dict[str, Any]:
    types = signature(time, trials)
    constants = {"TRIALS": trials, "GENERAL": general, "ALL": complete, "BLOCK": BLOCK}
    aligned = {
        (index,): [["tt.divisibility", 16]] for index, (name, kind) in enumerate(types.items()) if kind.startswith("*")
    }
    source = ASTSource(fn=compare_tiles, signature=types, constexprs=constants, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps(trials)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(compiled.asm["cubin"])
        tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
        usage = subprocess.run([tool, "--dump-resource-usage", path], capture_output=True, text=True, check=True).stdout
    words = dict(word.split(":") for word in usage.split() if word.count(":") == 1 and word.split(":")[1].isdigit())
    return {
        "time": time,
        "trials": trials,
        "general": general,
        "all measures": complete,
        "registers": int(words["REG"]),
        "stack": int(words["STACK"]),
    }


if __name__ == "__main__":
    for time in ("i32", "i64"):
        for trials in (1, 3):
            for general, complete in ((False, False), (False, True), (True, True)):
                json.dump(compile_variant(time, trials, general, complete), sys.stdout)
                print()
