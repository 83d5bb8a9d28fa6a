"""Files of each format that lack columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq


def put_lines(path: Path, rows: pa.Table) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


def put_avro(path: Path, rows: pa.Table) -> None:
    fields = [
        {"name": name, "type": "string" if pa.types.is_string(kind) else "long"}
        for name, kind in zip(rows.schema.names, rows.schema.types)
    ]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())


WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {
    "csv": lambda path, rows: pacsv.write_csv(rows, path),
    "parquet": lambda path, rows: pq.write_table(rows, path),
    "json": put_lines,
    "avro": put_avro,
}


def put_files_that_lack_columns(folder: Path, form: str) -> None:
    """One with all columns, and each of the others without one of them."""
    every = {"id": [1, 2], "must": [1, 2], "city": ["oslo", "rome"], "n": [5, 6]}
    for number, missing in enumerate([None, "n", "city", "id", "must"]):
        columns = {name: [v + 10 * number if name == "id" else v for v in values] for name, values in every.items()}  # type: ignore[operator]
        path = folder / f"{number}.{form}"
        WRITERS[form](path, pa.table({name: values for name, values in columns.items() if name != missing}))
        os.utime(path, (1000 + number,) * 2)
