"""The shape of the package: what may import what. The rules are those of docs/contributing.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import torchpref as tp

PACKAGE = Path(tp.__file__).parent
CONTRIBUTING = PACKAGE.parent / "docs/contributing.md"

#: Folders and files from the bottom to the top; those in one row do not import each other.
LAYERS = (
    ("errors",),
    ("runs",),
    ("kernels", "io", "report"),
    ("pairwise", "sgrl"),
    ("stats",),
    ("rl", "meta", "evaluation"),
    ("cli",),
    ("__init__", "__main__", "distributed"),
)
LEVEL = {room: level for level, row in enumerate(LAYERS) for room in row}


@dataclass(frozen=True)
class Import:
    """One import of this package by this package, wherever it stands: in a function or for annotations too."""

    importer: str
    imported: str
    place: str


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_names(node: ast.AST) -> Iterator[str]:
    """Modules that a statement imports, as names within the package; ``__init__`` is the package itself."""
    if isinstance(node, ast.Import):
        full = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        full = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    for name in full:
        if name == "torchpref" or name.startswith("torchpref."):
            inside = name.removeprefix("torchpref").removeprefix(".")
            while inside and inside not in MODULES:
                inside = inside.rpartition(".")[0]
            yield inside or "__init__"


def imports() -> list[Import]:
    found = []
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            place = f"torchpref/{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
            found += [Import(name, other, place) for other in imported_names(node) if other != name]
    return found


IMPORTS = imports()


def room(module: str) -> str:
    return module.partition(".")[0]


def level(module: str) -> int:
    return LEVEL[room(module)]


def test_at_most_twelve_rooms():
    names = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    beside = {"__init__", "__init__.pyi", "__main__", "py.typed", "distributed"}
    assert names - beside <= {name for row in LAYERS[:-1] for name in row}
    assert len({name for row in LAYERS[:-1] for name in row}) <= 12


def test_imports_run_one_way():
    top = LAYERS[-1]
    wrong = [
        f"{one.place}: {one.importer} imports {one.imported}, which lies {'beside' if same else 'above'} it"
        for one in IMPORTS
        if room(one.importer) != room(one.imported)
        # the package hands out public names and lends its version; its own imports are those of its users
        and room(one.importer) not in top
        and ((same := level(one.importer) == level(one.imported)) or level(one.importer) < level(one.imported))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circles():
    """Nowhere, inside folders neither; imports for annotations count."""
    graph: dict[str, dict[str, str]] = {name: {} for name in MODULES}
    for one in IMPORTS:
        if one.importer != "__init__":
            graph[one.importer].setdefault(one.imported, one.place)
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            circle = [*path[path.index(name) :], name]
            steps = [f"{graph[a][b]}: {a} imports {b}" for a, b in zip(circle, circle[1:], strict=False)]
            pytest.fail("a circle of imports:\n" + "\n".join(steps))
        if name in done:
            return
        for other in graph[name]:
            visit(other, [*path, name])
        done.add(name)

    for name in graph:
        visit(name, [])


def test_no_room_bears_the_name_of_a_public_function():
    functions = {
        name for name in tp._EXPORTS if callable(getattr(tp, name)) and not isinstance(getattr(tp, name), type)
    }
    assert not functions & set(LEVEL)


def test_every_folder_is_explained():
    page = CONTRIBUTING.read_text()
    packages = [name for name, path in MODULES.items() if path.name == "__init__.py" and name != "__init__"]
    folders = {name.replace(".", "/") + "/" for name in packages}
    assert [folder for folder in sorted(folders) if f"`{folder}`" not in page] == []
