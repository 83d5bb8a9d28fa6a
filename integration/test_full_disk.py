"""A disk that is really full: one clear error, nothing lost, and the next write after there is room goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import StorageFullError

SMALL, LARGE = "8m", "64m"
ROWS, KEYS = 2000, 5000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory of its own. Only root may mount one; elsewhere the test is left out."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def batch(turn: int) -> pa.Table:
    first = turn * 1000 % KEYS
    texts = [np.random.default_rng(turn * ROWS + n).bytes(40).hex() for n in range(ROWS)]
    return pa.table({"id": np.arange(first, first + ROWS), "ts": np.full(ROWS, turn), "text": texts})


def stored(path: Path) -> dict[int, int]:
    rows = hoodie.open_table(path).scan(columns=["id", "ts"]).to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_acknowledged_rows_stay_and_no_others_come(disk: Path, kind: str) -> None:
    path = disk / "t"
    table = hoodie.create_table(
        path,
        record_key="id",
        ordering="ts",
        table_type=kind,
        options={"hoodie.clean.automatic": False},  # with cleaning, old slices go and the disk is never full
    )
    acknowledged: dict[int, int] = {}
    refused: list[str] = []
    for turn in range(1, 200):
        rows = batch(turn)
        try:
            table.upsert(rows)
        except StorageFullError as error:
            refused.append(str(error))
        else:
            acknowledged |= dict.fromkeys(rows["id"].to_pylist(), turn)
        assert stored(path) == acknowledged
        if len(refused) == 3:
            break
    assert len(refused) == 3
    assert all("make room" in message and str(path) in message for message in refused)
    assert acknowledged
    subprocess.run(["mount", "-o", f"remount,size={LARGE}", str(disk)], check=True)
    rows = batch(1000)
    table.upsert(rows)
    assert stored(path) == acknowledged | dict.fromkeys(rows["id"].to_pylist(), 1000)
    assert not table.timeline.pending()
