import subprocess
import sys

import pytest

from benchmarks.meter import Meter
from benchmarks.run import main


def test_a_small_run_measures_every_embedded_case_and_all_systems_agree(tmp_path):
    out = tmp_path / "RESULTS.md"
    assert (
        main(["--rows", "5000", "--batch", "500", "--no-spark", "--out", str(out), "--folder", str(tmp_path / "work")])
        == 0
    )
    rows = [line.split(" | ")[0].strip("| ") for line in out.read_text().splitlines() if line.startswith("| ")]
    assert rows == [
        "case",
        "bulk load",
        "upsert, floor: write the batch",
        "upsert, floor: read, merge, write",
        "aggregate, snapshot",
        "full scan, snapshot",
        "aggregate, read-optimized",
        "full scan, read-optimized",
        "incremental, last commit",
        "compaction",
    ]
    assert not any((tmp_path / "work").iterdir())


def test_the_meter_counts_a_child_that_has_ended():
    with Meter() as meter:
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    assert meter.cost.cpu_s == pytest.approx(0.2, abs=0.15)
    assert meter.cost.wall_s >= 0.2
    assert meter.cost.peak_bytes > 10_000_000
