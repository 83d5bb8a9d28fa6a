"""UPDATE and MERGE without Spark: rows are computed from stored and given ones, and land in one commit."""

import shutil
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import hoodie
from hoodie.dml.equalities import Equalities
from hoodie.dml.merge import is_upsert
from hoodie.dml.merge_plan import Case, Clause
from hoodie.errors import DuplicateKeyError, KeyFieldError, OptionError, SchemaError
from hoodie.options.write import WriteOptions

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


@pytest.fixture(params=TYPES)
def table(request, tmp_path):
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="city", ordering="ts", table_type=request.param
    )
    table.insert(
        [{"id": n, "city": c, "ts": 1, "n": 10 * n, "name": f"{c}{n}"} for c in ("oslo", "rome") for n in range(4)]
    )
    return table


def rows(table, **scan):
    found = table.scan(**scan).to_arrow().to_pylist()
    return {(row["id"], row["city"]): (row["n"], row["name"]) for row in found}


def test_columns_get_the_values_of_expressions(table):
    before = rows(table)
    result = table.update({"n": "n * 2 + id", "name": "upper(name)"}, where="city = 'rome' and id > 1")
    assert (result.updated, result.inserted, result.deleted) == (2, 0, 0)
    assert len(table.history()) == 2
    assert rows(table) == before | {(2, "rome"): (42, "ROME2"), (3, "rome"): (63, "ROME3")}
    assert table.schema.names == ["id", "city", "ts", "n", "name"]


def test_values_that_are_no_texts_stand_for_themselves(table):
    table.update({"n": 7, "name": None}, where="id = 0")
    assert {k: v for k, v in rows(table).items() if k[0] == 0} == {(0, "oslo"): (7, None), (0, "rome"): (7, None)}


def test_a_row_moves_to_another_partition(table):
    before = rows(table)
    table.update({"city": "'bern'"}, where="city = 'rome' and id = 2")
    assert rows(table) == {k: v for k, v in before.items() if k != (2, "rome")} | {(2, "bern"): before[2, "rome"]}
    assert len(table.history()) == 2
    assert rows(table, as_of=table.history()[0]) == before


def test_rows_change_places(table):
    before = rows(table)
    table.update({"city": "CASE city WHEN 'rome' THEN 'oslo' ELSE 'rome' END"}, where="id = 1")
    after = rows(table)
    assert after == before | {(1, "rome"): before[1, "oslo"], (1, "oslo"): before[1, "rome"]}


@pytest.mark.parametrize("where", ["city = 'rome'", None])
def test_no_row_moves_onto_another(table, where):
    before = rows(table)
    with pytest.raises(DuplicateKeyError, match=r"the key .* in partition"):
        table.update({"city": "'bern'" if where is None else "'oslo'"}, where=where)
    assert rows(table) == before


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"nope": "1"}, KeyFieldError, "nope"),
        ({}, OptionError, "changes no column"),
        ({"n": "nope + 1"}, OptionError, "nope"),
        ({"n": "sum(n)"}, OptionError, "aggregate"),
        ({"n": "n +"}, OptionError, "syntax"),
        ({"n": "n + 0.5"}, SchemaError, "'n'"),
        ({"n": b"x"}, OptionError, "'n'"),
        ({"id": "id + 1"}, OptionError, "record key"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(table, values, error, words):
    with pytest.raises(error, match=words):
        table.update(values)
    assert len(table.timeline.commits) == 1
    assert not [i for i in table.timeline if not i.is_completed]


def merge(table, source, on="t.id = s.id and t.city = s.city"):
    return table.merge(source, on)


SOURCE = [
    {"id": 1, "city": "rome", "ts": 2, "n": 111, "name": "one", "op": "U"},
    {"id": 2, "city": "rome", "ts": 2, "n": 0, "name": None, "op": "D"},
    {"id": 9, "city": "bern", "ts": 2, "n": 9, "name": "nine", "op": "I"},
    {"id": 8, "city": "bern", "ts": 2, "n": 8, "name": "eight", "op": "D"},
]


def test_each_row_goes_by_the_first_clause_that_fits_it(table):
    before = rows(table)
    result = (
        merge(table, SOURCE)
        .when_matched_delete("s.op = 'D'")
        .when_matched_update_all()
        .when_not_matched_insert_all("s.op <> 'D'")
        .when_not_matched_by_source_update({"n": "t.n + 1"}, "t.id = 3")
        .when_not_matched_by_source_delete("t.id = 0 and t.city = 'oslo'")
        .execute()
    )
    assert (result.inserted, result.updated, result.deleted) == (1, 3, 2)
    assert rows(table) == {
        **{k: v for k, v in before.items() if k not in {(2, "rome"), (0, "oslo")}},
        (1, "rome"): (111, "one"),
        (9, "bern"): (9, "nine"),
        (3, "oslo"): (31, "oslo3"),
        (3, "rome"): (31, "rome3"),
    }
    assert len(table.history()) == 2
    assert table.schema.names == ["id", "city", "ts", "n", "name"]


def test_a_delete_wins_over_a_greater_ordering_value(table):
    table.upsert([{"id": 1, "city": "rome", "ts": 99, "n": 1, "name": "late"}])
    merge(table, SOURCE).when_matched_delete("s.id = 1").execute()
    assert (1, "rome") not in rows(table)


def test_expressions_and_plain_values_of_both_sides(table):
    before = rows(table)
    (
        merge(table, SOURCE)
        .when_matched_update({"n": "t.n + s.n", "name": "concat(t.name, '-', s.op)"}, predicate="s.op = 'U'")
        .when_not_matched_insert({"id": "s.id", "city": "s.city", "ts": 5, "name": "lower(s.name)"}, "s.op = 'I'")
        .execute()
    )
    assert rows(table) == before | {(1, "rome"): (121, "rome1-U"), (9, "bern"): (None, "nine")}


def test_a_row_of_the_source_moves_a_stored_one(table):
    before = rows(table, where="city = 'rome'")
    table.delete(where="city = 'oslo'")
    moved = [
        {"id": 1, "city": "bern", "ts": 2, "n": 5, "name": "moved"},
        {"id": 7, "city": "rome", "ts": 1, "n": 7, "name": "new"},
    ]
    table.merge(moved, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    stay = {k: v for k, v in before.items() if k != (1, "rome")}
    assert rows(table) == stay | {(1, "bern"): (5, "moved"), (7, "rome"): (7, "new")}


def test_two_rows_for_one_are_refused(table):
    before = rows(table)
    twice = [SOURCE[0], SOURCE[0] | {"n": 5}]
    with pytest.raises(DuplicateKeyError, match="several rows of the source"):
        merge(table, twice).when_matched_update_all().execute()
    merge(table, twice).when_matched_update_all("s.n = 5").execute()  # one of them does nothing
    assert rows(table) == before | {(1, "rome"): (5, "one")}


def test_an_insert_of_a_stored_key_is_an_upsert(table):
    """As in Apache Hudi: the ordering column decides."""
    before = rows(table)
    source = [SOURCE[0] | {"ts": 0}, SOURCE[1] | {"id": 2, "ts": 9}]
    merge(table, source, "t.id = s.id and t.name = s.name").when_not_matched_insert_all().execute()
    assert rows(table) == before | {(2, source[1]["city"]): (source[1]["n"], source[1]["name"])}


def test_a_row_is_inserted_where_one_is_deleted(table):
    """The join is by names, so that one statement takes a key away and gives it anew."""
    table.merge(
        [
            {"id": 0, "city": "rome", "ts": 2, "n": 1, "name": "fresh"},
            {"id": 9, "city": "rome", "ts": 2, "n": 9, "name": "rome0"},
        ],
        on="t.name = s.name",
    ).when_matched_delete().when_not_matched_insert_all().execute()
    assert rows(table)[0, "rome"] == (1, "fresh")
    assert (9, "rome") not in rows(table)


def test_what_a_merge_cannot_be(table):
    with pytest.raises(OptionError, match="no clause"):
        merge(table, SOURCE).execute()
    with pytest.raises(OptionError, match="never reached"):
        merge(table, SOURCE).when_matched_update_all().when_matched_delete("s.op = 'D'")
    with pytest.raises(OptionError, match="merge needs a condition"):
        table.merge(SOURCE)
    with pytest.raises(OptionError, match="nope"):
        merge(table, SOURCE, "t.nope = s.id").when_matched_delete().execute()
    with pytest.raises(KeyFieldError, match="nope"):
        merge(table, SOURCE).when_matched_update({"nope": "1"}).execute()


def test_names_of_delta(table):
    builder = table.merge(
        source=pa.Table.from_pylist(SOURCE),
        predicate="target.id = source.id AND target.city = source.city",
        source_alias="source",
        target_alias="target",
    )
    builder.when_matched_update(updates={"n": "source.n"}, predicate="source.op = 'U'").execute()
    assert rows(table)[1, "rome"] == (111, "rome1")


def test_nothing_to_change_is_no_commit(table):
    assert table.update({"n": "0"}, where="id = 77").instant is None
    assert merge(table, []).when_matched_delete().execute().instant is None
    assert len(table.history()) == 1


def test_an_empty_table_says_so(tmp_path):
    empty = hoodie.create_table(tmp_path / "e", record_key="id")
    with pytest.raises(OptionError, match="no columns yet"):
        empty.update({"n": 1})
    with pytest.raises(OptionError, match="no columns yet"):
        empty.merge(SOURCE, on="t.id = s.id")


def test_stored_values_do_not_take_the_type_of_another_clauses_values(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("price", pa.decimal128(30, 4)), ("seen", pa.int64())])
    kept = {"id": 1, "n": 2**53 + 1, "price": Decimal("12345678901234567890.1234")}
    table = hoodie.create_table(tmp_path / "t", schema, record_key="id")
    table.insert(pa.Table.from_pylist([kept | {"seen": 1}], schema))
    source = pa.table({"id": [1, 2], "n": [1.0, 2.0], "price": [1.5, 2.5], "seen": [5, 6]})  # as pandas has numbers
    table.merge(source, "t.id = s.id").when_matched_update({"seen": "s.seen"}).when_not_matched_insert_all().execute()
    new = {"id": 2, "n": 2, "price": Decimal("2.5000"), "seen": 6}
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == sorted([kept | {"seen": 5}, new], key=str)


K = pa.struct([("a", pa.int64()), ("b", pa.int64())])
BY_DAY = {
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}


@pytest.mark.parametrize(
    ("column", "keys", "stored", "given", "on"),
    [
        (pa.string(), {"record_key": "id", "partition_by": "x"}, None, None, "t.id = s.id and t.x = s.x"),
        (pa.string(), {"record_key": ["id", "x"]}, None, None, "t.x = s.x and t.id = s.id"),
        (K, {"record_key": "x.a"}, {"a": 1, "b": 1}, {"a": 1, "b": 2}, "t.x = s.x"),
        (pa.int64(), {"record_key": "id", "partition_by": "x", "options": BY_DAY}, 10, 20, "t.id = s.id and t.x = s.x"),
        (pa.float32(), {"record_key": "x"}, 0.1, 0.1, "t.x = s.x"),
    ],
    ids=["null", "null in a key", "a field of a struct", "times of one day", "floats"],
)
@pytest.mark.parametrize("updates", [True, False])
def test_keys_are_equal_where_sql_finds_no_equal_values(column, keys, stored, given, on, updates, tmp_path):
    schema = pa.schema([("id", pa.int64()), ("x", column), ("n", pa.int64())])
    table = hoodie.create_table(tmp_path / "t", schema, **keys)
    table.insert(pa.Table.from_pylist([{"id": 1, "x": stored, "n": 1}], schema))
    kind = pa.float64() if column == pa.float32() else column
    source = pa.table({"id": [1], "x": pa.array([given], kind), "n": [2]})
    merge = table.merge(source, on).when_not_matched_insert_all()
    (merge.when_matched_update_all() if updates else merge).execute()
    assert table.scan(["n"]).to_arrow().to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("updates", [True, False])
def test_two_values_of_one_partition_path_are_refused_as_in_an_upsert(updates, tmp_path):
    schema = pa.schema([("id", pa.int64()), ("x", pa.string())])
    table = hoodie.create_table(tmp_path / "t", schema, record_key="id", partition_by="x")
    table.insert(pa.Table.from_pylist([{"id": 1, "x": None}], schema))
    made = table.merge(pa.table({"id": [1], "x": [""]}), "t.id = s.id and t.x = s.x").when_not_matched_insert_all()
    with pytest.raises(KeyFieldError, match="one would overwrite the other"):
        (made.when_matched_update_all() if updates else made).execute()


def test_what_is_an_upsert_becomes_what_a_join_makes(table, tmp_path):
    """A clause with a condition is no upsert: the table is joined."""
    joined = hoodie.open_table(shutil.copytree(table.uri.removeprefix("file://"), tmp_path / "joined"))
    source = [{"id": n, "city": "rome", "ts": n % 3, "n": 100 + n, "name": None, "more": n} for n in range(2, 9)]
    counts = []
    for each, condition in ((table, None), (joined, "true")):
        made = each.merge(source, "t.id = s.id and s.city = t.city").when_matched_update_all(condition)
        result = made.when_not_matched_insert_all(condition).execute()
        counts.append((result.inserted, result.updated, result.deleted))
    assert rows(table) == rows(joined)
    assert counts[0] == counts[1]
    assert table.schema == joined.schema
    with pytest.raises(DuplicateKeyError):
        merge(table, source + source[:1]).when_matched_update_all().when_not_matched_insert_all().execute()


INT, FLOAT = pa.int64(), pa.float64()


@pytest.mark.parametrize(
    ("on", "clauses", "lacks", "kind", "index", "expected"),
    [
        ("t.id = s.id and t.city = s.city", "all", None, INT, "BLOOM", True),
        ("t.id = s.id and t.city = s.city", "all", None, INT, "GLOBAL_BLOOM", True),
        ("t.id = s.id", "all", None, INT, "GLOBAL_BLOOM", True),
        ("t.id = s.id", "all", None, INT, "BLOOM", False),
        ("t.city = s.city", "all", None, INT, "GLOBAL_BLOOM", False),
        ("t.id = s.id and t.city = s.city and s.n > 3", "all", None, INT, "BLOOM", False),
        ("t.id = s.id and t.city = s.city and t.n = s.n", "all", None, INT, "BLOOM", False),
        ("t.id = s.n and t.city = s.city", "all", None, INT, "BLOOM", False),
        ("t.id = s.id and t.city = s.city", "all", "n", INT, "BLOOM", False),
        ("t.id = s.id and t.city = s.city", "all", None, FLOAT, "BLOOM", False),
        ("t.id = s.id and t.city = s.city", "update", None, INT, "BLOOM", False),
        ("t.id = s.id and t.city = s.city", "some", None, INT, "BLOOM", False),
    ],
)
def test_what_is_an_upsert(on, clauses, lacks, kind, index, expected, tmp_path):
    schema = pa.schema([("id", kind), ("city", pa.string()), ("n", pa.int64())])
    table = hoodie.create_table(
        tmp_path / "t", schema, record_key="id", partition_by="city", options={"hoodie.index.type": index}
    )
    made = {
        "all": [Clause(Case.NOT_MATCHED, None, all_columns=True), Clause(Case.MATCHED, None, all_columns=True)],
        "update": [Clause(Case.MATCHED, None, all_columns=True)],
        "some": [Clause(Case.MATCHED, None, {"n": "s.n"}), Clause(Case.NOT_MATCHED, None, all_columns=True)],
    }[clauses]
    given = pa.schema([field for field in schema if field.name != lacks])
    equal = Equalities.of(on, target="t", source="s")
    assert is_upsert(equal, made, schema, given, table.config, WriteOptions()) is expected


def test_two_new_rows_of_one_key_are_refused(table):
    before = rows(table)
    with pytest.raises(DuplicateKeyError, match="two rows would have the key '9'"):
        merge(table, [SOURCE[2], SOURCE[2] | {"n": 5}]).when_not_matched_insert_all().execute()
    assert rows(table) == before


def test_a_field_inside_of_a_column_is_not_set(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert([{"id": 1, "x": {"a": 1}}])
    with pytest.raises(KeyFieldError, match=r"'x\.a' is a field inside of column 'x'"):
        table.update({"x.a": 2})
    with pytest.raises(KeyFieldError, match=r"'x\.a' is a field inside of column 'x'"):
        table.merge([{"id": 1}], "t.id = s.id").when_matched_update({"x.a": "2"}).execute()


def test_a_column_of_the_source_in_another_case_is_not_passed_over(table):
    source = pa.table({"id": [1, 9], "city": ["rome", "rome"], "Name": ["a", "b"]})
    for clause in ("when_matched_update_all", "when_not_matched_insert_all"):
        with pytest.raises(SchemaError, match="'Name' of the source is 'name'"):
            getattr(merge(table, source), clause)().execute()
    merge(table, source).when_matched_update({"name": "s.Name"}).execute()
    assert rows(table)[1, "rome"] == (10, "a")


def test_a_text_becomes_a_time_beside_one(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    table = hoodie.create_table(tmp_path / "t", schema, record_key="id")
    table.insert(pa.table({"id": [1], "at": pa.array([0], schema.field("at").type)}, schema))
    builder = table.merge([{"id": 1}, {"id": 2}], "t.id = s.id").when_matched_update({"at": "'2026-01-02 03:04:05'"})
    builder.when_not_matched_insert({"id": "s.id", "at": "NULL"}).execute()
    found = table.scan().to_arrow().sort_by("id").column("at").to_pylist()
    assert found == [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None]


@pytest.mark.parametrize("kind", TYPES)
def test_rows_move_where_keys_are_unique_in_the_whole_table(kind, tmp_path):
    table = hoodie.create_table(
        tmp_path / "t",
        record_key="id",
        partition_by="city",
        table_type=kind,
        options={"hoodie.index.type": "GLOBAL_BLOOM"},
    )
    table.insert([{"id": n, "city": "rome", "n": n, "name": "old"} for n in range(4)])
    table.update({"city": "'bern'"}, where="id = 1")
    moved = [{"id": 2, "city": "oslo", "n": 5, "name": "new"}, {"id": 7, "city": "oslo", "n": 7, "name": "new"}]
    table.merge(moved, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    expected = {(0, "rome"): 0, (1, "bern"): 1, (2, "oslo"): 5, (3, "rome"): 3, (7, "oslo"): 7}
    assert {key: n for key, (n, _) in rows(table).items()} == expected
    merge(table, [moved[0] | {"city": "bern", "n": 6}]).when_not_matched_insert_all().execute()
    del expected[2, "oslo"]
    assert {key: n for key, (n, _) in rows(table).items()} == expected | {(2, "bern"): 6}


@pytest.mark.parametrize("kind", TYPES)
def test_a_table_that_generates_keys_gives_one_to_each_new_row(tmp_path, kind):
    table = hoodie.create_table(tmp_path / "t", record_key=[], partition_by="city", table_type=kind)
    table.insert([{"id": n, "city": "oslo", "n": n} for n in range(3)])
    source = (
        table.scan(meta_columns=True).to_arrow().slice(0, 1).to_pylist()[0]
    )  # keys of a source are no keys of the table
    new = [{**source, "id": n, "city": "rome", "n": 10 * n} for n in (1, 7, 7, 8)]
    changed = table.merge(new, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all()
    changed = changed.when_not_matched_by_source_delete("t.id = 0")
    plan = changed.explain()
    result = changed.execute()
    assert (result.inserted, result.updated, result.deleted) == (3 + 1, 0, 1 + 1)  # the updated row moved
    assert (plan.inserted, plan.updated, plan.deleted) == (3, 1, 1)
    found = table.scan(meta_columns=True).to_arrow().to_pylist()
    rows = sorted((row["id"], row["city"], row["n"]) for row in found)
    assert rows == [(1, "rome", 10), (2, "oslo", 2), (7, "rome", 70), (7, "rome", 70), (8, "rome", 80)]
    assert len({row["_hoodie_record_key"] for row in found}) == 5
    hoodie.sql(
        "MERGE INTO t USING s ON false WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, 'bern')",
        t=table,
        s=[{"id": 9}],
    )
    assert table.scan(where="city = 'bern'").to_arrow().to_pylist() == [{"id": 9, "city": "bern", "n": None}]
