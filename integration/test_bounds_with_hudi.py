"""Bounds of all types that columns have, by hoodie and by Apache Hudi in turns: its queries leave no row out by them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import hoodie
from tests.effort import soak_but
from tests.rows import rows_of

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        ("ts", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("narrow", pa.float32()),
        ("wide", pa.float64()),
        ("text", pa.string()),
        ("data", pa.binary()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(9, 2)),
        ("large", pa.decimal128(38, 10)),
        ("nothing", pa.int64()),
    ]
)
# Filters that NaN fits are not among them: Apache Hudi leaves such rows out of files that it wrote itself.
CONDITIONS = (
    *("flag = true", "small < -40", "small = 7", "narrow > 100", "wide > 1000 and not isnan(wide)", "wide <= -5"),
    *("text > 'u'", "text = 'é7'", "day < date '1969-12-25'", "amount < -3.5", "amount = 12.25", "nothing is null"),
    *("moment > timestamp '1970-01-01 00:00:09.5 UTC'", "large > 70000", "large = -3.25", "part = 'b' and small > 5"),
)
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "true",
    "hoodie.table.name": "kinds",
    "hoodie.write.auto.upgrade": "true",
}


def rows(ids, ts, *, shift=0):
    """Rows with other values in each turn; some are null, some NaN."""

    def row(number):
        n = number + shift
        value = {
            "flag": n % 3 == 0,
            "small": 7 * (n % 13) - 42,
            "narrow": n * 1.5,
            "wide": float("nan") if n % 5 == 2 else n * -2.5,
            "text": ("é" if n % 2 else "long " * 1200) + str(n),
            "data": bytes([n % 256, 255, 0]),
            "day": date(1970, 1, 1) + timedelta(days=n - 9),
            "moment": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=n, microseconds=n),
            "amount": Decimal(n * 175 - 1400) / 100,
            "large": Decimal(n * 10_000 * (-1) ** n) + Decimal("0.25"),
            "nothing": None,
        }
        lacks = {name for at, name in enumerate(value) if (n + at) % 11 == 4}
        return {"id": f"k{number}", "part": "ab"[number % 2], "ts": ts} | {
            name: None if name in lacks else each for name, each in value.items()
        }

    return pa.Table.from_pylist([row(number) for number in ids], SCHEMA)


@pytest.mark.parametrize(
    ("table_type", "version"),
    soak_but([("MERGE_ON_READ", "9")], [("MERGE_ON_READ", "9"), ("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "8")]),
)
def test_bounds_of_all_types(hudi, tmp_path, table_type, version):
    path, name = tmp_path / "table", f"kinds_{table_type.lower()}_{version}"
    more = OPTIONS | {"hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": version}

    def table():
        return hoodie.open_table(path)

    def checked():
        assert table().config.metadata_partitions == ("column_stats", "files", "partition_stats")
        assert hudi.sql(f"CALL validate_metadata_table_files(table => '{name}')").rows == []
        hudi.sql(f"REFRESH TABLE {name}")
        every = rows_of(table().scan().to_arrow())
        assert hudi.sql(f"SELECT {', '.join(SCHEMA.names)} FROM {name}").rows == every
        # One statement for all filters, as each costs Spark a second. In what it selects a condition leaves no file out.
        filtered = (f"SELECT {at} AS at, id FROM {name} WHERE {each}" for at, each in enumerate(CONDITIONS))
        found = {(row["at"], row["id"]) for row in hudi.sql(" UNION ALL ".join(filtered)).rows}
        values = ", ".join(f"({each}) AS `{at}`" for at, each in enumerate(CONDITIONS))
        judged = hudi.sql(f"SELECT id, {values} FROM {name}").rows
        fits = {(at, row["id"]) for row in judged for at, _ in enumerate(CONDITIONS) if row[str(at)]}
        assert found == fits, {CONDITIONS[at] for at, _ in found ^ fits}

    hudi.write(path, rows(range(12), 1), more, mode="overwrite")
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    table().upsert(rows(range(4), 2, shift=30))
    hudi.write(path, rows(range(2, 8), 3, shift=60), more)
    table().upsert(rows(range(6, 14), 4, shift=-20))
    table().delete(rows([1, 3], 5).select(["id", "part"]))
    if table_type == "MERGE_ON_READ":
        table().compact()
    checked()
    hudi.write(path, rows([9, 20], 6, shift=5), more)
    table().rollback(table().timeline.latest_commit.time)
    table().upsert(rows([9, 20, 21], 7, shift=9))
    hudi.write(path, rows([2, 9], 8, shift=2), more)
    checked()


def test_a_column_that_we_add_is_indexed(hudi, tmp_path):
    """By Apache Hudi's next write at the latest it is one that its queries look at."""
    path, name = tmp_path / "table", "grown"
    more = OPTIONS | {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.write.table.version": "9"}
    hudi.write(path, rows(range(8), 1), more, mode="overwrite")
    grown = rows(range(4), 2).append_column("added", pa.array([5, 6, 7, 8], pa.int64()))
    hoodie.open_table(path).upsert(grown)
    later = rows([5, 6], 3).append_column("added", pa.array([50, 60], pa.int64()))
    hudi.write(path, later, more)
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    for value, key in ((6, "k1"), (60, "k6"), (7, "k2")):
        assert [row["id"] for row in hudi.sql(f"SELECT id FROM {name} WHERE added = {value}").rows] == [key]
    assert [row["id"] for row in hudi.sql(f"SELECT id FROM {name} WHERE added is null ORDER BY id").rows] == [
        "k4",
        "k7",
    ]
    assert hoodie.open_table(path).config.metadata_partitions == ("column_stats", "files", "partition_stats")
