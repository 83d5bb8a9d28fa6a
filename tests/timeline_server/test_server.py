"""The timeline server: what it answers, to whom, and that it is as new as its clients."""

import json
import socket
import threading
import urllib.parse
from base64 import b64encode
from contextlib import suppress

import pyarrow as pa
import pytest

import hoodie
import hoodie.timeline_server
from hoodie.errors import HoodieError, OptionError, TableNotFoundError
from hoodie.model.names import name_of
from hoodie.storage.capabilities import Capabilities
from hoodie.timeline_server.requests import address_of
from tests.timeline_server.asking import SCHEMA, Asking, made, rows


@pytest.fixture
def table(tmp_path):
    return made(tmp_path)


@pytest.fixture
def server(table):
    with hoodie.timeline_server.start(table._context.storage.uri) as started:
        yield started


@pytest.fixture
def asking(server, table):
    return Asking(server, table)


def test_a_slice_is_told_as_apache_hudi_tells_it(asking, table):
    table.upsert(rows("k1", val=1))
    (found,) = asking.get("slices/partition/latest/", partition="a")
    (known,) = table._context.snapshot().view.latest_slices(["a"])
    assert found["partition"], found["fileId"] == known.group
    assert found["baseInstant"] == known.base_instant
    assert found["baseFile"]["fullPath"] == f"file:{asking.path}/{known.base.path}"
    assert found["baseFile"]["fileStatus"]["length"] == found["baseFile"]["fileLen"] == known.base.size_bytes
    assert [log["path"] for log in found["logFiles"]] == [f"file:{asking.path}/{log.path}" for log in known.logs]


def test_paths_are_escaped_where_they_are_uris(asking):
    (found,) = asking.get("datafiles/latest/partition", partition="b c%d")
    assert "/b%20c%25d/" in found["fileStatus"]["path"]["uri"]
    assert "/b c%d/" in found["fullPath"]


def test_an_answer_has_the_path_as_the_client_calls_the_table(asking, tmp_path):
    (tmp_path / "link").symlink_to(asking.path)
    for called in (f"file:{asking.path}", f"file://{asking.path}/", str(tmp_path / "link")):
        asked = urllib.parse.urlencode({"basepath": called, "partition": "a"})
        answer = asking.pool.request(
            "GET",
            f"{asking.server.address}/v1/hoodie/view/datafiles/latest/partition?{asked}",
            headers={"authorization": f"Bearer {asking.server.token}"},
        )
        (found,) = json.loads(answer.data)
        plain = "/" + called.removeprefix("file:").strip("/")
        assert found["fullPath"].startswith(f"file:{plain}/a/")


@pytest.mark.parametrize(
    ("served", "asked", "called"),
    [
        ("s3://bucket/t", "s3a://bucket/t/", "s3a://bucket/t"),
        ("s3://bucket/t", "s3://bucket/other", None),
        ("s3://bucket/t", "gs://bucket/t", None),
        ("hdfs://node:8020/t", "hdfs://node:8020/t", "hdfs://node:8020/t"),
        ("hdfs://node:8020/t", "/t", "hdfs://node:8020/t"),
        ("hdfs://node:8020/t", "/other", None),
        ("hdfs://node:8020/t", "", None),
    ],
)
def test_a_table_has_several_names(served, asked, called):
    class Storage:
        uri = served
        can = Capabilities()

    found = address_of(asked, Storage())
    assert (found and found.prefix) == called


def test_a_server_that_is_behind_syncs_without_listing(asking, table):
    assert len(asking.get("slices/partition/latest/", partition="a", **asking.stands(table))) == 1
    table.insert(rows("k4", "k5"))
    table.insert_overwrite(rows("k6", part="b c%d"))
    assert len(asking.get("datafiles/all", partition="a", **asking.stands(table))) == 2
    (replaced,) = asking.get("filegroups/replaced/partition/", partition="b c%d", **asking.stands(table))
    assert replaced["timeline"]["instants"]
    assert len(asking.get("slices/all", partition="b c%d")) == 1


def test_a_client_that_is_behind_is_told_so(asking, table):
    before = asking.stands(table)
    table.upsert(rows("k1", val=1))
    answer = asking.request("GET", "/v1/hoodie/view/slices/partition/latest/", partition="a", **before)
    assert answer.status == 400
    assert before["lastinstantts"].encode() in answer.data
    ahead = {"lastinstantts": "9" * 17, "timelinehash": "0" * 64}
    assert asking.request("GET", "/v1/hoodie/view/slices/partition/latest/", partition="a", **ahead).status == 400


def test_files_are_told_also_to_a_client_that_is_behind(asking, table):
    """They are those of now, as a listing's are."""
    before = asking.stands(table)
    assert asking.get("slices/all", partition="a", **before)
    table.insert(rows("k8"))
    asking.get("slices/all", partition="a", **asking.stands(table))
    answer = asking.request("POST", "/v1/hoodie/python/files", body=b'["a"]', **before)
    there = {info.name: info.size_bytes for info in table._context.listing.files(["a"])[0]}
    assert json.loads(answer.data) == {"partitions": ["a"], "files": {"a": there}}
    ahead = {"lastinstantts": "9" * 17, "timelinehash": "0" * 64}
    assert asking.request("POST", "/v1/hoodie/python/files", body=b"null", **ahead).status == 400


def test_a_client_that_has_not_seen_a_clean_yet_gets_its_answer(asking, table, tmp_path):
    for val in range(3):
        table.upsert(rows("k1", val=val))
        table.compact()
    before = asking.stands(table)
    assert table.clean(retain_commits=1).files
    (found,) = asking.get("slices/partition/latest/", partition="a", **before)
    assert found["baseFile"]
    there = {path.name for path in (tmp_path / "t" / "a").iterdir()}
    told = [name_of(each["baseFile"]["fullPath"]) for each in asking.get("slices/all", partition="a")]
    assert told
    assert set(told) <= there


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer"},
        {"authorization": "Basic " + b64encode(b"hoodie:wrong").decode()},
        {"authorization": "Basic ///"},
        {"authorization": "Digest x"},
    ],
)
def test_without_the_token_there_is_no_answer(asking, headers):
    answer = asking.pool.request("GET", f"{asking.server.address}/v1/hoodie/view/slices/all", headers=headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic")


def test_the_token_may_be_a_password(asking):
    said = b64encode(f"anybody:{asking.server.token}".encode()).decode()
    asked = urllib.parse.urlencode({"basepath": asking.path, "partition": "a"})
    url = f"{asking.server.address}/v1/hoodie/view/slices/all?{asked}"
    assert asking.pool.request("GET", url, headers={"authorization": f"Basic {said}"}).status == 200


def test_a_server_without_a_token_is_for_this_machine_only(table):
    uri = table._context.storage.uri
    with pytest.raises(OptionError, match=r"everybody who reaches 0\.0\.0\.0"):
        hoodie.timeline_server.start(uri, host="0.0.0.0", token="")
    with hoodie.timeline_server.start(uri, token="") as server:
        assert "@" not in server.options["hoodie.filesystem.view.remote.host"]
        assert (
            Asking(server, table).request("GET", "/v1/hoodie/view/slices/all", token="any", partition="a").status == 200
        )


@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        ("GET", "/other", {}, 404),
        ("GET", "/v1/hoodie/view/slices/nothing", {}, 404),
        ("DELETE", "/v1/hoodie/view/slices/all", {}, 404),
        ("GET", "/v1/hoodie/view/slices/all", {"basepath": "/somewhere/else"}, 404),
        ("GET", "/v1/hoodie/view/slices/file/latest/", {"partition": "a"}, 400),
        ("GET", "/v1/hoodie/view/slices/merged/beforeoron/latest/", {"partition": "a"}, 400),
        ("POST", "/v1/hoodie/view/loadpartitions/", {"partitions": "{"}, 400),
        ("POST", "/v1/hoodie/view/loadpartitions/", {"partitions": "[1]"}, 400),
        ("POST", "/v1/hoodie/python/files", {}, 400),
        ("GET", "/v1/hoodie/marker/all", {"markerdirpath": "/etc"}, 400),
        ("GET", "/v1/hoodie/view/slices/all", {f"f{n}": "" for n in range(100)}, 400),
    ],
)
def test_garbage_is_refused_and_the_next_request_answered(asking, method, path, fields, status):
    answer = asking.request(method, path, body=b"[" if path.endswith("files") else None, **fields)
    assert answer.status == status
    assert b"Traceback" not in answer.data
    assert asking.get("slices/all", partition="a")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"GET\r\n\r\n",
        b"GET /%ff%fe?%ff=%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 300_000 + b"\r\n\r\n",
        b"POST /v1/hoodie/python/files HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_request_or_too_large_gets_an_error_and_no_memory(asking, sent):
    with socket.create_connection((asking.server.host, asking.server.port), timeout=20) as raw:
        answer = b""
        with suppress(OSError):  # it does not read to the end what is too large
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            while chunk := raw.recv(65536):
                answer += chunk
    assert not answer or answer.split()[1][:1] == b"4"
    assert asking.get("slices/all", partition="a")


def test_a_silent_client_holds_nobody_up(asking):
    silent = [socket.create_connection((asking.server.host, asking.server.port)) for _ in range(40)]
    for each in silent:
        each.sendall(b"GET /v1/hoodie/view/slices/all HTTP/1.1\r\nHo")
    assert asking.get("slices/all", partition="a")
    for each in silent:
        each.close()


def test_a_table_that_cannot_be_read_is_an_error_of_the_server(asking, table, tmp_path):
    newest = tmp_path / "t" / table._context.active.path(table._context.active.load().commits[-1])
    newest.write_bytes(b"{")
    answer = asking.request("GET", "/v1/hoodie/view/slices/all", partition="a")
    assert answer.status == 500
    assert b"Traceback" not in answer.data


def test_files_of_writes_at_work_are_told_as_they_are_now(asking, tmp_path):
    def ask(name):
        return [each["baseInstant"] for each in asking.get(name, partition="a")]

    (committed,) = ask("slices/partition/latest/inflight/")
    (tmp_path / "t" / "a" / "00000000-0000-0000-0000-000000000000-0_0-0-0_20991231000000000.parquet").write_bytes(b"")
    assert ask("slices/partition/latest/inflight/") == ["20991231000000000", committed]
    assert ask("slices/partition/latest/") == [committed]


def test_the_timeline_is_told(asking, table):
    told = asking.get("timeline/instants/all")["instants"]
    assert [each["ts"] for each in told] == [i.time for i in table._context.active.load()]
    assert all(each["state"] == "COMPLETED" and each["completionTime"] for each in told)
    assert asking.get("timeline/instant/last") == told[-1:]


def test_refresh_forgets_and_partitions_are_loaded(asking):
    assert asking.request("POST", "/v1/hoodie/view/refresh/").data == b"true"
    assert asking.request("POST", "/v1/hoodie/view/loadallpartitions/").data == b"true"
    assert asking.request("POST", "/v1/hoodie/view/loadpartitions/", partitions='["a"]').data == b"true"


def test_many_clients_at_once_get_what_one_gets(asking, table):
    expected = asking.get("slices/all", partition="a")
    found, stop = [], threading.Event()

    def ask():
        mine = Asking(asking.server, table)
        while not stop.is_set():
            found.append(mine.get("slices/all", partition="b c%d"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    counts = []
    for val in range(5):
        table.upsert(rows(f"n{val}"))
        counts.append(len(asking.get("slices/all", partition="a", **asking.stands(table))))
    stop.set()
    for each in threads:
        each.join()
    assert expected
    assert counts[-1] >= 1
    assert all(each == found[0] for each in found)


def test_the_port_is_free_again_and_stopping_twice_is_allowed(table):
    uri = table._context.storage.uri
    server = hoodie.timeline_server.start(uri)
    with pytest.raises(HoodieError, match=f"cannot listen at 127.0.0.1, port {server.port}"):
        hoodie.timeline_server.start(uri, port=server.port)
    server.stop()
    server.stop()
    before = set(threading.enumerate())
    with hoodie.timeline_server.start(uri, port=server.port) as again:
        assert Asking(again, table).get("slices/all", partition="a")
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    "wrong", [{"store": "redis"}, {"host": "no such host"}, {"port": 70_000}, {"host": "203.0.113.1"}]
)
def test_what_makes_no_sense_is_said(table, wrong):
    with pytest.raises(HoodieError):
        hoodie.timeline_server.start(table._context.storage.uri, **wrong)


def test_there_is_no_server_without_a_table(tmp_path):
    with pytest.raises(TableNotFoundError):
        hoodie.timeline_server.start(tmp_path)


def test_an_embedded_server_lives_as_long_as_the_write(table):
    def running():
        return {t.name for t in threading.enumerate() if t.name.startswith("hoodie-timeline-server")}

    seen = []

    def batches():
        seen.append(len(running()))
        yield from rows("k9").to_batches()

    def reader():
        return pa.RecordBatchReader.from_batches(SCHEMA, batches())

    before = len(running())
    table.upsert(reader(), {"hoodie.embed.timeline.server": "true", "hoodie.python.view.remote.token": "secret"})
    assert seen == [before + 1]
    assert len(running()) == before
    table.upsert(reader())
    assert seen == [before + 1, before]


def test_a_write_goes_on_without_a_server_that_cannot_be_started(table, server, caplog):
    table.upsert(
        rows("k9"), {"hoodie.embed.timeline.server": "true", "hoodie.embed.timeline.server.port": str(server.port)}
    )
    assert table.scan(where="id = 'k9'").count() == 1
    assert "the write goes on without the timeline server" in caplog.text


def test_a_browser_gets_the_table_as_a_page(asking, table):
    answer = asking.request("GET", "/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    table.upsert(rows("k4"))
    told = asking.request("GET", "/").data.decode()
    assert table.timeline.latest_commit.time in told
    assert all(f"<td>{partition}</td>" in told for partition in table.partitions())


def test_the_page_too_is_for_those_who_have_the_token(asking):
    answer = asking.request("GET", "/", token="other")
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert b"k1" not in answer.data
    assert answer.headers["content-type"].startswith("text/plain")
