"""An interrupt at any line leaves no lock and no sign of life behind that anybody waits for."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from hoodie.lock.filesystem_lock import FilesystemLock
from hoodie.lock.providers import coordinate
from hoodie.lock.storage_liveness import StorageLiveness
from hoodie.lock.storage_lock import LOCK_PATH, StorageLock
from hoodie.options.concurrency import CONCURRENCY
from hoodie.options.parse import parse_write_options
from hoodie.storage.memory import MemoryStorage
from tests.lock.interrupted import held_twice, is_interrupted_everywhere
from tests.servers.zookeeper import ZooKeeper

T = "20260101093000000"


def test_a_lock_in_the_storage() -> None:
    def make() -> tuple[Any, Callable[[], bool]]:
        storage = MemoryStorage()

        def is_free() -> bool:
            return not storage.exists(LOCK_PATH) or json.loads(storage.read(LOCK_PATH))["expired"]

        return StorageLock(storage), is_free

    is_interrupted_everywhere(make, held_twice, least=60)


def test_a_lock_file() -> None:
    def make() -> tuple[Any, Callable[[], bool]]:
        storage = MemoryStorage()
        return FilesystemLock(storage, CONCURRENCY), lambda: not storage.exists(".hoodie/lock")

    is_interrupted_everywhere(make, held_twice, least=60)


@pytest.mark.parametrize("end", [StorageLiveness.release, StorageLiveness.abandon])
def test_a_sign_of_life(end: Callable[[StorageLiveness, str], None]) -> None:
    """On other machines it counts until the heartbeat is old. This process does not go by it any more."""

    def make() -> tuple[Any, Callable[[], bool]]:
        liveness = StorageLiveness(MemoryStorage())
        return liveness, lambda: not liveness.is_alive(T)

    def act(liveness: StorageLiveness) -> None:
        liveness.hold(T)
        assert liveness.is_alive(T)
        end(liveness, T)

    is_interrupted_everywhere(make, act, least=30)


@pytest.mark.long
def test_a_lock_in_zookeeper(zookeeper_server: ZooKeeper) -> None:
    from kazoo.client import KazooClient  # noqa: PLC0415 - an optional extra

    others = KazooClient(zookeeper_server.address)
    others.start()
    prefix = "hoodie.write.lock.zookeeper"

    def make() -> tuple[Any, Callable[[], bool]]:
        key = str(uuid.uuid4())
        given = {
            f"{prefix}.url": zookeeper_server.address,
            f"{prefix}.base_path": "/interrupted",
            f"{prefix}.lock_key": key,
        }
        options = parse_write_options({"hoodie.write.lock.provider": "zookeeper", **given}).write.concurrency

        def is_free() -> bool:
            path = f"/interrupted/{key}"
            return not others.exists(path) or not others.get_children(path)

        return coordinate(MemoryStorage(), options).lock, is_free

    try:
        is_interrupted_everywhere(make, held_twice, least=60)
    finally:
        others.stop()
        others.close()
