"""Small copy-on-write files that hoodie rewrites many at a time: Apache Hudi and hudi-rs read them, and Hudi finds their keys."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.filegroup import small_files
from integration import rust_peer

PARTITIONS = 20


def rows(*numbers, ts):
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "p": [f"p{n % PARTITIONS}" for n in numbers],
            "ts": [ts] * len(numbers),
            "x": [float("nan") if n % 7 == 0 else n / ts for n in numbers],
        }
    )


@pytest.mark.parametrize("version", ["6", "9"])
def test_peers_read_and_change_files_that_were_rewritten_together(hudi, tmp_path, monkeypatch, version):
    together = []
    real = small_files.write_small_rewrites

    def rewritten(*given):
        results = real(*given)
        together.append(len(results))
        return results

    monkeypatch.setattr(small_files, "write_small_rewrites", rewritten)
    path = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.write.table.version": version,
    }
    table = hoodie.create_table(path, record_key="id", partition_by="p", ordering="ts", options=options)
    table.upsert(rows(*range(100), ts=1))
    expected = {f"k{n}": 1 for n in range(100)}
    for turn in range(2, 5):
        few = range(turn, 120, 3)
        table.upsert(rows(*few, ts=2 * turn))
        gone = [f"k{n}" for n in few[5:12]]
        table.delete(rows(*few[5:12], ts=2 * turn))
        expected |= {f"k{n}": 2 * turn for n in few}
        expected = {key: ts for key, ts in expected.items() if key not in gone}
        assert (
            dict(zip(*(hudi.read(path).table.column(name).to_pylist() for name in ("id", "ts")), strict=True))
            == expected
        )
        assert {row["id"]: row["ts"] for row in rust_peer.read(path)} == expected
        others = range(turn + 1, 110, 4)
        hudi.write(path, rows(*others, ts=2 * turn + 1), options)
        expected |= {f"k{n}": 2 * turn + 1 for n in others}
        table = hoodie.open_table(path)
        found = table.to_arrow()
        assert sorted(zip(*(found.column(name).to_pylist() for name in ("id", "ts")), strict=True)) == sorted(
            expected.items()
        )
    assert min(together) > 1
    assert len(together) >= 6
    assert table.validate(deep=True)
