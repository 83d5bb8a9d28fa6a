"""Values of a batch in the table's types, and what becomes of tables whose columns a batch does not quite have."""

from decimal import Decimal

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaError
from hoodie.write.casting import fit

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
BLOCKS = (("COPY_ON_WRITE", "avro"), ("MERGE_ON_READ", "avro"), ("MERGE_ON_READ", "parquet"))
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
FLOATING = {"hoodie.python.write.integers.to.floating": "true"}
i32, i64, f32, f64, text = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()


def fitted(values, kind):
    return fit(pa.table({"c": values}), pa.schema([("c", kind)]), table="t")["c"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1.0, -2.0, None, 2.0**60], f64), i64),
        (pa.array([1.0, None], f32), i32),
        (pa.array([1, None, 2**31 - 1], i64), i32),
        (pa.array([1, None, 2**53], i64), f64),
        (pa.array([1, None, 2**24], i32), f32),
        (pa.array([0.1, None, float("inf")], f64), f32),
        (pa.array([1.0, 2.0]).dictionary_encode(), i64),
        (pa.array([[1.0, None], None, []], pa.list_(f64)), pa.list_(i64)),
        (pa.array([{"a": {"b": 2.0}}, None]), pa.struct([("a", pa.struct([("b", i64)]))])),
        (pa.array([[("k", 2.0)], None], pa.map_(text, f64)), pa.map_(text, i64)),
        (pa.array([Decimal("1.5")], pa.decimal128(9, 1)), pa.decimal128(2, 1)),
        (pa.array([Decimal("1.500"), None, Decimal("-99.900")], pa.decimal128(38, 3)), pa.decimal128(3, 1)),
        (pa.array([Decimal("1.5"), None], pa.decimal128(9, 1)), pa.decimal128(38, 36)),
        (pa.array([12, None, -(2**63)], i64), pa.decimal128(38, 19)),
        (pa.array([Decimal("1.50")]).dictionary_encode(), pa.decimal128(3, 1)),
        (pa.array([[Decimal("1.50")], None]), pa.list_(pa.decimal128(3, 1))),
    ],
    ids=str,
)
def test_values_that_a_type_has_are_stored_as_they_are(values, kind):
    found = fitted(values, kind)
    assert found.type == kind
    if values.type == f64 and kind == f32:
        assert found.cast(text).to_pylist() == values.cast(text).to_pylist()
    else:
        assert found.to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "told"),
    [
        (pa.array([1.0, 1.5]), i64, "1.5"),
        (pa.array([1.0, float("nan")]), i64, "nan"),
        (pa.array([float("inf")]), i64, "inf"),
        (pa.array([None, 3e9]), i32, "3000000000.0"),
        (pa.array([2.0**70]), i64, "1.1805916207174113e\\+21"),
        (pa.array([2**31], i64), i32, "2147483648"),
        (pa.array([1, 2**53 + 1], i64), f64, "9007199254740993"),
        (pa.array([16777217.0], f64), f32, "16777217.0"),
        (pa.array([Decimal("1.00"), Decimal("1.25")]), pa.decimal128(38, 1), "1.25"),
        (pa.array([Decimal("99.9"), Decimal("100.0")]), pa.decimal128(3, 1), "100.0"),
        (pa.array([99, 100], i64), pa.decimal128(3, 1), "100"),
        (pa.array([1, 2**63 - 1], i64), pa.decimal128(38, 20), "9223372036854775807"),
        (pa.array([[1.0], [0.25]], pa.list_(f64)), pa.list_(i64), "0.25"),
        (pa.array([{"a": 0.5}]), pa.struct([("a", i64)]), "0.5"),
        (pa.array([[("k", 0.5)]], pa.map_(text, f64)), pa.map_(text, i64), "0.5"),
    ],
    ids=str,
)
def test_a_value_that_a_type_does_not_have_is_shown_with_its_column(values, kind, told):
    with pytest.raises(SchemaError, match=rf"column 'c' of table 't' is .*, and the batch \(.*\) holds {told}, which"):
        fitted(values, kind)


def test_a_null_struct_hides_what_is_beneath_it():
    hidden = pa.StructArray.from_arrays([pa.array([1.0, 1.5])], names=["a"], mask=pa.array([False, True]))
    assert fitted(hidden, pa.struct([("a", i64)])).to_pylist() == [{"a": 1}, None]


# -- tables ------------------------------------------------------------------------------------------------------------


def new_table(tmp_path, kind="COPY_ON_WRITE", blocks="avro", **more):
    options = {"hoodie.logfile.data.block.format": blocks}
    return hoodie.create_table(tmp_path / "t", record_key="id", table_type=kind, options=options, **more)


def by_id(table):
    rows = table.scan().to_arrow().to_pylist()
    found = {row.pop("id"): row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(("kind", "blocks"), BLOCKS)
def test_a_batch_of_floats_leaves_integer_columns_integers(tmp_path, kind, blocks):
    table = new_table(tmp_path, kind, blocks)
    table.upsert(pa.table({"id": [1, 2], "n": [2**60 + 1, 1]}))
    table.upsert(pa.table({"id": [2.0, 3.0], "n": [7.0, None]}))
    assert table.schema.field("id").type == table.schema.field("n").type == i64
    expected = {1: {"n": 2**60 + 1}, 2: {"n": 7}, 3: {"n": None}}
    assert by_id(table) == expected
    with pytest.raises(
        SchemaError, match=r"column 'n' .* holds 1.5, which(.|\n)*hoodie.python.write.integers.to.floating=true"
    ):
        table.upsert(pa.table({"id": [4], "n": [1.5]}))
    with pytest.raises(SchemaError, match=r"column 'id' .* holds 1.5, which"):
        table.upsert(pa.table({"id": [1.5], "n": [1]}), FLOATING)
    if kind == "MERGE_ON_READ":
        table.compact()
    assert by_id(table) == expected
    assert table.delete(pa.table({"id": [3.0], "n": ["ignored"]})).deleted == 1


@pytest.mark.parametrize(("kind", "blocks"), BLOCKS)
def test_a_table_that_was_widened_to_floats_rounds_its_integers(tmp_path, kind, blocks):
    table = new_table(tmp_path, kind, blocks)
    table.upsert(pa.table({"id": ["a", "b"], "n": [2**53 + 1, 1], "s": [{"x": 2**53 + 1}, None]}))
    table.upsert(pa.table({"id": ["b"], "n": [2**60 + 1], "s": [{"x": 2}]}))
    table.upsert(pa.table({"id": ["c"], "n": [0.5], "s": [{"x": 0.5}]}), FLOATING)
    assert table.schema.field("n").type == f64
    rounded = {
        "a": {"n": 2.0**53, "s": {"x": 2.0**53}},
        "b": {"n": 2.0**60, "s": {"x": 2.0}},
        "c": {"n": 0.5, "s": {"x": 0.5}},
    }
    assert by_id(table) == rounded
    assert table.scan(where="n > 1").count() == 2
    if kind == "MERGE_ON_READ":
        table.compact()
    table.upsert(pa.table({"id": ["d"], "n": [3], "s": [{"x": 3}]}))
    assert by_id(table) == {**rounded, "d": {"n": 3.0, "s": {"x": 3.0}}}


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_lacks_columns_is_refused(tmp_path, kind, operation):
    table = new_table(tmp_path, kind)
    whole = pa.table({"id": ["a"], "n": [1], "s": [{"x": 1, "y": 2}]})
    table.upsert(whole)
    write = getattr(table, operation)
    for some in (whole.drop_columns(["n"]), pa.table({"id": ["a"], "n": [1], "s": [{"x": 1}]})):
        with pytest.raises(SchemaError, match="MISSING") as told:
            write(some)
        assert ("partial=True" in str(told.value)) == (operation == "upsert")
    for key, nulls in (("b", NULLS), ("c", {"hoodie.datasource.write.reconcile.schema": "true"})):
        write(pa.table({"id": [key], "s": [{"x": 1}]}), nulls)
        assert by_id(table)[key] == {"n": None, "s": {"x": 1, "y": None}}
        assert table.delete({"id": [key]}).deleted == 1


def test_a_partial_upsert_may_lack_columns(tmp_path):
    table = new_table(tmp_path)
    table.upsert(pa.table({"id": ["a"], "n": [1], "m": [2]}))
    table.upsert({"id": ["a"], "n": [5]}, partial=True)
    assert by_id(table) == {"a": {"n": 5, "m": 2}}


def test_a_column_that_marks_deletes_may_be_left_out(tmp_path):
    table = new_table(tmp_path)
    table.upsert(pa.table({"id": ["a", "b"], "_hoodie_is_deleted": [False, False]}))
    table.upsert({"id": ["c"]})
    assert table.scan().count() == 3


def test_columns_that_are_not_null_are_accepted_and_stored_nullable(tmp_path):
    table = new_table(tmp_path)
    schema = pa.schema([pa.field("id", text, False), pa.field("n", i64, False)])
    table.upsert(pa.table({"id": ["a"], "n": [1]}, schema=schema))
    more = schema.append(pa.field("country", text, False))
    table.upsert(pa.table({"id": ["b"], "n": [2], "country": ["NO"]}, schema=more))
    assert all(field.nullable for field in table.schema)
    table.upsert({"id": ["a"], "n": [None], "country": [None]}, {})
    assert by_id(table) == {"a": {"n": None, "country": None}, "b": {"n": 2, "country": "NO"}}


inner = pa.struct([pa.field("x", i32, False)])
nulls_in_structs = pa.table(
    {
        "id": ["a", "b", "c"],
        "s": pa.array([{"x": 1}, None, {"x": 3}], inner),
        "l": pa.array([[{"x": 1}, None], None, []], pa.list_(inner)),
        "m": pa.array([[("k", None), ("l", {"x": 2})], [], None], pa.map_(text, inner)),
        "d": pa.array([{"s": None}, {"s": {"x": 1}}, None], pa.struct([pa.field("s", inner)])),
    }
)


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize(("kind", "blocks"), BLOCKS)
def test_null_structs_of_fields_that_are_not_null_live_through_everything(tmp_path, kind, blocks, stated):
    rows = nulls_in_structs
    table = new_table(tmp_path, kind, blocks, **({"schema": rows.schema} if stated else {}))
    table.upsert(rows)
    table.upsert(rows.slice(1, 1))
    table.upsert(rows.slice(0, 2))
    expected = sorted(rows.to_pylist(), key=lambda row: row["id"])
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    if kind == "MERGE_ON_READ":
        table.compact()
        assert not table.pending_compactions()
    table.upsert(rows.slice(2, 1))
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected


def test_a_null_beneath_a_null_struct_is_no_null(tmp_path):
    """Frames of other libraries hold nothing below a null struct, whatever its fields say."""
    made = pa.StructArray.from_arrays([pa.array([1, None], i32)], fields=list(inner), mask=pa.array([False, True]))
    table = new_table(tmp_path)
    table.upsert(pa.table({"id": ["a", "b"], "s": made}))
    assert by_id(table) == {"a": {"s": {"x": 1}}, "b": {"s": None}}


D = Decimal


@pytest.mark.parametrize("place", ["c", "key", "partition", "ordering", "nested"])
@pytest.mark.parametrize(("kind", "blocks"), BLOCKS)
def test_decimals_of_another_scale_are_taken_where_no_digit_is_lost(tmp_path, kind, blocks, place):
    named = {"key": {"record_key": "c"}, "partition": {"partition_by": "c"}, "ordering": {"ordering": "c"}}
    more = {"record_key": "id", **named.get(place, {})}
    options = {"hoodie.logfile.data.block.format": blocks}
    table = hoodie.create_table(tmp_path / "t", table_type=kind, options=options, **more)

    def rows(values, decimal):
        column = pa.array(values, decimal)
        nested = pa.StructArray.from_arrays([column], names=["d"]) if place == "nested" else column
        return pa.table({"id": range(len(values)), "c": nested})

    table.upsert(rows([D("1.50"), D("2.00"), D("-99999999.99")], pa.decimal128(10, 2)))
    before = table.schema
    same = rows([D("1.5000"), D("2.0000")], pa.decimal128(12, 4))
    assert table.upsert(same).updated == 2
    assert table.upsert(same.to_pylist()).updated == 2
    assert table.upsert(same.to_pandas()).updated == 2
    assert table.upsert(rows([D("1.5"), D("2")], pa.decimal128(3, 1))).updated == 2
    assert table.schema == before
    stored = table.to_arrow()
    with pytest.raises(
        SchemaError, match=r"column 'c' .*holds 1.2345, which has more digits than that type; nothing was"
    ):
        table.upsert(rows([D("1.2345")], pa.decimal128(12, 4)))
    if kind == "MERGE_ON_READ":
        table.compact()
    assert table.to_arrow().sort_by("id").equals(stored.sort_by("id"))
    assert table.schema == before
    wide = rows([D("1.50"), D("2.00"), D("123456789012.5000")], pa.decimal128(20, 4))
    if place in ("key", "partition"):  # their types stay
        with pytest.raises(SchemaError, match=r"holds 123456789012.5000, which has more digits"):
            table.upsert(wide)
    else:
        table.upsert(wide)
        assert D("123456789012.50") in [
            row["c"]["d"] if place == "nested" else row["c"] for row in table.to_arrow().to_pylist()
        ]
    assert table.delete(same).deleted == 2
