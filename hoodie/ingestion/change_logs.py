"""Change logs of databases as rows: events of Debezium, and files of AWS DMS.

Events become rows as Apache Hudi's PostgresDebeziumSource and MysqlDebeziumSource make them: the row after the change, of a delete
the one before, with where the event stands in the log. Order and deletes are then a matter of how the table merges.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.filegroup.unavailable import forms_in_text, is_unavailable
from hoodie.ingestion.connect_types import TYPES, with_natural_types
from hoodie.ingestion.formats import fitting, is_read_from_json, plain_rows, shown, with_types
from hoodie.ingestion.salvage import with_columns_of, with_known_types
from hoodie.ingestion.source import BadRecord, Bounds, Checkpoint, Round, Source
from hoodie.model.enums import Fill
from hoodie.model.meta_fields import IS_DELETED
from hoodie.model.results import format_count
from hoodie.options.table import TableConfig

log = logging.getLogger("hoodie")

OPERATION, DMS_OPERATION = "_change_operation_type", "Op"
DELETE = "d"
_BEFORE, _AFTER = "before", "after"
_MODEL = "org.apache.hudi.common.model."
_PAYLOAD, _VERSION = "hoodie.datasource.write.payload.class", "hoodie.write.table.version"
_UNAVAILABLE = "__debezium_unavailable_value"
_ORIGIN = "events"
_IS_GONE = "_hoodie_python_is_gone"
"""A column of rows that are before an event."""
_COMMON: Mapping[str, tuple[str, pa.DataType]] = {
    OPERATION: ("op", pa.string()),
    "_upstream_event_processed_ts_ms": ("ts_ms", pa.int64()),
    "db_shard_source_partition": ("source.name", pa.string()),
    "_event_origin_ts_ms": ("source.ts_ms", pa.int64()),
}


class Log(NamedTuple):
    """What the log of a kind of database has."""

    connectors: tuple[str, ...]
    columns: Mapping[str, tuple[str, pa.DataType]]
    """Where in an event a column stands, by Apache Hudi's names."""
    place: tuple[str, ...]
    """The columns that say where an event stands."""


LOGS: Mapping[str, Log] = {
    "postgres": Log(
        ("postgresql",),
        {
            **_COMMON,
            "db_schema_source_partition": ("source.schema", pa.string()),
            "_event_tx_id": ("source.txId", pa.int64()),
            "_event_lsn": ("source.lsn", pa.int64()),
            "_event_xmin": ("source.xmin", pa.int64()),
        },
        ("_event_lsn",),
    ),
    "mysql": Log(
        ("mysql", "mariadb"),
        {
            **_COMMON,
            "_event_bin_file": ("source.file", pa.string()),
            "_event_pos": ("source.pos", pa.int64()),
            "_event_row": ("source.row", pa.int32()),
        },
        ("_event_bin_file", "_event_pos"),
    ),
}
KINDS = (*LOGS, "dms")


def creation(kind: str, options: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Ordering columns, and options, of a table that is made for such a log, as Apache Hudi has them for its payload classes."""
    if kind == "dms":
        return (), {_PAYLOAD: f"{_MODEL}AWSDmsAvroPayload"}
    if kind == "postgres":
        return ("_event_lsn",), {_PAYLOAD: f"{_MODEL}debezium.PostgresDebeziumAvroPayload"}
    if options.get(_VERSION) == "9":
        marker = {"hoodie.payload.delete.field": OPERATION, "hoodie.payload.delete.marker": DELETE}
        return LOGS[kind].place, marker
    return ("_event_seq",), {_PAYLOAD: f"{_MODEL}debezium.MySqlDebeziumAvroPayload"}


def change_log(
    events: Source, kind: str, config: TableConfig, *, keys_are_global: bool, converts: bool = True
) -> ChangeLog:
    field = DMS_OPERATION if kind == "dms" else OPERATION
    marker = config.delete_marker
    changes = Changes(
        kind,
        flags_deletes=marker is None or marker.field != field,
        fills=config.rule.fill is Fill.UNAVAILABLE,
        needed=() if keys_are_global else tuple(config.partition_fields),
        converts=converts,
    )
    return ChangeLog(events, changes)


@dataclass(frozen=True)
class Changes:
    """How events become rows; tasks have it, too."""

    kind: str
    flags_deletes: bool = False
    """The table does not take a delete from the operation: it has to be in `_hoodie_is_deleted`."""
    fills: bool = False
    """The table keeps what is stored where a value is said to be unavailable."""
    needed: tuple[str, ...] = ()
    """Columns without which a stored row is not found, beside the record key."""
    converts: bool = True
    """Values get the types that a schema in their event says. SQL gets them as they are: it does not know what the table has."""

    def schema_of_events(self, row_schema: pa.Schema | None) -> pa.Schema | None:
        """The schema by which events are read, for rows of `row_schema`.

        Of a row that Debezium wraps it has the lists: without it nothing says what is in a list if all are empty. Other values
        get their types after they are read, since a number may be there as a text.
        """
        if self.kind == "dms" or row_schema is None:
            return row_schema
        lists = [each for each in row_schema if pa.types.is_nested(each.type) and is_read_from_json(each.type)]
        return pa.schema([(name, pa.struct(lists)) for name in (_BEFORE, _AFTER)]) if lists else None

    def rows_of(self, events: pa.Table, schema: pa.Schema | None) -> tuple[pa.Table, list[BadRecord]]:
        """The rows that events are about, and events that cannot be taken."""
        bad: list[BadRecord] = []
        if not events.num_rows:
            return pa.table({}), bad
        rows = self._of_dms(events, bad) if self.kind == "dms" else self._of_debezium(events, schema, bad)
        rows = _of_known_types(rows, schema, bad)
        return with_columns_of(with_known_types(rows), schema), bad

    def _of_dms(self, events: pa.Table, bad: list[BadRecord]) -> pa.Table:
        """A full load has no operations."""
        if DMS_OPERATION not in events.schema.names:
            events = events.append_column(DMS_OPERATION, pa.array([""] * events.num_rows))
        operation = pc.fill_null(events.column(DMS_OPERATION).cast(pa.string()), "")
        is_delete = pc.equal(operation, "D")
        unknown = pc.invert(pc.is_in(operation, value_set=pa.array(["", "I", "U", "D"])))
        wrong = [(unknown, "its operation (Op) is not I, U or D"), *self._unfindable(events, is_delete)]
        return self._flagged(_without(events, events, wrong, bad), DMS_OPERATION, "D")

    def _of_debezium(self, events: pa.Table, schema: pa.Schema | None, bad: list[BadRecord]) -> pa.Table:
        kind = LOGS[self.kind]
        events = _without_tombstones(events)
        types = events.column(TYPES) if self.converts and TYPES in events.schema.names else None
        events = events.select([each for each in events.schema.names if each != TYPES])
        columns = {name: _at(events, path, its_type) for name, (path, its_type) in kind.columns.items()}
        operation = columns[OPERATION]
        is_delete = pc.fill_null(pc.equal(operation, DELETE), False)
        before, after = _image(events, _BEFORE), _image(events, _AFTER)
        connector = _at(events, "source.connector", pa.string())
        wrong = [
            (pc.is_null(operation), "it has no operation (op): it is no event of Debezium"),
            (pc.equal(operation, "t"), "a truncate: the rows stay in the table; delete them there"),
            (_none_of(operation, ["c", "r", "u", "d"]), "its operation (op) is not c, r, u or d"),
            (_none_of(connector, kind.connectors), f"it is not of a connector of {self.kind} (source.connector)"),
            (pc.and_(is_delete, _is_null(before)), "a delete without the row before: its key is not known"),
            (pc.and_(pc.invert(is_delete), _is_null(after)), "it has no row after the change"),
            *(
                (pc.is_null(columns[name]), f"it has no place in the log ({kind.columns[name][0]})")
                for name in kind.place
            ),
        ]
        mask, reasons = _judged(wrong)
        _tell(events, mask, reasons, bad)
        parts = []
        for image, chosen in ((after, pc.invert(is_delete)), (before, pc.or_(is_delete, self._left(before, after)))):
            places = pc.indices_nonzero(pc.and_(chosen, pc.invert(mask)))
            if image is not None and len(places):
                part = pa.Table.from_struct_array(pa.chunked_array(image.take(places)))
                part = part if image is after else _meeting(part, after)
                parts.append((places, part.append_column(_IS_GONE, pa.repeat(image is before, len(places)))))
        if not parts:
            return pa.table({})
        rows, order = _together(parts)
        by_place = pc.sort_indices(order)
        rows, order = rows.take(by_place), order.take(by_place)
        gone, rows = rows.column(_IS_GONE), rows.drop_columns([_IS_GONE])
        if not rows.num_columns:
            return rows
        for number, (name, column) in enumerate(columns.items()):
            taken = column.take(order)
            rows = rows.add_column(number, name, pc.if_else(gone, DELETE, taken) if name == OPERATION else taken)
        if types is not None:
            natural, wrong = with_natural_types(rows.append_column(TYPES, types.take(order)), schema)
            rows = _without(natural, rows, wrong, bad)
        if self.kind == "mysql":
            rows = rows.append_column("_event_seq", _sequence(rows))
        if self.kind == "postgres":
            rows = _with_one_marker(rows)
            _warn_of_holes(rows)
        wrong = [*self._unfindable(rows, pc.equal(rows.column(OPERATION), DELETE)), *self._unavailable(rows)]
        return self._flagged(_without(rows, rows, wrong, bad), OPERATION, DELETE)

    def _unfindable(self, rows: pa.Table, is_delete: Any) -> Iterator[tuple[Any, str]]:
        for name in self.needed:
            missing = pc.is_null(rows.column(name)) if name in rows.schema.names else True
            sentence = f"a delete without the partition column {name}: its row is not found. Let the log have it "
            yield pc.and_(is_delete, missing), f"{sentence}(in PostgreSQL REPLICA IDENTITY FULL), or use a global index"

    def _left(self, before: pa.ChunkedArray | None, after: pa.ChunkedArray | None) -> Any:
        """Updates after which a row is in another partition: where it was it is deleted, as far as the event says where."""
        left: Any = pa.scalar(False)
        if before is None or after is None:
            return left
        for name in self.needed:
            if before.type.get_field_index(name) >= 0 and after.type.get_field_index(name) >= 0:
                was, is_now = pc.struct_field(before, name), pc.struct_field(after, name)
                if was.type == is_now.type:
                    other = pc.or_kleene(pc.is_null(is_now), pc.not_equal(was, is_now))
                    there = pc.and_(pc.is_valid(after), pc.is_valid(was))
                    left = pc.or_(left, pc.and_(there, pc.fill_null(other, False)))
        return left

    def _unavailable(self, rows: pa.Table) -> Iterator[tuple[Any, str]]:
        """Values that did not change and are not in the log."""
        for field in rows.schema if self.kind == "postgres" and not self.fills else ():
            marked = is_unavailable(rows.column(field.name), _UNAVAILABLE)
            if marked is not None:
                sentence = (
                    f"{field.name} is not in the log since it did not change (TOAST): make the table with changes="
                )
                yield marked, sentence

    def _flagged(self, rows: pa.Table, field: str, marker: str) -> pa.Table:
        if not self.flags_deletes or not rows.num_rows:
            return rows
        return rows.append_column(IS_DELETED, pc.fill_null(pc.equal(rows.column(field), marker), False))


@dataclass(frozen=True)
class ChangeLog:
    """`Source` of the rows that the events of another source are about."""

    events: Source
    changes: Changes

    def __str__(self) -> str:
        return f"the change log in {self.events}"

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        return self.round(self.events.next(after, bounds, self.changes.schema_of_events(schema)), schema)

    def round(self, events: Round | None, schema: pa.Schema | None) -> Round | None:
        """A round of events as one of rows."""
        if events is None:
            return None
        table = events.rows if isinstance(events.rows, pa.Table) else events.rows.read_all()
        rows, bad = self.changes.rows_of(table, schema)
        return replace(events, rows=rows, bad=[*events.bad, *bad])


def _at(events: pa.Table, path: str, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """What stands at a path of an event; null where it does not go on."""
    name, _, inner = path.partition(".")
    nothing: Any = pa.nulls(events.num_rows)
    column: Any = events.column(name) if name in events.schema.names else nothing
    if inner:
        is_there = pa.types.is_struct(column.type) and column.type.get_field_index(inner) >= 0
        column = pc.struct_field(column, inner) if is_there else nothing
    try:
        return column.cast(kind)  # type: ignore[no-any-return]
    except pa.ArrowException as exc:
        raise OptionError(
            f"{path} of the events is of type {column.type}, not {kind}: they are not Debezium's"
        ) from exc


def _without_tombstones(events: pa.Table) -> pa.Table:
    """A line of a file may be `null`, as the record after a delete is in a topic."""
    empty: Any = reduce(pc.and_, (pc.is_null(column) for column in events.columns))
    return events.filter(pc.invert(empty)) if pc.any(empty).as_py() else events


def _image(events: pa.Table, name: str) -> pa.ChunkedArray | None:
    column = events.column(name) if name in events.schema.names else None
    return column if column is not None and pa.types.is_struct(column.type) else None


def _is_null(image: pa.ChunkedArray | None) -> Any:
    return True if image is None else pc.is_null(image)


def _none_of(column: Any, values: Any) -> Any:
    return pc.and_(pc.is_valid(column), pc.invert(pc.is_in(column, value_set=pa.array(list(values)))))


def _judged(wrong: list[tuple[Any, str]]) -> tuple[pa.Array, pa.Array]:
    """Which rows are bad, and the first sentence that holds for each."""
    conditions = [pc.fill_null(each, False) for each, _ in wrong]
    conditions = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in conditions]
    reasons = pc.case_when(pc.make_struct(*conditions), *(sentence for _, sentence in wrong))
    return pc.is_valid(reasons), reasons


def _tell(rows: pa.Table, mask: pa.Array, reasons: pa.Array, bad: list[BadRecord]) -> None:
    for row, reason in zip(plain_rows(rows.filter(mask)), reasons.filter(mask).to_pylist()):  # the bad ones only
        bad.append(BadRecord(_ORIGIN, str(reason), shown(json.dumps(row, default=str))))


def _without(rows: pa.Table, events: pa.Table, wrong: list[tuple[Any, str]], bad: list[BadRecord]) -> pa.Table:
    if not wrong:
        return rows
    mask, reasons = _judged(wrong)
    _tell(events, mask, reasons, bad)
    return rows.filter(pc.invert(mask))


def _together(parts: list[tuple[pa.Array, pa.Table]]) -> tuple[pa.Table, pa.Array]:
    """Rows after changes and rows before deletes, with the events that they are of."""
    tables = [with_known_types(table) for _, table in parts]
    return pa.concat_tables(tables, promote_options="permissive"), pa.concat_arrays([places for places, _ in parts])


def _meeting(before: pa.Table, after: pa.ChunkedArray | None) -> pa.Table:
    """Of a delete only the key is needed: a column whose type has changed since is left out."""
    if after is None:
        return before
    kept = [each.name for each in before.schema if _meets(each, after.type)]
    return before.select(kept)


def _meets(field: pa.Field[Any], image: pa.StructType) -> bool:
    at = image.get_field_index(field.name)
    try:
        pa.unify_schemas(
            [pa.schema([field]), pa.schema([image.field(at) if at >= 0 else field])], promote_options="permissive"
        )
    except pa.ArrowException:
        return False
    return True


def _with_one_marker(rows: pa.Table) -> pa.Table:
    """A text that is the marker in another form, as bytes are in JSON, becomes the marker, which Apache Hudi knows."""
    others = pa.array(forms_in_text(_UNAVAILABLE)[1:])
    for number, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            column = rows.column(field.name)
            marked = pc.is_in(column, value_set=others)
            if pc.any(marked).as_py():
                rows = rows.set_column(number, field, pc.if_else(marked, _UNAVAILABLE, column))
    return rows


def _warn_of_holes(rows: pa.Table) -> None:
    """An insert has all of its values, unless it is what PostgreSQL makes of an update of the key."""
    inserts = rows.filter(pc.equal(rows.column(OPERATION), "c"))
    for name in inserts.column_names:
        marked = is_unavailable(inserts.column(name), _UNAVAILABLE)
        if marked is not None and (count := pc.sum(marked).as_py()):
            log.warning(
                "%s whose key changed: the log lacks the unchanged value of column %s (TOAST), so that it has the text %s now: set "
                "REPLICA IDENTITY FULL in PostgreSQL, and write these rows there again",
                format_count(count, "row"),
                name,
                _UNAVAILABLE,
            )


def _sequence(rows: pa.Table) -> Any:
    """`000003.154`, of the file mysql-bin.000003: Apache Hudi's ordering value."""
    number = pc.replace_substring_regex(rows.column("_event_bin_file"), pattern=r"^.*\.", replacement="")
    return pc.binary_join_element_wise(number, rows.column("_event_pos").cast(pa.string()), ".")


def _of_known_types(rows: pa.Table, schema: pa.Schema | None, bad: list[BadRecord]) -> pa.Table:
    try:
        return with_types(rows, schema)
    except pa.ArrowException:
        fits = fitting(rows, {each.name: each.type for each in schema or ()})
    for row in plain_rows(rows.filter(pc.invert(fits))):  # the bad ones only
        bad.append(BadRecord(_ORIGIN, "a value is not of its column's type", shown(json.dumps(row, default=str))))
    return with_types(rows.filter(fits), schema)
