"""Rows whose keys or paths are equal as texts only are not written over each other."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import KeyFieldError

KINDS = pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read", "bucket", "no meta columns"])
KEYS = [
    (("x,b:y", "z"), ("x", "y,b:z")),
    ((None, "z"), ("__null__", "z")),
    (("x", ""), ("x", "__empty__")),
    (("x", None), ("x", "__null__")),
    (("x'", None), ("x'", "__null__")),
]
PARTITIONS = [(None, ""), ("", "__HIVE_DEFAULT_PARTITION__"), (None, "__HIVE_DEFAULT_PARTITION__")]


def table_at(path, kind, **more):
    options = {
        "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
        "no meta columns": {"hoodie.populate.meta.fields": "false"},
    }.get(kind, {})
    table_type = {"bucket": "merge_on_read", "no meta columns": "copy_on_write"}.get(kind, kind)
    return hoodie.create_table(path, table_type=table_type, options=options, **more)


def composite(*keys, n=0):
    a, b = zip(*keys, strict=True)
    return pa.table({"a": pa.array(a, pa.string()), "b": pa.array(b, pa.string()), "n": [n] * len(keys)})


def parted(*paths, key=1):
    return pa.table({"id": [key] * len(paths), "p": pa.array(paths, pa.string()), "n": [*range(len(paths))]})


@KINDS
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_composite_keys(tmp_path, kind, keys):
    table = table_at(tmp_path / "t", kind, record_key=["a", "b"])
    with pytest.raises(KeyFieldError, match="one would overwrite the other"):
        table.upsert(composite(*keys))
    for one, other in (keys, keys[::-1]):
        table = table_at(tmp_path / str(one == keys[0]), kind, record_key=["a", "b"])
        table.insert(composite(("1", "2")))
        table.upsert(composite(one, ("p", "q")))
        table.upsert(composite(one, n=1))
        for write in (table.upsert, table.delete):
            with pytest.raises(KeyFieldError, match="different values and the same record key"):
                write(composite(other, ("p", "q"), n=2))
        found = table.scan(where="n = 1").to_arrow().select(["a", "b"]).to_pylist()
        assert found == [dict(zip("ab", one, strict=True))]
        assert table.scan().count() == 3
        table.delete(composite(one))
        table.upsert(composite(other))


@KINDS
@pytest.mark.parametrize("paths", PARTITIONS, ids=str)
def test_partitions(tmp_path, kind, paths):
    table = table_at(tmp_path / "t", kind, record_key="id", partition_by="p")
    with pytest.raises(KeyFieldError, match=r"p=null|p=''"):
        table.upsert(parted(*paths))
    table.upsert(parted(paths[0]))
    table.upsert(parted(paths[1], key=2))  # the same folder, and another key
    table.upsert(parted(paths[0]))
    for write in (table.upsert, table.delete):
        with pytest.raises(KeyFieldError, match="the same record key '1' in partition '__HIVE_DEFAULT_PARTITION__'"):
            write(parted(paths[1]))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


@KINDS
def test_what_reads_alike_and_is_not_is_written(tmp_path, kind):
    table = table_at(tmp_path / "t", kind, record_key=["a", "b"], partition_by="c")
    rows = composite(("x,b:y", "z"), ("x", "z"), (None, "__null__x"), ("", "__null__"), (",", ":")).append_column(
        "c", pa.array(["", None, "c", "", None])
    )
    table.upsert(rows)
    table.upsert(rows)
    assert table.scan().count() == 5


def test_other_types_have_one_text_for_each_value(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key=["a", "b"], partition_by="p")
    rows = pa.table({"a": [1, None], "b": pa.array([None, 1], pa.int64()), "p": pa.array([None, 1], pa.int64())})
    table.upsert(rows)
    table.upsert(rows)
    assert table.scan().count() == 2


def test_an_insert_that_merges_nothing_keeps_both(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key=["a", "b"])
    table.insert(composite(*KEYS[0]))
    table.bulk_insert(composite(*KEYS[0]))
    assert table.scan().count() == 4
