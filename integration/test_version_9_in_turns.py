"""hoodie and Apache Hudi write one table of version 8 or 9 in turns, Apache Hudi by its defaults; all readers see the same rows."""

import pytest

from integration.hudi_client import PeerError
from integration.tables import trips
from integration.turns import FAIL_AFTER_WRITING, Turns
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.effort import soak_but

DEFAULTS = {
    "hoodie.metadata.enable": "true",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.write.auto.upgrade": "true",
}
"""Of Apache Hudi, which the peer's settings turn off."""
INDEXES = "hoodie.table.metadata.partitions=column_stats,files,partition_stats"
"""That Apache Hudi makes by default, and we keep up."""


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table_type(request):
    return request.param


@pytest.mark.parametrize(
    ("table_type", "version"),
    soak_but(
        [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "8")],
        [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "9"), ("MERGE_ON_READ", "8")],
    ),
)
def test_a_table_of_ours(hudi, tmp_path, table_type, version):
    more = DEFAULTS | {"hoodie.write.table.version": version}
    turns = Turns(hudi, tmp_path / "trips", table_type, more=more)
    turns.create()
    turns.we_upsert(trips(range(20), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, 20, 21], fare=2, ts=20))
    turns.hudi_upserts(trips([1, 3, 20, 22], fare=3, ts=30))
    turns.we_upsert(trips([3, 4, 22, 23], fare=4, ts=40))
    turns.hudi_deletes(trips([4, 5, 23], fare=0, ts=50))
    turns.we_delete(trips([6, 7, 24], fare=0, ts=0))
    turns.we_upsert(trips([8, 5, 25], fare=6, ts=60) + trips([9], fare=6, ts=1))
    turns.we_compact()
    turns.hudi_upserts(trips([8, 25, 26], fare=7, ts=70))
    turns.we_upsert(trips([26, 27], fare=8, ts=80))
    assert differences(turns.path, ours, by_hudi(hudi)) == []
    assert differences(turns.path, ours, by_rust) == []
    turns.hudi_upserts_and_cleans_up(trips([6, 24], fare=5, ts=90))
    turns.we_upsert(trips([26, 27], fare=9, ts=100))
    assert f"hoodie.table.version={version}" in turns.properties()
    assert INDEXES in turns.properties()


def test_a_table_of_hudi(hudi, tmp_path, table_type):
    more = DEFAULTS | {"hoodie.write.table.version": "9"}
    turns = Turns(hudi, tmp_path / "trips", table_type, more=more)
    turns.create_by_hudi(trips(range(12), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, 20], fare=2, ts=20))
    turns.hudi_upserts(trips([2, 20, 21], fare=3, ts=30))
    turns.we_delete(trips([3, 21], fare=0, ts=0))
    turns.we_compact()
    turns.hudi_upserts_and_cleans_up(trips([4, 22], fare=4, ts=40))
    turns.we_upsert(trips([4, 22, 23], fare=5, ts=50))
    assert INDEXES in turns.properties()
    assert by_hudi(hudi)(turns.path, View()) == by_rust(turns.path, View())


def test_each_rolls_the_other_ones_failed_write_back(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type, more=DEFAULTS | {"hoodie.write.table.version": "9"})
    table = turns.create()
    turns.we_upsert(trips(range(10), fare=1, ts=10))
    turns.we_upsert(trips([1, 2], fare=2, ts=20))
    failed = table.fail(trips([2, 3, 30], fare=666, ts=99))
    turns.check("our write failed")
    turns.hudi_upserts(trips([3, 4, 31], fare=3, ts=30))
    assert not list(turns.path.glob(f".hoodie/timeline/{failed}.*"))
    assert not data_files(turns, failed)
    with pytest.raises(PeerError, match=r"(?i)validat"):
        hudi.write(turns.path, turns.arrow(trips([2, 3, 32], fare=666, ts=99)), turns.options | FAIL_AFTER_WRITING)
    (pending,) = turns.table.table.timeline.pending_writes
    turns.check("the write of Hudi failed")
    turns.we_upsert(trips([3, 4, 33], fare=3, ts=40))
    assert not list(turns.path.glob(f".hoodie/timeline/{pending.time}.*"))
    assert not data_files(turns, pending.time)
    turns.we_compact()
    turns.hudi_upserts(trips([30, 33], fare=5, ts=50))
    assert differences(turns.path, ours, by_hudi(hudi)) == []
    assert differences(turns.path, ours, by_rust) == []


def data_files(turns, instant):
    return [path for path in turns.path.rglob(f"*{instant}*") if ".hoodie" not in path.relative_to(turns.path).parts]


def test_services_of_both(hudi, tmp_path):
    """Log compaction, clustering, overwrites, a savepoint and a restore; Apache Hudi writes in between."""
    turns = Turns(hudi, tmp_path / "trips", "MERGE_ON_READ", more=DEFAULTS | {"hoodie.write.table.version": "9"})
    turns.create()
    for turn in range(4):
        turns.we_upsert(trips(range(10), fare=turn, ts=10 + turn))
    assert turns.table.table.compact_logs(blocks=1)
    turns.check("our log compaction")
    turns.hudi_upserts(trips([1, 30], fare=5, ts=20))
    assert turns.table.table.cluster(sort_by=["fare"])
    turns.check("our clustering")
    turns.hudi_upserts(trips([2, 31], fare=6, ts=21))
    scheduled = turns.table.table.schedule_compaction()
    hudi.run_compaction(turns.path, op="run", options={"hoodie.metadata.enable": "true"})
    assert scheduled in turns.table.table.timeline.compactions
    turns.check("Hudi ran our compaction")
    saved = turns.table.table.savepoint()
    before = list(turns.table.rows)
    turns.table.table.upsert(turns.arrow(trips([3, 32], fare=7, ts=22)))
    hudi.write(turns.path, turns.arrow(trips([4, 33], fare=8, ts=23)), turns.options)
    turns.table.table.restore(saved)
    assert turns.table.rows == before
    turns.check("our restore")
    turns.hudi_upserts(trips([5, 34], fare=9, ts=24))
    turns.we_upsert(trips([5, 35], fare=10, ts=25))
    assert INDEXES in turns.properties()
