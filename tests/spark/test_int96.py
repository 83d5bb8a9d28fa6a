"""INT96 timestamps through Spark: by its own scan, by our tasks, and where only footers tell types."""

import json

import pytest

import hoodie
from pyspark_hoodie.arrow_frame import changed_setting
from tests.int96 import MOMENTS, int96_table
from tests.spark.conftest import arrow_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("stated", [True, False])
def test_moments_of_all_years(enabled, tmp_path, table_type, stated):
    path = tmp_path / "t"
    int96_table(path, table_type)
    if not stated:
        for commit in (path / ".hoodie").glob("*commit"):
            content = json.loads(commit.read_text(encoding="utf-8"))
            del content["extraMetadata"]["schema"]
            commit.write_text(json.dumps(content), encoding="utf-8")

    def moments():
        load = enabled.read.format("hoodie").load(str(path))
        with changed_setting(enabled, "spark.sql.session.timeZone", "America/New_York"):
            plain = arrow_of(load.select("id", "at").selectExpr("id", "unix_micros(at) AS at"))
        nested = arrow_of(load.select("id", "inside", "listed")).sort_by("id").to_pylist()
        return plain.sort_by("id")["at"].to_pylist(), [(row["inside"], row["listed"]) for row in nested]

    micros = hoodie.open_table(path).scan(columns=["id", "at"]).to_arrow().sort_by("id")["at"].cast("int64").to_pylist()
    wanted = (micros, [({"at": moment}, [moment]) for moment in MOMENTS])
    assert moments() == wanted
    later = (
        enabled.read.format("hoodie")
        .load(str(path))
        .where("id = 4")
        .selectExpr("id", "ts + 1 AS ts", "at", "inside", "listed")
    )
    later.write.format("hoodie").mode("append").save(str(path))
    assert moments() == wanted
