"""Procedures that change a table or copy from it, by the methods of `HoodieTable`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from hoodie.errors import OptionError
from hoodie.model.findings import RepairKind
from hoodie.model.names import folder_of
from pyspark_hoodie.procedure_shows import Given, Row, clusterings, compactions
from pyspark_hoodie.table import HoodieTable

_SCHEDULE, _EXECUTE, _BOTH = "schedule", "execute", "scheduleandexecute"


def _operation(given: Given) -> str:
    """What `op` asks for; instants that are named are run."""
    found = given.text("op").lower()
    if found and found not in ("run", _SCHEDULE, _EXECUTE, _BOTH):
        raise OptionError(f"CALL {given.procedure}: op is {_SCHEDULE}, {_EXECUTE} or scheduleAndExecute, not {found!r}")
    if given.text("instants") or given.get("timestamp"):
        return _EXECUTE
    return _BOTH if found in ("", "run") else found


def _instants(given: Given, pending: Iterable[str]) -> list[str]:
    """Those to run: the named ones, or all that are pending."""
    there = list(pending)
    named = given.listed("instants") or ([str(given["timestamp"])] if given.get("timestamp") else [])
    unknown = [time for time in named if time not in there]
    if unknown:
        raise OptionError(
            f"CALL {given.procedure}: {unknown[0]} is not pending; pending are {', '.join(there) or 'none'}"
        )
    return (named or there)[: given.number("limit")]


def run_compaction(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Schedules a compaction, or runs those that are pending."""
    operation, options = _operation(given), given.options()
    made = table.schedule_compaction(options) if operation != _EXECUTE else None
    if operation == _SCHEDULE:
        return compactions(table, [made] if made else [])
    times = _instants(given, (i.time for i in table.pending_compactions()))
    for instant in times:
        table.run_compaction(instant, None, options)
    return compactions(table, times)


def run_clustering(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Schedules a clustering, or runs those that are pending."""
    operation, options = _operation(given), given.options()
    if given.text("selected_partitions"):
        options["hoodie.clustering.plan.strategy.partition.selected"] = given.text("selected_partitions")
    if given.text("partition_regex_pattern"):
        options["hoodie.clustering.plan.strategy.partition.regex.pattern"] = given.text("partition_regex_pattern")
    made = None
    if operation != _EXECUTE:
        made = table.schedule_clustering(
            given.listed("order") or None,
            given.text("order_strategy").lower() or None,
            given.text("predicate") or None,
            options=options,
        )
    shown = given["show_involved_partition"]
    if operation == _SCHEDULE:
        return clusterings(table, [made] if made else [], partitions=shown)
    times = _instants(given, (i.time for i in table.pending_clusterings()))
    for instant in times:
        table.run_clustering(instant, None, given.options())
    return clusterings(table, times, partitions=shown)


_CLEAN = {
    "clean_policy": "hoodie.clean.policy",
    "retain_commits": "hoodie.clean.commits.retained",
    "hours_retained": "hoodie.clean.hours.retained",
    "file_versions_retained": "hoodie.clean.fileversions.retained",
    "trigger_strategy": "hoodie.clean.trigger.strategy",
    "trigger_max_commits": "hoodie.clean.trigger.max.commits",
}


def run_clean(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Deletes old versions of files."""
    stated = {option: str(given[name]) for name, option in _CLEAN.items() if given.get(name) is not None}
    done = table.clean({**stated, **given.options()})
    if done.instant is not None:
        yield done.instant, round(done.seconds * 1000), done.files, done.earliest_retained, "{}", 2


def archive_commits(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Moves old commits to the archived timeline."""
    table.archive(given.options(), min_commits=given.number("min_commits"), max_commits=given.number("max_commits"))
    yield (0,)


def run_ttl(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Deletes partitions that have expired."""
    kind = {"hoodie.partition.ttl.management.strategy.type": given["ttl_policy"]} if given.text("ttl_policy") else {}
    for path in table.expire_partitions(given.get("retain_days"), {**kind, **given.options()}).partitions:
        yield (path,)


def run_rollback_inflight_tableservice(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Undoes a service that is pending."""
    started = time.monotonic()
    done = table.rollback(given.text("pending_instant"))
    for instant in done:
        yield instant, f"{round((time.monotonic() - started) * 1000)}"


# -- Savepoints, and back to them.


def create_savepoint(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Keeps the state after a commit."""
    table.savepoint(given.text("commit_time") or None, given.text("comments"))
    yield (True,)


def _saved(table: HoodieTable, given: Given) -> str:
    """The savepoint that is named, else the newest."""
    there = [each.instant for each in table.savepoints()]
    named = given.text("instant_time") or (there[-1] if there else "")
    if named not in there:
        raise OptionError(
            f"CALL {given.procedure}: there is no savepoint {named} in table {table.uri}: CALL show_savepoints lists them"
        )
    return named


def delete_savepoint(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Drops a savepoint."""
    table.drop_savepoint(_saved(table, given))
    yield (True,)


def rollback_to_savepoint(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Takes the table back to a savepoint."""
    table.restore(_saved(table, given))
    yield (True,)


def rollback_to_instant(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Undoes the newest commit."""
    table.rollback(given.text("instant_time"))
    yield (True,)


# -- Partitions and rows.


def drop_partition(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Deletes partitions."""
    table.delete_partitions(given.listed("partition"))
    yield ("Success",)


def truncate_table(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Deletes all rows, or those of some partitions."""
    started = time.monotonic()
    if given.text("partitions"):
        table.delete_partitions(given.listed("partitions"))
    elif table.timeline.commits:
        table.insert_overwrite_table(table.read().limit(0))
    yield "SUCCESS", round((time.monotonic() - started) * 1000)


def _copied(table: HoodieTable, given: Given) -> DataFrame:
    kind, as_of = given.text("query_type"), given.text("as_of_instant") or None
    begin, end = given.text("begin_instance_time") or None, given.text("end_instance_time") or None
    if kind == "incremental":
        if begin is None:
            raise OptionError(f"CALL {given.procedure}: an incremental query needs begin_instance_time")
        frame = table.changes(None if not begin.strip("0") else begin, end, meta_columns=True)
    else:
        frame = table.read(query=kind, as_of=as_of, meta_columns=True)
    names = given.listed("columns")
    return frame.select(*names) if names else frame


def copy_to_table(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Copies rows into another table."""
    _copied(table, given).write.mode(given.text("save_mode")).saveAsTable(given.text("new_table"))
    yield (0,)


def copy_to_temp_view(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Gives rows the name of a temporary view."""
    frame = _copied(table, given)
    verb = "createOrReplace" if given["replace"] else "create"
    getattr(frame, f"{verb}{'Global' if given['global'] else ''}TempView")(given.text("view_name"))
    yield (0,)


def export_instants(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Copies the files of completed instants to a folder of the driver."""
    folder, wanted = Path(given.text("local_folder")), given.listed("actions")
    folder.mkdir(parents=True, exist_ok=True)
    instants = [i for i in table.timeline if i.is_completed and i.action in wanted]
    if given["desc"]:
        instants.reverse()
    active = table._context.active
    for instant in instants[: given.number("limit")]:
        path = active.path(instant)
        (folder / path.removeprefix(f"{folder_of(path)}/")).write_bytes(active.storage.read(path))
    count = len(instants[: given.number("limit")])
    yield (f"Exported {count} Instants to {folder}",)


# -- The metadata table, versions, Hive, repairs.


def create_metadata_table(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Makes the metadata table."""
    started = time.monotonic()
    table.build_index("files")
    yield (f"Created Metadata Table in {table.uri}/.hoodie/metadata (duration={time.monotonic() - started:.2f}secs)",)


def init_metadata_table(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Makes the metadata table if there is none."""
    started = time.monotonic()
    if not given["read_only"]:
        table.build_index("files")
    done = "Opened" if given["read_only"] else "Initialized"
    yield (f"{done} Metadata Table in {table.uri}/.hoodie/metadata (duration={time.monotonic() - started:.2f}sec)",)


def delete_metadata_table(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Drops the metadata table; the next write whose options ask for one makes it anew."""
    table.drop_index("files")
    yield (f"Deleted Metadata Table at '{table.uri}/.hoodie/metadata'",)


_VERSIONS = {"SIX": 6, "EIGHT": 8, "NINE": 9}


def _version(given: Given) -> int:
    word = given.text("to_version").strip().upper()
    if word not in _VERSIONS and not word.isdigit():
        raise OptionError(f"CALL {given.procedure}: to_version is one of {', '.join(_VERSIONS)}, not {word!r}")
    return _VERSIONS.get(word) or int(word)


def upgrade_table(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Makes the table one of a later version."""
    table.upgrade(_version(given))
    yield (True,)


def downgrade_table(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Makes the table one of an earlier version."""
    table.downgrade(_version(given))
    yield (True,)


_HIVE = ("username", "password", "use_jdbc", "mode", "partition_fields", "partition_extractor_class")


def hive_sync(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Registers the table in a Hive metastore."""
    options = {f"hoodie.datasource.hive_sync.{name}": given.text(name) for name in _HIVE if given.text(name)}
    if given.text("sync_incremental"):
        options["hoodie.meta.sync.incremental"] = given.text("sync_incremental")
    table.register_in_hive(metastore=given.text("metastore_uri") or None, options=options)
    yield ("hive sync success.",)


def repair_add_partition_meta(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Writes files that make folders partitions anew."""
    done = table.repair(RepairKind.PARTITION_METADATA, dry_run=given["dry_run"])
    lacking = {folder_of(each.path) for each in done.of(RepairKind.PARTITION_METADATA)}
    for path in sorted({*table.partitions(), *lacking}):
        yield (
            path,
            "No" if path in lacking else "Yes",
            ("None" if given["dry_run"] else "Repaired") if path in lacking else "None",
        )


def repair_corrupted_clean_files(table: HoodieTable, given: Given) -> Iterator[Row]:
    """Removes damaged plans of cleans and other services."""
    table.repair(RepairKind.PLANS, dry_run=False)
    yield (True,)


ACTIONS: Mapping[str, Callable[[HoodieTable, Given], Iterable[Row]]] = {
    each.__name__: each
    for each in (
        *(run_compaction, run_clustering, run_clean, archive_commits, run_ttl, run_rollback_inflight_tableservice),
        *(create_savepoint, delete_savepoint, rollback_to_savepoint, rollback_to_instant),
        *(drop_partition, truncate_table, copy_to_table, copy_to_temp_view, export_instants),
        *(create_metadata_table, init_metadata_table, delete_metadata_table, upgrade_table, downgrade_table, hive_sync),
        *(repair_add_partition_meta, repair_corrupted_clean_files),
    )
}
"""By the name of the procedure."""
