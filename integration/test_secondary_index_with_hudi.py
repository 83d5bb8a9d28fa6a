"""Secondary indexes: hoodie and Apache Hudi keep them up, and read by them, on one table in turns."""

import itertools
import uuid

import pytest

import hoodie
from integration.tables import WholeTable, moved, trips
from integration.turns import Turns
from tests.effort import soak_but
from tests.rows import rows_of

INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.index.secondary.column": "note",
    "hoodie.index.name": "by_note",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
NAME = "secondary_index_by_note"
VALUES = ("n", "a$b", "moved", "none")


class ValueTurns(Turns):
    """As `Turns`. After each turn the index has the note of each row, and both find rows by it as without it."""

    written = WholeTable

    def __init__(self, hudi, path, table_type, version):
        super().__init__(hudi, path, table_type, more=INDEX | {"hoodie.write.table.version": version}, own=INDEX)
        self.name = f"seconds_{uuid.uuid4().hex}"

    def check(self, step):
        super().check(step)
        table = hoodie.open_table(self.path)
        assert NAME in table.config.metadata_partitions, step
        found = table.index(NAME).check()
        assert found, (step, found)
        assert not found.surplus, (step, found)
        self.hudi.sql(f"CREATE TABLE IF NOT EXISTS {self.name} USING hudi LOCATION '{self.path}'")
        self.hudi.sql(f"REFRESH TABLE {self.name}")
        for each in ("hoodie.metadata.enable", "hoodie.enable.data.skipping"):
            self.hudi.sql(f"SET {each}=true")
        rows = rows_of(hoodie.open_table(self.path, options={"hoodie.metadata.enable": "false"}).scan().to_arrow())
        for value in VALUES:
            mine = [row for row in rows if row["note"] == value]
            assert rows_of(table.scan(where=f"note = '{value}'").to_arrow()) == mine, (step, value)
            theirs = self.hudi.sql(f"SELECT id FROM {self.name} WHERE note = '{value}'").rows
            assert sorted(row["id"] for row in theirs) == sorted(row["id"] for row in mine), (step, value)


def noted(rows, note):
    return [row | {"note": note} for row in rows]


@pytest.mark.parametrize(
    ("table_type", "version"),
    soak_but([("COPY_ON_WRITE", "8")], itertools.product(TYPES, ["8", "9"])),
)
def test_both_keep_one_up_in_turns(hudi, tmp_path, table_type, version, caplog):
    turns = ValueTurns(hudi, tmp_path / "trips", table_type, version)
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    turns.hudi_upserts(noted(trips([2, 4, 21], fare=3, ts=30), "a$b"))
    turns.we_upsert(noted(moved([1, 2, 3, 20], "Oslo", fare=2, ts=40), "moved"))
    turns.hudi_upserts(noted(moved([5], "Bergen", fare=5, ts=50), None) + trips([4], fare=5, ts=1))
    turns.we_delete(moved([2, 7, 999], "Oslo", fare=0, ts=0))
    turns.hudi_upserts(noted(trips([8, 9], fare=7, ts=70), "moved"))
    turns.we_compact()
    turns.we_upsert(noted(trips([8, 10], fare=8, ts=80), "a$b"))
    turns.hudi_deletes(trips([10], fare=0, ts=0))
    turns.hudi_upserts_and_cleans_up(noted(trips([8, 9], fare=9, ts=90), None))
    turns.we_upsert(trips([8, 9], fare=10, ts=100))
    assert not [each for each in caplog.records if "secondary" in each.getMessage()]


def test_hudi_goes_on_with_one_that_we_built(hudi, tmp_path):
    turns = ValueTurns(hudi, tmp_path / "trips", "MERGE_ON_READ", "9")
    turns.own = {key: value for key, value in INDEX.items() if "secondary" not in key and key != "hoodie.index.name"}
    turns.create()
    turns.table.upsert(trips(range(12), fare=1, ts=10))
    turns.table.upsert(noted(trips(range(3), fare=1, ts=20), "a$b"))
    hoodie.open_table(turns.path).build_index(NAME, {"hoodie.metadata.index.secondary.column": "note"})
    turns.check("we build it")
    turns.hudi_upserts(noted(trips([2, 4, 21], fare=3, ts=30), "moved"))
    turns.we_delete(trips([2, 3], fare=0, ts=0))
