"""A change of a table's columns as a commit without rows, with the history of columns by which readers find those of older files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from hoodie.errors import OptionError
from hoodie.format.avro_schema import parse_schema
from hoodie.format.column_ids import schema_of
from hoodie.model.columns import ColumnHistory, ColumnSet
from hoodie.model.enums import WriteOperation
from hoodie.model.nested import nullable_within
from hoodie.model.payloads import CommitMetadata
from hoodie.model.results import CommitResult
from hoodie.options.table import TableConfig
from hoodie.txn.conflict import WriteBasis
from hoodie.txn.transaction import Transaction
from hoodie.view.columns import first_history, history_with
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import table_schema_json
from hoodie.write.attempt import action_of
from hoodie.write.column_changes import ColumnChange
from hoodie.write.publish import commit_metadata

_ALTER = WriteOperation.ALTER_SCHEMA


def run_alter(context: TableContext, change: ColumnChange) -> CommitResult:
    """Commit the change. A result without an instant: the columns are so already.

    Raises:
        OptionError, SchemaError: as `ColumnChange`. CommitConflictError: another write was committed at the same moment.
    """
    started = time.monotonic()
    before, after = _changed(context, context.snapshot(), change)
    if after.columns == before.now:
        return CommitResult(None, _ALTER, seconds=time.monotonic() - started)
    transaction, (before, after) = Transaction.start(
        context,
        action_of(context.config.table_type),
        lambda now, _: _changed(context, now, change),
        lambda _: CommitMetadata(operation=_ALTER),
    )
    with transaction:
        transaction.history = history_with(before, after._replace(version=int(transaction.instant.padded)))
        schema = nullable_within(schema_of(after.columns))
        metadata = commit_metadata((), operation=_ALTER, schema=schema, table_name=context.config.name)
        transaction.commit(metadata, WriteBasis())
    return replace(
        CommitResult.of(transaction.instant, _ALTER, (), completed=transaction.completed_at),
        seconds=time.monotonic() - started,
    )


def _changed(context: TableContext, snapshot: Snapshot, change: ColumnChange) -> tuple[ColumnHistory, ColumnSet]:
    """The history as it is now, and the columns after the change."""
    config = context.config
    before = snapshot.history
    if before is None:
        if snapshot.schema is None:
            raise OptionError(f"table {config.name!r} has no columns yet: write rows, or create it with a schema")
        before = first_history(
            context.storage.uri, snapshot.schema, meta_columns=config.populate_meta_fields, docs=_docs(snapshot)
        )
    widest = max(each.max_id for each in before.versions)
    return before, change(before.newest._replace(max_id=widest), _fixed(config))


def _fixed(config: TableConfig) -> frozenset[str]:
    """Paths of the columns that keys, partition paths and the order of rows are made of, and that mark deletes."""
    marker = config.rule.delete_marker
    return frozenset(
        [
            *config.record_key_fields,
            *config.partition_fields,
            *config.ordering_fields,
            *([] if marker is None else [marker.field]),
        ]
    )


def _docs(snapshot: Snapshot) -> Mapping[str, str]:
    text = table_schema_json(snapshot.active, snapshot.timeline, snapshot.properties)
    fields = parse_schema(text)["fields"] if text else ()
    return {each["name"]: each["doc"] for each in fields if isinstance(each.get("doc"), str)}
