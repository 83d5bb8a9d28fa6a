"""The five `_hoodie_*` columns that stand first in every stored record."""

from __future__ import annotations

import pyarrow as pa

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
META_FIELDS = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)
IS_DELETED = "_hoodie_is_deleted"
"""A user column: true marks a row as a delete."""


def with_meta_fields(schema: pa.Schema) -> pa.Schema:
    """The schema with the meta columns in front (once, wherever they stood before)."""
    return pa.schema([*META_FIELDS, *without_meta_fields(schema)])


def without_meta_fields(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])
