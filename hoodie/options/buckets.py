"""The bucket layout in options and properties: asked for when a table is created, and remembered in keys of our own.

Apache Hudi stores neither the number of buckets nor the hash fields: its writers are told at every write.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import OptionError
from hoodie.model.buckets import BucketEngine, BucketLayout, BucketRules
from hoodie.model.enums import TableType
from hoodie.options.table_options import TableOptions
from hoodie.options.values import IndexType

COUNT = "hoodie.python.bucket.count"
FIELDS = "hoodie.python.bucket.hash.fields"
ENGINE = "hoodie.python.bucket.engine"
RULES = "hoodie.python.bucket.partition.expressions"
"""Those that the table was made with; files say which ones hold now (`format/bucket_rules.py`)."""
DEFAULT_COUNT = 256
"""Apache Hudi's."""
_MAX_DIGITS = 8
"""As a file id has room for."""


def asked_layout(
    count: int | None,
    fields: tuple[str, ...] | None,
    engine: BucketEngine | None,
    rules: BucketRules | None = None,
    *,
    record_key: tuple[str, ...],
    table_type: TableType,
    table: str,
) -> BucketLayout:
    """The layout of a new table with index type BUCKET.

    Raises:
        OptionError: hash fields that are no record key columns, or consistent buckets of a copy-on-write table.
    """
    engine = engine or BucketEngine.SIMPLE
    if engine is BucketEngine.CONSISTENT_HASHING and table_type is TableType.COPY_ON_WRITE:
        raise OptionError(
            f"table {table!r} is copy-on-write, and hoodie.index.bucket.engine=CONSISTENT_HASHING is for merge-on-read tables, as in "
            "Apache Hudi: take SIMPLE, or create a merge-on-read table"
        )
    if engine is BucketEngine.CONSISTENT_HASHING and rules is not None:
        raise OptionError(
            f"table {table!r}: hoodie.bucket.index.partition.expressions is for hoodie.index.bucket.engine=SIMPLE, as in Apache Hudi; "
            "drop one of the two"
        )
    if not record_key:
        raise OptionError(
            f"table {table!r} has no record key columns, which index type BUCKET hashes: choose another index"
        )
    for name in fields or ():
        if name not in record_key:
            raise OptionError(
                f"hoodie.bucket.index.hash.field names {name!r}, which is not a record key column of table {table!r}: "
                f"take some of {','.join(record_key)!r}, or drop the option to take all"
            )
    return BucketLayout(count or DEFAULT_COUNT, fields or record_key, engine, rules)


def layout_properties(layout: BucketLayout | None) -> dict[str, str]:
    """The properties that remember a layout."""
    if layout is None:
        return {}
    engine = {} if layout.engine is BucketEngine.SIMPLE else {ENGINE: layout.engine.value}
    rules = {} if layout.rules is None else {RULES: layout.rules.expressions}
    return {COUNT: str(layout.count), FIELDS: ",".join(layout.fields), **engine, **rules}


def parse_layout(properties: Mapping[str, str], record_key: tuple[str, ...]) -> BucketLayout | None:
    """The layout that properties remember; None when they say nothing.

    Raises:
        ValueError: what they say is no layout; with the rest of a sentence that begins with the file.
    """
    text = properties.get(COUNT, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS or int(text) < 1:
        raise ValueError(f"{COUNT}={text[:40]!r} is not a number of buckets")
    fields = tuple(name.strip() for name in properties.get(FIELDS, "").split(",") if name.strip())
    engine = properties.get(ENGINE, "").strip() or BucketEngine.SIMPLE
    if engine not in set(BucketEngine):
        raise ValueError(f"{ENGINE}={engine[:40]!r} is a bucket index that this release does not know")
    expressions = properties.get(RULES, "").strip()
    rules = BucketRules(expressions) if expressions else None
    try:
        _ = None if rules is None else rules.parsed
    except ValueError as error:
        raise ValueError(f"{RULES}: {error}") from None
    return BucketLayout(int(text), fields or record_key, BucketEngine(engine), rules)


def compared(layout: BucketLayout | None, requested: TableOptions) -> list[tuple[str, object, object]]:
    """(what, as it is in the table, as it is asked for; None: not asked) of a table whose layout is known."""
    if layout is None:
        return []
    by_bucket = requested.index in (None, IndexType.BUCKET)
    # On rings the number is that of new partitions, and each writer of Apache Hudi brings its own.
    count = requested.bucket_count if layout.engine is BucketEngine.SIMPLE and layout.rules is None else None
    return [
        ("index type", IndexType.BUCKET, requested.index),
        ("bucket engine", layout.engine, requested.bucket_engine if by_bucket else None),
        ("number of buckets", str(layout.count), str(count) if count and by_bucket else None),
        ("hash columns of the buckets", layout.fields, (requested.bucket_fields or None) if by_bucket else None),
    ]
