"""Tables that statements of Spark SQL have written: Apache Hudi and hudi-rs read them as we do, in all views."""

import subprocess
import sys
from pathlib import Path

import pytest

import hoodie
from integration.hudi_client import HudiPeer
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.effort import soak_but

TABLES = soak_but(["cow-9", "mor-6"], ["cow-6", "cow-9", "mor-6", "mor-9"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("statements")
    subprocess.run([sys.executable, "-m", "integration.sql_job", str(path), *TABLES], check=True, timeout=300)
    return path


@pytest.mark.parametrize("table", TABLES)
def test_each_reader_has_the_same_rows_in_all_views(hudi: HudiPeer, folder: Path, table: str) -> None:
    rows = {row["id"]: row["v"] for row in ours(folder / table, View())}
    assert sorted(rows) == [1, 2, 4, 5, 8, 9, 10, 97, 99, 100]
    assert rows[5] == "v5w"
    assert differences(folder / table, ours, by_hudi(hudi)) == []
    # hudi-rs shows the newest columns in an as-of query, not those of that instant.
    last = max(commit.time for commit in hoodie.open_table(folder / table).timeline.commits)
    assert differences(folder / table, ours, by_rust, skip=lambda view: view.as_of not in (None, last)) == []
