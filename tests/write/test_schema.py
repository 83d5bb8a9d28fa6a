"""How a batch's columns meet the table's."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaError
from hoodie.write.schema import Leave, reconcile, storable

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
        (i32, f32, i32),
        (i32, f64, i32),
        (i64, f32, i64),
        (i64, f64, i64),
        (f32, f64, f64),
        (f32, i32, f32),
        (f64, i64, f64),
        (f64, f32, f64),
        (dec(5, 2), dec(9, 2), dec(9, 2)),
        (dec(9, 2), dec(5, 2), dec(9, 2)),
        (dec(5, 2), dec(9, 3), dec(8, 2)),
        (dec(10, 2), dec(5, 4), dec(10, 2)),
        (dec(10, 2), dec(20, 4), dec(18, 2)),
        (dec(10, 4), dec(38, 0), dec(38, 4)),
        (dec(5, 2), i64, dec(5, 2)),
        (text, pa.null(), text),
        (pa.list_(text), pa.null(), pa.list_(text)),
        (pa.list_(text), pa.list_(pa.null()), pa.list_(text)),
        (struct(a=i64, b=text), struct(a=pa.null(), b=pa.null()), struct(a=i64, b=text)),
        (pa.map_(text, f32), pa.map_(text, pa.null()), pa.map_(text, f32)),
        (pa.map_(text, pa.list_(i64)), pa.map_(text, pa.list_(pa.null())), pa.map_(text, pa.list_(i64))),
        (pa.map_(text, i64), pa.list_(pa.null()), pa.map_(text, i64)),
        (pa.map_(text, i32), pa.list_(struct(key=text, value=i64)), pa.map_(text, i64)),
        (pa.map_(text, text), pa.list_(pa.list_(text)), pa.map_(text, text)),
        (pa.map_(text, i64), struct(a=i64, b=i32), pa.map_(text, i64)),
        (pa.map_(text, i64), struct(), pa.map_(text, i64)),
        (struct(a=i32, b=text), struct(a=i64, b=text), struct(a=i64, b=text)),
        (struct(a=struct(b=f64)), struct(a=struct(b=i32)), struct(a=struct(b=f64))),
        (struct(a=i64), struct(a=i64, b=text), struct(a=i64, b=text)),
        (struct(a=i64, b=i64), struct(b=i32, a=i64), struct(a=i64, b=i64)),
        (pa.list_(struct(a=i64)), pa.list_(struct(c=text, a=i32)), pa.list_(struct(a=i64, c=text))),
        (pa.map_(text, struct(a=i64)), pa.map_(text, struct(b=i64, a=i64)), pa.map_(text, struct(a=i64, b=i64))),
        (pa.list_(i32), pa.list_(i64), pa.list_(i64)),
        (pa.list_(struct(a=i64)), pa.list_(struct(a=i32)), pa.list_(struct(a=i64))),
        (pa.map_(text, f32), pa.map_(text, f64), pa.map_(text, f64)),
        (pa.map_(text, i32), pa.map_(text, f64), pa.map_(text, i32)),
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
    assert reconcile(None, batch, table_name="t") == batch


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (pa.null(), "c"),
        (struct(), "c"),
        (pa.list_(pa.null()), "c.element"),
        (struct(a=i64, b=pa.list_(struct(x=pa.null()))), "c.b.element.x"),
        (pa.map_(text, pa.null()), "c.value"),
    ],
    ids=str,
)
def test_what_has_no_type_at_any_depth_starts_no_table(kind, path, tmp_path):
    with pytest.raises(SchemaError, match=f"cannot start a table: {path};"):
        reconcile(None, storable(one(kind)), table_name="t")
    with pytest.raises(SchemaError, match=f"cannot start a table: {path};"):
        hoodie.create_table(tmp_path / "t", one(kind), record_key="c")


def test_whether_a_column_may_be_null_is_the_table_s_business():
    assert reconcile(one(i64, nullable=False), one(i32), table_name="t") == one(i64, nullable=False)
    assert reconcile(one(i64), one(i64, nullable=False), table_name="t") == one(i64)


def test_columns_are_stored_nullable_whatever_a_batch_says_of_them():
    assert reconcile(None, one(i64, nullable=False), table_name="t") == one(i64)
    known = pa.schema([("d", i64)])
    new = pa.schema([("d", i64), pa.field("c", i64, False)])
    assert reconcile(known, new, table_name="t") == pa.schema([("d", i64), ("c", i64)])


def test_integers_become_floating_numbers_only_where_a_write_says_so():
    leave = Leave(integers_to_floating=True)
    for table, batch in ((i32, f32), (i32, f64), (i64, f32), (i64, f64)):
        assert reconcile(one(table), one(batch), table_name="t", leave=leave) == one(batch)
    assert reconcile(one(struct(a=i64)), one(struct(a=f64)), table_name="t", leave=leave) == one(struct(a=f64))


@pytest.mark.parametrize(
    ("table", "batch"),
    [
        (i32, i64),
        (i64, i32),
        (i64, f64),
        (i32, f32),
        (f32, f64),
        (f64, i64),
        (f32, i64),
        (dec(5, 2), dec(9, 2)),
        (dec(5, 2), dec(5, 1)),
        (dec(5, 2), i64),
        (text, pa.null()),
    ],
    ids=str,
)
def test_key_columns_never_change_their_types(table, batch):
    leave = Leave(keys=frozenset({"c", "s.c"}), integers_to_floating=True)
    assert reconcile(one(table), one(batch), table_name="t", leave=leave) == one(table)
    nested = pa.schema([("s", struct(c=table, d=i64))])
    assert reconcile(nested, pa.schema([("s", struct(c=batch, d=f64))]), table_name="t", leave=leave) == pa.schema(
        [("s", struct(c=table, d=f64))]
    )


@pytest.mark.parametrize(("table", "batch"), [(text, i64), (i64, text), (i64, dec(5, 0)), (dec(5, 2), f64)], ids=str)
def test_a_key_of_another_kind_is_a_mismatch(table, batch):
    with pytest.raises(SchemaError, match="MISMATCH  c"):
        reconcile(one(table), one(batch), table_name="t", leave=Leave(keys=frozenset({"c"})))


def test_a_batch_that_lacks_columns_is_told_what_it_may_mean():
    table = pa.schema([("a", i64), ("s", struct(x=i64, y=i64)), ("_hoodie_is_deleted", pa.bool_())])
    with pytest.raises(SchemaError) as told:
        reconcile(table, pa.schema([("s", struct(x=i64))]), table_name="t")
    assert str(told.value).splitlines() == [
        "the batch does not fit table 't':",
        "  MISSING   a  table int64, not in the batch",
        "  MISSING   s.y  table int64, not in the batch",
        "  fix: add the missing columns; partial=True (hoodie.python.upsert.partial) keeps what is stored in them, "
        "hoodie.write.set.null.for.missing.columns=true makes them null",
    ]
    with pytest.raises(SchemaError) as told:
        reconcile(table, pa.schema([("a", i64)]), table_name="t", leave=Leave(upserts=False))
    assert "partial" not in str(told.value)
    assert reconcile(table, pa.schema([("a", i64)]), table_name="t", leave=Leave(null_for_missing=True)) == table
    assert reconcile(table, pa.schema([("a", i64)]), table_name="t", leave=Leave(partial=True)) == table
    with pytest.raises(SchemaError, match=r"s\.y"):  # a struct is replaced as a whole
        reconcile(table, pa.schema([("s", struct(x=i64))]), table_name="t", leave=Leave(partial=True))


def test_a_missing_column_that_must_not_be_null_is_refused_whatever_an_option_says():
    with pytest.raises(SchemaError, match="MISSING   c  table int64 not null, not in the batch"):
        reconcile(one(i64, nullable=False), pa.schema([("d", i64)]), table_name="t", leave=Leave(null_for_missing=True))


@pytest.mark.parametrize(
    ("table", "batch", "line"),
    [
        (struct(a=text), struct(a=i64), "MISMATCH  c.a  table string, batch int64"),
        (struct(a=struct(b=i64)), struct(a=struct(b=text)), "MISMATCH  c.a.b  table int64, batch string"),
        (pa.list_(i64), pa.list_(text), "MISMATCH  c.element  table int64, batch string"),
        (pa.map_(text, i64), pa.map_(text, text), "MISMATCH  c.value  table int64, batch string"),
        (struct(a=i64), struct(b=i64), "MISSING   c.a  table int64, not in the batch"),
        (struct(a=i64), struct(a=i64, b=pa.null()), "NEW       c.b  without a type"),
        (struct(a=i64), struct(a=i64, b=pa.list_(pa.null())), "NEW       c.b.element  without a type"),
        (pa.map_(text, i64), pa.list_(pa.list_(text)), "MISMATCH  c.value  table int64, batch string"),
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
    leave = Leave(keys_only=True)
    assert reconcile(table, keys, table_name="t", leave=leave) == table
    with pytest.raises(SchemaError, match="MISMATCH  a  "):
        reconcile(table, pa.schema([("a", text)]), table_name="t", leave=leave)


def test_all_misfits_are_told_at_once_in_at_most_eight_lines():
    table = pa.schema([("a", i64), pa.field("b", text, False), ("d", i64)])
    batch = pa.schema([("a", text), ("n", pa.null()), ("d", i64)])
    with pytest.raises(SchemaError) as told:
        reconcile(table, batch, table_name="t")
    lines = str(told.value).splitlines()
    assert [line.split()[0] for line in lines] == ["the", "MISMATCH", "MISSING", "NEW", "fix:", "fix:"]
    wide = pa.schema([(f"c{n}", i64) for n in range(100)])
    with pytest.raises(SchemaError) as told:
        reconcile(wide, pa.schema([(f"c{n}", text) for n in range(100)]), table_name="t")
    lines = str(told.value).splitlines()
    assert len(lines) == 7
    assert lines[5] == "  ... and 96 more"
    assert "fix: cast the columns" in lines[6]


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
        (pa.list_view(pa.int8()), pa.list_(pa.field("element", i32))),
        (pa.large_list_view(pa.string_view()), pa.list_(pa.field("element", text))),
        (pa.run_end_encoded(i32, pa.string_view()), text),
        (struct(a=pa.run_end_encoded(i32, pa.int8())), struct(a=i32)),
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


@pytest.mark.parametrize(
    "wrap", [lambda k: k, pa.list_, lambda k: pa.map_(text, k), lambda k: struct(z=k), lambda k: struct(z=pa.list_(k))]
)
def test_names_inside_a_column_are_unique_too(wrap):
    with pytest.raises(SchemaError, match=r"column 'c.*\.x' stands twice"):
        storable(one(wrap(pa.struct([("x", i64), ("x", text)]))))
    with pytest.raises(SchemaError, match=r"columns 'c.*\.x' and 'c.*\.X' of the data differ in case only"):
        storable(one(wrap(pa.struct([("x", i64), ("X", text)]))))


def test_everything_inside_a_column_is_nullable():
    inner = pa.struct([pa.field("x", i64, False)])
    free = struct(x=i64)
    assert storable(one(inner)) == one(free)
    assert storable(one(pa.list_(pa.field("element", inner, False)))) == one(pa.list_(pa.field("element", free)))
    assert storable(one(pa.map_(text, pa.field("value", inner, False)))) == one(pa.map_(text, free))


def test_a_mark_of_deletes_is_boolean():
    with pytest.raises(SchemaError, match="'_hoodie_is_deleted' is int64, and marks deletes only where it is boolean"):
        storable(pa.schema([("a", i64), ("_hoodie_is_deleted", i64)]))
