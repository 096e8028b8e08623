"""A notebook, executed, as a Markdown page with its pictures."""

from __future__ import annotations

from pathlib import Path


def render(source: Path, folder: Path) -> None:
    """Execute the notebook and write ``NAME.md`` with its pictures into the folder; a cell that fails is an error."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import MarkdownExporter

    book = nbformat.read(source, as_version=4)
    NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(source.parent)}}
    ).execute()
    names = {"unique_key": source.stem, "output_files_dir": "."}
    page, extra = MarkdownExporter().from_notebook_node(book, resources=dict(names))
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in extra["outputs"].items():
        (folder / Path(name).name).write_bytes(picture)
        page = page.replace(f"]({name})", f"]({Path(name).name})")
    note = f"\n\n*This page is the notebook `notebooks/{source.name}`, executed when the site was built.*\n"
    head, rest = page.split("\n", 1) if page.startswith("# ") else page.strip().split("\n", 1)
    (folder / f"{source.stem}.md").write_text(head + note + rest, encoding="utf-8")
