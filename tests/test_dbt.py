"""What dbt imports when it starts."""

import importlib
import sys
from types import ModuleType

import pytest

import dbt_hoodie
import pyspark_hoodie

SparkSession = pytest.importorskip("pyspark.sql").SparkSession


@pytest.mark.parametrize("adapter", ["dbt.adapters.spark", "dbt.adapters.duckdb"])
def test_sessions_of_dbt_spark_know_the_format_and_no_others_change(monkeypatch, adapter):
    enabled = []
    monkeypatch.setattr(pyspark_hoodie, "enable", enabled.append)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: "a session")
    monkeypatch.setitem(sys.modules, adapter, ModuleType(adapter))
    importlib.reload(dbt_hoodie)
    importlib.reload(dbt_hoodie)
    assert SparkSession.builder.getOrCreate() == "a session"
    assert enabled == (["a session"] if adapter == "dbt.adapters.spark" else [])
