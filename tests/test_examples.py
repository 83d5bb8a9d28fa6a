"""The examples for Airflow and Dagster do their work: stand-ins of both run the tasks at once."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import hoodie

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "1.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    monkeypatch.setenv("LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("LAKE", str(tmp_path / "lake"))
    return tmp_path / "lake" / "trips"


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    made = ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)


def as_it_is(**_: object) -> Callable[[Any], Any]:
    return lambda function: function


def test_airflow(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "airflow")
    stand_in(monkeypatch, "airflow.sdk", dag=as_it_is, task=as_it_is)
    for _ in range(2):  # the module calls its DAG
        runpy.run_path(str(EXAMPLES / "airflow_dag.py"))
    table = hoodie.open_table(lake)
    assert (table.scan().count(), len(table.timeline.commits)) == (2, 1)


def test_dagster(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = ("AssetCheckResult", "Definitions", "MaterializeResult", "ScheduleDefinition", "define_asset_job")
    stand_in(
        monkeypatch,
        "dagster",
        **dict.fromkeys(values, lambda *_, **given: SimpleNamespace(**given)),
        AssetSelection=SimpleNamespace(assets=lambda *_: None),
        asset=lambda function: function,
        asset_check=as_it_is,
    )
    found = runpy.run_path(str(EXAMPLES / "dagster_assets.py"))
    assert [found["trips"]().metadata["rows"] for _ in range(2)] == [2, 0]
    assert found["is_healthy"]().passed
    assert len(hoodie.open_table(lake).timeline.commits) == 1
