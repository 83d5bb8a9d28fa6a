"""A write that would bring values of deleted rows back makes a new base file; where it cannot, it says so."""

import logging
from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.tuning import TUNING
from hoodie.table import open_at

SAID = "values of the deleted rows back"
PAYLOADS = "org.apache.hudi.common.model."
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])


def rows(ts, v="x", ids=(1,)):
    return pa.table(
        [[*ids], ["ab"[i % 2] for i in ids], [ts] * len(ids), pa.array([v] * len(ids), pa.string())], schema=SCHEMA
    )


def new_table(path, payload=None, **more):
    options = {"hoodie.datasource.write.payload.class": PAYLOADS + payload} if payload else {}
    given = {"table_type": "merge_on_read", "partition_by": "part", "ordering": "ts", **more}
    return hoodie.create_table(path, SCHEMA, record_key="id", options={**options, **given.pop("options", {})}, **given)


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "hoodie")
    return lambda: sum(SAID in record.getMessage() for record in caplog.records)


def files(table):
    """How many base files, and how many log files, the newest commit wrote."""
    stats = list(table._context.active.read_commit(table.timeline.commits[-1]).stats())
    return sum(s.log_version is None for s in stats), sum(s.log_version is not None for s in stats)


def values(table):
    return table.scan().to_arrow().sort_by("id")["v"].to_pylist()


BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.mark.parametrize("options", [{}, BUCKET, {"hoodie.logfile.data.block.format": "parquet"}])
def test_a_lower_ordering_value_after_a_delete(tmp_path, said, options):
    table = new_table(tmp_path / "t", options=options)
    table.upsert(rows(5, "old", ids=(1, 2)))
    table.delete(rows(5, ids=(1, 2)))
    table.upsert(rows(4, "new", ids=(1, 2)))
    assert files(table) == (2, 0)
    assert values(table) == ["new", "new"]
    assert said() == 0
    table.upsert(rows(4, "newer", ids=(1, 2)))
    assert files(table) == (0, 2)
    assert values(table) == ["newer", "newer"]


@pytest.mark.parametrize("payload", ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"])
def test_a_null_after_a_delete(tmp_path, payload):
    table = new_table(tmp_path / "t", payload)
    table.upsert(rows(1, "old"))
    table.delete(rows(1))
    table.upsert(rows(2, "whole"))
    assert files(table) == (0, 1)
    table.delete(rows(1))
    table.upsert(rows(2, None))
    assert files(table) == (1, 0)
    assert values(table) == [None]


@pytest.mark.parametrize("ts", [3, None])
def test_a_partial_upsert_after_a_delete(tmp_path, ts):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old"))
    table.delete(rows(5))
    given = rows(ts, "new").select(["id", "part", "v"] if ts is None else ["id", "part", "ts"])
    table.upsert(given, partial=True)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "part": "b", "ts": ts, "v": "new" if ts is None else None}]


def test_several_ordering_fields_compare_as_a_tuple(tmp_path):
    table = new_table(tmp_path / "t", ordering=["ts", "v"])
    for first, then, written in (("b", "a", 1), ("a", "b", 0)):
        table.upsert(rows(5, first))
        table.delete(rows(5))
        table.upsert(rows(5, then))
        assert files(table) == (written, 1 - written)
        assert values(table) == [then]
        table.delete(rows(5))
        table.compact()


DELETED = pa.array([True])


@pytest.mark.parametrize(("delete_ts", "base_files", "left"), [(None, 1, ["new"]), (5, 0, []), (9, 0, [])])
def test_a_row_that_is_a_delete_counts_by_its_ordering_value_or_always(tmp_path, delete_ts, base_files, left):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old"))
    table.upsert(rows(delete_ts).append_column("_hoodie_is_deleted", DELETED))
    table.upsert(rows(4, "new"))
    assert files(table)[0] == base_files
    assert values(table) == left


def test_where_a_slice_is_written_anew_later_deletes_count_and_other_rows_stay(tmp_path):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old", ids=(1, 3, 5, 7)))
    table.delete(rows(5, ids=(1,)))
    late = rows(9, ids=(3,)).append_column("_hoodie_is_deleted", DELETED)
    table.upsert(late)
    table.upsert(rows(6, "in a log", ids=(7,)))
    table.upsert(rows(4, "new", ids=(1, 3, 5)))
    assert files(table) == (1, 0)
    found = table.scan().to_arrow().sort_by("id")
    assert list(zip(*(found[name].to_pylist() for name in ("id", "v")), strict=True)) == [
        (1, "new"),
        (5, "old"),
        (7, "in a log"),
    ]


def test_rows_of_one_key_that_are_not_combined_do_not_stand_beside_each_other(tmp_path):
    table = new_table(tmp_path / "t", options={"hoodie.combine.before.upsert": "false"})
    table.upsert(rows(5, "old"))
    table.delete(rows(5))
    table.upsert(pa.concat_tables([rows(4, "newer"), rows(3, "older")]))
    assert values(table) == ["newer"]


def test_a_hot_file_group_is_written_anew_as_a_whole(tmp_path):
    tuned = open_at(new_table(tmp_path / "t")._context.storage, tuning=replace(TUNING, append_bytes=100))
    ids = range(1, 41, 2)
    tuned.upsert(rows(5, "old", ids=ids))
    tuned.upsert(rows(6, "log", ids=ids))
    assert files(tuned)[1] > 5
    tuned.delete(rows(5, ids=(1,)))
    tuned.upsert(rows(4, "new", ids=(1, 3, 5, 7, 9, 11)))
    assert files(tuned) == (1, 0)
    assert values(tuned) == ["new"] + ["log"] * 19


@pytest.mark.parametrize("deleted_first", [True, False])
def test_while_a_compaction_is_pending_the_write_says_what_comes_back(tmp_path, said, deleted_first):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old"))
    table.upsert(rows(5, "old"))
    steps = [lambda: table.delete(rows(5)), table.schedule_compaction]
    for step in steps if deleted_first else reversed(steps):
        step()
    table.upsert(rows(4, "new"))
    assert said() == 1
    assert files(table) == (0, 1)
    assert values(table) == ["old"]  # as Apache Hudi has it
    table.run_compaction()
    assert values(table) == ["new" if deleted_first else "old"]


@pytest.mark.parametrize("pending", [True, False])
def test_a_log_compaction_keeps_what_its_logs_deleted(tmp_path, pending):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old", ids=(1, 3)))
    table.upsert(rows(6, "log", ids=(3,)))
    table.delete(rows(5))
    table.schedule_log_compaction(blocks=1)
    steps = [lambda: table.upsert(rows(4, "new")), table.run_log_compaction]
    for step in steps if pending else reversed(steps):
        step()
    assert files(table) == (1, 0)
    assert values(table) == ["new", "log"]
    assert table.validate().problems == ()


def test_deletes_of_archived_commits_are_not_looked_for(tmp_path, said):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old"))
    table.delete(rows(5))
    for n in range(3):
        table.upsert(rows(5, str(n), ids=(2,)))
    table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=1)
    table.upsert(rows(4, "new"))
    assert said() == 0
    assert values(table) == ["old", "2"]  # as Apache Hudi has it


def test_what_brings_nothing_back_goes_to_a_log(tmp_path, said):
    table = new_table(tmp_path / "t")
    table.upsert(rows(5, "old", ids=(1, 2, 3)))
    table.delete(rows(5))
    table.upsert(rows(4, ids=(2, 3)))  # other keys
    table.upsert(rows(5, "new"))  # counts
    table.upsert(rows(4))  # its delete is over
    assert files(table) == (0, 1)
    table.delete(rows(5))
    table.compact()
    table.upsert(rows(4, "new"))
    late = rows(9).append_column("_hoodie_is_deleted", pa.array([True]))
    table.upsert(late)
    table.upsert(rows(4))  # the delete is later
    assert files(table) == (0, 1)
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
