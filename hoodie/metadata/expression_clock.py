"""Whether an expression index has the time zone that hoodie assumes.

Functions of days and hours read a timestamp by a clock. Apache Hudi takes that of Spark's session, and does not write it down. So what
the index says of some files is computed again before more is written: with records by two clocks, queries would leave out rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import MissingFileError, UnsupportedTableError
from hoodie.metadata.expression_values import ExpressionValues, filter_texts
from hoodie.metadata.keys import BLOOM_FILTERS
from hoodie.metadata.table import MetadataTable
from hoodie.model.names import join, name_of, parse_base_file
from hoodie.storage.cache import Kind

pc: Any = pyarrow.compute
_LOOKED_AT = 3
_BYTES = 64
_RIGHT: Kind[bool] = Kind("expression indexes whose time zone was found to be right")


def require_same_clock(values: ExpressionValues, metadata: MetadataTable, name: str) -> None:
    """Raises UnsupportedTableError where what the index says of a file is not so by the clock of the time zone."""
    expression, context = values.index.expression, values.scope.context
    key = context.storage.identity, name, expression.zone
    if not expression.goes_by_clock(values.schema.field(expression.column).type) or context.cache.find(_RIGHT, key):
        return
    for path, file, size_bytes in islice(_base_files(metadata), _LOOKED_AT):
        try:
            computed = values.of_file(path, file, size_bytes)
        except (FileNotFoundError, MissingFileError):
            continue  # of an instant that is undone, or cleaned
        if not _says(values, metadata, name, join(path, file), computed):
            raise UnsupportedTableError(
                f"{expression} of {join(path, file)} is not what the index says by the clock of {expression.zone or 'this process'}: "
                "hoodie.python.index.expression.timezone is to be the time zone of all writers"
            )
    context.cache.put(_RIGHT, key, True, _BYTES)


def _base_files(metadata: MetadataTable) -> Iterator[tuple[str, str, int]]:
    for path in metadata.partitions() or ():
        for each in (metadata.files([path]) or ((),))[0]:
            written = parse_base_file(name_of(each.path))
            if written is not None:
                yield path, name_of(each.path), each.size_bytes


def _says(values: ExpressionValues, metadata: MetadataTable, name: str, path: str, computed: pa.Array) -> bool:
    """Whether the index agrees with these values of a file, or says nothing of it."""
    if values.index.kind == BLOOM_FILTERS:
        blooms = metadata.bloom_filters([path], name) or {}
        return path not in blooms or bool(blooms[path].might_contain(filter_texts(values, computed)).all())
    stats = metadata.column_stats([path], pa.schema([values.column]), name)
    if stats is None:
        return True
    bounds, ranges = pc.min_max(computed), stats[values.column.name]
    pairs = [(ranges["low"][0], bounds["min"]), (ranges["high"][0], bounds["max"])]
    return all(says.equals(does) for says, does in pairs if says.is_valid and does.is_valid)
