"""Bounds and bloom filters of a metadata table are kept up: what they say of each file is what stands in it."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.format.base_file import read_footer
from hoodie.metadata.keys import BLOOM_FILTERS, COLUMN_STATS
from hoodie.metadata.stored_bounds import ranges_of_footer, ranges_of_rows, record_of
from hoodie.metadata.table import MetadataTable
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.view.context import TableContext
from tests.effort import long_but
from tests.memory_tables import opened
from tests.metadata_tables import BY_FOLDERS, changed, check_storage, loaded, read

GOLDEN = ("v6_mdt_cow", "v6_mdt_mor")
BOTH = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def written(name, options=BOTH):
    storage = loaded(name)
    return storage, opened(storage, storage.clock, options, cache=Cache())


def check(storage, *, names=(BLOOM_FILTERS, COLUMN_STATS)):
    """Of all base files that are there, and of no others."""
    check_storage(storage)
    context = TableContext.open(storage, LocalEngine(), cache=Cache())
    assert context.config.metadata_partitions == (*sorted(names), "files")
    snapshot = context.snapshot()
    table = MetadataTable.open(context.storage, context.config, snapshot.timeline, Cache())
    files = [info.path for infos in table.all_files().values() for info in infos if info.path.endswith(".parquet")]
    columns = pa.schema([field for field in snapshot.schema if not pa.types.is_nested(field.type)])
    stats, blooms = (
        table.column_stats([*files, "a/gone.parquet"], columns),
        table.bloom_filters([*files, "a/gone.parquet"]),
    )
    assert not table.reasons
    assert sorted(blooms) == sorted(files)
    for number, path in enumerate(files):
        file = pq.ParquetFile(io.BytesIO(storage.read(path)))
        rows = file.read()
        assert read_footer(file.metadata, path=path).bloom().to_bytes() == blooms[path].to_bytes()
        for column in columns:
            found = stats[column.name].slice(number, 1).to_pylist()[0]
            bounds = pa.compute.min_max(rows[column.name]).as_py()
            there = {"low": bounds["min"], "high": bounds["max"], "nulls": rows[column.name].null_count}
            assert found == {**there, "values": rows.num_rows}, (path, column.name)
    assert stats[columns.names[0]].slice(len(files), 1).to_pylist()[0]["values"] is None


@pytest.mark.parametrize("name", GOLDEN)
def test_they_are_built_and_kept_up_by_each_action(name):
    storage, table = written(name)
    rows = table.scan().to_arrow()
    table.upsert(changed(rows, 2))
    check(storage)
    saved = table.savepoint()
    table.upsert(changed(rows, 3))
    table.delete(rows.slice(0, 1))
    check(storage)
    if name == "v6_mdt_mor":
        table.compact()
        check(storage)
    table.cluster(sort_by="ts")
    table.insert_overwrite(changed(rows, 1))
    check(storage)
    table.rollback(table.timeline.commits[-1].time)
    check(storage)
    table.restore(saved)
    check(storage)
    table.drop_savepoint(saved)
    table.upsert(changed(rows, 3))
    table.upsert(changed(rows, 2))
    assert table.clean(retain_commits=1).files
    check(storage)


@pytest.mark.parametrize("name", long_but(GOLDEN[1:], GOLDEN))
def test_they_are_compacted_and_cleaned_with_the_files(name):
    storage, table = written(name, BOTH | {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "2"})
    rows = table.scan().to_arrow()
    for turn in range(24):
        table.upsert(changed(rows, 1 + turn % 3))
    for partition in (COLUMN_STATS, BLOOM_FILTERS):
        assert [each for each in storage.names(f"{METADATA_TABLE}/{partition}") if each.endswith("001.hfile")]
    check(storage)


def test_a_writer_without_the_options_keeps_them_up_and_one_against_them_drops_them():
    storage, table = written("v6_mdt_cow")
    rows = table.scan().to_arrow()
    table.upsert(changed(rows, 2))
    opened(storage, storage.clock, cache=Cache()).upsert(changed(rows, 3))
    check(storage)
    without = {"hoodie.metadata.index.bloom.filter.enable": "false"}
    opened(storage, storage.clock, without, cache=Cache()).upsert(changed(rows, 1))
    assert not storage.exists(f"{METADATA_TABLE}/{BLOOM_FILTERS}")
    assert "metadata.partitions=column_stats,files" in storage.read(PROPERTIES).decode()
    assert read(storage) == read(storage, BY_FOLDERS)


def test_damage_of_one_drops_that_and_leaves_the_files(caplog):
    storage, table = written("v6_mdt_cow")
    rows = table.scan().to_arrow()
    table.upsert(changed(rows, 2))
    storage.delete_folder(f"{METADATA_TABLE}/{COLUMN_STATS}")
    opened(storage, storage.clock, cache=Cache()).upsert(changed(rows, 3))
    assert [each.getMessage() for each in caplog.records if "cannot be maintained" in each.getMessage()]
    check_storage(storage)
    assert "metadata.partitions=bloom_filters,files" in storage.read(PROPERTIES).decode()
    table.upsert(changed(rows, 3))
    check(storage)


@pytest.mark.long
def test_a_writer_that_dies_at_any_call_leaves_the_old_rows_or_the_new_ones():
    storage, table = written("v6_mdt_mor")
    rows = table.scan().to_arrow()
    begin, old = storage.snapshot(), read(storage)
    faulty = FaultStorage(storage)
    opened(faulty, storage.clock, BOTH, cache=Cache()).upsert(changed(rows, 2))
    new = read(storage)
    points = [call for call in faulty.trace if METADATA_TABLE in call.path or call.path == PROPERTIES]
    for fault in crash_points(points):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            opened(faulty, storage.clock, BOTH, cache=Cache()).upsert(changed(rows, 2))
        faulty.revive()
        assert read(storage) in (old, new), fault
        storage.clock.sleep(3600)
        opened(storage, storage.clock, BOTH, cache=Cache()).upsert(changed(rows, 1))
        assert read(storage) == read(storage, BY_FOLDERS), fault
        check(storage)


KINDS = {
    "flag": (pa.bool_(), [True, None, False], ("BooleanWrapper", False, True)),
    "small": (pa.int8(), [3, None, -4], ("IntWrapper", -4, 3)),
    "large": (pa.int64(), [1 << 40, None, 5], ("LongWrapper", 5, 1 << 40)),
    "narrow": (pa.float32(), [0.5, None, -2.5], ("FloatWrapper", -2.5, 0.5)),
    "wide": (pa.float64(), [0.5, None, -2.5], ("DoubleWrapper", -2.5, 0.5)),
    "text": (pa.string(), ["z" * 99, None, "ä"], ("StringWrapper", "z" * 99, "ä")),
    "day": (pa.date32(), [date(1970, 1, 3), None, date(1969, 12, 31)], ("DateWrapper", -1, 2)),
    "moment": (
        pa.timestamp("us", "UTC"),
        [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None, datetime(1970, 1, 1, tzinfo=UTC)],
        ("LongWrapper", 0, 1_000_000),
    ),
    "amount": (
        pa.decimal128(9, 2),
        [Decimal("1.25"), None, Decimal("-3.50")],
        ("DecimalWrapper", Decimal("-3.50"), Decimal("1.25")),
    ),
    "nothing": (pa.int32(), [None, None, None], (None, None, None)),
}


TYPED = {
    **{"flag": 2, "small": 3, "large": 4, "narrow": 5, "wide": 6, "text": 7, "day": 12, "moment": 16, "amount": 10},
    "nothing": 3,
}
"""What index version V2 says of the types; dates and decimals are plain numbers and bytes there."""
PLAIN = {"day": ("IntWrapper", -1, 2), "amount": ("BytesWrapper", b"\xfe\xa2", b"\x7d")}


def both_ways(kind, stored, values, *, typed):
    """The range by a footer, and by the rows."""
    table = pa.table({kind: pa.array(values, stored)})
    (of_footer,) = ranges_of_footer(footer_of(table), [kind, "missing"], typed=typed).values()
    (of_rows,) = ranges_of_rows(table, typed=typed).values()
    assert of_footer[:5] == of_rows[:5]
    return of_footer


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_stored_as_apache_hudi_stores_them(kind, typed):
    stored, values, expected = KINDS[kind]
    wrapper, low, high = PLAIN.get(kind, expected) if typed else expected
    found = record_of("f", kind, both_ways(kind, stored, values, typed=typed), kind=3)["ColumnStatsMetadata"]
    name = f"org.apache.hudi.avro.model.{wrapper}"
    assert found["minValue"] == (None if wrapper is None else (name, {"value": low}))
    assert found["maxValue"] == (None if wrapper is None else (name, {"value": high}))
    assert (found["nullCount"], found["valueCount"]) == (values.count(None), 3)
    more = "9,2" if kind == "amount" else None
    assert found["valueType"] == ({"typeOrdinal": TYPED[kind], "additionalInfo": more} if typed else None)


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, -1, -128, -129, 10**30])
def test_decimals_are_as_many_bytes_as_java_takes(number):
    found = both_ways("n", pa.decimal128(38, 4), [Decimal(f"{number}E-4")], typed=True)
    _, value = found.stored.wrapped(found.low)
    assert int.from_bytes(value["value"], "big", signed=True) == number
    assert len(value["value"]) == max(1, ((~number if number < 0 else number).bit_length() // 8) + 1)


UNBOUNDED = [pa.uint32(), pa.binary(), pa.timestamp("ms"), pa.timestamp("ns"), pa.time64("us"), pa.decimal128(38, 2)]


@pytest.mark.parametrize("kind", [*UNBOUNDED, pa.list_(pa.int32())], ids=str)
def test_columns_of_other_types_get_none(kind):
    table = pa.table({"other": pa.array([None, None], kind), "number": [1, 2]})
    assert set(ranges_of_footer(footer_of(table), ["other", "number"], typed=False)) == {"number"}


@pytest.mark.parametrize(
    ("stored", "number"),
    [
        *((pa.binary(), 8), (pa.binary(3), 9), (pa.timestamp("ms", "UTC"), 15), (pa.timestamp("ns", "UTC"), 17)),
        *((pa.timestamp("ms"), 18), (pa.timestamp("us"), 19), (pa.time32("ms"), 13), (pa.time64("us"), 14)),
    ],
    ids=str,
)
def test_more_types_have_bounds_from_v2_on(stored, number):
    values = [b"abc", None] if pa.types.is_binary(stored) or pa.types.is_fixed_size_binary(stored) else [7, None]
    assert both_ways("n", stored, values, typed=True).stored.type_number == number


def test_nan_is_greater_than_all_other_numbers():
    """As Spark and Java have it; Parquet's footers leave it out."""
    nan = float("nan")
    found = ranges_of_rows(pa.table({"a": [nan, 1.0, None], "b": [nan, nan, nan]}), typed=True)
    assert (found["a"].low, str(found["a"].high)) == (1.0, "nan")
    assert (str(found["b"].low), str(found["b"].high)) == ("nan", "nan")


def test_fields_of_structs_have_bounds():
    table = pa.table({"outer": [{"inner": 3}, None, {"inner": 1}]})
    assert ranges_of_footer(footer_of(table), ["outer.inner"], typed=True)["outer.inner"].nulls == 1


def test_what_a_footer_does_not_bound_is_not_known():
    table = pa.table({"number": [1, 2], "unknown": [1, 2]})
    sink = io.BytesIO()
    pq.write_table(table, sink, write_statistics=["number"])
    found = ranges_of_footer(pq.read_metadata(io.BytesIO(sink.getvalue())), ["number", "unknown"], typed=True)
    assert found["unknown"] is None
    assert found["number"].high == 2


def footer_of(table):
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))
