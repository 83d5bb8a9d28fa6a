"""What a filter leaves out: the pruned scan equals the whole one, and each trap on the way to it by its name."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoodie
from hoodie.errors import HoodieError, MissingFileError
from hoodie.format.column_stats import COLUMN_STATS
from hoodie.model.statistics import Pruning
from hoodie.options.parse import parse_write_options
from hoodie.read.scan import Scan
from hoodie.read.where import parse_filter
from hoodie.storage.memory import MemoryStorage
from hoodie.table import HoodieTable
from hoodie.write.create import create_at
from tests.effort import long_but
from tests.golden_tables import copy_golden, golden_names
from tests.memory_tables import FakeClock, Input, batch, keys, new_storage, new_table, opened
from tests.rows import rows_of


def whole(scan: Scan, where: str | pc.Expression) -> pa.Table:
    """The rows of an unfiltered scan with meta columns that the filter accepts."""
    rows = scan.to_arrow()
    found = parse_filter(where, rows.schema)
    assert found is not None
    return rows.filter(found.expression)


def same_rows(table: HoodieTable, where: str | pc.Expression, **query: Any) -> Pruning:
    """The query gives the same rows with and without pruning; what it left out."""
    scan = table.scan(where=where, meta_columns=True, **query)
    assert rows_of(scan.to_arrow()) == rows_of(whole(table.scan(meta_columns=True, **query), where)), where
    return scan.plan.pruning


def forget_statistics(storage: MemoryStorage) -> None:
    """As if another writer had made the commits."""
    content = storage.snapshot()
    for path, (data, mtime) in content.files.items():
        if path.startswith(".hoodie/") and COLUMN_STATS.encode() in data:
            commit = json.loads(data)
            del commit["extraMetadata"][COLUMN_STATS]
            content.files[path] = (json.dumps(commit).encode(), mtime)
    storage.restore(content)


def made(
    schema: pa.Schema,
    *,
    partition: str | None = None,
    table_type: str = "COPY_ON_WRITE",
    more: Mapping[str, str] | None = None,
) -> tuple[MemoryStorage, HoodieTable]:
    """A table with key column `id`; each bulk_insert makes file groups of its own."""
    clock = FakeClock()
    storage = new_storage(clock)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        **({"hoodie.datasource.write.partitionpath.field": partition} if partition else {}),
        **(more or {}),
    }
    create_at(storage, parse_write_options(options).to_create(), schema=schema)
    return storage, opened(storage, clock)


def rows(schema: pa.Schema, *values: Sequence[Any]) -> pa.Table:
    columns = list(zip(*values, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


NUMBERS = pa.schema([("id", pa.string()), ("n", pa.int64())])


def numbered(*, table_type: str = "COPY_ON_WRITE") -> tuple[MemoryStorage, HoodieTable]:
    """Ten files of ten numbers each: 0 to 9, 10 to 19, …"""
    storage, table = made(NUMBERS, table_type=table_type)
    for tens in range(0, 100, 10):
        table.bulk_insert(rows(NUMBERS, *((f"k{n:02d}", n) for n in range(tens, tens + 10))))
    return storage, table


# -- random tables and filters -----------------------------------------------------------------------------------------

IDS = [f"k{n}" for n in range(9)]
PARTS = ["sf", "b c", "1", "a=b", "x%20y", ""]
ROWS = st.builds(
    Input,
    st.sampled_from(IDS),
    st.sampled_from(PARTS),
    st.none() | st.integers(-3, 3),
    st.none() | st.integers(0, 3),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "compact"]),
        st.lists(ROWS, min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=5,
)
TABLES = st.tuples(
    st.sampled_from([{}, {"hoodie.datasource.write.hive_style_partitioning": "true"}]),
    st.sampled_from([{}, {"hoodie.datasource.write.partitionpath.urlencode": "true"}]),
    st.sampled_from(
        [{}, {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}]
    ),
)
CONDITIONS = st.one_of(
    st.builds("id {} '{}'".format, st.sampled_from(["=", "<", ">=", "<>"]), st.sampled_from(IDS)),
    st.builds("_hoodie_record_key = '{}'".format, st.sampled_from(IDS)),
    st.builds("part {} '{}'".format, st.sampled_from(["=", "<", ">=", "<>"]), st.sampled_from(PARTS)),
    st.builds("part IN ('{}', '{}')".format, st.sampled_from(PARTS), st.sampled_from(PARTS)),
    st.builds(
        "{} {} {}".format, st.sampled_from(["val", "ts"]), st.sampled_from(["=", "<", ">", "<>"]), st.integers(-3, 3)
    ),
    st.builds("{} IS {}NULL".format, st.sampled_from(["val", "ts", "part"]), st.sampled_from(["", "NOT "])),
    st.builds("val BETWEEN {} AND {}".format, st.integers(-3, 3), st.integers(-3, 3)),
)
FILTERS = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR ({})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
@settings(max_examples=8, deadline=None)
@given(more=TABLES, steps=STEPS, filters=st.lists(FILTERS, min_size=4, max_size=8), forget=st.booleans())
def test_the_pruned_scan_equals_the_whole_one(table_type, more, steps, filters, forget):
    storage, clock = new_table(table_type=table_type, more={k: v for each in more for k, v in each.items()})
    table = opened(storage, clock)
    for operation, given_rows in steps:
        if operation == "compact":
            if table_type == "MERGE_ON_READ":
                table.compact()
            continue
        try:
            getattr(table, operation)(keys(given_rows) if operation == "delete" else batch(given_rows))
        except HoodieError:
            assert operation == "delete"  # of an empty table
    if forget:
        forget_statistics(storage)
    instants = [each.time for each in table.timeline.commits]
    for where in filters:
        same_rows(table, where)
        same_rows(table, where, query="read_optimized")
        if instants:
            same_rows(table, where, as_of=instants[len(instants) // 2])
            since = instants[len(instants) // 2 - 1] if len(instants) > 1 else None
            pulled = table.changes(since, where=where, meta_columns=True)
            everything = table.changes(since, meta_columns=True)
            assert rows_of(pulled.to_arrow()) == rows_of(whole(everything, where)), where


@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
@settings(max_examples=4, deadline=None)
@given(steps=STEPS, values=st.lists(st.integers(-3, 3), min_size=2, max_size=4))
def test_changes_of_rows_that_fit_before_or_after_are_all_told(table_type, steps, values):
    storage, clock = new_table(table_type=table_type)
    table = opened(storage, clock)
    for operation, given_rows in steps:
        if operation in ("upsert", "insert", "insert_overwrite"):
            getattr(table, operation)(batch(given_rows))
    for value in values:
        told = table.changes(where=f"val = {value}", images="before_after").to_arrow().to_pylist()
        every = table.changes(images="before_after").to_arrow().to_pylist()
        fitting = [e for e in every if value in [side["val"] for side in (e["before"], e["after"]) if side is not None]]
        assert sorted(map(repr, told)) == sorted(map(repr, fitting))


# -- what is left out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forget", [False, True], ids=["by commits", "by footers"])
@pytest.mark.parametrize(
    ("where", "read"),
    [
        ("n = 42", 1),
        ("n < 25", 3),
        ("n IN (3, 97)", 2),
        ("n > 1000", 0),
        ("id = 'k55'", 1),
        ("_hoodie_record_key = 'k55'", 1),
    ],
)
def test_only_files_whose_bounds_fit_are_read(where, read, forget):
    storage, table = numbered()
    if forget:
        forget_statistics(storage)
    assert same_rows(table, where) == Pruning(10, 10, read, 0, 10 if forget else 0)


def test_an_expression_prunes_as_text_does():
    _, table = numbered()
    assert same_rows(table, pc.field("n") == 42).after_statistics == 1


def test_a_filter_that_says_nothing_of_bounds_reads_everything_and_no_footer_twice():
    _storage, table = numbered()
    assert same_rows(table, pc.field("n") + 1 == 43).after_statistics == 10
    assert table.scan().plan.pruning == Pruning(10, 10, 10)


def test_a_log_widens_what_its_slice_may_hold():
    _, table = numbered(table_type="MERGE_ON_READ")
    table.upsert(rows(NUMBERS, ("k05", 1005)))
    assert same_rows(table, "n = 1005").after_statistics == 1
    assert same_rows(table, "n = 5").after_statistics == 1
    assert same_rows(table, "n = 45").after_statistics == 1
    assert same_rows(table, "n IN (500, 1004)").after_statistics == 0
    assert same_rows(table, "n = 1005", query="read_optimized").after_statistics == 0


def test_a_log_without_statistics_keeps_its_slice():
    storage, table = numbered(table_type="MERGE_ON_READ")
    table.upsert(rows(NUMBERS, ("k05", 1005)))
    forget_statistics(storage)
    found = same_rows(table, "n = 45")
    assert found == Pruning(10, 10, 2, without_statistics=1, footers=9)


def test_a_delete_in_a_log_widens_nothing():
    _, table = numbered(table_type="MERGE_ON_READ")
    table.delete(rows(NUMBERS, ("k05", 0)))
    assert same_rows(table, "n = 45").after_statistics == 1


def test_a_column_that_a_file_lacks_is_null_in_it():
    _, table = numbered()
    wider = pa.schema([*NUMBERS, ("late", pa.int32())])
    table.bulk_insert(rows(wider, ("new", 1, 7)))
    assert same_rows(table, "late = 7").after_statistics == 1
    assert same_rows(table, "late IS NULL").after_statistics == 10
    assert same_rows(table, "late IS NOT NULL").after_statistics == 1


@pytest.mark.parametrize("forget", [False, True], ids=["by commits", "by footers"])
@pytest.mark.parametrize(
    ("stored", "now", "old", "new", "where", "read"),
    [
        (pa.int32(), pa.int64(), [-5, 5], 2**40, "v < 0", 1),
        (pa.int32(), pa.int64(), [-5, 5], 2**40, "v > 5", 1),
        (pa.int32(), pa.float64(), [-5, 5], 0.5, "v = 5.0", 1),
        (pa.float32(), pa.float64(), [0.1, 0.3], 7.5, "v = 0.1", 1),
    ],
    ids=str,
)
def test_a_column_whose_type_was_widened(stored, now, old, new, where, read, forget):
    schema = pa.schema([("id", pa.string()), ("v", stored)])
    storage, table = made(schema)
    table.bulk_insert(rows(schema, ("a", old[0]), ("b", old[1])))
    wider = pa.schema([("id", pa.string()), ("v", now)])
    table.bulk_insert(rows(wider, ("c", new)), {"hoodie.python.write.integers.to.floating": "true"})
    if forget:
        forget_statistics(storage)
    assert same_rows(table, where).after_statistics == read


def test_bounds_of_long_texts_are_cut_and_still_hold():
    schema = pa.schema([("id", pa.string()), ("s", pa.string())])
    _, table = made(schema)
    long = ["é" * 50, "\U0010ffff" * 40, "\ud7ff" * 40, "z" * 32, "z" * 33, "\uffff\U00010000"]
    for number, text in enumerate(long):
        table.bulk_insert(rows(schema, (f"k{number}", text)))
    for text in long:
        assert 1 <= same_rows(table, f"s = '{text}'").after_statistics <= 3
        same_rows(table, f"s > '{text}'")
        same_rows(table, f"s <= '{text}'")


def test_decimals_and_nan():
    schema = pa.schema([("id", pa.string()), ("d", pa.decimal128(20, 3)), ("f", pa.float64())])
    _, table = made(schema)
    table.bulk_insert(rows(schema, ("a", Decimal("-10.500"), float("nan"))))
    table.bulk_insert(rows(schema, ("b", Decimal("12345678901234567.125"), 1.0), ("c", None, float("nan"))))
    table.bulk_insert(rows(schema, ("d", Decimal("3.000"), 2.0)))
    assert same_rows(table, "d < -10").after_statistics == 1
    assert same_rows(table, "d = 3").after_statistics == 1
    assert same_rows(table, "f > 1.5").after_statistics == 2  # nothing is known of a file whose only value is NaN
    assert same_rows(table, "NOT f > 1.5").after_statistics == 3
    same_rows(table, "f <> 2.0")


def test_columns_beyond_the_first_ones_are_found_by_footers_only_when_nothing_is_stated():
    schema = pa.schema([("id", pa.string()), *((f"c{n}", pa.int64()) for n in range(40))])
    _, table = made(schema)
    for value in (1, 2):
        table.bulk_insert(rows(schema, (f"k{value}", *[value] * 40)))
    assert same_rows(table, "c3 = 2").after_statistics == 1
    assert same_rows(table, "c39 = 2").after_statistics == 2


def test_damaged_statistics_are_as_none():
    storage, table = numbered()
    content = storage.snapshot()
    for path, (data, mtime) in content.files.items():
        if path.startswith(".hoodie/") and COLUMN_STATS.encode() in data:
            content.files[path] = (data.replace(rb"[0,40,49]", rb"[0,40,4]"), mtime)
    storage.restore(content)
    assert same_rows(table, "n = 45") == Pruning(10, 10, 1, 0, footers=1)


def test_a_merger_may_make_any_value():
    hoodie.register_merger("tests.prune.negated", lambda old, new: new.set_column(1, "n", pc.negate(new.column("n"))))
    _storage, table = made(NUMBERS, table_type="MERGE_ON_READ", more={"hoodie.python.merger": "tests.prune.negated"})
    table.bulk_insert(rows(NUMBERS, ("a", 5)))
    table.bulk_insert(rows(NUMBERS, ("b", 50)))
    table.upsert(rows(NUMBERS, ("a", 7)))
    assert same_rows(table, "n = -7").after_statistics == 1


def test_a_pull_leaves_out_file_groups_that_do_not_fit():
    _, table = numbered(table_type="MERGE_ON_READ")
    since = table.timeline.commits[-1].time
    table.upsert(rows(NUMBERS, ("k05", 1005), ("k15", 5), ("k95", 1006)))
    scan = table.changes(since, where="n > 1000")
    assert scan.plan.pruning == Pruning(3, 3, 2)
    assert sorted(scan.to_arrow().column("id").to_pylist()) == ["k05", "k95"]
    assert "file groups: 3 touched by the range -> 3 after partitions -> 2 after statistics -> 2 read" in scan.explain()


def test_the_plan_is_told():
    storage, table = numbered(table_type="MERGE_ON_READ")
    table.upsert(rows(NUMBERS, ("k45", 46)))
    forget_statistics(storage)
    told = table.scan(where="n = 5").explain()
    assert (
        "file slices: 10 total -> 10 after partitions -> 2 after statistics -> 2 read; 1 with logs (1 log files)"
        in told
    )
    assert "footers read for statistics: 9" in told
    assert "without statistics, and so read: 1" in told


# -- partitions --------------------------------------------------------------------------------------------------------

PLACES = pa.schema([("id", pa.string()), ("p", pa.string()), ("n", pa.int64())])


@pytest.mark.parametrize("hive", long_but(["true"], ["true", "false"]))
@pytest.mark.parametrize("encode", ["true", "false"])
@pytest.mark.parametrize(
    ("kind", "values", "where", "left"),
    [
        (pa.string(), ["sf", "la", "x y"], "p = 'x y'", 1),
        (pa.string(), ["sf", "la", "x y"], "p > 'la'", 2),
        (pa.string(), ["a%20b", "a b", "c"], "p = 'a b'", 1),
        (pa.string(), ["sf", None, "la"], "p IS NULL", 1),
        (pa.string(), ["sf", "", "la"], "p = ''", 1),
        (pa.string(), ["sf", None, "la"], "p = 'sf'", 1),
        (pa.int32(), [-5, 7, 10], "p < 7", 1),
        (pa.int64(), [-5, None, 10], "p IS NOT NULL", 2),
        (pa.date32(), [19000, -1, 20000], "p = '1969-12-31'", 1),
        (pa.bool_(), [True, False, None], "NOT p", 1),
        (pa.bool_(), [True, False, None], "p", 1),
    ],
    ids=str,
)
def test_partitions_whose_values_do_not_fit_are_left_out(kind, values, where, left, hive, encode):
    schema = PLACES.set(1, pa.field("p", kind))
    more = {
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.datasource.write.partitionpath.urlencode": encode,
    }
    storage, table = made(schema, partition="p", more=more)
    table.insert(rows(schema, *((f"k{at}", value, at) for at, value in enumerate(values))))
    forget_statistics(storage)
    assert same_rows(table, where) == Pruning(left, left, left, unlisted=3 - left)


def test_a_partition_and_a_statistic_of_one_condition_meet():
    _storage, table = made(PLACES, partition="p")
    table.insert(rows(PLACES, *((f"k{n}", f"p{n}", n) for n in range(10))))
    assert same_rows(table, "p = 'p3' OR n = 5").after_statistics == 2
    assert same_rows(table, "p IN ('p3', 'p4') AND n = 4") == Pruning(2, 2, 1, unlisted=8)


def test_a_text_with_slashes_may_have_had_dashes():
    storage, table = made(PLACES, partition="p")
    table.insert(rows(PLACES, ("a", "2024/01/02", 1), ("b", "2024/01/03", 2), ("c", "asia/india", 3)))
    forget_statistics(storage)
    assert same_rows(table, "p = 'asia/india'").after_partitions == 1
    assert table.scan(where="p = '2024-01-02'").plan.pruning.after_partitions == 1
    same_rows(table, "p = '2024/01/02'")


def test_paths_of_several_columns():
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("q", pa.int64()), ("n", pa.int64())])
    more = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    storage, table = made(schema, partition="p,q", more=more)
    table.insert(rows(schema, *((f"k{p}{q}", p, q, 0) for p in ("a", "b", None) for q in (1, 2, None))))
    forget_statistics(storage)
    assert same_rows(table, "p = 'a' AND q = 2").after_partitions == 1
    assert same_rows(table, "p IS NULL AND q > 0").after_partitions == 2
    assert same_rows(table, "NOT (p = 'a' OR q = 1)").after_partitions == 2


def listed_folders(storage: MemoryStorage, table: HoodieTable, where: str) -> list[str]:
    """The folders beside the table's own that planning the query lists."""
    found: list[str] = []
    listed = storage.list
    storage.list = lambda folder, **how: (found.append(folder), listed(folder, **how))[1]
    try:
        _ = table.scan(where=where).plan
    finally:
        del storage.list
    return sorted(folder for folder in found if not folder.startswith(".hoodie"))


def test_folders_whose_names_do_not_fit_are_not_listed():
    schema = pa.schema([("id", pa.string()), ("p", pa.int64()), ("q", pa.string()), ("n", pa.int64())])
    storage, table = made(schema, partition="p,q")
    table.insert(rows(schema, *((f"k{p}{q}", p, q, n) for p in (1, 2) for n, q in enumerate(("x", "y", "yz")))))
    assert listed_folders(storage, table, "p = 1 AND q = 'x'") == ["", "1", "1/x"]
    assert listed_folders(storage, table, "q LIKE 'x%'") == ["", "1", "1/x", "2", "2/x"]
    assert listed_folders(storage, table, "p = 2 AND q = 'y'") == ["", "2", "2/y"]
    assert listed_folders(storage, table, "p > 5") == [""]
    assert listed_folders(storage, table, "p = 1 OR n = 0") == ["", "1", "2"]
    assert listed_folders(storage, table, "n = 0") == ["", "1", "2"]
    for where in ("p = 1 AND q = 'x'", "q = 'yz'", "q = 'y'", "q >= 'y'", "p = 1 OR n = 0"):
        same_rows(table, where)


def test_a_partition_that_fits_and_is_gone_is_missed():
    storage, table = made(PLACES, partition="p")
    table.insert(rows(PLACES, ("a", "x", 1), ("b", "y", 2)))
    storage.delete_folder("x")
    same_rows_of_y = table.scan(where="p = 'y'").to_arrow().column("id").to_pylist()
    assert same_rows_of_y == ["b"]
    with pytest.raises(MissingFileError, match="x/"):
        table.scan(where="p = 'x'")


def test_a_folder_that_fits_and_is_no_partition_any_more_is_missed():
    storage, table = made(PLACES, partition="p")
    table.insert(rows(PLACES, ("a", "x", 1), ("b", "y", 2)))
    storage.delete("x/.hoodie_partition_metadata")
    assert table.scan(where="p = 'y'").count() == 1
    with pytest.raises(MissingFileError, match="partition-metadata"):
        table.scan(where="p = 'x'")


def test_paths_made_of_timestamps_say_nothing():
    schema = pa.schema([("id", pa.string()), ("p", pa.int64()), ("n", pa.int64())])
    more = {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
    }
    _storage, table = made(schema, partition="p", more=more)
    table.insert(rows(schema, ("a", 0, 1), ("b", 10**12, 2)))
    assert same_rows(table, "p = 1970").after_partitions == 2
    assert same_rows(table, "p = 0") == Pruning(2, 2, 1)


def test_a_partition_path_is_a_value_itself():
    _storage, table = made(PLACES, partition="p")
    table.insert(rows(PLACES, ("a", "x", 1), ("b", "y", 2)))
    assert same_rows(table, "_hoodie_partition_path = 'y'").after_partitions == 1


# -- tables of Apache Hudi ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", long_but(["v6_cow_simple", "v9_partial_updates"], golden_names()))
def test_tables_of_apache_hudi_give_the_same_rows(name, tmp_path):
    table = hoodie.open_table(copy_golden(name, tmp_path).path)
    everything = table.scan(meta_columns=True).to_arrow()
    for field in everything.schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_string(field.type) or pa.types.is_date(field.type)):
            continue
        values = sorted({v for v in everything.column(field.name).to_pylist() if v is not None})
        for value in {values[0], values[-1], values[len(values) // 2]} if values else ():
            text = str(value).replace("'", "''")
            shown = str(value) if pa.types.is_integer(field.type) else f"'{text}'"
            for operator in ("=", "<", "<>", ">="):
                where = f'"{field.name}" {operator} {shown}'
                found = table.scan(where=where, meta_columns=True).to_arrow()
                assert rows_of(found) == rows_of(everything.filter(parse_filter(where, everything.schema).expression))
        where = f'"{field.name}" IS NULL'
        assert table.scan(where=where).count() == everything.column(field.name).null_count


def test_statistics_of_apache_hudi_leave_files_out(tmp_path):
    table = hoodie.open_table(copy_golden("v6_cow_simple", tmp_path).path)
    key = table.scan(meta_columns=True).to_arrow().column("_hoodie_record_key")[0].as_py()
    found = table.scan(where=f"_hoodie_record_key = '{key}'").plan.pruning
    assert found.footers == found.total > found.after_statistics >= 1
