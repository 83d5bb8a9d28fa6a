"""A table of version 9 or 8 that both wrote is downgraded by us: Apache Hudi 1.2 and hudi-rs read it, and Hudi writes on."""

import pytest

from integration.tables import trips
from integration.turns import HUDI_DEFAULTS, Turns
from integration.version_changes import check_archive, check_change, check_views, instants_of, live_on, write_in_turns
from tests.effort import soak_but


@pytest.mark.parametrize(
    ("table_type", "version", "to"),
    soak_but(
        [("COPY_ON_WRITE", 9, 6), ("MERGE_ON_READ", 9, 6)],
        [("COPY_ON_WRITE", 9, 6), ("MERGE_ON_READ", 9, 6), ("MERGE_ON_READ", 8, 6), ("MERGE_ON_READ", 9, 8)],
    ),
)
def test_both_go_on_with_a_table_that_we_downgraded(hudi, tmp_path, table_type, version, to):
    turns = Turns(
        hudi, tmp_path / "trips", table_type, more=HUDI_DEFAULTS | {"hoodie.write.table.version": str(version)}
    )
    turns.create()
    live_on(turns)
    turns.hudi_deletes(trips([2], fare=0, ts=40))
    table = turns.table.table
    table.cluster(sort_by=["fare"])
    turns.we_upsert(trips([5, 31], fare=4, ts=45))
    for turn in range(10):  # the metadata table is compacted: it holds commits back till then
        turns.table.upsert(trips([5, 31], fare=4 + turn, ts=46 + turn))
    assert table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=4).instants
    history = instants_of(turns)
    shown = table.downgrade(to, dry_run=True)
    done = table.downgrade(to)
    assert (shown.after, done.after, bool(done.archived)) == (to, to, to == 6)
    check_change(turns, to, history, {"hoodie.write.auto.upgrade": "false"})
    if table_type == "COPY_ON_WRITE":
        check_views(turns)
    if to == 6:
        check_archive(turns, f"downgraded_{table_type.lower()}_{version}")
    write_in_turns(turns)
    assert f"hoodie.table.version={to}" in turns.properties()
