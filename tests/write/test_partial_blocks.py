"""Partial upserts as log blocks with some columns only: where they are written, and that all reads are as with whole rows."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from hoodie.filegroup.log_scan import is_partial, user_columns
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.model.enums import BlockKind
from tests.change_feed import check_feed
from tests.memory_tables import Input, batch, keys, new_table, opened

ON = {"hoodie.python.upsert.partial.blocks": "true"}
FIRST = [Input(f"k{n}", "a", n, 10) for n in range(4)]


def table_of(options=ON, version="9", **more):
    storage, clock = new_table(table_type="MERGE_ON_READ", more={"hoodie.write.table.version": version}, **more)
    table = opened(storage, clock, options)
    table.upsert(batch(FIRST))
    return storage, table


def some(*names, rows):
    return batch(rows).select(["id", "part", *names])


def blocks_of(storage):
    """The columns of each data block in the logs, in the order of their files; None: a block of whole rows."""
    logs = sorted(info.path for info in storage.list("a") if ".log." in info.name)
    blocks = [block for path in logs for block in scan_blocks(storage.read(path)) if isinstance(block, LogBlock)]
    data = [block for block in blocks if block.kind is not BlockKind.DELETE]
    return [user_columns(block, "") if is_partial(block) else None for block in data]


def rows_of(table):
    found = table.scan().to_arrow().to_pylist()
    return sorted((row["id"], row["val"], row["ts"], row["_hoodie_is_deleted"]) for row in found)


@pytest.mark.parametrize("more", [{}, {"hoodie.logfile.data.block.format": "parquet"}], ids=["avro", "parquet"])
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_block_has_the_columns_of_the_batch_and_rows_keep_the_others(version, more):
    storage, table = table_of(ON | more, version)
    since = table.timeline.latest_commit.position
    result = table.upsert(some("ts", rows=[Input("k1", "a", ts=20), Input("k2", "a", ts=5)]), partial=True)
    assert result.updated == 2
    table.upsert(some("ts", rows=[Input("k1", "a", ts=30), Input("k3", "a", ts=30)]), partial=True)
    assert blocks_of(storage) == [("id", "part", "ts")] * 2
    expected = [("k0", 0, 10, False), ("k1", 1, 30, False), ("k2", 2, 10, False), ("k3", 3, 30, False)]
    assert rows_of(table) == expected
    pulled = table.changes(since=since).to_arrow().to_pylist()
    assert sorted((row["id"], row["val"], row["ts"]) for row in pulled) == [("k1", 1, 30), ("k3", 3, 30)]
    assert table.scan(where="val = 1").to_arrow()["ts"].to_pylist() == [30]
    check_feed(table)
    table.compact()
    assert rows_of(table) == expected


def test_whole_rows_are_written_where_apache_hudi_would_not_read_others_right():
    late = [Input("k1", "a", 7, 20)]

    def kinds_of(write, **more):
        storage, table = table_of(**more)
        write(table)
        return blocks_of(storage)

    def upsert(table, *names, rows=late):
        table.upsert(some(*names, rows=rows), partial=True)

    part = ("id", "part", "ts")
    assert kinds_of(lambda t: upsert(t, "ts")) == [part]
    assert kinds_of(lambda t: upsert(t, "ts"), options={}) == [None]
    assert kinds_of(lambda t: upsert(t, "ts"), version="6") == [None]
    assert kinds_of(lambda t: upsert(t, "ts"), ordering=None) == [None]
    assert kinds_of(lambda t: upsert(t, "val")) == [None]  # its ordering values are those of the stored rows
    assert kinds_of(lambda t: upsert(t, "ts", "_hoodie_is_deleted", rows=[Input("k1", "a", 7, 20, True)])) == []
    assert kinds_of(lambda t: (upsert(t, "ts"), upsert(t, "val", "ts"))) == [part, None]
    assert kinds_of(lambda t: (t.upsert(batch(late)), upsert(t, "ts"))) == [None, None]
    assert kinds_of(lambda t: (t.delete(keys([Input("k2", "a")])), upsert(t, "ts"))) == [None]


ROWS = st.lists(
    st.builds(Input, st.sampled_from(["k0", "k1", "x"]), st.just("a"), st.integers(0, 9), st.integers(0, 20)),
    min_size=1,
    max_size=4,
)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([("ts",), ("ts",), ("val", "ts"), ("val",), None, "delete"]), ROWS),
        st.just(("compact", [])),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(acts=ACTS)
def test_any_history_reads_as_one_of_whole_rows(acts):
    tables = [table_of(options)[1] for options in (ON, {})]
    for how, rows in acts:
        for table in tables:
            if how == "compact":
                table.compact()
            elif how == "delete":
                table.delete(keys(rows))
            elif how is None:
                table.upsert(batch(rows))
            else:
                table.upsert(some(*how, rows=rows), partial=True)
        assert rows_of(tables[0]) == rows_of(tables[1])
    check_feed(tables[0])
