"""docs/contributing/FILES.md, made from the first sentence of each file.

`python -m docs.make_files` writes it into the checkout that is the current folder; a test compares it with the sources.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

PAGE = Path("docs/contributing/FILES.md")
_ROOT = Path(__file__).resolve().parent.parent
_INTRODUCTION = """\
# Every file in a line

<!-- Made by `python -m docs.make_files`; do not edit. -->

Read [ARCHITECTURE.md](../../ARCHITECTURE.md) first: it has the layers, and the reasons. Each line is the first
sentence of a file.
"""
FOLDERS = {
    "hoodie": "The core: a package for each room.",
    "spark_ext": "The door for PySpark.",
    "conf": "Settings.",
    "docs": "Pages for users.",
    "docs/contributing": "Pages for contributors.",
    "docs/contributing/decisions": "What was chosen, since when, and why: a page a topic.",
    "demo": "What `make demo` runs.",
    "examples": "Whole programs for users.",
    "release": "What `make release` runs.",
    "benchmarks": "What `make bench` runs.",
    "integration": "What `make integration` runs: Apache Hudi's bundle, hudi-rs and servers as judges.",
    "integration/many_writers": "Many processes on one table while they are killed, paused and cut off; a checker judges it.",
}
"""The folders whose files are listed, with those below them that are packages, and what those without `__init__.py` are for."""
_WIDTH = 100
_LEFT_OUT = {"py.typed", "__init__.py"}
_DATA = {".json", ".tsv"}
_PICTURE = "A picture, made by a program of this folder or of benchmarks/."
_FIRST = {".py": r'"""(.+?)"""', ".md": r"# (.+?)\n", ".java": r"/\* (.+?)\n \*", ".xml": r"<!-- (.+?) -->"}
_COMMENT = r"(?:/\*|#) (.+?)(?: \*/)?\n"


def page() -> str:
    """The page's text."""
    return "\n\n".join([_INTRODUCTION.rstrip(), *filter(None, map(_section, _folders()))]) + "\n"


def _section(folder: Path) -> str:
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in _LEFT_OUT]
    lines = [f"| `{path.name}` | {first_sentence(path)} |" for path in files if path.suffix not in _DATA]
    name = folder.relative_to(_ROOT).as_posix()
    about = textwrap.fill(FOLDERS.get(name) or first_sentence(folder / "__init__.py"), _WIDTH)
    head = [f"## `{name}/`", "", about, "", "| file | first sentence |", "|---|---|"]
    return "\n".join([*head, *lines]) if lines else ""


def _folders() -> Iterator[Path]:
    for name in FOLDERS:
        root = _ROOT / name
        yield root
        yield from (path.parent for path in sorted(root.rglob("__init__.py")) if path.parent != root)


def first_sentence(path: Path) -> str:
    """What a file says about itself."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".svg":
        return _PICTURE
    if path.suffix == ".py":
        found = ast.get_docstring(ast.parse(text)) or ""
    else:
        match = re.search(_FIRST.get(path.suffix, _COMMENT), text, re.DOTALL)
        found = match[1] if match else ""
    paragraph = " ".join(found.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z)`\"])\.(?= [A-Z`]|$)", paragraph)[0].rstrip(".").replace("|", "\\|") + "."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
