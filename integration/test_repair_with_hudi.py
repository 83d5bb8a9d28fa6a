"""Repaired tables are read and written by Apache Hudi; what its killed writers leave is found."""

import shutil

import hoodie
from hoodie.storage.local import LocalStorage
from integration.tables import TRIPS, Written, trips
from integration.turns import Turns
from integration.views import View, by_rust, ours
from tests.damaged_tables import put_strays

ORDERING = "hoodie.table.ordering.fields"


def hudi_upserts(turns, rows):
    turns.hudi.write(turns.path, turns.arrow(rows), turns.options)
    turns.table.merge(rows)


def test_hudi_reads_and_writes_a_table_whose_properties_were_rebuilt_and_partitions_mended(hudi, tmp_path):
    turns = Turns(hudi, tmp_path / "trips", "MERGE_ON_READ")
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    hudi_upserts(turns, trips(range(3), fare=9, ts=30))
    ordering = ",".join(hoodie.open_table(turns.path).config.ordering_fields)
    (turns.path / ".hoodie/hoodie.properties").unlink()
    for crc in (turns.path / ".hoodie").glob(".hoodie.properties*.crc"):
        crc.unlink()
    plan = hoodie.repair_properties(turns.path)
    assert [each.partition(":")[0] for each in plan.unknown] == [ORDERING]
    hoodie.repair_properties(turns.path, {ORDERING: ordering}, dry_run=False)
    turns.check("after the properties were repaired")
    metadata = next(turns.path.rglob(".hoodie_partition_metadata"))
    metadata.write_bytes(b"")
    table = hoodie.open_table(turns.path)
    assert table.repair(dry_run=False).repairs
    turns.check("after the partition metadata was repaired")
    hudi_upserts(turns, trips(range(5), fare=10, ts=40))
    turns.check("after Hudi wrote once more")
    assert hoodie.open_table(turns.path).validate(deep=True)


def test_what_a_killed_writer_of_hudi_left_is_found(hudi, tmp_path):
    """Its files with the instant gone from the timeline, as after a rollback that did not find them by markers."""
    turns = Turns(hudi, tmp_path / "trips", "COPY_ON_WRITE")
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    hudi_upserts(turns, trips(range(12), fare=9, ts=30))
    killed = tmp_path / "killed"
    shutil.copytree(turns.path, killed)
    newest = hoodie.open_table(killed).timeline.commits[-1].time
    for file in (killed / ".hoodie").glob(f"*{newest}.*"):
        file.unlink()
    written = sorted(
        str(f.relative_to(killed)) for f in killed.rglob(f"*_{newest}.parquet") if ".hoodie" not in f.parts
    )
    assert written
    table = hoodie.open_table(killed)
    assert sorted(each.path for each in table.repair("stray-files", older_than_s=0).repairs) == written
    table.repair("stray-files", dry_run=False, older_than_s=0)
    assert not [f for f in killed.rglob(f"*_{newest}.parquet") if ".hoodie" not in f.parts]
    assert hudi.read(killed).rows == ours(killed, View()) == by_rust(killed, View())
    assert table.scan().count() == 12
    strays = put_strays(LocalStorage(killed))
    table.repair("stray-files", dry_run=False, older_than_s=0)
    assert hudi.read(killed).table.num_rows == 12
    assert strays


def test_hudi_rs_reads_a_table_with_logs_beside_which_strays_lay(tmp_path):
    table = Written(
        tmp_path / "t", TRIPS, record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.upsert(trips(range(12), fare=1, ts=10))
    table.upsert(trips(range(6), fare=2, ts=20))
    before = by_rust(tmp_path / "t", View())
    assert before == ours(tmp_path / "t", View())
    assert put_strays(LocalStorage(tmp_path / "t"))
    opened = hoodie.open_table(tmp_path / "t")
    assert opened.repair("stray-files", dry_run=False, older_than_s=0).set_aside
    assert by_rust(tmp_path / "t", View()) == ours(tmp_path / "t", View()) == before
    table.upsert(trips(range(3), fare=3, ts=30))
    opened.compact()
    assert by_rust(tmp_path / "t", View()) == ours(tmp_path / "t", View())
