"""Plant faults in a private copy of the sources and see which the tests catch: 30 of them, five in each of six folders.

A fault is one small change to one line: an operator, a constant, a comparison, or a statement left out. The draw follows from
the seed and the text of the lines, not from where they stand, so that an edit elsewhere leaves it as it is.
Faults that change nothing (equivalent ones, judged by hand) stand in ``EQUIVALENT`` and are replaced by the next draw. For each
fault the tests of the same folder run first, then the whole of ``make test``, then that of ``make test-all``; the first failure
ends it.

    python benchmarks/planted_faults.py [--seed 0] [--each 5] [--seconds 1500] [--only FOLDER] [--near] [--list]

Prints a line per fault and how many were caught by which; faults not reached in time are said so.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("runs", "kernels", "stats", "io", "rl", "evaluation")
#: Changes that nobody can see, by file, kind and text of the line, each with why; no word of it is a number of a line.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "evaluation/scores.py",
        "comparison",
        "return [None if math.isnan(own) else 1 + sum(other > own + 1e-9 for other in listed) for own in listed]",
    ): "two means differ by exactly the tolerance of 1e-9: no sums of thirds or halves do",
}
#: Needs what is not there on a plain machine (a GPU), so no test without it can see a change.
LEFT_OUT = ("kernels/cuda/",)
SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One change: what stands between two places of a file, and what will stand there instead."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str
    text: str  # the line that it is in
    copy: int = 0  # which of the changes that are alike in all of this

    @property
    def key(self) -> tuple[str, str, str]:
        return self.path, self.kind, self.text.strip()

    def rank(self, seed: int) -> bytes:
        """Its place in the draw: all that says what it is, hashed; where it stands is left out."""
        return blake2b(repr((seed, *self.key, self.old, self.new, self.copy)).encode()).digest()

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.kind}"

    def planted(self, source: str) -> str:
        assert source[self.start : self.end] == self.old
        return source[: self.start] + self.new + source[self.end :]


def faults_of(path: str, source: str) -> Iterator[Fault]:
    """Every change that can be made to one module, outside of docstrings, annotations and messages."""
    starts = [0]
    for text in source.split("\n"):
        starts.append(starts[-1] + len(text) + 1)
    lines = source.split("\n")

    def at(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def between(left: ast.expr, right: ast.expr, kind: str, swap: tuple[str, str]) -> Iterator[Fault]:
        begin, end = at(left.end_lineno or 0, left.end_col_offset or 0), at(right.lineno, right.col_offset)
        place = source.find(swap[0], begin, end)
        if place >= 0:
            yield Fault(path, left.end_lineno or 0, kind, place, place + len(swap[0]), *swap, lines[(left.end_lineno or 1) - 1])

    def visit(node: ast.AST) -> Iterator[Fault]:
        if isinstance(node, ast.Raise | ast.JoinedStr):
            return
        if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
            yield from between(node.left, node.right, "operator", SWAPS[type(node.op)])
        if isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], "operator", SWAPS[type(node.op)])
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield from between(node.left, node.comparators[0], "comparison", SWAPS[type(node.ops[0])])
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            begin, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
            old = source[begin:end]
            yield Fault(path, node.lineno, "constant", begin, end, old, f"({old} + 1)", lines[node.lineno - 1])
        if isinstance(node, ast.Assign | ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            begin, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
            if isinstance(node, ast.AugAssign | ast.Expr):
                yield Fault(path, node.lineno, "deleted line", begin, end, source[begin:end], "pass", lines[node.lineno - 1])
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from visit(child)

    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                if not isinstance(statement, ast.FunctionDef):
                    yield from visit(statement)


def folder_faults(folder: str) -> list[Fault]:
    """All changes to the modules of a folder; those that are alike are numbered in the order in which they stand."""
    found: list[Fault] = []
    alike: Counter[tuple[str, ...]] = Counter()
    for file in sorted((ROOT / "torchpref" / folder).rglob("*.py")):
        path = file.relative_to(ROOT / "torchpref").as_posix()
        if path.startswith(LEFT_OUT):
            continue
        # functions within functions are walked more than once
        once = {(fault.start, fault.kind): fault for fault in faults_of(path, file.read_text(encoding="utf-8"))}
        for _, fault in sorted(once.items()):
            same = (*fault.key, fault.old, fault.new)
            found.append(replace(fault, copy=alike[same]))
            alike[same] += 1
    return found


def draw(seed: int, each: int) -> list[Fault]:
    """The faults: ``each`` per folder, kinds in turn, each line once."""
    chosen: list[Fault] = []
    for folder in FOLDERS:
        kinds: dict[str, list[Fault]] = {}
        for fault in sorted(folder_faults(folder), key=lambda fault: fault.rank(seed)):
            if fault.key not in EQUIVALENT:
                kinds.setdefault(fault.kind, []).append(fault)
        order = sorted(kinds, key=lambda kind: blake2b(f"{seed} {folder} {kind}".encode()).digest())
        turns = (fault for turn in zip_longest(*(kinds[kind] for kind in order)) for fault in turn if fault is not None)
        mine: dict[tuple[str, int], Fault] = {}
        for fault in turns:
            if len(mine) == each:
                break
            mine.setdefault((fault.path, fault.line), fault)
        chosen += mine.values()
    return chosen


def caught(copy: Path, paths: list[str], marks: str, profile: str, seconds: float) -> bool | None:
    """Whether a test fails; None where the time ran out."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", marks, *paths]
    environment = os.environ | {"PYTHONPATH": str(copy), "HYPOTHESIS_PROFILE": profile}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=max(1.0, seconds))
    except subprocess.TimeoutExpired:
        return None
    return done.returncode not in (0, 5)


def mirrored(copy: Path, fault: Fault) -> list[str]:
    """The tests of the fault's module, then those of its folders, innermost first."""
    module = Path(fault.path)
    found = [copy / "tests" / module.parent / f"test_{module.stem}.py"]
    found += [copy / "tests" / folder for folder in module.parents[:-1]]
    return [str(path.relative_to(copy)) for path in found if path.exists()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--only", choices=FOLDERS)
    parser.add_argument("--near", action="store_true", help="only tests of the fault's own folders")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    faults = [each for each in draw(options.seed, options.each) if options.only in (None, each.path.split("/")[0])]
    counts = {"by the tests of its folder": 0, "by make test": 0, "by make test-all": 0, "by none": 0, "not reached": 0}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build"))
        for fault in faults:
            shown = f"{fault.name:<58} {fault.old.splitlines()[0][:40]!r} -> {fault.new[:40]!r}"
            if options.list:
                print(shown)
                continue
            file = copy / "torchpref" / fault.path
            source = file.read_text(encoding="utf-8")
            file.write_text(fault.planted(source), encoding="utf-8")
            verdict = None
            stages = [("by the tests of its folder", [path], "not slow", "quick") for path in mirrored(copy, fault)]
            if not options.near:
                stages += [("by make test", [], "not slow", "quick"), ("by make test-all", [], "slow or hypothesis", "full")]
            for name, paths, marks, profile in stages:
                found = caught(copy, paths, marks, profile, options.seconds - (time.monotonic() - began))
                verdict = name if found else "not reached" if found is None else "by none"
                if found or found is None:
                    break
            file.write_text(source, encoding="utf-8")
            counts[verdict or "by none"] += 1
            print(f"{shown}  caught {verdict}", flush=True)
    if not options.list:
        print(", ".join(f"{count} {name}" for name, count in counts.items()), f"of {len(faults)} faults, seed {options.seed}")


if __name__ == "__main__":
    main()
