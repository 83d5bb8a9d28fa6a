"""The record index: hoodie and Apache Hudi place rows by it, and keep it up, on one table in turns."""

import hoodie
from hoodie.storage.local import LocalStorage
from integration.tables import WholeTable, moved, trips
from integration.turns import Turns, of_types_and_versions
from tests.metadata_tables import check_index

INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
CLUSTER = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}


class IndexTurns(Turns):
    """As `Turns`. After each turn the record index says where each row is, and it was used."""

    written = WholeTable

    def __init__(self, hudi, path, table_type, version):
        super().__init__(hudi, path, table_type, more=INDEX | {"hoodie.write.table.version": version}, own=INDEX)

    def check(self, step):
        super().check(step)
        check_index(LocalStorage(self.path))


@of_types_and_versions(("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9"))
def test_rows_are_placed_by_one_record_index_in_turns(hudi, tmp_path, table_type, version, caplog):
    turns = IndexTurns(hudi, tmp_path / "trips", table_type, version)
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    turns.hudi_upserts(moved([2, 4, 21], "Bergen", fare=3, ts=30))
    turns.we_upsert(moved([1, 2, 3, 20], "Oslo", fare=2, ts=40))
    turns.hudi_upserts(moved([2], "Bergen", fare=5, ts=50) + moved([1], "Bergen", fare=5, ts=1))
    turns.we_delete(moved([2, 7, 999], "Bergen", fare=0, ts=0))
    turns.hudi_upserts(moved([2, 7], "Oslo", fare=7, ts=70))
    turns.we_compact()
    turns.we_upsert(moved([2, 7, 8], "Bergen", fare=8, ts=80))
    turns.hudi_deletes(moved([2], "Bergen", fare=0, ts=0))
    turns.hudi_upserts_and_cleans_up(moved([8, 9], "Oslo", fare=9, ts=90))
    turns.we_upsert(moved([2, 8, 9], "Bergen", fare=10, ts=100))
    assert not [each for each in caplog.records if "record index" in each.getMessage()]
    result = hoodie.open_table(turns.path, options=INDEX).upsert(turns.arrow(moved([3], "Oslo", fare=11, ts=110)))
    assert result.index == {"record index": 1}
