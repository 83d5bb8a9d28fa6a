"""Incremental pulls where Apache Hudi's answer is not the obvious one (integration/test_ours_read_by_peers.py compares)."""

import pyarrow as pa
import pytest

import hoodie

SCHEMA = pa.schema([("id", pa.string()), ("note", pa.string()), ("ts", pa.int64())])


def rows(*found):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


def pulled(table, since):
    return sorted(map(tuple, (row.values() for row in table.changes(since=since).to_arrow().to_pylist())))


def create(path, kind="MERGE_ON_READ", **more):
    return hoodie.create_table(path, SCHEMA, record_key="id", ordering="ts", table_type=kind, **more)


def test_a_late_row_that_lost_against_the_base_file_is_pulled(tmp_path):
    table = create(tmp_path)
    first = table.upsert(rows(("a", "stored", 10), ("b", "stored", 10)))
    table.upsert(rows(("a", "late", 5)))
    assert pulled(table, first.instant) == [("a", "late", 5)]
    assert pulled(table, None) == [("a", "stored", 10), ("b", "stored", 10)]


def test_also_where_the_base_file_is_of_a_compaction_in_the_range(tmp_path):
    table = create(tmp_path)
    first = table.upsert(rows(("a", "stored", 10), ("b", "stored", 10)))
    table.upsert(rows(("b", "new", 20)))
    table.compact()
    table.upsert(rows(("a", "late", 5)))
    assert pulled(table, first.instant) == [("a", "late", 5), ("b", "new", 20)]


def test_not_on_copy_on_write_where_it_was_never_stored(tmp_path):
    table = create(tmp_path, "COPY_ON_WRITE")
    first = table.upsert(rows(("a", "stored", 10), ("b", "stored", 10)))
    table.upsert(rows(("a", "late", 5)))
    assert pulled(table, first.instant) == []


def test_not_after_a_compaction_unless_the_range_ends_before_it(tmp_path):
    table = create(tmp_path)
    first = table.upsert(rows(("a", "stored", 10), ("b", "stored", 10)))
    second = table.upsert(rows(("a", "late", 5)))
    table.compact()
    assert pulled(table, first.instant) == []
    found = table.changes(since=first.instant, until=second.instant).to_arrow()
    assert found.to_pylist() == [{"id": "a", "note": "late", "ts": 5}]


def test_deletes_are_not_pulled(tmp_path):
    table = create(tmp_path)
    first = table.upsert(rows(("a", "stored", 10), ("b", "stored", 10)))
    table.delete(rows(("a", "", 0)))
    assert pulled(table, first.instant) == []


def test_the_columns_are_those_of_the_table_now(tmp_path):
    table = create(tmp_path)
    first = table.upsert(rows(("a", "x", 1)))
    more = rows(("b", "y", 1)).append_column("extra", pa.array(["z"]))
    table.upsert(more)
    found = table.changes(until=first.instant).to_arrow()
    assert found.to_pylist() == [{"id": "a", "note": "x", "ts": 1, "extra": None}]
    assert table.scan(as_of=first.instant).schema.names == SCHEMA.names


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_pull_since_the_result_of_any_action_gives_what_came_after_it(tmp_path, kind, version):
    table = create(tmp_path, kind, options={"hoodie.write.table.version": version})
    actions = [
        lambda: table.bulk_insert(rows(("a", "first", 1), ("b", "first", 1))),
        lambda: table.insert(rows(("c", "first", 1))),
        lambda: table.upsert(rows(("a", "second", 2))),
        lambda: table.upsert(rows(("a", "third", 3))),
        lambda: table.delete(rows(("b", "", 0))),
        lambda: table.alter.add_column("more", pa.int32()),
        lambda: table.cluster(["id"])[0],
    ]
    if kind == "MERGE_ON_READ":
        actions[5:5] = [
            lambda: table.compact_logs({"hoodie.log.compaction.blocks.threshold": "2"})[0],
            lambda: table.compact()[0],
        ]
    for action in actions:
        result = action()
        (done,) = [each for each in table.timeline.commits if each.time == result.instant]
        assert result.position == done.position
        assert table.changes(since=result).count() == table.changes(since=result.position).count() == 0
