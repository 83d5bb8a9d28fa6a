"""Public programs of PySpark for Apache Hudi run as they are, and see the rows that they mean."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import pyspark_hoodie
import tests.spark.public_programs  # noqa: F401 - which fills PROGRAMS
from hoodie.errors import OptionError
from pyspark_hoodie import hook
from tests.effort import long_but
from tests.spark.programs import run

pytestmark = pytest.mark.spark

SEEN = json.loads(Path(__file__).with_name("public_programs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", long_but(["views_of_merge_on_read"], list(SEEN)))
def test_a_program_sees_the_rows_that_it_means(spark, tmp_path, name):
    pyspark_hoodie.enable(spark, aliases=("hudi", "org.apache.hudi"))
    try:
        assert run(name, spark, str(tmp_path)) == SEEN[name]
    finally:
        pyspark_hoodie.disable()


def test_a_session_that_needs_a_class_of_apache_hudis_bundle_is_refused(spark):
    """Spark makes it when a session is the first of its process, and fails at the first row."""
    named = SimpleNamespace(get=lambda *_: "org.apache.spark.HoodieSparkKryoRegistrar")
    asked = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: named), _jvm=spark._jvm)
    with pytest.raises(OptionError, match="leave the setting out"):
        hook.enable(asked)
