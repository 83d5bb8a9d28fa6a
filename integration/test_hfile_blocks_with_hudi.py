"""HFile data blocks in logs of data tables: Apache Hudi writes them and cannot query them on Spark; we read and compact them."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from integration.hudi_client import HudiPeer, PeerError
from integration.views import View, by_rust

HFILES = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.table.name": "hfiles",
    "hoodie.logfile.data.block.format": "hfile",
}


def rows(ids: range, ts: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in ids], "name": [f"n{n}" for n in ids], "ts": [ts] * len(ids)})


def test_tables_that_hudi_cannot_query_are_mended_by_a_compaction(hudi: HudiPeer, tmp_path: Path) -> None:
    path = tmp_path / "hfiles"
    hudi.write(path, rows(range(12), 1), HFILES)
    hudi.write(path, rows(range(3, 6), 2), HFILES)
    with pytest.raises(PeerError, match="ClassCastException"):
        hudi.read(path)
    expected = [(f"k{n}", f"n{n}", 2 if 3 <= n < 6 else 1) for n in range(12)]
    table = hoodie.open_table(path)
    assert _values(table.scan().to_arrow().to_pylist()) == sorted(expected)
    assert _values(by_rust(path, View())) == sorted(expected)
    assert table.compact()
    assert _values(hudi.read(path).rows) == sorted(expected)


def _values(found: list[dict]) -> list[tuple]:
    return sorted((row["id"], row["name"], row["ts"]) for row in found)
