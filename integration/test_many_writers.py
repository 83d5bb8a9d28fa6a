"""Four writers, a compactor and a cleaner on one table while a nemesis kills, pauses and cuts them off; a checker judges it all.

A short run of each setup here, half an hour in all with HOODIE_SOAK=1. `python -m integration.many_writers` plays one run of any
length; the seed is that of the nemesis and of the kind of table, not of how the processes meet.
"""

from pathlib import Path

import pytest

from integration.many_writers.run import soak
from tests.effort import SOAK

SECONDS = {"zookeeper": 60, "zookeeper3": 15, "s3": 15, "hdfs": 15, "disk": 10}
SHARE = {"zookeeper": 8, "zookeeper3": 6, "s3": 8, "hdfs": 6, "disk": 2}
"""Minutes of the soak."""
MERGE_ON_READ = 4
"""A seed: without an ordering column."""


@pytest.mark.parametrize("setup", list(SECONDS))
def test_nothing_is_lost_doubled_or_half_there(setup: str, tmp_path: Path) -> None:
    report = soak(setup, SHARE[setup] * 60 if SOAK else SECONDS[setup], MERGE_ON_READ, tmp_path)
    assert not report.violations, f"notes in {tmp_path}\n{report}"
    assert report.figures["ok"] > 0, report
    assert sum(report.figures[act] for act in ("kills", "pauses", "cuts")) > 0, report


@pytest.mark.parametrize("setup", ["disk", *(["zookeeper", "s3", "hdfs"] if SOAK else [])])
def test_nor_while_files_are_cleaned_and_commits_archived(setup: str, tmp_path: Path) -> None:
    report = soak(setup, 4 * 60 if SOAK else 15, MERGE_ON_READ, tmp_path, services=True)
    assert not report.violations, f"notes in {tmp_path}\n{report}"
    assert report.figures["ok"] > 0, report


@pytest.mark.parametrize("setup", ["disk", *(["zookeeper", "s3", "hdfs"] if SOAK else [])])
def test_nor_beside_two_services_jobs_that_are_killed_again_and_again(setup: str, tmp_path: Path) -> None:
    report = soak(setup, 4 * 60 if SOAK else 15, MERGE_ON_READ, tmp_path, jobs=2)
    assert not report.violations, f"notes in {tmp_path}\n{report}"
    assert report.figures["ok"] > 0, report
