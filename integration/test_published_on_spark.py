"""Delta Lake and Apache Iceberg on Spark read what is published, after each step of a history."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import BUNDLE, ROOT, hudi_peer
from integration.hudi_client import HudiPeer
from tests.published_histories import HISTORIES, published_history
from tests.rows import rows_of

JARS = ROOT / BUNDLE.parent / "lakes"
ICEBERG = "spark.sql.catalog.ice"


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiPeer]:
    """A Spark that reads both; the catalog `ice` has the folders of its warehouse."""
    jars = [str(jar) for jar in (*sorted(JARS.glob("*.jar")), ROOT / BUNDLE)]
    assert len(jars) > 1, f"{JARS} is empty; `make integration` fills it"
    settings = {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        ICEBERG: "org.apache.iceberg.spark.SparkCatalog",
        f"{ICEBERG}.type": "hadoop",
        f"{ICEBERG}.warehouse": str(tmp_path_factory.getbasetemp()),
        f"{ICEBERG}.cache-enabled": "false",
    }
    with hudi_peer(tmp_path_factory.mktemp("lakes"), settings) as peer:
        yield peer


@pytest.mark.parametrize(("kind", "left_out"), HISTORIES)
def test_delta_and_iceberg_read_the_rows_of_the_read_optimized_view(
    lakes: HudiPeer, tmp_path: Path, kind: str, left_out: bool
) -> None:
    path = tmp_path / "t"
    # Spark reads files with a narrower type than the column's from 4.0 on.
    for step, there in published_history(path, kind, left_out=left_out, length=0, widens=False):
        columns = ", ".join(f"`{name}`" for name in there.column_names)
        for name in (f"delta.`{path}`", f"ice.`{tmp_path.name}`.t"):
            found = lakes.sql(f"SELECT {columns} FROM {name}").rows
            assert found == rows_of(there), (name, step)
