"""Column stats and bloom filters of a metadata table are kept up: what they say of each base file is what its footer says."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.format.base_file import read_footer
from hoodie.metadata.column_stats import stats_of_footer
from hoodie.metadata.keys import BLOOM_FILTERS, COLUMN_STATS
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
    assert [each.getMessage() for each in caplog.records if "is not kept up" in each.getMessage()]
    check_storage(storage)
    assert "metadata.partitions=files" in storage.read(PROPERTIES).decode()
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


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_have_the_wrappers_of_apache_hudi(kind):
    stored, values, (wrapper, low, high) = KINDS[kind]
    found = stats_of_footer(footer_of(pa.table({kind: pa.array(values, stored)})), [kind, "missing"])
    name = f"org.apache.hudi.avro.model.{wrapper}"
    assert found[kind]["low"] == (None if wrapper is None else (name, {"value": low}))
    assert found[kind]["high"] == (None if wrapper is None else (name, {"value": high}))
    assert (found[kind]["nulls"], found[kind]["values"]) == (values.count(None), 3)
    assert set(found) == {kind}


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint32(),
        pa.binary(),
        pa.timestamp("ms"),
        pa.timestamp("ns"),
        pa.time64("us"),
        pa.decimal128(38, 2),
        pa.list_(pa.int32()),
    ],
    ids=str,
)
def test_columns_of_other_types_get_none(kind):
    table = pa.table({"other": pa.array([None, None], kind), "number": [1, 2]})
    assert set(stats_of_footer(footer_of(table), ["other", "number"])) == {"number"}


def test_fields_of_structs_have_bounds():
    table = pa.table({"outer": [{"inner": 3}, None, {"inner": 1}]})
    assert stats_of_footer(footer_of(table), ["outer.inner"])["outer.inner"]["nulls"] == 1


def test_a_file_whose_footer_does_not_bound_a_column_has_none():
    table = pa.table({"number": [1, 2], "unknown": [1, 2]})
    sink = io.BytesIO()
    pq.write_table(table, sink, write_statistics=["number"])
    footer = pq.read_metadata(io.BytesIO(sink.getvalue()))
    assert stats_of_footer(footer, ["number", "unknown"]) is None
    assert set(stats_of_footer(footer, ["number"])) == {"number"}


def footer_of(table):
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))
