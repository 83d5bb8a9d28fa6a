"""Tables of which one byte was flipped or one file was cut: each query gives the right rows or says which file is damaged.

100 flips in a usual run, 1,600 with those marked `long`, 68,000 with HOODIE_SOAK=1.
A case that fails is written out as path, offset and byte.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.corruption.verdict import Verdict
from tests.effort import SOAK, long_but

ROOT = Path(__file__).resolve().parent.parent.parent
TABLES = ("v6_mor_logs", "v6_composite_keys_mor", "v6_replace", "v6_mor_parquet_logs")
FLIPS = (2_500, 7_250, 7_250) if SOAK else (100, 150, 150)
"""In parts, of which the first is the sample."""
CUTS = 40 if SOAK else 4
TIMEOUT_S = 3 * 3600
# Bytes that say which record is meant are few: this share of the flips may come to another record at most.
MOST_OTHER_RECORDS = 0.03


def run(table: str, kind: str, *, seed: int, count: int, folder: Path) -> Counter[str]:
    """How many damages came to which verdict; fails with the damages that must not be."""
    progress = folder / "case"
    command = [sys.executable, "-m", "tests.corruption.worker", table, kind, str(seed), str(count), str(progress)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        case = progress.read_text() if progress.exists() else "none"
        pytest.fail(f"the reader died (status {done.returncode}) at: {case}\n{done.stderr[-3000:]}", pytrace=False)
    found = json.loads(done.stdout)
    assert not found["faults"], "\n".join(found["faults"])
    return Counter(found["counts"])


@pytest.mark.parametrize("part", long_but([0], range(len(FLIPS))))
@pytest.mark.parametrize("table", long_but(TABLES[2:3], TABLES))
def test_a_flipped_byte_is_harmless_or_reported_with_the_file(table, part, tmp_path):
    seed = 1000 * TABLES.index(table) + part
    count = FLIPS[part]
    counts = run(table, "flips", seed=seed, count=count, folder=tmp_path)
    print(f"{table}, seed {seed}: {dict(counts)}")  # noqa: T201 - shown by -rP and in a failure
    assert counts.total() == count
    assert counts[Verdict.REPORTED] > count // 5
    assert counts[Verdict.OTHER_RECORD] <= MOST_OTHER_RECORDS * count


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES[:2])
def test_a_file_that_was_cut_is_harmless_or_reported(table, tmp_path):
    counts = run(table, "cuts", seed=7, count=CUTS, folder=tmp_path)
    assert counts[Verdict.REPORTED] > 50
    # Only hoodie.properties, cut between two lines, is another whole file.
    assert counts[Verdict.CHANGED] + counts[Verdict.OTHER_RECORD] <= 2
