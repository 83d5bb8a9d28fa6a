"""Keys of a write: those of the stored rows where the table does not say how they are made, and generated ones."""

import datetime as dt
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from hoodie.errors import KeyFieldError, OptionError, UnsupportedTableError
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.names import PROPERTIES
from hoodie.options.table_options import TableOptions
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import open_at
from hoodie.write.create import create_at
from tests.memory_tables import FakeClock, new_storage, opened
from tests.small_files import SIZED

AS_TEXT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
SLASH = "hoodie.datasource.write.slash.separated.date.partitioning"
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)


def rows(ids, v=1):
    return pa.table({
        "id": [f"k{n}" for n in ids], "day": [f"2024-02-{n + 10}" for n in ids], "v": [v for _ in ids],
        "at": pa.array([NOON + dt.timedelta(hours=n) for n in ids], pa.timestamp("us", "UTC")),
    })  # fmt: skip


class Made:
    """A table in memory, and the storage below it."""

    def __init__(self, **options):
        self.clock = FakeClock()
        self.storage = new_storage(self.clock)
        create_at(self.storage, TableOptions(**{"name": "t", "record_key_fields": ("id",), **options}))

    @property
    def table(self):
        return opened(self.storage, self.clock)

    def forget(self, *names):
        """Leave the properties as Apache Hudi would have written them."""
        lines = self.storage.read(PROPERTIES).decode().splitlines()
        kept = [line for line in lines if not line.startswith(names)]
        self.storage.replace(PROPERTIES, "".join(f"{line}\n" for line in kept).encode())

    def stored(self):
        found = self.table.scan(meta_columns=True).to_arrow()
        return sorted(zip(*(found[name].to_pylist() for name in (PARTITION_PATH, RECORD_KEY, "v")), strict=True))


# -- what a table does not say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_text", [True, False])
def test_stored_rows_tell_whether_keys_have_timestamps_as_text(as_text):
    made = Made(record_key_fields=("at",), timestamps_as_text=as_text)
    made.table.insert(rows([1, 2]))
    made.forget(AS_TEXT)
    made.table.upsert(rows([2, 3], v=2))
    assert [v for _, _, v in made.stored()] == [1, 2, 2]
    made.table.upsert(rows([1], v=3), {AS_TEXT: str(as_text)})
    assert [v for _, _, v in made.stored()] == [3, 2, 2]


@pytest.mark.parametrize("slash", [True, False])
def test_stored_rows_tell_whether_folders_are_parts_of_dates(slash):
    made = Made(partition_fields=("day",), hive_style=True, slash_dates=slash)
    made.table.insert(rows([1, 2]))
    made.forget(SLASH)
    made.table.upsert(rows([2, 3], v=2))
    path = "day=2024/02/11" if slash else "day=2024-02-11"
    assert made.stored()[0] == (path, "k1", 1)
    assert len(made.stored()) == 3


def test_a_row_that_leaves_it_open_is_not_the_only_one_asked():
    made = Made(partition_fields=("day",), hive_style=True, slash_dates=True)
    made.table.insert(rows([1]).set_column(1, "day", pa.array([None], pa.string())))
    made.table.insert(rows([2]))
    made.forget(SLASH)
    made.table.upsert(rows([2], v=2))
    assert [(path, v) for path, _, v in made.stored()] == [("day=2024/02/12", 2), ("day=__HIVE_DEFAULT_PARTITION__", 1)]


CUSTOM = {"hoodie.datasource.write.partitionpath.field": "day:TIMESTAMP"}
MONTHS = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMM",
}


def test_a_table_that_forgot_its_settings_asks_for_them_and_holds_them_against_its_rows():
    made = Made(partition_fields=("day:TIMESTAMP",), timebased=MONTHS)
    made.table.upsert(rows([1, 2]))
    made.table.upsert(rows([2], v=2))
    made.forget("hoodie.python.partition.kinds", "hoodie.keygen")
    with pytest.raises(OptionError, match="properties do not say the kinds of its partition columns"):
        made.table.upsert(rows([2], v=3))
    with pytest.raises(OptionError, match=r"nothing says hoodie\.keygen\.timebased\.timestamp\.type"):
        made.table.upsert(rows([2], v=3), CUSTOM)
    with pytest.raises(UnsupportedTableError, match=r"other keys or paths.*\n  stored:  \('k1', '202402'\) in 202402/"):
        made.table.upsert(rows([2], v=3), CUSTOM | MONTHS | {"hoodie.keygen.timebased.output.dateformat": "yyyy"})
    made.table.upsert(rows([2, 3], v=3), CUSTOM | MONTHS)
    assert made.stored() == [("202402", "k1", 1), ("202402", "k2", 3), ("202402", "k3", 3)]


def test_a_pattern_that_cannot_be_written_is_told_when_the_table_is_made():
    wrong = MONTHS | {"hoodie.keygen.timebased.output.dateformat": "yyyy-bb"}
    with pytest.raises(OptionError, match=r"output\.dateformat='yyyy-bb': has the letter 'b'"):
        Made(partition_fields=("day:TIMESTAMP",), timebased=wrong)


# -- generated keys --------------------------------------------------------------------------------------------------


def keys_of(made):
    return [key for _, key, _ in made.stored()]


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_generated_keys_are_the_instant_and_two_numbers(operation):
    made = Made(record_key_fields=None, partition_fields=("day",))
    result = getattr(made.table, operation)(rows([1, 2, 3]))
    assert keys_of(made) == [f"{result.instant}_0_{n}" for n in range(3)]
    again = getattr(made.table, operation)(rows([1]))
    assert f"{again.instant}_0_0" in keys_of(made)
    assert len(keys_of(made)) == (3 if operation == "insert_overwrite" else 4)


def test_an_upsert_of_generated_keys_is_an_insert_and_says_so():
    made = Made(record_key_fields=None)
    made.table.upsert(rows([1, 2]))
    result = made.table.upsert(rows([1, 2]))
    assert (result.operation, result.inserted, result.updated) == ("INSERT", 2, 0)


def test_no_key_is_generated_twice_over_chunks_files_and_partitions():
    made = Made(record_key_fields=None, partition_fields=("day",))
    table = opened(made.storage, made.clock, tuning=replace(SIZED, chunk_bytes=1000))
    batch = rows([n % 3 for n in range(300)])
    for _ in range(2):
        table.insert(batch.to_reader(max_chunksize=20), {"hoodie.parquet.max.file.size": "2000"})
    found = keys_of(made)
    assert len(set(found)) == len(found) == 600
    assert len({key.split("_")[1] for key in found}) > 3


def test_a_write_that_is_done_again_after_any_failure_generates_other_keys():
    first = Made(record_key_fields=None)
    steps = FaultStorage(first.storage)
    open_at(steps, sleep=first.clock.sleep).insert(rows([1]))
    for step in range(1, len(steps.trace) + 1):
        made = Made(record_key_fields=None)
        with suppress(InjectedFault):
            open_at(FaultStorage(made.storage, [Fault(step)]), sleep=made.clock.sleep).insert(rows([1]))
        made.table.insert(rows([2]))
        assert len(set(keys_of(made))) == len(keys_of(made)) in (1, 2)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_generated_keys_are_deleted_by_a_condition_or_by_their_meta_columns(table_type):
    made = Made(record_key_fields=None, partition_fields=("day",), table_type=table_type)
    made.table.insert(rows(range(6)))
    assert made.table.delete(where="id in ('k1', 'k2')").deleted == 2
    found = made.table.scan(meta_columns=True, where="id = 'k3'").to_arrow()
    assert made.table.delete(found).deleted == 1
    assert sorted(made.table.scan().to_arrow()["id"].to_pylist()) == ["k0", "k4", "k5"]
    with pytest.raises(
        KeyFieldError, match="has no record key columns, and _hoodie_record_key, _hoodie_partition_path of the rows"
    ):
        made.table.delete(rows([4]))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_generated_keys_are_updated_by_their_meta_columns(table_type):
    made = Made(record_key_fields=None, partition_fields=("day",), table_type=table_type)
    made.table.insert(rows(range(6)))
    before = keys_of(made)
    found = made.table.scan(meta_columns=True, where="id in ('k1', 'k2')").to_arrow()
    changed = found.set_column(found.schema.get_field_index("id"), "id", pa.array(["new1", "new2"]))
    result = made.table.upsert(changed)
    assert (result.operation, result.inserted, result.updated) == ("UPSERT", 0, 2)
    assert sorted(made.table.scan().to_arrow()["id"].to_pylist()) == ["k0", "k3", "k4", "k5", "new1", "new2"]
    assert sorted(keys_of(made)) == sorted(before)


def test_rows_of_generated_keys_are_not_updated_into_another_partition_or_without_a_key():
    made = Made(record_key_fields=None, partition_fields=("id",))
    made.table.insert(rows([0, 1]))
    found = made.table.scan(meta_columns=True).to_arrow()
    moved = found.set_column(found.schema.get_field_index("id"), "id", pa.array(["k0", "k2"]))
    with pytest.raises(KeyFieldError, match="is stored in partition 'k1', and its columns say another one"):
        made.table.upsert(moved)
    nulls = found.set_column(2, found.schema.field(2), pa.array([None, "x"]))
    with pytest.raises(KeyFieldError, match="_hoodie_record_key or _hoodie_partition_path is null"):
        made.table.upsert(nulls)
    assert made.table.scan().count() == 2


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.combine.before.insert": "true"},
        {"hoodie.datasource.write.insert.drop.duplicates": "true"},
        {"hoodie.datasource.insert.dup.policy": "fail"},
        {"hoodie.merge.allow.duplicate.on.inserts": "false"},
        {"hoodie.python.upsert.partial": "true"},
    ],
)
def test_what_needs_keys_that_come_again_is_refused(options):
    made = Made(record_key_fields=None)
    with pytest.raises(OptionError, match="every row gets a key of its own and a write cannot"):
        made.table.upsert(rows([1]), options)
