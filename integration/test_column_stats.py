"""Commits that state bounds of columns: Apache Hudi and hudi-rs read, update, compact, clean, archive and roll back such tables.

Beside that every query with a filter gives the rows that an unfiltered one has, whoever wrote the files.
"""

import json

import pytest

import hoodie
from hoodie.format.column_stats import COLUMN_STATS, decode_column_stats
from integration.hudi_client import PeerError
from integration.tables import trips
from integration.turns import FAIL_AFTER_WRITING, Turns
from integration.views import by_hudi, by_rust, differences, ours
from tests.rows import rows_of

FILTERS = (
    "fare = 3",
    "fare > 2 AND ts < 30",
    "id = 't0004'",
    "city = 'sf'",
    "NOT fare = 1",
    "ts IN (20, 40)",
    "fare IS NULL",
)
ARCHIVE_NOW = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.archive.automatic": "true",
}


def stated(path):
    """Names of our commits on the active timeline -> how many files they state bounds of."""
    found = {}
    for file in sorted((path / ".hoodie").glob("*commit")):
        text = json.loads(file.read_bytes())["extraMetadata"].get(COLUMN_STATS)
        if text is not None:
            found[file.name] = len(decode_column_stats(text))
    return found


def check_filters(path):
    table = hoodie.open_table(path)
    everything = table.scan().to_arrow()
    for where in FILTERS:
        kept = hoodie.open_table(path).scan(where=where)
        assert rows_of(kept.to_arrow()) == rows_of(everything.filter(kept.plan.context.filter.expression)), where


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_whose_commits_state_bounds(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(20), fare=1, ts=10))
    turns.we_upsert(trips(range(3, 8), fare=2, ts=20))
    assert list(stated(turns.path).values())
    assert all(stated(turns.path).values())
    check_filters(turns.path)
    turns.hudi_upserts(trips([4, 5, 40], fare=3, ts=30))
    check_filters(turns.path)
    with pytest.raises(PeerError, match=r"(?i)validat"):
        hudi.write(turns.path, turns.arrow(trips([2, 3, 50], fare=666, ts=99)), turns.options | FAIL_AFTER_WRITING)
    turns.hudi_upserts(trips([6, 41], fare=3, ts=40))  # rolls the failed write back first
    check_filters(turns.path)
    assert differences(turns.path, ours, by_hudi(hudi)) == []
    assert differences(turns.path, ours, by_rust) == []
    last_of_ours = turns.table.table.timeline.commits[1].time
    if table_type == "COPY_ON_WRITE":
        turns.hudi_upserts_and_cleans_up(trips([6, 42], fare=4, ts=50))
    else:  # nothing of it is old enough to be cleaned
        turns.hudi_upserts(trips([6, 42], fare=4, ts=50))
    check_filters(turns.path)
    turns.we_upsert(trips([1, 43], fare=3, ts=60))
    turns.we_compact()
    check_filters(turns.path)
    for round_ in range(4):
        hudi.write(turns.path, turns.arrow(trips([round_], fare=5, ts=70 + round_)), turns.options | ARCHIVE_NOW)
        turns.table.merge(trips([round_], fare=5, ts=70 + round_))
    turns.check("hudi archives")
    assert not any(name.startswith(last_of_ours) for name in stated(turns.path))
    check_filters(turns.path)
