"""Every operation by us and by Apache Hudi, in turns on one table: after each, all readers see the rows that a list says."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import META_COLUMNS
from integration.hudi_client import PeerError
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.rows import rows_of, without

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("val", pa.int64()), ("ts", pa.int64())])
OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"
STATIC = "hoodie.static.overwrite.partition.paths"
POLICY = "hoodie.datasource.insert.dup.policy"
DROP = "hoodie.datasource.write.insert.drop.duplicates"


KEPT = {"hoodie.clean.automatic": "false"}
"""Views of all moments are compared."""


class R(NamedTuple):
    id: str
    part: str
    val: int
    ts: int


FIRST = [R("k1", "a", 1, 10), R("k2", "a", 1, 10), R("k3", "b/x", 1, 10), R("k4", "b/y", 1, 10), R("k5", "c", 1, 10)]


def arrow(rows: Iterable[R], *, deleted: Iterable[bool] | None = None) -> pa.Table:
    table = pa.Table.from_pylist([row._asdict() for row in rows], schema=SCHEMA)
    return table if deleted is None else table.append_column("_hoodie_is_deleted", pa.array(list(deleted)))


class Both:
    """One table that two writers write, and the rows that must be in it."""

    def __init__(self, hudi, path: Path, table_type: str) -> None:
        self.hudi, self.path = hudi, path
        self.options = {
            "hoodie.table.name": path.name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": table_type,
            **KEPT,
        }
        self.table = hoodie.create_table(
            path, SCHEMA, record_key="id", partition_by="part", ordering="ts", table_type=table_type, options=KEPT
        )

    def we(self, operation: str, rows: Iterable[R] = (), options: Mapping[str, str] | None = None) -> None:
        self.table.write(arrow(rows), WriteOperation(operation.upper()), options)

    def they(self, operation: str, rows: Iterable[R] = (), options: Mapping[str, str] | None = None) -> None:
        self.hudi.write(self.path, arrow(rows), self.options | {OPERATION: operation} | dict(options or {}))

    def check(self, *expected: R, views: bool = False) -> None:
        mine = ours(self.path, View())
        assert sorted(map(repr, without(mine, *META_COLUMNS))) == sorted(map(repr, rows_of(arrow(expected))))
        assert by_hudi(self.hudi)(self.path, View()) == mine
        assert by_rust(self.path, View()) == mine
        if views:
            assert differences(self.path, ours, by_hudi(self.hudi)) == []


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def both(request, hudi, tmp_path):
    return Both(hudi, tmp_path / "t", request.param)


def test_overwrites_and_deleted_partitions_in_turns(both):
    both.we("upsert", FIRST)
    both.we("upsert", [R("k1", "a", 2, 20), R("k4", "b/y", 2, 20)])
    both.we("insert_overwrite", [R("k1", "a", 3, 5), R("k6", "d", 1, 1)])
    both.check(
        R("k1", "a", 3, 5), R("k3", "b/x", 1, 10), R("k4", "b/y", 2, 20), R("k5", "c", 1, 10), R("k6", "d", 1, 1)
    )
    both.they("upsert", [R("k1", "a", 4, 30), R("k2", "a", 4, 1), R("k3", "b/x", 4, 30)])
    both.they("insert_overwrite", [R("k4", "b/y", 5, 1)])
    both.we("upsert", [R("k1", "a", 5, 40), R("k4", "b/y", 6, 2)])
    left = [R("k1", "a", 5, 40), R("k2", "a", 4, 1), R("k4", "b/y", 6, 2), R("k5", "c", 1, 10), R("k6", "d", 1, 1)]
    both.check(*left, R("k3", "b/x", 4, 30))
    assert both.table.delete_partitions(["b/x", "nowhere"]).replaced == 1
    both.check(*left)
    both.they("delete_partition", options={PARTITIONS: "b/*,d"})
    left = [R("k1", "a", 5, 40), R("k2", "a", 4, 1), R("k5", "c", 1, 10)]
    both.check(*left)
    both.we("upsert", [R("k4", "b/y", 7, 0)])  # the old row's ordering value went with its partition
    both.they("upsert", [R("k4", "b/y", 8, 1), R("k3", "b/x", 8, 1)])
    both.check(*left, R("k4", "b/y", 8, 1), R("k3", "b/x", 8, 1))
    both.we("insert_overwrite_table", [R("k9", "b/y", 1, 1)])
    both.they("upsert", [R("k9", "b/y", 2, 2), R("k8", "a", 1, 1)])
    both.check(R("k9", "b/y", 2, 2), R("k8", "a", 1, 1))
    both.they("insert_overwrite_table", [R("k7", "a", 1, 1)])
    both.we("upsert", [R("k7", "a", 2, 2)])
    both.check(R("k7", "a", 2, 2), views=True)


def test_an_emptied_table_is_empty_for_all_and_filled_again(both):
    both.we("upsert", FIRST)
    both.table.insert_overwrite_table(arrow([]))
    both.check()
    both.they("upsert", FIRST[:2])
    both.they("insert_overwrite_table")
    both.we("insert", FIRST[1:])
    both.check(*FIRST[1:], views=True)


def test_static_partitions_and_empty_batches_do_what_they_do_for_hudi(hudi, tmp_path):
    tables = []
    for name in ("by-us", "by-hudi"):
        both = Both(hudi, tmp_path / name, "COPY_ON_WRITE")
        both.we("upsert", FIRST)
        write = both.we if name == "by-us" else both.they
        write("insert_overwrite")
        both.check(*FIRST)
        write("insert_overwrite", [R("n1", "d", 1, 1)], {STATIC: "a,b/y,nowhere"})
        both.check(R("k3", "b/x", 1, 10), R("k5", "c", 1, 10), R("n1", "d", 1, 1))
        write("insert_overwrite", [], {STATIC: "c"})
        both.check(R("k3", "b/x", 1, 10), R("n1", "d", 1, 1))
        write("delete_partition", [R("whatever", "d", 0, 0)])
        both.check(R("k3", "b/x", 1, 10))
        tables.append(both)


def test_hudi_runs_the_compaction_of_groups_that_we_replaced(hudi, tmp_path):
    both = Both(hudi, tmp_path / "t", "MERGE_ON_READ")
    both.we("upsert", FIRST)
    both.we("upsert", [row._replace(val=2, ts=20) for row in FIRST])
    scheduled = both.table.schedule_compaction()
    both.we("insert_overwrite", [R("k1", "a", 3, 5)])
    assert both.table.delete_partitions(["b/y"]).replaced == 1
    left = [R("k1", "a", 3, 5), R("k3", "b/x", 2, 20), R("k5", "c", 2, 20)]
    both.check(*left)
    hudi.run_compaction(both.path, op="run")
    assert scheduled in both.table.timeline.compactions
    both.check(*left)
    both.they("upsert", [R("k1", "a", 4, 6), R("k4", "b/y", 4, 6)])
    both.we("upsert", [R("k1", "a", 5, 7)])
    both.check(R("k1", "a", 5, 7), R("k4", "b/y", 4, 6), *left[1:], views=True)


AGAIN = [R("k1", "a", 2, 20), R("k6", "a", 2, 20), R("k6", "a", 3, 10), R("k3", "z", 2, 2)]


@pytest.mark.parametrize(
    "options",
    [{}, {POLICY: "none"}, {POLICY: "drop"}, {DROP: "true"}, {"hoodie.combine.before.insert": "true"}],
    ids=lambda options: ",".join(f"{name.rpartition('.')[2]}={value}" for name, value in options.items()) or "none",
)
def test_an_insert_of_stored_keys_gives_the_rows_that_hudi_gets(hudi, tmp_path, both, options):
    theirs = Both(hudi, tmp_path / "theirs", both.table.config.table_type)
    for each in (both, theirs):
        each.we("upsert", FIRST)
    both.we("insert", AGAIN, options)
    theirs.they("insert", AGAIN, options)
    rows = [R(**row) for row in both.table.scan().to_arrow().to_pylist()]
    both.check(*rows)
    theirs.check(*rows)


def test_an_insert_that_fails_on_stored_keys_fails_for_both(both):
    both.we("upsert", FIRST)
    with pytest.raises(hoodie.DuplicateKeyError):
        both.we("insert", AGAIN, {POLICY: "fail"})
    with pytest.raises(PeerError, match="Duplicate key found for insert statement, key is: k1"):
        both.they("insert", AGAIN, {POLICY: "fail"})
    both.check(*FIRST)


def test_a_key_that_is_stored_twice_is_changed_once_by_both(hudi, tmp_path, both):
    theirs = Both(hudi, tmp_path / "theirs", both.table.config.table_type)
    for each in (both, theirs):
        each.we("insert", [R("k1", "a", 1, 10), R("k2", "a", 1, 10), R("k1", "a", 2, 20)])
    both.we("upsert", [R("k1", "a", 9, 99)])
    theirs.they("upsert", [R("k1", "a", 9, 99)])
    for each in (both, theirs):
        each.check(R("k1", "a", 9, 99), R("k2", "a", 1, 10), R("k1", "a", 2, 20))


@pytest.mark.parametrize("operation", ["insert", "insert_overwrite", "upsert"])
def test_rows_marked_as_deleted_are_as_hudi_has_them(hudi, tmp_path, both, operation):
    theirs = Both(hudi, tmp_path / "theirs", both.table.config.table_type)
    rows = arrow([R("k1", "a", 2, 20), R("k6", "a", 2, 20), R("k7", "a", 2, 20)], deleted=[True, True, False])
    for each in (both, theirs):
        each.we("upsert", FIRST)
    both.table.write(rows, WriteOperation(operation.upper()))
    hudi.write(theirs.path, rows, theirs.options | {OPERATION: operation})
    kept = {"insert": FIRST, "insert_overwrite": FIRST[2:], "upsert": FIRST[1:]}[operation]
    for each in (both, theirs):
        found = [R(row["id"], row["part"], row["val"], row["ts"]) for row in each.table.scan().to_arrow().to_pylist()]
        assert sorted(found) == sorted([*kept, R("k7", "a", 2, 20)])
        assert by_hudi(hudi)(each.path, View()) == ours(each.path, View())


def test_partial_upserts_are_whole_rows_for_hudi(both):
    both.we("upsert", FIRST)
    both.they("upsert", [R("k2", "a", 2, 20)])
    some = arrow([R("k1", "a", 7, 0), R("k2", "a", 7, 0)]).drop_columns(["ts"])
    both.table.upsert(some, partial=True)
    # A new key without its ordering column would be null there, and Apache Hudi 1.2.0 cannot merge a null long.
    late = arrow([R("k1", "a", 0, 9), R("k2", "a", 0, 21), R("k8", "a", 0, 1)]).drop_columns(["val"])
    both.table.upsert(late, partial=True)
    rest = FIRST[2:]
    found = without(ours(both.path, View()), *META_COLUMNS)
    assert {row["id"]: (row["val"], row["ts"]) for row in found} == {
        "k1": (7, 10),
        "k2": (7, 21),
        "k8": (None, 1),
        **{row.id: (row.val, row.ts) for row in rest},
    }
    assert by_hudi(both.hudi)(both.path, View()) == ours(both.path, View())
    assert by_rust(both.path, View()) == ours(both.path, View())
    both.they("upsert", [R("k1", "a", 8, 30), R("k8", "a", 8, 30)])
    both.they("delete", [R("k2", "a", 0, 0)])
    both.check(R("k1", "a", 8, 30), R("k8", "a", 8, 30), *rest)


@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION"])
def test_a_sorted_bulk_insert_is_read_and_written_further(hudi, tmp_path, mode):
    both = Both(hudi, tmp_path / "t", "COPY_ON_WRITE")
    rows = [R(f"k{n * 7919 % 300:03}", "ab"[n % 2], n, 1) for n in range(300)]
    both.we("bulk_insert", rows, {"hoodie.bulkinsert.sort.mode": mode, "hoodie.parquet.max.file.size": "700"})
    both.they("upsert", [row._replace(val=-1, ts=2) for row in rows[:5]])
    both.check(*[row._replace(val=-1, ts=2) for row in rows[:5]], *rows[5:])
    assert len(both.table.files()) > 4
