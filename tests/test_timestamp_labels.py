"""Milliseconds that Apache Hudi 0.x called microseconds are milliseconds in every view, and in whatever is written of them."""

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import SchemaError
from hoodie.format.timestamp_labels import holds_mislabelled
from tests.mislabelled import LOCAL, MILLIS, by_id, expected, mislabelled_table, moment_of, rows
from tests.public_tables import plain_rows

COLUMNS = ("at", "local", "inside", "listed", "mapped")


@pytest.fixture(params=["copy_on_write", "merge_on_read"])
def kind(request):
    return request.param


def test_every_view_has_them_right(tmp_path, kind):
    times = mislabelled_table(tmp_path / "t", kind)
    table = hoodie.open_table(tmp_path / "t")
    assert by_id(table.scan().to_arrow()) == expected()
    stale = expected() if kind == "copy_on_write" else expected(updated=())
    assert by_id(table.scan(query="read_optimized").to_arrow()) == stale
    assert by_id(table.scan(as_of=times[1]).to_arrow()) == expected(updated=())[:9]
    assert by_id(table.scan(as_of=times[2]).to_arrow()) == expected()[:9]
    assert by_id(table.changes(since=times[1]).to_arrow()) == [*expected()[:3], expected()[9]]
    feed = table.changes(since=times[1], images="before_after").to_arrow().to_pylist()
    assert {(row["before"]["at"], row["after"]["at"]) for row in feed if row["before"]} == {
        (moment_of(ident, 1), moment_of(ident, 2)) for ident in range(3)
    }


def test_a_filter_leaves_out_no_file_that_has_a_match(tmp_path, kind):
    mislabelled_table(tmp_path / "t", kind)
    table = hoodie.open_table(tmp_path / "t")
    found = table.scan(where=f"at = timestamp '{moment_of(1, 2):%Y-%m-%d %H:%M:%S.%f}'").to_arrow()
    assert found["id"].to_pylist() == [1]
    assert table.scan(where="at < timestamp '1971-01-01 00:00:00'").count() == 0
    assert table.scan(where=f"local > timestamp '{moment_of(0, 1):%Y-%m-%d %H:%M:%S}'").count() == 7


def test_what_is_rewritten_is_right_in_its_file_too(tmp_path, kind):
    mislabelled_table(tmp_path / "t", kind)
    table = hoodie.open_table(tmp_path / "t")
    before = {*(tmp_path / "t").glob("*/*.parquet")}
    table.upsert(rows(range(2, 7), 2, "a").slice(0, 3).append_column("x", pa.array([1, 1, 1])))
    table.upsert(rows(range(5, 7), 2, "b").append_column("x", pa.array([1, 1])))
    updated = range(7)
    assert by_id(table.scan(columns=["id", *COLUMNS]).to_arrow()) == [
        {name: row[name] for name in ("id", *COLUMNS)} for row in expected(updated)
    ]
    if kind == "merge_on_read":
        table.compact()
    table.cluster()
    files = {*(tmp_path / "t").glob("*/*.parquet")} - before
    assert files
    for file in files:
        assert pq.read_schema(file).field("at").type == MILLIS
        assert pq.read_schema(file).field("local").type == LOCAL
    assert by_id(hoodie.open_table(tmp_path / "t").scan(columns=["id", *COLUMNS]).to_arrow()) == [
        {name: row[name] for name in ("id", *COLUMNS)} for row in expected(updated)
    ]
    assert table.validate(deep=True)


def test_a_batch_of_microseconds_is_taken_as_it_is(tmp_path, kind):
    mislabelled_table(tmp_path / "t", kind)
    table = hoodie.open_table(tmp_path / "t")
    whole = rows(range(1), 3, "a")
    at = whole.schema.get_field_index("at")
    micros = whole.set_column(at, "at", whole["at"].cast(pa.timestamp("us", "UTC")))
    table.upsert(micros)
    assert table.scan(where="id = 0").to_arrow()["at"].to_pylist() == [moment_of(0, 3)]
    finer = pa.array([moment_of(0, 4) + timedelta(microseconds=1)], pa.timestamp("us", "UTC"))
    with pytest.raises(SchemaError, match=r"'at'.*would lose data"):
        table.upsert(whole.set_column(at, "at", finer))


@pytest.mark.parametrize("name", ["trips_logical_types_json_cow_read_v6", "trips_logical_types_json_mor_read_v6"])
def test_the_public_tables_hold_what_is_stated(public, name):
    table = public(name)
    opened = hoodie.open_table(table.path)
    stated = table.stated["expect"]
    columns = list(stated["distinct_values_of"][0])

    def check(scan, count):
        found = plain_rows(scan.to_arrow())
        assert len(found) == count
        assert {tuple(row.values()) for row in found} == {tuple(row.values()) for row in stated["distinct_values_of"]}

    count = stated["snapshot_rows"]
    check(opened.scan(columns=columns), count)
    check(opened.changes(since="000", columns=columns), count)
    for instant, _, _ in table.stated["instants"]:
        scan = opened.scan(as_of=instant, columns=columns)
        check(scan, scan.count())
    opened.upsert(opened.scan().to_arrow().slice(0, 3))
    check(opened.scan(columns=columns), count)
    opened.cluster()
    check(opened.scan(columns=columns), count)


def test_which_types_are_under_a_wrong_label():
    micros, local = pa.timestamp("us", "UTC"), pa.timestamp("us")
    for stored, now, wrong in (
        (micros, MILLIS, True),
        (pa.int64(), LOCAL, True),
        (pa.int64(), local, True),
        (local, LOCAL, False),
        (pa.int64(), MILLIS, False),
        (MILLIS, micros, False),
        (pa.string(), LOCAL, False),
        (pa.int32(), LOCAL, False),
    ):
        assert holds_mislabelled(stored, now) == wrong
        assert holds_mislabelled(pa.list_(stored), pa.list_(now)) == wrong
        assert holds_mislabelled(pa.map_(pa.string(), stored), pa.map_(pa.string(), now)) == wrong
        old, new = pa.struct([("a", pa.int32()), ("b", stored)]), pa.struct([("b", now), ("c", pa.int32())])
        assert holds_mislabelled(pa.list_(old), pa.list_(new)) == wrong
