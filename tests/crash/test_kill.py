"""A real process killed by SIGKILL in the middle of its work: the operating system lets go of its locks, the next writer recovers."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage
from tests.crash.actions import ACTIONS, repair
from tests.effort import HUNG_S, SOAK
from tests.memory_tables import Input, batch, leftovers, opened, snapshot_of, stray_files

KILLS = 4 if SOAK else 3
"""Of each action, spread over its calls from the first to the last."""
ROOT = Path(__file__).resolve().parents[2]


def rows(folder):
    return [row[:-1] for row in snapshot_of(opened(LocalStorage(folder)))]


@pytest.mark.long
@pytest.mark.parametrize("name", ACTIONS)
def test_a_killed_process_leaves_the_old_or_the_new_table(name, tmp_path):
    action = ACTIONS[name]
    start, done = tmp_path / "start", tmp_path / "done"
    action.prepare(LocalStorage(start), None)
    shutil.copytree(start, done)
    traced = FaultStorage(LocalStorage(done))
    action.run(opened(traced))
    calls = len(traced.trace)
    before, after = rows(start), rows(done)
    for at in sorted({1 + number * (calls - 1) // (KILLS - 1) for number in range(KILLS)}):
        folder = tmp_path / f"killed{at}"
        shutil.copytree(start, folder)
        ended = subprocess.run(
            [sys.executable, "-m", "tests.crash.killed", str(folder), name, str(at)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            timeout=HUNG_S,
            check=False,
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        found = rows(folder)
        assert found in (before, after), at
        storage = LocalStorage(folder)
        opened(storage).upsert(batch([Input("next", "a", 1, 1)]))
        assert rows(folder) == sorted([*found, ("next", "a", 1, 1)], key=repr), at
        if opened(storage).pending_compactions():
            opened(storage).run_compaction()
        if opened(storage).pending_log_compactions():
            opened(storage).run_log_compaction()
        if opened(storage).pending_clusterings():
            opened(storage).run_clustering()
        assert not opened(storage).timeline.pending()
        assert leftovers(storage) == [], at
        if name == "repair":
            repair(opened(storage))
        assert stray_files(storage, opened(storage)) == [], at
