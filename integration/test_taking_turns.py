"""hoodie and Apache Hudi write one table in turns; after every turn all readers see each key once, and the same rows."""

import pytest

from hoodie.model.names import HEARTBEATS, MARKERS, METADATA_TABLE
from integration.hudi_client import PeerError
from integration.tables import trips
from integration.turns import FAIL_AFTER_WRITING, METADATA_ON, Turns
from integration.views import by_hudi, by_rust, differences, ours


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table_type(request):
    return request.param


@pytest.fixture(params=[{}, METADATA_ON], ids=["without-metadata-table", "with-metadata-table"])
def metadata(request):
    return request.param


@pytest.mark.parametrize(
    ("table_type", "metadata"),
    [("COPY_ON_WRITE", METADATA_ON), ("MERGE_ON_READ", {}), ("MERGE_ON_READ", METADATA_ON)],
    ids=["cow-with-metadata-table", "mor", "mor-with-metadata-table"],
)
def test_a_table_of_ours(hudi, tmp_path, table_type, metadata):
    turns = Turns(hudi, tmp_path / "trips", table_type, more=metadata)
    turns.create()
    turns.we_upsert(trips(range(20), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, 20, 21], fare=2, ts=20))
    # Over keys that we inserted since the last compaction, and keys in our logs.
    turns.hudi_upserts(trips([1, 3, 20, 22], fare=3, ts=30))
    assert ("metadata.partitions=" in turns.properties()) == bool(metadata)
    turns.we_upsert(trips([3, 4, 22, 23], fare=4, ts=40))
    assert ("metadata.partitions=" in turns.properties()) == bool(metadata)
    assert (turns.path / METADATA_TABLE).exists() == bool(metadata)
    turns.hudi_deletes(trips([4, 5, 23], fare=0, ts=50))
    turns.hudi_upserts_and_cleans_up(trips([6, 24], fare=5, ts=50))
    turns.we_delete(trips([6, 7, 24], fare=0, ts=0))
    turns.we_upsert(trips([8, 5, 25], fare=6, ts=60) + trips([9], fare=6, ts=1))
    turns.we_compact()
    turns.hudi_upserts(trips([8, 25, 26], fare=7, ts=70))
    turns.we_upsert(trips([26, 27], fare=8, ts=80))
    assert "hoodie.table.version=6" in turns.properties()


def test_a_table_of_hudi(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type, more=METADATA_ON)
    turns.create_by_hudi(trips(range(12), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, 20], fare=2, ts=20))
    turns.hudi_upserts(trips([2, 20, 21], fare=3, ts=30))
    turns.we_delete(trips([3, 21], fare=0, ts=0))
    turns.we_compact()
    turns.hudi_upserts_and_cleans_up(trips([4, 22], fare=4, ts=40))
    turns.we_upsert(trips([4, 22, 23], fare=5, ts=50))


def test_hudi_rolls_our_failed_write_back(hudi, tmp_path, table_type, metadata):
    turns = Turns(hudi, tmp_path / "trips", table_type, more=metadata)
    table = turns.create()
    turns.we_upsert(trips(range(10), fare=1, ts=10))
    turns.we_upsert(trips([1, 2], fare=2, ts=20))
    failed = table.fail(trips([2, 3, 30], fare=666, ts=99))
    turns.check("our write failed")
    turns.hudi_upserts(trips([3, 4, 31], fare=3, ts=30))
    assert not list(turns.path.glob(f".hoodie/**/{failed}.*"))
    assert not (turns.path / MARKERS / failed).exists()
    assert not [path for path in turns.path.rglob(f"*{failed}*.parquet") if ".hoodie" not in path.parts]
    turns.we_upsert(trips([3, 30, 32], fare=4, ts=40))
    assert not (turns.path / HEARTBEATS / failed).exists()
    turns.we_compact()


def test_we_roll_a_failed_write_of_hudi_back(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(10), fare=1, ts=10))
    turns.hudi_upserts(trips([1, 2], fare=2, ts=20))
    with pytest.raises(PeerError, match=r"(?i)validat"):
        hudi.write(turns.path, turns.arrow(trips([2, 3, 30], fare=666, ts=99)), turns.options | FAIL_AFTER_WRITING)
    (failed,) = turns.table.table.timeline.pending_writes
    turns.check("the write of Hudi failed")
    turns.we_upsert(trips([3, 4, 31], fare=3, ts=30))
    assert not list(turns.path.glob(f".hoodie/**/{failed.time}.*"))
    turns.hudi_upserts(trips([3, 30, 32], fare=4, ts=40))
    turns.we_compact()
    turns.hudi_upserts(trips([30, 33], fare=5, ts=50))
    assert differences(turns.path, ours, by_hudi(hudi)) == []
    assert differences(turns.path, ours, by_rust) == []


def test_hudi_compacts_what_we_scheduled_and_we_what_hudi_scheduled(hudi, tmp_path):
    turns = Turns(hudi, tmp_path / "trips", "MERGE_ON_READ")
    table = turns.create()
    turns.we_upsert(trips(range(10), fare=1, ts=10))
    turns.we_upsert(trips([1, 2], fare=2, ts=20))
    scheduled = table.table.schedule_compaction()
    hudi.run_compaction(turns.path, op="run")
    assert scheduled in table.table.timeline.compactions
    turns.check("hudi ran our compaction")
    turns.hudi_upserts(trips([1, 3, 20], fare=3, ts=30))
    hudi.run_compaction(turns.path, op="schedule", options={"hoodie.compact.inline.max.delta.commits": "1"})
    (pending,) = table.table.pending_compactions()
    assert [result.instant for result in table.table.run_compaction()] == [pending.time]
    turns.check("we ran the compaction of Hudi")
    turns.hudi_upserts(trips([1, 4, 21], fare=4, ts=40))
    turns.we_upsert(trips([4, 21], fare=5, ts=50))
