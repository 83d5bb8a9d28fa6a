"""Tables that Apache Hudi bootstrapped: rows whose columns stand in two files are read as Apache Hudi reads them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import CorruptFileError, MissingFileError, UnsupportedTableError
from hoodie.filegroup.skeleton import _aligned
from hoodie.model.names import BOOTSTRAP_INDEX
from tests.bootstrapped import bootstrapped

NAMES = ["mor6_plain", "cow9_mixed"]
EACH = pytest.mark.parametrize("name", NAMES)


def read(path, columns, **query):
    rows = hoodie.open_table(path).scan(columns, meta_columns=True, **query).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


@EACH
def test_rows_are_those_that_hudi_reads(tmp_path, name):
    found = bootstrapped(tmp_path, name)
    assert read(found.table, list(found.rows[0])) == found.rows
    table = hoodie.open_table(found.table)
    assert table.scan().count() == len(found.rows)
    assert table.changes().to_arrow().num_rows == len(found.rows)


@EACH
@pytest.mark.parametrize(
    "where", ["qty > 110", "price = 6.0", "name is null", "part = 'b'", "id = 'k004'", "qty > 1000"]
)
def test_a_filter_on_columns_of_either_file_finds_its_rows(tmp_path, name, where):
    found = bootstrapped(tmp_path, name)
    holds = {
        "qty > 110": lambda row: row["qty"] > 110,
        "price = 6.0": lambda row: row["price"] == 6.0,
        "name is null": lambda row: row["name"] is None,
        "part = 'b'": lambda row: row["part"] == "b",
        "id = 'k004'": lambda row: row["id"] == "k004",
        "qty > 1000": lambda row: row["qty"] > 1000,
    }[where]
    expected = [row["id"] for row in found.rows if holds(row)]
    assert [row["id"] for row in read(found.table, ["id"], where=where)] == expected


@EACH
def test_earlier_states_and_base_files_alone_are_read(tmp_path, name):
    found = bootstrapped(tmp_path, name)
    table = hoodie.open_table(found.table)
    bootstrap, upsert, delete = [i.time for i in table.timeline.commits if i.time != "00000000000002"]
    assert bootstrap == "00000000000001"
    if name == "mor6_plain":  # the other's copied partition has an instant of its own
        assert table.scan(as_of=bootstrap).count() == 30
        assert table.changes(since=bootstrap).count() < table.changes().count()
    assert table.scan(as_of=upsert).count() == 31
    assert table.scan(as_of=delete).count() == 30
    optimized = table.scan(["id", "qty", "part"], query="read_optimized").to_arrow()
    assert optimized.num_rows == (31 if name == "mor6_plain" else 30)
    assert not any(column.null_count for column in optimized.columns)


def test_a_source_file_that_is_gone_or_changed_is_named(tmp_path):
    found = bootstrapped(tmp_path, "mor6_plain")
    file = found.source / "c" / "one.parquet"
    rows = pq.read_table(file)
    file.unlink()
    with pytest.raises(MissingFileError, match=r"source/c/one\.parquet.*is gone"):
        read(found.table, ["id", "qty"])
    pq.write_table(rows.slice(1), file)
    with pytest.raises(CorruptFileError, match=r"one\.parquet.*was changed"):
        read(found.table, ["id", "qty"])
    (found.table / BOOTSTRAP_INDEX).unlink()
    with pytest.raises(CorruptFileError, match=r"was bootstrapped from .* is gone"):
        read(found.table, ["id", "qty"])


@EACH
def test_what_is_not_done_is_refused_and_changes_nothing(tmp_path, name):
    found = bootstrapped(tmp_path, name)
    table = hoodie.open_table(found.table)
    before = sorted(str(path) for path in found.table.rglob("*"))
    for act in (
        lambda: table.upgrade(9) if name == "mor6_plain" else table.downgrade(6),
        lambda: table.publish("delta"),
    ):
        with pytest.raises(UnsupportedTableError, match="bootstrapped"):
            act()
    assert sorted(str(path) for path in found.table.rglob("*")) == before


@EACH
def test_rows_are_looked_up_by_their_keys(tmp_path, name):
    found = bootstrapped(tmp_path, name)
    keys = [{"id": row["id"], "part": row["part"]} for row in found.rows]
    rows = hoodie.open_table(found.table).lookup(pa.Table.from_pylist(keys), meta_columns=True).to_arrow().to_pylist()
    by_id = {row["id"]: row for row in rows}
    assert [{name: by_id[row["id"]][name] for name in row} for row in found.rows] == found.rows


@EACH
def test_the_change_feed_leads_to_the_rows(tmp_path, name):
    found = bootstrapped(tmp_path, name)
    rows, ops = {}, set()
    for change in hoodie.open_table(found.table).changes(images="before_after").to_arrow().to_pylist():
        before, after = change["before"], change["after"]
        assert (rows.pop(before["id"]) if before else None) == before
        rows |= {after["id"]: after} if after else {}
        ops.add(change["op"])
    assert ops == {"i", "u", "d"}
    columns = hoodie.open_table(found.table).schema.names
    assert [rows[row["id"]] for row in found.rows] == [{name: row[name] for name in columns} for row in found.rows]
    assert len(rows) == len(found.rows)


@EACH
def test_the_commands_that_look_find_nothing_wrong(tmp_path, name, capsys):
    found = bootstrapped(tmp_path, name)
    for line in (["show"], ["files"], ["check", "--rows"], ["explain", "--where", "qty > 110"]):
        assert main([line[0], str(found.table), *line[1:]]) == 0, capsys.readouterr()


def test_batches_of_two_files_are_brought_to_the_same_rows():
    def batches(name, sizes):
        start = 0
        for size in sizes:
            yield pa.RecordBatch.from_pydict({name: pa.array(range(start, start + size), pa.int64())})
            start += size

    rows = []
    for one, other in _aligned(batches("a", [5, 0, 3, 2]), batches("b", [1, 6, 3])):
        assert one.column("a").to_pylist() == other.column("b").to_pylist()
        rows += one.column("a").to_pylist()
    assert rows == list(range(10))
