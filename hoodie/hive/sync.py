"""Registers a table in a catalog, and brings what is registered up to the table's last commit.

Each step may be done twice, and the note of the last commit is written last. So a registration that dies leaves work to the
next one and no damage, and of two at once each does what the other has done, too. No catalog is asked to swap on condition: who finds
at the end that another registration has ended meanwhile looks once more at all that was committed since its own beginning, for it
may have registered a partition that the other one has just dropped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hoodie.aws.client import Client
from hoodie.errors import HiveSyncError, SchemaError
from hoodie.hive.catalog import Catalog, Column, Registration, Values, columns_of
from hoodie.hive.evolution import changes
from hoodie.hive.glue import Glue, MakeClient
from hoodie.hive.metastore import Connect, Metastore
from hoodie.hive.partition_changes import Commits, PartitionChanges, SyncMark, partitions_with_rows
from hoodie.hive.partitions import PartitionValues
from hoodie.hive.views import PATH, SCHEMA_PART, SCHEMA_PARTS, Description, View, describe, views_of
from hoodie.metastore.interface import connected
from hoodie.model.hive_results import HiveSyncResult, RegisteredTable
from hoodie.model.instant import InstantTime
from hoodie.model.late import once
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.option import option_name
from hoodie.options.values import CatalogKind
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import table_schema_json

LAST_COMMIT, LAST_COMPLETION = "last_commit_time_sync", "last_commit_completion_time_sync"
"""Parameters in which Apache Hudi notes up to where a table is registered: it goes on where we ended, and we where it did."""
_DEFAULT_DATABASE = "default"
_TRIES = 5


def sync(
    context: TableContext,
    options: HiveSyncOptions,
    *,
    dry_run: bool = False,
    connect: Connect = connected,
    make_client: MakeClient = Client,
) -> HiveSyncResult:
    """Register the table in each catalog that the options name, or bring its registrations up to date.

    Args:
        dry_run: only ask the catalogs, and say what would be told to them.
        connect, make_client: give a client of a Hive metastore, and of a service of AWS.

    Raises:
        HiveSyncError: a catalog does not answer in time, or refuses; the others were told all the same.
        SchemaError, OptionError: the table cannot be registered so.
    """
    started_s = time.monotonic()
    result, failures = HiveSyncResult(dry_run=dry_run), []
    for kind in options.catalogs:
        try:
            if kind is CatalogKind.GLUE:
                glue = Glue(options.glue, timeout_s=options.timeout_s, reads_only=dry_run, make_client=make_client)
                step = _in_catalog(context, options.in_glue(), glue, dry_run=dry_run)
            else:
                hive = Metastore(options.servers, timeout_s=options.timeout_s, reads_only=dry_run, connect=connect)
                step = _in_catalog(context, options, hive, dry_run=dry_run)
        except HiveSyncError as exc:
            failures.append(exc)
        else:
            result = replace(
                result, tables=result.tables + step.tables, database_made=result.database_made or step.database_made
            )
    if failures:
        raise failures[0] if len(failures) == 1 else HiveSyncError("; ".join(map(str, failures)))
    return replace(result, seconds=time.monotonic() - started_s)


def _in_catalog(context: TableContext, options: HiveSyncOptions, catalog: Catalog, *, dry_run: bool) -> HiveSyncResult:
    config = context.config
    database = options.database or config.database_name or _DEFAULT_DATABASE
    views = views_of(config.table_type, options.table or config.name, options)
    with catalog:
        is_new = _required_database(catalog, database, options)
        work = _Work(context, options, catalog, database, PartitionValues.of(config, options), dry_run=dry_run)
        tables = tuple(work.bring_up_to_date(view) for view in views)
    return HiveSyncResult(tables, database if is_new else None, dry_run=dry_run)


def _required_database(catalog: Catalog, database: str, options: HiveSyncOptions) -> bool:
    """Whether it had to be made."""
    if catalog.has_database(database):
        return False
    if not options.creates_database:
        raise HiveSyncError(
            f"{catalog} has no database {database!r}: create it, or set {option_name(HiveSyncOptions, 'creates_database')}=true"
        )
    catalog.make_database(database)
    return True


class _Now:
    """The table as it is at one moment."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self.snapshot: Snapshot = context.snapshot()

    @once
    def commits(self) -> Commits:
        return Commits(self._context, self.snapshot)

    @once
    def schema_json(self) -> str:
        result = table_schema_json(self.snapshot.active, self.snapshot.timeline, self.snapshot.properties)
        if result is None:
            raise SchemaError(
                f"table {self._context.storage.uri} cannot be registered in a catalog yet: it has no columns; "
                "write to it first"
            )
        return result


class _Change(NamedTuple):
    is_new: bool = False
    columns: tuple[str, ...] = ()
    properties: bool = False


class _PartitionCounts(NamedTuple):
    """What was done to partitions, by their paths."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def and_then(self, later: _PartitionCounts) -> _PartitionCounts:
        return _PartitionCounts(*(tuple(dict.fromkeys((*one, *other))) for one, other in zip(self, later, strict=True)))


@dataclass
class _Work:
    """One registration."""

    context: TableContext
    options: HiveSyncOptions
    catalog: Catalog
    database: str
    values: PartitionValues
    dry_run: bool
    now: _Now | None = None

    def bring_up_to_date(self, view: View) -> RegisteredTable:
        first_note: SyncMark | None = None
        changed, parted = _Change(), _PartitionCounts()
        for _ in range(_TRIES):
            table = self.catalog.table(self.database, view.name)
            before = _noted(table)
            now = self._at_least(before)
            described = self._described(view, now)
            table, change = self._brought(table, described)
            changed = _Change(
                changed.is_new or change.is_new,
                changed.columns + change.columns,
                changed.properties or change.properties,
            )
            if change.is_new:
                before = SyncMark(None, None)
            first_note = before if first_note is None else first_note
            touched = now.commits.touched_since(first_note) if self.options.incremental else None
            parted = parted.and_then(self._with_partitions(table, described, touched, now, is_new=change.is_new))
            result = RegisteredTable(
                described.full_name,
                made=changed.is_new,
                columns=changed.columns,
                properties_changed=changed.properties,
                added=parted.added,
                updated=parted.updated,
                dropped=parted.dropped,
                noted=now.commits.newest.instant,
            )
            if self.dry_run or self._noted_newest(described, before, now.commits.newest, changed=result.changed):
                return result
            self.now = None
        raise HiveSyncError(
            f"{self.database}.{view.name} was registered by other programs {_TRIES} times in a row: run it again"
        )

    def _at_least(self, noted: SyncMark) -> _Now:
        """The table as it is now, or was a moment ago: never before the commit that another registration has noted."""
        is_current = self.now is not None and noted.instant in {None, *self.now.snapshot.timeline.completed_times}
        if self.now is None or not is_current:
            self.now = _Now(self.context)
        return self.now

    def _described(self, view: View, now: _Now) -> Description:
        described = describe(
            self.context.config,
            now.schema_json,
            self.options,
            view,
            database=self.database,
            location=self.options.path or self.context.storage.uri,
            values=self.values,
        )
        return replace(described, properties={**self.catalog.properties, **described.properties})

    # -- the table ---------------------------------------------------------------------------------------------------

    def _brought(self, table: Registration | None, described: Description) -> tuple[Registration, _Change]:
        """Register the table, or bring its registration up to date; gives the registration and what changed."""
        registration = Registration.of(described)
        if table is None:
            if self.catalog.make_table(registration):
                return registration, _Change(is_new=True)
            table = self.catalog.table(self.database, described.view.name)  # another registration was faster
        if table is None:
            raise HiveSyncError(f"{described.full_name} was created and dropped by other programs: run it again")
        difference = changes(table.columns, registration.columns)
        hindrance = _hindrance(table, registration) or _hindering_types(difference.refused)
        if hindrance is not None:
            if not self.options.recreates:
                table_option, recreates = (option_name(HiveSyncOptions, each) for each in ("table", "recreates"))
                raise HiveSyncError(
                    f"{described.full_name} of {self.catalog} {hindrance}: register by another name "
                    f"({table_option}), or let the registration be replaced ({recreates}=true; files are not touched)"
                )
            self.catalog.drop_registration(self.database, described.view.name)
            self.catalog.make_table(registration)
            return registration, _Change(is_new=True)
        target = _brought_to(table, described)
        if target == table:
            return table, _Change()
        has_new_columns = target.columns != table.columns
        self.catalog.change_table(target, cascade=has_new_columns and bool(self.values.fields))
        column_changes = difference.descriptions or (("comments changed",) if has_new_columns else ())
        return target, _Change(columns=column_changes, properties=replace(target, columns=table.columns) != table)

    # -- its partitions ----------------------------------------------------------------------------------------------

    def _with_partitions(
        self, table: Registration, described: Description, touched: PartitionChanges | None, now: _Now, *, is_new: bool
    ) -> _PartitionCounts:
        if not self.values.fields or not self.options.with_partitions:
            return _PartitionCounts()
        if touched is None:
            return self._with_all(table, described, now, is_new=is_new)
        paths = {self.values.of_path(path): path for path in (*touched.written, *touched.emptied)}
        if not paths:
            return _PartitionCounts()
        registered = {} if is_new else self._registered(table, list(paths))
        path_of = {values: path for values, path in paths.items() if path in set(touched.written)}
        emptied_paths = {
            values: path for values, path in paths.items() if values not in path_of and values in registered
        }
        return self._result(table, described, path_of, registered, emptied_paths, touches=self.options.touches)

    def _with_all(self, table: Registration, described: Description, now: _Now, *, is_new: bool) -> _PartitionCounts:
        """Compare all partitions that have rows with all that are registered."""
        path_of = {self.values.of_path(path): path for path in partitions_with_rows(now.snapshot)}
        registered = {} if is_new else self._registered(table, None)
        extra_values = registered.keys() - path_of.keys()
        if extra_values:
            # One that was registered only now may have come by a commit that this snapshot does not see.
            self.now = _Now(self.context)
            path_of |= {self.values.of_path(path): path for path in partitions_with_rows(self.now.snapshot)}
            extra_values = registered.keys() - path_of.keys()
        paths = {values: _relative(registered[values], described.location) for values in sorted(extra_values)}
        ours = {values: path for values, path in paths.items() if path is not None}  # others were added by hand
        return self._result(table, described, path_of, registered, ours)

    def _registered(self, table: Registration, values: Sequence[Values] | None) -> dict[Values, str]:
        return self.catalog.partitions(table, values, self.options.at_once)

    def _result(
        self,
        table: Registration,
        described: Description,
        path_of: dict[tuple[str, ...], str],
        registered: dict[tuple[str, ...], str],
        dropped_paths: dict[tuple[str, ...], str],
        *,
        touches: bool = False,
    ) -> _PartitionCounts:
        places = {values: f"{described.location.rstrip('/')}/{path}" for values, path in path_of.items()}
        added = [values for values in path_of if values not in registered]
        moved = [
            values for values in path_of if values in registered and not _same_place(registered[values], places[values])
        ]
        touched = [values for values in path_of if touches and values in registered and values not in moved]
        at_once = self.options.at_once
        self.catalog.add_partitions(table, [(values, places[values]) for values in added], at_once)
        self.catalog.update_partitions(table, [(values, places[values]) for values in (*moved, *touched)], at_once)
        self.catalog.drop_partitions(table, list(dropped_paths))
        return _PartitionCounts(
            tuple(path_of[values] for values in added),
            tuple(path_of[values] for values in moved),
            tuple(dropped_paths.values()),
        )

    # -- up to where -------------------------------------------------------------------------------------------------

    def _noted_newest(self, described: Description, before: SyncMark, newest: SyncMark, *, changed: bool) -> bool:
        """Note the last commit. False where another registration has ended since this one began: then all is done once more."""
        if newest.instant is None or (newest == before and not changed) or (self.options.only_changes and not changed):
            return True
        table = self.catalog.table(self.database, described.view.name)
        if table is None or _noted(table) != before:
            return False
        notes = {LAST_COMMIT: newest.instant, LAST_COMPLETION: newest.completion}
        noted = replace(
            table,
            location=described.location,
            serde_properties={**table.serde_properties, PATH: described.location},
            properties={**table.properties, **{name: note for name, note in notes.items() if note is not None}},
        )
        self.catalog.change_table(noted)
        return True


def _noted(table: Registration | None) -> SyncMark:
    properties = {} if table is None else table.properties
    return SyncMark(*(InstantTime(properties.get(key) or "") or None for key in (LAST_COMMIT, LAST_COMPLETION)))


def _brought_to(table: Registration, described: Description) -> Registration:
    """The target registration: our properties replaced, those of others as they are registered."""
    columns = columns_of(described, {column.name.lower(): column.comment for column in table.columns})
    same = not changes(table.columns, columns).descriptions and _comments(columns) == _comments(table.columns)
    parts = [name for name in table.properties if name.startswith(SCHEMA_PART)]
    stale = set(parts) - described.properties.keys() if SCHEMA_PARTS in described.properties else ()
    other_properties = {name: text for name, text in table.properties.items() if name not in stale}
    return replace(
        table,
        columns=table.columns if same else columns,
        input_format=described.input_format,
        output_format=described.output_format,
        serde=described.serde,
        serde_properties={**table.serde_properties, **described.serde_properties},
        properties={**other_properties, **described.properties},
    )


def _comments(columns: Sequence[Column]) -> list[str]:
    return [column.comment for column in columns]


def _hindrance(table: Registration, target: Registration) -> str | None:
    """Why a registered table cannot become the target, as the rest of a sentence."""
    if not _same_place(table.location, target.location):
        return f"is a table in another place, {table.location}, and not {target.location}"
    registered, fields = ([column.name.lower() for column in each.partition_columns] for each in (table, target))
    if registered != fields:
        return f"is partitioned by {', '.join(registered) or 'nothing'}, and not by {', '.join(fields) or 'nothing'}"
    return None


def _hindering_types(refused: Sequence[str]) -> str | None:
    if not refused:
        return None
    return f"has columns whose types cannot become those of the table ({', '.join(refused)})"


def _same_place(one: str | None, other: str | None) -> bool:
    """Whether two addresses are one place, also by another name of the scheme such as s3 and s3a."""
    if one is None or other is None:
        return one is other
    (host, path), (other_host, other_path) = _place(one), _place(other)
    return path == other_path and (host == other_host or not host or not other_host)


def _place(uri: str) -> tuple[str, str]:
    """Host or bucket, and path."""
    scheme, separator, rest = uri.partition(":/")
    if not separator or "/" in scheme:
        rest, host = uri, ""
    elif rest.startswith("/"):
        host, _, rest = rest.removeprefix("/").partition("/")
    else:
        host = ""
    return host, "/" + rest.strip("/")


def _relative(place: str, location: str) -> str | None:
    """The partition path; None for a place outside of the table."""
    (host, path), (table_host, table_path) = _place(place), _place(location)
    inside = path.startswith(table_path + "/") and (host == table_host or not host or not table_host)
    return path.removeprefix(table_path + "/") if inside else None
