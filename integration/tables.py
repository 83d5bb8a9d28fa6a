"""Tables that hoodie wrote through the embedded engine, each with the rows that must be in it after every commit.

The rows are kept by a few lines of plain Python (`Written`), so that two readers that are wrong in the same way are found.
"""

import datetime as dt
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.layout import TIMELINES
from hoodie.model.enums import State
from hoodie.model.names import name_of
from hoodie.model.tuning import TUNING, Tuning
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.table import HoodieTable, open_at
from tests.begun import begun
from tests.engines import Meanwhile
from tests.rows import Row, rows_of
from tests.small_files import SIZED

Values = dict[str, Any]


class Written:
    """A table under test and what must be in it. `states`: instant -> rows after it, in the golden encoding."""

    def __init__(self, path: Path, schema: pa.Schema, *, table: HoodieTable | None = None, **create: Any) -> None:
        """Create a table, or go on with one that somebody else made and left empty."""
        self.path = path
        self.schema = schema
        self.table = table or hoodie.create_table(path, schema, **create)
        self.states: dict[str, list[Row]] = {}
        self.batch_rows = 100_000
        self._rows: dict[tuple[Any, ...], Values] = {}

    def upsert(self, rows: Sequence[Values], options: Mapping[str, str] | None = None) -> None:
        result = self.table.upsert(self.batches(rows), options)
        self.merge(rows)
        self._note(result.instant)

    def add(self, rows: Sequence[Values], how: str, options: Mapping[str, str] | None = None) -> None:
        """New keys, by `insert` or `bulk_insert`."""
        result = getattr(self.table, how)(self.batches(rows), options)
        for row in rows:
            self._rows[self._key(row)] = row
        self._note(result.instant)

    def delete(self, rows: Sequence[Values]) -> None:
        result = self.table.delete(self.arrow(rows))
        self.remove(rows)
        self._note(result.instant)

    def compact(self) -> None:
        for result in self.table.compact():
            self._note(result.instant)

    def fail(self, rows: Sequence[Values]) -> str:
        """An upsert that dies right before its completed file is published; its instant stays pending."""
        dies_before_publishing(self.path, self.arrow(rows))
        (pending,) = self.table.timeline.pending_writes
        return pending.time

    def widen(self, schema: pa.Schema) -> None:
        """Later writes have this schema."""
        self.schema = schema

    def tune(self, tuning: Tuning) -> None:
        """Work of later writes is cut by these sizes."""
        self.table = open_at(LocalStorage(self.path), tuning=tuning)

    def arrow(self, rows: Sequence[Values]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), schema=self.schema)

    def batches(self, rows: Sequence[Values]) -> pa.RecordBatchReader:
        return self.arrow(rows).to_reader(max_chunksize=self.batch_rows)

    @property
    def rows(self) -> list[Row]:
        """What a snapshot must show now."""
        return rows_of(self.arrow(list(self._rows.values())))

    def _key(self, row: Values) -> tuple[Any, ...]:
        config = self.table.config
        return tuple(row[name] for name in (*config.partition_fields, *config.record_key_fields))

    def merge(self, rows: Sequence[Values]) -> None:
        """What an upsert makes of the rows, whoever did it."""
        ordering = self.table.config.ordering_fields
        for row in rows:
            key = self._key(row)
            old = self._rows.get(key)
            if old is not None and ordering and row[ordering[0]] < old[ordering[0]]:
                continue
            if row.get("_hoodie_is_deleted"):
                self._rows.pop(key, None)
            else:
                self._rows[key] = row

    def remove(self, rows: Sequence[Values]) -> None:
        """What a delete does, whoever did it."""
        for row in rows:
            self._rows.pop(self._key(row), None)

    def _note(self, instant: str | None) -> None:
        assert instant is not None
        self.states[instant] = self.rows


class WholeTable(Written):
    """Keys are unique in the whole table."""

    def _key(self, row):
        return tuple(row[name] for name in self.table.config.record_key_fields)


def dies_before_publishing(path: Path, rows: pa.Table) -> None:
    """An upsert that dies right before its completed file is published; nothing, when it changes nothing."""
    trial = path.with_name(f"{path.name}-trial")
    shutil.copytree(path, trial)
    traced = FaultStorage(LocalStorage(trial))
    open_at(traced).upsert(rows)
    publishing = next((c.n for c in traced.trace if c.verb == "create_new" and completes_write(c.path)), None)
    shutil.rmtree(trial)
    if publishing is None:
        return
    with pytest.raises(InjectedFault):
        open_at(FaultStorage(LocalStorage(path), [Fault(publishing)])).upsert(rows)


def completes_write(path: str) -> bool:
    """Whether this is the completed file of a commit or delta commit."""
    found = (layout.parse(name_of(path)) for layout in TIMELINES)
    instant = next((each for each in found if each is not None), None)
    return instant is not None and instant.state is State.COMPLETED and instant.action in {"commit", "deltacommit"}


TRIPS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("fare", pa.float64()),
        pa.field("note", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)


def trips(
    ids: Sequence[int], *, fare: float, ts: int, deleted: bool | None = None, note: str | None = "n"
) -> list[Values]:
    """Trips in two cities; the id says which."""
    return [
        {
            "id": f"t{n:04d}",
            "city": ("ny", "sf")[n % 2],
            "fare": fare + n,
            "note": note,
            "ts": ts,
            "_hoodie_is_deleted": deleted,
        }
        for n in ids
    ]


def moved(ids, city, *, fare, ts):
    return [row | {"city": city} for row in trips(ids, fare=fare, ts=ts)]


def ordered_history(path: Path, table_type: str, **create: Any) -> Written:
    """Inserts, updates, a late row, a delete, a marked delete, a delete that comes late, and new keys in between."""
    table = Written(path, TRIPS, record_key="id", partition_by="city", ordering="ts", table_type=table_type, **create)
    table.upsert(trips(range(20), fare=1, ts=10))
    table.upsert(trips([1, 2, 3, 20, 21], fare=100, ts=20, note=None))
    table.upsert(trips([2, 4, 22], fare=200, ts=5, note="late, but for 22"))
    table.delete(trips([3, 5, 999], fare=0, ts=0))
    table.upsert(trips([1, 6, 998], fare=0, ts=30, deleted=True) + trips([7], fare=0, ts=1, deleted=True))
    return table


def cow_simple(path: Path) -> Written:
    table = ordered_history(path, "COPY_ON_WRITE")
    table.add(trips([30, 31], fare=3, ts=1), "insert")
    return table


def mor_logs(path: Path) -> Written:
    return ordered_history(path, "MERGE_ON_READ")


def mor_compacted(path: Path) -> Written:
    table = ordered_history(path, "MERGE_ON_READ")
    table.compact()
    table.upsert(trips([8, 9, 40], fare=300, ts=40))
    table.delete(trips([10], fare=0, ts=0))
    table.compact()
    table.upsert(trips([8, 41], fare=400, ts=50) + trips([12], fare=500, ts=1, note="late after a compaction"))
    return table


def mor_pending_compaction(path: Path) -> Written:
    table = ordered_history(path, "MERGE_ON_READ")
    assert table.table.schedule_compaction() is not None
    table.upsert(trips([8, 9, 40], fare=300, ts=40))
    table.delete(trips([10], fare=0, ts=0))
    table.upsert(trips([8, 11], fare=400, ts=50))
    return table


def mor_rolled_back(path: Path) -> Written:
    table = Written(path, TRIPS, record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ")
    table.upsert(trips(range(12), fare=1, ts=10))
    table.upsert(trips([1, 2], fare=100, ts=20))
    table.fail(trips([1, 2, 3, 50, 51], fare=666, ts=90))
    table.upsert(trips([2, 4], fare=200, ts=30))
    table.fail(trips([2, 4], fare=777, ts=91))
    assert len(table.table.rollback()) == 1
    table.compact()
    table.fail(trips([5], fare=888, ts=92))
    table.delete(trips([6], fare=0, ts=0))
    return table


def cow_rolled_back(path: Path) -> Written:
    table = Written(path, TRIPS, record_key="id", partition_by="city", ordering="ts")
    table.upsert(trips(range(12), fare=1, ts=10))
    table.fail(trips([1, 2, 3, 50, 51], fare=666, ts=90))
    table.upsert(trips([2, 4], fare=200, ts=30))
    return table


def cow_commit_time_non_partitioned(path: Path) -> Written:
    table = Written(path, TRIPS, record_key="id")
    return commit_time_history(table)


def mor_commit_time_non_partitioned(path: Path) -> Written:
    table = Written(path, TRIPS, record_key="id", table_type="MERGE_ON_READ")
    return commit_time_history(table)


def commit_time_history(table: Written) -> Written:
    table.upsert(trips(range(10), fare=1, ts=10))
    table.upsert(trips([1, 2], fare=100, ts=1, note="later counts"))
    table.delete(trips([2, 3], fare=0, ts=0))
    table.upsert(trips([2, 4, 11], fare=200, ts=0) + trips([5], fare=0, ts=0, deleted=True))
    return table


COMPOSITE = pa.schema(
    [
        pa.field("carrier", pa.string()),
        pa.field("number", pa.int32()),
        pa.field("region", pa.string()),
        pa.field("day", pa.date32()),
        pa.field("seats", pa.int32()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)


def flights(numbers: Sequence[int], *, seats: int, hour: int) -> list[Values]:
    regions = ["eu/north", "a b&c=d", "Zürich", "100%"]
    return [
        {
            "carrier": ("AA", "B:6", "C,1")[n % 3],
            "number": n,
            "region": regions[n % 4],
            "day": dt.date(2024, 2, 28 + n % 2),
            "seats": seats,
            "at": dt.datetime(2024, 2, 28, hour, tzinfo=dt.UTC),
        }
        for n in numbers
    ]


def composite_hive(path: Path, table_type: str) -> Written:
    options = {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    table = Written(
        path,
        COMPOSITE,
        record_key=["carrier", "number"],
        partition_by=["region", "day"],
        ordering="at",
        table_type=table_type,
        options=options,
    )
    table.add(flights(range(16), seats=1, hour=1), "bulk_insert")
    table.upsert(flights([3, 4, 20], seats=2, hour=2) + flights([5], seats=3, hour=0))
    table.delete(flights([6, 7], seats=0, hour=0))
    return table


NESTED = pa.struct([pa.field("x", pa.int32()), pa.field("deep", pa.struct([pa.field("y", pa.list_(pa.string()))]))])
TYPES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.int32()),
        pa.field("flag", pa.bool_()),
        pa.field("whole", pa.int32()),
        pa.field("long", pa.int64()),
        pa.field("single", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("big", pa.decimal128(38, 6)),
        pa.field("items", pa.list_(pa.int32())),
        pa.field("named", pa.map_(pa.string(), pa.float64())),
        pa.field("inside", NESTED),
        pa.field("many", pa.list_(NESTED)),
        pa.field("ts", pa.int32()),
    ]
)


def typed(n: int, *, ts: int) -> Values:
    """Every type, with extremes; each third row is null wherever it may be."""
    if n % 3 == 2:
        return dict.fromkeys(TYPES.names) | {"id": n, "part": n % 2, "ts": ts}
    inside = {"x": n, "deep": {"y": ["a", None, "ü😀"]}}
    return {
        "id": n,
        "part": n % 2,
        "flag": n % 2 == 0,
        "whole": (-(2**31), 2**31 - 1)[n % 2],
        "long": (-(2**63), 2**63 - 1)[n % 2],
        "single": (0.5, -1.5e30)[n % 2],
        "double": (float("nan"), 1e-300, float("inf"), -0.0)[n % 4],
        "text": ("", "Grüße 😀\n\t\"'\\", "x" * 300)[n % 3 if n % 3 != 2 else 0],
        "raw": bytes([0, n % 256, 255]),
        "day": (dt.date(1969, 12, 31), dt.date(9999, 12, 31))[n % 2],
        "at": dt.datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC) + dt.timedelta(days=n),
        "price": Decimal("-12345678.90") if n % 2 else Decimal("0.01"),
        "big": Decimal("12345678901234567890123456789012.123456") * (-1) ** n,
        "items": [1, None, n],
        "named": [("k", 1.5), ("none", None)],
        "inside": inside,
        "many": [inside, None, {"x": None, "deep": None}],
        "ts": ts,
    }


def all_types(path: Path, table_type: str) -> Written:
    table = Written(path, TYPES, record_key="id", partition_by="part", ordering="ts", table_type=table_type)
    table.upsert([typed(n, ts=1) for n in range(12)])
    table.upsert([typed(n, ts=2) | {"text": "changed"} for n in (0, 1, 2, 5)] + [typed(50, ts=1)])
    table.delete([typed(3, ts=0)])
    return table


BEFORE = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("count", pa.int32()),
        pa.field("rate", pa.float32()),
        pa.field("ts", pa.int32()),
    ]
)
AFTER = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("rate", pa.float64()),
        pa.field("ts", pa.int32()),
        pa.field("extra", pa.string()),
    ]
)


def evolving(ids: Sequence[int], *, count: int, ts: int, **more: Any) -> list[Values]:
    return [{"id": f"e{n}", "part": ("a", "b")[n % 2], "count": count + n, "rate": 0.5, "ts": ts, **more} for n in ids]


def added_column(path: Path, table_type: str) -> Written:
    table = Written(path, BEFORE, record_key="id", partition_by="part", ordering="ts", table_type=table_type)
    table.upsert(evolving(range(8), count=1, ts=1))
    table.upsert(evolving([1, 2], count=10, ts=2))
    table.widen(BEFORE.append(pa.field("extra", pa.string())))
    table.upsert(evolving([2, 3, 9], count=20, ts=3, extra="new"))
    table.delete(evolving([4], count=0, ts=0))
    return table


def widened_columns(path: Path, table_type: str) -> Written:
    table = Written(path, BEFORE, record_key="id", partition_by="part", ordering="ts", table_type=table_type)
    table.upsert(evolving(range(8), count=1, ts=1))
    table.upsert(evolving([1, 2], count=10, ts=2))
    table.widen(AFTER)
    table.upsert(evolving([2, 3, 9], count=2**40, ts=3, extra="new"))
    table.upsert(evolving([1, 9], count=2**41, ts=4, extra="newer"))
    return table


def many_small_files(path: Path, table_type: str) -> Written:
    """Many file groups of few rows each, and batches that come in several chunks."""
    options = {"hoodie.parquet.max.file.size": "2000", "hoodie.parquet.small.file.limit": "1000"}
    table = Written(path, TRIPS, record_key="id", partition_by="city", ordering="ts", table_type=table_type)
    table.tune(replace(SIZED, chunk_bytes=2_000))
    table.batch_rows = 50
    table.add(trips(range(400), fare=1, ts=10), "bulk_insert", options)
    table.upsert(trips(range(0, 500, 7), fare=100, ts=20), options)
    table.add(trips(range(600, 640), fare=5, ts=1), "insert", options)
    table.delete(trips(range(0, 400, 50), fare=0, ts=0))
    return table


def mor_hot_group(path: Path) -> Written:
    """Each commit writes several log files for one file group."""
    table = Written(path, TRIPS, record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.tune(replace(SIZED, append_bytes=3_000))
    table.upsert(trips(range(300), fare=1, ts=10))
    table.upsert(trips(range(0, 300, 2), fare=100, ts=20))
    table.upsert(trips(range(0, 300, 3), fare=200, ts=15) + trips(range(1, 40, 2), fare=0, ts=30, deleted=True))
    table.delete(trips(range(200, 300, 4), fare=0, ts=0))
    assert len(list(path.glob(".*.log.*"))) > 3, "each of three commits was to write several logs"
    return table


def mor_small_files(path: Path) -> Written:
    """Few new rows are merged into small base files, with the changed rows that come beside them."""
    table = Written(path, TRIPS, record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ")
    table.tune(TUNING)
    table.upsert(trips(range(30), fare=1, ts=10))
    table.upsert(trips([1, 2, 30, 31], fare=100, ts=20))
    assert not list(path.rglob("*.log.*"))
    table.upsert(trips([3, 4], fare=200, ts=30))
    table.upsert(trips([1, 4, 32], fare=300, ts=25))
    table.compact()
    table.upsert(trips([5, 33, 34], fare=400, ts=40) + trips([6], fare=0, ts=40, deleted=True))
    return table


def writers_at_once(path: Path, table_type: str) -> Written:
    """The second of two writers begins before the first one ends, and both change the same file groups."""
    table = Written(path, TRIPS, record_key="id", partition_by="city", ordering="ts", table_type=table_type)
    table.upsert(trips(range(30), fare=1, ts=10))
    first = trips([1, 2, 3, 40], fare=100, ts=20) + trips([4], fare=0, ts=20, deleted=True)
    second = trips([2, 3, 4, 5, 40, 41], fare=200, ts=20) + trips([6], fare=0, ts=20, deleted=True)
    with begun(table.table, table.arrow(first)) as end:
        open_at(LocalStorage(path), engine=Meanwhile("write files", end)).upsert(table.arrow(second))
    for rows, commit in zip((first, second), table.table.timeline.commits[-2:], strict=True):
        table.merge(rows)
        table._note(commit.time)
    return table


Builder = Callable[[Path], Written]


def _of_both_types(name: str, build: Callable[[Path, str], Written]) -> dict[str, Builder]:
    return {
        f"cow_{name}": lambda path: build(path, "COPY_ON_WRITE"),
        f"mor_{name}": lambda path: build(path, "MERGE_ON_READ"),
    }


BUILDERS: dict[str, Builder] = {
    "cow_simple": cow_simple,
    "mor_logs": mor_logs,
    "mor_hot_group": mor_hot_group,
    "mor_compacted": mor_compacted,
    "mor_pending_compaction": mor_pending_compaction,
    "mor_small_files": mor_small_files,
    "mor_rolled_back": mor_rolled_back,
    "cow_rolled_back": cow_rolled_back,
    "cow_commit_time_non_partitioned": cow_commit_time_non_partitioned,
    "mor_commit_time_non_partitioned": mor_commit_time_non_partitioned,
    **_of_both_types("composite_hive", composite_hive),
    **_of_both_types("all_types", all_types),
    **_of_both_types("added_column", added_column),
    **_of_both_types("widened_columns", widened_columns),
    **_of_both_types("many_small_files", many_small_files),
    **_of_both_types("writers_at_once", writers_at_once),
}


def each_once(folders: pytest.TempPathFactory) -> Callable[[str], Written]:
    """Gives a table of `BUILDERS` by name; it is written when it is first asked for, and is only to be read."""
    made: dict[str, Written] = {}

    def get(name: str) -> Written:
        if name not in made:
            made[name] = BUILDERS[name](folders.mktemp("ours") / name)
        return made[name]

    return get
