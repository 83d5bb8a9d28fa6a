"""Random histories, and writers that are killed, on a real S3 server, also one that fails, and on HDFS: a sample.

HOODIE_SOAK=1 runs more, and Azurite.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from hoodie.storage.base import Storage
from hoodie.storage.faults import FaultStorage
from hoodie.storage.uri import open_storage
from integration.hudi_client import ROOT
from tests.crash.actions import ACTIONS, repair
from tests.effort import HUNG_S, SOAK
from tests.memory_tables import Input, batch, create, leftovers, opened, snapshot_of, stray_files
from tests.random_histories import Histories
from tests.servers.http_proxy import HttpProxy
from tests.servers.s3 import S3Server

KILLS = 12 if SOAK else 2


@pytest.fixture
def new_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Gives addresses of folders that nobody has; the environment says how to reach them."""
    name = request.param
    server = request.getfixturevalue(f"{name.removeprefix('failing ')}_server")
    if name == "hdfs":
        yield lambda: f"{server.uri}/suites/{secrets.token_hex(8)}/t"
        return
    with ExitStack() as stack:
        if name.startswith("failing"):
            proxy = stack.enter_context(HttpProxy(server.endpoint))
            proxy.delay_s, proxy.page_keys, proxy.chance = 0.003, 3, Random(1)
            server = S3Server(proxy.endpoint)
        for option, value in server.options.items():
            monkeypatch.setenv(option.upper(), value)
        yield lambda: str(server.new_uri())


PLACES = ["s3", "hdfs", *(["azure"] if SOAK else [])]


@pytest.mark.parametrize("new_place", [*PLACES, "failing s3"], indirect=True)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_any_history_reads_as_the_model_says(new_place: Callable[[], str], kind: str) -> None:
    class OnAServer(Histories):
        table_type = kind

        # A writer dies there with its process: the test below.
        upsert_dies = insert_overwrite_dies = delete_dies = compaction_dies = archive_dies = None

        def new_table(self) -> tuple[Storage, None]:
            storage = open_storage(new_place())
            create(storage, table_type=kind, ordering=self.ordering)
            return storage, None

    examples, steps = (100, 20) if SOAK else (2, 8)
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not SOAK,
        phases=(Phase.generate,),
    )
    run_state_machine_as_test(OnAServer, settings=how)


@pytest.mark.parametrize("new_place", [*PLACES, *(["failing s3"] if SOAK else [])], indirect=True)
@pytest.mark.parametrize("name", ACTIONS if SOAK else ["merge-on-read upsert", "compaction"])
def test_a_killed_process_leaves_the_old_or_the_new_table(new_place: Callable[[], str], name: str) -> None:
    action = ACTIONS[name]

    def prepared() -> tuple[str, Storage]:
        place = new_place()
        storage = open_storage(place)
        action.prepare(storage, None)
        return place, storage

    _, storage = prepared()
    before = rows(storage)
    traced = FaultStorage(storage)
    action.run(opened(traced))
    calls, after = len(traced.trace), rows(storage)
    for number in range(KILLS):
        at = 1 + (number + 1) * (calls - 1) // (KILLS + 1)
        place, storage = prepared()
        ended = subprocess.run(
            [sys.executable, "-m", "tests.crash.killed", place, name, str(at)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            timeout=HUNG_S,
            check=False,
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        found = rows(storage)
        assert found in (before, after), at
        opened(storage).upsert(batch([Input("next", "a", 1, 1)]))
        decided = rows(storage)
        assert ("next", "a", 1, 1) in decided
        assert [row for row in decided if row[0] != "next"] in (found, after), at
        if opened(storage).pending_compactions():
            opened(storage).run_compaction()
        if opened(storage).pending_log_compactions():
            opened(storage).run_log_compaction()
        if opened(storage).pending_clusterings():
            opened(storage).run_clustering()
        if name == "repair":
            repair(opened(storage))
        assert not opened(storage).timeline.pending()
        assert leftovers(storage) == [], at
        assert stray_files(storage, opened(storage)) == [], at


def rows(storage: Storage) -> list[tuple[object, ...]]:
    return [row[:-1] for row in snapshot_of(opened(storage))]
