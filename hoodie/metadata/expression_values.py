"""The definition of an expression index, and the values of its expression in data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.metadata.expression_dates import local_zone
from hoodie.metadata.expressions import Expression
from hoodie.metadata.file_ranges import log_rows, whole_log
from hoodie.metadata.index_definitions import IndexDefinition, read_definition
from hoodie.metadata.keys import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_INDEX
from hoodie.metadata.partition import Scope, TableFiles
from hoodie.metadata.stored_bounds import Range, Ranges, least_and_greatest, stored_as
from hoodie.metadata.table import finished_partitions
from hoodie.model.files import BaseFile
from hoodie.model.instant import BOOTSTRAP_INSTANTS
from hoodie.model.meta_fields import with_meta_fields
from hoodie.model.names import parse_base_file
from hoodie.storage.base import Storage
from hoodie.view.context import TableContext

pc: Any = pyarrow.compute
BLOOM_OPTIONS = ("filtertype", "numentries", "fpp", "maxentries")
_TYPED = "V2"
_nulls_of: Any = pa.nulls


@dataclass(frozen=True)
class ExpressionIndex:
    """As the definition has it."""

    expression: Expression
    kind: str
    """column_stats or bloom_filters."""
    typed: bool
    """Bounds are stored by index version V2."""
    bloom: Mapping[str, str]
    """What the definition says of bloom filters."""


def expression_index(context: TableContext, properties: Mapping[str, str], name: str) -> ExpressionIndex:
    """That of a partition.

    Raises:
        CorruptFileError, UnsupportedTableError: it has no definition, or one that is not known.
    """
    definition = read_definition(context.storage, properties, name)
    if definition is None:
        raise UnsupportedTableError(f"there is no definition of index {name!r}")
    return index_by(definition, context)


def partition_of_bounds(
    storage: Storage, properties: Mapping[str, str], function: str, column: str, options: Mapping[str, str]
) -> str | None:
    """The partition with bounds of this expression that readers may use; None where there is none.

    Raises:
        CorruptFileError: the definitions are damaged.
    """
    for name in sorted(each for each in finished_partitions(properties) if each.startswith(EXPRESSION_INDEX)):
        definition = read_definition(storage, properties, name)
        if definition is None or (definition.kind, definition.function, definition.columns) != (
            COLUMN_STATS,
            function,
            (column,),
        ):
            continue
        if {key: text for key, text in definition.options.items() if key != "expr"} == options:
            return name
    return None


def index_by(definition: IndexDefinition, context: TableContext) -> ExpressionIndex:
    """The expression index of a definition."""
    kind = definition.kind.lower()
    if kind not in (COLUMN_STATS, BLOOM_FILTERS) or len(definition.columns) != 1:
        raise UnsupportedTableError(
            f"index {definition.name!r} is of kind {definition.kind!r} and columns {definition.columns}"
        )
    zone = context.view_options.expression_index.zone or context.engine.zone or local_zone()
    plain = {key: text for key, text in definition.options.items() if key not in ("expr", *BLOOM_OPTIONS)}
    bloom = {key: text for key, text in definition.options.items() if key in BLOOM_OPTIONS}
    expression = Expression(definition.function, definition.columns[0], plain, zone)
    return ExpressionIndex(expression, kind, definition.version == _TYPED, bloom)


@dataclass(frozen=True)
class ExpressionValues:
    """`RangesOfFiles` of an expression. `schema`: the table's columns."""

    scope: Scope
    index: ExpressionIndex
    schema: pa.Schema

    @property
    def typed(self) -> bool:
        return self.index.typed

    @property
    def column(self) -> pa.Field[Any]:
        """The column with the type of the values.

        Raises:
            UnsupportedTableError: the table has no such column, or one of which the values are not known.
        """
        name, config = self.index.expression.column, self.scope.context.config
        if name not in self.schema.names:
            raise UnsupportedTableError(f"the table has no column {name!r}")
        if config.drops_partition_columns and name in config.partition_fields:
            raise UnsupportedTableError(f"column {name!r} is not in the table's files")
        kind = self.index.expression.kind_of(self.schema.field(name).type)
        if self.index.kind == COLUMN_STATS and not self._has_bounds(kind):
            raise UnsupportedTableError(f"{self.index.expression} is of type {kind}, which has no bounds")
        return pa.field(name, kind)

    def _has_bounds(self, kind: pa.DataType) -> bool:
        is_timestamp = pa.types.is_timestamp(kind)
        return stored_as(kind, typed=self.typed) is not None and (self.typed or not is_timestamp)

    def of(self, files: TableFiles) -> Mapping[tuple[str, str], Ranges]:
        """As `FileRanges.of`."""
        cache = self.scope.cache
        places = {
            (path, name): (str(self.index), path, name, size_bytes)
            for path, sizes in files.items()
            for name, size_bytes in sizes.items()
        }
        fresh = [place for place in places.values() if place not in cache]
        read = self.scope.context.storage.each(lambda place: self._ranges(*place[1:]), fresh)
        cache.update(zip(fresh, read, strict=True))
        return {file: cache[place] for file, place in places.items() if cache[place]}

    def _ranges(self, path: str, name: str, size_bytes: int) -> Ranges | None:
        values = self.of_file(path, name, size_bytes)
        if values is None:
            return None
        column = self.column
        stored = stored_as(column.type, typed=self.typed)
        if stored is None:
            raise UnsupportedTableError(f"{self.index.expression} has no bounds")
        bounds = least_and_greatest(values)
        return {column.name: Range(stored, *bounds, values.null_count, len(values), size_bytes, 2 * size_bytes)}

    def of_file(self, path: str, name: str, size_bytes: int) -> Any:
        """Of each row of a file; None where it is no data file, or a log without rows.

        Raises:
            CorruptFileError, FileNotFoundError: it is damaged or gone. UnsupportedTableError: they are not known.
        """
        column = self.index.expression.column
        kind, base = self.schema.field(column).type, parse_base_file(name)
        if base is not None and name.endswith(".parquet"):
            values = self._of_base(BaseFile(path, base.file_id, base.instant, name, size_bytes), kind)
        else:
            log = whole_log(path, name, size_bytes)
            if log is None:
                return None
            visible = self.scope.context.active.load().visible()
            values = log_rows(self.scope.context, self.schema, visible, log, [column]).column(column)
            if not len(values):
                return None
        return self.index.expression.of(pa.chunked_array(values).combine_chunks())

    def _of_base(self, base: BaseFile, kind: pa.DataType) -> Any:
        if base.instant == BOOTSTRAP_INSTANTS[0]:
            raise UnsupportedTableError(f"{base.path} is of a bootstrap and has no columns")
        column = self.index.expression.column
        with open_base_file(self.scope.context.storage, base) as (file, footer):
            if column not in file.schema_arrow.names:
                return pa.chunked_array([_nulls_of(footer.num_rows, kind)])
            return file.read([column]).column(column).cast(with_meta_fields(self.schema).field(column).type)


def filter_texts(values: ExpressionValues, computed: Any) -> Any:
    """The values as Java's texts; filters have neither nulls nor empty texts."""
    kind = computed.type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind)):
        raise UnsupportedTableError(f"{values.index.expression} is of type {kind}, of which no filters are made")
    texts = pc.unique(computed.cast(pa.string()).drop_null())
    return texts.filter(pc.not_equal(texts, ""))
