"""Small files that are made together are as those that are made one by one."""

import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.filegroup import small_files
from hoodie.filegroup.chunks import make_chunk, make_matches
from hoodie.filegroup.small_files import parcels
from hoodie.format.column_stats import COLUMN_STATS, decode_column_stats
from hoodie.format.parquet_file import FEW_ROWS
from hoodie.index.bloom import pieces_by_partition
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import AppendTask, CreateTask, Inserts, MergeTask
from hoodie.model.tuning import TUNING
from hoodie.options.parse import parse_write_options
from hoodie.storage.memory import MemoryStorage
from hoodie.table import open_at
from hoodie.write.create import create_at
from tests.small_files import set_few_rows

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
SCHEMA = pa.schema(
    {"id": pa.string(), "p": pa.string(), "ts": pa.int64(), "x": pa.float64(), "n": pa.list_(pa.int32())}
)


class Apart(LocalEngine):
    """As engines that send each task to another process."""

    shares_memory = False


def rows(numbers, *, ts, nulls=False):
    """In twelve partitions, the first of which may be that of nulls."""
    return [
        {"id": f"k{n}", "p": None if nulls and not n % 12 else f"p{n % 12}", "ts": ts, "x": n / 3, "n": [n, None]}
        for n in numbers
    ]


def deleted(some):
    return [row | {"_hoodie_is_deleted": True} for row in some]


BATCHES = {
    "new, then changed": [rows(range(60), ts=1), rows(range(10, 50), ts=2)],
    "a key twice in a batch": [rows(range(30), ts=1) + rows([3, 4], ts=2), rows(range(20), ts=4) + rows([7], ts=3)],
    "deletes among changes": [rows(range(40), ts=1), rows(range(12, 40), ts=2) + deleted(rows(range(6), ts=2))],
    "deletes of nothing": [rows(range(24), ts=1), deleted(rows(range(100, 120), ts=2)) + rows([1], ts=2)],
    "new ones among changes": [rows(range(24), ts=1), rows(range(12, 60), ts=2)],
    "a partition of nulls": [rows(range(24), ts=1, nulls=True), rows(range(12, 24), ts=2, nulls=True)],
}
ALONE = {"a key twice in a batch", "a partition of nulls"}
"""Rows of one file may share a key."""
LOOKS = {
    "plain": {},
    "parquet": {"hoodie.logfile.data.block.format": "parquet"},
    "small blocks": {"hoodie.logfile.data.block.max.size": "100"},
    "unstored": {"hoodie.populate.meta.fields": "false"},
    "no copies": {"hoodie.python.mor.row.copies": "false"},
    "joined keys": {"hoodie.datasource.write.recordkey.field": "id,p"},
}


@pytest.fixture(autouse=True)
def made_together(monkeypatch):
    """For each parcel whether its files were made together."""
    result = []
    real = small_files._written

    def written_together(*given):
        results = real(*given)
        result.append(results is not None)
        return results

    monkeypatch.setattr(small_files, "_written", written_together)
    return result


def written(engine, kind, look, batches, name, tuning=TUNING, columns=SCHEMA):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
    } | look
    storage = MemoryStorage(f"memory://together-{name}")
    schema = columns.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    create_at(storage, parse_write_options(options).to_create(), schema=schema)
    table = open_at(storage, engine=engine, tuning=tuning)
    look = look | {"hoodie.python.driver.max.bytes": "0"}  # else few rows are no work for other processes
    results = [table.upsert(pa.Table.from_pylist(batch, schema=schema), look) for batch in batches]
    return table, results


def shown(table, results):
    found = table.scan(meta_columns=True).to_arrow().to_pylist()
    for row in found:
        row.pop("_hoodie_commit_time", None)
        row.pop("_hoodie_file_name", None)
        if row.get("_hoodie_commit_seqno"):
            row["_hoodie_commit_seqno"] = row["_hoodie_commit_seqno"].partition("_")[2]
    active = table._context.active
    stats = [
        sorted(
            (path, each.num_writes, each.num_inserts, each.num_updates, each.num_deletes, each.log_version or 0)
            for path, stats in active.read_commit(commit).write_stats.items()
            for each in stats
        )
        for commit in active.load().commits
    ]
    return sorted(map(repr, found)), stats, [(r.inserted, r.updated, r.deleted, r.files) for r in results]


@pytest.mark.parametrize(
    ("look", "batches"),
    [
        *(("plain", batches) for batches in BATCHES),
        *((look, "deletes among changes") for look in LOOKS if look != "plain"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_files_are_as_those_that_are_made_one_by_one(kind, batches, look, request, made_together):
    made = []
    for engine in (LocalEngine(1), Apart(1)):
        name = f"{request.node.name}-{engine.shares_memory}"
        made.append(shown(*written(engine, kind, LOOKS[look], BATCHES[batches], name)))
    assert made[0] == made[1]
    assert set(made_together) == {batches not in ALONE}


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_one_file_may_be_in_several_chunks(kind, batches, made_together):
    few = replace(TUNING, chunk_bytes=200)
    engines = LocalEngine(1), Apart(1)
    made = [shown(*written(each, kind, {}, BATCHES[batches], f"{kind}-{batches}-{each}", few)) for each in engines]
    assert made[0] == made[1]
    assert set(made_together) == {batches not in ALONE}


COLUMNS = pa.schema(
    {
        "id": pa.string(),
        "p": pa.string(),
        "ts": pa.int64(),
        "x": pa.float64(),
        "f": pa.float32(),
        "d": pa.decimal128(9, 2),
    }
    | {"day": pa.date32(), "at": pa.timestamp("us", "UTC"), "yes": pa.bool_(), "b": pa.binary(), "text": pa.string()}
    | {"n": pa.list_(pa.struct({"i": pa.int32()}))}
)
FILLED = {
    "x": -0.0,
    "f": 0.1,
    "d": Decimal("1.20"),
    "day": date(2026, 1, 2),
    "at": datetime(2026, 1, 2, tzinfo=UTC),
} | {
    "yes": True,
    "b": b"\xff",
    "text": "t" * 40 + "\U0010ffff",
    "n": [{"i": 1}, None],
}
CONTENTS = {
    "filled": [FILLED | {"id": f"k{n}", "p": f"p{n % 9}", "x": n * 1.5 - 9, "text": f"{n}"} for n in range(60)],
    "nulls": [{"id": f"k{n}", "p": f"p{n % 4}"} | (FILLED if n % 3 else {}) for n in range(30)],
    "nothing but nulls": [{"id": f"k{n}", "p": f"p{n % 4}"} for n in range(30)],
    "NaN": [FILLED | {"id": f"k{n}", "p": f"p{n % 4}", "x": n / 3 if n % 5 else math.nan} for n in range(30)],
    "other letters": [FILLED | {"id": "ä\uffff\U0001f600x"[n % 4] + str(n), "p": f"p{n % 3}"} for n in range(30)],
    "all sizes": [FILLED | {"id": f"k{n}", "p": f"p{min(n // 90, 3)}" if n < 480 else f"q{n}"} for n in range(500)],
}
OPTIONS = {
    "": {},
    "simple filter": {"hoodie.bloom.index.filter.type": "SIMPLE", "hoodie.index.bloom.num_entries": "40"},
    "key map": {"hoodie.python.parquet.key.map": "true"},
    "gzip": {"hoodie.parquet.compression.codec": "gzip"},
}


def said(table):
    """Of each file its footer and rows but for what names the file, and what the commit says of it, by partition."""
    context = table._context
    (instant,) = context.active.load().commits
    commit = context.active.read_commit(instant)
    bounds = decode_column_stats(commit.extra[COLUMN_STATS])
    result = {}
    for path, (stat,) in commit.write_stats.items():
        data, name = context.storage.read(stat.path), stat.path.rpartition("/")[2]
        footer, rows_of_it = pq.read_metadata(pa.BufferReader(data)), pq.read_table(pa.BufferReader(data))
        assert (footer.num_row_groups, len(data)) == (1, stat.file_size_bytes)
        assert set(rows_of_it.column("_hoodie_file_name").to_pylist()) == {name}
        assert bounds[name]["_hoodie_commit_time"] == [0, instant.time, instant.time]
        entries = bounds[name] | {"_hoodie_commit_time": None}
        of_chance = {"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"}
        columns = [
            (
                each.path_in_schema,
                each.compression,
                sorted(each.encodings),
                each.statistics and repr(each.statistics.to_dict()),
            )
            for each in map(footer.row_group(0).column, range(footer.num_columns))
            if each.path_in_schema not in of_chance
        ]
        values = repr(rows_of_it.drop_columns(sorted(of_chance)).to_pylist())
        result[path] = footer.metadata, str(footer.schema).partition("\n")[2], columns, entries, values, stat.num_writes
    return result


@pytest.mark.parametrize(
    ("content", "options"), [*((content, "") for content in CONTENTS), *(("all sizes", o) for o in OPTIONS if o)]
)
def test_base_files_say_the_same_as_those_that_are_made_one_by_one(content, options, request, monkeypatch):
    set_few_rows(monkeypatch, FEW_ROWS)
    made = []
    for engine in (LocalEngine(1), Apart(1)):
        name = f"{request.node.name}-{engine.shares_memory}"
        batches = [[{"ts": 1} | row for row in CONTENTS[content]]]
        made.append(said(written(engine, "COPY_ON_WRITE", OPTIONS[options], batches, name, columns=COLUMNS)[0]))
    for path, one in made[0].items():
        assert one == made[1][path]
    assert made[0].keys() == made[1].keys()


def task_of(kind, number, rows_of_it, size_bytes=100):
    group = FileGroupId("p", f"f{number}")
    chunk = make_chunk(pa.table({RECORD_KEY: ["k" * size_bytes] * rows_of_it, PARTITION_PATH: ["p"] * rows_of_it}))
    (piece,) = pieces_by_partition([chunk])["p"]
    common = {"number": number, "partition_path": "p", "file_id": group.file_id}
    if kind is CreateTask:
        return CreateTask(**common, inserts=Inserts((piece,), (), rows=rows_of_it))
    slice_ = FileSlice(group, "20260101000000000", None, ())
    updates = (make_matches(piece.number, np.arange(rows_of_it)),)
    if kind is MergeTask:
        return MergeTask(**common, pieces=(piece,), updates=updates, slice=slice_)
    return AppendTask(**common, pieces=(piece,), updates=updates, slice=slice_, log_version=1)


def test_small_tasks_of_one_kind_that_follow_each_other_share_a_parcel():
    kinds = [*[CreateTask] * 3, *[AppendTask] * 205, *[MergeTask] * 2, CreateTask]
    tasks = [task_of(kind, number, 2) for number, kind in enumerate(kinds)]
    found = parcels(tasks)
    assert [task for parcel in found for task in parcel] == tasks
    assert [len(parcel) for parcel in found] == [3, 100, 100, 5, 1, 1, 1]
    large = task_of(CreateTask, 3, 5, size_bytes=50_000)
    assert [len(parcel) for parcel in parcels([*tasks[:3], large, *tasks[:2]])] == [3, 1, 2]
    many = [task_of(AppendTask, number, 5000, size_bytes=1) for number in range(3)]
    assert [len(parcel) for parcel in parcels(many)] == [1, 1, 1]
    assert parcels([]) == []
