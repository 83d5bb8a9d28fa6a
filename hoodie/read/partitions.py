"""Partitions by a condition on the columns that make them."""

from __future__ import annotations

from itertools import compress

import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.format.column_stats import has_bounds
from hoodie.keygen.partition_values import ranges_of_paths
from hoodie.model.meta_fields import PARTITION_PATH, with_meta_fields
from hoodie.read.bounds import may_match
from hoodie.read.where import Where, condition_of, parse_filter
from hoodie.view.context import TableContext


def partitions_where(context: TableContext, where: Where) -> frozenset[str]:
    """The partition paths in which rows may fulfil a condition on partition columns.

    Raises:
        OptionError: it does not parse, or names another column.
    """
    snapshot = context.snapshot()
    if snapshot.schema is None:
        return frozenset()
    schema = with_meta_fields(snapshot.schema)
    found = parse_filter(where, schema)
    if found is None:
        return frozenset(snapshot.view.every_partition())
    allowed = (*context.config.partition_fields, PARTITION_PATH)
    other = next((name for name in found.columns if name not in allowed), None)
    if other is not None:
        columns = ", ".join(context.config.partition_fields)
        raise OptionError(
            f"this condition chooses partitions of table {context.config.name!r}, and column {other!r} makes none: "
            + (f"name {columns}" if columns else "the table has no partitions, leave the condition out")
        )
    paths = list(snapshot.view.every_partition())
    if not paths:
        return frozenset()
    kinds = {name: schema.field(name).type for name in found.columns if has_bounds(schema.field(name).type)}
    ranges = {
        name: [(each,) for each in known] for name, known in ranges_of_paths(context.config, kinds, paths).items()
    }
    tree = where if isinstance(where, pc.Expression) else condition_of(where, schema)
    return frozenset(compress(paths, may_match(tree, schema, ranges, len(paths)).tolist()))
