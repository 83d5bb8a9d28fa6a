"""HFile data blocks in logs of data tables -> what an Avro data block has: the same records, in the order of their keys.

Apache Hudi 1.2 writes them by `hoodie.logfile.data.block.format`, and cannot merge them itself on Spark.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hoodie.errors import UnsupportedTableError
from hoodie.format.log_block import LogBlock
from hoodie.format.log_content import field_names, framed_avro_data
from hoodie.hfile.arrays import BINARY
from hoodie.hfile.reader import SCHEMA, HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.model.enums import BlockKind, HeaderKey

_KEY = "key"
"""A column of this name is not in the records: Apache Hudi takes it for that of its metadata table."""


def as_avro_block(block: LogBlock, where: str) -> LogBlock:
    """The block as one of Avro data; one without its content as it is but for its kind.

    Raises:
        CorruptFileError: it is no whole HFile.
        UnsupportedTableError: its records are not whole.
    """
    schema = block.header.get(HeaderKey.SCHEMA)
    if schema is not None and _KEY in field_names(schema):
        raise UnsupportedTableError(
            f"{where}: an HFile data block has the key of each record in place of the column {_KEY!r}; write such a table with "
            "hoodie.logfile.data.block.format=avro"
        )
    return replace(block, kind=BlockKind.AVRO_DATA, content=_avro_data(block, where) if len(block.content) else b"")


def _avro_data(block: LogBlock, where: str) -> bytes:
    reader = HFileReader(BufferSource(block.content, f"{where}, block at byte {block.offset}"))
    rows = pa.Table.from_batches(list(reader.scan()), SCHEMA)
    return framed_avro_data(pa.concat_arrays([*rows.column("value").chunks, pa.array([], BINARY)]))
