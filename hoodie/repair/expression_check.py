"""Whether an expression index agrees with the values in the files. All of it is read, and the column in all files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hoodie.hfile.arrays import BINARY
from hoodie.metadata.expression_index import ExpressionPartition, stats_key, values_of
from hoodie.metadata.expression_values import ExpressionValues, filter_texts
from hoodie.metadata.keys import BLOOM_FILTERS, FILES, expression_partition_key
from hoodie.metadata.partition import Scope, Shard
from hoodie.metadata.payload import decode_stats
from hoodie.metadata.table import MetadataTable
from hoodie.model.index_results import IndexCheck
from hoodie.model.names import join, parse_base_file
from hoodie.view.context import TableContext

_SHOWN = 5


def check_expression_index(context: TableContext, name: str, table: MetadataTable) -> IndexCheck:
    """Of a partition that opens."""
    scope, partition = Scope(context, context.config.raw, table.schema_of(FILES)), ExpressionPartition(name)
    values = values_of(scope, name)
    if values.index.kind == BLOOM_FILTERS:
        return _filters(values, name, table)
    sizes = table.sizes()
    expected = bounds_by_key(partition.first(scope, sizes)[1], scope.schema)
    groups = range(len(table.slices_of(name)))
    stored = bounds_by_key((partition.merged(scope, table, number) for number in groups), scope.schema)
    column = values.column.name
    of_files = {stats_key(path, each, column): join(path, each) for path, names in sizes.items() for each in names}
    of_partitions = {expression_partition_key(path, column): f"partition {path!r}" for path in sizes}
    problems = []
    for key, does in expected.items():
        says = stored.get(key)
        if says is not None and (says != does if key in of_files else is_narrower(says, does)):
            where = of_files.get(key) or of_partitions.get(key, key)
            problems.append(f"{values.index.expression} of {where}: {says}, and its rows have {does}")
    missing = len(expected.keys() - stored.keys())
    return IndexCheck(name, len(expected), missing, problems=tuple(problems[:_SHOWN]))


def _filters(values: ExpressionValues, name: str, table: MetadataTable) -> IndexCheck:
    bases = [
        (path, each, size)
        for path, sizes in table.sizes().items()
        for each, size in sizes.items()
        if parse_base_file(each) is not None
    ]
    stored = table.bloom_filters([join(path, each) for path, each, _ in bases], name)
    if stored is None:
        return IndexCheck(name, 0, problems=(table.reasons[name],))
    problems, missing = [], 0
    for path, each, size in bases:
        bloom = stored.get(join(path, each))
        missing += bloom is None
        if bloom is not None and not bloom.might_contain(filter_texts(values, values.of_file(path, each, size))).all():
            problems.append(f"the filter of {join(path, each)} lacks values of {values.index.expression}")
    return IndexCheck(name, len(bases), missing, problems=tuple(problems[:_SHOWN]))


def bounds_by_key(shards: Iterable[Shard], schema: str) -> dict[str, dict[str, Any]]:
    """Key of a record -> low, high and nulls of it, of those that are not deleted."""
    result = {}
    for shard in shards:
        keys = [key.decode() for key in shard.keys.to_pylist()]
        for part in decode_stats(shard.values.cast(BINARY), schema):
            for row, stats in zip(part.rows.tolist(), part.columns.to_pylist(), strict=True):
                if not stats["deleted"]:
                    result[keys[row]] = {name: stats[name] for name in ("low", "high", "nulls")}
    return result


def is_narrower(says: Mapping[str, Any], does: Mapping[str, Any]) -> bool:
    """Whether bounds leave out what is there."""
    if any(each["low"] is None or each["high"] is None for each in (says, does)):
        return False
    try:
        return bool(says["low"] > does["low"] or says["high"] < does["high"])
    except TypeError:
        return True  # bounds of two types
