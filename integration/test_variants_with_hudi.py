"""VARIANT columns: hudi-rs reads the bytes that were written. Apache Hudi has them on Spark 4 only, for which no bundle is here."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiTable

import hoodie
from hoodie.format.variant_values import encoded

FIRST = {"id": 1, "v": {"a": 1, "born": date(1815, 12, 10)}, "ts": 1}


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_rs_reads_the_bytes_of_variants(tmp_path: Path, kind: str, version: str) -> None:
    path = tmp_path / "t"
    columns = {"id": int, "v": "variant", "ts": int}
    options = {"hoodie.write.table.version": version}
    table = hoodie.create_table(path, columns, record_key="id", table_type=kind, options=options)
    table.upsert([FIRST, {"id": 2, "v": [1], "ts": 1}, {"id": 3, "v": None, "ts": 1}])
    table.upsert([{"id": 2, "v": {"new": [True, None, 2.5]}, "ts": 2}])
    expected = [_bytes(FIRST["v"]), _bytes({"new": [True, None, 2.5]}), None]
    assert _by_rust(path) == expected
    table.cluster()
    assert _by_rust(path) == expected


def _bytes(value: object) -> dict[str, bytes]:
    return dict(zip(("metadata", "value"), encoded(value), strict=True))


def _by_rust(path: Path) -> list[object]:
    rows = pa.Table.from_batches([pa.record_batch(batch) for batch in HudiTable(str(path)).read()])
    return rows.sort_by("id").column("v").to_pylist()
