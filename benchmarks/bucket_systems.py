# ruff: noqa: PLC0415 - each system imports what its own environment has
"""One system whose table lies in a bucket, in a process of its own: `benchmarks.bucket` starts it.

It takes a command a line from its input, `load NAME`, `upsert NAME` or `read`, and answers each with a line of JSON: seconds and
what came of it. Packages of the peers are imported by who uses them, since each environment has its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.rides import CODEC, KEY, ORDERING, PARTITION, SUMMED, load


class System(Protocol):
    """A table in a bucket."""

    def load(self, rows: pa.Table) -> None: ...

    def upsert(self, rows: pa.Table) -> None: ...

    def read(self) -> pa.Table:
        """All rows of the columns that are summed."""


class Hoodie:
    """A table that the process keeps open."""

    package = "hoodie"
    options: Mapping[str, str] = {"hoodie.parquet.compression.codec": CODEC}

    def __init__(self, uri: str, folder: Path) -> None:
        self._uri = uri + "/hoodie"
        self._table: Any = None

    def load(self, rows: pa.Table) -> None:
        import hoodie

        self._table = hoodie.create_table(
            self._uri,
            rows.schema,
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            table_type="MERGE_ON_READ",
        )
        self._table.bulk_insert(rows, self.options)

    def upsert(self, rows: pa.Table) -> None:
        self._opened().upsert(rows, self.options)

    def read(self) -> pa.Table:
        return self._opened().scan(columns=list(SUMMED)).to_arrow()

    def _opened(self) -> Any:
        import hoodie

        if self._table is None:
            self._table = hoodie.open_table(self._uri)
        return self._table


class DeltaRs:
    """MERGE, told the partition as well so that it may prune."""

    package = "deltalake"

    def __init__(self, uri: str, folder: Path) -> None:
        from deltalake import WriterProperties

        self._uri = uri + "/delta"
        self._options = {"AWS_CONDITIONAL_PUT": "etag"}
        self._written = WriterProperties(compression=CODEC.upper())
        self._table: Any = None

    def load(self, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(
            self._uri, rows, partition_by=[PARTITION], writer_properties=self._written, storage_options=self._options
        )

    def upsert(self, rows: pa.Table) -> None:
        (
            self._opened()
            .merge(
                rows,
                predicate=f"t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY}",
                source_alias="s",
                target_alias="t",
                writer_properties=self._written,
            )
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    def read(self) -> pa.Table:
        return self._opened().to_pyarrow_table(columns=list(SUMMED))

    def _opened(self) -> Any:
        from deltalake import DeltaTable

        if self._table is None:
            self._table = DeltaTable(self._uri, storage_options=self._options)
        return self._table


class Iceberg:
    """PyIceberg's upsert, with a catalog of SQLite on local disk, which costs no request."""

    package = "pyiceberg"

    def __init__(self, uri: str, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        self._catalog = SqlCatalog(
            "bench",
            uri=f"sqlite:///{folder}/iceberg.db",
            warehouse=uri + "/iceberg",
            **{
                "s3.endpoint": os.environ["AWS_ENDPOINT"],
                "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
                "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
                "s3.region": os.environ["AWS_REGION"],
            },
        )
        self._table: Any = None

    def load(self, rows: pa.Table) -> None:
        from pyiceberg.transforms import IdentityTransform

        self._catalog.create_namespace_if_not_exists("bench")
        table = self._catalog.create_table(
            "bench.rides", schema=rows.schema, properties={"write.parquet.compression-codec": CODEC}
        )
        with table.update_spec() as update:
            update.add_field(PARTITION, IdentityTransform(), PARTITION)
        table.append(rows)

    def upsert(self, rows: pa.Table) -> None:
        self._opened().upsert(rows, join_cols=[KEY])

    def read(self) -> pa.Table:
        return self._opened().scan(selected_fields=SUMMED).to_arrow()

    def _opened(self) -> Any:
        if self._table is None:
            self._table = self._catalog.load_table("bench.rides")
        return self._table


SYSTEMS = {"hoodie": Hoodie, "delta-rs": DeltaRs, "pyiceberg": Iceberg}


def main(argv: list[str]) -> None:
    kind, uri, folder, data = SYSTEMS[argv[0]], argv[1], Path(argv[2]), Path(argv[3])
    system: System = kind(uri, folder)
    _say({"version": f"{kind.package} {metadata.version(kind.package)}"})
    for line in sys.stdin:
        command, _, name = line.strip().partition(" ")
        rows = load(data, name) if name else None
        start, cpu = time.perf_counter(), time.process_time()
        answer = system.read() if command == "read" else getattr(system, command)(rows)
        cost = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
        _say(cost if answer is None else {**cost, "sums": _sums(answer)})


def _sums(rows: pa.Table) -> list[float]:
    return [rows.num_rows, *(round(float(pc.sum(rows[name]).as_py()), 2) for name in SUMMED)]


def _say(what: Mapping[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
