"""Tables that statements of Spark SQL and the builder have written: Apache Hudi and hudi-rs read them as we do, in all views."""

import subprocess
import sys
from pathlib import Path

import pytest

import hoodie
from integration.hudi_client import HudiPeer
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.effort import HUNG_S, soak_but
from tests.rows import Row, sorted_rows

TABLES = soak_but(["cow-9", "mor-6"], ["cow-6", "cow-9", "mor-6", "mor-9"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("statements")
    subprocess.run([sys.executable, "-m", "integration.sql_job", str(path), *TABLES], check=True, timeout=HUNG_S)
    return path


@pytest.mark.parametrize("table", TABLES)
def test_each_reader_has_the_same_rows_in_all_views(hudi: HudiPeer, folder: Path, table: str) -> None:
    rows = {row["id"]: row["v"] for row in ours(folder / table, View())}
    assert sorted(rows) == [1, 2, 4, 5, 8, 10, 96, 97, 99, 100]
    assert (rows[5], rows[8], rows[10]) == ("v5w", "b", "v10?")
    assert differences(folder / table, ours, by_hudi(hudi)) == []
    assert differences(folder / table, with_newest_columns, by_rust) == []


def with_newest_columns(path: str | Path, view: View) -> list[Row]:
    """As hudi-rs has a query as of a commit: columns that came later are null, where we have those of then."""
    newest = dict.fromkeys(hoodie.open_table(path).schema.names) if view.as_of else {}
    return sorted_rows({**newest, **row} for row in ours(path, view))
