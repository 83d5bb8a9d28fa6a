"""Tables of Apache Hudi through Spark: every view is what Hudi itself read, with `enable` and without."""

from functools import reduce
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from tests.effort import SOAK, long_but
from tests.golden_tables import copy_golden, golden_names, golden_pulls
from tests.rows import rows_of
from tests.spark.conftest import arrow_of

pytestmark = pytest.mark.spark

VIEW = "asked"
OFTEN = ["v6_mor_parquet_logs", "v9_partial_updates"]
"""Few of those that Spark is given to read in a way of its own; the embedded tests read all of them."""


@pytest.fixture(scope="module", params=long_but(OFTEN, golden_names()))
def table(request, tmp_path_factory):
    return copy_golden(request.param, tmp_path_factory.mktemp("golden"))


@pytest.fixture(autouse=True)
def sampled(request):
    """Without `enable` Spark starts a Python process to plan each read: all tables by that door are for `make soak`."""
    asked = request.node.callspec.params
    if asked["door"] == "source" and asked["table"] not in OFTEN and not SOAK:
        pytest.skip("HOODIE_SOAK=1 runs it")


class Question(NamedTuple):
    """Read options, and the rows that Hudi answered."""

    options: dict[str, str]
    rows: list[dict]


def questions(table, *, every_pull):
    """Every view that Hudi could read: two queries, each as-of and the pull between any two instants (or neighbours)."""
    yield Question({}, table.expected["snapshot"])
    yield Question({"hoodie.datasource.query.type": "read_optimized"}, table.expected["read_optimized"])
    for entry in table.expected["time_travel"]:
        if "error" not in entry:
            yield Question({"as.of.instant": entry["as_of"]}, entry["rows"])
    neighbours = {(entry["begin"], entry["end"]) for entry in table.expected["incremental"]}
    for begin, end, rows in golden_pulls(table.name):
        if rows is not None and (every_pull or (begin, end) in neighbours):
            between = {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": begin,
                "hoodie.datasource.read.end.instanttime": end,
            }
            yield Question(between, rows)


def test_every_view(table, load, request):
    # Without `enable` Spark starts a Python process to plan each read, so that all pulls would take a minute more.
    asked = list(questions(table, every_pull=request.node.callspec.params["door"] == "enabled"))
    frames = [load(table.path, **question.options) for question in asked]
    assert all(frame.schema == frames[0].schema for frame in frames)
    # One job for all of them: two hundred and more would take minutes.
    numbered = [frame.withColumn(VIEW, lit(number)) for number, frame in enumerate(frames)]
    answers = arrow_of(reduce(DataFrame.unionAll, numbered))
    for number, (options, rows) in enumerate(asked):
        found = answers.filter(answers[VIEW].to_numpy() == number).drop_columns([VIEW])
        assert rows_of(found) == rows, options


def test_the_schema_is_hudi_s(table, load):
    wanted = [(f["name"], f["type"], f["nullable"]) for f in table.expected["schema"]["fields"]]
    assert [(f.name, f.jsonValue()["type"], f.nullable) for f in load(table.path).schema.fields] == wanted
