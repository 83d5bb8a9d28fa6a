"""How a table merges records: from its properties to a `MergeRule`, and from options to properties.

Apache Hudi says it in three ways that grew over its versions: a payload class, a merge strategy id, a merge mode with a
partial update mode. Class names are looked up in the table below and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hoodie.errors import OptionError
from hoodie.format.layout import Layout
from hoodie.model.enums import Fill, MergeMode
from hoodie.model.plans import DeleteMarker, Merger, MergeRule
from hoodie.options.class_names import one_name

MERGER = "hoodie.python.merger"
PAYLOAD = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
STRATEGY = "hoodie.record.merge.strategy.id"
MODE = "hoodie.record.merge.mode"
PARTIAL_MODE = "hoodie.table.partial.update.mode"
DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"
PROPERTY_PREFIX = "hoodie.record.merge.property."
"""Before the names of settings that a merge needs; Apache Hudi stores delete field and marker so, in version 6 too."""
_UNAVAILABLE = f"{PROPERTY_PREFIX}hoodie.write.partial.update.unavailable.value"
MERGING = (
    *(PAYLOAD, LEGACY_PAYLOAD, STRATEGY, MODE, PARTIAL_MODE, _UNAVAILABLE),
    *(f"{PROPERTY_PREFIX}{DELETE_FIELD}", f"{PROPERTY_PREFIX}{DELETE_MARKER}"),
)
"""What properties say, in one version or another, of how a table merges; beside a merger of hoodie's."""

EVENT_TIME_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
COMMIT_TIME_PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"
STRATEGIES: Mapping[str, MergeMode] = {
    EVENT_TIME_STRATEGY: MergeMode.EVENT_TIME_ORDERING,
    COMMIT_TIME_STRATEGY: MergeMode.COMMIT_TIME_ORDERING,
}
_EVENT, _COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
_DEBEZIUM_DELETE = DeleteMarker("_change_operation_type", "d", any_case=True)

PAYLOADS: Mapping[str, MergeRule] = {
    EVENT_TIME_PAYLOAD: MergeRule(_EVENT),
    "org.apache.hudi.common.model.EventTimeAvroPayload": MergeRule(_EVENT),
    COMMIT_TIME_PAYLOAD: MergeRule(_COMMIT),
    "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload": MergeRule(
        _COMMIT, fill=Fill.NULLS, payload=True
    ),
    "org.apache.hudi.common.model.PartialUpdateAvroPayload": MergeRule(_EVENT, fill=Fill.NULLS, payload=True),
    "org.apache.hudi.common.model.AWSDmsAvroPayload": MergeRule(
        _COMMIT, payload=True, delete_marker=DeleteMarker("Op", "D", any_case=True)
    ),
    "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload": MergeRule(
        _EVENT,
        ("_event_lsn",),
        fill=Fill.UNAVAILABLE,
        unavailable="__debezium_unavailable_value",
        payload=True,
        delete_marker=_DEBEZIUM_DELETE,
    ),
    "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload": MergeRule(
        _EVENT, ("_event_seq",), positions=True, payload=True, delete_marker=_DEBEZIUM_DELETE
    ),
}
"""The payload classes that are known, with what they mean up to table version 8."""
DELETING_PAYLOAD = "org.apache.hudi.common.model.EmptyHoodieRecordPayload"
"""How a write says that its rows are deletes, from before there was an operation for it. No table has it."""

_FILLS = {
    "": None,
    "NONE": None,
    "KEEP_VALUES": None,
    "IGNORE_DEFAULTS": Fill.NULLS,
    "FILL_UNAVAILABLE": Fill.UNAVAILABLE,
}
"""KEEP_VALUES is about records that lack columns; their log blocks say so themselves."""
MERGER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_MERGER_PAYLOAD = "hoodie.python.merger."
"""Such a payload class is what other engines are told: they find no class of that name, say so, and merge nothing."""


def special_payload(name: str) -> str:
    """The payload class where it says more than a merge mode does; empty for the three that are one."""
    name = one_name(name)
    rule = PAYLOADS.get(name)
    return name if rule is None or rule.payload else ""


def merger_name(name: str) -> str:
    """The name of a merger, checked.

    Raises:
        OptionError: it is no name, or parts of one joined by dots.
    """
    if not MERGER_NAME.fullmatch(name) or len(name) > 200:
        raise OptionError(f"merger name {name!r} is not made of letters, digits and _, in parts joined by dots")
    return name


def merge_rule(properties: Mapping[str, str], *, layout: Layout, ordering: tuple[str, ...]) -> MergeRule:
    """How a table merges, by its `hoodie.properties`.

    Version 6: payload class, strategy id, ordering fields, in this order; version 8: the stored mode, strategy id, payload
    class; version 9: the stored mode and the partial update mode. What nothing here knows is CUSTOM.

    Raises:
        ValueError: a property has a value that it cannot have; the text is the rest of a sentence about the table.
    """
    get = properties.get
    if get(MERGER):
        return MergeRule(
            MergeMode.CUSTOM, ordering, delete_marker=delete_marker(properties), merger=Merger(get(MERGER, ""), None)
        )
    rule = _rule_of_payload(properties, ordering) if layout.states_payload else None
    mode = _stored_mode(properties) if layout.states_merge_mode else None
    if rule is None or mode not in {None, MergeMode.CUSTOM}:
        rule = MergeRule(mode or STRATEGIES.get(get(STRATEGY, ""), _EVENT if ordering else _COMMIT))
        if mode is None and get(STRATEGY) and get(STRATEGY) not in STRATEGIES:
            rule = MergeRule(MergeMode.CUSTOM)
    if not layout.states_payload:
        rule = _with_partial_mode(rule, properties)
    return replace(
        rule,
        ordering_fields=rule.ordering_fields or ordering,
        delete_marker=delete_marker(properties) or rule.delete_marker,
    )


def _rule_of_payload(properties: Mapping[str, str], ordering: tuple[str, ...]) -> MergeRule | None:
    name = one_name(properties.get(PAYLOAD, ""))
    return PAYLOADS.get(name, MergeRule(MergeMode.CUSTOM)) if name else None


def _stored_mode(properties: Mapping[str, str]) -> MergeMode | None:
    text = properties.get(MODE, "")
    if not text:
        return None
    try:
        return MergeMode(text)
    except ValueError:
        raise ValueError(f"{MODE}={text!r} is not one of {', '.join(MergeMode)}") from None


def _with_partial_mode(rule: MergeRule, properties: Mapping[str, str]) -> MergeRule:
    text = properties.get(PARTIAL_MODE, "").upper()
    if text not in _FILLS or one_name(properties.get(LEGACY_PAYLOAD, EVENT_TIME_PAYLOAD)) not in PAYLOADS:
        return replace(rule, mode=MergeMode.CUSTOM)
    fill = _FILLS[text]
    marker = properties.get(_UNAVAILABLE, "")
    return replace(rule, fill=fill if fill is not Fill.UNAVAILABLE or marker else None, unavailable=marker)


def delete_marker(properties: Mapping[str, str]) -> DeleteMarker | None:
    """The field and marker of a table's own deletes.

    Raises:
        ValueError: there is only one of the two.
    """
    texts = [properties.get(PROPERTY_PREFIX + key) or properties.get(key, "") for key in (DELETE_FIELD, DELETE_MARKER)]
    field, marker = texts
    if bool(field) != bool(marker):
        there, missing = (DELETE_FIELD, DELETE_MARKER) if field else (DELETE_MARKER, DELETE_FIELD)
        raise ValueError(f"{there} is set without {missing}")
    return DeleteMarker(field, marker) if field else None


def merging_properties(
    mode: MergeMode, *, payload: str | None, merger: str | None, marker: DeleteMarker | None, layout: Layout
) -> dict[str, str]:
    """The properties of a new table that say how it merges.

    Version 6: payload class and strategy id; version 8: the mode, too; version 9: the mode, and what a payload class means beside
    it (`HoodieTableConfig.inferMergingConfigsForV9TableCreation`). And the delete marker in all of them.

    Raises:
        OptionError: a table of this version cannot have the payload class.
    """
    event_time = mode is MergeMode.EVENT_TIME_ORDERING
    result = {
        PAYLOAD: EVENT_TIME_PAYLOAD if event_time else COMMIT_TIME_PAYLOAD,
        STRATEGY: EVENT_TIME_STRATEGY if event_time else COMMIT_TIME_STRATEGY,
    }
    stored_mode = mode
    if payload or merger:
        result = {PAYLOAD: payload or f"{_MERGER_PAYLOAD}{merger}", STRATEGY: PAYLOAD_STRATEGY}
        stored_mode = MergeMode.CUSTOM
    if not layout.states_payload and not merger:
        result = _meaning_of(payload) if payload else {}
        stored_mode = mode
    if layout.states_merge_mode:
        result[MODE] = stored_mode
    if merger:
        result[MERGER] = merger
    if marker is not None:
        result |= {PROPERTY_PREFIX + DELETE_FIELD: marker.field, PROPERTY_PREFIX + DELETE_MARKER: marker.marker}
    return result


def _meaning_of(payload: str) -> dict[str, str]:
    """What a table of version 9 has in place of a payload class, beside the mode."""
    rule = PAYLOADS[payload]
    if rule.positions:
        raise OptionError(
            f"payload class {payload} is not written in tables of version 9 by this release: use version 6 or 8"
        )
    result = {LEGACY_PAYLOAD: payload}
    if rule.fill is not None:
        result[PARTIAL_MODE] = next(name for name, fill in _FILLS.items() if fill is rule.fill)
    if rule.unavailable:
        result[_UNAVAILABLE] = rule.unavailable
    if rule.delete_marker is not None:
        result[PROPERTY_PREFIX + DELETE_FIELD] = rule.delete_marker.field
        result[PROPERTY_PREFIX + DELETE_MARKER] = rule.delete_marker.marker
    return result


def creation_mode(
    mode: MergeMode | None, ordering: tuple[str, ...], *, payload: str | None, merger: str | None, table: str
) -> MergeMode:
    """The merge mode of a new table.

    Raises:
        OptionError: what is asked for contradicts itself, or lacks the ordering field that it needs.
    """
    if merger:
        merger_name(merger)
        if payload or mode not in {None, MergeMode.CUSTOM}:
            raise OptionError(
                f"table {table!r} cannot have a merger of its own ({MERGER}={merger}) and a merge mode or payload class: drop one"
            )
        return MergeMode.CUSTOM
    if payload:
        rule = PAYLOADS[payload]
        if mode not in {None, rule.mode, MergeMode.CUSTOM}:
            raise OptionError(f"merge mode {mode} contradicts payload class {payload} of table {table!r}: drop one")
        if rule.ordering_fields and ordering != rule.ordering_fields:
            raise OptionError(
                f"payload class {payload} orders by {','.join(rule.ordering_fields)}: set hoodie.datasource.write.precombine.field "
                f"of table {table!r} to it"
            )
        mode = rule.mode
    if mode is None:
        return MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING
    if mode is MergeMode.CUSTOM:
        raise OptionError(
            f"merge mode CUSTOM does not say how table {table!r} merges: name a payload class, or a merger of your own ({MERGER})"
        )
    if mode is MergeMode.EVENT_TIME_ORDERING and not ordering:
        raise OptionError(
            "merge mode EVENT_TIME_ORDERING needs an ordering column: set hoodie.datasource.write.precombine.field, or "
            "drop the merge mode (or payload class) so that the later commit wins"
        )
    return mode
