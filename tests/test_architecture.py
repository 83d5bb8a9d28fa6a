"""The map names the levels and every file as they are."""

import re
from pathlib import Path

from docs import make_files
from tests.layers import LAYERS

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FILES = (ROOT / "docs/contributing/FILES.md").read_text(encoding="utf-8")


def section(title):
    return TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_levels_are_those_that_are_enforced():
    levels = re.findall(r"^ +(\d+)  ((?:[a-z_]+ )+)", section("Layers"), re.MULTILINE)
    assert {int(level): set(rooms.split()) for level, rooms in levels} == {
        level: set(rooms) for level, rooms in enumerate(LAYERS)
    }


def test_the_list_of_files_is_made_of_their_first_sentences():
    assert make_files.page() == FILES, "run python -m docs.make_files"
    silent = [line for line in FILES.splitlines() if re.match(r"\| `[^`]*` \| \W*$", line)]
    assert not silent, "the first sentence of a file says what it does"


def test_every_room_is_described():
    rooms = {path.parent for package in ("hoodie", "spark_ext") for path in (ROOT / package).rglob("*.py")}
    assert {str(room.relative_to(ROOT)) for room in rooms} <= set(re.findall(r"^## `(.+)/`$", FILES, re.MULTILINE))


def test_the_map_stays_one():
    assert len(TEXT.splitlines()) <= 150
