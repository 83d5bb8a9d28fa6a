"""How a batch's columns meet the table's."""

import pyarrow as pa
import pytest

from hoodie.errors import SchemaError
from hoodie.write.schema import reconcile, storable

i32, i64, f32, f64, text = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
dec = pa.decimal128


def struct(**fields):
    return pa.struct(list(fields.items()))


def one(kind, *, nullable=True):
    return pa.schema([pa.field("c", kind, nullable)])


@pytest.mark.parametrize(
    ("table", "batch", "after"),
    [
        *((kind, kind, kind) for kind in (i32, i64, f32, f64, text, pa.bool_(), pa.binary(), pa.date32(), dec(5, 2))),
        (i32, i64, i64),
        (i64, i32, i64),
        (i32, f32, f32),
        (i32, f64, f64),
        (i64, f32, f32),
        (i64, f64, f64),
        (f32, f64, f64),
        (f32, i32, f32),
        (f64, i64, f64),
        (f64, f32, f64),
        (dec(5, 2), dec(9, 2), dec(9, 2)),
        (dec(9, 2), dec(5, 2), dec(9, 2)),
        (text, pa.null(), text),
        (struct(a=i32, b=text), struct(a=i64, b=text), struct(a=i64, b=text)),
        (struct(a=struct(b=f64)), struct(a=struct(b=i32)), struct(a=struct(b=f64))),
        (struct(a=i64), struct(b=text), struct(a=i64, b=text)),
        (struct(a=i64, b=i64), struct(b=i32, a=i64), struct(a=i64, b=i64)),
        (pa.list_(struct(a=i64)), pa.list_(struct(c=text, a=i32)), pa.list_(struct(a=i64, c=text))),
        (pa.map_(text, struct(a=i64)), pa.map_(text, struct(b=i64)), pa.map_(text, struct(a=i64, b=i64))),
        (pa.list_(i32), pa.list_(i64), pa.list_(i64)),
        (pa.list_(struct(a=i64)), pa.list_(struct(a=i32)), pa.list_(struct(a=i64))),
        (pa.map_(text, i32), pa.map_(text, f64), pa.map_(text, f64)),
    ],
    ids=str,
)
def test_numbers_widen_at_any_depth(table, batch, after):
    assert reconcile(one(table), one(batch), table_name="t") == one(after)


@pytest.mark.parametrize(
    ("table", "batch"),
    [
        (text, i64),
        (i64, text),
        (pa.bool_(), i32),
        (i32, pa.bool_()),
        (text, pa.binary()),
        (pa.date32(), i32),
        (pa.date32(), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), i64),
        (dec(5, 2), dec(9, 3)),
        (dec(5, 2), f64),
        (i64, dec(5, 0)),
        (struct(a=i64), i64),
        (pa.list_(i64), i64),
        (pa.map_(text, i64), pa.list_(i64)),
        (pa.map_(text, i64), pa.map_(i64, i64)),
    ],
    ids=str,
)
def test_everything_else_is_a_mismatch(table, batch):
    with pytest.raises(SchemaError) as told:
        reconcile(one(table), one(batch), table_name="t")
    assert str(told.value).startswith("the batch does not fit table 't':\n  MISMATCH  c  ")
    assert f"table {table}, batch {batch}" in str(told.value)


def test_columns_keep_the_table_s_order_and_new_ones_come_behind():
    table = pa.schema([("a", i64), ("b", text)])
    batch = pa.schema([("z", i64), ("b", text), ("a", i64), ("y", text)])
    assert reconcile(table, batch, table_name="t").names == ["a", "b", "z", "y"]
    assert reconcile(table, pa.schema([("b", text)]), table_name="t") == table
    assert reconcile(None, batch, table_name="t") is batch


def test_whether_a_column_may_be_null_is_the_table_s_business():
    assert reconcile(one(i64, nullable=False), one(i32), table_name="t") == one(i64, nullable=False)
    assert reconcile(one(i64), one(i64, nullable=False), table_name="t") == one(i64)


def test_a_missing_column_that_must_not_be_null_and_a_new_one_are_refused():
    with pytest.raises(SchemaError, match="MISSING   c  table int64 not null, not in the batch"):
        reconcile(one(i64, nullable=False), pa.schema([("d", i64)]), table_name="t")
    with pytest.raises(SchemaError, match="NEW       c  int64 not null: a new column must be nullable"):
        reconcile(pa.schema([("d", i64)]), one(i64, nullable=False), table_name="t")


@pytest.mark.parametrize(
    ("table", "batch", "line"),
    [
        (struct(a=text), struct(a=i64), "MISMATCH  c.a  table string, batch int64"),
        (struct(a=struct(b=i64)), struct(a=struct(b=text)), "MISMATCH  c.a.b  table int64, batch string"),
        (pa.list_(i64), pa.list_(text), "MISMATCH  c.element  table int64, batch string"),
        (pa.map_(text, i64), pa.map_(text, text), "MISMATCH  c.value  table int64, batch string"),
        (struct(a=i64), pa.struct([pa.field("b", i64, False)]), "NEW       c.b  int64 not null"),
        (pa.struct([pa.field("a", i64, False)]), struct(b=i64), "MISSING   c.a  table int64 not null"),
        (struct(a=i64), struct(A=i64), "CASE      c.A  the table has it as 'a'"),
    ],
    ids=str,
)
def test_what_does_not_fit_inside_a_column_is_told_by_its_path(table, batch, line):
    with pytest.raises(SchemaError) as told:
        reconcile(one(table), one(batch), table_name="t")
    assert f"\n  {line}" in str(told.value)


def test_deletes_carry_keys_only_and_add_nothing():
    table = pa.schema([pa.field("a", i64, False), pa.field("b", text, False)])
    keys = pa.schema([pa.field("a", i32), pa.field("new", i64, False)])
    assert reconcile(table, keys, table_name="t", keys_only=True) == table
    with pytest.raises(SchemaError, match="MISMATCH  a  "):
        reconcile(table, pa.schema([("a", text)]), table_name="t", keys_only=True)


def test_all_misfits_are_told_at_once_in_at_most_eight_lines():
    table = pa.schema([("a", i64), pa.field("b", text, False), ("d", i64)])
    batch = pa.schema([("a", text), pa.field("n", i64, False), ("d", i64)])
    with pytest.raises(SchemaError) as told:
        reconcile(table, batch, table_name="t")
    lines = str(told.value).splitlines()
    assert [line.split()[0] for line in lines] == ["the", "MISMATCH", "MISSING", "NEW", "fix:"]
    wide = pa.schema([(f"c{n}", i64) for n in range(100)])
    with pytest.raises(SchemaError) as told:
        reconcile(wide, pa.schema([(f"c{n}", text) for n in range(100)]), table_name="t")
    lines = str(told.value).splitlines()
    assert len(lines) == 8
    assert lines[6] == "  ... and 95 more"
    assert "fix: cast the columns" in lines[7]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        *((kind, kind) for kind in (i32, i64, f32, f64, text, pa.bool_(), pa.binary(), pa.date32())),
        *((kind, i32) for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())),
        (pa.uint32(), i64),
        (pa.float16(), f32),
        (pa.large_string(), text),
        (pa.string_view(), text),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.binary(16), pa.binary()),
        (pa.dictionary(i32, text), text),
        (pa.dictionary(pa.int8(), pa.large_string()), text),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Rome"), pa.timestamp("us", "UTC")),
        (dec(38, 10), dec(38, 10)),
        (pa.decimal256(20, 2), dec(20, 2)),
        (pa.list_(pa.int8()), pa.list_(pa.field("element", i32))),
        (pa.large_list(text), pa.list_(pa.field("element", text))),
        (pa.list_(f32, 3), pa.list_(pa.field("element", f32))),
        (struct(a=pa.uint8(), b=struct(c=pa.large_string())), struct(a=i32, b=struct(c=text))),
        (pa.map_(pa.large_string(), pa.uint32()), pa.map_(text, i64)),
        (pa.list_(struct(a=pa.map_(text, pa.int16()))), pa.list_(pa.field("element", struct(a=pa.map_(text, i32))))),
    ],
    ids=str,
)
def test_types_are_stored_as_what_every_engine_has(given, stored):
    found = storable(one(given))
    assert found == one(stored)
    assert storable(found) == found


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint64(),
        pa.time32("s"),
        pa.time64("us"),
        pa.duration("s"),
        dec(20, -2),
        pa.decimal256(40, 2),
        pa.struct([]),
        struct(a=pa.duration("s")),
        pa.list_(pa.uint64()),
        pa.map_(i64, text),
        pa.map_(text, pa.duration("s")),
        pa.month_day_nano_interval(),
    ],
    ids=str,
)
def test_other_types_are_refused_with_every_such_column(kind):
    with pytest.raises(SchemaError) as told:
        storable(pa.schema([("fine", i64), ("c", kind), ("d", kind)]))
    assert f"cannot store: c {kind}, d {kind}; cast them first" in str(told.value)


def test_meta_columns_are_not_the_batch_s():
    assert storable(pa.schema([("_hoodie_commit_time", text), ("a", i64), ("_hoodie_file_name", text)])).names == ["a"]


def test_nullability_is_kept_and_names_are_unique():
    assert storable(one(pa.int8(), nullable=False)) == one(i32, nullable=False)
    with pytest.raises(SchemaError, match="column 'a' stands twice"):
        storable(pa.schema([("a", i64), ("b", i64), ("a", text)]))
