"""A write that brings values of deleted rows back says so, once; one that does not is quiet."""

import logging

import pyarrow as pa
import pytest

import hoodie

SAID = "values of the deleted rows back"
PAYLOADS = "org.apache.hudi.common.model."
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])


def rows(ts, v="x", ids=(1,)):
    return pa.table(
        [[*ids], ["ab"[i % 2] for i in ids], [ts] * len(ids), pa.array([v] * len(ids), pa.string())], schema=SCHEMA
    )


def new_table(path, payload=None, **more):
    options = {"hoodie.datasource.write.payload.class": PAYLOADS + payload} if payload else {}
    given = {"table_type": "merge_on_read", "partition_by": "part", **more}
    return hoodie.create_table(
        path, SCHEMA, record_key="id", ordering="ts", options={**options, **given.pop("options", {})}, **given
    )


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "hoodie")
    return lambda: sum(SAID in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("options", [{}, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}])
def test_a_lower_ordering_value_after_a_delete(tmp_path, said, options):
    table = new_table(tmp_path / "t", options=options)
    table.upsert(rows(5, "old", ids=(1, 2)))
    table.delete(rows(5, ids=(1, 2)))
    table.upsert(rows(4, "new", ids=(1, 2)))
    assert said() == 1
    assert table.scan().to_arrow()["v"].to_pylist() == ["old", "old"]  # as Apache Hudi has it


@pytest.mark.parametrize("payload", ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"])
def test_a_null_after_a_delete(tmp_path, said, payload):
    table = new_table(tmp_path / "t", payload)
    table.upsert(rows(1, "old"))
    table.delete(rows(1))
    table.upsert(rows(2, "whole"))
    assert said() == 0
    table.delete(rows(1))
    table.upsert(rows(2, None))
    assert said() == 1


def test_what_brings_nothing_back_is_quiet(tmp_path, said):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old", ids=(1, 2, 3)))
    table.delete(rows(5))
    table.upsert(rows(4, ids=(2, 3)))  # other keys
    table.upsert(rows(5, "new"))  # counts
    table.upsert(rows(4))  # its delete is over
    table.delete(rows(5))
    table.compact()
    table.upsert(rows(4, "new"))
    late = rows(9).append_column("_hoodie_is_deleted", pa.array([True]))
    table.upsert(late)
    table.upsert(rows(4))  # the delete is later
    assert said() == 0


@pytest.mark.parametrize(
    "more",
    [
        {"table_type": "copy_on_write"},
        {"options": {"hoodie.datasource.write.payload.class": PAYLOADS + "OverwriteWithLatestAvroPayload"}},
    ],
)
def test_tables_that_bring_nothing_back_are_quiet(tmp_path, said, more):
    table = new_table(tmp_path / "t", **more)
    table.upsert(rows(5, "old"))
    table.delete(rows(5))
    table.upsert(rows(4, "new"))
    assert table.scan().to_arrow()["v"].to_pylist() == ["new"]
    assert said() == 0
