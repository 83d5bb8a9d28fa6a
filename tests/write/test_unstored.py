"""Tables without `_hoodie_` columns, and tables whose files lack partition columns: operations, services and bytes."""

import json
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import KeyFieldError, OptionError, UnsupportedTableError
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.names import PROPERTIES
from tests.rows import rows_of

SCHEMA = pa.schema(
    [("id", pa.int64()), ("city", pa.string()), ("n", pa.int32()), ("v", pa.string()), ("ts", pa.int64())]
)
NO_META = {"hoodie.populate.meta.fields": "false"}
DROP = {"hoodie.datasource.write.drop.partition.columns": "true"}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
KEEP = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
TABLES = {
    "no meta, cow": (COW, NO_META),
    "no meta, mor": (MOR, NO_META),
    "no meta, Parquet logs": (MOR, {**NO_META, "hoodie.logfile.data.block.format": "parquet"}),
    "no meta, buckets": (MOR, {**NO_META, **BUCKET}),
    "no columns": (COW, DROP),
    "no columns, buckets": (COW, {**DROP, **BUCKET}),
    "neither": (COW, {**NO_META, **DROP}),
}


def rows(*values):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=True)) for each in values], schema=SCHEMA)


def create(path, kind, *, record_key="id", partition_by="city", **changed):
    table_type, options = TABLES[kind]
    return hoodie.create_table(
        path,
        SCHEMA,
        record_key=record_key,
        partition_by=partition_by,
        ordering="ts",
        table_type=table_type,
        options={**options, **KEEP, **changed},
    )


def state(table, **asked):
    return sorted(tuple(row[name] for name in SCHEMA.names) for row in table.scan(**asked).to_arrow().to_pylist())


@pytest.fixture
def memory():
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture(params=TABLES)
def kind(request):
    return request.param


@pytest.mark.parametrize(("record_key", "partition_by"), [("id", "n"), ("id", ["city", "n"]), (["id", "n"], "city")])
def test_rows_are_found_again_by_every_operation(memory, kind, record_key, partition_by):
    table = create(memory, kind, record_key=record_key, partition_by=partition_by)
    first = table.upsert(rows((1, "a", 1, "x", 1), (2, "b", 2, "y", 1), (3, "a", 1, "z", 1)))
    table.upsert(rows((1, "a", 1, "x2", 2), (2, "b", 2, "late", 0), (4, "b", 2, "w", 1)))
    table.delete(rows((3, "a", 1, None, None)))
    expected = [(1, "a", 1, "x2", 2), (2, "b", 2, "y", 1), (4, "b", 2, "w", 1)]
    assert state(table) == expected
    assert len(state(table, as_of=first.instant)) == 3
    assert state(table, where="n = 2 and city = 'b'") == expected[1:]
    assert table.scan(columns=["city"], where="n = 1").to_arrow().to_pylist() == [{"city": "a"}]
    assert table.scan(columns=["v"]).count() == 3
    table.upsert(pa.table({"id": [4], "city": ["b"], "n": pa.array([2], pa.int32()), "v": ["w2"]}), partial=True)
    expected[2] = (4, "b", 2, "w2", 1)
    assert state(table) == expected
    table.upsert(table.scan().to_arrow())
    assert table.delete(where="v = 'x2'")
    assert state(table) == expected[1:]


def test_services_keep_the_rows(memory, kind):
    table = create(memory, kind)
    table.upsert(rows(*((n, "ab"[n % 2], n, "x", 1) for n in range(8))))
    saved = table.upsert(rows((0, "a", 0, "x2", 2), (8, "a", 8, "x", 1))).instant
    table.delete(rows((1, "b", 1, None, None)))
    expected = state(table)
    if table.config.table_type == MOR:
        assert table.compact_logs(blocks=1)
        assert state(table) == expected
        table.upsert(rows((0, "a", 0, "x3", 3)))
        expected = state(table)
        assert table.compact()
        assert state(table) == expected == state(table, query="read_optimized")
    if table.config.buckets is None:
        assert table.cluster("v")
        assert state(table) == expected
        table.upsert(rows((2, "a", 2, "x4", 4)))
    table.insert_overwrite(rows((9, "b", 9, "new", 1)))
    assert {row[0] for row in state(table) if row[1] == "b"} == {9}
    table.clean(retain_commits=1)
    assert table.validate(deep=True) or not kind.startswith("no meta")
    assert saved


def test_a_rollback_and_a_restore_take_rows_back(memory, kind):
    table = create(memory, kind)
    table.upsert(rows((1, "a", 1, "x", 1), (2, "b", 2, "y", 1)))
    kept = table.upsert(rows((1, "a", 1, "x2", 2))).instant
    table.savepoint(kept)
    before = state(table)
    table.rollback(table.upsert(rows((1, "a", 1, "x3", 3))).instant)
    assert state(table) == before
    table.delete(rows((2, "b", 2, None, None)))
    table.restore(kept)
    assert state(table) == before


def files_of(path):
    return [pq.ParquetFile(each) for each in sorted(path.glob("**/*.parquet")) if ".hoodie" not in each.parts]


def test_the_bytes_are_those_of_apache_hudi(tmp_path, kind):
    create(tmp_path / "t", kind).upsert(rows((1, "a", 1, "x", 1), (2, "b", 2, "y", 1)))
    found = files_of(tmp_path / "t")
    assert found or kind == "no meta, buckets"
    for file in found:
        stored, footer = file.read(), file.metadata.metadata
        names = [name for name in SCHEMA.names if name != "city" or not TABLES[kind][1].get(*DROP)]
        assert stored.column_names == [*META_COLUMNS, *names]
        empty = {name for name in META_COLUMNS[:4] if stored[name].null_count == stored.num_rows}
        no_meta = "hoodie.populate.meta.fields" in TABLES[kind][1]
        assert empty == set(META_COLUMNS[:4] if no_meta else ())
        assert (b"hoodie_min_record_key" in footer, b"org.apache.hudi.bloomfilter" in footer) == (
            not no_meta,
            not no_meta,
        )


def test_meta_columns_that_are_not_stored_are_null_before_and_after_a_merge(tmp_path):
    table = create(tmp_path / "t", "no meta, mor")
    table.upsert(rows((1, "a", 1, "x", 1)))
    for _ in range(2):
        stored = table.scan(meta_columns=True).to_arrow()
        assert [stored[name].null_count for name in META_COLUMNS[:4]] == [1] * 4
        table.upsert(rows((1, "a", 1, "x2", 2)))


def test_a_key_that_stands_twice_is_found(tmp_path):
    table = create(tmp_path / "t", "no meta, cow")
    for _ in range(2):
        table.bulk_insert(rows((1, "a", 1, "x", 1)))
    (problem,) = table.validate(deep=True).problems
    assert "1 record key stands more than once" in str(problem)


def test_what_files_hold_of_the_columns_does_not_count(tmp_path):
    """A bulk_insert of Apache Hudi leaves empty texts in `_hoodie_` columns, and a delete of it nulls in partition columns."""
    create(tmp_path / "t", "neither").upsert(rows((1, "a", 1, "x", 1), (2, "a", 2, "y", 1)))
    (path,) = (tmp_path / "t" / "a").glob("*.parquet")
    stored, size = pq.read_table(path).replace_schema_metadata(None), path.stat().st_size
    empty = {name: pa.array(["", ""]) for name in META_COLUMNS}
    own = {name: stored[name] for name in stored.column_names if name not in META_COLUMNS}
    pq.write_table(pa.table({**empty, **own, "city": pa.nulls(2, pa.string())}), path)
    (commit,) = (tmp_path / "t" / ".hoodie").glob("*.commit")
    commit.write_text(commit.read_text().replace(str(size), str(path.stat().st_size)))
    table = hoodie.open_table(tmp_path / "t")
    assert state(table) == [(1, "a", 1, "x", 1), (2, "a", 2, "y", 1)]
    assert table.validate(deep=True)
    table.upsert(rows((1, "a", 1, "x2", 2)))
    assert state(table) == [(1, "a", 1, "x2", 2), (2, "a", 2, "y", 1)]


def test_columns_that_apache_hudi_calls_texts_take_the_values_that_they_had(tmp_path):
    """Its commits do not state the columns, and without the schema of the table's creation nothing says their types."""
    table = create(tmp_path / "t", "no columns", partition_by="n")
    table.upsert(rows((1, "a", 1, "x", 1)))
    properties = tmp_path / "t" / PROPERTIES
    kept = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.create.schema")]
    properties.write_text("\n".join([*kept, ""]))
    (commit,) = (tmp_path / "t" / ".hoodie").glob("*.commit")
    stated = json.loads(commit.read_text())
    schema = json.loads(stated["extraMetadata"]["schema"])
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "n"]
    stated["extraMetadata"]["schema"] = json.dumps(schema)
    commit.write_text(json.dumps(stated))
    table = hoodie.open_table(tmp_path / "t")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "city": "a", "v": "x", "ts": 1, "n": "1"}]
    table.upsert(rows((1, "a", 1, "x2", 2), (2, "a", 2, "y", 1)))
    assert table.scan(columns=["id", "n", "v"]).to_arrow().to_pylist() == [
        {"id": 1, "n": "1", "v": "x2"},
        {"id": 2, "n": "2", "v": "y"},
    ]


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_value_that_its_folder_cannot_say_is_refused(tmp_path, value):
    table = create(tmp_path / "t", "no columns")
    table.upsert(rows((1, None, 1, "x", 1)))
    for write in (table.upsert, table.bulk_insert):
        with pytest.raises(KeyFieldError, match="would come back as None"):
            write(rows((2, value, 1, "x", 1)))
    assert state(table) == [(1, None, 1, "x", 1)]


@pytest.mark.parametrize("kind", ["no meta, cow", "no meta, mor", "neither"])
def test_keys_that_are_equal_as_text_only_are_refused(memory, kind):
    table = create(memory, kind, record_key=["v", "city"], partition_by="n")
    table.upsert(rows((1, "y", 1, "x,city:y", 1)))
    with pytest.raises(KeyFieldError, match="the same record key 'v:x,city:y,city:y'"):
        table.upsert(rows((2, "y,city:y", 1, "x", 2)))


@pytest.mark.parametrize(
    ("kind", "changed", "told"),
    [
        ("no meta, cow", {"record_key": []}, "name record key columns"),
        (
            "no meta, cow",
            {"hoodie.datasource.write.keygenerator.type": "CUSTOM", "partition_by": "n:SIMPLE"},
            "not CUSTOM",
        ),
        ("no columns", {"partition_by": "ts"}, "ordering column ts is a partition column"),
    ],
)
def test_what_apache_hudi_refuses_is_refused(tmp_path, kind, changed, told):
    with pytest.raises(OptionError, match=told):
        create(tmp_path / "t", kind, **changed)


def test_a_table_whose_files_lack_columns_is_created_with_its_schema(tmp_path):
    with pytest.raises(OptionError, match="has to be created with its schema"):
        hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city", options=DROP)


def test_a_merge_on_read_table_keeps_its_partition_columns(tmp_path):
    table = hoodie.create_table(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="city", table_type=MOR, options=DROP
    )
    table.upsert(rows((1, "a", 1, "x", 1)), options=DROP)
    assert "drop.partition.columns=false" in (tmp_path / "t" / PROPERTIES).read_text()
    assert "city" in files_of(tmp_path / "t")[0].schema_arrow.names


@pytest.mark.parametrize(("kind", "option"), [("no meta, cow", NO_META), ("no columns", DROP)])
def test_options_that_contradict_the_table_are_refused(tmp_path, kind, option):
    table = create(tmp_path / "t", kind)
    batch = rows((1, "a", 1, "x", 1))
    table.upsert(batch, options=option)
    ((name, value),) = option.items()
    with pytest.raises(OptionError, match="contradict"):
        table.upsert(batch, options={name: str(value != "true").lower()})


def test_a_merge_on_read_table_of_another_writer_without_the_columns_is_read_only(tmp_path):
    table = create(tmp_path / "t", "no meta, mor")
    table.upsert(rows((1, "a", 1, "x", 1)))
    properties = tmp_path / "t" / PROPERTIES
    properties.write_text(properties.read_text().replace("drop.partition.columns=false", "drop.partition.columns=true"))
    table = hoodie.open_table(tmp_path / "t")
    assert state(table) == [(1, "a", 1, "x", 1)]
    with pytest.raises(UnsupportedTableError, match="keep partition columns"):
        table.upsert(rows((1, "a", 1, "x", 2)))


def test_a_public_table_without_the_columns_is_written_on(public):
    """Of Apache Hudi 0.15, by its row writer: file names are stored there, and nothing else of `_hoodie_` columns."""
    source = public("v6_simplekeygen_hivestyle_no_metafields")
    table = hoodie.open_table(source.path)
    before = table.scan().to_arrow()
    (one,) = before.filter(pc.equal(before["id"], 1)).to_pylist()
    table.upsert(pa.Table.from_pylist([one | {"name": "Ada", "longField": one["longField"] + 1}], schema=before.schema))
    table.delete(before.filter(pc.equal(before["id"], 4)))
    assert dict(zip(*(table.scan().to_arrow()[name].to_pylist() for name in ("id", "name")), strict=True)) == {
        1: "Ada",
        2: "Bob",
        3: "Carol",
    }
    assert table.compact()
    found = table.scan().to_arrow()
    unchanged = pc.not_equal(found["id"], 1)
    same = before.filter(pc.is_in(before["id"], pa.array([2, 3])))
    assert rows_of(found.filter(unchanged)) == rows_of(same.cast(found.schema))
    assert table.validate(deep=True)
