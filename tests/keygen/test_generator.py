"""Record keys and partition paths: Apache Hudi's strings, and nothing that leads out of the table."""

import datetime
import pickle
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import KeyFieldError, UnsupportedTableError
from hoodie.keygen.columns import column
from hoodie.keygen.generator import KeyGenerator, key_generator
from hoodie.options.table import parse_table_config, table_properties
from hoodie.options.table_options import TableOptions
from hoodie.options.values import KeyGeneratorType
from tests.golden_tables import FOLDER, golden_names

SIMPLE, COMPLEX, NON_PARTITION = (
    KeyGeneratorType.SIMPLE,
    KeyGeneratorType.COMPLEX,
    KeyGeneratorType.NON_PARTITION,
)
UTC = datetime.UTC


def keys(*columns, kind=COMPLEX, **more):
    table = pa.table({f"c{number}": values for number, values in enumerate(columns)})
    return KeyGenerator(kind, tuple(table.column_names), **more).keys(table).to_pylist()


def one_key(values):
    """The strings of one column, which no generator changes."""
    return keys(values, kind=NON_PARTITION)


def paths(*columns, kind=None, hive=False, encode=False, names=None):
    table = pa.table(dict(zip(names or "pqrst", columns)))
    chosen = kind or (SIMPLE if len(columns) == 1 else COMPLEX)
    generator = KeyGenerator(chosen, ("id",), tuple(table.column_names), hive, encode)
    return generator.partitions(table).to_pylist()


# -- what Apache Hudi wrote ----------------------------------------------------------------------------------------

OBSERVED = pa.table(
    {
        "t": pa.array([1704164645678901, -1000, 1704067200000000], pa.timestamp("us", "UTC")),
        "d": pa.array([datetime.date(2024, 2, 3), datetime.date(1960, 2, 3), None]),
        "m": pa.array([Decimal("1.500"), Decimal("-0.001"), Decimal(100)], pa.decimal128(12, 3)),
        "b": pa.array([True, False, None]),
        "f": pa.array([1.5, 1e-5, 1e20], pa.float32()),
        "x": pa.array([1e10, 0.1, float("nan")]),
        "y": pa.array([b"\x01\xff", b"", None]),
        "l": pa.array([7, -7, 0]),
        "s": pa.array(["s", "a/b:c d", ""]),
    }
)


def test_keys_of_every_type_are_those_of_hudi():
    assert KeyGenerator(COMPLEX, tuple("tdmbfxyls")).keys(OBSERVED).to_pylist() == [
        "t:1704164645678901,d:2024-02-03,m:1.500,b:true,f:1.5,x:1.0E10,y:01ff,l:7,s:s",
        "t:-1000,d:1960-02-03,m:-0.001,b:false,f:1.0E-5,x:0.1,y:__empty__,l:-7,s:a/b:c d",
        "t:1704067200000000,d:__null__,m:100.000,b:__null__,f:1.0E20,x:NaN,y:__null__,l:0,s:__empty__",
    ]


PARTITIONED = OBSERVED.set_column(
    OBSERVED.schema.get_field_index("s"), "s", pa.array(["s", "a b:c", ""])
)  # fmt: skip


def test_partition_paths_of_every_type_are_those_of_hudi():
    plain = KeyGenerator(COMPLEX, ("l",), tuple("tdmbxs"))
    assert plain.partitions(PARTITIONED.slice(0, 1)).to_pylist() == ["1704164645678901/2024-02-03/1.500/true/1.0E10/s"]
    second = PARTITIONED.slice(1, 1).set_column(1, "d", pa.array([None], pa.date32()))
    assert plain.partitions(second).to_pylist() == ["-1000/__HIVE_DEFAULT_PARTITION__/-0.001/false/0.1/a b:c"]
    encoded = replace(plain, hive_style=True, url_encode=True)
    assert encoded.partitions(second).to_pylist() == [
        "t=-1000/d=__HIVE_DEFAULT_PARTITION__/m=-0.001/b=false/x=0.1/s=a b%3Ac"
    ]
    none = "__HIVE_DEFAULT_PARTITION__"
    assert encoded.partitions(PARTITIONED.slice(2, 1)).to_pylist() == [
        f"t=1704067200000000/d={none}/m=100.000/b={none}/x=NaN/s={none}"
    ]


@pytest.mark.parametrize(
    ("value", "escaped"), [("a/b", "a%2Fb"), ("c d=1", "c d%3D1"), ("ü%:", "ü%25%3A"), (" }&<>|,;@~é", " }&<>|,;@~é")]
)
def test_escapes_are_those_of_hudi(value, escaped):
    assert paths([value], encode=True) == [escaped]


def test_exactly_the_characters_of_hudi_are_escaped():
    every = [chr(code) for code in range(1, 0x250)]
    special = [*map(chr, range(1, 0x20)), "\x7f", *"\"#%'*/:=?\\{[]^"]
    written = paths([f"x{c}" for c in every], encode=True)
    assert [c for c, path in zip(every, written) if path != f"x{c}"] == sorted(special)
    assert all(path == f"x%{ord(c):02X}" for c, path in zip(every, written) if c in special)
    assert paths(["\0"], encode=True) == ["%00"]


def golden_base_files():
    for table in (FOLDER / name for name in golden_names()):
        lines = (table / "table/.hoodie/hoodie.properties").read_text(encoding="utf-8").splitlines()
        config = parse_table_config(dict(x.split("=", 1) for x in lines if not x.startswith("#")), uri=table.name)
        for path in sorted(table.glob("table/**/*.parquet")):
            if ".hoodie" not in path.relative_to(table / "table").parts:
                yield config, path


@pytest.mark.parametrize(
    ("config", "path"), list(golden_base_files()), ids=lambda value: getattr(value, "stem", getattr(value, "name", ""))
)
def test_keys_and_paths_of_golden_rows_are_made_again(config, path):
    rows = pq.ParquetFile(path).read()
    generator = key_generator(config)
    assert generator.keys(rows).to_pylist() == rows.column("_hoodie_record_key").to_pylist()
    assert generator.partitions(rows).to_pylist() == rows.column("_hoodie_partition_path").to_pylist()


def test_golden_tables_with_rows_are_there():
    assert len({config.name for config, _ in golden_base_files()}) >= 10


# -- strings of values ---------------------------------------------------------------------------------------------

# Printed by Double.toString and Float.toString of Java 17 (4.9E-324 and the like are the same from Java 19 on).
JAVA_DOUBLES = {
    0.0: "0.0", 1.0: "1.0", -1.5: "-1.5", 0.001: "0.001", 9.999e-4: "9.999E-4", 9999999.999: "9999999.999", 1e7: "1.0E7",
    1e22: "1.0E22", 123456789012.5: "1.234567890125E11", 4.9e-324: "4.9E-324", 2e-323: "2.0E-323",
    2.2250738585072014e-308: "2.2250738585072014E-308", 1e16: "1.0E16", float("inf"): "Infinity",
    float("-inf"): "-Infinity", 100.0: "100.0", -1234567.0: "-1234567.0", 1.7976931348623157e308: "1.7976931348623157E308",
}  # fmt: skip
JAVA_FLOATS = {
    0.1: "0.1", 16777216.0: "1.6777216E7", 9999999.0: "9999999.0", 1.4e-45: "1.4E-45", 1e20: "1.0E20", 0.33333334: "0.33333334",
    3.4028235e38: "3.4028235E38", 0.001: "0.001", 1e-4: "1.0E-4",
}  # fmt: skip


def test_doubles_are_written_as_java_does():
    assert one_key(pa.array(JAVA_DOUBLES, pa.float64())) == list(JAVA_DOUBLES.values())
    assert one_key(pa.array([-0.0, float("nan")])) == ["-0.0", "NaN"]


def test_floats_are_written_as_java_does():
    assert one_key(pa.array(JAVA_FLOATS, pa.float32())) == list(JAVA_FLOATS.values())
    assert one_key(pa.array([np.float16(1.5), np.float16(65504)], pa.float16())) == ["1.5", "65504.0"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_as_itself(value):
    (text,) = one_key(pa.array([value], pa.float64()))
    assert float(text) == value
    assert re.fullmatch(r"-?\d+\.\d+(E-?\d+)?", text)
    assert ("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_reads_back_as_itself(value):
    (text,) = one_key(pa.array([value], pa.float32()))
    assert np.float32(text) == np.float32(value)
    assert re.fullmatch(r"-?\d+\.\d+(E-?\d+)?", text)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([-128, 127], pa.int8()), ["-128", "127"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([Decimal("1E-7"), Decimal(0), Decimal("0.000001")], pa.decimal128(12, 7)), ["1E-7", "0E-7", "0.0000010"]),
        (pa.array([Decimal("-12")], pa.decimal256(50, 2)), ["-12.00"]),
        (pa.array([0, -719163, 2932897, -1000000], pa.int32()).cast(pa.date32()),
         ["1970-01-01", "0000-12-31", "+10000-01-01", "-0768-02-04"]),
        (pa.array([86_400_000], pa.int64()).cast(pa.date64()), ["1970-01-02"]),
        (pa.array([-1, 2], pa.timestamp("s")), ["-1000000", "2000000"]),
        (pa.array([-1], pa.timestamp("ms", "Asia/Tokyo")), ["-1000"]),
        (pa.array([-1, 1999, None, -1000, 0], pa.timestamp("ns", "UTC")).drop_null(), ["-1", "1", "-1", "0"]),
        (pa.array([b"\x00\xab"], pa.large_binary()), ["00ab"]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), ["6162", "6364"]),
        (pa.array(["a", "ü", "a"]).dictionary_encode(), ["a", "ü", "a"]),
        (pa.array([1.5, 2.0, 1.5]).dictionary_encode(), ["1.5", "2.0", "1.5"]),
        (pa.array(["a"], pa.large_string()), ["a"]),
        (pa.array(["a"], pa.string_view()), ["a"]),
    ],
)  # fmt: skip
def test_other_values_are_written_as_hudi_does(values, texts):
    assert one_key(values) == texts


def test_slices_and_nulls_of_binaries_are_written_right():
    values = pa.array([b"skip", b"\xff", None, b"", b"\x10\x20"])
    assert keys(values.slice(1), [1] * 4) == ["c0:ff,c1:1", "c0:__null__,c1:1", "c0:__empty__,c1:1", "c0:1020,c1:1"]


@pytest.mark.parametrize(
    "values", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([1], pa.time64("us")), pa.array([1], pa.duration("s"))]
)
def test_types_that_make_no_key_are_refused(values):
    with pytest.raises(KeyFieldError, match=r"record key column 'c0' is of type .*, which makes no record key"):
        one_key(values)
    with pytest.raises(KeyFieldError, match="partition column 'p' is of type"):
        paths(values)


# -- record keys ---------------------------------------------------------------------------------------------------


def test_nothing_is_escaped_in_a_composite_key():
    assert keys(["x4", "a:b,c"], [1, 8]) == ["c0:x4,c1:1", "c0:a:b,c,c1:8"]


def test_a_single_complex_key_is_named_or_not():
    assert keys(["v"]) == ["c0:v"]
    assert keys(["v"], name_single_key=False) == ["v"]
    assert keys(["v"], [1], name_single_key=False) == ["c0:v,c1:1"]


def test_keys_of_a_table_without_partitions():
    assert keys(["v"], kind=NON_PARTITION) == ["v"]
    assert keys(["v"], [1], kind=NON_PARTITION) == ["c0:v,c1:1"]


def test_keys_keep_the_order_of_rows_over_chunks_of_any_shape():
    left = pa.chunked_array([["a", "b"], [], ["c"]])
    right = pa.chunked_array([[1], [2, 3]])
    table = pa.table({"k": left, "n": right})
    generator = KeyGenerator(COMPLEX, ("k", "n"), ("n",))
    assert generator.keys(table).to_pylist() == ["k:a,n:1", "k:b,n:2", "k:c,n:3"]
    assert generator.partitions(table).to_pylist() == ["1", "2", "3"]


def test_an_empty_batch_has_no_keys():
    table = pa.table({"k": pa.array([], pa.int64()), "p": pa.array([], pa.string())})
    for generator in (
        KeyGenerator(SIMPLE, ("k",), ("p",)),
        KeyGenerator(COMPLEX, ("k", "p")),
        KeyGenerator(NON_PARTITION, ("k",)),
    ):
        assert generator.keys(table).type == generator.partitions(table).type == pa.string()
        assert len(generator.keys(table)) == len(generator.partitions(table)) == 0  # fmt: skip


@pytest.mark.parametrize("kind", [SIMPLE, NON_PARTITION, COMPLEX])
def test_a_row_without_key_is_told_with_column_count_and_first_row(kind):
    with pytest.raises(KeyFieldError) as caught:
        keys(["a", "", None, "b"], kind=kind)
    assert "column 'c0' is null or empty in 2 row(s), first in row 1 (counted from 0)" in str(caught.value)


def test_rows_without_key_are_counted_over_all_chunks():
    with pytest.raises(KeyFieldError, match=r"in 2 row\(s\), first in row 3 "):
        keys(pa.chunked_array([["a", "b"], ["c", None], [None]]), kind=SIMPLE)


def test_a_composite_key_needs_one_part_only():
    assert keys(["a", "", None], [None, 1, 2]) == ["c0:a,c1:__null__", "c0:__empty__,c1:1", "c0:__null__,c1:2"]
    with pytest.raises(KeyFieldError, match=r"columns 'c0', 'c1' are all null or empty in 1 row\(s\), first in row 1 "):
        keys(["a", ""], pa.array([1, None]))
    with pytest.raises(KeyFieldError, match=r"in 2 row\(s\)"):
        keys(pa.nulls(2), pa.nulls(2, pa.int32()))


# -- columns -------------------------------------------------------------------------------------------------------


def test_a_missing_column_is_told_with_the_columns_and_the_nearest():
    table = pa.table({name: [1] for name in ("id", "name", "ts", "dt")})
    with pytest.raises(KeyFieldError) as caught:
        KeyGenerator(SIMPLE, ("idd",)).keys(table)
    assert str(caught.value).splitlines() == [
        "record key column 'idd' is not in the data.",
        "  columns: id, name, ts, dt        did you mean 'id'?",
        "  set by:  hoodie.datasource.write.recordkey.field, or remembered by the table from its creation",
        "  fix:     name a column of the data, or rename the data's column",
    ]
    with pytest.raises(KeyFieldError, match=r"^partition column 'zz' is not in the data.\n(.*\n)*.*partitionpath"):
        KeyGenerator(SIMPLE, ("id",), ("zz",)).partitions(table)


def test_a_wide_table_is_told_briefly():
    with pytest.raises(KeyFieldError, match="c19 and 80 more"):
        column(pa.table({f"c{n}": [1] for n in range(100)}), "zzz", role="ordering")


def test_a_column_that_is_there_twice_is_ambiguous():
    table = pa.table([[1], [2]], names=["id", "id"])
    with pytest.raises(KeyFieldError, match="'id' is ambiguous: 2 columns"):
        KeyGenerator(SIMPLE, ("id",)).keys(table)


def test_nested_columns_are_named_by_dots():
    kind = pa.struct([("zip", pa.int32()), ("geo", pa.struct([("lat", pa.float64())]))])
    rows = [{"zip": 1, "geo": {"lat": 0.5}}, {"zip": 2, "geo": None}, None]
    table = pa.table({"addr": pa.array(rows, kind), "id": [7, 8, 9]})
    generator = KeyGenerator(COMPLEX, ("id", "addr.geo.lat"), ("addr.zip",), hive_style=True)
    assert generator.keys(table).to_pylist() == [
        "id:7,addr.geo.lat:0.5", "id:8,addr.geo.lat:__null__", "id:9,addr.geo.lat:__null__"
    ]  # fmt: skip
    assert generator.partitions(table).to_pylist() == [
        "addr.zip=1", "addr.zip=2", "addr.zip=__HIVE_DEFAULT_PARTITION__"
    ]  # fmt: skip
    with pytest.raises(KeyFieldError, match=r"'addr\.zipp' is not in the data.\n  columns: zip, geo .*'zip'"):
        column(table, "addr.zipp", role="record key")
    with pytest.raises(KeyFieldError, match=r"'id\.x' is not in the data.\n  columns: none"):
        column(table, "id.x", role="record key")


# -- partition paths -----------------------------------------------------------------------------------------------


def test_null_and_empty_values_share_the_default_partition():
    assert paths(["a", None, ""]) == ["a", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"]
    assert paths(pa.nulls(1), [1], hive=True, encode=True) == ["p=__HIVE_DEFAULT_PARTITION__/q=1"]


@pytest.mark.parametrize("kind", [SIMPLE, COMPLEX, NON_PARTITION])
def test_without_partition_columns_the_path_is_empty(kind):
    table = pa.table({"id": [1, 2]})
    assert KeyGenerator(kind, ("id",)).partitions(table).to_pylist() == ["", ""]


def test_a_slash_makes_folders_in_a_single_partition_column():
    assert paths(["2024/01/02", "x/y:z"]) == ["2024/01/02", "x/y:z"]
    assert paths(["us/east"], hive=True, names=["region"]) == ["region=us/east"]


@pytest.mark.parametrize("hive", [False, True])
def test_a_slash_in_one_of_several_partition_columns_needs_encoding(hive):
    with pytest.raises(KeyFieldError) as caught:
        paths(["a", "us/east"], [1, 2], hive=hive)
    assert "partition column 'p' holds 'us/east' in row 1 (counted from 0)" in str(caught.value)
    assert "hoodie.datasource.write.partitionpath.urlencode=true" in str(caught.value)
    assert paths(["us/east"], [1], hive=hive, encode=True)[0].endswith(("us%2Feast/1", "p=us%2Feast/q=1"))


OUTSIDE = ["..", ".", "../x", "a/../b", "a/..", "a/./b", "/", "/etc", "a//b", "a/", "x\0y", "file:/x", "s3://b/x", "12:30",
           ".hoodie", ".hoodie/metadata", ".hoodie_partition_metadata"]  # fmt: skip


@pytest.mark.parametrize("value", OUTSIDE)
def test_a_value_that_leads_outside_is_refused(value):
    with pytest.raises(KeyFieldError, match=r"partition column 'p' holds .* in row 2 \(counted from 0\): "):
        paths(["ok", "ok", value])
    with pytest.raises(KeyFieldError, match="partition column 'p' holds"):
        paths([value], [1])


@pytest.mark.parametrize("value", [value for value in OUTSIDE if not value.startswith(".hoodie")])
def test_the_same_in_hive_style(value):
    with pytest.raises(KeyFieldError, match="partition column 'p' holds"):
        paths([value], hive=True)


@pytest.mark.parametrize("value", ["..", "."])
def test_encoding_does_not_make_dots_a_folder(value):
    with pytest.raises(KeyFieldError, match=r"lead to another folder\n  fix:     change the value$"):
        paths([value], encode=True)


def test_a_bad_row_is_found_behind_the_first_piece():
    values = pa.array(["a"]).take(pa.array(np.zeros(300_000, np.int64)))
    with pytest.raises(KeyFieldError, match=r"holds '\.\.' in row 300000 "):
        paths(pa.chunked_array([values, [".."]]))


@given(st.text(max_size=6) | st.sampled_from(OUTSIDE), st.booleans(), st.booleans(), st.integers(0, 1))
def test_no_path_leaves_the_table(value, hive, encode, more):
    columns = [[value], *[["x"]] * more]
    try:
        (path,) = paths(*columns, hive=hive, encode=encode)
    except KeyFieldError:
        return
    parts = path.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert "\0" not in path
    assert ":" not in parts[0]
    assert not parts[0].startswith(".hoodie")
    if more or encode:
        assert len(parts) == 1 + more


# -- against a plain model -----------------------------------------------------------------------------------------


def model_text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return str((value - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def model_key(row):
    parts = {name: model_text(value) for name, value in row.items()}
    if not any(parts.values()):
        return None
    spelled = {name: "__null__" if text is None else text or "__empty__" for name, text in parts.items()}
    return ",".join(f"{name}:{text}" for name, text in spelled.items())


def model_path(row, *, hive, encode):
    segments = []
    for name, value in row.items():
        text = model_text(value) or "__HIVE_DEFAULT_PARTITION__"
        if encode:
            special = [*map(chr, range(0x20)), "\x7f", *"\"#%'*/:=?\\{[]^"]
            text = "".join(f"%{ord(c):02X}" if c in special else c for c in text)
        segments.append(f"{name}={text}" if hive else text)
    return "/".join(segments)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "s": st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
            "i": st.none() | st.integers(-(2**31), 2**31 - 1),
            "m": st.none() | st.decimals(-10000, 10000, places=3),
            "d": st.none() | st.dates(),
            "t": st.none() | st.datetimes(timezones=st.just(UTC)),
            "b": st.none() | st.booleans(),
            "y": st.none() | st.binary(max_size=3),
        }
    ),
    min_size=1,
    max_size=8,
)
SCHEMA = pa.schema(
    [("s", pa.string()), ("i", pa.int32()), ("m", pa.decimal128(12, 3)), ("d", pa.date32()),
     ("t", pa.timestamp("us", "UTC")), ("b", pa.bool_()), ("y", pa.binary())]
)  # fmt: skip


@given(ROWS, st.permutations("simdtby"), st.integers(2, 7))
def test_keys_are_those_of_the_model(rows, order, count):
    names = order[:count]
    expected = [model_key({name: row[name] for name in names}) for row in rows]
    generator = KeyGenerator(COMPLEX, tuple(names))
    table = pa.Table.from_pylist(rows, SCHEMA)
    if None in expected:
        with pytest.raises(
            KeyFieldError, match=rf"in {expected.count(None)} row\(s\), first in row {expected.index(None)} "
        ):
            generator.keys(table)
    else:
        assert generator.keys(table).to_pylist() == expected


@given(ROWS, st.permutations("imdtby"), st.integers(1, 6), st.booleans(), st.booleans())
def test_paths_are_those_of_the_model(rows, order, count, hive, encode):
    names = order[:count]
    expected = [model_path({name: row[name] for name in names}, hive=hive, encode=encode) for row in rows]
    generator = KeyGenerator(COMPLEX, ("s",), tuple(names), hive, encode)
    assert generator.partitions(pa.Table.from_pylist(rows, SCHEMA)).to_pylist() == expected


@given(
    st.lists(st.text(max_size=5).filter(lambda text: text not in {".", ".."} and not text.startswith(".hoodie"))),
    st.booleans(),
)
def test_encoded_paths_of_any_text_are_those_of_the_model(values, hive):
    expected = [model_path({"p": value}, hive=hive, encode=True) for value in values]
    assert paths(pa.array(values, pa.string()), hive=hive, encode=True) == expected


# -- of a table ----------------------------------------------------------------------------------------------------


def config(**changed):
    options = {"name": "t", "record_key_fields": ("id",), "partition_fields": ("p",), **changed}
    return table_properties(TableOptions(**options))


def test_the_generator_of_a_table_is_its_configuration():
    stored = parse_table_config(config(hive_style=True, url_encode=True), uri="u")
    generator = key_generator(stored)
    assert generator == KeyGenerator(SIMPLE, ("id",), ("p",), hive_style=True, url_encode=True)
    assert pickle.loads(pickle.dumps(generator)) == generator
    assert key_generator(stored, name_single_key=False).name_single_key is False


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"hoodie.table.keygenerator.type": "GLOBAL_DELETE"}, "has key generator GLOBAL_DELETE"),
        ({"hoodie.table.keygenerator.type": "com.acme.Keys"}, "has key generator OTHER"),
    ],
)
def test_tables_whose_keys_cannot_be_made_are_unsupported(changed, told):
    with pytest.raises(UnsupportedTableError, match=told):
        key_generator(parse_table_config(config() | changed, uri="u"))
