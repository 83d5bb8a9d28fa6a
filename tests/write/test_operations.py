"""What each operation leaves in the table, on both table types."""

import json
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoodie
from hoodie.errors import DuplicateKeyError, OptionError, SchemaError
from hoodie.format.plan_avro import REPLACE_PLAN, decode_plan
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.names import HOODIE, format_instant_file, join
from hoodie.model.tuning import TUNING
from tests.effort import long_but
from tests.golden_tables import FOLDER
from tests.memory_tables import Input, batch, create, leftovers, new_storage, new_table, opened, plain, stray_files
from tests.small_files import SIZED

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
FIRST = [Input("k1", "a", 1, 10), Input("k2", "a", 1, 10), Input("k3", "b/x", 1, 10), Input("k4", "b/y", 1, 10)]
NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}


def table_of(kind, rows=FIRST, **more):
    storage, clock = new_table(table_type=kind, **more)
    table = opened(storage, clock)
    if rows:
        table.upsert(batch(rows))
    return storage, table


def rows_of(table, **scan):
    return [row[:-1] for row in plain(table.scan(meta_columns=True, **scan))]


def clean(storage, table):
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []
    assert not [i for i in table.timeline.pending() if i.action is not Action.COMPACTION]


# -- overwrites ------------------------------------------------------------------------------------------------------


@KINDS
def test_insert_overwrite_replaces_the_partitions_of_its_rows_and_no_others(kind):
    storage, table = table_of(kind)
    first = table.timeline.latest_commit.time
    table.upsert(batch([Input("k1", "a", 2, 20), Input("k4", "b/y", 2, 20)]))
    before = rows_of(table)
    second = table.timeline.latest_commit.time
    result = table.insert_overwrite(batch([Input("k1", "a", 3, 5), Input("k9", "c", 1, 1)]))
    assert (result.inserted, result.replaced, result.files) == (2, 1, 2)
    after = [("k1", "a", 3, 5), ("k3", "b/x", 1, 10), ("k4", "b/y", 2, 20), ("k9", "c", 1, 1)]
    assert rows_of(table) == after == rows_of(table, query="read_optimized" if kind[0] == "C" else "snapshot")
    assert rows_of(table, as_of=second) == before
    assert [row[:-1] for row in plain(table.changes(since=second, meta_columns=True))] == [after[0], after[3]]
    assert [row[0] for row in plain(table.changes(since=first, meta_columns=True))] == ["k1", "k4", "k9"]
    assert table.history()[-1].replaced == 1
    clean(storage, table)


@KINDS
def test_an_overwrite_is_a_replacecommit_as_apache_hudi_writes_it(kind):
    storage, table = table_of(kind)
    groups = {p: [s.group.file_id for s in table.files() if s.group.partition_path == p] for p in ("a", "b/x")}
    written = table.insert_overwrite(batch([Input("k1", "a", 3, 5)])).instant
    deleted = table.delete_partitions(["b/x"]).instant
    golden = FOLDER / "v6_replace" / "table" / ".hoodie"
    for instant, model in ((written, "20261121075735186"), (deleted, "20261121075802076")):
        ours = storage.read(join(HOODIE, format_instant_file(instant, Action.REPLACECOMMIT, State.REQUESTED)))
        theirs = (golden / f"{model}.replacecommit.requested").read_bytes()
        assert decode_plan(REPLACE_PLAN, ours, path="ours") == decode_plan(REPLACE_PLAN, theirs, path="theirs")
        assert ours.split(b"}\x00")[1][16:-16] == theirs.split(b"}\x00")[1][16:-16]  # the record, between the markers
        said = json.loads(
            storage.read(join(HOODIE, format_instant_file(instant, Action.REPLACECOMMIT, State.COMPLETED)))
        )
        theirs = json.loads((golden / f"{model}.replacecommit").read_bytes())
        assert set(said) == set(theirs)
        assert said["operationType"] == theirs["operationType"]
        partition = "a" if instant == written else "b/x"
        assert said["partitionToReplaceFileIds"] == {partition: groups[partition]}
        assert list(said["partitionToWriteStats"]) == (["a"] if instant == written else [])


@KINDS
def test_insert_overwrite_table_replaces_everything_and_without_rows_it_empties(kind):
    storage, table = table_of(kind)
    assert table.insert_overwrite_table(batch([Input("n", "a", 1, 1), Input("m", "z", 1, 1)])).replaced == 3
    assert rows_of(table) == [("m", "z", 1, 1), ("n", "a", 1, 1)]
    assert table.insert_overwrite_table(batch([])).replaced == 2
    assert rows_of(table) == []
    assert plain(table.changes(meta_columns=True)) == []
    assert table.insert_overwrite_table(batch([])).instant is None
    assert table.upsert(batch([Input("n", "a", 2, 0)])).inserted == 1
    assert rows_of(table) == [("n", "a", 2, 0)]
    clean(storage, table)


@KINDS
def test_an_insert_overwrite_without_rows_changes_nothing_unless_it_names_partitions(kind):
    _, table = table_of(kind)
    assert table.insert_overwrite(batch([])).instant is None
    static = {"hoodie.static.overwrite.partition.paths": "b/x,nowhere"}
    assert table.insert_overwrite(batch([]), static).replaced == 1
    assert table.insert_overwrite(batch([Input("n", "c", 1, 1)]), {**static}).replaced == 0
    assert [row[0] for row in rows_of(table)] == ["k1", "k2", "k4", "n"]


@KINDS
def test_an_overwrite_keeps_several_rows_of_a_key_unless_told_to_combine_them(kind):
    """As Apache Hudi: hoodie.combine.before.insert is false."""
    _, table = table_of(kind, [])
    rows = [Input("k", "a", 1, 20), Input("k", "a", 2, 10)]
    table.insert_overwrite(batch(rows))
    assert [row[2] for row in rows_of(table)] == [1, 2]
    table.insert_overwrite(batch(rows), {"hoodie.combine.before.insert": "true"})
    assert [row[2] for row in rows_of(table)] == [1]


@KINDS
def test_partitions_are_deleted_by_path_and_by_pattern(kind):
    storage, table = table_of(kind)
    result = table.delete_partitions(["b/*", "nowhere"])
    assert (result.operation, result.replaced, result.files) == (WriteOperation.DELETE_PARTITION, 2, 0)
    assert [row[1] for row in rows_of(table)] == ["a", "a"]
    assert table.delete_partitions(["b/*"]).instant is None
    assert table.upsert(batch([Input("k3", "b/x", 5, 1)])).inserted == 1  # the old row's ordering value is gone with it
    assert rows_of(table)[2] == ("k3", "b/x", 5, 1)
    clean(storage, table)


@KINDS
def test_partitions_are_deleted_by_the_rows_that_are_in_them(kind):
    _, table = table_of(kind)
    rows = pa.table({"id": ["whatever", "k4", "k"], "part": ["b/x", "b/x", "nowhere"]})
    assert table.write(rows, WriteOperation.DELETE_PARTITION).replaced == 1
    assert [row[0] for row in rows_of(table)] == ["k1", "k2", "k4"]
    named = {"hoodie.datasource.write.partitions.to.delete": "a"}
    assert table.write(rows, WriteOperation.DELETE_PARTITION, named).replaced == 1
    assert [row[0] for row in rows_of(table)] == ["k4"]


def test_a_text_is_no_list_of_partitions_and_an_empty_table_has_none():
    _, table = table_of("COPY_ON_WRITE")
    with pytest.raises(OptionError, match=r"give \['b/x'\]"):
        table.delete_partitions("b/x")
    storage = new_storage(lambda: 0.0)
    create(storage, table_type="COPY_ON_WRITE")
    assert opened(storage).delete_partitions(["a"]).instant is None


@KINDS
def test_partitions_are_those_that_have_rows_also_before_a_clean(kind):
    _, table = table_of(kind)
    table.delete_partitions(["b/y"])
    assert table.partitions() == ("a", "b/x")
    table.upsert(batch([Input("k4", "b/y", 3, 30)]))
    assert table.partitions() == ("a", "b/x", "b/y")
    assert table_of(kind, rows=())[1].partitions() == ()


def test_a_pending_compaction_of_a_replaced_group_can_still_be_run():
    storage, table = table_of("MERGE_ON_READ")
    table.upsert(batch([Input("k1", "a", 2, 20), Input("k4", "b/y", 2, 20)]))
    before = rows_of(table)
    scheduled = table.schedule_compaction()
    table.insert_overwrite(batch([Input("k1", "a", 3, 5)]))
    table.delete_partitions(["b/y"])
    expected = [("k1", "a", 3, 5), ("k3", "b/x", 1, 10)]
    assert rows_of(table) == expected
    table.upsert(batch([Input("k1", "a", 4, 6)]))
    assert [result.instant for result in table.run_compaction()] == [scheduled]
    expected[0] = ("k1", "a", 4, 6)
    assert rows_of(table) == expected
    assert rows_of(table, as_of=scheduled) == before
    table.compact()
    assert rows_of(table) == expected == rows_of(table, query="read_optimized")
    clean(storage, table)


@KINDS
def test_rows_marked_as_deleted_are_not_written_by_inserts_and_overwrites(kind):
    """As Apache Hudi, but for its bulk_insert, which stores such rows."""
    rows = [Input("k1", "a", 2, 20, True), Input("k6", "a", 2, 20, True), Input("k8", "a", 2, 20)]
    for operation in (WriteOperation.INSERT, WriteOperation.BULK_INSERT):
        _, table = table_of(kind)
        table.write(batch(rows), operation)
        assert [row[0] for row in rows_of(table)] == ["k1", "k2", "k3", "k4", "k8"]
        assert rows_of(table)[0] == ("k1", "a", 1, 10)
    for operation in (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE):
        _, table = table_of(kind)
        table.write(batch(rows), operation)
        kept = ["k3", "k4"] if operation is WriteOperation.INSERT_OVERWRITE else []
        assert [row[0] for row in rows_of(table)] == [*kept, "k8"]
    _, table = table_of(kind)
    assert table.upsert(batch(rows)).inserted == 1
    assert [row[0] for row in rows_of(table)] == ["k2", "k3", "k4", "k8"]
    only = [Input("k2", "a", 0, 0, True), Input("nobody", "b/x", 0, 0, True)]
    assert table.insert_overwrite(batch(only)).replaced == 2
    assert [row[0] for row in rows_of(table)] == ["k4"]


@KINDS
def test_deletes_may_come_in_several_chunks_and_of_keys_that_are_not_there(kind):
    _, table = table_of(kind)
    several = pa.RecordBatchReader.from_batches(
        batch([]).select(["id", "part"]).schema,
        [b for rows in ([FIRST[0], Input("no", "a")], [FIRST[3]], [Input("x", "zz")]) for b in
         batch(rows).select(["id", "part"]).to_batches()],
    )  # fmt: skip
    table.delete(several)
    assert [row[0] for row in rows_of(table)] == ["k2", "k3"]
    assert table.delete(batch([Input("no", "a")]).select(["id", "part"])).deleted == 0
    assert [row[0] for row in rows_of(table)] == ["k2", "k3"]


# -- duplicates --------------------------------------------------------------------------------------------------------

AGAIN = [Input("k1", "a", 2, 20), Input("k5", "a", 2, 20), Input("k5", "a", 3, 10), Input("k3", "c", 2, 2)]
DROP, POLICY = "hoodie.datasource.write.insert.drop.duplicates", "hoodie.datasource.insert.dup.policy"
OPERATION = "hoodie.datasource.write.operation"


def of_a(table):
    return [(row[0], row[2]) for row in rows_of(table) if row[1] == "a"]


@KINDS
@pytest.mark.parametrize("packing", long_but([{}], [{}, NO_PACKING]), ids=["small file", "new file"])
@pytest.mark.parametrize("operation", [WriteOperation.INSERT, WriteOperation.BULK_INSERT])
def test_what_an_insert_does_with_stored_keys_is_an_option(kind, packing, operation):
    """The rows that Apache Hudi 1.2.0 has after the same insert."""

    def after(options):
        _, table = table_of(kind)
        table.write(batch(AGAIN), operation, options | packing)
        assert [row for row in rows_of(table) if row[0] == "k3"] == [("k3", "b/x", 1, 10), ("k3", "c", 2, 2)]
        return of_a(table)

    assert after({}) == after({POLICY: "none"}) == [("k1", 1), ("k1", 2), ("k2", 1), ("k5", 2), ("k5", 3)]
    assert after({"hoodie.combine.before.insert": "true"}) == [("k1", 1), ("k1", 2), ("k2", 1), ("k5", 2)]
    assert after({POLICY: "drop"}) == [("k1", 1), ("k2", 1), ("k5", 2), ("k5", 3)]
    assert after({DROP: "true"}) == [("k1", 1), ("k2", 1), ("k5", 2)]


@KINDS
def test_an_insert_can_fail_on_a_stored_key(kind):
    storage, table = table_of(kind)
    with pytest.raises(DuplicateKeyError, match=r"1 rows .*'k1' in partition 'a'; nothing was written"):
        table.insert(batch(AGAIN), {POLICY: "fail"})
    assert len(table.timeline.commits) == 1
    clean(storage, table)
    table.insert(batch(AGAIN[1:]), {POLICY: "fail"})
    assert of_a(table) == [("k1", 1), ("k2", 1), ("k5", 2), ("k5", 3)]


@KINDS
def test_an_insert_that_drops_all_its_rows_writes_no_file(kind):
    _, table = table_of(kind)
    result = table.insert(batch(FIRST), {DROP: "true"})
    assert (result.inserted, result.files) == (0, 0)
    assert len(rows_of(table)) == 4


def test_an_insert_into_a_small_file_may_replace_the_rows_there():
    _, table = table_of("COPY_ON_WRITE")
    result = table.insert(batch(AGAIN), {"hoodie.merge.allow.duplicate.on.inserts": "false"})
    assert of_a(table) == [("k1", 2), ("k2", 1), ("k5", 2)]
    assert (result.inserted, result.updated) == (2, 1)


@KINDS
def test_a_key_that_is_stored_twice_in_a_file_is_changed_once(kind):
    """As Apache Hudi 1.2.0 does it: one of its rows. Which one a later delete takes depends on their order in the file."""
    _, table = table_of(kind)
    table.insert(batch([Input("k1", "a", 2, 20)]), {} if kind[0] == "C" else {"hoodie.parquet.small.file.limit": "0"})
    if kind[0] == "M":  # small files take few rows there: both rows come into one file by a batch with both
        table.insert_overwrite(batch([Input("k1", "a", 1, 10), Input("k2", "a", 1, 10), Input("k1", "a", 2, 20)]))
    table.upsert(batch([Input("k1", "a", 9, 99)]))
    assert of_a(table) == [("k1", 2), ("k1", 9), ("k2", 1)]
    table.delete(batch([Input("k1", "a")]).select(["id", "part"]))
    left = of_a(table)
    assert left in ([("k1", 2), ("k2", 1)], [("k1", 9), ("k2", 1)])
    if kind[0] == "M":
        table.compact()
        assert of_a(table) == left == [("k1", 2), ("k2", 1)]


# -- partial upserts -----------------------------------------------------------------------------------------------------


def some(*names, rows):
    return batch(rows).select(["id", "part", *names])


@KINDS
def test_a_partial_upsert_changes_only_the_columns_that_it_has(kind):
    storage, table = table_of(kind)
    changed = some("val", rows=[Input("k1", "a", 7), Input("new", "a", 8)])
    result = table.upsert(changed, partial=True)
    assert (result.inserted, result.updated) == (1, 1)
    assert rows_of(table)[0] == ("k1", "a", 7, 10)
    assert rows_of(table)[-1] == ("new", "a", 8, None)
    late = some("ts", rows=[Input("k1", "a", ts=9), Input("k2", "a", ts=11)])
    table.upsert(late, {"hoodie.python.upsert.partial": "true"})
    assert rows_of(table)[:2] == [("k1", "a", 7, 10), ("k2", "a", 1, 11)]  # the late row lost against the stored one
    clean(storage, table)


@KINDS
def test_a_partial_upsert_of_rows_in_logs_sees_what_the_logs_say(kind):
    _, table = table_of(kind)
    table.upsert(batch([Input("k1", "a", 2, 20)]))
    table.delete(batch([Input("k2", "a")]).select(["id", "part"]))
    table.upsert(some("val", rows=[Input("k1", "a", 3), Input("k1", "a", 4)]), partial=True)
    table.upsert(some("ts", rows=[Input("k1", "a", ts=21), Input("k2", "a", ts=40)]), partial=True)
    assert rows_of(table)[:2] == [("k1", "a", 4, 21), ("k2", "a", None, 40)]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_partial_upsert_takes_new_columns_and_refuses_new_rows_without_what_must_not_be_null(kind, tmp_path):
    schema = pa.schema([pa.field("id", pa.string(), False), pa.field("must", pa.int64(), False), ("may", pa.int64())])
    table = hoodie.create_table(tmp_path, schema, record_key="id", table_type=kind)
    table.upsert(pa.table({"id": ["a", "b"], "must": [1, 2], "may": [3, 4]}, schema=schema))
    table.upsert(pa.table({"id": ["a"], "more": ["x"]}), partial=True)
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": "a", "must": 1, "may": 3, "more": "x"},
        {"id": "b", "must": 2, "may": 4, "more": None},
    ]
    with pytest.raises(
        SchemaError, match=r"'must' .* is not nullable and not in the batch, which has 1 rows with new keys"
    ):
        table.upsert(pa.table({"id": ["a", "c"], "may": [5, 5]}), partial=True)
    assert len(table.scan().to_arrow()) == 2
    table.upsert(pa.table({"id": ["a"], "must": [9]}), partial=True)
    assert table.scan(where="id = 'a'").to_arrow().to_pylist() == [{"id": "a", "must": 9, "may": 3, "more": "x"}]


PARTIALS = st.lists(
    st.tuples(
        st.sampled_from([("val",), ("ts",), ("val", "ts"), ()]),
        st.lists(
            st.builds(Input, st.sampled_from("xyz"), st.just("a"), st.integers(0, 9), st.integers(0, 4)), min_size=1
        ),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(writes=PARTIALS)
def test_partial_upserts_come_to_the_same_on_both_table_types_and_as_a_dict_says(writes):
    tables = [table_of(kind, [])[1] for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
    model = {}
    for names, rows in writes:
        newest = {}
        for row in rows:
            kept = newest.get(row.id)
            if kept is None or "ts" not in names or row.ts >= kept.ts:
                newest[row.id] = row
        for key, row in newest.items():
            old = model.get(key, {"val": None, "ts": None})
            if "ts" in names and row.ts < (old["ts"] or 0):
                continue
            model[key] = {name: getattr(row, name) if name in names else old[name] for name in old}
        for table in tables:
            table.upsert(some(*names, rows=rows), partial=True)
    expected = [(key, "a", row["val"], row["ts"]) for key, row in sorted(model.items())]
    assert [rows_of(table) for table in tables] == [expected, expected]


# -- order of a bulk_insert ----------------------------------------------------------------------------------------------

SORT = "hoodie.bulkinsert.sort.mode"


MANY = [Input(f"k{(n * 7919) % 400:04}", "ab"[n % 2], n, n) for n in range(400)]
SMALL_FILES = {"hoodie.parquet.max.file.size": "700"}
"""So that a partition has several."""


def files_of(table):
    """By partition: the keys of each file, in their order in the file."""
    found = {}
    names = ["_hoodie_partition_path", "_hoodie_file_name", "_hoodie_record_key"]
    for partition, file, key in zip(*table.scan(names).to_arrow().to_pydict().values(), strict=True):
        found.setdefault(partition, {}).setdefault(file, []).append(key)
    return {partition: list(files.values()) for partition, files in found.items()}


@KINDS
@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION_AND_SORT"])
def test_bulk_insert_orders_its_files_as_the_sort_mode_says(kind, mode):
    _, table = table_of(kind, [])
    table.bulk_insert(batch(MANY), {SORT: mode} | SMALL_FILES)
    found = files_of(table)
    assert sorted(key for files in found.values() for keys in files for key in keys) == sorted(row.id for row in MANY)
    assert all(len(files) > 2 for files in found.values())
    is_sorted = all(keys == sorted(keys) for files in found.values() for keys in files)
    ranges = {p: sorted((min(keys), max(keys)) for keys in files) for p, files in found.items()}
    disjoint = all(one[1] < two[0] for spans in ranges.values() for one, two in pairwise(spans))
    assert is_sorted == (mode in ("GLOBAL_SORT", "PARTITION_SORT"))
    assert disjoint == (mode == "GLOBAL_SORT")


def test_ranges_hold_over_several_chunks():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock, tuning=replace(SIZED, chunk_bytes=2000))
    several = pa.Table.from_batches([b for n in range(0, 400, 50) for b in batch(MANY[n : n + 50]).to_batches()])
    table.bulk_insert(several, {SORT: "GLOBAL_SORT"} | SMALL_FILES)
    for files in files_of(table).values():
        assert len(files) > 2
        assert sorted(key for keys in files for key in keys) == [key for keys in sorted(files) for key in keys]
    assert len(rows_of(table)) == 400


def test_an_overwrite_is_sorted_too_and_rows_that_are_to_be_combined_meet():
    _, table = table_of("COPY_ON_WRITE", FIRST)
    twice = [*MANY, *(row._replace(val=-row.val, ts=row.ts + 1000) for row in MANY)]
    options = {SORT: "GLOBAL_SORT", "hoodie.combine.before.insert": "true"} | SMALL_FILES
    table.insert_overwrite_table(batch(twice), options)
    assert all(keys == sorted(keys) for files in files_of(table).values() for keys in files)
    assert len(rows_of(table)) == 400
    assert all(row[2] <= 0 for row in rows_of(table))


def test_a_few_new_rows_go_into_a_file_that_is_cheap_to_rewrite() -> None:
    storage, clock = new_table(table_type="MERGE_ON_READ")
    for start in range(0, 1_000, 250):
        opened(storage, clock, tuning=TUNING).insert(batch(Input(f"k{n}", "a") for n in range(start, start + 250)))
        clock.sleep(1)
    for n in range(3):
        opened(storage, clock, tuning=TUNING).insert(batch([Input(f"late{n}", "a")]))
        clock.sleep(1)
    assert len({each.group for each in opened(storage, clock).files()}) == 1
    opened(storage, clock, tuning=SIZED).insert(batch([Input("apart", "a")]))
    assert len({each.group for each in opened(storage, clock).files()}) == 2


@KINDS
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
@pytest.mark.parametrize("as_given", [pa.concat_tables, lambda tables: [b for t in tables for b in t.to_batches()]])
def test_empty_batches_of_the_input_hide_no_rows(kind, operation, as_given):
    _storage, table = table_of(kind, rows=())
    rows = batch(FIRST)
    parts = [rows.slice(0, 0), rows.slice(0, 1), rows.slice(0, 0), rows.slice(1), rows.slice(0, 0)]
    getattr(table, operation)(as_given(parts))
    assert table.scan().count() == len(FIRST)
