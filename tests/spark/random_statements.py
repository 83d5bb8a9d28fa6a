"""Random statements on a table in Spark, beside the same text on a plain table of DuckDB; for classic sessions and Connect."""

import duckdb

from pyspark_hoodie.arrow_frame import arrow_frame
from tests.dml.random_statements import Statements

STEPS = 8
COLUMNS = "id, part, n, x, note"


def first_difference(spark, table_type, seed):
    """The first statement after which the rows are others, with both; None if there is none."""
    made = Statements(seed)
    plain = duckdb.connect()
    plain.register("first_rows", first := made.rows())
    plain.execute("CREATE TABLE t AS FROM first_rows")
    arrow_frame(spark, first).createOrReplaceTempView("first_rows")
    spark.sql("DROP TABLE IF EXISTS t")
    spark.sql(
        "CREATE TABLE t (id STRING, n BIGINT, x DOUBLE, note STRING, part STRING) USING hoodie PARTITIONED BY (part) "
        f"TBLPROPERTIES (primaryKey = 'id', type = '{table_type}')"
    )
    spark.sql(f"INSERT INTO t ({COLUMNS}) SELECT {COLUMNS} FROM first_rows")
    for _ in range(STEPS):
        source, others = made.rows(), made.rows().select(["id"])
        for name, rows in (("s", source), ("u", others)):
            plain.register(name, rows)
            arrow_frame(spark, rows).createOrReplaceTempView(name)
        text = made.statement()
        if text.startswith("MERGE"):  # Spark's own MERGE has no subqueries in conditions
            text = text.replace("(SELECT id FROM u)", "('k1', 'k7', 'k12')")
        plain.execute(text)
        spark.sql(in_spark(text))
        expected = plain.sql(f"SELECT {COLUMNS} FROM t").fetchall()
        found = [tuple(row) for row in spark.sql(f"SELECT {COLUMNS} FROM t").collect()]
        if sorted(found, key=repr) != sorted(expected, key=repr):
            return (
                f"seed {seed}: {text}\n  found:    {sorted(found, key=repr)}\n  expected: {sorted(expected, key=repr)}"
            )
    spark.sql("DROP TABLE t")
    return None


def in_spark(text):
    """The same in Spark's dialect, where partition columns are the last ones, and two quotes in a text are none."""
    return text.replace("INSERT INTO t SELECT", f"INSERT INTO t ({COLUMNS}) SELECT").replace("it''s", "it\\'s")
