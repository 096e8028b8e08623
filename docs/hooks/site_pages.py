"""What is made when the documentation is built: pictures, tables of options, rendered notebooks.

In a page ``<!-- options: evaluate -->`` becomes the options of that command, ``<!-- figures -->`` the definitions of
meta-evaluation, and ``pictures/NAME.svg`` is drawn by the function of that name in ``pictures.py``.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import pictures  # noqa: E402
import rendering  # noqa: E402
import tables  # noqa: E402


def _digest(*files: Path) -> str:
    """A key that changes when any of the files or the package does."""
    state = hashlib.sha256()
    for path in [*files, *sorted((ROOT / "torchpref").rglob("*.py"))]:
        state.update(path.read_bytes())
    return state.hexdigest()[:24]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pictures and the rendered notebooks; what was made before from the same sources is taken again."""
    drawn = ROOT / "build" / "pictures" / _digest(HERE / "pictures.py")
    for name in pictures.NAMES:
        path = drawn / f"{name}.svg"
        if not path.exists():
            drawn.mkdir(parents=True, exist_ok=True)
            pictures.draw(name, path)
        files.append(File.generated(config, f"pictures/{name}.svg", abs_src_path=str(path)))
    for source in sorted((ROOT / "notebooks").glob("*.ipynb")):
        folder = ROOT / "build" / "notebooks" / _digest(source, HERE / "rendering.py") / source.stem
        if not (folder / f"{source.stem}.md").exists():
            rendering.render(source, folder)
        for path in sorted(folder.iterdir()):
            files.append(File.generated(config, f"notebooks/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the tables."""
    markdown = re.sub(r"<!-- options: (\w+) -->", lambda found: tables.options_table(found[1]), markdown)
    return re.sub("<!-- figures -->", lambda found: tables.figures_table(), markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Roles of docstrings, such as :func:`x`, as plain code."""
    return re.sub(r":(?:class|func|meth|mod|data|attr):(<code>)~?", r"\1", html)
