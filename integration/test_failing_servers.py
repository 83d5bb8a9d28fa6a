"""A real S3 server and HDFS behind a proxy that is late, fails, loses answers and lists in short pages.

Through HTTP: 500, 503, connections that are reset, answers that are lost or never come after the effect. To the NameNode: connections
that end in the middle. A sample; HOODIE_SOAK=1 runs more.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

import hoodie
from hoodie.errors import HoodieError
from hoodie.table import HoodieTable
from integration.on_servers import run, where
from tests.effort import SOAK
from tests.object_tables import TYPES, rows, seen
from tests.servers.hdfs import COMES_TOO_SOON, hdfs
from tests.servers.http_proxy import PASSING, Failing, HttpProxy
from tests.servers.proxy import Proxy
from tests.servers.s3 import S3Server

SEEDS = range(12 if SOAK else 1)
LATE_S = 0.003
PAGE = 3
TRIES = 40


class Failings(NamedTuple):
    """The ways to one folder: as it is, and through what fails."""

    true: tuple[str, dict[str, str]]
    failing: tuple[str, dict[str, str]]
    failed: Callable[[], int]
    """How often it did."""


@pytest.fixture(params=["s3", "hdfs"])
def ways(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[int], Failings]]:
    """From a seed the ways to a new folder."""
    with ExitStack() as stack:
        if request.param == "s3":
            yield lambda seed: _to_s3(request.getfixturevalue("s3_server"), seed, stack)
        else:
            server = stack.enter_context(hdfs(tmp_path, settings={"dfs.ls.limit": str(PAGE)}))
            yield lambda seed: _to_hdfs(server.uri, seed, stack)


def _to_s3(server: S3Server, seed: int, stack: ExitStack) -> Failings:
    proxy = stack.enter_context(HttpProxy(server.endpoint))
    proxy.delay_s, proxy.page_keys = LATE_S, PAGE
    proxy.chance, proxy.passing = Random(seed), (*PASSING * 4, Failing.SILENT)
    uri, failing = server.new_uri(), S3Server(proxy.endpoint)
    return Failings((uri, dict(server.options)), (uri, {**failing.options, "timeout": "1s"}), lambda: proxy.failed)


def _to_hdfs(uri: str, seed: int, stack: ExitStack) -> Failings:
    proxy = stack.enter_context(Proxy(int(uri.rpartition(":")[2])))
    proxy.delay_s, proxy.chance, proxy.one_in = LATE_S, Random(seed), 100 if SOAK else 400
    proxy.later = COMES_TOO_SOON
    folder = f"tables/{secrets.token_hex(8)}/t"
    return Failings((f"{uri}/{folder}", {}), (f"hdfs://{proxy.address}/{folder}", {}), lambda: proxy.lost)


def _savepoint(table: HoodieTable) -> None:
    """One savepoint; where the answer to an earlier try was lost, that try may have made it."""
    if not table.savepoints():
        table.savepoint(comment="now")


CREATE = {"record_key": "id", "partition_by": "part", "ordering": "ts"}
OPERATIONS: dict[str, Callable[[HoodieTable], object]] = {
    "upsert": lambda table: table.upsert(rows(0, 40, 1)),
    "upsert of some": lambda table: table.upsert(rows(20, 60, 2)),
    "delete": lambda table: table.delete(rows(50, 55, 0).select(["id", "part"])),
    "cluster": lambda table: table.cluster(sort_by=["v"]),
    "upsert again": lambda table: table.upsert(rows(0, 3, 3)),
    "compact": lambda table: table.compact() if table.config.table_type == TYPES[1] else None,
    "savepoint": _savepoint,
    "insert_overwrite": lambda table: table.insert_overwrite(rows(300, 303, 4)),
    "restore": lambda table: table.restore(table.savepoints()[-1].instant),
    "clean": lambda table: table.clean(retain_commits=1),
    "archive": lambda table: table.archive(min_commits=2),
    "last upsert": lambda table: table.upsert(rows(0, 6, 5)),
}
"""Each may be done again where it is not known whether it was done."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("table_type", TYPES if SOAK else TYPES[1:])
def test_an_operation_is_done_or_says_that_it_is_not_and_the_table_is_whole(
    ways: Callable[[int], Failings], tmp_path: Path, table_type: str, seed: int, request: pytest.FixtureRequest
) -> None:
    way = ways(seed)
    twin = hoodie.create_table(tmp_path / "twin", rows(0, 1, 0).schema, **CREATE, table_type=table_type)
    uri, options = way.true
    hoodie.create_table(uri, rows(0, 1, 0).schema, **CREATE, table_type=table_type, storage_options=options)
    raised = []
    for name, act in OPERATIONS.items():
        before = seen(twin)
        act(twin)
        after = seen(twin)
        for _ in range(TRIES):
            try:
                act(hoodie.open_table(way.failing[0], storage_options=way.failing[1]))
            except (OSError, HoodieError) as error:
                raised.append(f"{name}: {error}")
                assert seen(hoodie.open_table(uri, storage_options=options)) in (before, after), raised[-1]
            else:
                break
        else:
            pytest.fail(f"{name} never succeeded: {raised}")
        assert seen(hoodie.open_table(uri, storage_options=options)) == after, name
    there = hoodie.open_table(uri, storage_options=options)
    there.upsert(rows(0, 1, 9))
    assert not there.timeline.pending()
    assert way.failed() > 3
    shown = f"{len(OPERATIONS)} operations, {way.failed()} failures, of which {len(raised)} reached the caller"
    request.node.user_properties.append(("on servers", shown))


@pytest.mark.skipif(not SOAK, reason="HOODIE_SOAK=1 runs it")
def test_the_suite_of_operations_passes_though_every_tenth_request_fails(request: pytest.FixtureRequest) -> None:
    environment = where("s3", request)
    with HttpProxy(environment["HOODIE_TEST_S3"]) as proxy:
        proxy.delay_s, proxy.page_keys, proxy.chance = LATE_S, PAGE, Random(1)
        ran = run(request, {**environment, "HOODIE_TEST_S3": proxy.endpoint}, ["tests/write/test_operations.py"])
    assert ran.tests > 20
