"""One layout a table version, and nobody else who asks for a number."""

import pickle
import re
from pathlib import Path

import pytest

from hoodie.format import layout as module
from hoodie.format.layout import LAYOUTS, READ_VERSIONS, TIMELINES, V3, V4, V5, V6, V8, V9, VERSIONS, layout_named
from hoodie.model.enums import Action, State, TableVersion
from hoodie.model.instant import Instant, InstantTime

ROOT = Path(module.__file__).parents[2]
COMPARISON = re.compile(r"TableVersion\.V\d|\bversion\)? *(?:[<>]=?|[!=]=|is(?: not)?|in) *[\"'{(]?[6-9]")


def t(number):
    return InstantTime(f"20260101000000{number:03d}")


def test_nobody_else_compares_versions():
    sources = [*ROOT.glob("hoodie/**/*.py"), *ROOT.glob("spark_ext/**/*.py")]
    found = {str(path.relative_to(ROOT)) for path in sources if COMPARISON.search(path.read_text(encoding="utf-8"))}
    assert found == {"hoodie/format/layout.py"}


def test_every_version_has_a_layout_and_messages_name_them():
    assert set(LAYOUTS) == set(TableVersion)
    assert all(each is layout_named(str(int(version))) for version, each in LAYOUTS.items())
    assert layout_named("7") is None
    assert (READ_VERSIONS, VERSIONS) == ("3, 4, 5, 6, 8 and 9", "6, 8 and 9")
    assert [each.alike for each in LAYOUTS.values()] == ["6", "6", "6", "6", "8 or 9", "8 or 9"]
    assert {each.number for each in TIMELINES} == {each.number for each in LAYOUTS.values()}


def test_a_layout_is_a_value():
    assert pickle.loads(pickle.dumps(list(LAYOUTS.values()))) == [V3, V4, V5, V6, V8, V9]
    assert len(set(LAYOUTS.values())) == len(LAYOUTS)


@pytest.mark.parametrize(
    ("layout", "name", "completed"),
    [
        (V6, "replacecommit.requested", "replacecommit"),
        (V8, "clustering.requested", "replacecommit"),
    ],
)
def test_a_pending_clustering_is_named_as_the_version_does(layout, name, completed):
    pending = Instant(t(1), Action.CLUSTERING, State.REQUESTED)
    assert layout.file_name(pending) == f"{t(1)}.{name}"
    assert layout.file_name(pending._replace(state=State.COMPLETED)) == f"{t(1)}.{completed}"


@pytest.mark.parametrize(
    ("log", "done", "by_instant", "by_completion"),
    [
        (2, 2, 2, 1),  # of the slice before, which began last
        (2, 4, 2, 3),  # completed after the next slice began
        (0, 0, 0, 0),  # older than every slice: it begins one
        (3, 9, 3, 3),
    ],
)
def test_the_slice_of_a_log(log, done, by_instant, by_completion):
    begins = {t(1), t(3)}
    completions = {t(log): t(done)}
    assert V6.slice_of(t(log), begins, {}.__getitem__) == t(by_instant)
    assert V8.slice_of(t(log), begins, completions.__getitem__) == t(by_completion)
