"""A table of version 6 that both wrote is upgraded by us: Apache Hudi 1.2 and hudi-rs read every view of it, and Hudi writes on."""

import pytest

from integration.tables import trips
from integration.turns import HUDI_DEFAULTS, Turns
from integration.version_changes import check_archive, check_change, check_views, instants_of, live_on, write_in_turns


@pytest.mark.parametrize(("table_type", "version"), [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("MERGE_ON_READ", 8)])
def test_both_go_on_with_a_table_that_we_upgraded(hudi, tmp_path, table_type, version):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    live_on(turns)
    table = turns.table.table
    table.savepoint()
    turns.hudi_deletes(trips([2], fare=0, ts=40))
    table.cluster(sort_by=["fare"])
    turns.check("our clustering")
    assert table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=4).instants
    history = instants_of(turns)
    assert table.archived_instants()
    table.upgrade(version)
    check_change(turns, version, history, HUDI_DEFAULTS)
    check_views(turns)
    check_archive(turns, f"upgraded_{table_type.lower()}_{version}")
    write_in_turns(turns)
