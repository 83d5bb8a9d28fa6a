"""Where the lock in ZooKeeper stands, and what is missing to reach it."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from hoodie.errors import OptionError
from hoodie.lock.providers import coordinate
from hoodie.lock.zookeeper import place_of
from hoodie.options.concurrency import CONCURRENCY
from hoodie.options.values import LockProvider
from hoodie.storage.memory import MemoryStorage

NAMED = replace(
    CONCURRENCY,
    lock_provider=LockProvider.ZOOKEEPER,
    zookeeper_url="a,b:2182/root",
    zookeeper_base_path="/hudi/",
    zookeeper_lock_key="trips",
)


def test_the_place_is_base_path_and_key_and_servers_without_a_port_get_it():
    place = place_of(MemoryStorage(), NAMED)
    assert place.path == "/hudi/trips"
    assert place.hosts == "a:2181,b:2182/root"
    assert place_of(MemoryStorage(), replace(NAMED, zookeeper_port=99)).hosts == "a:99,b:2182/root"


@pytest.mark.parametrize("uri", ["s3://my-bucket/my_lake/my_table", "s3a://my-bucket/my_lake/my_table/"])
def test_the_implicit_place_is_the_one_of_apache_hudi(uri):
    options = replace(CONCURRENCY, lock_provider=LockProvider.ZOOKEEPER_IMPLICIT, zookeeper_url="a")
    assert place_of(MemoryStorage(uri), options).path == "/tmp/C0E15D0CE1AD11CC/lock_key"


def test_what_is_missing_is_named():
    with pytest.raises(OptionError, match=r"zookeeper\.url, .*zookeeper\.lock_key are missing"):
        place_of(MemoryStorage(), replace(NAMED, zookeeper_url=None, zookeeper_lock_key=None))


def test_without_kazoo_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "kazoo"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kazoo", None)
    with pytest.raises(OptionError, match="extra `zookeeper`"):
        coordinate(MemoryStorage(), NAMED).lock.acquire(0)
