"""What ObjectStorage makes of a store that fails, answers late or loses its answers, and what its calls cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar, cast

import pytest

from hoodie.errors import StorageError
from hoodie.storage.base import ConditionalStorage
from hoodie.storage.object_store import ObjectStorage
from hoodie.storage.ranges import TAIL_BYTES
from hoodie.storage.uri import open_storage
from tests.servers.http_proxy import PASSING, Failing, HttpProxy
from tests.servers.s3 import shared_moto
from tests.storages import write


@pytest.fixture
def proxy() -> Iterator[HttpProxy]:
    with HttpProxy(shared_moto().endpoint) as proxy:
        yield proxy


@pytest.fixture
def storage(proxy: HttpProxy) -> ConditionalStorage:
    server = shared_moto()
    return cast(ConditionalStorage, open_storage(server.new_uri(), {**server.options, "aws_endpoint": proxy.endpoint}))


@pytest.mark.parametrize("failing", [*PASSING, Failing.CONFLICT])
def test_a_put_on_condition_whose_answer_is_no_answer_is_ours(
    storage: ConditionalStorage, proxy: HttpProxy, failing: Failing
) -> None:
    proxy.fail_next("PUT", failing)
    storage.create_new("created", b"new")
    storage.create_new("swapped", b"old")
    _, tag = storage.read_tagged("swapped")
    proxy.fail_next("PUT", failing)
    new_tag = storage.swap("swapped", b"new", tag)
    assert storage.read("created") == b"new"
    assert storage.read_tagged("swapped") == (b"new", new_tag)


@pytest.mark.parametrize("failing", [*PASSING, Failing.CONFLICT])
def test_equal_bytes_of_another_are_not_taken_for_ours(
    storage: ConditionalStorage, proxy: HttpProxy, failing: Failing
) -> None:
    storage.create_new("f", b"same")
    proxy.fail_next("PUT", failing)
    with pytest.raises(FileExistsError):
        storage.create_new("f", b"same")


def test_a_store_that_stays_busy_is_no_taken_name(storage: ConditionalStorage, proxy: HttpProxy) -> None:
    proxy.fail_next("PUT", Failing.CONFLICT, times=20)
    with pytest.raises(OSError, match="busy") as error:
        storage.create_new("f", b"x")
    assert not isinstance(error.value, FileExistsError)


@pytest.mark.long
def test_nor_is_it_where_the_put_has_no_condition(storage: ConditionalStorage, proxy: HttpProxy) -> None:
    proxy.fail_next("PUT", Failing.ABORTED, times=20)
    with pytest.raises(OSError, match="busy") as error:
        storage.replace("f", b"x")
    assert not isinstance(error.value, FileExistsError)


def test_a_put_without_condition_waits_for_a_store_that_is_busy(storage: ConditionalStorage, proxy: HttpProxy) -> None:
    proxy.fail_next("PUT", Failing.ABORTED, times=2)
    storage.replace("f", b"x")
    assert storage.read("f") == b"x"
    proxy.fail_next("PUT", Failing.ABORTED, times=2)
    assert storage.now_s() > 0


def test_what_calls_cost(storage: ConditionalStorage, proxy: HttpProxy) -> None:
    def cost(act: Callable[[], object]) -> dict[str, int]:
        proxy.counted()
        act()
        return proxy.counted()

    assert cost(lambda: storage.create_new("a/f", b"x")) == {"PUT": 1}
    assert cost(lambda: write(storage, "a/g", b"x")) == {"PUT": 1}
    assert cost(lambda: storage.replace("a/g", b"y")) == {"PUT": 1}
    assert cost(lambda: storage.read("a/f")) == {"GET": 1}
    assert cost(lambda: storage.open_input("a/f").close()) == {"GET": 1}
    assert cost(lambda: storage.list("a")) == {"LIST": 1}
    assert cost(lambda: storage.stat("a/f")) == {"HEAD": 1}
    assert cost(lambda: storage.exists("absent")) == {"HEAD": 1, "LIST": 1}
    assert cost(lambda: storage.delete("a/g")) == {"DELETES": 1}
    assert cost(lambda: storage.touch("a/h")) == {"PUT": 1}
    assert cost(lambda: storage.mkdirs("b")) == {}
    assert cost(lambda: storage.delete_folder("a")) == {"LIST": 1, "DELETES": 1}


# -- Azure -------------------------------------------------------------------------------------------------------------


class Blob(BaseHTTPRequestHandler):
    """One blob of Azure: ranges from the beginning only. Azure refuses the others, and obstore does not even ask."""

    content = b""
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        span = self.headers.get("x-ms-range") or self.headers["Range"]
        self.asked.append(span)
        first, last = (int(each) for each in span.removeprefix("bytes=").split("-"))
        part = self.content[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(self.content)}")
        self.send_header("ETag", '"0x1"')
        self.send_header("Last-Modified", "Tue, 24 Nov 2026 03:00:00 GMT")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("size", "requests"), [(1000, 1), (TAIL_BYTES, 1), (3 * TAIL_BYTES, 2)])
def test_the_end_of_a_blob_of_azure_is_read_without_asking_for_its_end(size: int, requests: int) -> None:
    blob = type("Blob", (Blob,), {"content": bytes(n % 251 for n in range(size)), "asked": []})
    server = HTTPServer(("127.0.0.1", 0), blob)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}/account"
        options = {"account_name": "account", "account_key": "a2V5", "endpoint": endpoint}
        storage = open_storage("az://lake/t", {f"azure_storage_{name}": value for name, value in options.items()})
        with storage.open_input("f") as source:
            source.seek(max(0, size - 10))
            assert source.read() == blob.content[-10:]
        assert len(blob.asked) == requests
    finally:
        server.shutdown()
        server.server_close()


def test_azure_would_take_a_backslash_for_a_slash() -> None:
    options = {"azure_storage_account_name": "a", "azure_storage_account_key": "a2V5"}
    with pytest.raises(OSError, match=r"no partition value with one: .*az://lake/t"):
        open_storage("az://lake/t", options).create_new("a\\b", b"")


def test_the_environment_says_where_an_emulator_of_azure_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"ACCOUNT_NAME": "a", "ACCOUNT_KEY": "a2V5", "ENDPOINT": "http://127.0.0.1:9/a"}
    for name, value in said.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    storage = open_storage("az://lake/t")
    assert isinstance(storage, ObjectStorage)
    assert {**storage.how, "allow_http": "true"} == storage.how  # and other processes of the job are told the same
    assert storage.how["azure_storage_endpoint"] == said["ENDPOINT"]


# -- a bucket that is not there ----------------------------------------------------------------------------------------


class NoBucket(BaseHTTPRequestHandler):
    """What S3 answers to whatever is asked of a bucket that nobody has made."""

    def do_GET(self) -> None:
        said = b"<?xml version='1.0'?><Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>"
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(404)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_PUT = do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


def test_a_bucket_that_is_not_there_is_named() -> None:
    server = HTTPServer(("127.0.0.1", 0), NoBucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        options = {"endpoint": endpoint, "access_key_id": "x", "secret_access_key": "y", "region": "us-east-1"}
        storage = open_storage("s3://lke/t", {f"aws_{name}": value for name, value in options.items()})
        for act in (
            lambda: storage.read("f"),
            lambda: storage.list("a"),
            lambda: storage.create_new("f", b""),
            lambda: storage.replace("f", b""),
        ):
            with pytest.raises(StorageError, match="there is no bucket 'lke' in the store"):
                act()
    finally:
        server.shutdown()
