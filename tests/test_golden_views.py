"""What we read from the tables that Apache Hudi wrote is what Apache Hudi read from them, row for row, meta columns too."""

from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import InstantNotFoundError
from hoodie.model.meta_fields import META_COLUMNS
from tests.effort import in_shares
from tests.golden_tables import FOLDER, copy_golden, golden_names, golden_pulls
from tests.rows import rows_of, sorted_rows

ALL = golden_names()


class Opened(NamedTuple):
    table: hoodie.HoodieTable
    expected: dict


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Gives a golden table by name, opened; these tests only read, so they share it."""
    found = {}

    def open_golden(name):
        if name not in found:
            golden = copy_golden(name, tmp_path_factory.mktemp(name))
            found[name] = Opened(hoodie.open_table(golden.path), golden.expected)
        return found[name]

    return open_golden


def test_the_tables_of_this_release_are_all_here():
    assert FOLDER.is_dir()
    assert {"v9_cow", "v9_mor"} <= set(ALL)
    assert len([name for name in ALL if name.startswith("v6_")]) >= 12
    required = {"v6_cow_simple", "v6_mor_logs", "v6_mor_compacted", "v6_mor_pending_compaction"}
    assert required <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_snapshot(opened, name):
    table, expected = opened(name)
    assert rows_of(table.scan(meta_columns=True).to_arrow()) == expected["snapshot"]


@pytest.mark.parametrize("name", ALL)
def test_read_optimized(opened, name):
    table, expected = opened(name)
    found = table.scan(query="read_optimized", meta_columns=True).to_arrow()
    assert rows_of(found) == expected["read_optimized"]


@pytest.mark.parametrize("name", ALL)
def test_every_incremental_pull(opened, name):
    table, expected = opened(name)
    recorded = {(entry["begin"], entry["end"]): entry.get("rows") for entry in expected["incremental"]}
    pulls = golden_pulls(name)
    for begin, end, rows in pulls:
        assert recorded.pop((begin, end), rows) == rows
        scan = partial(table.changes, since=begin, until=end, meta_columns=True)
        if rows is None:
            with pytest.raises(InstantNotFoundError, match="were cleaned"):
                scan().to_arrow()
        else:
            assert rows_of(scan().to_arrow()) == rows, (begin, end)
    assert not recorded
    assert any(pull.rows for pull in pulls)


@pytest.mark.parametrize("name", ALL)
def test_every_time_travel(opened, name):
    table, expected = opened(name)
    entries = [entry for entry in expected["time_travel"] if "error" not in entry]
    assert entries
    for entry in entries:
        found = table.scan(as_of=entry["as_of"], meta_columns=True).to_arrow()
        assert rows_of(found) == entry["rows"], entry["as_of"]


@pytest.mark.parametrize("name", ALL)
def test_the_schema_has_spark_s_columns_in_spark_s_order(opened, name):
    table, expected = opened(name)
    assert table.scan(meta_columns=True).schema.names == [field["name"] for field in expected["schema"]["fields"]]


def flat_columns(schema):
    return [
        field.name
        for field in schema
        if not pa.types.is_nested(field.type) and field.name not in META_COLUMNS and field.name != "_hoodie_is_deleted"
    ]


@pytest.mark.parametrize("name", ALL)
@in_shares(3)
def test_a_projection_gives_the_same_values_as_the_whole_answer(opened, name, share):
    table, _ = opened(name)
    whole = table.scan(meta_columns=True).to_arrow()
    for column in share.of(whole.column_names):
        assert rows_of(table.scan(columns=[column]).to_arrow()) == rows_of(whole.select([column])), column
    backwards = whole.column_names[::-1]
    projected = table.scan(columns=backwards).to_arrow()
    assert projected.column_names == backwards
    assert rows_of(projected.select(whole.column_names)) == rows_of(whole)


@pytest.mark.parametrize("name", ALL)
@in_shares(3)
def test_a_filter_keeps_what_it_would_keep_of_the_whole_answer(opened, name, share):
    table, _ = opened(name)
    whole = table.scan(meta_columns=True).to_arrow()
    for column in share.of(flat_columns(whole.schema)):
        values = whole.column(column).drop_null()
        if not len(values) or pa.types.is_binary(values.type):
            continue
        middle = values.take(pc.array_sort_indices(values)[len(values) // 2 : len(values) // 2 + 1])[0]
        for accepts in (pc.field(column) == middle, pc.field(column) > middle, pc.field(column).is_null()):
            expected = whole.filter(accepts)
            assert rows_of(table.scan(where=accepts, meta_columns=True).to_arrow()) == rows_of(expected), accepts
            # The filter's column need not be asked for.
            keys = table.scan(columns=["_hoodie_record_key"], where=accepts).to_arrow()
            assert rows_of(keys) == rows_of(expected.select(["_hoodie_record_key"])), accepts


def test_a_filter_sees_merged_rows_and_not_what_a_log_replaced(opened):
    table, expected = opened("v6_mor_logs")
    wanted = [row for row in expected["snapshot"] if row["qty"] is not None and row["qty"] >= 1000]
    stale = [row for row in expected["read_optimized"] if row["qty"] is not None and row["qty"] >= 1000]
    assert wanted != stale
    assert rows_of(table.scan(where="qty >= 1000", meta_columns=True).to_arrow()) == sorted_rows(wanted)


def test_an_incremental_pull_takes_projection_and_filter_too(opened):
    table, expected = opened("v6_mor_logs")
    entry = expected["incremental"][1]
    found = table.changes(
        since=entry["begin"], until=entry["end"], columns=["id", "qty"], where="qty > 1003"
    ).to_arrow()
    wanted = [{"id": row["id"], "qty": row["qty"]} for row in entry["rows"] if row["qty"] > 1003]
    assert wanted
    assert rows_of(found) == sorted_rows(wanted)


def test_count_agrees_with_the_rows(opened):
    for name in ALL:
        table, expected = opened(name)
        assert table.scan().count() == len(expected["snapshot"]), name
        assert table.scan(query="read_optimized").count() == len(expected["read_optimized"]), name


def test_an_instant_before_the_first_commit_is_an_error_that_names_the_first_and_the_last(opened):
    table, _ = opened("v6_cow_simple")
    with pytest.raises(InstantNotFoundError, match=r"20261121082711949.*20261121082802320"):
        table.scan(as_of="20200101000000000")
