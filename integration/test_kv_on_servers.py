"""Key-value stores on HDFS and on an S3 server: readers beside a writer, writers that are killed, and one that is paused too long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

import hoodie.kv
from hoodie.kv import KeyValueStore
from integration.hudi_client import ROOT
from tests.effort import HUNG_S
from tests.servers.s3 import S3Server

WRITER = """
import json, sys, hoodie.kv
from hoodie.errors import HoodieError
uri, options, windows = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
store = hoodie.kv.open_store(uri, flush_size=60, max_file_size=6000, max_wal_file_size=9000, heartbeat_s=0.5, storage_options=options)
try:
    with store.writer(0, wait_s=60) as writer:
        first = (writer.last_window or 0) + 1
        for window in range(first, first + windows):
            for n in range(20):
                key = b"k%d" % ((window * 7 + n) % 100)
                writer.put(key, b"%d" % (int(writer.lookup(key) or b"0") + 1))
            writer.end_window(window)
            print(window, flush=True)
except HoodieError as error:
    print(type(error).__name__, flush=True)
"""


class Server(NamedTuple):
    uri: str
    options: Mapping[str, str]

    def store(self, **how: object) -> KeyValueStore:
        return hoodie.kv.open_store(self.uri, heartbeat_s=0.5, storage_options=self.options, **how)  # type: ignore[arg-type]


@pytest.fixture(params=["hdfs", "s3"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "hdfs":
        yield Server(f"hdfs://{request.getfixturevalue('quick_hdfs')}/kv/{os.urandom(6).hex()}", {})
    else:
        running: S3Server = request.getfixturevalue("s3_server")
        yield Server(running.new_uri(), dict(running.options))


def started(server: Server, windows: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, server.uri, json.dumps(server.options), str(windows)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def expected(last: int) -> dict[bytes, bytes]:
    found: dict[bytes, int] = {}
    for window in range(1, last + 1):
        for n in range(20):
            key = b"k%d" % ((window * 7 + n) % 100)
            found[key] = found.get(key, 0) + 1
    return {key: b"%d" % value for key, value in found.items()}


def rows_of(server: Server) -> tuple[int, dict[bytes, bytes]]:
    """The last window, and all rows."""
    with server.store().writer(0, wait_s=60) as writer:
        writer.flush()
        last = writer.last_window
    return last or 0, dict(server.store().reader(0))


def test_writers_that_are_killed_with_two_readers_beside(server: Server) -> None:
    server.store(buckets=1)
    stop, wrong = threading.Event(), []

    def read() -> None:
        reader = server.store().reader(0, max_age_s=None)
        while not stop.is_set():
            reader.refresh()
            window, rows = reader.window or 0, dict(reader)
            if rows != expected(window):
                wrong.append(window)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    acknowledged = 0
    try:
        for turn in range(3):
            process = started(server, 1_000)
            for _ in range(6 + 5 * turn):
                acknowledged = int(line_of(process))
            os.kill(process.pid, signal.SIGKILL)
            for line in process.stdout or ():
                acknowledged = int(line)
            process.wait()
    finally:
        stop.set()
        for each in readers:
            each.join()
    assert not wrong
    last, rows = rows_of(server)
    assert last - acknowledged in (0, 1)
    assert rows == expected(last)


def test_a_writer_that_was_paused_too_long_changes_nothing_any_more(server: Server) -> None:
    server.store(buckets=1)
    paused = started(server, 1_000)
    seen = [int(line_of(paused)) for _ in range(5)]
    os.kill(paused.pid, signal.SIGSTOP)
    try:
        other = started(server, 8)  # waits until the paused one counts as dead
        ended = other.communicate(timeout=HUNG_S)[0].split()
    finally:
        os.kill(paused.pid, signal.SIGCONT)
    assert len(ended) == 8, ended
    rest = (paused.stdout.read() if paused.stdout else "").split()
    paused.wait(timeout=HUNG_S)
    assert rest[-1] in ("StoreFencedError", "CommitOutcomeUnknownError"), rest
    assert int(ended[0]) - max([*seen, *map(int, rest[:-1])]) in (1, 2), (seen, rest, ended)
    last, rows = rows_of(server)
    assert last == int(ended[-1])
    assert rows == expected(last)
