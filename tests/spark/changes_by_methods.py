"""What DataFrames change in tables by name, step by step: in a classic session and in one of Connect the same comes out."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.errors import HoodieError
from tests.spark.statement_files import commits_of, shown

DDL = "id string, part string, qty int, ts long"
EVERY_ID = "t.id = s.id"


def rows(spark: SparkSession, *given: tuple[Any, ...], ddl: str = DDL) -> DataFrame:
    return spark.createDataFrame(list(given), ddl).alias("s")


def all_clauses(spark: SparkSession, name: str) -> None:
    """Columns of the source by the DataFrame and by its alias, those of the table by its name."""
    source = rows(spark, ("k0", "a", 100, 2), ("k1", "b", 101, 2), ("k9", "c", 9, 2))
    merge = source.mergeInto(name, F.col("t.id") == source["id"])
    merge = merge.whenMatched(source["qty"] == 100).delete()
    merge = merge.whenMatched().update({"qty": F.col("t.qty") + source["qty"], "t.ts": F.col("s.ts")})
    merge = merge.whenNotMatched().insertAll()
    merge = merge.whenNotMatchedBySource(F.col("t.id") == "k2").delete()
    merge.whenNotMatchedBySource(F.expr(f"{name}.qty = 3")).update({"`qty`": F.lit(33), f"{name}.TS": F.lit(5)}).merge()


def move(spark: SparkSession, name: str) -> None:
    rows(spark, ("k4", "z", 44, 3)).mergeInto(
        name, F.col(f"{name}.id") == F.col("s.id")
    ).whenMatched().updateAll().merge()


def delete_twice(spark: SparkSession, name: str) -> None:
    rows(spark, *[("k5", "b", 5, 9)] * 2).mergeInto(name, F.expr(EVERY_ID)).whenMatched().delete().merge()


def insert(spark: SparkSession, name: str) -> None:
    source = rows(spark, ("k10", "n", 1, 2), ("k11", "n", 0, 2))
    merge = source.mergeInto(name, F.expr(EVERY_ID)).whenNotMatched(F.col("qty") > 0)
    merge.insert({"id": source["id"], "part": F.lit("n"), "ts": F.col("ts")}).merge()


def no_row_fits(spark: SparkSession, name: str) -> None:
    rows(spark, ("k99", "a", 1, 2)).mergeInto(name, F.expr(EVERY_ID)).whenMatched().delete().merge()


def overwrite(condition: Callable[[], Any], *given: tuple[Any, ...]) -> Callable[[SparkSession, str], None]:
    def step(spark: SparkSession, name: str) -> None:
        frame = rows(spark, *given) if given else rows(spark, ("none", "a", 1, 1)).where("false")
        frame.writeTo(name).overwrite(condition())

    return step


def append_null(spark: SparkSession, name: str) -> None:
    rows(spark, ("n1", None, 1, 1)).writeTo(name).append()


def evolve_by_all(spark: SparkSession, name: str) -> None:
    source = rows(spark, ("k4", "z", 5, "m"), ("k12", "q", 5, "n"), ddl="id string, part string, ts long, more string")
    merge = source.mergeInto(name, F.expr(EVERY_ID)).whenMatched(source["more"] == "m").updateAll()
    merge.whenNotMatched().insertAll().withSchemaEvolution().merge()


def evolve_by_some(spark: SparkSession, name: str) -> None:
    source = rows(spark, ("k9", 6, 1.5, True), ddl="id string, ts long, extra double, unused boolean")
    merge = source.mergeInto(name, source["id"] == F.col("t.id")).withSchemaEvolution().whenMatched()
    merge.update({"t.extra": source["extra"], "ts": F.col("s.ts")}).merge()


def evolve_without_rows(spark: SparkSession, name: str) -> None:
    source = rows(spark, ("k99", 1), ddl="id string, late int")
    source.mergeInto(name, F.expr(EVERY_ID)).withSchemaEvolution().whenMatched().update(
        {"late": F.col("s.late")}
    ).merge()


def overwrite_with_more(spark: SparkSession, name: str) -> None:
    ddl = f"{DDL}, more string, extra double, late int, newest int"
    frame = rows(spark, ("k4", "z", 45, 9, "m", 2.5, 1, 7), ddl=ddl)
    frame.writeTo(name).option("mergeSchema", "true").overwrite(F.col("part") == "z")


def replace_all(spark: SparkSession, name: str) -> None:
    spark.table(name).where("id = 'k4'").writeTo(name).overwrite(F.lit(True))


STEPS: Mapping[str, tuple[Callable[[SparkSession, str], None], int, str]] = {
    "all clauses": (all_clauses, 1, "k1 b 102, k3 b 33, k4 a 4, k5 b 5, k9 c 9"),
    "move": (move, 1, "k1 b 102, k3 b 33, k4 z 44, k5 b 5, k9 c 9"),
    "delete twice": (delete_twice, 1, "k1 b 102, k3 b 33, k4 z 44, k9 c 9"),
    "insert": (insert, 1, "k1 b 102, k10 n NULL, k3 b 33, k4 z 44, k9 c 9"),
    "no row fits": (no_row_fits, 0, "k1 b 102, k10 n NULL, k3 b 33, k4 z 44, k9 c 9"),
    "one partition, with a row outside": (
        overwrite(lambda: F.col("part") == "b", ("o1", "b", 1, 1), ("o2", "z", 2, 1)),
        1,
        "k10 n NULL, k4 z 44, k9 c 9, o1 b 1, o2 z 2",
    ),
    "no partition": (
        overwrite(lambda: F.col("part") == "w", ("p1", "w", 1, 1), ("p2", "b", 2, 1)),
        1,
        "k10 n NULL, k4 z 44, k9 c 9, o1 b 1, o2 z 2, p1 w 1, p2 b 2",
    ),
    "null": (append_null, 1, "k10 n NULL, k4 z 44, k9 c 9, n1 NULL 1, o1 b 1, o2 z 2, p1 w 1, p2 b 2"),
    "null partition": (
        overwrite(lambda: F.col("part").isNull(), ("n2", None, 2, 1)),
        1,
        "k10 n NULL, k4 z 44, k9 c 9, n2 NULL 2, o1 b 1, o2 z 2, p1 w 1, p2 b 2",
    ),
    "no rows": (overwrite(lambda: F.col("part") == "b"), 1, "k10 n NULL, k4 z 44, k9 c 9, n2 NULL 2, o2 z 2, p1 w 1"),
    "evolution by all": (
        evolve_by_all,
        1,
        "k10 n NULL NULL, k12 q NULL n, k4 z 44 m, k9 c 9 NULL, n2 NULL 2 NULL, o2 z 2 NULL, p1 w 1 NULL",
    ),
    "evolution by some": (
        evolve_by_some,
        1,
        "k10 n NULL NULL NULL, k12 q NULL NULL n, k4 z 44 NULL m, k9 c 9 1.5 NULL, n2 NULL 2 NULL NULL, o2 z 2 NULL NULL, "
        "p1 w 1 NULL NULL",
    ),
    "evolution without rows": (
        evolve_without_rows,
        1,
        "k10 n NULL NULL NULL NULL, k12 q NULL NULL NULL n, k4 z 44 NULL NULL m, k9 c 9 1.5 NULL NULL, "
        "n2 NULL 2 NULL NULL NULL, o2 z 2 NULL NULL NULL, p1 w 1 NULL NULL NULL",
    ),
    "overwrite with another column": (
        overwrite_with_more,
        1,
        "k10 n NULL NULL NULL NULL NULL, k12 q NULL NULL NULL n NULL, k4 z 45 2.5 1 m 7, k9 c 9 1.5 NULL NULL NULL, "
        "n2 NULL 2 NULL NULL NULL NULL, p1 w 1 NULL NULL NULL NULL",
    ),
    "replace all": (replace_all, 1, "k4 z 45 2.5 1 m 7"),
}
"""What is done, how many commits it makes, and the rows then: keys, partitions, quantities, and columns that were added."""
EXPECTED = {name: [commits, then] for name, (_, commits, then) in STEPS.items()}
TWO_LEVELS = ["2 1 y, 3 2 x, 4 1 x", "3 2 x, 5 1 z"]


def play(spark: SparkSession, database: str, table_type: str, version: str) -> dict[str, list[Any]]:
    """What each step did to a table of this type."""
    spark.sql(f"create database {database}")
    name = f"{database}.t"
    spark.sql(
        f"create table {name} (id string, part string, qty int, ts long) using hoodie partitioned by (part) tblproperties "
        f"(type = '{table_type}', primaryKey = 'id', preCombineField = 'ts', 'hoodie.write.table.version' = '{version}')"
    )
    rows(spark, *[(f"k{n}", "ab"[n % 2], n, 1) for n in range(6)]).writeTo(name).append()
    told = {}
    for step, (change, _, _) in STEPS.items():
        before = commits_of(spark, database)
        change(spark, name)
        told[step] = [commits_of(spark, database) - before, rows_of(spark, name)]
    return told


def rows_of(spark: SparkSession, name: str) -> str:
    table = spark.table(name)
    columns = ["id", "part", "qty", *sorted(set(table.columns) - {"id", "part", "qty", "ts"})]
    return ", ".join(sorted(shown(row) for row in table.select(*columns).collect()))


def two_levels(spark: SparkSession, database: str) -> list[str]:
    """Overwrites by both partition columns, and by the first."""
    name, ddl = f"{database}.u", "id int, a int, b string"
    spark.sql(f"create table {name} ({ddl}) using hoodie partitioned by (a, b) tblproperties (primaryKey = 'id')")
    rows(spark, (1, 1, "x"), (2, 1, "y"), (3, 2, "x"), ddl=ddl).writeTo(name).append()
    found = []
    for condition, row in (
        ((F.col("a") == 1) & (F.col("b") == "x"), (4, 1, "x")),
        (F.col("a") == 1, (5, 1, "z")),
    ):
        rows(spark, row, ddl=ddl).writeTo(name).overwrite(condition)
        found.append(", ".join(sorted(shown(row) for row in spark.table(name).select("id", "a", "b").collect())))
    return found


REFUSED: Mapping[str, tuple[Callable[[DataFrame, str], Any], str]] = {
    "no clause": (lambda one, name: one.mergeInto(name, F.expr(EVERY_ID)).merge(), "does nothing"),
    "no row of the source": (
        lambda one, name: one.mergeInto(name, F.expr(EVERY_ID)).whenNotMatchedBySource().updateAll(),
        "has no row of the source",
    ),
    "unknown column": (
        lambda one, name: one.mergeInto(name, F.expr(EVERY_ID)).whenMatched().update({"t.no": F.lit(1)}).merge(),
        "no is no column of the table",
    ),
    "field": (
        lambda one, name: one.mergeInto(name, F.expr(EVERY_ID)).whenMatched().update({"part.x": F.lit(1)}).merge(),
        "is a field",
    ),
    "column twice": (
        lambda one, name: (
            one.mergeInto(name, F.expr(EVERY_ID)).whenMatched().update({"qty": F.lit(1), "QTY": F.lit(2)}).merge()
        ),
        "twice",
    ),
    "lacking column": (
        lambda one, name: one.drop("qty").mergeInto(name, F.expr(EVERY_ID)).whenMatched().updateAll().merge(),
        "lack its column",
    ),
    "other column": (
        lambda one, name: one.sparkSession.table(name).writeTo(name).overwrite(F.col("qty") == 1),
        "replaces whole partitions",
    ),
}
"""What a client of Connect does not do, and a word of why; the first two are the same in a classic session."""


def refusals(spark: SparkSession, database: str, *names: str) -> list[str]:
    """Of those cases that are not errors of ours with their words, what they are; and of all that commit something."""
    found = []
    for case in names:
        call, words = REFUSED[case]
        before = commits_of(spark, database)
        try:
            call(rows(spark, ("k4", "z", 1, 99)), f"{database}.t")
            found.append(f"{case}: no error")
        except HoodieError as error:
            if words not in str(error):
                found.append(f"{case}: {error}")
        if commits_of(spark, database) != before:
            found.append(f"{case}: a commit")
    return found
