"""The record index by partitions: hoodie and Apache Hudi place rows by it, and keep it up, on one table in turns."""

import itertools

import pytest

import hoodie
from hoodie.storage.local import LocalStorage
from integration.tables import moved, trips
from integration.turns import Turns
from tests.effort import soak_but
from tests.metadata_tables import check_index, opened_metadata

INDEX = {
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
ODD = "Os-lo_x/ä b"


class PartitionTurns(Turns):
    """As `Turns`. After each turn the record index says where each row is, in the groups of its partition."""

    def __init__(self, hudi, path, table_type):
        super().__init__(hudi, path, table_type, more=INDEX | {"hoodie.write.table.version": "9"}, own=INDEX)

    def check(self, step):
        super().check(step)
        storage = LocalStorage(self.path)
        check_index(storage)
        metadata = opened_metadata(storage)
        assert set(metadata.partitions()) <= metadata.record_index().shares.keys(), step
        assert hoodie.open_table(self.path).index("record_index").check(), step


@pytest.mark.parametrize(
    ("table_type", "by_hudi"),
    soak_but([("MERGE_ON_READ", True)], itertools.product(["COPY_ON_WRITE", "MERGE_ON_READ"], [True, False])),
)
def test_rows_are_placed_by_one_index_in_turns(hudi, tmp_path, table_type, by_hudi, caplog):
    """No batch of Apache Hudi has a key in two partitions: it takes the place of one for that of the other, and loses a row."""
    turns = PartitionTurns(hudi, tmp_path / "trips", table_type)
    if by_hudi:
        turns.create_by_hudi(trips(range(12), fare=1, ts=10))
    else:
        turns.create()
        turns.we_upsert(trips(range(12), fare=1, ts=10))
    turns.hudi_upserts(moved([2, 4, 21], "Bergen", fare=3, ts=30))
    turns.we_upsert(moved([1, 2, 3, 20], ODD, fare=2, ts=40))
    turns.hudi_upserts(moved([2, 30], ODD, fare=5, ts=50) + moved([1], "Bergen", fare=5, ts=1))
    turns.we_delete(moved([2, 7, 999], "Bergen", fare=0, ts=0))
    turns.hudi_upserts(moved([7], ODD, fare=7, ts=70) + moved([2], "Bergen", fare=7, ts=70))
    turns.we_compact()
    turns.we_upsert(moved([2, 7, 8], "Bergen", fare=8, ts=80))
    turns.hudi_deletes(moved([2], "Bergen", fare=0, ts=0))
    turns.hudi_upserts_and_cleans_up(moved([8, 9], ODD, fare=9, ts=90))
    turns.we_upsert(moved([2, 8, 9], "Bergen", fare=10, ts=100))
    turns.we_upsert(moved([2], "Rome", fare=10, ts=100))
    turns.hudi_upserts(moved([2], "Rome", fare=11, ts=110))
    assert not [each for each in caplog.records if "record index" in each.getMessage()]
    result = hoodie.open_table(turns.path, options=INDEX).upsert(turns.arrow(moved([2], ODD, fare=11, ts=110)))
    assert result.index == {"record index": 1}
