"""Sources to migrate, each made by the library of its format."""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyroaring import BitMap64

Where = TypeVar("Where", Path, str)
ROWS = pa.table(
    {
        "id": pa.array([f"k{n:02d}" for n in range(30)]),
        "day": pa.array([["mon", "tue wed", None][n % 3] for n in range(30)]),
        "n": pa.array([None if n % 7 == 3 else n for n in range(30)], pa.int64()),
        "tags": pa.array([["a", f"b{n}"] if n % 2 else None for n in range(30)], pa.list_(pa.string())),
        "at": pa.array([n * 1_000_003 for n in range(30)], pa.timestamp("us", "UTC")),
    }
)


def rows_of(table, *columns):
    names = list(columns) or ROWS.schema.names
    found = table.select(names).to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def parquet_folder(
    folder: Path, *, hive: bool = True, files: int = 2, null: str = "__HIVE_DEFAULT_PARTITION__"
) -> Path:
    for value, name in (("mon", "mon"), ("tue wed", "tue%20wed"), (None, null)):
        mask = pc.is_null(ROWS["day"]) if value is None else pc.equal(ROWS["day"], value)
        part = ROWS.filter(mask).drop_columns(["day"])
        to = folder / (f"day={name}" if hive else name)
        to.mkdir(parents=True)
        share = -(-part.num_rows // files)
        for number in range(files):
            pq.write_table(part.slice(number * share, share), to / f"{number}.parquet")
    return folder


def delta_table(folder: Path) -> Path:
    return delta_table_at(folder)


def delta_table_at(where: Where, options: Mapping[str, str] | None = None) -> Where:
    """`options`: deltalake's, to reach a bucket."""
    for start in (0, 10, 20):
        rows = ROWS.slice(start, 10)
        write_deltalake(where, rows, mode="append", partition_by=["day"], storage_options=dict(options or {}) or None)
    return where


def with_deletion_vector(folder: Path, rows: list[int]) -> str:
    """Take rows of one file away by a deletion vector, as Delta's protocol has it; gives the path of that file."""
    log = folder / "_delta_log"
    version = DeltaTable(folder).version() + 1
    adds = [
        json.loads(line)["add"]
        for each in sorted(log.glob("*.json"))
        for line in each.read_text().splitlines()
        if '"add"' in line
    ]
    add = adds[0]
    data = struct.pack("<i", 1681511377) + BitMap64(rows).serialize()
    name = "deletion_vector_" + "0" * 8 + "-0000-0000-0000-" + "0" * 12 + ".bin"
    stored = b"\x01" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (folder / name).write_bytes(stored)
    vector = {
        "storageType": "p",
        "pathOrInlineDv": (folder / name).as_uri(),
        "offset": 1,
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }
    remove = {
        "path": add["path"],
        "dataChange": True,
        "deletionTimestamp": 1,
        "extendedFileMetadata": True,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
    }
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
    actions = [{"protocol": protocol}, {"remove": remove}, {"add": {**add, "deletionVector": vector}}]
    (log / f"{version:020d}.json").write_text("".join(json.dumps(each) + "\n" for each in actions))
    return str(add["path"])


class FolderCatalog(NoopCatalog):
    """Keeps tables in folders: those of pyiceberg need a database."""

    def commit_table(self, table, requirements, updates):
        metadata = update_table_metadata(table.metadata, updates)
        number = len(metadata.snapshots) + len(metadata.partition_specs)
        location = f"{metadata.location}/metadata/{number:05d}-x.metadata.json"
        ToOutputFile.table_metadata(metadata, table.io.new_output(location), overwrite=True)
        return CommitTableResponse(metadata=metadata, metadata_location=location)


def iceberg_of(folder: Path, columns: pa.Schema, partition_by: Sequence[str] = ()) -> Table:
    """An empty one."""
    return iceberg_at(f"file://{folder}/iceberg", columns, partition_by)


def iceberg_at(
    location: str, columns: pa.Schema, partition_by: Sequence[str] = (), options: Mapping[str, str] | None = None
) -> Table:
    """`options`: pyiceberg's, to reach a bucket."""
    schema = Catalog._convert_schema_if_needed(columns)
    metadata = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location)
    table = Table(
        ("db", "t"),
        metadata,
        f"{location}/metadata/00000-x.metadata.json",
        load_file_io(dict(options or {})),
        FolderCatalog("folder"),
    )
    for name in partition_by:
        with table.update_spec() as update:
            update.add_identity(name)
    return table


def iceberg_table(folder: Path, *, partitioned: bool = True) -> Table:
    return with_rows(iceberg_of(folder, ROWS.schema, ["day"] if partitioned else []))


def with_rows(table: Table) -> Table:
    for start in (0, 10, 20):
        table.append(ROWS.slice(start, 10))
    return table
