"""Mergers of the user's own in Spark: the function reaches the executors, whoever defined it where."""

import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.options import mergers
from tests.effort import long_but
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    monkeypatch.setattr(mergers, "_registered", {})


def sums(older, newer):
    at = newer.schema.get_field_index("val")
    return newer.set_column(at, newer.schema.field(at), pc.add(older["val"], newer["val"]))


@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
@pytest.mark.parametrize("by_value", [False, True])
def test_a_merger_runs_on_the_executors(enabled, tmp_path, table_type, by_value):
    factor = 1

    def own(older, newer):
        at = newer.schema.get_field_index("val")
        return newer.set_column(at, newer.schema.field(at), pc.add(older["val"], pc.multiply(newer["val"], factor)))

    hoodie.register_merger("sums", own if by_value else sums)
    options = {
        **options_of(),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.python.merger": "sums",
        "hoodie.python.driver.max.bytes": "0",
    }
    path = str(tmp_path / "t")
    for val in (1, 10, 100):
        frame = enabled.createDataFrame(
            [("a", "p", val, val), ("b", "q", val, -val)], "id string, part string, val long, ts long"
        )
        frame.write.format("hoodie").options(**options).mode("append").save(path)
    found = {row["id"]: row["val"] for row in enabled.read.format("hoodie").load(path).collect()}
    assert found == {"a": 111, "b": 111}
    assert not list(tmp_path.rglob("*.log.*"))
