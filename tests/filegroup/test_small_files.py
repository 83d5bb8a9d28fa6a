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
from hoodie.errors import CorruptFileError
from hoodie.filegroup import small_files, small_rewrites
from hoodie.filegroup.chunks import make_chunk, make_matches
from hoodie.filegroup.small_files import parcels
from hoodie.format.base_file import read_footer
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


def moved(some):
    """The same keys in the next partition."""
    return [row | {"p": f"p{(int(row['p'][1:]) + 1) % 12}"} for row in some]


BATCHES = {
    "new, then changed": [rows(range(60), ts=1), rows(range(10, 50), ts=2)],
    "a key twice in a batch": [rows(range(30), ts=1) + rows([3, 4], ts=2), rows(range(20), ts=4) + rows([7], ts=3)],
    "deletes among changes": [rows(range(40), ts=1), rows(range(12, 40), ts=2) + deleted(rows(range(6), ts=2))],
    "deletes of nothing": [rows(range(24), ts=1), deleted(rows(range(100, 120), ts=2)) + rows([1], ts=2)],
    "new ones among changes": [rows(range(24), ts=1), rows(range(12, 60), ts=2)],
    "a key in two partitions": [rows(range(24), ts=1) + moved(rows(range(12), ts=1)), moved(rows(range(12), ts=2))],
    "older rows, and as old ones": [rows(range(24), ts=2), rows(range(12), ts=1) + rows(range(12, 36), ts=2)],
    "more rows than are few": [rows(range(24), ts=1), rows(range(1500), ts=2)],
    "files without rows after it": [rows(range(24), ts=1), deleted(rows(range(24), ts=2))],
    "NaN": [rows(range(24), ts=1), [row | {"x": math.nan} for row in rows(range(0, 24, 5), ts=2)], rows([7], ts=3)],
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
    "filled": {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"},
}


@pytest.fixture(autouse=True)
def made_together(monkeypatch):
    """For each parcel whether its files were made together."""
    set_few_rows(monkeypatch, FEW_ROWS)
    result = []
    real = small_files._written

    def written_together(*given):
        results = real(*given)
        result.append(results is not None)
        return results

    monkeypatch.setattr(small_files, "_written", written_together)
    return result


@pytest.fixture
def rewritten(monkeypatch):
    """For each parcel of rewrites the partitions whose files were made together."""
    result = []
    real = small_rewrites.write_small_base_files

    def made(*given, **more):
        results = real(*given, **more)
        result.append({each.stat.partition_path for each in results if each is not None})
        return results

    monkeypatch.setattr(small_rewrites, "write_small_base_files", made)
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


def test_inserts_join_small_files_as_they_do_one_by_one(made_together):
    """Keys that are stored come a second time."""
    made = []
    for engine in (LocalEngine(1), Apart(1)):
        table, _ = written(engine, "COPY_ON_WRITE", {}, [rows(range(24), ts=1)], f"inserts-{engine.shares_memory}")
        more = pa.Table.from_pylist(rows(range(12, 60), ts=2), schema=SCHEMA)
        made.append(shown(table, [table.insert(more, {"hoodie.python.driver.max.bytes": "0"})]))
    assert made[0] == made[1]
    assert len(made[0][0]) == 72
    assert made_together == [True, True]


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
    "simple filter": {"hoodie.bloom.index.filter.type": "SIMPLE", "hoodie.index.bloom.num_entries": "95"},
    "key map": {"hoodie.python.parquet.key.map": "true"},
    "gzip": {"hoodie.parquet.compression.codec": "gzip"},
}


def said(table):
    """Of each file of the newest commit its footer and rows but for what names the file, and what the commit says of it, by
    partition.
    """
    context = table._context
    instants = [instant.time for instant in context.active.load().commits]
    commit = context.active.read_commit(context.active.load().commits[-1])
    bounds = decode_column_stats(commit.extra[COLUMN_STATS])
    result = {}
    for path, (stat,) in commit.write_stats.items():
        data, name = context.storage.read(stat.path), stat.path.rpartition("/")[2]
        footer, rows_of_it = pq.read_metadata(pa.BufferReader(data)), pq.read_table(pa.BufferReader(data))
        assert (footer.num_row_groups, len(data)) == (1, stat.file_size_bytes)
        assert set(rows_of_it.column("_hoodie_file_name").to_pylist()) == {name}
        nulls, *ends = bounds[name]["_hoodie_commit_time"]
        times = rows_of_it.column("_hoodie_commit_time").to_pylist()
        assert (nulls, ends) == (0, [min(times), max(times)])
        entries = bounds[name] | {"_hoodie_commit_time": [instants.index(each) for each in ends]}
        keys = rows_of_it.column("_hoodie_record_key").combine_chunks()
        assert read_footer(footer, path=path).bloom().might_contain(keys).all()
        said_of_it = {
            key: value for key, value in footer.metadata.items() if not (stat.prev_commit and b"bloom" in key)
        }
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
        result[path] = said_of_it, str(footer.schema).partition("\n")[2], columns, entries, values, stat.num_writes
    return result


def require_same_files(options, batches, name):
    """Together and one by one."""
    together, apart = (
        said(written(each, "COPY_ON_WRITE", options, batches, f"{name}-{each}", columns=COLUMNS)[0])
        for each in (LocalEngine(1), Apart(1))
    )
    for path, one in together.items():
        assert one == apart[path]
    assert together.keys() == apart.keys()


CONTENT_OR_OPTIONS = pytest.mark.parametrize(
    ("content", "options"), [*((content, "") for content in CONTENTS), *(("all sizes", o) for o in OPTIONS if o)]
)


@CONTENT_OR_OPTIONS
def test_base_files_say_the_same_as_those_that_are_made_one_by_one(content, options, request):
    batches = [[{"ts": 1} | row for row in CONTENTS[content]]]
    require_same_files(OPTIONS[options], batches, request.node.name)


@CONTENT_OR_OPTIONS
def test_rewritten_base_files_say_the_same_as_those_that_are_made_one_by_one(content, options, request, rewritten):
    """Rows of two commits stand in them; their filters may be carried on, so they are not compared."""
    batches = [[{"ts": 1} | row for row in CONTENTS[content]], [{"ts": 2} | row for row in CONTENTS[content][::2]]]
    require_same_files(OPTIONS[options], batches, request.node.name)
    assert bool(rewritten) == (options != "key map")


@pytest.mark.parametrize("text", ["", "x" * 100_000], ids=["many rows", "large rows"])
def test_a_file_that_is_small_on_storage_alone_is_rewritten_by_itself(text, request, monkeypatch, rewritten):
    """Equal values take no room there: a hundred such files do not fit into memory."""
    count = 60 if text else 3000
    batches = [
        [
            *({"id": f"{n:05}", "p": f"p{n % 3}", "ts": 1, "text": text} for n in range(count)),
            *({"id": f"{n:05}", "p": f"q{n % 3}", "ts": 1, "text": "few"} for n in range(9)),
        ]
    ]
    batches.append([row | {"ts": 2, "text": "few"} for row in batches[0] if row["id"] < "00006"])
    monkeypatch.setattr(small_rewrites, "_SMALL_BYTES", 1024 * 1024)
    columns = pa.schema({"id": pa.string(), "p": pa.string(), "ts": pa.int64(), "text": pa.string()})
    engines = LocalEngine(1), Apart(1)
    made = [
        shown(*written(each, "COPY_ON_WRITE", {}, batches, f"{request.node.name}-{each}", columns=columns))
        for each in engines
    ]
    assert made[0] == made[1]
    assert rewritten == [{"q0", "q1", "q2"}]


def test_of_many_files_that_are_not_small_few_are_read_in_vain(request, monkeypatch, made_together):
    sizes = []
    real = small_rewrites.read_slice

    def read(storage, context, file_slice, schema):
        sizes.append(file_slice.base.size_bytes)
        return real(storage, context, file_slice, schema)

    monkeypatch.setattr(small_rewrites, "read_slice", read)
    batches = [rows(range(1500), ts=1), rows(range(12), ts=2)]
    made = [
        shown(*written(each, "COPY_ON_WRITE", {}, batches, f"{request.node.name}-{each}"))
        for each in (LocalEngine(1), Apart(1))
    ]
    assert made[0] == made[1]
    assert made_together == [True, False]
    assert len(sizes) == 4


def test_rewrites_give_old_rows_the_columns_of_new_ones(request, rewritten):
    """One is added, one is widened."""
    made = []
    for engine in (LocalEngine(1), Apart(1)):
        columns = pa.schema({"id": pa.string(), "p": pa.string(), "ts": pa.int64(), "n": pa.int32()})
        first = [{"id": f"k{n}", "p": f"p{n % 9}", "ts": 1, "n": n} for n in range(40)]
        table, _ = written(engine, "COPY_ON_WRITE", {}, [first], f"{request.node.name}-{engine}", columns=columns)
        more = pa.Table.from_pylist(
            [row | {"ts": 2, "n": 1 << 40, "more": "m"} for row in first[::2]],
            schema=columns.set(3, pa.field("n", pa.int64())).append(pa.field("more", pa.string())),
        )
        made.append(shown(table, [table.upsert(more, {"hoodie.python.driver.max.bytes": "0"})]))
    assert made[0] == made[1]
    assert len(rewritten) == 1


def test_a_damaged_file_among_those_that_are_rewritten_together_is_named(request):
    table, _ = written(LocalEngine(1), "COPY_ON_WRITE", {}, [rows(range(24), ts=1)], request.node.name)
    storage, (commit,) = table._context.storage, table._context.active.load().commits
    path = table._context.active.read_commit(commit).write_stats["p7"][0].path
    storage.replace(path, storage.read(path)[:-9])
    with pytest.raises(CorruptFileError, match=path):
        table.upsert(pa.Table.from_pylist(rows(range(24), ts=2), schema=SCHEMA), {"hoodie.index.type": "SIMPLE"})


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
