"""What a lock in the Hive metastore needs to be told; how it locks is tested beside a real metastore in `integration`."""

import sys
from dataclasses import replace

import pytest

from hoodie.errors import OptionError
from hoodie.lock import hive
from hoodie.lock.providers import coordinate
from hoodie.metastore.interface import compiled_interface
from hoodie.options.parse import parse_write_options
from hoodie.options.values import LockProvider
from hoodie.storage.memory import MemoryStorage

PREFIX = "hoodie.write.lock.hivemetastore"
GIVEN = {
    "hoodie.write.lock.provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
    f"{PREFIX}.uris": "thrift://one:9084,two",
    f"{PREFIX}.database": "lake",
    f"{PREFIX}.table": "trips",
}


def options_of(given):
    return parse_write_options(given, defaults={}).write.concurrency


def test_the_options_of_apache_hudi_say_where_the_lock_is():
    options = options_of(GIVEN)
    assert options.lock_provider is LockProvider.HIVE_METASTORE
    place = hive.place_of(MemoryStorage(), options)
    assert place == ((("one", 9084), ("two", 9083)), "lake", "trips")
    assert str(place) == "lake.trips in the Hive metastore at one:9084,two:9083"


@pytest.mark.parametrize("name", ["uris", "database", "table"])
def test_a_missing_option_is_named(name):
    given = {key: value for key, value in GIVEN.items() if key != f"{PREFIX}.{name}"}
    with pytest.raises(OptionError, match=rf"{PREFIX}\.{name} is missing"):
        coordinate(MemoryStorage(), options_of(given))


@pytest.mark.parametrize("uris", ["thrift://", "http://one/x:1", ","])
def test_an_address_that_is_none_is_refused(uris):
    with pytest.raises(OptionError, match="names no server"):
        hive.place_of(MemoryStorage(), replace(options_of(GIVEN), hive_uris=uris))


def test_without_the_package_the_extra_is_named(monkeypatch):
    compiled_interface.cache_clear()
    monkeypatch.setitem(sys.modules, "thriftpy2", None)
    with pytest.raises(OptionError, match="extra `hive`"):
        coordinate(MemoryStorage(), options_of(GIVEN)).lock.acquire(0)
