"""The map names the levels, every file and every public name as they are."""

import ast
import re
from pathlib import Path

import pytest

import hoodie
import pyspark_hoodie
from tests.layers import LAYERS

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FILES = (ROOT / "docs/contributing/FILES.md").read_text(encoding="utf-8")


def section(title):
    return TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def described():
    """Folder -> the names of the files that the page describes in it."""
    found, folder = {}, None
    for line in FILES.split("```")[1].splitlines():
        if match := re.match(r"([\w/]+)/ +\S", line):
            folder = found.setdefault(match[1], set())
        elif match := re.match(r"  (\S+)  +\S", line):
            folder.add(match[1])
    return found


def says_something(path):
    """False for an `__init__.py` that only has a docstring, and for marker files."""
    if path.name == "__init__.py":
        return any(not isinstance(node, ast.Expr) for node in ast.parse(path.read_text(encoding="utf-8")).body)
    return path.name != "py.typed"


def test_the_levels_are_those_that_are_enforced():
    levels = re.findall(r"^ +(\d+)  ((?:[a-z_]+ )+)", section("Layers"), re.MULTILINE)
    assert {int(level): set(rooms.split()) for level, rooms in levels} == {
        level: set(rooms) for level, rooms in enumerate(LAYERS)
    }


@pytest.mark.parametrize("folder", described())
def test_every_file_has_its_line(folder):
    files = {path.name for path in (ROOT / folder).iterdir() if path.is_file() and says_something(path)}
    assert described()[folder] == files


def test_every_room_is_described():
    rooms = {path.parent for package in ("hoodie", "spark_ext") for path in (ROOT / package).rglob("*.py")}
    assert {str(room.relative_to(ROOT)) for room in rooms} <= set(described())


def test_the_public_names_are_all_there():
    core, door = section("Public names").split("`pyspark_hoodie`:")
    named = set(re.search(r"`(open_table [^`]*)`", core)[1].split())
    assert named == {name for name in hoodie.__all__ if not name.endswith("Error")}
    assert set(re.search(r"`([^`]*)`", door)[1].split()) == set(pyspark_hoodie.__all__)
