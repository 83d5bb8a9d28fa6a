"""The table lock as one item of a table in DynamoDB: attributes and conditions are those of the client that Apache Hudi uses.

The holder renews the item's `recordVersionNumber`. Clocks of two machines are never compared: who waits takes the lock when it has
itself seen the same version for as long as the item's `leaseDuration` says. Each acquisition has an owner's name of its own, so a
request that is sent again after a lost answer does what it was to do once. Attributes of ours say which process holds the lock.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from hoodie.aws.client import CONDITION_FAILED, Address, Client, ServiceError
from hoodie.errors import LockError, OptionError
from hoodie.format.properties import parse_properties_file
from hoodie.lock.base import WAITING, Waiting
from hoodie.lock.grant import NOBODY, Grant, GrantedLock
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.lock.implicit import implicit_name
from hoodie.lock.lease import CLOCKS, Clocks, Lease, warn_not_released
from hoodie.model.names import PROPERTIES
from hoodie.options.aws import AwsOptions
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.values import LockProvider
from hoodie.storage.base import Storage

LONGEST_PAUSE_S = 0.5
"""Between two looks at the lock of another; each is a request."""
SHORTEST_LEASE_S = 3.0
GRACE_S = 5.0
"""A lease that ends so soon after the wait is waited for. Else writers that wait as long as a lease lasts, as they all do by the
same options, would never get the lock of a dead one."""
_PREFIX = "hoodie.write.lock.dynamodb"
_USUAL_REGION = "us-east-1"
_TABLE_PAUSE_S = 1.0
_KEY, _OWNER, _LEASE, _VERSION = "key", "ownerName", "leaseDuration", "recordVersionNumber"
_RELEASED, _HOLDER = "isReleased", "holder"
_NAMES = {"#key": _KEY, "#owner": _OWNER, "#lease": _LEASE, "#version": _VERSION, "#released": _RELEASED}


class Place(NamedTuple):
    """Which lock, and who grants it."""

    address: Address
    table: str
    key: str

    def __str__(self) -> str:
        return f"{self.key!r} in the table {self.table} of {self.address}"


class _Sighting(NamedTuple):
    """The item of another as it was first seen."""

    version: str
    monotonic_s: float
    lease_s: float


_sightings: dict[Place, _Sighting] = {}
"""Also between two acquisitions: what was waited for counts."""
_not_released: set[str] = set()
"""Owners of leases of this process that are over, though the item may still name them."""


class DynamoLock(GrantedLock):
    """`Lock` by conditional writes of one item, with a lease that a thread renews."""

    def __init__(
        self,
        storage: Storage,
        options: ConcurrencyOptions,
        waiting: Waiting = WAITING,
        clocks: Clocks = CLOCKS,
        *,
        make_client: Callable[[Address, AwsOptions, str], Client] = Client,
    ) -> None:
        super().__init__(storage.uri, waiting, longest_pause_s=LONGEST_PAUSE_S)
        if options.dynamodb_table is None:
            raise OptionError(
                f"the lock of table {storage.uri} is to be in DynamoDB, and {_PREFIX}.table is missing: "
                "give the same values to every writer of the table"
            )
        self._storage, self._options, self._clocks = storage, options, clocks
        region = options.dynamodb_region or os.environ.get("AWS_REGION") or _USUAL_REGION
        self._address = Address("dynamodb", region, _with_scheme(options.dynamodb_endpoint))
        self._client = make_client(self._address, options.aws, f"the lock of table {storage.uri} is in DynamoDB, which")
        self._table = options.dynamodb_table
        self._place: Place | None = None

    def __repr__(self) -> str:
        return f"DynamoLock({self._uri!r}, {self._table!r})"

    def _new_grant(self) -> Grant:
        self._client.require()
        if self._place is None:
            self._place = Place(self._address, self._table, self._key())
        return _Item(self._uri, self._client, self._place, self._options, self._waiting, self._clocks)

    def _key(self) -> str:
        if self._options.lock_provider is LockProvider.DYNAMODB_IMPLICIT:
            return implicit_name(self._uri)
        if self._options.dynamodb_key is not None:
            return self._options.dynamodb_key
        try:
            properties = parse_properties_file(self._storage.read(PROPERTIES), path=PROPERTIES)
            return properties["hoodie.table.name"]
        except (FileNotFoundError, KeyError) as exc:
            raise OptionError(f"the lock of {self._uri} in DynamoDB has no key: set {_PREFIX}.partition_key") from exc

    def _acquired(self, timeout_s: float) -> Grant:
        try:
            return super()._acquired(timeout_s)
        except LockError:
            sighting = _sightings.get(self._place) if self._place is not None else None
            left_s = 0.0 if sighting is None else sighting.monotonic_s + sighting.lease_s - self._clocks.monotonic_s()
            if timeout_s == 0 or not 0 < left_s <= GRACE_S:
                raise
        return super()._acquired(left_s)


def _with_scheme(endpoint: str | None) -> str | None:
    return endpoint if endpoint is None or "://" in endpoint else f"https://{endpoint}"


class _LockItem(NamedTuple):
    """What the item says."""

    owner: str
    version: str
    lease_s: float
    released: bool
    holder: Holder | None


class _Item(Lease):
    """One acquisition by a put of the item."""

    def __init__(
        self,
        uri: str,
        client: Client,
        place: Place,
        options: ConcurrencyOptions,
        waiting: Waiting,
        clocks: Clocks,
    ) -> None:
        lease_s = max(options.lock_timeout_s, SHORTEST_LEASE_S)
        super().__init__(place, uri, lease_s=lease_s, renewal_s=lease_s / 3, clocks=clocks)
        self._client, self._place, self._options, self._waiting = client, place, options, waiting
        self._owner = f"{socket.gethostname()}{uuid.uuid4()}"
        self._holder = this_process()
        self._is_unanswered = False
        """Whether a put of ours got no answer, and may have come or may still come."""

    def attempt(self) -> bool:
        start = self._clocks.now()
        self.failure = None
        try:
            item = self._read()
            if item is not None and item.owner == self._owner:
                self._keep()  # an earlier answer was lost, and not its effect; the lease runs since that put
                return not self.is_over()
            condition = self._condition(item)
            if condition is None:
                return False
            self._start = start
            self._put(*condition)
        except ServiceError as exc:
            if exc.code == CONDITION_FAILED:
                return False
            self.failure = exc
            if exc.is_final:
                raise LockError(f"the lock of table {self._uri} cannot be had: {self._place}: {exc}") from exc
            return False
        self._keep()
        return True

    def _condition(self, item: _LockItem | None) -> tuple[str, Mapping[str, str]] | None:
        """The condition on which the item may be put; None while somebody holds the lock, or may hold it."""
        if item is None:
            return "attribute_not_exists(#key)", {}
        if item.released:
            return "#version = :version AND #released = :one", {":version": item.version, ":one": "1"}
        now_s = self._clocks.monotonic_s()
        sighting = _sightings.get(self._place)
        if sighting is None or sighting.version != item.version:
            sighting = _sightings[self._place] = _Sighting(item.version, now_s, item.lease_s)
        is_over = now_s - sighting.monotonic_s >= item.lease_s or item.owner in _not_released
        if is_over or (item.holder is not None and item.holder.is_dead()):
            return "#version = :version", {":version": item.version}
        return None

    def _put(self, condition: str, values: Mapping[str, str]) -> None:
        self.may_be_held = True
        try:
            self._ask(
                "put_item",
                condition,
                {key: {"S": text} for key, text in values.items()},
                Item={
                    _KEY: {"S": self._place.key},
                    _OWNER: {"S": self._owner},
                    _HOLDER: {"S": json.dumps(self._holder.note())},
                    **self._next_version(_LEASE, _VERSION),
                },
            )
        except ServiceError as exc:
            if exc.code != CONDITION_FAILED:
                self._is_unanswered = True
            elif not self._is_unanswered:
                self.may_be_held = False
            raise

    def _next_version(self, lease: str, version: str) -> dict[str, Any]:
        return {lease: {"S": str(int(self._lease_s * 1000))}, version: {"S": str(uuid.uuid4())}}

    def _ask(self, call: str, condition: str, values: Mapping[str, Any], **more: Any) -> None:
        used = f"{condition} {more.get('UpdateExpression', '')}"
        self._client.ask(
            call,
            TableName=self._place.table,
            ConditionExpression=condition,
            ExpressionAttributeNames={name: text for name, text in _NAMES.items() if name in used},
            ExpressionAttributeValues=dict(values) or None,
            **more,
        )

    def _read(self) -> _LockItem | None:
        """What the table has; the table is made where it is missing."""
        key = {_KEY: {"S": self._place.key}}
        try:
            answer = self._client.ask("get_item", TableName=self._place.table, Key=key, ConsistentRead=True)
        except ServiceError as exc:
            if exc.code != "ResourceNotFoundException":
                raise
            self._make_table()
            return None
        item = {name: value.get("S") for name, value in answer.get("Item", {}).items()}
        if not item:
            return None
        try:
            note = json.loads(item.get(_HOLDER) or "{}")
            lease_s = int(item[_LEASE] or "") / 1000
            return _LockItem(
                item[_OWNER] or "", item[_VERSION] or "", lease_s, _RELEASED in item, read_holder_note(note)
            )
        except (KeyError, ValueError, AttributeError) as exc:
            raise LockError(
                f"the item {self._place} is no lock ({exc!r}): delete it when no writer is at work on the table"
            ) from exc

    def _make_table(self) -> None:
        options, table = self._options, self._place.table
        units = {"ReadCapacityUnits": options.dynamodb_reads, "WriteCapacityUnits": options.dynamodb_writes}
        with suppress(ServiceError):  # also where another writer was faster; whether it is there is asked below
            self._client.ask(
                "create_table",
                TableName=table,
                KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
                BillingMode=options.dynamodb_billing,
                ProvisionedThroughput=units if options.dynamodb_billing == "PROVISIONED" else None,
            )
        until_s = self._waiting.monotonic() + options.dynamodb_creation_s
        while self._client.ask("describe_table", TableName=table)["Table"]["TableStatus"] not in ("ACTIVE", "UPDATING"):
            if self._waiting.monotonic() >= until_s:
                raise LockError(
                    f"the table {table} of {self._place.address} for locks is not ready after {options.dynamodb_creation_s:g} s"
                )
            self._waiting.sleep(_TABLE_PAUSE_S)

    def stands(self) -> bool:
        if self.is_over():
            return False
        try:
            item = self._read()
        except ServiceError:
            return False
        return item is not None and item.owner == self._owner and not item.released and not self.is_over()

    def _renew(self, start: tuple[float, float]) -> None:
        try:
            self._ask(
                "update_item",
                "#owner = :owner",
                {":owner": {"S": self._owner}, **self._next_version(":lease", ":version")},
                Key={_KEY: {"S": self._place.key}},
                UpdateExpression="SET #lease = :lease, #version = :version",
            )
        except ServiceError as exc:
            if exc.code == CONDITION_FAILED:
                raise FileExistsError(str(self._place)) from exc
            raise

    def _give_back(self) -> None:
        try:
            self._ask(
                "delete_item",
                "#owner = :owner",
                {":owner": {"S": self._owner}},
                Key={_KEY: {"S": self._place.key}},
            )
        except ServiceError as exc:
            if exc.code != CONDITION_FAILED:
                _not_released.add(self._owner)
                warn_not_released(self._uri, exc)

    def refusal(self) -> str:
        if self.failure is not None:
            return f"{self._place} cannot be asked ({self.failure}); nothing was written: see that it is there, and try again"
        return super().refusal()

    def holder(self) -> str:
        return f"{self._who()} holds {self._place}"

    def _who(self) -> str:
        with suppress(ServiceError, LockError):
            item = self._read()
            if item is not None and not item.released:
                if item.holder is not None:
                    return str(item.holder)
                return f"another program, {item.owner}, with a lease of {item.lease_s:g} s,"
        return NOBODY
