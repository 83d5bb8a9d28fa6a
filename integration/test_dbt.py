"""The example's dbt project on Spark: its models, its snapshots and its tests, and again over orders that have changed."""

import shutil
import subprocess
from pathlib import Path

import hoodie
from integration.conftest import PYTHON
from integration.hudi_client import ROOT
from tests.effort import HUNG_S

FIRST = ("2,bob,20.0,2026-01-01,2026-01-01 11:00:00", "3,cid,5.25,2026-01-02,2026-01-02 09:00:00")
LATER = ("2,bob,25.0,2026-01-03,2026-01-03 11:00:00", "4,ann,1.0,2026-01-03,2026-01-03 12:00:00")


def test_a_project_runs_as_it_is_and_again_when_its_sources_and_its_columns_have_changed(tmp_path: Path) -> None:
    project = shutil.copytree(ROOT / "examples" / "dbt", tmp_path / "dbt")

    def change(file: str, *texts: tuple[str, str]) -> None:
        text = (project / file).read_text()
        for old, new in texts:
            assert old in text
            text = text.replace(old, new)
        (project / file).write_text(text)

    def build() -> None:
        command = [ROOT / PYTHON, "-m", "dbt.cli.main", "build"]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=HUNG_S)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]

    def rows(table: str, *columns: str) -> list[tuple[object, ...]]:
        found = hoodie.open_table(project / "spark-warehouse" / "orders.db" / table).scan(columns).to_arrow()
        texts = [[value if value is None else str(value) for value in column.to_pylist()] for column in found.columns]
        return sorted(zip(*texts, strict=True), key=str)

    build()
    # An order is changed, one is new, one is gone from the source; a model gets a column.
    change("seeds/raw_orders.csv", *zip(FIRST, LATER, strict=True))
    change("models/orders.sql", ("updated_at\nfrom", "updated_at, upper(customer) as shouted\nfrom"))
    build()

    orders = [("1", "10.50", None), ("2", "25.00", "BOB"), ("3", "5.25", None), ("4", "1.00", "ANN")]
    assert rows("orders", "id", "amount", "shouted") == orders
    by_day = [("2026-01-01", "ann", "10.50"), ("2026-01-01", "bob", "20.00"), ("2026-01-02", "cid", "5.25")]
    by_day += [("2026-01-03", "ann", "1.00"), ("2026-01-03", "bob", "25.00")]
    assert rows("sales_by_day", "day", "customer", "total") == by_day
    assert rows("runs", "orders") == [("3",), ("4",)]
    assert rows("customers", "customer", "total") == [("ann", "11.50"), ("bob", "25.00"), ("cid", "5.25")]
    history = [(row[0], row[1], row[2] is None) for row in rows("orders_history", "id", "amount", "dbt_valid_to")]
    assert history == [
        ("1", "10.5", True),
        ("2", "20.0", False),
        ("2", "25.0", True),
        ("3", "5.25", True),
        ("4", "1.0", True),
    ]
    checked = [(row[0], row[1], row[2] is None) for row in rows("amounts_history", "id", "amount", "dbt_valid_to")]
    assert checked == [*history[:3], ("3", "5.25", False), history[4]]
