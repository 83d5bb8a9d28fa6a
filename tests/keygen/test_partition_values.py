"""Paths -> values: whatever the generator makes of a value, the bounds of its path hold it."""

from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hoodie
from hoodie.errors import KeyFieldError
from hoodie.format.column_stats import as_array
from hoodie.keygen.generator import key_generator
from hoodie.keygen.partition_values import judged_levels, ranges_below, ranges_of_paths
from hoodie.model.statistics import UNKNOWN, ValueRange
from hoodie.options.parse import parse_write_options
from hoodie.options.table import TableConfig, parse_table_config, table_properties

HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
SLASH = "hoodie.datasource.write.slash.separated.date.partitioning"
TEXTS = [
    "",
    "a b",
    "a%20b",
    "p=1",
    "default",
    "2024-01-02",
    "x/y",
    "__HIVE_DEFAULT_PARTITION__",
    "é",
    "\U00010000",
    "SF",
]
VALUES = {
    pa.string(): st.none() | st.sampled_from(TEXTS) | st.text(max_size=5),
    pa.int32(): st.none() | st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.none() | st.integers(-(2**63), 2**63 - 1),
    pa.date32(): st.none() | st.dates(date(1, 1, 1), date(9999, 12, 31)),
    pa.bool_(): st.none() | st.booleans(),
}


def config(fields: str = "p", more: dict[str, str] | None = None, drop: tuple[str, ...] = ()) -> TableConfig:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": fields,
        **(more or {}),
    }
    properties = table_properties(parse_write_options(options).to_create())
    return parse_table_config({k: v for k, v in properties.items() if k not in drop}, uri="memory://t")


def holds(known: ValueRange, value: object, kind: pa.DataType) -> bool:
    if value is None:
        return known.nulls > 0
    if known == UNKNOWN or not known.bounded:
        return True
    if not known.values:
        return False
    ends = as_array([known.low, known.high], kind)
    one = pa.scalar(value, kind)
    return bool(pc.and_(pc.less_equal(ends[0], one), pc.greater_equal(ends[1], one)).as_py())


def check_folders(read_by: TableConfig, kinds: dict[str, pa.DataType], values: dict[str, object], path: str) -> None:
    """What is known of the folders on the way to a path holds the values that made it."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        folder = "/".join(parts[:depth])
        found = ranges_below(read_by, kinds, pa.schema(kinds), [folder])
        assert all(holds(known, values[name], kinds[name]) for name, (known,) in found.items()), folder


@given(st.data(), st.sampled_from(list(VALUES)), st.booleans(), st.booleans(), st.booleans())
def test_the_bounds_of_a_path_hold_the_value_that_made_it(data, kind, hive, encode, slash):
    value = data.draw(VALUES[kind])
    flags = {HIVE: hive, ENCODE: encode, SLASH: slash}
    made = config(more={name: str(on).lower() for name, on in flags.items()})
    # As another writer may have been told without the table knowing.
    told = config(more={HIVE: str(hive).lower(), ENCODE: str(encode).lower()})
    try:
        path = key_generator(made).partitions(pa.table({"p": pa.array([value], kind)}))[0].as_py()
    except KeyFieldError:
        assume(False)
    for read_by in (made, told):
        assert holds(ranges_of_paths(read_by, {"p": kind}, [path])["p"][0], value, kind), path
        check_folders(read_by, {"p": kind}, {"p": value}, path)


@given(st.data(), st.booleans(), st.booleans())
def test_the_bounds_of_paths_of_two_columns_hold_the_values(data, hive, encode):
    kinds = {"p": pa.string(), "q": data.draw(st.sampled_from(list(VALUES)))}
    values = {name: data.draw(VALUES[kind]) for name, kind in kinds.items()}
    made = config("p,q", {HIVE: str(hive).lower(), ENCODE: str(encode).lower()})
    try:
        rows = pa.table({name: pa.array([value], kinds[name]) for name, value in values.items()})
        path = key_generator(made).partitions(rows)[0].as_py()
    except KeyFieldError:
        assume(False)
    found = ranges_of_paths(made, kinds, [path])
    assert all(holds(found[name][0], value, kinds[name]) for name, value in values.items()), path
    check_folders(made, kinds, values, path)


@given(st.data(), st.booleans(), st.booleans())
def test_a_level_of_folders_counts_where_no_value_before_it_takes_two(data, hive, encode):
    kinds = {name: data.draw(st.sampled_from(list(VALUES))) for name in ("p", "q", "r")}
    values = {name: data.draw(VALUES[kind]) for name, kind in kinds.items()}
    made = config("p,q,r", {HIVE: str(hive).lower(), ENCODE: str(encode).lower()})
    try:
        rows = pa.table({name: pa.array([value], kinds[name]) for name, value in values.items()})
        path = key_generator(made).partitions(rows)[0].as_py()
    except KeyFieldError:
        assume(False)
    check_folders(made, kinds, values, path)
    plain = [name for name in ("p", "q") if encode or kinds[name] != pa.string()]
    levels = 3 if plain == ["p", "q"] else 2 if "p" in plain else 1
    assert judged_levels(made, kinds, pa.schema(kinds)) == levels


def test_a_text_before_another_column_may_take_several_folders():
    """Apache Hudi writes such paths, and we read them."""
    kinds = {"p": pa.string(), "q": pa.string()}
    assert judged_levels(config("p,q"), kinds, pa.schema(kinds)) == 1
    assert ranges_below(config("p,q"), kinds, pa.schema(kinds), ["x", "x/y"]) == {"p": [ValueRange("x", "x0", 0)] * 2}


@pytest.mark.parametrize(
    ("kind", "path", "known"),
    [
        (pa.string(), "sf", ValueRange("sf", "sf", 0)),
        (pa.string(), "default", ValueRange("default", "default", 1)),
        (pa.string(), "__HIVE_DEFAULT_PARTITION__", ValueRange("", "__HIVE_DEFAULT_PARTITION__", 1)),
        (pa.string(), "2024/01/02", ValueRange("2024-01-02", "2024/01/02", 0)),
        (pa.string(), "p=sf", UNKNOWN),
        (pa.int64(), "__HIVE_DEFAULT_PARTITION__", ValueRange(values=False)),
        (pa.int64(), "-7", ValueRange(-7, -7, 0)),
        (pa.int64(), "007", UNKNOWN),
        (pa.int32(), "3000000000", UNKNOWN),
        (pa.int64(), "default", UNKNOWN),
        (pa.date32(), "1970-01-02", ValueRange(1, 1, 0)),
        (pa.date32(), "19700102", UNKNOWN),
        (pa.date32(), "19724", UNKNOWN),
        (pa.bool_(), "true", ValueRange(True, True, 0)),
        (pa.bool_(), "TRUE", UNKNOWN),
        (pa.timestamp("us"), "1", UNKNOWN),
        (pa.float64(), "1.0", UNKNOWN),
    ],
    ids=str,
)
def test_a_path_counts_where_its_value_is_certain(kind, path, known):
    assert ranges_of_paths(config(), {"p": kind}, [path])["p"] == [known]


@pytest.mark.parametrize(
    ("path", "drop"), [("p=sf", (HIVE,)), ("x=1", (HIVE,)), ("a%20b", (ENCODE,))], ids=["hive", "other", "encoded"]
)
def test_a_path_that_may_be_of_a_layout_which_the_table_does_not_state_says_nothing(path, drop):
    assert ranges_of_paths(config(drop=drop), {"p": pa.string()}, [path])["p"] == [UNKNOWN]


def test_paths_with_too_many_parts_say_nothing():
    kinds = {"p": pa.string(), "q": pa.string()}
    found = ranges_of_paths(config("p,q"), kinds, ["a/b", "a/b/c", "a"])
    assert found["p"] == [ValueRange("a", "a", 0), UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    "more",
    [
        {
            "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy",
        },
        {"hoodie.python.merger": "tests.partition_values"},
    ],
    ids=["timestamps", "merger"],
)
def test_tables_whose_paths_are_made_otherwise_say_nothing(more):
    hoodie.register_merger("tests.partition_values", lambda old, new: new)
    assert ranges_of_paths(config(more=more), {"p": pa.int64()}, ["1970"]) == {}


def test_a_record_index_may_keep_rows_in_another_partition():
    table = config()
    properties = {**table.raw, "hoodie.table.metadata.partitions": "files,record_index"}
    assert ranges_of_paths(parse_table_config(properties, uri="memory://t"), {"p": pa.string()}, ["a"]) == {}


def test_of_a_custom_generator_the_plain_columns_count():
    more = {
        "hoodie.datasource.write.keygenerator.type": "CUSTOM",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
    }
    found = ranges_of_paths(config("p:SIMPLE,q:TIMESTAMP", more), {"p": pa.string(), "q": pa.int64()}, ["sf/1970"])
    assert found == {"p": [ValueRange("sf", "sf", 0)]}
