"""Tables in a bucket whose server fails: what is done succeeds or raises one error, and the table is whole in any case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

import hoodie
from hoodie.errors import AccessDeniedError, CommitOutcomeUnknownError, HoodieError, StorageFullError
from hoodie.table import HoodieTable
from tests.effort import SOAK, soak_but
from tests.object_tables import TYPES, life, rows, seen
from tests.servers.http_proxy import WRITES, Failing, HttpProxy
from tests.servers.s3 import S3Server, shared_moto

CREATE = {"record_key": "id", "partition_by": "part", "ordering": "ts"}
OPERATIONS: dict[str, Callable[[HoodieTable], object]] = {
    "upsert": lambda table: table.upsert(rows(3, 9, 5)),
    "delete": lambda table: table.delete(rows(0, 2, 0).select(["id", "part"])),
    "insert_overwrite": lambda table: table.insert_overwrite(rows(300, 303, 5)),
    "compact": lambda table: table.compact(),
    "scan": seen,
}
LASTING = {
    Failing.DENIED: (WRITES, AccessDeniedError, "AccessDenied: let these credentials read and write there"),
    Failing.EXPIRED: (None, AccessDeniedError, "the credentials have expired .ExpiredToken.: give new ones"),
    Failing.SKEWED: (None, AccessDeniedError, "this machine's clock differs too much from the store's"),
    Failing.FULL: (WRITES, StorageFullError, "the store has no room left .*make room or raise the quota"),
}
"""What stays as it is until somebody does something about it: the requests that meet it, and what is said of it."""


@pytest.fixture
def proxy() -> Iterator[HttpProxy]:
    with HttpProxy(shared_moto().endpoint) as proxy:
        yield proxy


@pytest.fixture
def server(proxy: HttpProxy) -> S3Server:
    return S3Server(proxy.endpoint)


def new_table(server: S3Server, table_type: str = "MERGE_ON_READ") -> HoodieTable:
    table = hoodie.create_table(
        server.new_uri(), rows(0, 1, 0).schema, **CREATE, table_type=table_type, storage_options=server.options
    )
    table.upsert(rows(0, 6, 1))
    table.upsert(rows(0, 6, 2))
    return table


@pytest.mark.long
@pytest.mark.parametrize("seed", soak_but(range(1), range(8)))
@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_lives_as_on_a_disk_while_every_tenth_request_fails(
    server: S3Server, proxy: HttpProxy, tmp_path: Path, table_type: str, seed: int
) -> None:
    how = {**CREATE, "table_type": table_type}
    here = hoodie.create_table(tmp_path / "t", rows(0, 1, 0).schema, **how)
    proxy.chance = Random(seed)
    there = hoodie.create_table(server.new_uri(), rows(0, 1, 0).schema, **how, storage_options=server.options)
    compact = table_type == "MERGE_ON_READ"
    for expected, found in zip(life(here, compact=compact), life(there, compact=compact), strict=True):
        assert found == expected


PARTS = 12 if SOAK else 3
"""Of the requests of an operation: from the begin of each of them the store refuses."""
CASES = [*((name, Failing.EXPIRED) for name in OPERATIONS), *(("upsert", failing) for failing in LASTING)]


@pytest.mark.long
@pytest.mark.parametrize("case", [*dict.fromkeys(CASES), ("compact", Failing.FULL)], ids=str)
def test_a_store_that_refuses_from_some_request_on_is_one_error_and_the_table_is_whole(
    server: S3Server, proxy: HttpProxy, case: tuple[str, Failing]
) -> None:
    name, failing = case
    kinds, error, said = LASTING[failing]
    act = OPERATIONS[name]
    table = new_table(server)
    proxy.counted()
    act(table)
    requests = sum(proxy.counted().values())
    done = seen(table)
    refused = 0
    for part in range(PARTS):
        table = new_table(server)
        before = seen(table)
        at = part * requests // PARTS
        proxy.fail_from(at, failing, kinds=kinds)
        raised: HoodieError | None = None
        try:
            act(table)
        except HoodieError as exc:
            raised = exc
        finally:
            proxy.heal()
        if raised is not None:
            refused += 1
            assert re.search(f"{said}|does not say why", str(raised)), (at, raised)
            assert table.uri in str(raised)
            assert "\n" not in str(raised)
        table = hoodie.open_table(table.uri, storage_options=server.options)
        found = seen(table)
        # What is decided is made visible by whoever writes next.
        later = [found, done] if isinstance(raised, CommitOutcomeUnknownError) else [found]
        if isinstance(raised, CommitOutcomeUnknownError):
            assert found in (before, done), at
        elif name in ("compact", "scan"):
            assert found == before, at
            assert raised is None or isinstance(raised, error)
        else:
            assert (found == before) == (raised is not None), (at, raised)
            assert raised is None or isinstance(raised, error)
        table.upsert(rows(500, 501, 9))
        assert [row for row in seen(table) if row["id"] != 500] in later, at
    assert refused or (name == "scan" and kinds is not None)
