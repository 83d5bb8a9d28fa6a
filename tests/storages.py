"""Every storage that there is, each empty: what the contracts of the seams are held against. A new one is one entry here."""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import cast

from obstore.store import MemoryStore

from hoodie.storage.base import ConditionalStorage, RenamingStorage, Storage
from hoodie.storage.faults import FaultStorage
from hoodie.storage.hdfs import HdfsStorage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.storage.object_store import ObjectStorage
from hoodie.storage.uri import open_storage
from tests.bucket import BucketStorage
from tests.servers.azurite import AzureServer
from tests.servers.gcs import GoogleServer
from tests.servers.s3 import S3Server, shared_moto

RENAMING: dict[str, Callable[[Path], RenamingStorage]] = {
    "local": lambda folder: LocalStorage(folder / "table"),
    "memory": lambda folder: MemoryStorage(),
    "faults": lambda folder: FaultStorage(LocalStorage(folder / "table")),
    "faults of memory": lambda folder: FaultStorage(MemoryStorage()),
}
"""Those that can rename."""
if HDFS := os.environ.get("HOODIE_TEST_HDFS"):
    # A server that runs, as host:port: `integration/test_contracts_on_servers.py` starts one and runs the contracts again.
    RENAMING["hdfs"] = lambda folder: HdfsStorage(HDFS, f"/contracts/{secrets.token_hex(8)}/table")
CONDITIONAL: dict[str, Callable[[Path], ConditionalStorage]] = {
    "objects": lambda folder: cast(ConditionalStorage, _objects()),
    "s3": lambda folder: cast(ConditionalStorage, _s3()),
    "memory": lambda folder: MemoryStorage(),
    "faults of memory": lambda folder: FaultStorage(MemoryStorage()),
}
"""Those that can compare and swap."""
if S3 := os.environ.get("HOODIE_TEST_S3"):
    # The address of a real one, which takes the credentials of `tests/servers/s3.py`.
    CONDITIONAL["versitygw"] = lambda folder: cast(ConditionalStorage, _of(S3Server(S3)))
if AZURE := os.environ.get("HOODIE_TEST_AZURE"):
    # The address of an Azurite, which has the container of `tests/servers/azurite.py`.
    CONDITIONAL["azurite"] = lambda folder: cast(ConditionalStorage, _of(AzureServer(AZURE)))
if GOOGLE := os.environ.get("HOODIE_TEST_GCS"):
    # The address of the translator of `tests/servers/gcs.py`.
    CONDITIONAL["gcs"] = lambda folder: cast(ConditionalStorage, _of(GoogleServer(GOOGLE)))
COPYING: dict[str, Callable[[Path], Storage]] = {
    "bucket": lambda folder: BucketStorage("memory://bucket"),
    "faults of a bucket": lambda folder: FaultStorage(BucketStorage("memory://bucket")),
    "objects": lambda folder: _objects(),
    "s3": lambda folder: _s3(),
}
"""Those that can copy files, and not rename."""
if S3:
    COPYING["versitygw"] = lambda folder: _of(S3Server(S3))
if AZURE:
    COPYING["azurite"] = lambda folder: _of(AzureServer(AZURE))
if GOOGLE:
    COPYING["gcs"] = lambda folder: _of(GoogleServer(GOOGLE))
FOLDERED: dict[str, Callable[[Path], Storage]] = {**RENAMING}
"""Those with folders that stay when they are empty."""
EVERY: dict[str, Callable[[Path], Storage]] = {**RENAMING, **COPYING}
OUTSIDE = ["/etc/passwd", "../x", "a/../../x", "a/..", ".", "a/./b", "a//b", "a/", "/", "..", "a\0b", "s3://bucket/x"]
"""Paths that no storage takes."""


def _objects() -> Storage:
    store = MemoryStore()
    return ObjectStorage(f"memory://objects/{next(_numbers)}", store, store)


def _s3() -> Storage:
    return _of(shared_moto())


def _of(server: S3Server | AzureServer | GoogleServer) -> Storage:
    return open_storage(server.new_uri(), server.options)


_numbers = itertools.count()


def paths(storage: Storage, folder: str, *, recursive: bool = False) -> list[str]:
    return [info.path for info in storage.list(folder, recursive=recursive)]


def write(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_output(path) as stream:
        stream.write(data)


def takes_name(storage: Storage, name: str) -> bool:
    """Whether a storage can have such a name at all.

    HDFS has none with a colon, object stores have none with a line break, and Azure has none with a backslash.
    """
    if isinstance(storage, ObjectStorage):
        return "\n" not in name and not (storage.uri.startswith("az:") and "\\" in name)
    return not (isinstance(storage, HdfsStorage) and ":" in name)
