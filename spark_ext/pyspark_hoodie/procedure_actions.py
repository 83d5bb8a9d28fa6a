"""Procedures that change a table or copy from it, by the methods of `HoodieTable`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from hoodie.errors import OptionError
from hoodie.model.findings import RepairKind
from hoodie.model.names import MARKERS, folder_of, join
from pyspark_hoodie.procedure_shows import Arguments, Row, clusterings, compactions
from pyspark_hoodie.table import HoodieTable

_SCHEDULE, _EXECUTE, _BOTH = "schedule", "execute", "scheduleandexecute"


def _operation(arguments: Arguments) -> str:
    """The operation that `op` asks for; with requested instants it is to run those."""
    operation = arguments.text("op").lower()
    if operation and operation not in ("run", _SCHEDULE, _EXECUTE, _BOTH):
        raise OptionError(
            f"CALL {arguments.procedure}: op is {_SCHEDULE}, {_EXECUTE} or scheduleAndExecute, not {operation!r}"
        )
    if arguments.text("instants") or arguments.get("timestamp"):
        return _EXECUTE
    return _BOTH if operation in ("", "run") else operation


def _instants(arguments: Arguments, pending: Iterable[str]) -> list[str]:
    """The instants to run: the requested ones, or all pending ones."""
    there = list(pending)
    requested = arguments.texts("instants") or ([str(arguments["timestamp"])] if arguments.get("timestamp") else [])
    unknown = [time for time in requested if time not in there]
    if unknown:
        raise OptionError(
            f"CALL {arguments.procedure}: {unknown[0]} is not pending; pending are {', '.join(there) or 'none'}"
        )
    return (requested or there)[: arguments.number("limit")]


def run_compaction(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Schedules a compaction, or runs those that are pending."""
    operation, options = _operation(arguments), arguments.options()
    scheduled_time = table.schedule_compaction(options) if operation != _EXECUTE else None
    if operation == _SCHEDULE:
        return compactions(table, [scheduled_time] if scheduled_time else [])
    times = _instants(arguments, (i.time for i in table.pending_compactions()))
    for instant in times:
        table.run_compaction(instant, None, options)
    return compactions(table, times)


def run_clustering(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Schedules a clustering, or runs those that are pending."""
    operation, options = _operation(arguments), arguments.options()
    if arguments.text("selected_partitions"):
        options["hoodie.clustering.plan.strategy.partition.selected"] = arguments.text("selected_partitions")
    if arguments.text("partition_regex_pattern"):
        options["hoodie.clustering.plan.strategy.partition.regex.pattern"] = arguments.text("partition_regex_pattern")
    scheduled_time = None
    if operation != _EXECUTE:
        scheduled_time = table.schedule_clustering(
            arguments.texts("order") or None,
            arguments.text("order_strategy").lower() or None,
            arguments.text("predicate") or None,
            options=options,
        )
    with_partitions = arguments["show_involved_partition"]
    if operation == _SCHEDULE:
        return clusterings(table, [scheduled_time] if scheduled_time else [], partitions=with_partitions)
    times = _instants(arguments, (i.time for i in table.pending_clusterings()))
    for instant in times:
        table.run_clustering(instant, None, arguments.options())
    return clusterings(table, times, partitions=with_partitions)


_CLEAN = {
    "clean_policy": "hoodie.clean.policy",
    "retain_commits": "hoodie.clean.commits.retained",
    "hours_retained": "hoodie.clean.hours.retained",
    "file_versions_retained": "hoodie.clean.fileversions.retained",
    "trigger_strategy": "hoodie.clean.trigger.strategy",
    "trigger_max_commits": "hoodie.clean.trigger.max.commits",
}


def run_clean(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Deletes old versions of files."""
    limits = {option: str(arguments[name]) for name, option in _CLEAN.items() if arguments.get(name) is not None}
    result = table.clean({**limits, **arguments.options()})
    if result.instant is not None:
        yield result.instant, round(result.seconds * 1000), result.files, result.earliest_retained, "{}", 2


def archive_commits(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Moves old commits to the archived timeline."""
    table.archive(
        arguments.options(), min_commits=arguments.number("min_commits"), max_commits=arguments.number("max_commits")
    )
    yield (0,)


def run_ttl(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Deletes partitions that have expired."""
    kind = (
        {"hoodie.partition.ttl.management.strategy.type": arguments["ttl_policy"]}
        if arguments.text("ttl_policy")
        else {}
    )
    for path in table.expire_partitions(arguments.get("retain_days"), {**kind, **arguments.options()}).partitions:
        yield (path,)


def run_rollback_inflight_tableservice(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Undoes a service that is pending."""
    started = time.monotonic()
    instants = table.rollback(arguments.text("pending_instant"))
    for instant in instants:
        yield instant, f"{round((time.monotonic() - started) * 1000)}"


# -- Savepoints, and back to them.


def create_savepoint(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Keeps the state after a commit."""
    table.savepoint(arguments.text("commit_time") or None, arguments.text("comments"))
    yield (True,)


def _saved(table: HoodieTable, arguments: Arguments) -> str:
    """The requested savepoint, or the newest."""
    there = [each.instant for each in table.savepoints()]
    instant = arguments.text("instant_time") or (there[-1] if there else "")
    if instant not in there:
        raise OptionError(
            f"CALL {arguments.procedure}: there is no savepoint {instant} in table {table.uri}: CALL show_savepoints lists them"
        )
    return instant


def delete_savepoint(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Drops a savepoint."""
    table.drop_savepoint(_saved(table, arguments))
    yield (True,)


def rollback_to_savepoint(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Takes the table back to a savepoint."""
    table.restore(_saved(table, arguments))
    yield (True,)


def rollback_to_instant(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Undoes the newest commit."""
    table.rollback(arguments.text("instant_time"))
    yield (True,)


# -- Partitions and rows.


def drop_partition(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Deletes partitions."""
    table.delete_partitions(arguments.texts("partition"))
    yield ("Success",)


def truncate_table(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Deletes all rows, or those of some partitions."""
    started = time.monotonic()
    if arguments.text("partitions"):
        table.delete_partitions(arguments.texts("partitions"))
    elif table.timeline.commits:
        table.insert_overwrite_table(table.read().limit(0))
    yield "SUCCESS", round((time.monotonic() - started) * 1000)


def _copied(table: HoodieTable, arguments: Arguments) -> DataFrame:
    kind, as_of = arguments.text("query_type"), arguments.text("as_of_instant") or None
    begin, end = arguments.text("begin_instance_time") or None, arguments.text("end_instance_time") or None
    if kind == "incremental":
        if begin is None:
            raise OptionError(f"CALL {arguments.procedure}: an incremental query needs begin_instance_time")
        frame = table.changes(None if not begin.strip("0") else begin, end, meta_columns=True)
    else:
        frame = table.read(query=kind, as_of=as_of, meta_columns=True)
    names = arguments.texts("columns")
    return frame.select(*names) if names else frame


def copy_to_table(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Copies rows into another table."""
    _copied(table, arguments).write.mode(arguments.text("save_mode")).saveAsTable(arguments.text("new_table"))
    yield (0,)


def copy_to_temp_view(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Gives rows the name of a temporary view."""
    frame = _copied(table, arguments)
    verb = "createOrReplace" if arguments["replace"] else "create"
    getattr(frame, f"{verb}{'Global' if arguments['global'] else ''}TempView")(arguments.text("view_name"))
    yield (0,)


def export_instants(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Copies the files of completed instants to a folder of the driver."""
    folder, actions = Path(arguments.text("local_folder")), arguments.texts("actions")
    folder.mkdir(parents=True, exist_ok=True)
    instants = [i for i in table.timeline if i.is_completed and i.action in actions]
    if arguments["desc"]:
        instants.reverse()
    active = table._context.active
    for instant in instants[: arguments.number("limit")]:
        path = active.path(instant)
        (folder / path.removeprefix(f"{folder_of(path)}/")).write_bytes(active.storage.read(path))
    count = len(instants[: arguments.number("limit")])
    yield (f"Exported {count} Instants to {folder}",)


# -- The metadata table, versions, Hive, repairs.


def create_metadata_table(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Makes the metadata table."""
    started = time.monotonic()
    table.build_index("files")
    yield (f"Created Metadata Table in {table.uri}/.hoodie/metadata (duration={time.monotonic() - started:.2f}secs)",)


def init_metadata_table(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Makes the metadata table if there is none."""
    started = time.monotonic()
    if not arguments["read_only"]:
        table.build_index("files")
    verb = "Opened" if arguments["read_only"] else "Initialized"
    yield (f"{verb} Metadata Table in {table.uri}/.hoodie/metadata (duration={time.monotonic() - started:.2f}sec)",)


def delete_metadata_table(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Drops the metadata table; the next write whose options ask for one makes it anew."""
    table.drop_index("files")
    yield (f"Deleted Metadata Table at '{table.uri}/.hoodie/metadata'",)


_VERSIONS = {"SIX": 6, "EIGHT": 8, "NINE": 9}


def _version(arguments: Arguments) -> int:
    word = arguments.text("to_version").strip().upper()
    if word not in _VERSIONS and not word.isdigit():
        raise OptionError(f"CALL {arguments.procedure}: to_version is one of {', '.join(_VERSIONS)}, not {word!r}")
    return _VERSIONS.get(word) or int(word)


def upgrade_table(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Makes the table one of a later version."""
    table.upgrade(_version(arguments))
    yield (True,)


def downgrade_table(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Makes the table one of an earlier version."""
    table.downgrade(_version(arguments))
    yield (True,)


_HIVE = ("username", "password", "use_jdbc", "mode", "partition_fields", "partition_extractor_class")


def hive_sync(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Registers the table in a Hive metastore."""
    options = {f"hoodie.datasource.hive_sync.{name}": arguments.text(name) for name in _HIVE if arguments.text(name)}
    if arguments.text("sync_incremental"):
        options["hoodie.meta.sync.incremental"] = arguments.text("sync_incremental")
    table.register_in_hive(metastore=arguments.text("metastore_uri") or None, options=options)
    yield ("hive sync success.",)


def repair_add_partition_meta(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Writes files that make folders partitions anew."""
    result = table.repair(RepairKind.PARTITION_METADATA, dry_run=arguments["dry_run"])
    lacking = {folder_of(each.path) for each in result.of(RepairKind.PARTITION_METADATA)}
    for path in sorted({*table.partitions(), *lacking}):
        yield (
            path,
            "No" if path in lacking else "Yes",
            ("None" if arguments["dry_run"] else "Repaired") if path in lacking else "None",
        )


def delete_marker(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Deletes the markers that an instant left behind."""
    instant = arguments.text("instant_time").strip()
    if any(each.time == instant and not each.is_completed for each in table.timeline):
        raise OptionError(
            f"CALL delete_marker: instant {instant} is pending, and its markers say which files it wrote: CALL "
            "rollback_to_instant undoes it, and deletes them"
        )
    if instant.isdigit():
        table._context.storage.delete_folder(join(MARKERS, instant))
    yield (True,)


def repair_corrupted_clean_files(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Removes damaged plans of cleans and other services."""
    table.repair(RepairKind.PLANS, dry_run=False)
    yield (True,)


ACTIONS: Mapping[str, Callable[[HoodieTable, Arguments], Iterable[Row]]] = {
    each.__name__: each
    for each in (
        *(run_compaction, run_clustering, run_clean, archive_commits, run_ttl, run_rollback_inflight_tableservice),
        *(create_savepoint, delete_savepoint, rollback_to_savepoint, rollback_to_instant),
        *(drop_partition, truncate_table, copy_to_table, copy_to_temp_view, export_instants),
        *(create_metadata_table, init_metadata_table, delete_metadata_table, upgrade_table, downgrade_table, hive_sync),
        *(repair_add_partition_meta, repair_corrupted_clean_files, delete_marker),
    )
}
"""By the name of the procedure."""
