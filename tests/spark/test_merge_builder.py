"""`update`, `merge`, `lookup` and `head` of a table that is open on Spark, by Spark's expressions and without `enable`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import DuplicateKeyError, KeyFieldError, OptionError, SchemaError
from pyspark_hoodie import HoodieTable

pytestmark = pytest.mark.spark

DDL = "id string, part string, n int, at long, note string"
KINDS = [("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "6"), ("MERGE_ON_READ", "9")]
FIRST = [(f"k{n}", "ab"[n % 2], n, 1, "old") for n in range(6)]

Rows = dict[str, tuple[Any, ...]]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]} {kind[1]}")
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> HoodieTable:
    kind, version = request.param
    hoodie.create_table(
        tmp_path / "t",
        record_key="id",
        partition_by="part",
        ordering="at",
        table_type=kind,
        options={"hoodie.write.table.version": version},
    )
    found = HoodieTable.for_path(spark, str(tmp_path / "t"))
    found.upsert(frame(spark, FIRST))
    return found


def frame(spark: SparkSession, rows: Iterable[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(list(rows), DDL)


def rows(table: HoodieTable) -> Rows:
    """As the core reads them."""
    found = hoodie.open_table(table.uri.removeprefix("file://")).scan().to_arrow().to_pylist()
    return {row["id"]: (row["part"], row["n"], row["at"], row["note"]) for row in found}


def expected(*changed: tuple[Any, ...], without: Iterable[str] = ()) -> Rows:
    return {key: rest for key, *more in (*FIRST, *changed) if key not in without for rest in [tuple(more)]}


def test_the_first_clause_that_fits_decides(spark: SparkSession, table: HoodieTable) -> None:
    source = spark.createDataFrame(
        [
            ("k0", "a", 0, 2, "", "D"),
            ("k1", "b", 70, 2, "new", "U"),
            ("k2", "a", 1, 2, "new", "U"),
            ("k9", "b", 9, 2, "new", "U"),
        ],
        f"{DDL}, op string",
    )
    before = len(table.timeline.commits)
    merge = (
        table.merge(source, on="t.id = s.id and t.part = s.part")
        .when_matched_delete("s.op = 'D'")
        .when_matched_update({"n": "t.n + s.n", "at": "s.at"}, condition="s.n > t.n")
        .when_matched_update_all()
        .when_not_matched_insert_all("s.op <> 'D'")
        .when_not_matched_by_source_update({"note": "concat(t.note, 'er')", "n": 0}, "t.id = 'k4'")
        .when_not_matched_by_source_delete("t.n = 5")
    )
    plan = merge.explain()
    assert (plan.source_rows, plan.matched, plan.inserted, plan.updated, plan.deleted) == (4, 3, 1, 3, 2)
    assert (plan.partitions, plan.file_groups) == (2, 2)
    assert plan.bytes_to_write > 0
    assert rows(table) == expected()
    merge.execute()
    assert rows(table) == expected(
        ("k1", "b", 71, 2, "old"),
        ("k2", "a", 1, 2, "new"),
        ("k9", "b", 9, 2, "new"),
        ("k4", "a", 0, 1, "older"),
        without=["k0", "k5"],
    )
    assert len(table.timeline.commits) == before + 1


def test_columns_that_the_source_lacks_stay_or_are_null_and_case_does_not_count(
    spark: SparkSession, table: HoodieTable
) -> None:
    source = spark.createDataFrame([("a", "k2", 20, 2), ("b", "k7", 7, 2)], "PART string, id string, N int, at long")
    result = table.merge(source, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table) == expected(("k2", "a", 20, 2, "old"), ("k7", "b", 7, 2, None))
    assert (result.inserted, result.updated) == (1, 1)


def test_values_and_columns_of_spark_and_other_aliases(spark: SparkSession, table: HoodieTable) -> None:
    source = frame(spark, [("k1", "b", 5, 2, "it's")])
    (
        table.merge(source, predicate=F.col("old.id") == F.col("new.id"), source_alias="new", target_alias="old")
        .when_matched_update({"note": F.upper("new.note"), "n": 12, "at": "new.at"}, predicate="old.note = 'old'")
        .execute()
    )
    assert rows(table) == expected(("k1", "b", 12, 2, "IT'S"))


def test_two_rows_for_one_are_an_error_unless_they_delete_it(spark: SparkSession, table: HoodieTable) -> None:
    twice = frame(spark, [("k1", "b", 5, 2, "x"), ("k1", "b", 6, 3, "y")])
    with pytest.raises(DuplicateKeyError, match="several rows of the source"):
        table.merge(twice, on="t.id = s.id").when_matched_update_all().execute()
    assert rows(table) == expected()
    table.merge(twice, on="t.id = s.id").when_matched_delete().execute()
    assert rows(table) == expected(without=["k1"])


def test_an_update_sets_columns_of_the_rows_that_fit(spark: SparkSession, table: HoodieTable) -> None:
    result = table.update(
        {"n": "n * 10 + at", "note": F.lit("it's")}, where="n >= :least and part = 'b'", params={"least": 3}
    )
    assert result.updated == 2
    assert rows(table) == expected(("k3", "b", 31, 1, "it's"), ("k5", "b", 51, 1, "it's"))
    table.update({"part": "'c'", "at": 9}, where="id = 'k0'")
    assert rows(table)["k0"] == ("c", 0, 9, "old")
    assert len(rows(table)) == 6
    table.update({"note": None})
    assert {row[3] for row in rows(table).values()} == {None}


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda t, s: t.update({"id": "'k9'"}), OptionError, "key"),
        (lambda t, s: t.update({"nn": "1"}), KeyFieldError, "nn"),
        (lambda t, s: t.update({}), OptionError, "changes no column"),
        (lambda t, s: t.update({"n": "no_such(n)"}), OptionError, "no_such"),
        (lambda t, s: t.update({"n": "1 +"}), OptionError, "1 .|Syntax|syntax"),
        (lambda t, s: t.merge(s), OptionError, "merge needs a condition"),
        (lambda t, s: t.merge(s, on="t.id = s.id").execute(), OptionError, "no clause"),
        (lambda t, s: t.merge(s, on="t.id = s.idd").when_matched_delete().execute(), OptionError, "idd"),
        (lambda t, s: t.merge(s, on="t.id = s.id").when_matched_update({"nn": "1"}).execute(), KeyFieldError, "nn"),
        (
            lambda t, s: t.merge(s, on="t.id = s.id").when_not_matched_insert({"id": "t.id"}).execute(),
            OptionError,
            "t.*id",
        ),
        (lambda t, s: t.merge([1], on="t.id = s.id"), SchemaError, "give a DataFrame"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_written(
    spark: SparkSession, table: HoodieTable, act: Any, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        act(table, frame(spark, [("k1", "b", 5, 2, "x")]))
    assert rows(table) == expected()


def test_keys_are_looked_up(spark: SparkSession, table: HoodieTable) -> None:
    assert {row["id"]: row["n"] for row in table.lookup(["k1", "k4", "none"]).collect()} == {"k1": 1, "k4": 4}
    keys = spark.createDataFrame([("k2",)], "id string")
    assert table.lookup(keys, ["note", "id"]).columns == ["note", "id"]
    assert table.lookup(keys).count() == 1
    assert table.head(2).count() == 2


def test_tables_whose_rows_cannot_be_changed_say_why(spark: SparkSession, tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "none", record_key="id")
    empty = HoodieTable.for_path(spark, str(tmp_path / "none"))
    hoodie.create_table(tmp_path / "bare", record_key="id", options={"hoodie.populate.meta.fields": "false"})
    bare = HoodieTable.for_path(spark, str(tmp_path / "bare"))
    bare.upsert(frame(spark, FIRST))
    source = frame(spark, FIRST)
    for table, text in ((empty, "no columns yet"), (bare, "populate.meta.fields=false")):
        for act in (
            lambda table=table: table.update({"n": 1}),
            lambda table=table: table.merge(source, on="t.id = s.id").when_matched_update_all().execute(),
        ):
            with pytest.raises(OptionError, match=text):
                act()
