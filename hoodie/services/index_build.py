"""Partitions of the metadata table, built beside writers and dropped.

As Apache Hudi's action `indexing`: it is put on the timeline under the lock, the files of the snapshot are read without it, and
those that came meanwhile under it again, where the partition is written, named in the table's properties, and the instant completed.
Before that nobody reads or writes the partition, so that a writer in the midst has nothing to keep up. The property
`hoodie.table.metadata.partitions.inflight` stays empty: writers of Apache Hudi write to partitions that are named there.

Who dies leaves the instant, which holds nobody up, and perhaps files that the properties do not name; the next one removes both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from hoodie.errors import (
    CommitConflictError,
    CorruptFileError,
    HoodieError,
    MissingFileError,
    OptionError,
    UnsupportedTableError,
)
from hoodie.format.index_plans import IndexPlan, decode_index_plan, encode_index_metadata, encode_index_plan
from hoodie.metadata.data_groups import is_by_partition
from hoodie.metadata.expression_index import ExpressionPartition
from hoodie.metadata.expressions import IDENTITY
from hoodie.metadata.index_definitions import IndexDefinition, read_definition
from hoodie.metadata.initial import build_files, build_partition
from hoodie.metadata.keys import EXPRESSION_INDEX, FILES, RECORD_INDEX, SECONDARY_INDEX
from hoodie.metadata.keys_partition import KeysPartition
from hoodie.metadata.maintenance import PARTITIONS, dependents, partition_of, secondary_of
from hoodie.metadata.partition import MetadataPartition
from hoodie.metadata.secondary_index import value_index
from hoodie.metadata.table import MetadataTable, finished_partitions
from hoodie.metadata.writer import MetadataWriter
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import METADATA_TABLE, heartbeat_path, join
from hoodie.options.table import parse_table_config
from hoodie.services.catalog import SERVICES
from hoodie.timeline.pending import being_run
from hoodie.timeline.timeline import Timeline
from hoodie.txn.critical import refuse_amid_restore, under_lock
from hoodie.txn.earlier_writers import Patience
from hoodie.txn.heartbeat import WRITER, Heartbeat, Life, format_writer, life_of, writers_beside
from hoodie.txn.metadata_table import announce, drop_metadata_table, drop_partitions, look_at_metadata_table
from hoodie.txn.participants import require_held
from hoodie.undo.recovery import rollback_failed
from hoodie.view.context import TableContext, load_config

log = logging.getLogger("hoodie")

_FEW = 100
"""Files that came while others were read, which are left for the lock."""
_MOST_ROUNDS = 10
_CHANGED = (CorruptFileError, MissingFileError, FileNotFoundError)
"""Where others clean or compact while files are read without the lock."""
_TAKES_FILES = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)


class PendingBuild(NamedTuple):
    """An indexing that is on the timeline, and not completed."""

    instant: Instant
    plan: IndexPlan
    life: Life

    @property
    def is_ours(self) -> bool:
        return WRITER in self.plan.extra


def pending_builds(context: TableContext, timeline: Timeline) -> list[PendingBuild]:
    """What is being built, by whomever; plans that do not decode count as such of nothing."""
    return [
        PendingBuild(each, _plan_of(context, each), life_of(each.time, context))
        for each in timeline.pending(Action.INDEXING)
    ]


def build_index(context: TableContext, name: str) -> str | None:
    """Build a partition of the metadata table; gives the instant, None where it is there already. A damaged one is built anew.

    Raises:
        OptionError: there is no such partition, or the options say that it is dropped.
        CommitConflictError: another process builds it, or others stood in the way all the time.
        UnsupportedTableError: the table cannot have it.
    """
    partition = partition_named(context, name)
    rollback_failed(context, SERVICES)
    _settled(context, name, partial(_make_files, context))
    if name == FILES:
        return None
    with under_lock(context):
        timeline = context.active.load()
        refuse_amid_restore(context, timeline)
        end_builds(context, timeline, name)
        if _is_whole(context, timeline, name):
            return None
        upto = timeline.latest_commit
        plan = IndexPlan(
            (name,), InstantTime("") if upto is None else upto.time, format_writer(context.coordination.kind)
        )
        time = context.clock.allot(timeline.latest_time)
        heartbeat = Heartbeat(time, context)
        heartbeat.hold()
        try:
            heartbeat.start()
            requested = Instant(time, Action.INDEXING, State.REQUESTED)
            context.active.create(requested, encode_index_plan(plan))
            context.active.create(requested._replace(state=State.INFLIGHT))
        except BaseException:
            heartbeat.abandon()
            raise
    try:
        cache: dict[Hashable, Any] = {}
        _read_ahead(context, partition, cache)
        _settled(context, name, partial(_finish, context, partition, requested, plan, cache, heartbeat))
    except BaseException as exc:
        heartbeat.abandon()
        if isinstance(exc, Exception):
            with suppress(HoodieError, OSError), context.lock.held(context.lock_timeout_s):
                _take_back(context, requested)
        raise
    heartbeat.stop()
    return str(time)


def drop_index(context: TableContext, name: str) -> bool:
    """Drop a partition of the metadata table, or with `files` all of it; False where there was none.

    The properties go first: who dies then leaves a folder that nobody reads, and the next write or drop deletes it.

    Raises:
        CommitConflictError: a process builds it right now.
    """
    with under_lock(context):
        timeline = context.active.load()
        end_builds(context, timeline, name, also_of_others=True)
        if name == FILES:
            return drop_metadata_table(context.storage, why="as it was asked to be")
        return _drop(context, name)


def _drop(context: TableContext, name: str) -> bool:
    """With what is nothing without it."""
    state = look_at_metadata_table(context.storage)
    there = {*finished_partitions(state.properties), *(each.name for each in state.left_behind)}
    return drop_partitions(context.storage, name, *dependents(name, sorted(there)))


def partition_named(context: TableContext, name: str) -> MetadataPartition:
    """A partition that our writers keep up.

    Raises:
        OptionError: there is none of that name, or the options say that it is dropped.
    """
    options = context.view_options
    result = partition_of(str(name))  # whatever was given
    if result is None:
        names = [*(each.name for each in PARTITIONS), f"{SECONDARY_INDEX}NAME", f"{EXPRESSION_INDEX}NAME"]
        raise OptionError(f"there is no index {name!r}; choose from {', '.join(names)}")
    if name.startswith(SECONDARY_INDEX):
        result = secondary_of(name, options.secondary_index.column or _column_of(context, name))
    if name.startswith(EXPRESSION_INDEX):
        result = ExpressionPartition(name, _definition_of(context, name))
    if name == RECORD_INDEX:
        result = KeysPartition(by_partition=_is_by_partition(context))
    if options.metadata is False or result.is_wanted(options) is False:
        raise OptionError(
            f"index {name!r} was not built: the options of this table object say that it is dropped (hoodie.metadata.*); "
            "leave them out"
        )
    return result


def _is_by_partition(context: TableContext) -> bool:
    """Of a record index that is there, and to be built anew."""
    try:
        return is_by_partition(context.storage, look_at_metadata_table(context.storage).properties)
    except CorruptFileError:
        return False


def _column_of(context: TableContext, name: str) -> str:
    """Of a secondary index that is there, and to be built anew; else as its name has it."""
    properties = look_at_metadata_table(context.storage).properties
    try:
        return value_index(context.storage, properties, name).column
    except (CorruptFileError, UnsupportedTableError):
        return name.removeprefix(SECONDARY_INDEX)


def _definition_of(context: TableContext, name: str) -> IndexDefinition:
    """Of an expression index, by the options; without a column that which is there, and to be built anew.

    Raises:
        OptionError: neither is there.
    """
    options = context.view_options.expression_index
    if options.column is None:
        properties = look_at_metadata_table(context.storage).properties
        with suppress(CorruptFileError):
            result = read_definition(context.storage, properties, name)
            if result is not None:
                return result
        raise OptionError(
            f"index {name!r} was not built: say its column by hoodie.metadata.index.expression.column, and its function by "
            "hoodie.metadata.index.expression.options, such as expr=lower"
        )
    settings = dict(options.options)
    version = context.config.layout.index_version
    function = settings.get("expr", IDENTITY)
    return IndexDefinition(name, options.kind.lower(), function, (options.column,), version, settings)


def end_builds(context: TableContext, timeline: Timeline, name: str, *, also_of_others: bool = False) -> None:
    """Take pending builds of dead processes of ours back, and those of this partition in any case. The lock is held.

    Raises:
        CommitConflictError: somebody is at work on that.
    """
    for each in pending_builds(context, timeline):
        is_of_it = name in each.plan.partitions or name == FILES
        if each.is_ours and each.life is Life.DEAD:
            _take_back(context, each.instant)
        elif is_of_it and (each.is_ours or each.life is not Life.DEAD):
            who = context.liveness.holder(each.instant.time)
            raise CommitConflictError(being_run(each.instant, table=context.storage.uri, by=who))
        elif is_of_it and also_of_others:
            _take_back(context, each.instant)
        elif is_of_it:
            raise CommitConflictError(
                f"index {name!r} of table {context.storage.uri} is planned by Apache Hudi, in {each.instant}: run its indexer, or "
                "drop the index first, which removes the plan"
            )


def end_dead_builds(context: TableContext) -> None:
    """Take pending builds of dead processes of ours back."""
    if any(each.is_ours and each.life is Life.DEAD for each in pending_builds(context, context.active.load())):
        with under_lock(context):
            end_builds(context, context.active.load(), "")


def _plan_of(context: TableContext, instant: Instant) -> IndexPlan:
    path = context.active.path(instant._replace(state=State.REQUESTED))
    try:
        return decode_index_plan(context.storage.read(path), path=path)
    except (CorruptFileError, FileNotFoundError):
        return IndexPlan((), InstantTime(""))


def _take_back(context: TableContext, instant: Instant) -> None:
    """The plan last: it is by that that whoever comes next finds the rest."""
    context.storage.delete(heartbeat_path(instant.time))
    context.liveness.release(instant.time)
    for state in (State.INFLIGHT, State.REQUESTED):
        context.active.remove(instant._replace(state=state))


def _settled(context: TableContext, name: str, act: Callable[[], Instant | None]) -> None:
    """Do it under the lock at a moment when nothing stands in the way; `act` gives what does, None when it is done.

    Raises:
        CommitConflictError: something did all the time.
    """
    patience = Patience(context.view_options.index_wait_s)
    while True:
        with under_lock(context):
            in_the_way = act()
        if in_the_way is None:
            return
        if not patience.pause(context.clock):
            raise CommitConflictError(
                f"index {name!r} of table {context.storage.uri} was not built: {in_the_way} is pending; try again when it has ended"
            )


def _is_whole(context: TableContext, timeline: Timeline, name: str) -> bool:
    """Whether the partition is there and can be used. One that cannot is dropped, under the lock; without `files` all of them."""
    config = load_config(context.storage)
    if name not in finished_partitions(config.raw):
        return False
    problem = MetadataTable.open(context.storage, config, timeline, context.cache).problem_of(name)
    if problem is not None and name != FILES:
        log.warning("index %s of %s is built anew: %s", name, context.storage.uri, problem)
        _drop(context, name)
    return problem is None


def _make_files(context: TableContext) -> Instant | None:
    """The partition `files`, which all others need; gives the instant that stands in the way."""
    timeline = context.active.load()
    if _is_whole(context, timeline, FILES):
        return None
    state = look_at_metadata_table(context.storage)
    pending = next((each for each in timeline.at_work if each.action is not Action.INDEXING), None)
    if pending is None:
        drop_metadata_table(context.storage, state)
        if build_files(context):
            announce(context.storage, FILES)
    return pending


def _read_ahead(context: TableContext, partition: MetadataPartition, cache: dict[Hashable, Any]) -> None:
    """Read the files of the table without the lock, and those that have come meanwhile, until these are few."""
    for _ in range(_MOST_ROUNDS):
        before = len(cache)
        try:
            config = parse_table_config(look_at_metadata_table(context.storage).properties, uri=context.storage.uri)
            timeline = context.active.load()
            writer = MetadataWriter.open(context, config, timeline, [PARTITIONS[0]], (), has_lock=False)
            partition.first(replace(writer.scope, cache=cache), writer.table.sizes())
        except _CHANGED:
            continue  # the lock's holder sees whether that stays so
        if len(cache) - before <= _FEW:
            return


def _finish(
    context: TableContext,
    partition: MetadataPartition,
    requested: Instant,
    plan: IndexPlan,
    cache: dict[Hashable, Any],
    heartbeat: Heartbeat,
) -> Instant | None:
    """Read what has come since, write the partition, and complete the instant; gives what stands in the way. The lock is held."""
    active, storage, name = context.active, context.storage, partition.name
    timeline = active.load()
    refuse_amid_restore(context, timeline)
    if heartbeat.is_lost() or not active.exists(requested._replace(state=State.INFLIGHT)):
        raise CommitConflictError(
            f"index {name!r} of table {storage.uri} was not built: another process has taken this build for dead; run it again"
        )
    state = look_at_metadata_table(storage)
    finished = finished_partitions(state.properties)
    if name not in finished:
        if FILES not in finished:
            raise CommitConflictError(
                f"index {name!r} of table {storage.uri} was not built: another writer dropped the metadata table; run it again"
            )
        deleting = timeline.pending(*_TAKES_FILES)
        if deleting:
            return deleting[0]
        writers_beside(timeline, context)
        if any(each.is_folder and each.name == name for each in state.left_behind):
            storage.delete_folder(join(METADATA_TABLE, name))
        config = parse_table_config(state.properties, uri=storage.uri)
        pending = [each.time for each in timeline.pending()]
        more = build_partition(context, config, partition, ignored=pending, cache=cache)
        require_held(context)
        announce(storage, name, more)
    upto = timeline.latest_commit
    final_plan = plan if upto is None else replace(plan, upto=upto.time)
    active.create(context.completing(requested._replace(state=State.COMPLETED)), encode_index_metadata(final_plan))
    return None
