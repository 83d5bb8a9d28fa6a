"""What is kept of copies and dead rows answers only for the files that it was learned from."""

import pyarrow as pa

import hoodie


def batch(ids, ts):
    return pa.table({"id": ids, "ts": pa.array([ts] * len(ids), pa.int64())})


def rows_of(table, **asked):
    return sorted((row["id"], row["ts"]) for row in table.scan(**asked).to_arrow().to_pylist())


def test_each_snapshot_of_a_table_on_disk_has_its_own_dead_rows(tmp_path):
    first = batch(["a", "b", "c"], 1)
    table = hoodie.create_table(tmp_path, first.schema, record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.insert(first)
    states = {}
    for ids, ts in ((["a"], 2), (["b"], 3), (["a", "c"], 4)):
        result = table.upsert(batch(ids, ts))
        states[result.instant] = rows_of(table)
    assert list(states.values()) == [
        [("a", 2), ("b", 1), ("c", 1)],
        [("a", 2), ("b", 3), ("c", 1)],
        [("a", 4), ("b", 3), ("c", 4)],
    ]
    for instant, rows in states.items():
        assert rows_of(table, as_of=instant) == rows
