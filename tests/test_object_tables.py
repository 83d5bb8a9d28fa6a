"""Whole tables in an object store: the same rows as on a disk, whatever is done and wherever a writer dies."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import OptionError, TableNotFoundError
from hoodie.model.names import PRIVATE
from hoodie.options.parse import parse_write_options
from hoodie.storage.object_store import ObjectStorage
from hoodie.storage.ranges import RangedFile, Span
from hoodie.storage.uri import open_storage
from tests.bucket import BucketStorage
from tests.effort import long_but
from tests.memory_tables import FakeClock, Input, batch, create, opened
from tests.object_tables import TYPES, life, rows, seen
from tests.servers.s3 import S3Server, shared_moto


@pytest.fixture
def server() -> S3Server:
    return shared_moto()


@pytest.fixture
def uri(server: S3Server) -> str:
    return server.new_uri()


@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], TYPES))
def test_a_table_lives_as_on_a_disk(server: S3Server, uri: str, tmp_path: Path, table_type: str) -> None:
    how = {"record_key": "id", "partition_by": "part", "ordering": "ts", "table_type": table_type}
    here = hoodie.create_table(tmp_path / "t", rows(0, 1, 0).schema, **how)
    there = hoodie.create_table(uri, rows(0, 1, 0).schema, **how, storage_options=server.options)
    for expected, found in zip(
        *(life(table, compact=table_type == "MERGE_ON_READ") for table in (here, there)), strict=True
    ):
        assert found == expected
    opened = hoodie.open_table(uri, storage_options=server.options)
    assert seen(opened) == seen(here)
    left = [info.path for info in opened._context.storage.list(PRIVATE, recursive=True)]
    assert [path for path in left if not path.startswith(f"{PRIVATE}/rows/")] == []


def test_two_writers_of_one_partition_both_get_their_rows_in(server: S3Server, uri: str) -> None:
    table = hoodie.create_table(
        uri, rows(0, 1, 0).schema, record_key="id", ordering="ts", storage_options=server.options
    )
    table.upsert(rows(0, 10, 1))
    one, other = (hoodie.open_table(uri, storage_options=server.options) for _ in range(2))
    one.upsert(rows(0, 5, 2))
    other.upsert(rows(3, 12, 3))
    assert [row["ts"] for row in seen(one)] == [2] * 3 + [3] * 9


def test_the_command_line_takes_the_options(server: S3Server, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    hoodie.create_table(uri, rows(0, 1, 0).schema, record_key="id", storage_options=server.options).upsert(
        rows(0, 4, 1)
    )
    options = [text for name, value in server.options.items() for text in ("-o", f"{name}={value}")]
    assert main(["commits", uri, "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["commits"][0]["inserted"] == 4
    assert main(["show", uri, "-o", "nonsense"]) == 2
    assert "is not KEY=VALUE" in capsys.readouterr().err


def test_the_environment_is_taken_along_to_other_processes(
    server: S3Server, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.options.items():
        monkeypatch.setenv(name.upper(), value)
    hoodie.create_table(uri, rows(0, 1, 0).schema, record_key="id").upsert(rows(0, 4, 1))
    sent = pickle.dumps(open_storage(uri))
    for name in server.options:
        monkeypatch.delenv(name.upper())
    assert [info.path for info in pickle.loads(sent).list(".hoodie") if info.path.endswith(".commit")] != []


def test_secrets_are_in_no_message(server: S3Server, uri: str) -> None:
    secret = server.options["aws_secret_access_key"]
    storage = open_storage(uri, server.options)
    texts = [repr(storage), storage.uri, str(storage.identity)]
    with pytest.raises(TableNotFoundError) as absent:
        hoodie.open_table(uri, storage_options=server.options)
    with pytest.raises(OptionError, match=r"aws_regon.*did you mean aws_region") as unknown:
        open_storage(uri, {**server.options, "aws_regon": "x"})
    dead = {**server.options, "aws_endpoint": "http://127.0.0.1:1", "timeout": "1s"}
    with pytest.raises(OSError, match=f"the store failed: no answer from http://127.0.0.1:1, .*{uri}/f") as unreachable:
        ObjectStorage(uri, (made := open_storage(uri, dead))._once, made._once).read("f")  # type: ignore[attr-defined]
    texts += [str(error.value) for error in (absent, unknown, unreachable)]
    assert [text for text in texts if secret in text] == []


@pytest.mark.parametrize("uri", ["s3://", "s3://bucket", "s3://bucket/", "gs:///x"])
def test_a_bucket_is_no_table(uri: str) -> None:
    with pytest.raises(OptionError, match=r"names no folder in a bucket: write \w+://bucket/folder"):
        open_storage(uri)


def test_a_large_file_goes_in_parts_and_comes_by_ranges(server: S3Server, uri: str) -> None:
    storage = open_storage(uri, server.options)
    table = pa.table({name: [(n * 2654435761) % 2**40 for n in range(400_000)] for name in "abcd"})
    with storage.open_output("f.parquet") as stream:
        pq.write_table(table, stream, row_group_size=100_000, compression="none", use_dictionary=False)
    assert storage.stat("f.parquet").size_bytes > 8 * 1024 * 1024
    with storage.open_input("f.parquet") as source:
        assert pq.read_table(source, columns=["b", "d"]).equals(table.select(["b", "d"]))
    with pytest.raises(FileExistsError), storage.open_output("f.parquet") as stream:
        stream.write(b"x" * 9_000_000)

    def give_up() -> None:
        with storage.open_output("never") as stream:
            stream.write(b"x" * 9_000_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        give_up()
    assert not storage.exists("never")


def test_what_is_expected_is_fetched_together() -> None:
    data = bytes(n % 251 for n in range(10_000))
    asked: list[list[Span]] = []

    def fetch(spans: list[Span]) -> list[bytes]:
        asked.append(list(spans))
        return [data[span.start : span.end] for span in spans]

    file = RangedFile(fetch, len(data), data[-1_000:])  # type: ignore[arg-type]
    file.expect([(100, 200), (400, 500), (8_950, 9_050)])
    for start, end in [(400, 500), (100, 150), (150, 200), (8_950, 9_050), (9_900, 10_000), (0, 50)]:
        file.seek(start)
        assert file.read(end - start) == data[start:end]
    assert asked == [[(400, 500), (8_950, 9_000)], [(100, 200)], [(0, 9_000)]]
    file.seek(0)
    assert file.read() == data


def test_a_writer_that_was_rolled_back_while_it_was_paused_commits_nothing(server: S3Server, uri: str) -> None:
    table = hoodie.create_table(uri, rows(0, 1, 0).schema, record_key="id", storage_options=server.options)
    table.upsert(rows(0, 4, 1))
    publisher = table._context.publisher
    publisher.begin("20260101000000001")
    epoch = publisher.epoch("20260101000000001")
    publisher.fence("20260101000000001")
    publisher.forget("20260101000000001")
    with pytest.raises(FileNotFoundError):
        publisher.complete("20260101000000001", ".hoodie/20260101000000001.commit", b"{}", epoch)
    assert len(seen(table)) == 4


def test_a_commit_is_later_by_the_second_than_the_slices_that_it_adds_to() -> None:
    clock = FakeClock(1_764_000_000.25)
    storage = BucketStorage(clock=clock)
    create(storage, table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    assert clock.now_s < 1_764_000_001
    opened(storage, clock).upsert(batch([Input("l", "b", 1, 1)]))
    assert clock.now_s < 1_764_000_001, "it adds to no slice that was there"
    opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)]))
    assert clock.now_s >= 1_764_000_001


@pytest.mark.parametrize("begins", ["a compaction", "rows in a small file"])
def test_a_commit_that_begins_a_slice_in_a_file_group_is_later_by_the_second_than_its_instant(begins: str) -> None:
    """Stores tell seconds. Completed before its instant, its logs would be those of the older slice for Apache Hudi."""
    clock = FakeClock(1_764_000_000.25)
    storage = BucketStorage(clock=clock)
    create(storage, table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)]))
    assert clock.now_s < 1_764_000_001, "there is no older slice"
    if begins == "a compaction":
        opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)]))
        clock.now_s = 1_764_000_005.25
        (instant,) = [each.instant for each in opened(storage, clock).compact()]
    else:
        clock.now_s = 1_764_000_005.25
        instant = opened(storage, clock).upsert(batch([Input("l", "a", 1, 1)])).instant
        (piece,) = opened(storage, clock)._context.snapshot().view.latest_slices()
        assert piece.base_instant == instant
    assert clock.now_s >= 1_764_000_006, instant


def test_the_command_line_takes_the_lock_that_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "t")
    hoodie.create_table(path, rows(0, 1, 0).schema, record_key="id", table_type=TYPES[1]).upsert(rows(0, 4, 1))
    provider = {"hoodie.write.lock.provider": "filesystem"}
    table = hoodie.open_table(path, options=provider)
    context = table._context.with_concurrency(parse_write_options(provider, defaults={}).write.concurrency)
    compaction = ["compaction", "plan", path]
    with context.lock.held(1.0):
        assert main(["rollback", path, "--yes", "-o", "hoodie.write.lock.provider=nobody"]) == 1
        assert "hoodie.write.lock.provider" in capsys.readouterr().err
        assert main([*compaction, "-o", "hoodie.write.lock.provider=filesystem"]) == 1
        assert "is held by this thread already" in capsys.readouterr().err
