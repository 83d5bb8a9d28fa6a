"""Deletes by record keys alone: the rows are found in whatever partition they are, by every index and key."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import KeyFieldError, OptionError, SchemaError

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
INDEXES = {
    "bloom": {},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
}


def ids(table):
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def filled(tmp_path, kind="COPY_ON_WRITE", options=None, ids=tuple("abcdef"), **more):
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="part", table_type=kind, options=options or {}, **more
    )
    table.upsert(pa.table({"id": list(ids), "part": [f"p{n % 3}" for n in range(len(ids))], "n": range(len(ids))}))
    return table


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", INDEXES)
def test_rows_go_from_every_partition_and_no_other_file_is_written(tmp_path, kind, index):
    table = filled(tmp_path, kind, INDEXES[index])
    table.upsert({"id": ["a"], "part": ["p1"], "n": [7]})  # one key in two partitions
    result = table.delete({"id": ["a", "e", "unknown"]})
    assert ids(table) == ["b", "c", "d", "f"]
    assert result.files == (3 if index == "bucket" else len({"p0", "p1"}))
    assert table.validate(deep=True)
    assert table.delete({"id": ["unknown"]}).instant is None
    assert table.write([{"id": "b"}], "delete").deleted == 1
    if kind == "MERGE_ON_READ":
        table.compact()
    assert ids(table) == ["c", "d", "f"]


@pytest.mark.parametrize("given", [["a", "c"], ("a", "c"), {"a", "c"}, pa.table({"id": ["a", "c"], "more": [1, 2]})])
def test_bare_keys_are_rows_of_the_key_column(tmp_path, given):
    table = filled(tmp_path)
    assert table.delete(given).deleted == 2
    assert ids(table) == ["b", "d", "e", "f"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [1, 2, 3]),
        (pa.int64(), [1, 2, 3]),
        (pa.date32(), [1, 2, 3]),
        (pa.timestamp("us"), [1, 2, 3]),
        (pa.string(), ["1", "__null__", "ä/:,"]),
        (pa.decimal128(9, 2), ["1.50", "2.00", "3.25"]),
    ],
)
def test_keys_of_every_type_are_compared_as_their_texts(tmp_path, kind, values):
    keys = (pa.array(values, pa.int32()) if pa.types.is_date32(kind) else pa.array(values)).cast(kind)
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="part")
    table.upsert(pa.table({"id": keys, "part": ["p", "q", "p"]}))
    given = keys[:2].cast(pa.int64()) if pa.types.is_int32(kind) else keys[:2]
    assert table.delete(pa.table({"id": given})).deleted == 2
    assert table.scan().count() == 1


def test_composite_keys_and_several_partition_columns(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key=["a", "b"], partition_by=["x", "y"])
    table.upsert(pa.table({"a": [1, 1, 2], "b": ["u", None, "u"], "x": ["p", "q", "r"], "y": [1, 2, 3]}))
    with pytest.raises(
        SchemaError, match=r"makes keys of a, b: give rows of these columns, such as \[\{'a': …, 'b': …\}\]"
    ):
        table.delete([1])
    with pytest.raises(KeyFieldError, match="column 'y' is not in the data"):
        table.delete([{"a": 1, "b": "u", "x": "p"}])  # which other rows are meant is not certain
    with pytest.raises(KeyFieldError, match="record key column 'b' is not in the data"):
        table.delete([{"a": 1}])
    assert table.delete(pa.table({"a": [1], "b": pa.array([None], pa.string())})).deleted == 1
    assert table.delete([{"a": 1, "b": "u"}]).deleted == 1
    assert table.scan().to_arrow().to_pydict() == {"a": [2], "b": ["u"], "x": ["r"], "y": [3]}


def test_keys_that_the_table_generated(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key=[], partition_by="part")
    table.insert({"part": ["p", "q", "q"], "n": [1, 2, 3]})
    stored = table.scan(meta_columns=True).to_arrow()
    table.delete(stored.select(["_hoodie_record_key"]).slice(1, 1))
    assert table.scan().count() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_do_not_store_their_keys(tmp_path, kind):
    table = filled(tmp_path, kind, {"hoodie.populate.meta.fields": "false"})
    assert table.delete(["a", "e"]).deleted == 2
    assert ids(table) == ["b", "c", "d", "f"]


def test_what_are_no_keys_of_the_table(tmp_path):
    table = filled(tmp_path)
    with pytest.raises(SchemaError, match="MISMATCH  id  table string, batch int64"):
        table.delete([1, 2])
    with pytest.raises(SchemaError, match="text \"id = 'a'\": a condition goes into where="):
        table.delete("id = 'a'")
    empty = hoodie.create_table(tmp_path / "e", record_key="id", partition_by="part")
    with pytest.raises(OptionError, match="is empty: no row of it has a key"):
        empty.delete(["a"])


def test_rows_that_another_writer_moves_meanwhile_are_looked_for_again(tmp_path, monkeypatch):
    table = filled(tmp_path)
    other = hoodie.open_table(tmp_path / "t")
    scan, turns = type(table).scan, []

    def beside(self, *args, **more):
        if not turns:
            turns.append(other.upsert({"id": ["a"], "part": ["p2"], "n": [9]}))
        return scan(self, *args, **more)

    monkeypatch.setattr(type(table), "scan", beside)
    table.delete(["a"])
    assert "a" not in ids(table)


BY_KEYS = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.GlobalDeleteKeyGenerator"}


def test_the_key_generator_of_global_deletes_finds_keys_in_any_partition(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city")
    table.upsert([{"id": "a", "city": "rome"}, {"id": "b", "city": "oslo"}, {"id": "c", "city": "oslo"}])
    told = {**BY_KEYS, "hoodie.datasource.write.partitionpath.field": ""}
    assert table.delete([{"id": "a", "city": "nowhere"}, {"id": "b", "city": None}], told).deleted == 2
    assert table.delete([{"id": "a", "city": "rome"}], BY_KEYS).instant is None
    assert table.scan(["id"]).to_arrow().to_pylist() == [{"id": "c"}]
    assert table.config.keygen == "SIMPLE"
    assert table.config.partition_fields == ("city",)


def test_the_key_generator_of_global_deletes_neither_writes_nor_creates(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city")
    with pytest.raises(OptionError, match="GLOBAL_DELETE is for operation delete, and upsert needs the partitions"):
        table.upsert([{"id": "a", "city": "rome"}], BY_KEYS)
    with pytest.raises(OptionError, match="create it with a key generator of its own"):
        hoodie.create_table(tmp_path / "new", record_key="id", partition_by="city", options=BY_KEYS)
    with pytest.raises(OptionError, match="has to find its rows in table 't' first"):
        hoodie.ingest(_lines(tmp_path, {"id": "a", "city": "rome"}), table, operation="delete", options=BY_KEYS)
    assert table.scan().count() == 0


def _lines(folder: Path, row: dict[str, str]) -> Path:
    (folder / "landing").mkdir()
    (folder / "landing" / "1.json").write_text(json.dumps(row))
    return folder / "landing"
