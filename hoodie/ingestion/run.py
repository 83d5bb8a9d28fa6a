"""Rounds of ingestion: read the source, quarantine faulty records, transform, write rows and checkpoint in one commit.

A round that dies leaves nothing: its rows and its checkpoint are one commit, which is there or not. Two that run at once count their
batches alike, and a batch that a table has already is not written again. So each row is in the table once.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa

from hoodie.errors import HoodieError, KeyFieldError, OptionError
from hoodie.ingestion.source import NO_BOUNDS, BadRecord, Bounds, Checkpoint, Round, Source
from hoodie.ingestion.work import EMBEDDED, NO_ROUND, Needs, PreparedRound, Work
from hoodie.model.enums import WriteOperation
from hoodie.model.ingest_results import IngestRound
from hoodie.model.names import QUARANTINE
from hoodie.model.results import format_count
from hoodie.model.streams import StreamBatch, parse_batch
from hoodie.options.write import WriteOptions
from hoodie.storage.refusals import plain_errors
from hoodie.table import HoodieTable
from hoodie.telemetry import note, record, span
from hoodie.view.context import Snapshot
from hoodie.write.streams import every_commit

HUDI_KEYS = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
"""Of tables of versions 8 and 9, and of older ones. Both are written: readers take the first that they know."""
RESET_KEYS = ("streamer.checkpoint.reset.key.v2", "deltastreamer.checkpoint.reset_key")
OURS = "hoodie.python.ingest"
"""A JSON object: name of the source -> its checkpoint, what more it has to know, and the number of bad records."""


class Progress(NamedTuple):
    checkpoint: Checkpoint | None
    rounds: int
    """So many have been committed; the next one has this number as the batch of a stream."""
    address: str = ""
    """Of the source that was read, if it was said."""


def progress_of(snapshot: Snapshot, name: str) -> Progress:
    """What the newest commit says that has a checkpoint of this name, or one of Apache Hudi's, which has no names."""
    checkpoint: Checkpoint | None = None
    for extra in every_commit(snapshot):
        batch = parse_batch(extra, StreamBatch(stream_of(name), 0))
        if batch is not None:
            ours, address = _ours(extra, name)
            return Progress(checkpoint or ours, batch.number + 1, address)
        if checkpoint is None and OURS not in extra:
            checkpoint = next((Checkpoint(extra[key]) for key in HUDI_KEYS if extra.get(key)), None)
    return Progress(checkpoint, 0)


def stream_of(name: str) -> str:
    return f"ingest:{name}"


def entries(name: str, checkpoint: Checkpoint, bad: int, address: str = "") -> Mapping[str, str]:
    """What a commit says that has the rows up to this checkpoint."""
    ours = {name: {"checkpoint": checkpoint.text, "more": checkpoint.more, "bad": bad, "source": address}}
    return {**dict.fromkeys(HUDI_KEYS, checkpoint.text), OURS: json.dumps(ours, sort_keys=True)}


def _ours(extra: Mapping[str, str], name: str) -> tuple[Checkpoint, str]:
    try:
        entry = json.loads(extra[OURS])[name]
        return Checkpoint(entry["checkpoint"], entry["more"]), entry.get("source", "")
    except (KeyError, ValueError, TypeError) as exc:
        raise HoodieError(f"a commit of source {name!r} does not say up to where it was read: {exc!r}") from exc


log = logging.getLogger("hoodie")


@dataclass(frozen=True)
class Plan:
    """What is done in each round."""

    source: Source
    name: str = "ingest"
    address: str = ""
    """Of a folder or a table; a checkpoint does not say of which it is."""
    operation: WriteOperation = WriteOperation.UPSERT
    sql: str | None = None
    bounds: Bounds = NO_BOUNDS
    keeps_bad: bool = True
    """Otherwise a bad record is an error, and nothing of its round is written."""
    dry_run: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    work: Work = EMBEDDED


@dataclass
class Begin:
    """How far a run has read before it could commit anything: the table has no columns, and no row said them."""

    checkpoint: Checkpoint | None = None


def run_round(table: HoodieTable, plan: Plan, begin: Begin | None = None) -> IngestRound | None:
    """One round, None: there is nothing new. `begin` is that of all rounds of a run.

    Raises:
        OptionError: a bad record, where those are errors; the transformation cannot be understood. Others as `upsert` has them.
    """
    with span("ingest.round", table=table.config.name, path=table.uri, source=plan.name):
        result = _round(table, plan, begin or Begin())
        if result is not None:
            note(instant=result.instant, rows=result.rows, files=result.pieces, bytes=result.bytes)
    if result is not None and not plan.dry_run:
        labels = {"table": table.config.name, "source": plan.name}
        for name, value in (("rows", result.rows), ("bad", result.bad), ("waiting", result.waiting)):
            record(f"ingest.{name}", value, **labels)
    return result


def _round(table: HoodieTable, plan: Plan, begin: Begin) -> IngestRound | None:
    started_s = time.monotonic()
    progress = progress_of(table._context.snapshot(), plan.name)
    progress = progress._replace(checkpoint=progress.checkpoint or begin.checkpoint)
    schema = table.schema if plan.sql is None else None
    if plan.address and progress.address and plan.address != progress.address:
        log.warning(
            "source %r of table %s was %s until now, and is %s: what is older than the checkpoint %s is not read. If the table has "
            "several sources, give each a name=",
            *(plan.name, table.uri, progress.address, plan.address, progress.checkpoint and progress.checkpoint.text),
        )
    with plain_errors(plan.address):
        round_ = plan.work.next(plan.source, progress.checkpoint, plan.bounds, schema)
    if round_ is None:
        return None
    with ExitStack() as at_end:
        if round_.ended is not None:
            at_end.callback(round_.ended)
        _check_operation(table, plan, round_)
        options = _options(table, plan, round_)
        needs = _needs(table, plan, round_, options)
        prepared = at_end.enter_context(plan.work.prepared(table, round_.rows, plan.sql, needs))
        try:
            result = _ingest(table, plan, progress, round_, prepared, options, begin)
        except KeyFieldError:
            again = plan.work.with_paths(table, prepared.rows) if plan.keeps_bad else NO_ROUND
            if not again.bad:
                raise
            again = again._replace(bad=[*prepared.bad, *again.bad])
            result = _ingest(table, plan, progress, round_, again, options, begin)
    return None if result is None else replace(result, seconds=time.monotonic() - started_s)


def _options(table: HoodieTable, plan: Plan, round_: Round) -> WriteOptions:
    """Of the write. A column that all files of a round lack is null, as one that some of them lack: how rounds are cut changes no row.

    A query that leaves out what its rows have may be a mistake, and stays an error.
    """
    options = table._request_for(plan.operation, plan.options).write
    is_null = options.null_for_missing or (round_.may_lack and plan.sql is None)
    return replace(options, null_for_missing=is_null, operation=plan.operation, commits_empty=True)


def _needs(table: HoodieTable, plan: Plan, round_: Round, options: WriteOptions) -> Needs:
    keys, schema = table.config.record_key_fields, table.schema
    if schema is None:
        return Needs(keys)
    required = [] if plan.operation is WriteOperation.DELETE else [each.name for each in schema if not each.nullable]
    if not round_.may_lack or plan.sql is not None:
        return Needs(keys, required)
    nulls = {name if name in schema.names else name.partition(".")[0] for name in keys}
    nulls |= set() if options.partial else set(required)
    return Needs(keys, required, pa.schema([each for each in schema if each.name in nulls]))


def _ingest(
    table: HoodieTable,
    plan: Plan,
    progress: Progress,
    round_: Round,
    prepared: PreparedRound,
    options: WriteOptions,
    begin: Begin,
) -> IngestRound | None:
    """None: there is nothing that a commit could hold, such as files with names of columns alone. A later round reads them again."""
    bad = [*round_.bad, *prepared.bad]
    if bad and not plan.keeps_bad:
        first = bad[0]
        raise OptionError(
            f"{plan.source} has {format_count(len(bad), 'record')} that cannot be rows of table {table.uri}, the first in "
            f"{first.origin}: {first.reason}: {first.content[:200]!r}; nothing of this round was written. "
            "Correct them, or let them be quarantined: give quarantine=True, or leave --strict out"
        )
    result = IngestRound(
        number=progress.rounds,
        rows=prepared.size,
        bad=len(bad),
        pieces=round_.pieces,
        bytes=round_.bytes,
        waiting=round_.waiting,
        checkpoint=round_.checkpoint.text,
        dry_run=plan.dry_run,
    )
    if not plan.dry_run:
        if not _has_columns(table, prepared):
            if not (bad or round_.waiting):
                log.info("%s has no rows yet, and nothing that says what its columns are", plan.source)
                return None
            result = replace(result, quarantine=_kept_apart(table, plan, progress, bad, is_committed=False))
            begin.checkpoint = round_.checkpoint
            if round_.committed is not None:
                round_.committed()
            return result
        result = replace(result, quarantine=_kept_apart(table, plan, progress, bad))
        result = replace(result, instant=_write(table, plan, progress, round_, prepared, options, len(bad)))
        if round_.committed is not None and result.instant is not None:  # None: another run's batch, not this one
            round_.committed()
    return result


def rounds(
    table: HoodieTable,
    plan: Plan,
    *,
    continuous: bool,
    interval_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[IngestRound]:
    """Round after round until there is nothing new; `continuous`: then look again after a pause, for ever."""
    begin = Begin()
    while True:
        result = run_round(table, plan, begin)
        if result is not None:
            yield result
        if plan.dry_run or (result is None and not continuous):
            return
        if result is None or not result.waiting:
            if not continuous and table.schema is None:
                _no_rows(table)
            if not continuous:
                return
            sleep(interval_s)


def _check_operation(table: HoodieTable, plan: Plan, round_: Round) -> None:
    """Raises OptionError: the table would have rows twice, or would lose rows."""
    operation = plan.operation
    replaces = operation is WriteOperation.INSERT_OVERWRITE_TABLE
    if replaces and not round_.whole:
        raise OptionError(
            f"{plan.source} gives only new rows, and insert_overwrite_table would drop all other rows of table {table.uri}: use upsert"
        )
    if round_.repeats and operation in (WriteOperation.INSERT, WriteOperation.BULK_INSERT):
        instead = "upsert or insert_overwrite_table" if round_.whole else "upsert"
        raise OptionError(
            f"{plan.source} gives rows that table {table.uri} has already, and {operation.value.lower()} would write them twice: "
            f"use {instead}"
        )


def _kept_apart(
    table: HoodieTable, plan: Plan, progress: Progress, bad: Sequence[BadRecord], *, is_committed: bool = True
) -> str | None:
    """Write bad records down before the commit: of a round that is repeated the file is written anew.

    Rounds without a commit have the number of the one that follows. A checksum tells their files apart.
    """
    if not bad:
        return None
    lines = (json.dumps(record._asdict(), ensure_ascii=False) for record in bad)
    content = ("\n".join(lines) + "\n").encode()
    end = "" if is_committed else f"-{zlib.crc32(content):08x}"
    path = f"{QUARANTINE}/{plan.name}/{progress.rounds:08d}{end}.jsonl"
    table._context.storage.replace(path, content)
    log.warning(
        "%s of %s cannot be rows of table %s: kept in %s; the first: %s",
        format_count(len(bad), "record"),
        plan.source,
        table.uri,
        path,
        bad[0].reason,
    )
    return path


def _write(
    table: HoodieTable,
    plan: Plan,
    progress: Progress,
    round_: Round,
    prepared: PreparedRound,
    options: WriteOptions,
    bad: int,
) -> str | None:
    commit_entries = {**options.commit_entries, **entries(plan.name, round_.checkpoint, bad, plan.address)}
    options = replace(
        options,
        commit_entries=commit_entries,
        stream=StreamBatch(stream_of(plan.name), progress.rounds),
    )
    is_known = prepared.size or (table.schema is None and _has_columns(table, prepared))
    return plan.work.write(table, prepared.rows if is_known else _no_rows(table), options)


def _has_columns(table: HoodieTable, prepared: PreparedRound) -> bool:
    """Whether a commit can say the columns, with rows or without."""
    return table.schema is not None or bool(prepared.rows.columns)


def _no_rows(table: HoodieTable) -> pa.Table:
    """A table without rows has the columns of the target, as far as those are known."""
    schema = table.schema
    if schema is None:
        raise OptionError(
            f"table {table.uri} has no columns yet, and the first round has no rows: give the table a schema, or see what is "
            "wrong with the source"
        )
    return schema.empty_table()
