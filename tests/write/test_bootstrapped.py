"""Writes to tables that Apache Hudi bootstrapped: rows whose columns stand in files elsewhere come into files of the table."""

import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import MissingFileError
from tests.bootstrapped import bootstrapped

NAMES = ["mor6_plain", "cow9_mixed"]
EACH = pytest.mark.parametrize("name", NAMES)
META = "_hoodie_commit_time"


class Model:
    """A bootstrapped table, and the rows that it should have."""

    def __init__(self, folder, name):
        self.found = bootstrapped(folder, name)
        self.source = {path: path.read_bytes() for path in self.found.source.rglob("*.parquet")}
        self.rows = {row["id"]: row for row in self.stored()}

    @property
    def table(self):
        return hoodie.open_table(self.found.table)

    def stored(self, **query):
        rows = self.table.scan([*self.table.schema.names, META], **query).to_arrow().to_pylist()
        return sorted(rows, key=lambda row: row["id"])

    def set(self, done, *rows):
        for row in rows:
            self.rows[row["id"]] = {**row, META: done.instant}

    def check(self):
        """All of it, by two ways; and the source is as it was."""
        expected = sorted(self.rows.values(), key=lambda row: row["id"])
        assert self.stored() == expected
        assert self.table.scan().count() == len(expected)
        assert {path: path.read_bytes() for path in self.found.source.rglob("*.parquet")} == self.source

    def skeletons(self):
        """Names of files that have meta columns alone, and that queries still read."""
        slices = self.table._context.snapshot().view.latest_slices()
        return {each.base.name for each in slices if each.base is not None and each.base.source is not None}

    def in_skeleton(self, at=0):
        """A row of one that has no logs."""
        slices = self.table._context.snapshot().view.latest_slices()
        (path, *_) = [each.base.path for each in slices if each.base and each.base.source and not each.logs]
        key = pq.read_table(self.found.table / path).column("_hoodie_record_key")[at].as_py()
        return {name: value for name, value in self.rows[key].items() if name != META}


@EACH
def test_an_upsert_a_delete_and_an_insert(tmp_path, name):
    model = Model(tmp_path, name)
    before = model.skeletons()
    changed = {**model.in_skeleton(), "qty": 4321, "ts": 99}
    model.set(model.table.upsert([changed]), changed)
    model.check()
    gone = model.in_skeleton(1)
    assert model.table.delete([gone]).deleted == 1
    del model.rows[gone["id"]]
    model.check()
    new = {**changed, "id": "zz"}
    model.set(model.table.insert([new]), new)
    model.check()
    assert model.table.delete(where=f"qty = {changed['qty']} and id <> 'zz'").deleted == 1
    del model.rows[changed["id"]]
    model.check()
    assert model.skeletons() == before if name == "mor6_plain" else model.skeletons() < before


@EACH
def test_an_update_of_some_columns_keeps_the_others_of_the_source(tmp_path, name):
    model = Model(tmp_path, name)
    row = model.in_skeleton()
    done = model.table.upsert([{"id": row["id"], "part": row["part"], "ts": 99, "price": 0.5}], partial=True)
    model.set(done, {**row, "ts": 99, "price": 0.5})
    model.check()
    done = model.table.update({"qty": "qty + 1"}, where=f"id = '{row['id']}'")
    model.set(done, {**row, "ts": 99, "price": 0.5, "qty": row["qty"] + 1})
    model.check()


@EACH
def test_services_leave_no_skeleton_and_a_clean_leaves_the_source(tmp_path, name):
    model = Model(tmp_path, name)
    changed = {**model.in_skeleton(), "qty": 4321, "ts": 99}
    model.set(model.table.upsert([changed]), changed)
    if name == "mor6_plain":
        assert model.table.compact()
        model.check()
        assert model.stored(query="read_optimized") == model.stored()
    assert model.skeletons()
    model.table.cluster(sort_by=["qty"])
    model.check()
    assert not model.skeletons()
    model.set(model.table.upsert([{**changed, "ts": 100}]), {**changed, "ts": 100})
    cleaned = model.table.clean(retain_commits=1)
    assert any("_00000000000001.parquet" in path.name for path in model.found.source.parent.rglob("*")) is False, (
        cleaned
    )
    model.check()
    assert main(["check", str(model.found.table), "--rows"]) == 0
    assert main(["doctor", str(model.found.table)]) == 0


@EACH
def test_a_restore_gives_the_rows_of_the_source_back(tmp_path, name):
    model = Model(tmp_path, name)
    at = model.table.savepoint()
    changed = {**model.in_skeleton(), "qty": 4321, "ts": 99}
    model.table.upsert([changed])
    model.table.upsert([{**changed, "ts": 100}])
    model.table.restore(at)
    model.check()


@EACH
def test_an_overwrite_of_a_partition_replaces_its_skeletons(tmp_path, name):
    model = Model(tmp_path, name)
    row = model.in_skeleton()
    done = model.table.insert_overwrite([{**row, "qty": 7}])
    model.rows = {key: each for key, each in model.rows.items() if each["part"] != row["part"]}
    model.set(done, {**row, "qty": 7})
    model.check()


@EACH
def test_plans_name_the_source_for_apache_hudi(tmp_path, name):
    model = Model(tmp_path, name)
    changed = {**model.in_skeleton(), "qty": 4321, "ts": 99}
    model.table.upsert([changed])
    active = model.table._context.active
    if name == "mor6_plain":
        time = model.table.schedule_compaction()
        files = [each.bootstrap_file for each in active.read_compaction_plan(time).operations]
    else:
        time = model.table.schedule_clustering()
        files = [each.bootstrap_file for group in active.read_clustering_plan(time).groups for each in group.slices]
    assert {str(file).startswith(f"file:{model.found.source}/") for file in files if file} == {True}


@EACH
def test_a_source_that_is_gone_stops_a_write_and_nothing_is_lost(tmp_path, name):
    model = Model(tmp_path, name)
    changed = {**model.in_skeleton(), "qty": 4321, "ts": 99}
    away = model.found.source.rename(tmp_path / "away")
    if name == "mor6_plain":
        model.table.upsert([changed])
    with pytest.raises(MissingFileError, match="has the columns of"):
        model.table.compact() if name == "mor6_plain" else model.table.upsert([changed])
    away.rename(model.found.source)
    done = model.table.upsert([{**changed, "ts": 100}])
    model.set(done, {**changed, "ts": 100})
    model.check()
