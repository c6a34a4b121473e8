"""Runs the examples of docs/gallery.md and its notebook, and keeps their pictures: ``python
docs/gallery_pictures.py [folder]``."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

DOCS = Path(__file__).resolve().parent


def examples(page: str) -> Iterator[str]:
    """The blocks of Python that draw a picture."""
    blocks = r"(<!-- not run: [^\n]* -->\n)?```python\n(.*?)^```"
    for mark, code in re.findall(blocks, page, re.M | re.S):
        if not mark:
            yield code


def cells(notebook: str) -> Iterator[str]:
    """The code of a notebook."""
    for cell in json.loads(notebook)["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def main(folder: Path) -> None:
    page = (DOCS / "gallery.md").read_text("utf-8")
    notebook = "\n".join(cells((DOCS / "gallery.ipynb").read_text("utf-8")))
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)
        for code in (*examples(page), notebook):
            exec(compile(code, "gallery", "exec"), {})
        for picture in sorted(Path(made).glob("*.png")):
            (folder / picture.name).write_bytes(picture.read_bytes())
            print(f"{picture.name}: {picture.stat().st_size // 1024} kB")
        os.chdir(here)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else DOCS / "images" / "gallery")
