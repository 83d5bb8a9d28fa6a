"""Statements of Spark SQL and of the builder on tables at these paths, as a program of its own: the test's has Hudi's session.

python -m integration.sql_job FOLDER KIND-VERSION…
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_hoodie
from pyspark_hoodie import HoodieTable

STATEMENTS = """
INSERT INTO {t} SELECT cast(id AS INT), concat('v', id), 1L, named_struct('a', cast(id AS INT)),
  if(id % 2 = 0, 'even', 'odd') FROM range(1, 12)
UPDATE {t} SET v = concat(v, '!'), p = if(id = 2, 'moved', p), ts = 2L WHERE id < 5
DELETE FROM {t} WHERE id IN (3, 11)
MERGE INTO {t} t USING (SELECT 4 AS id, 'm' AS v UNION ALL SELECT 7, 'gone' UNION ALL SELECT 99, 'new') s ON t.id = s.id
  WHEN MATCHED AND s.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, n.a = -1, ts = 3L
  WHEN NOT MATCHED THEN INSERT (id, v, ts, p) VALUES (s.id, s.v, 5L, 'odd') WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN DELETE
INSERT INTO {t} (id, v, ts, n, p) VALUES (100, 'x', 1L, NULL, NULL)
MERGE INTO {t} t USING (SELECT 5 AS id, 'w' AS w UNION ALL SELECT 98, 'nobody') s ON t.id = s.id
  WHEN MATCHED AND t.n.a = 5 THEN UPDATE SET v = concat(t.v, s.w), ts = t.ts + 3
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 5 AS id, 9L AS ts, 1.5D AS more UNION ALL SELECT 97, 9L, 2.5D) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT (id, ts, more, p) VALUES (s.id, s.ts, s.more, 'odd')
"""


def change(table: HoodieTable, spark: SparkSession) -> None:
    source = spark.sql(
        "SELECT 8 AS id, 'b' AS v, 9L AS ts, 'moved' AS p UNION ALL SELECT 9, '', 9L, '' UNION ALL SELECT 96, 'i', 9L, 'odd'"
    )
    table.update({"v": "concat(v, '?')", "ts": "ts + 10", "p": "'moved'"}, where="id = 10")
    merge = table.merge(source, on="t.id = s.id").when_matched_delete("s.v = ''").when_matched_update_all()
    merge.when_not_matched_insert_all().when_not_matched_by_source_update({"more": "t.id / 2"}, "t.id = 100").execute()


def main(folder: Path, tables: list[str]) -> None:
    settings = {"ui.enabled": "false", "sql.shuffle.partitions": "1", "sql.warehouse.dir": str(folder / "warehouse")}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    pyspark_hoodie.enable(spark)
    for each in tables:
        kind, version = each.split("-")
        name = f"t_{kind}_{version}"
        spark.sql(
            f"CREATE TABLE {name} (id INT, v STRING, ts BIGINT, n STRUCT<a: INT>, p STRING) USING hoodie PARTITIONED BY (p) "
            f"LOCATION '{folder / each}' TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts', "
            f"'hoodie.write.table.version' = '{version}')"
        )
        for text in STATEMENTS.strip().replace("\n  ", " ").splitlines():
            spark.sql(text.format(t=name))
        change(HoodieTable.for_path(spark, str(folder / each)), spark)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
