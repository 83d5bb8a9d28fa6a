"""What is special about a lock in DynamoDB: its lease, other clients, and answers that get lost."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import hoodie
from hoodie.aws.client import ServiceError
from hoodie.errors import LockError, OptionError
from hoodie.lock.dynamodb import DynamoLock
from hoodie.lock.holder import Holder, this_process
from hoodie.lock.providers import coordinate
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.parse import parse_write_options
from hoodie.options.values import LockProvider
from hoodie.storage.memory import MemoryStorage
from tests.clocks import Times
from tests.fake_dynamodb import FakeDynamo
from tests.lock.interrupted import held_twice, is_interrupted_everywhere
from tests.servers.s3 import shared_moto

PREFIX = "hoodie.write.lock.dynamodb"
GIVEN = {
    "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
    f"{PREFIX}.table": "locks",
    f"{PREFIX}.partition_key": "trips",
}


def options_of(given: dict[str, str]) -> ConcurrencyOptions:
    return parse_write_options(given, defaults={}).write.concurrency


class Shop:
    """A table in DynamoDB, and locks at one key of it."""

    def __init__(self) -> None:
        self.dynamo = FakeDynamo()
        self.dynamo.tables["locks"] = {}
        self.times = Times()
        self.options = replace(options_of(GIVEN), dynamodb_key=uuid.uuid4().hex)

    def lock(self, **options: Any) -> DynamoLock:
        return DynamoLock(
            MemoryStorage(),
            replace(self.options, **options),
            self.times.waiting,
            self.times.clocks,
            make_client=lambda *_: self.dynamo,
        )

    @property
    def item(self) -> dict[str, str] | None:
        found = self.dynamo.tables["locks"].get(str(self.options.dynamodb_key))
        return None if found is None else {name: value["S"] for name, value in found.items()}

    def put(self, **item: str) -> None:
        """As the Java client writes it."""
        key = str(self.options.dynamodb_key)
        base = {"key": key, "ownerName": "ip-10-0-0-1uuid", "leaseDuration": "60000", "recordVersionNumber": "1"}
        self.dynamo.tables["locks"][key] = {name: {"S": text} for name, text in (base | item).items()}


@pytest.fixture
def shop() -> Shop:
    return Shop()


def is_granted(lock: DynamoLock, timeout_s: float = 0) -> bool:
    """From another thread, as a thread is refused what it has."""

    def take() -> bool:
        try:
            lock.acquire(timeout_s)
        except LockError:
            return False
        return True

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(take).result()


def test_the_item_is_that_of_apache_hudis_client(shop: Shop) -> None:
    lock = shop.lock()
    lock.acquire(0)
    item = shop.item
    assert item is not None
    assert item.keys() == {"key", "ownerName", "leaseDuration", "recordVersionNumber", "holder"}
    assert item["leaseDuration"] == "60000"
    lock.release()
    assert shop.item is None


def test_a_lock_of_apache_hudi_is_taken_when_its_version_has_stayed_for_its_lease(shop: Shop) -> None:
    shop.put(leaseDuration="20000")
    lock = shop.lock()
    assert not is_granted(lock)
    shop.times.pass_by(15)
    shop.put(leaseDuration="20000", recordVersionNumber="2")  # its heartbeat
    assert not is_granted(lock)
    shop.times.pass_by(19)
    with pytest.raises(LockError, match="another program, ip-10-0-0-1uuid, with a lease of 20 s, holds"):
        lock.acquire(0)
    shop.times.pass_by(1)
    assert is_granted(lock)


def test_a_wait_as_long_as_the_lease_gets_the_lock_of_a_dead_writer(shop: Shop) -> None:
    shop.put()
    shop.times.pass_by(0)
    get_item = shop.dynamo.get_item

    def slow(**given: Any) -> dict[str, Any]:
        shop.times.pass_by(0.2)
        return get_item(**given)

    shop.dynamo.get_item = slow  # type: ignore[method-assign]
    shop.lock().acquire(60.0)


def test_a_lock_that_was_released_without_being_deleted_is_free(shop: Shop) -> None:
    shop.put(isReleased="1")
    assert is_granted(shop.lock())


@pytest.mark.parametrize("dead", [True, False])
def test_the_lock_of_a_dead_process_of_this_machine_is_free_at_once(shop: Shop, dead: bool) -> None:
    holder: Holder = this_process()._replace(started="1") if dead else this_process()
    shop.put(holder=json.dumps(holder.note()))
    assert is_granted(shop.lock()) is dead


def test_a_holder_that_was_paused_beyond_its_lease_has_lost_it_and_takes_it_from_nobody(shop: Shop) -> None:
    first, second = shop.lock(), shop.lock()
    first.acquire(0)
    assert not is_granted(second)
    shop.times.pass_by(61)
    assert first.is_known_lost()
    assert not first.is_held()
    assert is_granted(second)
    first.release()
    assert second.is_held()


@pytest.mark.parametrize("call", ["put_item", "delete_item"])
def test_a_lost_answer_keeps_nobody_waiting(shop: Shop, call: str) -> None:
    shop.dynamo.lost = {call: 1}
    for lock in (shop.lock(), shop.lock()):
        lock.acquire(1.0)
        assert lock.is_held()
        lock.release()


def test_a_put_without_an_answer_is_taken_back_when_nobody_waits_for_it(shop: Shop) -> None:
    shop.dynamo.lost = {"put_item": 1}
    with pytest.raises(LockError, match="cannot be asked"):
        shop.lock().acquire(0)
    assert shop.item is None


def test_it_is_renewed_by_versions_also_after_a_lost_answer(shop: Shop) -> None:
    lock = shop.lock()
    lock.acquire(0)
    (lease,) = [lock._grant]
    versions = {(shop.item or {})["recordVersionNumber"]}
    shop.dynamo.lost = {"update_item": 1}
    with pytest.raises(ServiceError):
        lease._renew((0.0, 0.0))  # type: ignore[union-attr]
    versions.add((shop.item or {})["recordVersionNumber"])
    lease._renew((0.0, 0.0))  # type: ignore[union-attr]
    versions.add((shop.item or {})["recordVersionNumber"])
    assert len(versions) == 3
    shop.put()  # stolen
    with pytest.raises(FileExistsError):
        lease._renew((0.0, 0.0))  # type: ignore[union-attr]
    lock.release()
    assert shop.item is not None


def test_the_table_is_made_and_waited_for(shop: Shop) -> None:
    del shop.dynamo.tables["locks"]
    shop.dynamo.states = ["CREATING", "CREATING", "ACTIVE"]
    with shop.lock(dynamodb_billing="PROVISIONED").held(0):
        assert shop.item is not None
    made = next(given for call, given in shop.dynamo.calls if call == "create_table")
    assert made["ProvisionedThroughput"] == {"ReadCapacityUnits": 20, "WriteCapacityUnits": 10}
    assert made["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    shop.dynamo.tables.clear()
    shop.dynamo.states = ["CREATING"]
    with pytest.raises(LockError, match="is not ready after 600 s"):
        shop.lock().acquire(0)


def test_what_is_no_lock_is_an_error_that_names_it(shop: Shop) -> None:
    shop.put(leaseDuration="soon")
    with pytest.raises(LockError, match="is no lock"):
        shop.lock().acquire(0)


def test_a_refusal_of_the_service_ends_the_wait(shop: Shop) -> None:
    def refuse(**_: Any) -> dict[str, Any]:
        raise ServiceError("AccessDeniedException", "not yours")

    shop.dynamo.get_item = refuse  # type: ignore[method-assign]
    before = shop.times.monotonic_s
    with pytest.raises(LockError, match="AccessDeniedException: not yours"):
        shop.lock().acquire(60)
    assert shop.times.monotonic_s == before


def test_an_interrupt_leaves_no_lock() -> None:
    def make() -> tuple[Any, Callable[[], bool]]:
        shop = Shop()
        return shop.lock(), lambda: shop.item is None

    is_interrupted_everywhere(make, held_twice, least=60)


# -- what it is told by options


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("dynamodb", LockProvider.DYNAMODB),
        ("DynamoDBBasedLockProvider", LockProvider.DYNAMODB),
        (
            "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider",
            LockProvider.DYNAMODB_IMPLICIT,
        ),
    ],
)
def test_apache_hudis_classes_are_known(name: str, provider: LockProvider) -> None:
    assert options_of({"hoodie.write.lock.provider": name}).lock_provider is provider


def test_a_missing_table_is_named() -> None:
    with pytest.raises(OptionError, match=rf"{PREFIX}\.table is missing"):
        coordinate(MemoryStorage(), options_of({"hoodie.write.lock.provider": "dynamodb"}))


@pytest.mark.parametrize("implicit", [True, False])
def test_the_key_may_be_left_out(shop: Shop, implicit: bool) -> None:
    provider = LockProvider.DYNAMODB_IMPLICIT if implicit else LockProvider.DYNAMODB
    storage = MemoryStorage("s3a://lake/trips/")
    options = replace(shop.options, lock_provider=provider, dynamodb_key=None)
    lock = DynamoLock(storage, options, make_client=lambda *_: shop.dynamo)
    if not implicit:
        with pytest.raises(OptionError, match=rf"has no key: set {PREFIX}\.partition_key"):
            lock.acquire(0)
        storage.create_new(".hoodie/hoodie.properties", b"hoodie.table.name=trips\n")
    with lock.held(0):
        assert list(shop.dynamo.tables["locks"]) == ["52B6F91537859B95" if implicit else "trips"]


def test_secrets_are_in_no_text_of_the_options() -> None:
    secrets = {f"hoodie.aws.{name}": "s3cr3t" for name in ("secret.key", "session.token", "role.external.id")}
    assert "s3cr3t" not in repr(options_of({**GIVEN, **secrets}))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(OptionError, match="extra `aws`"):
        coordinate(MemoryStorage(), options_of(GIVEN)).lock.acquire(0)


def test_a_job_that_names_it_writes_with_it() -> None:
    name = f"t{uuid.uuid4().hex}"
    job = {
        **{key: text for key, text in GIVEN.items() if not key.endswith("partition_key")},
        f"{PREFIX}.endpoint_url": shared_moto().endpoint,
        "hoodie.aws.access.key": "tester",
        "hoodie.aws.secret.key": "a secret nobody sees",
    }
    table = hoodie.create_table(f"memory://{name}", {"id": "int64"}, record_key="id", options=job)
    table.upsert({"id": [1]})
    assert table.scan().count() == 1
