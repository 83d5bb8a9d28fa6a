"""What dead processes left outside of the timeline goes when the next write cleans up after them."""

import os
import time

import pyarrow as pa

import hoodie
from hoodie.storage.paths import SCRATCH_FOLDER

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
