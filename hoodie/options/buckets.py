"""The bucket layout in options and properties: asked for when a table is created, and remembered in keys of our own.

Apache Hudi stores neither the number of buckets nor the hash fields: its writers are told at every write.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import OptionError
from hoodie.model.buckets import BucketLayout
from hoodie.options.values import IndexType

COUNT = "hoodie.python.bucket.count"
FIELDS = "hoodie.python.bucket.hash.fields"
DEFAULT_COUNT = 256
"""Apache Hudi's."""
_MAX_DIGITS = 8
"""As a file id has room for."""


def asked_layout(
    count: int | None, fields: tuple[str, ...] | None, *, record_key: tuple[str, ...], table: str
) -> BucketLayout:
    """The layout of a new table with index type BUCKET.

    Raises:
        OptionError: hash fields that are no record key columns.
    """
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
    return BucketLayout(count or DEFAULT_COUNT, fields or record_key)


def layout_properties(layout: BucketLayout | None) -> dict[str, str]:
    """The properties that remember a layout."""
    return {} if layout is None else {COUNT: str(layout.count), FIELDS: ",".join(layout.fields)}


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
    return BucketLayout(int(text), fields or record_key)


def compared(
    layout: BucketLayout | None, index: IndexType | None, count: int | None, fields: tuple[str, ...] | None
) -> list[tuple[str, object, object]]:
    """(what, as it is in the table, as it is asked for; None: not asked) of a table whose layout is known."""
    if layout is None:
        return []
    by_bucket = index in (None, IndexType.BUCKET)
    return [
        ("index type", IndexType.BUCKET, index),
        ("number of buckets", str(layout.count), str(count) if count and by_bucket else None),
        ("hash columns of the buckets", layout.fields, (fields or None) if by_bucket else None),
    ]
