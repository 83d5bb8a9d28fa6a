"""Tables of version 3 and 5: Apache Hudi 1.2 reads them as we do; it does not upgrade them, so we do, and both go on."""

import pytest

import hoodie
from hoodie.errors import UnsupportedTableError
from hoodie.format.properties import format_properties, parse_properties_file
from integration.tables import trips
from integration.turns import HUDI_DEFAULTS, Turns
from integration.version_changes import check_change, check_views, instants_of, live_on, write_in_turns
from integration.views import by_hudi, differences, ours


@pytest.mark.parametrize(("table_type", "version"), [("COPY_ON_WRITE", "3"), ("MERGE_ON_READ", "5")])
def test_both_read_an_old_table_and_go_on_after_our_upgrade(hudi, tmp_path, table_type, version):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    live_on(turns)
    turns.hudi_deletes(trips([2], fare=0, ts=40))
    turns.table.table.schedule_clustering(sort_by=["fare"])
    history = instants_of(turns)
    properties = turns.path / ".hoodie" / "hoodie.properties"
    found = parse_properties_file(properties.read_bytes(), path="")
    later = ("hoodie.table.ordering.fields", "hoodie.table.keygenerator.type", "hoodie.table.checksum")
    old = {name: value for name, value in found.items() if name not in later} | {"hoodie.table.version": version}
    properties.write_text(format_properties(old, comment=[]))
    assert differences(turns.path, ours, by_hudi(hudi)) == []  # hudi-rs reads no such table
    with pytest.raises(UnsupportedTableError, match="upgrade it first"):
        hoodie.open_table(turns.path).upsert(trips([1], fare=1, ts=90))
    assert hoodie.open_table(turns.path).upgrade(6).before == int(version)
    check_change(turns, 6, history, HUDI_DEFAULTS)
    check_views(turns)
    hoodie.open_table(turns.path).run_clustering()
    write_in_turns(turns)
