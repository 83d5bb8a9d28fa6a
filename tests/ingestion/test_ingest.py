"""Each row once: over rounds, bounds, deaths and two processes at once."""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import os
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import (
    AccessDeniedError,
    HoodieError,
    InstantNotFoundError,
    KeyFieldError,
    OptionError,
    SchemaError,
    TableNotFoundError,
)
from hoodie.ingestion.folders import LATE_MS, FolderSource, NewFiles
from hoodie.ingestion.run import Plan, rounds, run_round
from hoodie.ingestion.source import BadRecord, Bounds, Checkpoint, Round
from hoodie.ingestion.sources import source_of
from hoodie.model.enums import WriteOperation
from hoodie.options.parse import parse_write_options
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, Moment
from hoodie.storage.memory import MemoryStorage
from hoodie.storage.uri import open_storage
from hoodie.write.create import create_at
from tests.memory_tables import opened

HUDI, HUDI_2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "landing").mkdir()
    return tmp_path / "landing"


def put(folder: Path, name: str, *ids: int, at_s: int) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps({"id": n}) + "\n" for n in ids))
    os.utime(folder / name, (at_s, at_s))


def target() -> str:
    return f"memory://{secrets.token_hex(8)}"


def ids(table: str | hoodie.HoodieTable) -> list[int]:
    opened_table = hoodie.open_table(table) if isinstance(table, str) else table
    return sorted(opened_table.scan(["id"]).to_arrow().column("id").to_pylist())


def extra(table: str) -> dict[str, str]:
    t = hoodie.open_table(table)
    latest = t.timeline.latest_commit
    assert latest is not None
    return dict(t._context.active.read_commit(latest).extra)


# -- files -------------------------------------------------------------------------------------------------------------


def test_each_file_is_read_once_and_the_checkpoint_is_that_of_hudis_streamer(landing: Path) -> None:
    t = target()
    put(landing, "a.jsonl", 1, 2, at_s=1000)
    (done,) = hoodie.ingest(landing, t, record_key="id", operation="insert").rounds
    assert (done.number, done.rows, done.pieces, done.checkpoint) == (0, 2, 1, "1000000")
    assert extra(t)[HUDI] == extra(t)[HUDI_2] == "1000000"
    assert hoodie.ingest(landing, t).rounds == ()
    put(landing, "b.jsonl", 3, at_s=1001)
    assert hoodie.ingest(landing, t, operation="insert").rows == 1
    assert ids(t) == [1, 2, 3]


def test_columns_of_nothing_but_null_come_with_their_first_value(landing: Path) -> None:
    t = target()
    put(landing, "a.jsonl", at_s=1000)
    (landing / "a.jsonl").write_text('{"id": 1, "n": null, "s": {"x": null, "y": 2}, "l": []}\n')
    (landing / "b.jsonl").write_text('{"id": 2, "n": 7, "s": {"x": "seven", "y": 2}, "l": [1]}\n')
    done = hoodie.ingest(landing, t, record_key="id", max_files=1)
    assert (len(done.rounds), done.bad) == (2, 0)
    found = hoodie.open_table(t).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["n"], row["s"], row["l"]) for row in found) == [
        (1, None, {"x": None, "y": 2}, None),
        (2, 7, {"x": "seven", "y": 2}, [1]),
    ]


def test_files_that_come_late_or_at_the_same_moment_are_not_missed(landing: Path) -> None:
    t = target()
    put(landing, "b.jsonl", 1, at_s=100_000)
    hoodie.ingest(landing, t, record_key="id", operation="insert")
    put(landing, "a.jsonl", 2, at_s=100_000)
    put(landing, "late.jsonl", 3, at_s=100_000 - LATE_MS // 1000 + 1)
    put(landing, "old.jsonl", 4, at_s=100_000 - LATE_MS // 1000)
    assert hoodie.ingest(landing, t, operation="insert").rows == 2
    assert hoodie.ingest(landing, t, operation="insert").rows == 0
    assert ids(t) == [1, 2, 3]


def test_a_file_with_a_time_in_the_future_is_read_once_and_hides_no_others(landing: Path) -> None:
    t = target()
    source = FolderSource(open_storage(landing), now_s=lambda: 1100.0)
    put(landing, "a.jsonl", 1, at_s=1000)
    put(landing, "b.jsonl", 2, at_s=90_000_000)
    (done,) = hoodie.ingest(source, t, record_key="id", operation="insert").rounds
    assert done.checkpoint == "1100000"
    assert hoodie.ingest(source, t, operation="insert").rounds == ()
    put(landing, "c.jsonl", 3, at_s=1200)
    later = replace(source, now_s=lambda: 1300.0)
    assert hoodie.ingest(later, t, operation="insert").rows == 1
    assert hoodie.ingest(replace(source, now_s=lambda: 91_000_000.0), t, operation="insert").rounds == ()
    put(landing, "d.jsonl", 4, at_s=90_999_000)
    assert hoodie.ingest(replace(source, now_s=lambda: 91_000_000.0), t, operation="insert").rows == 1
    assert ids(t) == [1, 2, 3, 4]


def test_a_file_that_changes_is_read_again(landing: Path) -> None:
    t = target()
    put(landing, "a.jsonl", 1, at_s=1000)
    hoodie.ingest(landing, t, record_key="id")
    put(landing, "a.jsonl", 1, 2, at_s=1001)
    assert hoodie.ingest(landing, t).rows == 2
    assert hoodie.ingest(landing, t).rounds == ()
    assert ids(t) == [1, 2]


def test_hidden_empty_and_other_files_are_left_alone(landing: Path) -> None:
    for name in (".a.jsonl", "_SUCCESS", "_temporary/b.jsonl", "c.txt"):
        put(landing, name, 1, at_s=1000)
    put(landing, "empty.jsonl", at_s=1000)
    put(landing, "below/d.jsonl", 7, at_s=1000)
    t = target()
    assert hoodie.ingest(landing, t, record_key="id").rounds[0].pieces == 1
    assert ids(t) == [7]


def test_bounds_cut_what_is_new_into_rounds_and_take_one_file_at_least(landing: Path) -> None:
    for n in range(5):
        put(landing, f"{n}.jsonl", n, at_s=1000)
    t = target()
    done = hoodie.ingest(landing, t, record_key="id", operation="insert", max_files=2)
    assert [(each.pieces, each.waiting) for each in done.rounds] == [(2, 3), (2, 1), (1, 0)]
    assert ids(t) == list(range(5))
    again = hoodie.ingest(landing, target(), record_key="id", max_bytes=1)
    assert [each.pieces for each in again.rounds] == [1] * 5


def test_it_goes_on_where_apache_hudi_ended(landing: Path) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    put(landing, "b.jsonl", 2, at_s=1001)
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    writer = t._request_for(WriteOperation.UPSERT, None).write
    theirs = {HUDI: "1000000"}
    rows = pa.table({"id": [1]})
    t.writer.write(
        rows, rows.schema, WriteOperation.UPSERT, replace(writer, commit_entries=theirs), engine=t._context.engine
    )
    assert hoodie.ingest(landing, t).rows == 1


def test_commits_of_others_in_between_do_not_matter(landing: Path) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    hoodie.ingest(landing, t)
    t.upsert({"id": [9]})
    t.delete([9])
    assert hoodie.ingest(landing, t).rounds == ()


def test_two_sources_of_one_table_have_checkpoints_of_their_own(landing: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    put(landing, "a.jsonl", 1, at_s=1000)
    other.mkdir()
    put(other, "b.jsonl", 2, at_s=10)
    t = target()
    hoodie.ingest(landing, t, record_key="id")
    assert hoodie.ingest(other, t, name="other").rows == 1
    assert hoodie.ingest(landing, t).rows == hoodie.ingest(other, t, name="other").rows == 0


# -- another table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["6", "9"])
def test_what_changed_in_another_table_is_taken_over(version: str) -> None:
    options = {"hoodie.write.table.version": version}
    source = hoodie.create_table(target(), {"id": "int64", "v": "int64"}, record_key="id", options=options)
    t = target()
    source.upsert({"id": [1, 2], "v": [1, 1]})
    sql = "SELECT id, v * 10 AS v FROM source WHERE id <> 2"
    assert hoodie.ingest(source, t, record_key="id", sql=sql).rows == 1
    assert hoodie.ingest(source.uri, t, sql=sql).rounds == ()
    source.upsert({"id": [1, 3], "v": [5, 5]})
    assert hoodie.ingest(source.uri, t, sql=sql, format="hudi").rows == 2
    rows = hoodie.open_table(t).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == [(1, 50), (3, 50)]


def test_a_round_without_rows_moves_the_checkpoint() -> None:
    source = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    source.upsert({"id": [1]})
    (done,) = hoodie.ingest(source, t, sql="SELECT * FROM <SRC> WHERE false").rounds
    assert (done.rows, bool(done.instant)) == (0, True)
    assert hoodie.ingest(source, t, sql="SELECT * FROM <SRC> WHERE false").rounds == ()


# -- records that do not fit -------------------------------------------------------------------------------------------


def test_bad_records_are_counted_kept_and_said_and_the_rest_is_written(
    landing: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    with (landing / "a.jsonl").open("a") as file:
        file.write('nonsense\n{"id": null}\n{"id": 2}\n')
    t = tmp_path / "t"
    (done,) = hoodie.ingest(landing, t, record_key="id").rounds
    assert (done.rows, done.bad) == (2, 2)
    assert ids(str(t)) == [1, 2]
    kept = [json.loads(line) for line in (t / str(done.quarantine)).read_text().splitlines()]
    assert [(each["origin"], each["content"]) for each in kept] == [("a.jsonl", "nonsense"), ("rows", '{"id": null}')]
    assert "2 records of the folder" in caplog.text
    assert json.loads(extra(str(t))["hoodie.python.ingest"])["ingest"]["bad"] == 2
    assert hoodie.open_table(t).doctor().findings == ()


def test_of_files_of_one_round_only_records_that_do_not_fit_are_bad(landing: Path) -> None:
    (landing / "a.jsonl").write_text('{"id": 1, "n": 1}\n{"id": 2, "n": 2}\n')
    (landing / "b.jsonl").write_text('{"id": 3, "n": "many"}\n{"id": 4, "n": "more"}\n{"id": 5, "n": 5}\n')
    (landing / "c.jsonl").write_text('{"id": 6, "n": 1.5}\n')
    for number, name in enumerate(("a.jsonl", "b.jsonl", "c.jsonl")):
        os.utime(landing / name, (1000 + number,) * 2)
    t = target()
    (done,) = hoodie.ingest(landing, t, record_key="id").rounds
    assert (ids(t), done.bad) == ([1, 2, 5, 6], 2)
    assert hoodie.open_table(t).scan(["n"]).to_arrow().schema.field("n").type == pa.float64()


def test_where_bad_records_are_errors_nothing_of_the_round_is_written(landing: Path) -> None:
    (landing / "a.csv").write_text("id,v\n1,2\n3\n")
    t = hoodie.create_table(target(), {"id": "int64", "v": "int64"}, record_key="id")
    with pytest.raises(OptionError, match=r"has 1 record that cannot be rows .* a\.csv: 1 fields, not 2: '3'"):
        hoodie.ingest(landing, t, quarantine=False)
    assert ids(t) == []
    assert hoodie.ingest(landing, t).rows == 1


def test_a_dry_run_writes_nothing_and_makes_nothing(landing: Path, tmp_path: Path) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    (done,) = hoodie.ingest(landing, tmp_path / "t", record_key="id", dry_run=True).rounds
    assert (done.rows, done.instant, done.dry_run) == (1, None, True)
    assert not (tmp_path / "t").exists()


def test_a_file_that_goes_between_its_listing_and_its_reading_stops_no_other(landing: Path) -> None:
    for number in range(3):
        put(landing, f"{number}.jsonl", number, at_s=1000 + number)

    class Moving(FolderSource):
        """Another process moves a file away."""

        def new_files(self, after: Checkpoint | None, bounds: Bounds) -> NewFiles | None:
            new = super().new_files(after, bounds)
            (landing / "1.jsonl").unlink(missing_ok=True)
            return new

    t = target()
    source = Moving(open_storage(landing))
    with pytest.raises(OptionError, match=r"in 1\.jsonl: the file does not exist any more"):
        hoodie.ingest(source, t, record_key="id", quarantine=False)
    put(landing, "1.jsonl", 1, at_s=1001)
    (done,) = hoodie.ingest(source, t, record_key="id").rounds
    assert (done.rows, done.bad, ids(t)) == (2, 1, [0, 2])
    put(landing, "1.jsonl", 1, at_s=2000)
    assert hoodie.ingest(landing, t).rows == 1


def test_compressed_files_are_read_and_damaged_ones_set_apart(landing: Path) -> None:
    lines = [b'{"id": %d}\n' % n for n in range(6)]
    whole = gzip.compress(lines[0]) + gzip.compress(lines[1])  # as logs have it that are appended to
    (landing / "a.jsonl.gz").write_bytes(whole)
    (landing / "b.JSON.GZ").write_bytes(gzip.compress(lines[2]))
    (landing / "c.csv.bz2").write_bytes(bz2.compress(b"id\n3\n"))
    (landing / "d.json.zst").write_bytes(pa.Codec("zstd").compress(lines[4], asbytes=True))
    (landing / "e.json.gz").write_bytes(whole[:-5])
    (landing / "f.json.gz").write_bytes(lines[5])
    (landing / "g.txt.gz").write_bytes(whole)
    t = target()
    (done,) = hoodie.ingest(landing, t, record_key="id").rounds
    assert (done.rows, done.bad, done.pieces) == (5, 2, 6)
    assert ids(t) == [0, 1, 2, 3, 4]


def test_a_folder_of_which_nothing_is_read_is_told_once(landing: Path, caplog: pytest.LogCaptureFixture) -> None:
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    (landing / "_SUCCESS").write_text("hidden")
    assert hoodie.ingest(landing, t).rounds == ()
    assert not caplog.records
    (landing / "a.txt").write_text("id\n1\n")
    for _ in range(2):
        assert hoodie.ingest(landing, t).rounds == ()
    (told,) = caplog.messages
    assert "has no file with an extension that hoodie reads (.json, " in told
    assert "such as a.txt: give format=" in told
    assert hoodie.ingest(landing, t, format="csv").rows == 1


@pytest.mark.parametrize("with_schema", [False, True])
def test_a_first_file_without_rows_is_no_error(landing: Path, with_schema: bool) -> None:
    """An export of nothing: names of columns alone, whose types a later file says; or a schema, which a table takes."""
    t = target()
    (landing / "1.csv").write_text("id,note\n")
    os.utime(landing / "1.csv", (1, 1))
    assert hoodie.ingest(landing, t, record_key="id").rounds == ()
    if with_schema:
        pq.write_table(pa.table({"id": pa.array([], pa.int64())}), landing / "2.parquet")
        (done,) = hoodie.ingest(landing, t).rounds
        assert (done.rows, done.bad, done.pieces) == (0, 0, 2)
        assert hoodie.ingest(landing, t).rounds == ()
        assert hoodie.open_table(t).schema == pa.schema([("id", pa.int64())])
    (landing / "3.csv").write_text("id,note\n7,a\n")
    assert hoodie.ingest(landing, t).rows == 1
    assert ids(t) == [7]


def test_a_continuous_run_waits_for_columns_where_the_first_files_are_broken(landing: Path) -> None:
    t = hoodie.create_table(target(), record_key="id")
    (landing / "1.parquet").write_bytes(b"damaged")
    (landing / "2.json").write_text("nonsense\n")
    os.utime(landing / "1.parquet", (1000, 1000))
    os.utime(landing / "2.json", (1001, 1001))
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt
        if len(pauses) == 2:
            put(landing, "3.json", 7, at_s=2000)

    seen = []
    plan = Plan(FolderSource(open_storage(landing)), bounds=Bounds(files=1))
    with suppress(KeyboardInterrupt):
        for done in rounds(t, plan, continuous=True, interval_s=7.0, sleep=sleep):
            seen.append(done)
    assert [(each.rows, each.bad, each.instant is not None) for each in seen] == [
        (0, 1, False),
        (0, 1, False),
        (1, 0, True),
    ]
    kept = [open_storage(t.uri).read(each.quarantine) for each in seen if each.quarantine]
    assert [json.loads(each)["origin"] for each in kept] == ["1.parquet", "2.json"]
    assert ids(t) == [7]


def test_a_run_that_ends_tells_that_all_files_are_broken_or_goes_on_to_a_good_one(landing: Path) -> None:
    t = hoodie.create_table(target(), record_key="id")
    (landing / "1.parquet").write_bytes(b"damaged")
    with pytest.raises(OptionError, match="no columns yet, and the first round has no rows"):
        hoodie.ingest(landing, t)
    os.utime(landing / "1.parquet", (1000, 1000))
    put(landing, "2.json", 7, at_s=2000)
    assert [(each.rows, each.bad) for each in hoodie.ingest(landing, t, max_files=1).rounds] == [(0, 1), (1, 0)]
    assert hoodie.ingest(landing, t).rounds == ()
    assert ids(t) == [7]


def test_a_first_round_that_is_set_apart_as_a_whole_is_read_once(landing: Path) -> None:
    t = target()
    (landing / "1.json").write_text('{"id": null, "n": 1}\n{"id": "", "n": 2}\n')
    (done,) = hoodie.ingest(landing, t, record_key="id").rounds
    assert (done.rows, done.bad) == (0, 2)
    assert hoodie.ingest(landing, t).rounds == ()


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())),
        *(pa.binary(), pa.large_binary(), pa.binary_view()),
    ],
    ids=str,
)
def test_an_empty_key_is_set_apart_whatever_its_type(landing: Path, kind: pa.DataType) -> None:
    texts = pa.array(["", "a", None])
    keys = texts.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else texts.cast(kind)
    pq.write_table(pa.table({"id": keys}), landing / "1.parquet")
    (done,) = hoodie.ingest(landing, target(), record_key="id").rounds
    assert (done.rows, done.bad) == (1, 2)


FAR = pa.array([2**62], pa.timestamp("us"))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (FAR, 2**62),
        (FAR.dictionary_encode(), 2**62),
        (pa.StructArray.from_arrays([FAR], ["t"]), {"t": 2**62}),
        (pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), FAR), [2**62]),
        (pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), FAR), [["k", 2**62]]),
        (pa.array([7], pa.timestamp("us", "Mars/Phobos")), 7),
        (pa.array([10**7], pa.date32()), 10**7),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_a_row_with_a_time_that_python_has_not_is_set_apart_with_its_number(
    tmp_path: Path, landing: Path, values: pa.Array, shown: object
) -> None:
    pq.write_table(pa.table({"id": pa.array([None], pa.int64()), "t": values}), landing / "1.parquet")
    (done,) = hoodie.ingest(landing, tmp_path / "t", record_key="id").rounds
    assert (done.rows, done.bad) == (0, 1)
    assert done.quarantine is not None
    kept = json.loads((tmp_path / "t" / done.quarantine).read_text())
    assert json.loads(kept["content"]) == {"id": None, "t": shown}


class Given:
    """A source of one piece, in whatever form."""

    def __init__(self, rows: pa.Table | pa.RecordBatchReader) -> None:
        self.rows = rows

    def next(self, after: Checkpoint | None, bounds: Bounds, known: pa.Schema | None) -> Round | None:
        return None if after else Round(self.rows, Checkpoint("1"))


@pytest.mark.parametrize("key", [None, "."])
@pytest.mark.parametrize("form", ["file", "table", "reader"])
def test_rows_of_views_are_set_apart_as_others_are(landing: Path, key: str | None, form: str) -> None:
    """Arrow takes no rows of them, and joins no views with texts. So polars has its texts."""
    view = pa.string_view()
    lists = pa.array([["x"], None, []], pa.list_view(pa.string()))
    id, day = pa.array([key, "b", "c"]).cast(view), pa.array([key or "a", "b", "c"]).cast(view)
    rows = pa.table({"id": id, "day": day, "l": lists})
    if form == "file":
        pq.write_table(rows, landing / "1.parquet")
        pq.write_table(pa.table({"id": ["d"], "day": ["d"], "l": [["y"]]}), landing / "2.parquet")
    given = {"file": landing, "table": Given(rows), "reader": Given(rows.to_reader())}[form]
    t = target()
    result = hoodie.ingest(given, t, record_key="id", partition_by="day")
    assert (result.rows, result.bad) == (3 if form == "file" else 2, 1)
    found = {row["id"]: row["l"] for row in hoodie.open_table(t).to_arrow().to_pylist()}
    assert found == {"b": None, "c": [], **({"d": ["y"]} if form == "file" else {})}


# -- deaths and rivals -------------------------------------------------------------------------------------------------


class Numbers:
    """A source of the numbers that have come so far, a few in each round; one of them cannot be a row."""

    def __init__(self, come: int) -> None:
        self.come = come

    def next(self, after: Checkpoint | None, bounds: Bounds, known: pa.Schema | None) -> Round | None:
        begin = 0 if after is None else int(after.text)
        end = min(begin + 3, self.come)
        if end <= begin:
            return None
        bad = [BadRecord("here", "wrong", str(begin))]
        return Round(pa.table({"id": list(range(begin, end))}), Checkpoint(str(end)), bad, pieces=1)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_whatever_dies_at_any_call_of_the_storage_each_row_is_there_once(moment: Moment) -> None:
    plan = Plan(Numbers(9), operation=WriteOperation.INSERT)
    start = MemoryStorage()
    named = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    create_at(start, parse_write_options(named).to_create(), schema=pa.schema([("id", pa.int64())]))
    run_round(opened(start), plan)
    traced = FaultStorage(start.copy())
    run_round(opened(traced), plan)
    assert len(traced.trace) > 5
    for call in traced.trace:
        storage = start.copy()
        with pytest.raises(InjectedFault):
            run_round(opened(FaultStorage(storage, [Fault(call.n, moment)])), plan)
        table = opened(storage.copy())  # the locks of the dead are not copied
        while run_round(table, plan) is not None:
            pass
        assert ids(table) == list(range(9)), call


def test_two_processes_that_take_the_same_round_write_it_once() -> None:
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")

    class Overtaken(Numbers):
        def next(self, after: Checkpoint | None, bounds: Bounds, known: pa.Schema | None) -> Round | None:
            found = super().next(after, bounds, known)
            if after is None:
                rival = run_round(hoodie.open_table(t.uri), Plan(Numbers(3), operation=WriteOperation.INSERT))
                assert rival is not None
                assert rival.instant is not None
            return found

    mine = run_round(t, Plan(Overtaken(5), operation=WriteOperation.INSERT))
    assert mine is not None
    assert mine.instant is None
    while run_round(t, Plan(Numbers(5), operation=WriteOperation.INSERT)) is not None:
        pass
    assert ids(t) == list(range(5))


def test_a_continuous_run_looks_again_after_a_pause_and_at_once_where_something_waits() -> None:
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    source = Numbers(3)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        source.come += 3
        if len(pauses) == 3:
            raise KeyboardInterrupt

    seen: list[int] = []
    with suppress(KeyboardInterrupt):
        for done in rounds(t, Plan(source), continuous=True, interval_s=7.0, sleep=sleep):
            seen.append(done.rows)
    assert (seen, pauses) == ([3, 3, 3], [7.0] * 3)


# -- what a user says --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"format": "orc"}, "format='orc' is not one of json, csv, parquet, avro, hudi"),
        ({"operation": "insert_overwrite"}, "is not one of UPSERT, INSERT"),
        ({"max_files": 0}, "max_files=0"),
        ({"name": "../x"}, "is no name of a source"),
        ({"sql": "SELEC 1"}, "syntax error"),
        ({"sql": ""}, "sql='' is not one query"),
        ({"sql": "SELECT 1 AS id; SELECT 2 AS id"}, "is not one query"),
        ({"sql": "COPY source TO 'x.csv'"}, "is not one query"),
        ({"max_files": "2"}, "max_files='2' is not a whole number of at least 1"),
        ({"max_rows": 5}, "max_rows does not limit a round of the folder .*; max_files or max_bytes does"),
    ],
)
def test_what_makes_no_sense_is_named(landing: Path, given: dict[str, Any], match: str) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    with pytest.raises(HoodieError, match=match):
        hoodie.ingest(landing, t, **given)


def test_without_a_table_and_a_key_the_table_is_named(landing: Path) -> None:
    with pytest.raises(TableNotFoundError):
        hoodie.ingest(landing, target())


def test_a_checkpoint_of_another_kind_of_source_is_said(landing: Path) -> None:
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    run_round(t, Plan(_Odd(3)))
    put(landing, "a.jsonl", 1, at_s=1000)
    with pytest.raises(OptionError, match=r"another source .* under the same name; give name="):
        hoodie.ingest(landing, t)


class _Odd(Numbers):
    def next(self, after: Checkpoint | None, bounds: Bounds, known: pa.Schema | None) -> Round | None:
        found = super().next(None, bounds, known)
        assert found is not None
        return Round(found.rows, Checkpoint("topic,0:3"))


def test_the_command_prints_each_round(landing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(2):
        put(landing, f"{n}.jsonl", n, at_s=1000)
    command = ["ingest", str(landing), str(tmp_path / "t"), "--key", "id", "--max-files", "1"]
    assert main(command) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["round 0", "round 1"]
    assert main(command) == 0
    assert capsys.readouterr().out == "nothing new\n"
    assert ids(str(tmp_path / "t")) == [0, 1]


def test_a_terminal_shows_all_rounds_in_one_line(
    landing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(2):
        put(landing, f"{n}.jsonl", n, at_s=1000)
    monkeypatch.setenv("HOODIE_PROGRESS", "bar")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    command = ["ingest", str(landing), str(tmp_path / "t"), "--key", "id", "--max-files", "1"]
    assert main(command) == 0
    first, last = capsys.readouterr().out.split("\x1b[K")[1:]
    assert first.startswith("1 round, 1 piece: 1 row, ")
    assert first.endswith("1 piece waiting; at 1000000\r\r")
    assert last.startswith("2 rounds, 2 pieces: 2 rows, ")
    assert last.endswith("rows/s; up to date; at 1000000\r\n")
    assert main([*command, "--quiet"]) == 0
    put(landing, "2.jsonl", 2, at_s=1000)
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert ids(str(tmp_path / "t")) == [0, 1, 2]


def test_a_source_of_the_users_own_is_taken_as_it_is() -> None:
    source = Numbers(3)
    assert source_of(source, None, None) is source


# -- two sources, two tables -------------------------------------------------------------------------------------------


def test_another_source_under_the_same_name_is_told(
    landing: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its older files are not read."""
    t = target()
    put(landing, "a.jsonl", 1, at_s=1000)
    hoodie.ingest(landing, t, record_key="id")
    hoodie.ingest(landing, t)
    assert caplog.messages == []
    put(tmp_path / "other", "b.jsonl", 2, at_s=10)
    assert hoodie.ingest(tmp_path / "other", t).rows == 0
    (told,) = caplog.messages
    assert f"was {landing} until now, and is {tmp_path / 'other'}" in told
    assert hoodie.ingest(tmp_path / "other", t, name="other").rows == 1
    assert ids(t) == [1, 2]


def test_a_table_in_the_folder_of_its_source_is_refused(landing: Path) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    for to in (landing, landing / "t", landing.parent):
        with pytest.raises(OptionError, match="is in the folder of its source"):
            hoodie.ingest(landing, to, record_key="id")
    source = hoodie.create_table(landing / "s", {"id": "int64"}, record_key="id")
    with pytest.raises(OptionError, match="is in the folder of its source"):
        hoodie.ingest(source, source)
    assert sorted(each.name for each in landing.iterdir()) == ["a.jsonl", "s"]
    put(landing.parent / "landing2", "b.jsonl", 2, at_s=1000)
    assert hoodie.ingest(landing.parent / "landing2", landing / "s").rows == 1


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"record_key": "n"}, "with record_key='id', and record_key='n' is asked for"),
        ({"partition_by": "id"}, "partition_by='n', and partition_by='id'"),
        ({"partition_by": []}, "partition_by='n', and partition_by=''"),
        ({"ordering": "n"}, "ordering='', and ordering='n'"),
        ({"table_type": "MERGE_ON_READ"}, "table_type='COPY_ON_WRITE', and table_type='MERGE_ON_READ'"),
    ],
)
def test_a_table_that_is_not_as_the_arguments_say_is_refused(landing: Path, given: dict[str, Any], match: str) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    t = hoodie.create_table(target(), {"id": "int64", "n": "string"}, record_key="id", partition_by="n")
    with pytest.raises(OptionError, match=match):
        hoodie.ingest(landing, t, **given)
    same = {"record_key": "id", "partition_by": ["n"], "table_type": "COPY_ON_WRITE"}
    assert hoodie.ingest(landing, t, **same).rows == 1


def test_a_source_that_is_not_there_or_a_file_is_told(landing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    with pytest.raises(OptionError, match=r"the folder .*/nowhere does not exist"):
        hoodie.ingest(landing / "nowhere", target(), record_key="id")
    with pytest.raises(OptionError, match=r"a\.jsonl is a file: give the folder"):
        hoodie.ingest(landing / "a.jsonl", target(), record_key="id")
    assert main(["ingest", str(landing / "nowhere"), str(landing.parent / "t"), "--key", "id"]) == 1
    assert "does not exist" in capsys.readouterr().err
    (landing / "a.jsonl").unlink()
    assert hoodie.ingest(landing, target(), record_key="id").rounds == ()
    with pytest.raises(OptionError, match=r"a\.jsonl: of a file give the folder"):  # a store has no empty folders
        hoodie.ingest("memory://landing/a.jsonl", target(), record_key="id")


class _Denied(MemoryStorage):
    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"{self.uri}/{path}")


def test_a_file_that_may_not_be_read_is_an_error_of_the_storage() -> None:
    storage = _Denied()
    storage.create_new("a.jsonl", b'{"id": 1}')
    with pytest.raises(AccessDeniedError, match=r"give this user permission for it.*a\.jsonl"):
        hoodie.ingest(FolderSource(storage), target(), record_key="id")


def test_another_kind_of_checkpoint_is_said_by_a_table_too(landing: Path) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    t = target()
    hoodie.ingest(landing, t, record_key="id")
    with pytest.raises(OptionError, match=r"another source .* under the same name; give name="):
        hoodie.ingest(hoodie.create_table(target(), {"id": "int64"}, record_key="id"), t)


def test_a_source_that_was_restored_says_how_to_go_on() -> None:
    source, t = hoodie.create_table(target(), {"id": "int64"}, record_key="id"), target()
    source.upsert([{"id": 1}])
    saved = source.savepoint()
    source.upsert([{"id": 2}])
    hoodie.ingest(source, t, record_key="id")
    source.restore(saved)
    source.upsert([{"id": 3}])
    with pytest.raises(InstantNotFoundError, match="To read all of its rows again, give another name="):
        hoodie.ingest(source, t)
    hoodie.ingest(source, t, name="again")
    assert ids(t) == [1, 2, 3]


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "lines", "good"),
    [
        ("id", ['{"id": "a"}', '{"id": ""}', '{"id": null}', '{"n": 1}'], 1),
        ("k.id", ['{"k": {"id": 1}, "n": 1}', '{"k": {"id": null}}', '{"k": {}}', '{"k": null}', '{"n": 2}'], 1),
        (["id", "n"], ['{"id": "a", "n": ""}', '{"id": "", "n": "b"}', '{"id": "", "n": null}'], 2),
    ],
)
def test_rows_without_a_key_are_set_apart(landing: Path, key: str | list[str], lines: list[str], good: int) -> None:
    (landing / "a.jsonl").write_text("\n".join(lines))
    done = hoodie.ingest(landing, target(), record_key=key)
    assert (done.rows, done.bad) == (good, len(lines) - good)


PLACES = [
    *(
        '{"id": 1, "city": "rome", "day": 1}',
        '{"id": 2, "city": "a/../b", "day": 1}',
        '{"id": 3, "city": null, "day": 2}',
    ),
    *(
        '{"id": 4, "city": "a//b", "day": 2}',
        '{"id": 5, "city": "rome", "day": null}',
        '{"id": 6, "city": "a/../b", "day": 2}',
    ),
]


@pytest.mark.parametrize("partition", ["city", ["city", "day"], ["day", "city"]])
def test_rows_whose_partition_makes_no_path_are_set_apart(landing: Path, partition: str | list[str]) -> None:
    (landing / "a.jsonl").write_text("\n".join(PLACES))
    t = target()
    done = hoodie.ingest(landing, t, record_key="id", partition_by=partition)
    assert (done.rows, done.bad) == (3, 3)
    assert ids(t) == [1, 3, 5]
    storage = open_storage(t)
    kept = [json.loads(line) for line in storage.read(done.rounds[0].quarantine or "").splitlines()]
    assert sorted(json.loads(each["content"])["id"] for each in kept) == [2, 4, 6]
    assert all(each["reason"].startswith("partition column 'city' holds 'a/") for each in kept)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_a_partition_of_any_text_may_make_no_path(landing: Path, kind: pa.DataType) -> None:
    cities = pa.array(["a/../b", None, "rome", "a/../b"]).cast(kind)
    pq.write_table(
        pa.table({"id": [1, 2, 3, 4], "city": cities, "none": pa.nulls(4, pa.int32())}), landing / "a.parquet"
    )
    t = target()
    done = hoodie.ingest(landing, t, record_key="id", partition_by=["none", "city"])
    assert (done.rows, done.bad) == (2, 2)
    assert ids(t) == [2, 3]


def test_a_partition_that_makes_no_path_is_an_error_where_bad_records_are(landing: Path) -> None:
    (landing / "a.jsonl").write_text("\n".join(PLACES))
    t = target()
    with pytest.raises(KeyFieldError, match="partition column 'city' holds"):
        hoodie.ingest(landing, t, record_key="id", partition_by="city", quarantine=False)
    assert hoodie.open_table(t).history() == []


def test_a_name_twice_in_a_query_is_told(landing: Path) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    with pytest.raises(SchemaError, match="column 'id' stands twice"):
        hoodie.ingest(landing, target(), record_key="id", sql="SELECT id, id FROM source")


@pytest.mark.parametrize("source", [None, 7, ["a", "b"], pa.table({"id": [1]})])
def test_what_is_no_source_is_told(source: Any) -> None:
    with pytest.raises(OptionError, match="is no source: give a folder"):
        hoodie.ingest(source, target(), record_key="id")


@pytest.mark.parametrize("sql", ["FROM source", "WITH x AS (SELECT * FROM <SRC>) SELECT * FROM x;", "VALUES (1) -- id"])
def test_any_query_is_one(landing: Path, sql: str) -> None:
    put(landing, "a.jsonl", 1, at_s=1000)
    key = "col0" if "VALUES" in sql else "id"
    assert hoodie.ingest(landing, target(), record_key=key, sql=sql).rows == 1
