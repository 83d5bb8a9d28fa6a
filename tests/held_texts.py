"""Which files of a folder hold a text: the bytes of every file are searched, decoded where they are compressed."""

import io
import json
import zlib

import pyarrow.parquet as pq


def texts_of(raw):
    """What can be read from the bytes of a file."""
    yield raw
    if raw[:4] == b"PAR1":
        file = pq.ParquetFile(io.BytesIO(raw))
        yield json.dumps(file.read().to_pydict(), default=str).encode()
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        yield repr([g.column(n).statistics for g in groups for n in range(g.num_columns)]).encode()
    for start in range(len(raw)):
        if raw[start : start + 2] in (b"\x78\x9c", b"\x78\x01", b"\x78\xda"):
            try:
                yield zlib.decompressobj().decompress(raw[start:])
            except zlib.error:
                continue


def holding(root, *wanted):
    found = []
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        if any(each.encode() in text for text in texts_of(path.read_bytes()) for each in wanted):
            found.append(str(path.relative_to(root)))
    return found
