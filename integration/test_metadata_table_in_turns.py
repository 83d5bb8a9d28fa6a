"""hoodie and Apache Hudi write one table in turns, and both keep up its metadata table."""

import pytest

import hoodie
from hoodie.model.names import METADATA_TABLE
from integration.make_goldens import CLEAN, COMPACT, KEEP_ONE, OWN_DEFAULTS, Recipe, folder_of, rows
from integration.metadata_tables import check
from integration.turns import of_types_and_versions
from tests.rows import rows_of

FILES_ALONE = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.metadata.keep.min.commits": "6",
    "hoodie.metadata.keep.max.commits": "8",
}
BY_METADATA = {"hoodie.metadata.enable": "true"}


@pytest.fixture(params=["6", "9"])
def version(request):
    return {"hoodie.write.table.version": request.param}


class Turns(Recipe):
    """Each step is followed by a look at the metadata table, by both."""

    def _note(self, step):
        super()._note(step)
        self.look()

    def look(self):
        check(self.path, indexes=False)
        by_metadata = self.hudi.read(self.path, options=BY_METADATA).rows
        assert by_metadata == self.hudi.read(self.path).rows
        assert by_metadata == rows_of(hoodie.open_table(self.path).scan(meta_columns=True).to_arrow())

    def ours(self):
        return hoodie.open_table(self.path, options={"hoodie.clean.automatic": "false"})

    def instants(self):
        return sorted(file.name for file in folder_of(self.path / METADATA_TABLE).glob("*commit"))


@of_types_and_versions(("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9"), indirect=["version"])
def test_writing_in_turns(hudi, tmp_path, table_type, version):
    turns = Turns(hudi, tmp_path / table_type / "table", table_type, FILES_ALONE | version)
    turns.write(rows(range(12), turn=1), "insert")
    turns.ours().upsert(rows(range(3, 15), turn=2))
    turns.look()
    turns.write(rows(range(2, 7), turn=3))
    for turn in range(4, 8):
        turns.ours().upsert(rows(range(turn, turn + 4), turn=turn))
        turns.look()
    turns.write(rows([1, 30], turn=8))
    compacted = [name for name in turns.instants() if name.endswith(".commit")]
    assert compacted
    turns.ours().delete(rows([4, 5], turn=9))
    turns.look()
    if table_type == "MERGE_ON_READ":
        turns.ours().compact()
        turns.look()
        turns.write(rows(range(3), turn=10), more=COMPACT)
    turns.ours().insert_overwrite(rows([40], turn=11, part="b"))
    turns.look()
    turns.write(rows(range(6), turn=12), more=CLEAN | KEEP_ONE)
    turns.ours().clean(retain_commits=1)
    turns.look()
    turns.ours().upsert(rows(range(5), turn=13))
    turns.ours().rollback(turns.ours().timeline.commits[-1].time)
    turns.look()
    turns.write(rows(range(9), turn=14))


@of_types_and_versions(("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "6"), indirect=["version"])
def test_the_indexes_of_hudi_are_kept_up(hudi, tmp_path, table_type, version):
    more = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.bloom.filter.enable": "true"}
    turns = Turns(hudi, tmp_path / table_type / "table", table_type, FILES_ALONE | more | version)
    for turn in range(1, 5):
        turns.write(rows(range(turn, turn + 9), turn=2 * turn))
        turns.ours().upsert(rows(range(3, 9), turn=2 * turn + 1))
        named = hoodie.open_table(turns.path).config.metadata_partitions
        assert set(named) - {"partition_stats"} == {"bloom_filters", "column_stats", "files"}
        assert ("partition_stats" in named) == (version["hoodie.write.table.version"] == "9")
        turns.look()
        check(turns.path, keys=False)


@of_types_and_versions(("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9"), indirect=["version"])
def test_hudi_goes_on_after_our_compaction(hudi, tmp_path, table_type, version):
    seldom = FILES_ALONE | {"hoodie.metadata.compact.max.delta.commits": "30"}
    turns = Turns(hudi, tmp_path / table_type / "table", table_type, seldom | version)
    turns.write(rows(range(12), turn=1), "insert")
    for turn in range(2, 14):
        turns.ours().upsert(rows(range(turn, turn + 4), turn=turn))
    assert any(name.endswith(".commit") for name in turns.instants())
    turns.look()
    turns.write(rows(range(3, 8), turn=20))
    turns.write(rows(range(3), turn=21), "delete")
    turns.ours().upsert(rows(range(5), turn=22))
    turns.look()


@of_types_and_versions(("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "6"), indirect=["version"])
def test_hudi_goes_on_with_one_that_we_built(hudi, tmp_path, table_type, version):
    path = tmp_path / table_type / "table"
    Recipe(hudi, path, table_type, {"hoodie.metadata.enable": "false"} | version).write(
        rows(range(12), turn=1), "insert"
    )
    hoodie.open_table(path, options=BY_METADATA).upsert(rows(range(3, 15), turn=2))
    turns = Turns(hudi, path, table_type, FILES_ALONE | version)
    turns.look()
    turns.steps.append("written before")
    first = turns.instants()[0]
    turns.write(rows(range(2, 7), turn=3))
    turns.ours().upsert(rows(range(4), turn=4))
    turns.look()
    turns.write(rows(range(3), turn=5), "delete")
    for turn in range(6, 10):
        turns.write(rows(range(turn, turn + 4), turn=turn))
    assert first in turns.instants()  # it was not built anew


@of_types_and_versions(("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9"), indirect=["version"])
def test_hudi_goes_on_after_our_restore_and_our_archiving(hudi, tmp_path, table_type, version):
    turns = Turns(hudi, tmp_path / table_type / "table", table_type, FILES_ALONE | version)
    turns.write(rows(range(12), turn=1), "insert")
    saved = turns.ours().savepoint()
    turns.ours().upsert(rows(range(4), turn=2))
    turns.ours().restore(saved)
    turns.look()
    turns.ours().drop_savepoint(saved)
    turns.write(rows(range(3, 8), turn=3))
    often = {"hoodie.keep.min.commits": "12", "hoodie.keep.max.commits": "15", "hoodie.clean.commits.retained": "3"}
    for turn in range(4, 60):
        hoodie.open_table(turns.path, options=often).upsert(rows([turn % 9], turn=turn))
    turns.look()
    assert list((turns.path / METADATA_TABLE / ".hoodie").glob("archived/.commits*")) or list(
        (turns.path / METADATA_TABLE / ".hoodie").glob("timeline/history/*.parquet")
    )
    for turn in range(60, 64):
        turns.write(rows(range(5), turn=turn))
    turns.ours().upsert(rows(range(5), turn=64))
    turns.look()


def test_a_secondary_index_of_hudi_is_kept_up(hudi, tmp_path, caplog):
    path, name = tmp_path / "indexed" / "table", "indexed"
    more = {
        "hoodie.table.name": name,
        "hoodie.write.table.version": "9",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "2",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        # With them Apache Hudi 1.2 fails while it builds further indexes, by a NullPointerException.
        "hoodie.metadata.index.column.stats.enable": "false",
    }
    hudi.write(path, rows(range(12), turn=1), OWN_DEFAULTS | more, mode="overwrite")
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    hudi.sql("set hoodie.metadata.record.index.enable=true")
    hudi.sql("set hoodie.metadata.index.column.stats.enable=false")
    hudi.sql("set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    hudi.sql(f"CREATE INDEX by_name ON {name} (name)")
    there = {"files", "record_index", "secondary_index_by_name"}
    for turn in (2, 3):
        hoodie.open_table(path).upsert(rows(range(3, 9), turn=turn))
        hoodie.open_table(path).delete(rows([3 + turn], turn=turn).select(["id", "part"]))
        hudi.write(path, rows([turn, 30 + turn], turn=turn + 5), OWN_DEFAULTS | more)
        table = hoodie.open_table(path)
        assert set(table.config.metadata_partitions) == there
        assert table.index("secondary_index_by_name").check()
        hudi.sql(f"REFRESH TABLE {name}")
        for wanted in ("name7", "name3", "name33"):
            found = hudi.sql(f"SELECT id FROM {name} WHERE name = '{wanted}'").rows
            assert found == rows_of(table.scan(columns=["id"], where=f"name = '{wanted}'").to_arrow()), (turn, wanted)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
