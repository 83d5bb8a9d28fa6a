"""Tables of the suites on a real server, where the environment names one: the same test files run there once more.

`tests/memory_tables.py` makes its tables here then. HOODIE_TEST_TABLES is `s3` (the server's address is in HOODIE_TEST_S3, and the
folder where it keeps its objects as files in HOODIE_TEST_S3_OBJECTS) or `hdfs` (HOODIE_TEST_HDFS is host:port of the NameNode).
`integration/on_servers.py` starts the servers and runs the files.

The clock of a server passes by itself. A test that sets it, or waits for hours, is skipped.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import pytest

from hoodie.model.names import folder_of
from hoodie.storage.base import FileInfo
from hoodie.storage.hdfs import HdfsStorage, write_options
from hoodie.storage.memory import MemorySnapshot
from hoodie.storage.object_store import ObjectStorage
from hoodie.storage.uri import open_storage

if TYPE_CHECKING:
    from tests.servers.s3 import S3Server

SERVER = os.environ.get("HOODIE_TEST_TABLES")
"""None: the tables are in memory."""
EVERY = int(os.environ.get("HOODIE_TEST_EVERY", "1"))
"""Of the places to die at, every so manieth is tried."""
TRIED: Counter[str] = Counter()
"""Tables that were made on the server, and places that were tried, since the test began."""

_LONGEST_WAIT_S = 20.0
_PASSING = (".hoodie/.locks/", ".hoodie/lock", ".hoodie/.hoodie_py/clock", ".hoodie/.hoodie_py/tmp/")
"""What locks and clocks leave behind; in memory they have no files."""


def in_memory(why: str) -> pytest.MarkDecorator:
    """A test that does not run on a server, for the reason that it gives."""
    return pytest.mark.skipif(SERVER is not None, reason=why)


class ServerClock:
    """In place of `FakeClock`: it only tells the time, and sleeping takes it."""

    def __init__(self, now_s: float | None = None) -> None:
        self.slept_s = 0.0

    def __call__(self) -> float:
        return time.time()

    @property
    def now_s(self) -> float:
        return time.time()

    @now_s.setter
    def now_s(self, value: float) -> None:
        pytest.skip("sets the clock, which a server's does not let it")

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        if self.slept_s > _LONGEST_WAIT_S:
            pytest.skip(f"waits for {self.slept_s:.0f} seconds, which really pass on a server")
        time.sleep(seconds)


class _Placed:
    """What tests ask of a storage in memory, beside the protocol."""

    def snapshot(self) -> MemorySnapshot:
        """Without what locks leave, and without times of folders, which a lock changes too."""
        storage = cast(ObjectStorage, self)
        found = [info for info in storage.list("", recursive=True) if not info.path.startswith(_PASSING)]
        return MemorySnapshot({info.path: (storage.read(info.path), info.mtime_s) for info in found}, {})

    def restore(self, snapshot: MemorySnapshot) -> None:
        pytest.skip("puts a storage back, with the times of its files: only memory can")


class TableInS3(_Placed, ObjectStorage):
    """The server's own files are copied and moved: so objects keep their times and tags."""

    def __init__(self, server: S3Server, objects: Path, uri: str) -> None:
        made = cast(ObjectStorage, open_storage(uri, server.options))
        super().__init__(uri, made._store, made._once, endpoint=made._endpoint, place=made._place, how=made._how)
        self._server = server
        self._objects = objects
        self._folder = objects / uri.removeprefix("s3://")

    @classmethod
    def new(cls) -> Self:
        from tests.servers.s3 import S3Server  # noqa: PLC0415 - environments of other Sparks have no boto3

        server = S3Server(os.environ["HOODIE_TEST_S3"])
        return cls(server, Path(os.environ["HOODIE_TEST_S3_OBJECTS"]), server.new_uri())

    def _other(self) -> Self:
        return type(self)(self._server, self._objects, self._server.new_uri())

    def copied(self) -> Self:
        other = self._other()
        if self._folder.exists():
            shutil.copytree(self._folder, other._folder)
        return other

    def moved(self) -> Self:
        other = self._other()
        other._folder.parent.mkdir(parents=True, exist_ok=True)
        self._folder.rename(other._folder)
        return other


class TableInHdfs(_Placed, HdfsStorage):
    """A rename moves it; copies are written anew, and get the times of what they are copies of."""

    @classmethod
    def new(cls) -> Self:
        return cls(os.environ["HOODIE_TEST_HDFS"], f"/tables/{secrets.token_hex(8)}/t")

    def copied(self) -> Self:
        other = self.new()
        files: list[FileInfo] = []
        folders = [""]
        while folders:
            folder = folders.pop()
            other.mkdirs(folder)
            found = self.list(folder)
            files += [info for info in found if not info.is_folder]
            folders += [info.path for info in found if info.is_folder]

        def copy(info: FileInfo) -> None:
            data, path, client = self.read(info.path), other._absolute(info.path), other._client
            writer = client.create(path, write_options(create_parent=False))
            if data:
                writer.write(data)
            writer.close()
            at_ms = round(info.mtime_s * 1000)
            client.set_times(path, at_ms, at_ms)

        with ThreadPoolExecutor(16) as pool:  # each waits for the DataNode most of its time
            list(pool.map(copy, files))
        return other

    def moved(self) -> Self:
        other = self.new()
        other._client.mkdirs(folder_of(other._root), create_parent=True)
        other._client.rename(self._root, other._root, False)
        return other


def new_on_server() -> TableInS3 | TableInHdfs:
    """An empty storage on the server that the environment names."""
    TRIED["tables"] += 1
    return {"s3": TableInS3, "hdfs": TableInHdfs}[SERVER or ""].new()
