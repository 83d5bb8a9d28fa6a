"""Try an installed hoodie: its main job, its command, and the extras that are there. Nothing of the repository is used."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import hoodie
import hoodie.kv


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for version in ("6", "9"):
            try_table(Path(folder) / f"trips{version}", version)
        store = hoodie.kv.open_store(Path(folder) / "state", buckets=1)
        with store.writer(0) as writer:
            writer.put(b"key", b"value")
            writer.end_window(1)
            expect(writer.lookup(b"key"), b"value")


def try_table(path: Path, version: str) -> None:
    trips = pa.table({"uuid": ["a", "b"], "city": ["sf", "rome"], "ts": [1, 1], "fare": [9.5, 4.0]})
    table = hoodie.create_table(
        path,
        trips.schema,
        record_key="uuid",
        partition_by="city",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={"hoodie.write.table.version": version},
    )
    first = table.upsert(trips)
    table.upsert(pa.table({"uuid": ["b"], "city": ["rome"], "ts": [2], "fare": [4.5]}))
    expect(table.changes(since=first.position).count(), 1)
    expect(table.scan(query="read_optimized", where="uuid = 'b'").to_arrow()["fare"].to_pylist(), [4.0])
    table.compact()
    expect(table.scan(query="read_optimized", where="uuid = 'b'").to_arrow()["fare"].to_pylist(), [4.5])
    command = [Path(sys.executable).with_name("hoodie"), "show", path]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    expect("MERGE_ON_READ" in shown, True)
    if importlib.util.find_spec("duckdb") is not None:
        expect(hoodie.sql("SELECT sum(fare) AS s FROM t", {"t": table})["s"].to_pylist(), [14.0])
    if importlib.util.find_spec("polars") is not None:
        expect(table.scan().to_polars()["fare"].sum(), 14.0)


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"got {found!r}, not {wanted!r}")


if __name__ == "__main__":
    main()
