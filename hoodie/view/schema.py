"""The table's schema: that of the newest commit that states one, else of its creation, else of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

import hoodie.view
from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.avro_schema import arrow_from_avro, parse_schema
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.meta_fields import without_meta_fields
from hoodie.model.nested import nullable_within
from hoodie.model.payloads import CommitMetadata
from hoodie.options.table import DROP_COLUMNS, PARTITION, PROPERTY_OF
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline

if TYPE_CHECKING:
    import hoodie.view.file_schema

CREATE_SCHEMA = "hoodie.table.create.schema"
"""Property with the Avro schema that a table was created with; counts until the first commit states one."""


def table_schema(
    active: ActiveTimeline, timeline: Timeline, properties: Mapping[str, str], *, until: InstantTime | None = None
) -> pa.Schema | None:
    """Columns of the table, without meta columns, as of instant `until` (None: now); None when nothing states them yet.

    Raises:
        CorruptFileError: the schema that counts is damaged, or is none of this table.
    """
    commits = timeline.commits[::-1]
    if until is not None:
        commits = tuple(each for each in commits if each.time <= until)
    schemas = (
        (instant, schema)
        for instant in commits
        if (schema := stated_schema(instant, active.read_commit(instant))) is not None
    )
    newest = next(schemas, None)
    if newest is not None:
        result = _with_columns_of_folders(newest[1], properties)
        _require_kin(newest[0], result, schemas, properties)
        return result
    if properties.get(CREATE_SCHEMA):
        return _columns_of(properties[CREATE_SCHEMA])
    text = _schema_json_of_files(active, commits)
    return _with_columns_of_folders(_columns_of(text), properties) if text else None


def _require_kin(
    instant: Instant, schema: pa.Schema, older: Iterator[tuple[Instant, pa.Schema]], properties: Mapping[str, str]
) -> None:
    """Refuse a schema without columns of keys and paths that the schema before has: rows would be read as nulls.

    Such columns stay for the life of a table. If no schema has them, it is the properties that are wrong.
    """
    fields = ",".join(properties.get(PROPERTY_OF[each], "") for each in ("record_key_fields", "partition_fields"))
    lacking = {name for each in fields.split(",") if (name := re.split("[.:]", each.strip())[0])} - {*schema.names}
    before, former = next(older, (None, None)) if lacking else (None, None)
    if former is not None and (missing := sorted(lacking & {*former.names})):
        raise CorruptFileError(
            f"the schema in the metadata of {instant} lacks {', '.join(missing)}, which keys or paths are made of and the schema of "
            f"{before} has: the metadata are damaged"
        )


def _with_columns_of_folders(schema: pa.Schema, properties: Mapping[str, str]) -> pa.Schema:
    """With the partition columns that files leave out, as the table was created with them; else as texts.

    Apache Hudi's commits do not state such columns, or state them as texts whatever they were.
    """
    if properties.get(DROP_COLUMNS, "").strip().lower() != "true":
        return schema
    created = _columns_of(properties[CREATE_SCHEMA]) if properties.get(CREATE_SCHEMA) else pa.schema([])
    for text in properties.get(PARTITION, "").split(","):
        name = text.partition(":")[0].strip()
        at = schema.get_field_index(name)
        if name in created.names:
            field = created.field(name)
            schema = schema.append(field) if at < 0 else schema.set(at, field)
        elif name and at < 0:
            schema = schema.append(pa.field(name, pa.string()))
    return schema


def table_schema_json(active: ActiveTimeline, timeline: Timeline, properties: Mapping[str, str]) -> str | None:
    """The Avro schema that `table_schema` is made of, as it was written."""
    commits = timeline.commits[::-1]
    newest = next(filter(None, (active.read_commit(instant).schema_json for instant in commits)), None)
    return newest or properties.get(CREATE_SCHEMA) or _schema_json_of_files(active, commits)


_LOST_TYPES = ("blob",)
"""Logical types of records that Apache Hudi 1.x has, and that would be records without one in what is written here."""


def refuse_lost_types(active: ActiveTimeline, timeline: Timeline, properties: Mapping[str, str], *, table: str) -> None:
    """Raises UnsupportedTableError where a column has a type that this release reads as a struct, and does not write."""
    text = table_schema_json(active, timeline, properties) if timeline.commits or CREATE_SCHEMA in properties else None
    if text is None or not any(f'"{kind}"' in text for kind in _LOST_TYPES):
        return
    for field in parse_schema(text)["fields"]:
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        kinds = [each.get("logicalType") for each in branches if isinstance(each, dict)]
        unwritable = next((kind for kind in kinds if kind in _LOST_TYPES), None)
        if unwritable is not None:
            raise UnsupportedTableError(
                f"table {table} can be read, not written: column {field['name']!r} is a {str(unwritable).upper()} of Apache "
                "Hudi, which this release reads as a struct and would write as one; write it with Apache Hudi"
            )


def _schema_json_of_files(active: ActiveTimeline, commits: Iterable[Instant]) -> str | None:
    """Of the newest of these commits that has a file."""
    of_files = hoodie.view.file_schema.schema_json_of_files
    texts = (of_files(active.storage, active.read_commit(instant).stats()) for instant in commits)
    return next(filter(None, texts), None)


@lru_cache(maxsize=64)
def _columns_of(text: str) -> pa.Schema:
    """Each snapshot asks for the newest commit's schema, which is nearly always that of the one before."""
    return nullable_within(without_meta_fields(arrow_from_avro(parse_schema(text))))


def stated_schema(instant: Instant, metadata: CommitMetadata) -> pa.Schema | None:
    """Columns, without meta columns, that a commit's metadata states; None when it states none."""
    text = metadata.schema_json
    if not text:
        return None
    try:
        return _columns_of(text)
    except CorruptFileError as exc:
        raise CorruptFileError(f"the schema in the metadata of {instant} is unreadable: {exc}") from exc
