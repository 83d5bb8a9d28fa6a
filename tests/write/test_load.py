"""Loads in one pass: what comes from many workers, in whatever order, is stored once, in few files, under one instant."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.errors import KeyFieldError
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.names import parse_base_file, parse_write_token
from hoodie.options.parse import parse_write_options
from hoodie.table import open_at
from tests.memory_tables import (
    SCHEMA,
    Input,
    Parts,
    batch,
    leftovers,
    new_table,
    opened,
    parts_of,
    plain,
    snapshot_of,
    stray_files,
)
from tests.placed import in_memory
from tests.small_files import SIZED

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def load(storage, clock, records, *, engine=None, schema=SCHEMA, operation="bulk_insert", tuning=SIZED, **options):
    table = open_at(storage, engine=LocalEngine(1), sleep=clock.sleep, tuning=tuning)
    request = parse_write_options({"hoodie.datasource.write.operation": operation, **options}, defaults={})
    return table.writer.write(
        records,
        schema,
        request.write.operation,
        request.write,
        engine=engine or Parts(),
        repeatable=True,
    )


load_worth_little = partial(load, tuning=replace(SIZED, worth_bytes=1))
"""Every share of a partition is worth a file."""


def rows(count, *, part=lambda n: "ab"[n % 2], first=0):
    return batch([Input(f"k{n:05}", part(n), n, 1) for n in range(first, first + count)])


def stored(storage, clock):
    return [row[:-1] for row in snapshot_of(opened(storage, clock))]


def expected(*tables):
    return sorted((row["id"], row["part"], row["val"], row["ts"]) for table in tables for row in table.to_pylist())


@KINDS
def test_few_rows_of_many_workers_become_one_file_a_partition(kind):
    storage, clock = new_table(table_type=kind)
    engine = Parts()
    given = [rows(10), rows(10, first=10), rows(10, first=20)]
    result = load(storage, clock, parts_of(*given), engine=engine)
    assert (result.inserted, result.files, result.engine) == (30, 2, "parts")
    assert engine.read_parts == 3
    assert stored(storage, clock) == expected(*given)
    assert leftovers(storage) == []


@KINDS
def test_workers_write_what_is_worth_a_file_and_no_row_is_staged(kind):
    storage, clock = new_table(table_type=kind)
    engine = Parts()
    given = [rows(300), rows(300, first=300)]
    result = load_worth_little(storage, clock, parts_of(*given), engine=engine)
    assert (result.inserted, result.files) == (600, 4)
    assert engine.labels == ["bulk_insert t: write new files 1/3"]
    assert stored(storage, clock) == expected(*given)
    assert [row["_hoodie_commit_time"] for row in meta(storage, clock)] == [result.instant] * 600
    assert leftovers(storage) == []
    assert stray_files(storage, opened(storage, clock)) == []


def meta(storage, clock):
    return opened(storage, clock).scan(meta_columns=True).to_arrow().to_pylist()


@pytest.mark.parametrize("worth", [1, 30_000])
def test_sequence_numbers_and_file_names_are_unique_and_rows_name_their_file(worth):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    given = [rows(900), rows(20, first=900), rows(900, first=920, part=lambda n: "c")]
    tuning = replace(SIZED, worth_bytes=worth)
    load(storage, clock, parts_of(*given), tuning=tuning, **{"hoodie.parquet.max.file.size": "8000"})
    found = meta(storage, clock)
    assert len({row["_hoodie_commit_seqno"] for row in found}) == len(found) == 1820
    names = {file_slice.base.name for file_slice in opened(storage, clock).files()}
    assert {row["_hoodie_file_name"] for row in found} == names
    assert len({parse_base_file(name).file_id for name in names}) == len(names) > 3
    assert all(parse_write_token(parse_base_file(name).write_token) for name in names)


def test_files_keep_to_the_size_that_is_asked_for():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    given = rows(4000, part=lambda n: "a")
    one = load_worth_little(storage, clock, parts_of(given)).files
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    share = given.nbytes // 3 // 4
    many = load_worth_little(storage, clock, parts_of(given), **{"hoodie.parquet.max.file.size": str(share)}).files
    assert one == 1
    assert 4 <= many <= 7
    assert stored(storage, clock) == expected(given)


def test_what_a_worker_holds_is_bounded_and_partitions_that_come_in_turns_share_files():
    tuning = replace(SIZED, held_bytes=20_000, worth_bytes=5_000, open_files=2, feed_bytes=4_000)
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    hot = rows(3000, part=lambda n: "hot" if n % 10 else f"cold{n % 70}")
    result = load(storage, clock, parts_of(hot), tuning=tuning)
    assert stored(storage, clock) == expected(hot)
    files = [file_slice.group.partition_path for file_slice in opened(storage, clock).files()]
    assert files.count("hot") <= 2
    assert result.files == len(files) <= 10


def test_more_partitions_than_files_may_be_open_lose_no_row():
    tuning = replace(SIZED, held_bytes=3_000, worth_bytes=100, open_files=2, feed_bytes=2_000)
    storage, clock = new_table(table_type="MERGE_ON_READ")
    given = rows(1000, part=lambda n: f"p{n % 9}")
    load(storage, clock, parts_of(given), tuning=tuning)
    assert stored(storage, clock) == expected(given)


def test_no_rows_leave_no_commit():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    result = load(storage, clock, [[], []])
    assert result.instant is None
    table = opened(storage, clock)
    assert not table.timeline.commits
    assert not table.timeline.pending()
    assert leftovers(storage) == []


def test_a_row_without_a_key_undoes_the_load():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    with pytest.raises(KeyFieldError, match="null or empty"):
        load_worth_little(storage, clock, parts_of(rows(100), batch([Input("", "a")])))
    table = opened(storage, clock)
    assert not table.timeline.commits
    assert not table.timeline.pending()
    assert stray_files(storage, table) == leftovers(storage) == []


def test_rows_that_are_marked_as_deleted_are_not_inserted():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    given = batch([Input("k1", "a", 1, 1), Input("k2", "a", 2, 2, deleted=True)])
    assert load_worth_little(storage, clock, parts_of(given)).inserted == 1
    assert [row[0] for row in stored(storage, clock)] == ["k1"]


@pytest.mark.parametrize("worth", [1, 1 << 40])
def test_generated_keys_are_unique_over_workers_and_pieces(worth):
    tuning = replace(SIZED, worth_bytes=worth, feed_bytes=1_000)
    storage, clock = new_table(table_type="COPY_ON_WRITE", more={"hoodie.datasource.write.recordkey.field": ""})
    result = load(storage, clock, parts_of(rows(300), rows(300)), tuning=tuning)
    keys = [row["_hoodie_record_key"] for row in meta(storage, clock)]
    assert len(set(keys)) == 600
    assert all(key.startswith(f"{result.instant}_") for key in keys)


# -- beside others ---------------------------------------------------------------------------------------------------


class Meanwhile(Parts):
    """Does something once, in the middle of the first reading."""

    def __init__(self, act):
        super().__init__()
        self._act = act

    def stage(self, records: Any, fn: Any, *, label: str) -> list[Any]:
        act, self._act = self._act, None

        def last() -> Iterator[pa.RecordBatch]:
            if act is not None:
                act()
            return iter(records[-1])

        return super().stage([*records[:-1], last], fn, label=label)


@KINDS
def test_a_write_into_the_same_partitions_meanwhile_is_no_conflict_for_a_load(kind):
    """It would have been none before the load either, and the load looks at nothing that is stored."""
    storage, clock = new_table(table_type=kind)
    other = batch([Input("k00003", "b", 7, 7), Input("x", "a", 7, 7)])
    engine = Meanwhile(lambda: opened(storage, clock).upsert(other))
    given = [rows(50), rows(50, first=50)]
    result = load_worth_little(storage, clock, parts_of(*given), engine=engine)
    assert engine.read_parts == 2
    assert stored(storage, clock) == sorted([*expected(*given), *expected(other)])
    upserted = next(i for i in opened(storage, clock).timeline.commits if i.time != result.instant)
    assert result.instant < upserted.time
    assert len(plain(opened(storage, clock).changes(meta_columns=True))) == 102


def test_an_upsert_that_a_load_overtakes_looks_again():
    """The other way round it is one: the upsert took keys for new that the load brings."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch([Input("old", "a", 0, 0)]))
    given = rows(20)

    class Overtaken(LocalEngine):
        loaded = False

        def run(self, fn: Any, tasks: Sequence[Any], *, label: str, at_once: int = 1) -> list[Any]:
            found = super().run(fn, tasks, label=label)
            if "write files" in label and not self.loaded:
                type(self).loaded = True
                load_worth_little(storage, clock, parts_of(given))
            return found

    table = open_at(storage, engine=Overtaken(1), sleep=clock.sleep)
    result = table.upsert(batch([Input("k00004", "a", 99, 99)]))
    assert (result.inserted, result.updated) == (0, 1)
    assert [row for row in stored(storage, clock) if row[0] == "k00004"] == [("k00004", "a", 99, 99)]


def test_a_compaction_can_be_planned_while_a_load_runs():
    """Its inflight file says that it touches no file group that is there."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(rows(10))
    opened(storage, clock).upsert(rows(4))
    done = []
    engine = Meanwhile(lambda: done.extend(opened(storage, clock).compact()))
    load_worth_little(storage, clock, parts_of(rows(5, first=100), rows(5, first=200)), engine=engine)
    assert [each.operation for each in done] == [WriteOperation.COMPACT]
    assert len(stored(storage, clock)) == 20
    assert clock.slept_s < 1


def test_after_a_change_of_columns_meanwhile_the_input_is_read_once_more_and_stored_once():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    wider = batch([Input("w", "a", 1, 1)]).append_column("more", pa.array(["x"]))
    engine = Meanwhile(lambda: opened(storage, clock).upsert(wider))
    narrow = SCHEMA.append(pa.field("other", pa.int64()))
    given = rows(20).append_column(narrow.field("other"), pa.array(np.arange(20)))
    nulls = {"hoodie.write.set.null.for.missing.columns": "true"}
    result = load_worth_little(
        storage, clock, parts_of(given, given.slice(0, 0)), engine=engine, schema=narrow, **nulls
    )
    assert result.inserted == 20
    assert engine.read_parts == 4
    table = opened(storage, clock)
    assert {"more", "other"} <= set(table.schema.names)
    assert len(stored(storage, clock)) == 21
    assert [i.action for i in table.timeline if i.action is Action.ROLLBACK and i.state is State.COMPLETED]


@in_memory("renames a folder")
def test_a_load_that_was_rolled_back_meanwhile_publishes_nothing_of_its_first_reading():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    seen = []

    def roll_back():
        pending = opened(storage, clock).timeline.pending()
        seen.extend(pending)
        storage.rename_folder(f".hoodie/.hoodie_py/staging/{pending[0].time}", ".hoodie/.hoodie_py/staging/gone")
        storage.delete_folder(".hoodie/.hoodie_py/staging/gone")

    given = [rows(20), rows(20, first=20)]
    engine = Meanwhile(roll_back)
    result = load_worth_little(storage, clock, parts_of(*given), engine=engine)
    assert result.instant != seen[0].time
    assert stored(storage, clock) == expected(*given)
    assert stray_files(storage, opened(storage, clock)) == leftovers(storage) == []


@pytest.mark.parametrize(
    ("operation", "options"),
    [
        ("bulk_insert", {"hoodie.combine.before.insert": "true"}),
        ("bulk_insert", {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"}),
        ("bulk_insert", {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}),
        ("bulk_insert", {"hoodie.datasource.insert.dup.policy": "drop"}),
        ("upsert", {}),
        ("insert_overwrite", {}),
    ],
)
def test_what_depends_on_other_rows_takes_the_usual_way(operation, options):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(rows(4))
    engine = Parts()
    load(storage, clock, parts_of(rows(4, first=10)), engine=engine, operation=operation, **options)
    assert "read the batch" in engine.labels[0]


def test_an_insert_goes_in_one_pass_only_where_no_small_file_could_take_its_rows():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    engine = Parts()
    load(storage, clock, parts_of(rows(4)), engine=engine, operation="insert")
    load(storage, clock, parts_of(rows(4, first=4)), engine=engine, operation="insert")
    assert engine.labels == [
        "insert t: write new files 1/3",
        "insert t: read the batch 1/3",
    ]
    assert len(opened(storage, clock).files()) == 2
    assert stored(storage, clock) == expected(rows(8))
