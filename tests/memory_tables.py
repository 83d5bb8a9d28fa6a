"""Small tables in memory with a clock that tests own: what the model, the crash tests and the rules' tests write to.

Where the environment names a server, they are made there (`tests/placed.py`).
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.model.names import (
    HEARTBEATS,
    HOODIE,
    MARKERS,
    PARTITION_METADATA,
    ROW_COPIES,
    STAGING,
    folder_of,
    name_of,
    parse_row_copy,
)
from hoodie.model.tuning import Tuning
from hoodie.options.parse import parse_write_options
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from hoodie.table import HoodieTable, open_at
from hoodie.write.create import create_at
from tests.placed import SERVER, ServerClock, TableInHdfs, TableInS3, new_on_server

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("val", pa.int64()),
        pa.field("ts", pa.int64()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)

KEEP_ALL = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


class OwnClock:
    """Seconds since the epoch that pass only when somebody sleeps, or when a test says so."""

    def __init__(self, now_s: float = 1_764_000_000.0) -> None:
        self.now_s = now_s
        self.slept_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self.now_s += seconds


FakeClock = OwnClock if SERVER is None else ServerClock


class Input(NamedTuple):
    """A row as it is written."""

    id: str
    part: str
    val: int | None = 0
    ts: int | None = 0
    deleted: bool | None = False


def batch(rows: Iterable[Input]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[] for _ in SCHEMA]
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def keys(rows: Iterable[Input]) -> pa.Table:
    return batch(rows).select(["id", "part"])


def create(
    storage: Storage, *, table_type: str, ordering: str | None = "ts", more: Mapping[str, str] | None = None
) -> None:
    """A table with the columns of `SCHEMA`; `more` are further options."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        **(more or {}),
    }
    if ordering:
        options["hoodie.datasource.write.precombine.field"] = ordering
    create_at(storage, parse_write_options(options).to_create(), schema=SCHEMA)


def opened(
    storage: Storage,
    clock: FakeClock | None = None,
    options: Mapping[str, str] | None = None,
    *,
    cache: Cache | None = None,
    tuning: Tuning | None = None,
) -> HoodieTable:
    """The table with one thread, so that storage calls come in one order; `cache` is that of another process.

    Nothing is cleaned or archived unless a test says so: many compare all of a long history.
    """
    sleep = time.sleep if clock is None else clock.sleep
    options = {**KEEP_ALL, **(options or {})}
    return open_at(storage, engine=LocalEngine(1), options=options, sleep=sleep, cache=cache, tuning=tuning)


class Parts(LocalEngine):
    """Records are a list of parts, each a list of batches, as a cluster's workers get them; counts how often they are read."""

    name = "parts"
    shares_memory = False

    def __init__(self) -> None:
        super().__init__(1)
        self.read_parts = 0
        self.labels: list[str] = []

    def stage(self, records: Any, fn: Any, *, label: str) -> list[Any]:
        self.labels.append(label)
        found = []
        for number, batches in enumerate(records):
            self.read_parts += 1
            found += fn(number, iter(batches() if callable(batches) else batches))
        return found

    def run(self, fn: Any, tasks: Sequence[Any], *, label: str, at_once: int = 1) -> list[Any]:
        self.labels.append(label)
        return super().run(fn, tasks, label=label)


def parts_of(*tables: pa.Table) -> list[list[pa.RecordBatch]]:
    return [table.to_batches(max_chunksize=100) for table in tables]


def new_storage(clock: FakeClock, kind: type[MemoryStorage] = MemoryStorage) -> Any:
    """An empty storage whose files have the times that this clock shows.

    A kind of its own stays in memory, also where there is a server.
    """
    return kind(clock=clock) if SERVER is None or kind is not MemoryStorage else new_on_server()


def copy_of(storage: Any) -> tuple[Any, FakeClock]:
    """Another storage with this content, and a clock that shows the same time."""
    if isinstance(storage, TableInS3 | TableInHdfs):
        return storage.copied(), FakeClock()
    clock = FakeClock(storage.now_s())
    other = new_storage(clock, type(storage))
    other.restore(storage.snapshot())
    return other, clock


def left_by(storage: Any) -> tuple[Any, FakeClock]:
    """What a process that died has left there, as another one finds it: nothing that the dead one held is held any more.

    What is given must not be used again: a server moves it.
    """
    if isinstance(storage, TableInS3 | TableInHdfs):
        return storage.moved(), FakeClock()
    return copy_of(storage)


def new_table(
    *, table_type: str, ordering: str | None = "ts", more: Mapping[str, str] | None = None
) -> tuple[Any, FakeClock]:
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type=table_type, ordering=ordering, more=more)
    return storage, clock


Row = tuple[Any, ...]


def plain(scan: hoodie.Scan) -> list[Row]:
    """(id, part, val, ts, commit time) of each row, sorted; for scans with meta columns."""
    names = ("id", "part", "val", "ts", "_hoodie_commit_time")
    found = scan.to_arrow().select(names).to_pydict()
    return sorted(zip(*(found[name] for name in names), strict=True), key=repr)


def snapshot_of(table: HoodieTable) -> list[Row]:
    return plain(table.scan(meta_columns=True))


def leftovers(storage: Storage) -> list[str]:
    """What a writer that has ended must not leave: staged files, markers, heartbeats, marks of life."""
    found = []
    for folder in (STAGING, MARKERS, HEARTBEATS, ".hoodie/.hoodie_py/live"):
        found += [info.path for info in storage.list(folder)]
    return found


def data_files(storage: Storage) -> dict[str, dict[str, int]]:
    """Partition path -> name -> size of the base files and logs that are stored, whether they count or not."""
    found: dict[str, dict[str, int]] = {}
    for info in storage.list("", recursive=True):
        path = folder_of(info.path)
        if not info.is_folder and not path.startswith(HOODIE) and PARTITION_METADATA not in info.path:
            found.setdefault(path, {})[name_of(info.path)] = info.size_bytes
    return found


def stray_files(storage: Storage, table: HoodieTable) -> list[str]:
    """Base files and change logs that no completed commit names, archived ones among them, and row copies of instants that did not
    complete."""
    active, archive = table._context.active, table._context.archived()
    commits = {instant.time: active.read_commit(instant) for instant in table.timeline.commits}
    commits |= archive.read_commits(i for i in archive.commits if i.time not in commits)
    stats = [stat for metadata in commits.values() for stat in metadata.stats()]
    named, times = {path for stat in stats for path in (stat.path, *stat.change_logs)}, commits.keys()
    copies = [info.path for info in storage.list(ROW_COPIES)]
    return [path for path in copies if parse_row_copy(name_of(path)) not in times] + [
        info.path
        for info in storage.list("", recursive=True)
        if info.path.endswith((".parquet", ".cdc")) and not info.path.startswith(".hoodie/") and info.path not in named
    ]


def reads(storage, monkeypatch):
    """The data files that are opened from now on."""
    found = []
    open_input, read = storage.open_input, storage.read
    monkeypatch.setattr(storage, "open_input", lambda path, **how: (found.append(path), open_input(path, **how))[1])
    monkeypatch.setattr(storage, "read", lambda path, *how: (found.append(path), read(path, *how))[1])
    return lambda: [path for path in found if not path.startswith(".hoodie/")]
