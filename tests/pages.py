"""The pages for users, their examples, and what runs these.

Blocks marked ```python run as they stand, one after the other in one empty folder, and so do the `hoodie …` lines of
blocks marked ```sh. Blocks marked ```python spark run in a Spark session instead. An expression followed by `# -> text`
must be worth `text`.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hoodie.cli.__main__ import main as command

ROOT = Path(__file__).resolve().parent.parent
USER_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [*USER_PAGES, *sorted((ROOT / "docs/contributing").rglob("*.md"))]
ALL_PAGES += [ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")]

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMISED = re.compile(r"#\s*->\s*(.*\S)")


@dataclass(frozen=True)
class Block:
    """An example: its language as the page marks it, its text, and how many lines of the page stand before it."""

    page: Path
    marked: str
    text: str
    lines_before: int


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(page: Path, *marks: str) -> list[Block]:
    """The page's blocks with one of these marks, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, match[1].strip(), match[2], text[: match.start(2)].count("\n"))
        for match in _BLOCK.finditer(text)
        if match[1].strip() in marks
    ]


def run_block(block: Block, names: dict[str, Any]) -> None:
    """Run one block; its names stay in `names`. An AssertionError where a value is not what the page says."""
    if block.marked == "sh":
        for line in block.text.splitlines():
            if line.startswith("hoodie "):
                words = shlex.split(line, comments=True)
                assert command(words[1:]) == 0, f"{name_of(block.page)}: {line}"
        return
    # Empty lines in front, so that a traceback names the page's own line.
    source = "\n" * block.lines_before + block.text
    lines = source.splitlines()
    for node in ast.parse(source, filename=name_of(block.page)).body:
        promised = _PROMISED.search(lines[node.end_lineno - 1]) if node.end_lineno else None
        if promised is not None and isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), name_of(block.page), "eval"), names)
            assert repr(value) == promised[1], f"{name_of(block.page)}:{node.lineno} is worth {value!r}"
        else:
            exec(compile(ast.Module([node], []), name_of(block.page), "exec"), names)


if __name__ == "__main__":
    page = ROOT / sys.argv[1]
    shared: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(page, "python spark"):
        run_block(block, shared)
