"""Tables with the bucket index: where rows go, what options may say, and tables whose files alone show the layout."""

import json
import re
from collections import Counter

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.hashes.of_buckets import bucket_numbers
from hoodie.model.buckets import BucketLayout
from hoodie.model.enums import WriteOperation
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.options.parse import parse_write_options
from hoodie.table import open_at
from tests.engines import Meanwhile
from tests.golden_tables import copy_golden
from tests.memory_tables import Input, batch, copy_of, keys, leftovers, new_table, opened, snapshot_of, stray_files
from tests.placed import in_memory
from tests.rows import without

BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


def rows(ids, part="a", *, val=0, ts=1, deleted=None):
    return [Input(f"k{n}", part, val, ts, deleted) for n in ids]


def values(table):
    """{(id, part): val}; a key that stands twice fails."""
    found = snapshot_of(table)
    assert len({row[:2] for row in found}) == len(found), "a key is there twice"
    return {row[:2]: row[2] for row in found}


def bucket_of(key, count=4):
    return int(bucket_numbers(pa.array([key]), ("id",), count)[0])


def check_layout(table, count=4):
    """One file group a bucket and partition, and every key in its own."""
    groups = [(file_slice.group.partition_path, int(file_slice.group.file_id[:8])) for file_slice in table.files()]
    assert max(Counter(groups).values()) == 1
    assert all(number < count for _, number in groups)
    for row in table.scan(meta_columns=True).to_arrow().to_pylist():
        assert int(row["_hoodie_file_name"][:8]) == bucket_of(row["_hoodie_record_key"], count)


def forget(storage):
    """Leave the properties as Apache Hudi does, which says nothing there of buckets."""
    kept = [line for line in storage.read(PROPERTIES).decode().splitlines() if "hoodie.python.bucket" not in line]
    storage.replace(PROPERTIES, "\n".join([*kept, ""]).encode())


@KINDS
def test_every_operation_keeps_one_file_group_for_each_bucket(kind):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    table = opened(storage, clock)
    assert table.config.buckets == BucketLayout(4, ("id",))
    table.upsert(batch(rows(range(20)) + rows(range(5), "b/c")))
    assert len(table.files()) == len(
        {("a", bucket_of(f"k{n}")) for n in range(20)} | {("b/c", bucket_of(f"k{n}")) for n in range(5)}
    )
    table.insert(batch(rows(range(15, 25), val=1)))
    table.bulk_insert(batch(rows(range(20, 30), val=2)))
    table.delete(keys(rows([0, 22, 999])))
    expected = {(f"k{n}", "a"): 0 if n < 15 else 1 if n < 20 else 2 for n in range(30) if n not in (0, 22)}
    expected |= {(f"k{n}", "b/c"): 0 for n in range(5)}
    assert values(table) == expected
    check_layout(table)
    assert leftovers(storage) == []
    assert stray_files(storage, table) == []


def test_on_merge_on_read_new_keys_of_a_bucket_go_to_its_log():
    storage, clock = new_table(table_type=MOR, more=BUCKET)
    table = opened(storage, clock)
    first = table.upsert(batch(rows(range(20))))
    bases = [file_slice.base for file_slice in table.files()]
    second = table.upsert(batch(rows(range(10, 40), val=1)))
    assert (first.inserted, first.index) == (20, {"bucket": 4})
    assert (second.inserted, second.updated) == (0, 30)
    assert [file_slice.base for file_slice in table.files()] == bases
    assert all(len(file_slice.logs) == 1 for file_slice in table.files())
    assert len(values(table)) == 40


def test_merge_on_read_deletes_are_written_unseen_where_the_bucket_is_there():
    storage, clock = new_table(table_type=MOR, more=BUCKET)
    table = opened(storage, clock)
    table.upsert(batch(rows(range(20))))
    assert table.delete(keys(rows([3, 777]))).deleted == 2
    result = table.delete(keys(rows([3, 777], "nowhere")))
    assert (result.deleted, result.files) == (0, 0)
    assert "nowhere" not in table.partitions()
    assert len(values(table)) == 19


@KINDS
def test_rows_of_one_key_in_a_batch_become_one_in_every_operation(kind):
    for operation in ("upsert", "insert", "bulk_insert"):
        storage, clock = new_table(table_type=kind, more=BUCKET)
        table = opened(storage, clock)
        for ts in (1, 3):  # into a new bucket, then into one that is there
            getattr(table, operation)(batch(rows([1], val=7, ts=ts + 1) + rows([1], val=6, ts=ts)))
            assert values(table) == {("k1", "a"): 7}


@KINDS
def test_a_late_row_loses_and_a_marked_delete_deletes(kind):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    table = opened(storage, clock)
    table.upsert(batch(rows(range(8), ts=10) + rows([99], ts=1, deleted=True)))
    table.upsert(batch(rows([1], val=9, ts=5) + rows([2, 3], ts=10, deleted=True) + rows([4], ts=9, deleted=True)))
    assert values(table) == {(f"k{n}", "a"): 0 for n in range(8) if n not in (2, 3)}


def test_buckets_may_be_hashed_over_some_of_the_key_columns(tmp_path):
    options = {**BUCKET, "hoodie.bucket.index.hash.field": "b"}
    table = hoodie.create_table(tmp_path / "t", record_key=["a", "b"], options=options)
    data = pa.table({"a": [str(n) for n in range(40)], "b": [f"{n % 2},x:{n}" for n in range(40)]})
    table.upsert(data)
    hoodie.open_table(tmp_path / "t").upsert(data)
    assert table.scan().count() == 40
    assert table.config.buckets == BucketLayout(4, ("b",))


@pytest.mark.parametrize("given", [{}, {"hoodie.bucket.index.num.buckets": "7"}])
def test_buckets_of_a_new_table_are_as_many_as_asked_for_else_as_in_hudi(given):
    storage, _ = new_table(table_type=MOR, more={"hoodie.index.type": "bucket", **given})
    assert opened(storage).config.buckets == BucketLayout(
        int(given.get("hoodie.bucket.index.num.buckets", 256)), ("id",)
    )


def test_a_number_of_buckets_says_nothing_without_the_index_type():
    storage, _ = new_table(table_type=MOR, more={"hoodie.bucket.index.num.buckets": "7"})
    assert opened(storage).config.buckets is None


def test_a_hash_field_has_to_be_a_key_column():
    with pytest.raises(OptionError, match=r"'val', which is not a record key column of table 't': take some of 'id'"):
        new_table(table_type=MOR, more={**BUCKET, "hoodie.bucket.index.hash.field": "val"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hoodie.index.type": "BLOOM"}, "index type is 'BUCKET' in the table, 'BLOOM' in your options"),
        ({"hoodie.bucket.index.num.buckets": "8"}, "number of buckets is '4' in the table, '8' in your options"),
        ({"hoodie.bucket.index.hash.field": "part"}, "hash columns of the buckets is 'id' in the table"),
        (
            {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
            "bucket engine is 'SIMPLE' in the table, 'CONSISTENT_HASHING'",
        ),
        ({"hoodie.bucket.index.partition.expressions": "a,2"}, "its partitions have the same number of buckets"),
    ],
)
def test_options_that_contradict_the_layout_are_refused(given, message):
    storage, clock = new_table(table_type=MOR, more=BUCKET)
    opened(storage, clock, BUCKET).upsert(batch(rows(range(8))))
    with pytest.raises(OptionError, match=message) as caught:
        opened(storage, clock).upsert(batch(rows([1])), given)
    assert len(str(caught.value).splitlines()) <= 8


@KINDS
def test_a_table_whose_files_alone_show_buckets_is_written_by_bucket(kind):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    opened(storage, clock).upsert(batch(rows(range(60)) + rows(range(60), "b")))
    forget(storage)
    table = opened(storage, clock)
    assert table.config.buckets is None
    assert table.upsert(batch(rows(range(50, 70), val=1))).index == {"bucket": 4}
    assert table.config.buckets == opened(storage, clock).config.buckets == BucketLayout(4, ("id",))
    check_layout(table)
    assert len(values(table)) == 130


def few_rows(kind=MOR):
    """A table in which two keys stand in one bucket of 4: 1, 2 and more buckets are possible, and it does not say which."""
    storage, clock = new_table(table_type=kind, more=BUCKET)
    same = [n for n in range(100) if bucket_of(f"k{n}") == 0][:2]
    opened(storage, clock).upsert(batch(rows(same)))
    forget(storage)
    return storage, clock


def test_where_files_do_not_tell_the_number_of_buckets_the_error_asks_for_it():
    storage, clock = few_rows()
    with pytest.raises(
        OptionError, match=r"set hoodie\.index\.type=BUCKET, hoodie\.bucket\.index\.num\.buckets"
    ) as caught:
        opened(storage, clock).upsert(batch(rows([1])))
    assert len(str(caught.value).splitlines()) <= 8
    opened(storage, clock).upsert(batch(rows(range(30))), BUCKET)
    table = opened(storage, clock)
    assert table.config.buckets == BucketLayout(4, ("id",))
    table.upsert(batch(rows(range(30), val=1)))
    check_layout(table)
    assert set(values(table).values()) == {0, 1} or set(values(table).values()) == {1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"},
            "its keys are not where these put them",
        ),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
            "its keys are not where these put them",
        ),
        ({"hoodie.bucket.index.num.buckets": "8"}, "have the bucket index with 4 buckets over id"),
        ({"hoodie.index.type": "BLOOM"}, "to write them otherwise would store keys twice"),
    ],
)
def test_options_against_what_the_files_show_are_refused(given, message):
    storage, clock = new_table(table_type=MOR, more=BUCKET)
    opened(storage, clock).upsert(batch(rows(range(60))))
    forget(storage)
    with pytest.raises(OptionError, match=message):
        opened(storage, clock).upsert(batch(rows([1])), given)
    assert "hoodie.python.bucket" not in storage.read(PROPERTIES).decode()


def test_bucket_index_on_a_table_with_other_file_groups_is_refused():
    storage, clock = new_table(table_type=COW)
    opened(storage, clock).upsert(batch(rows(range(8))))
    with pytest.raises(OptionError, match=r"hoodie\.index\.type=BUCKET, but its file ids do not begin with numbers"):
        opened(storage, clock).upsert(batch(rows([1])), BUCKET)


def test_bucket_index_may_be_chosen_by_the_first_write_of_a_table():
    storage, clock = new_table(table_type=MOR)
    opened(storage, clock).upsert(batch(rows(range(30))), BUCKET)
    table = opened(storage, clock)
    assert table.config.buckets == BucketLayout(4, ("id",))
    check_layout(table)


def test_file_groups_of_several_numbers_of_buckets_are_not_taken_for_plain_ones():
    """As Apache Hudi leaves them when its writers disagree, or with a number for each partition."""
    storage, clock = new_table(table_type=COW, more={**BUCKET, "hoodie.bucket.index.num.buckets": "3"})
    opened(storage, clock).upsert(batch(rows(range(60))))
    forget(storage)
    text = storage.read(PROPERTIES).decode()
    storage.replace(PROPERTIES, (text + "\nhoodie.python.bucket.count=4\n").encode())
    opened(storage, clock).upsert(batch(rows(range(60), "b")))
    forget(storage)
    with pytest.raises(UnsupportedTableError, match="Were there several, or one for each partition"):
        opened(storage, clock).upsert(batch(rows([1])))


@in_memory("renames a file")
def test_two_file_groups_of_one_bucket_are_refused():
    """As a second bulk_insert by Apache Hudi leaves them."""
    storage, clock = new_table(table_type=COW)
    opened(storage, clock).upsert(batch(rows(range(30))), BUCKET)
    twin = "ffffffff-0000-4000-8000-000000000000-0"
    for file in [f.path for f in storage.list("a") if "/00000001-" in f.path]:
        storage.move_new(file, re.sub(r"00000001-[^_]*", "00000002" + twin[8:], file))
    storage_commit = next(f.path for f in storage.list(".hoodie") if f.path.endswith(".commit"))
    text = storage.read(storage_commit).decode()
    # One byte longer: what a process knows of a completed file counts as long as that has its size and time.
    changed = re.sub(r"00000001-[0-9a-f-]{27}-0", "00000002" + twin[8:], text) + " "
    storage.replace(storage_commit, changed.encode())
    other, clock = copy_of(storage)  # what this process knows of the table it wrote is not what another one finds
    with pytest.raises(UnsupportedTableError, match="is a second file group of bucket 2") as caught:
        opened(other, clock).upsert(batch(rows([1])))
    assert "partition 'a'" in str(caught.value)


def test_a_record_index_that_is_damaged_goes_with_the_metadata_table(caplog):
    storage, clock = new_table(table_type=MOR)
    early = opened(storage, clock)
    text = storage.read(PROPERTIES).decode()
    storage.replace(PROPERTIES, (text + "\nhoodie.table.metadata.partitions=files,record_index\n").encode())
    storage.create_new(f"{METADATA_TABLE}/record_index/f", b"x")
    early.upsert(batch(rows([1])))
    assert not storage.exists(METADATA_TABLE)
    assert any("dropped the metadata table" in each.getMessage() for each in caplog.records)


@KINDS
@pytest.mark.parametrize("step", ["hash keys", "write files"])
def test_two_writers_that_start_a_bucket_at_once_end_with_one_file_group(kind, step):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    other = lambda: opened(storage, clock).upsert(batch(rows(range(10, 30), val=2, ts=2)))  # noqa: E731
    slow = open_at(storage, engine=Meanwhile(step, other), sleep=clock.sleep)
    slow.upsert(batch(rows(range(20), val=1)))
    table = opened(storage, clock)
    check_layout(table)
    assert values(table) == {(f"k{n}", "a"): 1 if n < 10 else 2 for n in range(30)}
    assert stray_files(storage, table) == []


@KINDS
def test_two_writers_of_one_bucket_at_once_lose_nothing(kind):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    opened(storage, clock).upsert(batch(rows(range(20))))
    other = lambda: opened(storage, clock).upsert(batch(rows(range(10, 30), val=2, ts=2)))  # noqa: E731
    open_at(storage, engine=Meanwhile("write files", other), sleep=clock.sleep).upsert(batch(rows(range(5, 40), val=1)))
    table = opened(storage, clock)
    check_layout(table)
    assert values(table) == {(f"k{n}", "a"): 0 if n < 5 else 2 if 10 <= n < 30 else 1 for n in range(40)}


@pytest.mark.parametrize("step", ["look up keys", "write files"])
def test_a_table_that_gets_buckets_while_a_writer_without_them_is_at_work_keeps_them(step):
    storage, clock = new_table(table_type=MOR)
    other = lambda: opened(storage, clock).upsert(batch(rows(range(10, 60), val=2, ts=2)), BUCKET)  # noqa: E731
    slow = open_at(storage, engine=Meanwhile(step, other), sleep=clock.sleep)
    slow.upsert(batch(rows(range(20), val=1)))
    table = opened(storage, clock)
    assert slow.config.buckets == table.config.buckets == BucketLayout(4, ("id",))
    check_layout(table)
    assert len(values(table)) == 60


def test_logs_written_beside_a_pending_compaction_stay_in_their_bucket():
    storage, clock = new_table(table_type=MOR, more=BUCKET)
    table = opened(storage, clock)
    table.upsert(batch(rows(range(20))))
    table.upsert(batch(rows(range(10, 30), val=1)))
    table.delete(keys(rows([2, 12])))
    table.schedule_compaction()
    table.upsert(batch(rows([2, 5, 31], val=2, ts=2)))  # one that was deleted, one stored, one new
    expected = {(f"k{n}", "a"): 0 if n < 10 else 1 for n in range(30) if n not in (2, 12)}
    expected |= {("k2", "a"): 2, ("k5", "a"): 2, ("k31", "a"): 2}
    assert values(table) == expected
    table.run_compaction()
    assert values(table) == expected
    table.compact()
    assert values(table) == expected
    assert len(table.scan(query="read_optimized").to_arrow()) == len(expected)
    check_layout(table)


@KINDS
def test_rows_staged_for_other_processes_find_their_buckets(kind):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    options = parse_write_options({"hoodie.python.driver.max.bytes": "0"}).write
    for val in (1, 2):
        data = batch(rows(range(20 * val), val=val, ts=val) + rows(range(5), "b", val=val, ts=val))
        table = opened(storage, clock)
        table.writer.write(
            data.to_reader(max_chunksize=7),
            data.schema,
            WriteOperation.UPSERT,
            options,
            engine=LocalEngine(1),
        )
    check_layout(table)
    assert values(table) == {(f"k{n}", "a"): 2 for n in range(40)} | {(f"k{n}", "b"): 2 for n in range(5)}
    assert leftovers(storage) == []


def test_the_golden_table_of_hudi_is_recognised_and_written_by_bucket(tmp_path):
    golden = copy_golden("v6_bucket", tmp_path)
    before = {row["_hoodie_record_key"]: row for row in golden.expected["snapshot"]}
    table = hoodie.open_table(golden.path)
    stored = table.scan().to_arrow()
    changed = stored.slice(0, 5)
    result = table.upsert(changed)
    assert set(result.index) == {"bucket"}
    assert result.inserted == 0
    assert table.config.buckets == BucketLayout(4, ("id",))
    text = (golden.path / PROPERTIES).read_text()
    assert "hoodie.python.bucket.count=4" in text
    assert "hoodie.python.bucket.hash.fields=id" in text
    found = table.scan(meta_columns=True).to_arrow()
    assert sorted(found.column("_hoodie_record_key").to_pylist()) == sorted(before)
    check_layout(table)


def test_new_keys_that_hudi_left_in_logs_are_found_again(tmp_path):
    """A look-up in base files would take them for new ones."""
    golden = copy_golden("v6_bucket", tmp_path)
    table = hoodie.open_table(golden.path)
    stored = table.scan().to_arrow()
    in_bases = set(table.scan(query="read_optimized").to_arrow().column("id").to_pylist())
    assert set(stored.column("id").to_pylist()) - in_bases
    table.upsert(stored)
    again = table.scan().to_arrow()
    assert without(again.to_pylist()) == without(stored.to_pylist()) or again.num_rows == stored.num_rows
    assert json.dumps(sorted(again.column("id").to_pylist())) == json.dumps(sorted(stored.column("id").to_pylist()))


@KINDS
def test_overwrites_begin_every_bucket_anew(kind):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    table = opened(storage, clock)
    table.upsert(batch(rows(range(20)) + rows(range(20), "b")))
    before = {file_slice.group for file_slice in table.files()}
    table.insert_overwrite(batch(rows(range(5, 9), val=1)))
    assert values(table) == {(f"k{n}", "a"): 1 for n in range(5, 9)} | {(f"k{n}", "b"): 0 for n in range(20)}
    assert all(file_slice.group not in before for file_slice in table.files() if file_slice.group.partition_path == "a")
    check_layout(table)
    table.upsert(batch(rows(range(7, 12), val=2)))
    table.delete_partitions(["b"])
    assert values(table) == {(f"k{n}", "a"): 1 if n < 7 else 2 for n in range(5, 12)}
    table.upsert(batch(rows(range(3), "b", val=3)))
    check_layout(table)
    assert sum(part == "b" for _, part in values(table)) == 3


@KINDS
def test_a_partial_upsert_keeps_what_the_batch_lacks_also_of_rows_in_logs(kind):
    storage, clock = new_table(table_type=kind, more=BUCKET)
    table = opened(storage, clock)
    table.upsert(batch(rows(range(8), val=7)))
    table.upsert(batch(rows(range(4, 12), val=8)))  # on merge-on-read some keys stand in logs only
    table.upsert(batch(rows([1, 9, 30], ts=5)).drop_columns(["val", "_hoodie_is_deleted"]), partial=True)
    found = values(table)
    assert (found["k1", "a"], found["k9", "a"], found["k30", "a"]) == (7, 8, None)
    assert len(found) == 13
    check_layout(table)


def test_an_insert_that_is_to_look_at_stored_keys_is_refused():
    storage, clock = new_table(table_type=MOR, more=BUCKET)
    with pytest.raises(OptionError, match="has the bucket index, which looks no keys up"):
        opened(storage, clock).insert(batch(rows([1])), {"hoodie.datasource.insert.dup.policy": "drop"})
