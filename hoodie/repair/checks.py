"""The one list of checks of a table: `validate` and `doctor` both go by it. Each has the one action that mends what it finds.

`tests/corruption/test_catalogue.py` does the damage, runs the command that is printed here, and looks again.
"""

from __future__ import annotations

import errno
import shlex
from collections.abc import Iterator

from hoodie.errors import HoodieError, UnsupportedTableError
from hoodie.model.findings import Finding, Level, ValidationResult
from hoodie.model.names import folder_of, name_of
from hoodie.options.write import WriteOptions
from hoodie.repair import check_files, check_rows, check_sources, check_timeline
from hoodie.repair.check_rows import Rows
from hoodie.repair.inspection import Check, Hit, Inspection
from hoodie.view.context import TableContext

_COPY = "Restore the file from a copy of the table: no other way brings its rows back"
_SOURCE = "Restore {subject} from a copy: the table has no other copy of its columns"
MISPLACED = "Delete {path}: no writer creates it"
LOST_TIMELINE = "Restore {path} from a copy of the table: nothing else says which rows count"
_LOST = "Restore the files of that instant in `.hoodie` from a copy of the table: without them readers ignore its rows"
_COMMIT = "Restore {path} from a copy of the table; `hoodie restore` to the commit before it undoes everything since"
_RENAMED = "Restore the file under its own name from a copy of the table"
_ROLLBACK = (
    "`hoodie rollback {table} --yes` undoes the write, or finishes the restore or rollback; so does the next write"
)

CHECKS: tuple[Check, ...] = (
    Check(
        "misplaced",
        Level.DAMAGE,
        "a file is in the place of a folder, or a folder in the place of a file",
        MISPLACED,
        check_timeline.misplaced,
    ),
    Check(
        "nested-tables",
        Level.DAMAGE,
        "a table is inside the folder of this one, as a copy into an existing folder; other readers count its rows",
        "Remove {path} from the table: move it to another place, or delete it if it is a copy",
        check_files.nested_tables,
    ),
    Check(
        "version",
        Level.DAMAGE,
        "the timeline has another table version than `hoodie.properties` states",
        "`hoodie repair {table} properties --set {subject} --yes` corrects it",
        check_timeline.version,
    ),
    Check(
        "lost-timeline",
        Level.DAMAGE,
        "the timeline has no instant, and there are data files",
        LOST_TIMELINE,
        check_timeline.lost_timeline,
    ),
    Check(
        "no-moment",
        Level.DAMAGE,
        "an instant's name is not a time, so no writer can commit",
        "Delete {path}: no writer creates such a name",
        check_timeline.no_moment,
    ),
    Check(
        "old-pending",
        Level.DAMAGE,
        "a pending write is older than archived commits, so readers ignore their rows",
        "`hoodie rollback {table} {subject} --yes` undoes it",
        check_timeline.old_pending,
    ),
    Check(
        "returned",
        Level.DAMAGE,
        "files of archived writes are back on the timeline, without the later ones, so readers ignore rows",
        "Delete {path}: the archive has the instant",
        check_timeline.returned,
    ),
    Check(
        "newest-commit",
        Level.DAMAGE,
        "the newest commit is truncated or empty, or has the schema of another table",
        "`hoodie rollback {table} {subject} --yes` undoes it; write its rows again",
        check_timeline.newest_commit,
    ),
    Check(
        "older-commits",
        Level.DAMAGE,
        "a commit before the newest is truncated or empty, or has the schema of another table",
        _COMMIT,
        check_timeline.older_commits,
    ),
    Check(
        "emptied-commits",
        Level.DAMAGE,
        "a commit names no file, but files of its instant exist",
        _COMMIT,
        check_timeline.emptied_commits,
    ),
    Check(
        "unreplaced-groups",
        Level.DAMAGE,
        "a clustering does not replace the file groups that it read, so readers see their rows twice",
        _COMMIT,
        check_timeline.unreplaced_groups,
    ),
    Check(
        "twice-completed",
        Level.DAMAGE,
        "one instant was completed under two names",
        "Delete {path}: no writer started it",
        check_timeline.stray_states,
    ),
    Check(
        "future",
        Level.DAMAGE,
        "an instant is in the future, so no writer can commit",
        "`hoodie rollback {table} {subject} --yes` undoes it, unless the clock is wrong",
        check_timeline.future,
    ),
    Check(
        "future-plans",
        Level.DAMAGE,
        "a plan, or an unfinished savepoint or restore, is in the future, so no writer can commit",
        "Delete {path}, unless the clock is wrong: services plan again",
        check_timeline.future_plans,
    ),
    Check(
        "completions",
        Level.DAMAGE,
        "the time of completion in a file's name is no time or in the future, so no writer can commit",
        _RENAMED,
        check_timeline.completions,
    ),
    Check(
        "foreign-names",
        Level.DAMAGE,
        "a completed instant has the file name of another table version, or of a copy (`.bak`), so readers ignore its rows",
        _RENAMED,
        check_timeline.foreign_names,
    ),
    Check(
        "plans",
        Level.DAMAGE,
        "the plan of a clean, a rollback, a restore, a compaction or a clustering does not decode, names missing files, or has an "
        "instant time in the future",
        "`hoodie repair {table} plans --yes` removes it; services plan again",
        check_timeline.plans,
    ),
    Check(
        "young-plans",
        Level.DAMAGE,
        "the same, but so young that a process may still be writing it",
        "`hoodie repair {table} plans --older-than 0s --yes` removes it; first make sure that no process is writing it",
        check_timeline.young_plans,
    ),
    Check(
        "kept-plans",
        Level.DAMAGE,
        "a plan is damaged or names missing files, and files are named after it or commits build on it",
        "Restore {subject} from a copy of the table: no other way brings it back",
        check_timeline.kept_plans,
    ),
    Check(
        "properties",
        Level.DAMAGE,
        "`hoodie.properties` contradicts the table: its key, partition or ordering columns, or its type",
        "`hoodie repair {table} properties --set {subject} --yes` puts it right",
        check_timeline.properties,
    ),
    Check(
        "misplaced-metadata",
        Level.DAMAGE,
        "a folder is in the place of a partition metadata file",
        MISPLACED,
        check_files.misplaced_metadata,
    ),
    Check(
        "partition-metadata",
        Level.DAMAGE,
        "the metadata file of a partition is missing or damaged",
        "`hoodie repair {table} partition-metadata --yes` rewrites it",
        check_files.partition_metadata,
    ),
    Check(
        "lost-commits",
        Level.DAMAGE,
        "a commit builds on files of an instant that is on no timeline, so readers ignore their rows",
        _LOST,
        check_files.lost_commits,
    ),
    Check(
        "lost-completions",
        Level.DAMAGE,
        "a pending write seems to have been completed, but its completed file is lost, so readers ignore its rows",
        "Restore the completed file of that instant in `.hoodie` from a copy of the table before the next write, which undoes "
        "the instant, as `hoodie rollback {table} {subject} --yes` does",
        check_timeline.lost_completions,
    ),
    Check(
        "lost-instants",
        Level.DAMAGE,
        "a data file is of an instant that is on no timeline, and that no rollback or restore undid",
        "Restore the files of that instant in `.hoodie` from a copy of the table; if that has none, "
        "`hoodie repair {table} stray-files --older-than 0s --yes` moves the data files away",
        check_files.lost_instants_of_files,
    ),
    Check(
        "read-strays",
        Level.DAMAGE,
        "a data file is older than the timeline and its archived commit does not name it, so readers count its rows",
        "`hoodie repair {table} stray-files --yes` moves it away",
        check_files.read_strays,
    ),
    Check(
        "replaced-groups",
        Level.DAMAGE,
        "commits wrote to a file group after a replacecommit had replaced it, so readers ignore their rows",
        "Restore {path} from a copy of the table, or write those rows again",
        check_files.replaced_groups,
    ),
    Check(
        "bootstrap-index",
        Level.DAMAGE,
        "one of the two files of a bootstrap's index is missing or damaged, or names files that are not there",
        "`hoodie repair {table} bootstrap-index --yes` writes it from the other one",
        check_sources.damaged_index,
    ),
    Check(
        "lost-bootstrap-index",
        Level.DAMAGE,
        "both files of a bootstrap's index are missing or damaged, or differ",
        "Restore {path} from a copy of the table: nothing else says which file has the columns of which rows",
        check_sources.lost_index,
    ),
    Check(
        "files",
        Level.DAMAGE,
        "a base file or log file is missing, truncated, or not the one that its commit names",
        _COPY,
        check_files.data_files,
    ),
    Check(
        "sources",
        Level.DAMAGE,
        "a file that the table was bootstrapped from is missing, or has another size",
        _SOURCE,
        check_sources.sources,
    ),
    Check(
        "strange-rows",
        Level.DAMAGE,
        "the key columns of a base file make other record keys than its rows have",
        _COPY,
        check_files.strange_rows,
    ),
    Check(
        "modification-times",
        Level.DAMAGE,
        "a copy did not keep the modification times by which Apache Hudi 1.x orders log files",
        "Copy the table again, such as with `rsync -t`",
        check_files.modification_times,
    ),
    Check(
        "savepoints",
        Level.DAMAGE,
        "a savepoint does not say which files it holds, or is in the future",
        "`hoodie savepoint {table} {subject} --drop` drops it",
        check_timeline.savepoints,
    ),
    Check("saved-files", Level.DAMAGE, "a file of a savepoint is missing", _COPY, check_timeline.saved_files),
    Check(
        "consumers",
        Level.DAMAGE,
        "the position of a named consumer does not decode",
        "`hoodie consumers {table} --drop {subject}` drops the consumer; start it again from its last known position",
        check_timeline.consumers,
    ),
    Check(
        "hash-rings",
        Level.DAMAGE,
        "a hash ring of consistent buckets does not decode, so no writer can write to its partition",
        "Restore {path} from a copy of the table: nothing else says which keys lie in which file group",
        check_timeline.hash_rings,
    ),
    Check(
        "archive",
        Level.DAMAGE,
        "a file of the archived timeline is missing or damaged",
        "Restore the file from a copy of the table",
        check_timeline.archive,
        deep=True,
    ),
    Check(
        "lost-archived",
        Level.DAMAGE,
        "the archive lacks instants of files that readers count, so change feeds from before the timeline lack their rows",
        "Restore the files of that instant, in `.hoodie` or in its archive, from a copy of the table: nothing else brings those "
        "changes back; snapshots have all rows",
        check_timeline.lost_archived,
        deep=True,
    ),
    Check(
        "archived-files",
        Level.DAMAGE,
        "a file of an archived commit is missing",
        _COPY,
        check_rows.archived_files,
        deep=True,
    ),
    Check(
        "base-files",
        Level.DAMAGE,
        "the rows of a base file do not match its footer, bloom filter, folder or commit",
        _COPY,
        check_rows.base_files,
        deep=True,
    ),
    Check(
        "source-rows",
        Level.DAMAGE,
        "a file that the table was bootstrapped from does not decode, or has other rows than it had",
        _SOURCE,
        check_sources.source_rows,
        deep=True,
    ),
    Check(
        "rows",
        Level.DAMAGE,
        "a log file or a base file does not decode, or belongs to another folder or file group",
        _COPY,
        check_rows.rows,
        deep=True,
    ),
    Check(
        "lost-rows",
        Level.DAMAGE,
        "a log file that later commits build on has rows of an instant that is on no timeline",
        _LOST,
        check_rows.lost_rows,
        deep=True,
    ),
    Check(
        "keys",
        Level.DAMAGE,
        "a record key is more than once in a partition",
        "Inserts without look-ups can cause this: read the partition, keep one row of each key, and write the rows with "
        "insert_overwrite",
        check_rows.duplicate_keys,
        deep=True,
    ),
    Check(
        "metadata-damage",
        Level.DAMAGE,
        "the metadata table is behind, damaged or wrong, and Apache Hudi's readers list files by it",
        "`hoodie repair {table} metadata-table --yes` drops it, and `hoodie index build {table} NAME` rebuilds it and each of its "
        "indexes",
        check_files.metadata_damage,
    ),
    Check(
        "dead-writes",
        Level.NEGLECT,
        "the process of a pending write, rollback or restore died",
        _ROLLBACK,
        check_timeline.dead_writes,
    ),
    Check(
        "dead-services",
        Level.NEGLECT,
        "the process of a service died",
        "`hoodie {subject} {table}` finishes it",
        check_timeline.dead_services,
    ),
    Check(
        "remains",
        Level.NEGLECT,
        "dead writers left staged files, marks, markers or heartbeats",
        "`hoodie rollback {table} --yes` removes them",
        check_timeline.remains,
    ),
    Check(
        "stray-files",
        Level.NEGLECT,
        "a data file belongs to no instant",
        "`hoodie repair {table} stray-files --yes` moves it away",
        check_files.stray_files,
    ),
    Check(
        "row-copies",
        Level.NEGLECT,
        "a row copy is damaged, so readers read the log files",
        "Delete {path}: the log files have the same rows",
        check_rows.row_copies,
        deep=True,
    ),
    Check(
        "timeline",
        Level.NEGLECT,
        "the timeline is never archived",
        "`hoodie archive {table}` moves the oldest commits to the archive",
        check_files.long_timeline,
    ),
    Check(
        "held-timeline",
        Level.NEGLECT,
        "a savepoint, a consumer or pending work prevents archiving",
        "",
        check_files.held_timeline,
    ),
    Check(
        "cleaning",
        Level.NEGLECT,
        "no clean has run",
        "`hoodie clean {table}` deletes old versions of files",
        check_files.never_cleaned,
    ),
    Check(
        "compaction",
        Level.NEGLECT,
        "log files are never compacted",
        "`hoodie compaction run {table}` merges them; with hoodie.compact.inline=true writers do it",
        check_files.crowded_slices,
    ),
    Check(
        "changed-sources",
        Level.NOTE,
        "a file that the table was bootstrapped from was modified later",
        "Make sure that it has the rows that it had",
        check_sources.changed_sources,
    ),
    Check("at-work", Level.NOTE, "a write is in progress", "", check_timeline.at_work),
    Check("waiting", Level.NOTE, "a plan is pending", "", check_timeline.waiting),
    Check(
        "young-strays",
        Level.NOTE,
        "a data file belongs to no instant, but is so young that a process may still be writing it",
        "`hoodie repair {table} stray-files --older-than 0s --yes` moves it away; first make sure that no process is writing it",
        check_files.young_strays,
    ),
    Check(
        "kept-strays",
        Level.NOTE,
        "a data file may be a stray, but a reader or writer may need it",
        "",
        check_files.kept_strays,
    ),
    Check(
        "odd-names",
        Level.NOTE,
        "a file in the timeline's folder is not a timeline file",
        "Delete it if nobody needs it",
        check_timeline.odd_names,
    ),
    Check(
        "archive-version",
        Level.NOTE,
        "the archive of table version 9 does not say which of its manifests counts",
        "`hoodie archive {table}` writes it, when it moves commits to the archive",
        check_timeline.archive_version,
    ),
    Check(
        "unstated",
        Level.NOTE,
        "`hoodie.properties` does not name the partition columns, because old writers omitted them; hoodie does not write to "
        "the table",
        "`hoodie repair {table} properties --set {subject} --yes` adds them",
        check_timeline.unstated,
    ),
    Check("read-only", Level.NOTE, "hoodie can read the table, but not write to it", "", check_files.read_only),
    Check(
        "metadata-table",
        Level.NOTE,
        "the next write drops partitions of the metadata table that it cannot maintain, or that no property names",
        "Drop the index, so that Apache Hudi's writers do not rebuild it",
        check_files.metadata_table,
    ),
    Check(
        "properties-backup",
        Level.NOTE,
        "an update of the properties left its backup",
        "",
        check_files.properties_backup,
    ),
    Check(
        "set-aside",
        Level.NOTE,
        "a repair moved files away",
        "Delete the folder if nobody needs them",
        check_files.set_aside,
    ),
)


def run_checks(look: Inspection, *, deep: bool, levels: frozenset[Level] = frozenset(Level)) -> Iterator[Finding]:
    """What the checks of these levels find, in their order.

    A check that damage keeps from looking is passed over: it is for what was found before it.
    """
    is_damaged = False
    for check in CHECKS:
        if check.level not in levels or (check.deep and not deep):
            continue
        try:
            hits = list(check.look(look))
        except (HoodieError, OSError) as exc:
            if not isinstance(exc, HoodieError) and exc.errno not in _OF_ONE_FILE and not _leads_nowhere(exc, look):
                raise  # the storage fails, or the table moves on
            if is_damaged:
                continue
            hits, check = [_unreadable(exc, look)], _UNREADABLE
        for hit in hits:
            yield _finding(check, hit, look)
        is_damaged = is_damaged or (bool(hits) and check.level is Level.DAMAGE)


_UNREADABLE = Check(
    "unreadable",
    Level.DAMAGE,
    "a file or folder of the table cannot be read, and no other check has named it",
    "{subject}",
    lambda look: (),
)
_COPIED = "Restore the file from a copy of the table"
_DENIED = frozenset({errno.EACCES, errno.EPERM})
_OF_ONE_FILE = _DENIED | {errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR}


def _leads_nowhere(error: OSError, look: Inspection) -> bool:
    """Whether a file that cannot be found is listed all the same, as a symbolic link is."""
    path = str(error.filename or "").removeprefix(look.context.storage.uri).strip("/")
    return isinstance(error, FileNotFoundError) and name_of(path) in look.context.storage.names(folder_of(path))


def _unreadable(error: HoodieError | OSError, look: Inspection) -> Hit:
    """What a check ran into."""
    if isinstance(error, HoodieError) and not isinstance(error, UnsupportedTableError):
        return Hit(look.plain(error), subject=_COPIED)
    if isinstance(error, HoodieError):
        what, _, advice = look.plain(error).rpartition("; ")
        return Hit(what or advice, subject=advice[:1].upper() + advice[1:])
    full, uri = str(error.filename or ""), look.context.storage.uri
    path = full.removeprefix(uri).strip("/")
    is_outside = full.startswith("/") and not full.startswith(uri)  # a file that the table was bootstrapped from
    what = f"{(full if is_outside else path) or 'a file'} cannot be read: {error.strerror or error}"
    access = f"Give this user permission to read {error.filename}"
    return Hit(what, None if is_outside else path or None, access if error.errno in _DENIED else _COPIED)


def _finding(check: Check, hit: Hit, look: Inspection) -> Finding:
    table = shlex.quote(look.context.storage.uri)
    path = shlex.quote(f"{look.context.storage.uri.rstrip('/')}/{hit.path}") if hit.path else ""
    mend = check.action.format(table=table, path=path, subject=hit.subject) or None
    what = _without_advice(hit.what) if mend and mend.startswith("Restore ") else hit.what
    return Finding(check.name, check.level, what, hit.path, mend)


def _without_advice(text: str) -> str:
    """What is wrong: what mends it, the check says."""
    lower = text.lower()
    found = [at for each in ("; restore ", ". restore ", ", restore ") if (at := lower.find(each)) >= 0]
    return text[: min(found)] if found else text


def validate(context: TableContext, options: WriteOptions, *, deep: bool) -> ValidationResult:
    """Look at the newest state of the table. Nothing is changed."""
    look = Inspection(context.on_storage(), options)
    findings = tuple(run_checks(look, deep=deep, levels=frozenset({Level.DAMAGE})))
    try:
        commits, slices = len(look.snapshot.timeline.commits), look.snapshot.view.latest_slices()
    except (HoodieError, OSError):
        return ValidationResult(findings)
    rows = look.rows
    return ValidationResult(
        findings,
        commits=commits,
        partitions=len({each.group.partition_path for each in slices}),
        file_groups=len(slices),
        size_bytes=sum(each.size_bytes for each in slices),
        rows=rows.total if isinstance(rows, Rows) else None,
    )
