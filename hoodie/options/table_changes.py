"""`hoodie.properties` of a table whose version changes. Keys that we do not know stay as they are."""

from __future__ import annotations

from hoodie.errors import UnsupportedTableError
from hoodie.format.layout import V6, V8, Layout
from hoodie.format.properties import table_checksum
from hoodie.model.plans import DeleteMarker, MergeRule
from hoodie.options.merging import (
    LEGACY_PAYLOAD,
    MERGING,
    PAYLOAD,
    PAYLOADS,
    STRATEGY,
    merging_properties,
    special_payload,
)
from hoodie.options.table import (
    CHECKSUM,
    INITIAL_VERSION,
    KEYGEN_CLASS,
    KEYGEN_TYPE,
    LAYOUT,
    METADATA,
    ORDERING,
    PARTITION,
    PRECOMBINE,
    VERSION,
    TableConfig,
    parse_table_config,
    partition_text,
)
from hoodie.options.values import key_generator_class

_OLD_STRATEGY = "hoodie.compaction.record.merger.strategy"


def renewed_properties(config: TableConfig) -> dict[str, str]:
    """`hoodie.properties` of a table of an older version that becomes one of version 6."""
    properties = {name: value for name, value in config.raw.items() if not name.startswith(METADATA)}
    return {
        **properties,
        VERSION: str(int(V6.version)),
        LAYOUT: str(V6.number),
        CHECKSUM: str(table_checksum(config.name, config.database_name)),
    }


def upgraded_properties(config: TableConfig, layout: Layout) -> dict[str, str]:
    """`hoodie.properties` of a table of version 6 that becomes one of this layout.

    Raises:
        OptionError: a table of this version cannot merge as this one does.
    """
    dropped = (PAYLOAD, STRATEGY, _OLD_STRATEGY, PRECOMBINE, KEYGEN_CLASS)
    properties = {
        name: value for name, value in config.raw.items() if name not in dropped and not name.startswith(METADATA)
    }
    return {
        **properties,
        VERSION: str(int(layout.version)),
        LAYOUT: str(layout.number),
        INITIAL_VERSION: properties.get(INITIAL_VERSION) or str(int(config.version)),
        PARTITION: partition_text(config.partition_fields, config.key_settings, layout),
        ORDERING: ",".join(config.ordering_fields),
        KEYGEN_TYPE: config.keygen,
        layout.timeline.property: layout.timeline.default,
        layout.history.property: layout.history.default,
        **merging_properties(
            config.merge_mode,
            payload=config.payload or None,
            merger=config.merger,
            marker=config.delete_marker if not config.payload else None,
            layout=layout,
        ),
    }


def downgraded_properties(config: TableConfig, layout: Layout) -> dict[str, str]:
    """`hoodie.properties` of a table of version 8 or 9 that becomes one of this layout.

    Raises:
        UnsupportedTableError: a table of this version cannot merge as this one does.
    """
    raw = config.raw
    payload_class = "" if config.merger else raw.get(PAYLOAD) or raw.get(LEGACY_PAYLOAD) or ""
    payload = special_payload(payload_class) or None if payload_class else None
    dropped = [*MERGING, PRECOMBINE]
    if layout is V6:
        dropped += [INITIAL_VERSION, V8.timeline.property, V8.history.property]
    properties = {name: value for name, value in raw.items() if name not in dropped and not name.startswith(METADATA)}
    own = PAYLOADS.get(payload or "")
    is_implied = own is not None and _said_of(own.delete_marker) == _said_of(config.delete_marker)
    result = {
        **properties,
        VERSION: str(int(layout.version)),
        LAYOUT: str(layout.number),
        PARTITION: partition_text(config.partition_fields, config.key_settings, layout),
        ORDERING: ",".join(config.ordering_fields),
        PRECOMBINE: ",".join(config.ordering_fields),
        KEYGEN_TYPE: config.keygen,
        KEYGEN_CLASS: key_generator_class(config.keygen) if layout is V6 else "",
        V6.history.property: properties.get(V6.history.property) or V6.history.default,
        **merging_properties(
            config.merge_mode,
            payload=payload,
            merger=config.merger,
            marker=None if is_implied else config.delete_marker,
            layout=layout,
        ),
    }
    result = {key: str(value) for key, value in result.items() if value}
    if _merging(parse_table_config(result, uri=config.uri).rule) != _merging(config.rule):
        raise UnsupportedTableError(
            f"table {config.uri} merges in a way that only version {int(config.version)} can say, so it cannot become one of version "
            f"{int(layout.version)}"
        )
    return result


def _merging(rule: MergeRule) -> tuple[object, ...]:
    """What a rule comes to, however the properties say it."""
    return rule.mode, rule.fill, rule.ordering_fields, _said_of(rule.delete_marker)


def _said_of(marker: DeleteMarker | None) -> tuple[str, str] | None:
    return None if marker is None else (marker.field, marker.marker)
