"""The table's schema: that of the newest commit that states one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.avro_schema import arrow_from_avro, parse_schema
from hoodie.model.instant import Instant, sort_key
from hoodie.model.meta_fields import without_meta_fields
from hoodie.model.nested import nullable_within
from hoodie.model.payloads import CommitMetadata
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline

CREATE_SCHEMA = "hoodie.table.create.schema"
"""Property with the Avro schema that a table was created with; counts until the first commit states one."""


def table_schema(
    active: ActiveTimeline, timeline: Timeline, properties: Mapping[str, str], *, until: str | None = None
) -> pa.Schema | None:
    """Columns of the table, without meta columns, as of instant `until` (None: now); None when nothing states them yet."""
    for instant in reversed(timeline.commits):
        if until is not None and sort_key(instant.time) > sort_key(until):
            continue
        stated = stated_schema(instant, active.read_commit(instant))
        if stated is not None:
            return stated
    if properties.get(CREATE_SCHEMA):
        return _columns_of(properties[CREATE_SCHEMA])
    return None


def table_schema_json(active: ActiveTimeline, timeline: Timeline, properties: Mapping[str, str]) -> str | None:
    """The Avro schema that `table_schema` is made of, as it was written."""
    stated = (active.read_commit(instant).schema_json for instant in reversed(timeline.commits))
    return next(filter(None, stated), None) or properties.get(CREATE_SCHEMA) or None


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
