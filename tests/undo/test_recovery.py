"""What dead processes left outside of the timeline goes when the next write cleans up after them."""

import os
import time

import pyarrow as pa

import hoodie
from hoodie.model.names import HEARTBEATS
from hoodie.services.rounds import Rounds
from hoodie.storage.paths import SCRATCH_FOLDER
from hoodie.undo.recovery import _remove_stray_heartbeats

HOUR_S = 3600


def test_unfinished_files_go_when_they_are_old(tmp_path):
    """A living process may be about to give a young one its name."""
    table = hoodie.create_table(str(tmp_path), {"key": "string", "n": "int64"}, record_key="key")
    table.upsert(pa.table({"key": ["a"], "n": [1]}))
    (tmp_path / ".hoodie/.hoodie_py/staging/20260101000000001").mkdir(parents=True)  # of a dead writer
    scratch = tmp_path / SCRATCH_FOLDER
    scratch.mkdir(parents=True, exist_ok=True)
    old, young = scratch / ".old.tmp", scratch / ".young.tmp"
    for path, age_s in ((old, 25 * HOUR_S), (young, HOUR_S / 2)):
        path.write_bytes(b"half of a f")
        os.utime(path, (time.time() - age_s,) * 2)
    table.upsert(pa.table({"key": ["b"], "n": [1]}))
    assert [path.name for path in scratch.iterdir()] == [".young.tmp"]


def test_old_heartbeats_go_whose_writers_are_over(tmp_path):
    """A beat that was sent before its writer was paused, and arrived when that had been rolled back."""
    table = hoodie.create_table(str(tmp_path), {"key": "string", "n": "int64"}, record_key="key")
    table.upsert(pa.table({"key": ["a"], "n": [1]}))
    beats = tmp_path / HEARTBEATS
    beats.mkdir(parents=True, exist_ok=True)
    (
        tmp_path / ".hoodie/20260101000000003.commit.requested"
    ).touch()  # of Apache Hudi, whose heartbeat is another file's age
    ages_s = {"20260101000000001": HOUR_S, "20260101000000002": 1, "20260101000000003": HOUR_S, "what": HOUR_S}
    for name, age_s in ages_s.items():
        (beats / name).touch()
        os.utime(beats / name, (time.time() - age_s,) * 2)
    _remove_stray_heartbeats(table._context)
    assert {path.name for path in beats.iterdir()} == ages_s.keys() - {"20260101000000001"}
    assert table.rollback() == ["20260101000000003"]
    assert {path.name for path in beats.iterdir()} == {"20260101000000002", "what"}


def test_a_round_of_services_takes_them_away(tmp_path):
    table = hoodie.create_table(str(tmp_path), {"key": "string", "n": "int64"}, record_key="key")
    table.upsert(pa.table({"key": ["a"], "n": [1]}))
    beat = tmp_path / HEARTBEATS / "20260101000000001"
    beat.parent.mkdir(parents=True, exist_ok=True)
    beat.touch()
    os.utime(beat, (time.time() - HOUR_S,) * 2)
    table.upsert(pa.table({"key": ["b"], "n": [1]}))  # a write does not look for them
    assert beat.exists()
    Rounds(None).run(*table._at_work())
    assert not beat.exists()
