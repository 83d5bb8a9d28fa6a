"""Tables of Apache Hudi through Spark: every view is what Hudi itself read, with `enable` and without."""

import pytest

from tests.golden_tables import copy_golden
from tests.rows import rows_of

pytestmark = pytest.mark.spark

NAMES = ("v6_cow_simple", "v6_mor_logs", "v6_mor_compacted", "v6_mor_pending_compaction")


@pytest.fixture(scope="module", params=NAMES)
def table(request, tmp_path_factory):
    return copy_golden(request.param, tmp_path_factory.mktemp("golden"))


def rows(frame):
    return rows_of(frame.toArrow())


def test_snapshot_and_its_schema(table, load):
    frame = load(table.path)
    assert rows(frame) == table.expected["snapshot"]
    wanted = [(f["name"], f["type"], f["nullable"]) for f in table.expected["schema"]["fields"]]
    assert [(f.name, f.jsonValue()["type"], f.nullable) for f in frame.schema.fields] == wanted


def test_read_optimized(table, load):
    frame = load(table.path, **{"hoodie.datasource.query.type": "read_optimized"})
    assert rows(frame) == table.expected["read_optimized"]


def test_incremental_of_each_commit(table, load):
    entries = [entry for entry in table.expected["incremental"] if "error" not in entry]
    assert entries
    for entry in entries:
        frame = load(
            table.path,
            **{
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": entry["begin"],
                "hoodie.datasource.read.end.instanttime": entry["end"],
            },
        )
        assert rows(frame) == entry["rows"], entry["end"]


def test_time_travel_to_each_commit(table, load):
    entries = [entry for entry in table.expected["time_travel"] if "error" not in entry]
    assert entries
    for entry in entries:
        assert rows(load(table.path, **{"as.of.instant": entry["as_of"]})) == entry["rows"], entry["as_of"]
