"""A view by a timeline server: what it says is what a listing says, and what is wrong with it costs time only."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
import hoodie.timeline_server
from hoodie.engine.local import LocalEngine
from hoodie.errors import HoodieError, OptionError
from hoodie.format.view_json import Address, decode_files, encode_groups
from hoodie.options.parse import parse_view_options
from hoodie.options.values import ViewStore
from hoodie.options.view import RemoteOptions, ViewOptions
from hoodie.storage.cache import Cache
from hoodie.view.context import TableContext
from hoodie.view.remote import RemoteFiles
from hoodie.view.remote_client import RemoteClient

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("val", pa.int64())])


def rows(*ids, part="a", val=0):
    return pa.table({"id": list(ids), "part": [part] * len(ids), "val": [val] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path):
    made = hoodie.create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="part", table_type="MERGE_ON_READ")
    made.upsert(rows("k1", "k2"))
    made.upsert(rows("k1", "k3", part="b c%d", val=1))
    return made


QUICK = RemoteOptions(port=1, host="127.0.0.1", timeout_s=0.3, retries=1, first_pause_s=0.001, max_pause_s=0.001)


def opened(table, remote):
    kind = ViewStore.REMOTE_ONLY if remote.is_only else ViewStore.REMOTE_FIRST
    return TableContext.open(
        table._context.storage, LocalEngine(1), cache=Cache(), view=ViewOptions(type=kind, remote=remote)
    )


def at(server, **others):
    return replace(QUICK, port=server.port, token=server.token, timeout_s=30.0, **others)


def seen(context):
    view = context.snapshot().view
    return {path: view.file_groups(path) for path in view.every_partition()}, view.latest_slices()


def check(table, context):
    assert seen(context) == seen(table._context.on_storage())


@contextmanager
def answering(reply, *, times=100):
    """A server that sends the bytes `reply(request)` and ends the connection; gives its port and what it was asked."""
    listening = socket.create_server(("127.0.0.1", 0))
    asked, held = [], []

    def serve():
        for _ in range(times):
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            held.append(connection)
            data = b""
            with suppress(OSError):  # the client may have gone
                while b"\r\n\r\n" not in data and (chunk := connection.recv(65536)):
                    data += chunk
                asked.append(data)
                answer = reply(data)
                if answer is not None:
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], asked
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for each in held:
            each.close()
        thread.join()


def http(body, status="200 OK", *headers, length=None):
    # Told that the connection ends, the client does not try it once more before it notices.
    size = len(body) if length is None else length
    head = [f"HTTP/1.1 {status}", f"Content-Length: {size}", "Connection: close", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def test_the_view_is_that_of_a_listing_before_and_after_commits(table):
    with hoodie.timeline_server.start(table._context.storage.uri) as server:
        context = opened(table, at(server, is_only=True))
        check(table, context)
        table.upsert(rows("k1", "k9", val=2))
        check(table, context)
        table.compact()
        table.delete_partitions(["b c%d"])
        check(table, context)


def test_it_is_that_of_a_listing_also_by_apache_hudis_requests_alone(table):
    with hoodie.timeline_server.start(table._context.storage.uri) as server:
        context = opened(table, at(server, is_only=True))
        context.remote._has_files = False
        groups, slices = seen(context)
        table.insert_overwrite(rows("k7"))
        assert (groups, slices) != seen(context)
        check(table, context)


def test_the_storage_is_not_listed(table):
    class Listing:
        uri = "here"

        def files(self, paths):
            raise AssertionError("listed")

        all_files = files

    with hoodie.timeline_server.start(table._context.storage.uri) as server:
        context = replace(opened(table, at(server)), listing=Listing())
        groups, _ = seen(context)
        assert len(groups) == 2
        table.upsert(rows("k1", val=3))
        seen(context)


WRONG = {
    "no HTTP": lambda data: b"\x00\x01\x02hello\r\n\r\n",
    "nothing": lambda data: b"",
    "no answer": lambda data: None,
    "no JSON": lambda data: http(b"{'a'"),
    "deep": lambda data: http(b"[" * 100_000),
    "a text": lambda data: http(b'"files"'),
    "no files": lambda data: http(b"{}"),
    "files that are none": lambda data: http(b'{"partitions": [], "files": {"a": [1], "b c%d": null}}'),
    "sizes that are none": lambda data: http(b'{"partitions": ["a"], "files": {"a": {"x.parquet": -1}}}'),
    "cut off": lambda data: http(b'{"partitions": [], "files": {}}', length=1000),
    "a redirect": lambda data: http(b"", "302 Found", "Location: http://127.0.0.1:1/"),
    "behind": lambda data: http(b"behind", "400 Bad Request"),
    "wrong token": lambda data: http(b"no", "401 Unauthorized"),
    "broken": lambda data: http(b"oh", "500 Internal Server Error"),
    "too busy": lambda data: http(b"", "503 Service Unavailable"),
    "of another table": lambda data: http(b"not here", "404 Not Found"),
    "half of the partitions": lambda data: http(b'{"partitions": ["a"], "files": {}}'),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_server_without_an_answer_of_use_costs_time_only(table, wrong, caplog):
    with answering(WRONG[wrong]) as (port, asked):
        context = opened(table, replace(QUICK, port=port))
        view = context.snapshot().view
        assert view.file_groups("a") == table._context.on_storage().snapshot().view.file_groups("a")
        assert asked
        if wrong != "half of the partitions":
            check(table, context)
        assert "gives no answer" in caplog.text
        with pytest.raises(HoodieError, match="gives no answer: ") as refused:
            opened(table, replace(QUICK, port=port, is_only=True)).snapshot().view.file_groups("a")
        assert "REMOTE_FIRST" in str(refused.value)


def test_a_server_that_is_killed_in_mid_job_costs_time_only(table):
    with hoodie.timeline_server.start(table._context.storage.uri) as server:
        context = opened(table, at(server))
        check(table, context)
        view = context.snapshot().view
        assert view.file_groups("a")
        server.stop()
        assert view.file_groups("b c%d")
        check(table, context)
        table.upsert(rows("k1", val=4))
        check(table, context)


def test_with_a_wrong_token_the_table_is_listed(table):
    with hoodie.timeline_server.start(table._context.storage.uri) as server:
        check(table, opened(table, replace(at(server), token="wrong")))


def test_a_request_is_sent_again_when_a_connection_failed(table):
    listed = table._context.on_storage().snapshot().view
    files = {info.name: info.size_bytes for info in table._context.listing.files(["a"])[0]}
    answers = iter(
        [
            b"",
            http(b"", "503 Service Unavailable"),
            http(json.dumps({"partitions": [], "files": {"a": files}}).encode()),
        ]
    )
    pauses = []
    with answering(lambda data: next(answers)) as (port, asked):
        options = replace(QUICK, port=port, retries=3, timeout_s=30.0, is_only=True, token="secret")
        remote = RemoteFiles(RemoteClient(options, sleep=pauses.append), table._context.storage.uri, options)
        context = replace(opened(table, options), remote=remote)
        assert context.snapshot().view.file_groups("a") == listed.file_groups("a")
    assert len(asked) == 3
    assert pauses == [0.001, 0.001]
    assert all(b"Bearer secret" in each for each in asked)


def test_a_server_that_had_no_answer_rests_longer_each_time(table):
    now = [0.0]
    with answering(WRONG["broken"]) as (port, asked):
        options = replace(QUICK, port=port)
        remote = RemoteFiles(RemoteClient(options), table._context.storage.uri, options, now_s=lambda: now[0])
        context = replace(opened(table, options), remote=remote)
        counts = []
        for moment in (0.0, 0.5, 1.5, 3.0, 4.0):
            now[0] = moment
            context.snapshot().view.file_groups("a")
            counts.append(len(asked))
    assert counts == [1, 1, 2, 2, 3]


def test_files_that_were_moved_without_a_word_are_listed_anew_by_the_server(table, tmp_path):
    with hoodie.timeline_server.start(table._context.storage.uri) as server:
        context = opened(table, at(server, is_only=True))
        seen(context)
        (tmp_path / "t" / "a" / "stray.parquet").write_bytes(b"")
        assert context.forget_files()
        check(table, context)


def test_the_token_may_stand_in_the_name_of_the_host():
    options = {
        "hoodie.filesystem.view.type": "REMOTE_FIRST",
        "hoodie.filesystem.view.remote.host": "hoodie:a:b@10.0.0.1",
    }
    found = parse_view_options(options).remote
    assert (found.host, found.token, found.is_only) == ("10.0.0.1", "a:b", False)
    assert "a:b" not in repr(found)
    off = parse_view_options(options | {"hoodie.filesystem.view.remote.retry.enable": "false"}).remote
    assert (found.retries, off.retries) == (3, 0)
    assert parse_view_options({}).remote is None
    with pytest.raises(OptionError):
        parse_view_options(options | {"hoodie.filesystem.view.remote.port": "0"})


def test_file_groups_survive_the_way_to_json_and_back(table):
    view = table._context.snapshot().view
    groups = view.file_groups("b c%d")
    told = json.loads(json.dumps(encode_groups(groups, table._context.active.load(), Address("file:/some where"))))
    there = {(f.path, f.size_bytes) for g in groups for s in g.slices for f in (s.base, *s.logs) if f}
    assert set(decode_files(told)) == there
    for cut in ("fileStatus", "partition", "slices"):
        with pytest.raises(ValueError):
            decode_files(
                json.loads(json.dumps(told).replace(f'"{cut}"', '"other"'))
                if cut != "fileStatus"
                else [{"partition": "a", "slices": [{"baseFile": {"fileStatus": {}}}]}]
            )
