"""Tables that Apache Hudi bootstrapped, each with the files that it was made of and the rows that Apache Hudi read.

`tests/bootstrapped.zip` has `mor6_plain` (metadata only, merge-on-read, version 6) and `cow9_mixed` (partition a copied,
copy-on-write, version 9, the files lack the partition column), each with an upsert and a delete after the bootstrap.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.hfile.writer import HFileWriter
from hoodie.model.names import BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE

ZIP = Path(__file__).with_name("bootstrapped.zip")


class Bootstrapped(NamedTuple):
    table: Path
    source: Path
    rows: list[dict[str, Any]]


def bootstrapped(folder: Path, name: str) -> Bootstrapped:
    """The table in a folder of the test's own, whose index says where its source is now."""
    with zipfile.ZipFile(ZIP) as stored:
        stored.extractall(folder, [each for each in stored.namelist() if each.startswith(f"{name}/")])
    root = folder / name
    for path in (BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE):
        index = root / "table" / path
        cells = HFileReader(BufferSource(index.read_bytes(), path))
        moved = io.BytesIO()
        writer = HFileWriter(moved)
        for batch in cells.scan():
            values = [_moved(value, root / "source") for value in batch.column("value").to_pylist()]
            writer.write(batch.column("key"), pa.array(values, pa.large_binary()))
        writer.finish()
        index.write_bytes(moved.getvalue())
    rows = json.loads((root / "expected.json").read_text())["rows"]
    return Bootstrapped(root / "table", root / "source", rows)


def _moved(value: bytes, source: Path) -> bytes:
    reader = fastavro.reader(io.BytesIO(value))
    (record,) = reader
    by_file = record.get("bootstrapFileStatus")
    for each in record["fileIdToBootstrapFile"].values() if by_file is None else [by_file]:
        each["path"]["uri"] = f"file:{source}{each['path']['uri'].partition('/source')[2]}"
    made = io.BytesIO()
    fastavro.writer(made, reader.writer_schema, [record])
    return made.getvalue()
