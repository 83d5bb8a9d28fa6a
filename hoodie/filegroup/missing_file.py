"""The error for a file of a task that is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress

from hoodie.errors import CorruptFileError, HoodieError, MissingFileError, TableNotFoundError, UnsupportedTableError
from hoodie.format.layout import TIMELINES
from hoodie.format.plan_avro import decode_rollback_plan
from hoodie.format.restore_plans import decode_restore_plan
from hoodie.format.service_plans import decode_clean_plan
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.names import (
    PROPERTIES,
    PROPERTIES_BACKUP,
    ROW_COPIES,
    join,
    name_of,
    parse_base_file,
    parse_log_file,
)
from hoodie.storage.base import Storage

_PLANS = 20
"""So many of the newest plans are asked."""


def missing_file_error(storage: Storage, path: str) -> HoodieError:
    """The error to raise: a clean or a restore may have taken the file, or somebody the whole table, since the task was planned."""
    if not (storage.exists(PROPERTIES) or storage.exists(PROPERTIES_BACKUP)):
        return TableNotFoundError(f"table {storage.uri} is gone: it was deleted during this operation")
    clean = _cleaned_by(storage, path)
    if clean is not None:
        return MissingFileError(
            f"{path} of table {storage.uri} was deleted by {clean}, while this query was still reading an older "
            "state of the table. Query the table again: a scan or a DataFrame keeps the state of the moment when it was made. For "
            "queries that take so long, keep more of the past: hoodie.clean.commits.retained, or "
            "hoodie.clean.policy=KEEP_LATEST_BY_HOURS"
        )
    undoing = _undone_by(storage, path)
    if undoing is not None:
        what = "restore" if undoing.action is Action.RESTORE else "rollback"
        return MissingFileError(
            f"{path} of table {storage.uri} was deleted by the {what} of instant {undoing.time}, which undid the commit that wrote "
            "it, while this query was still reading that commit. Query the table again: it reads the restored state"
        )
    return MissingFileError(
        f"{path} of table {storage.uri} is gone, and none of the newest cleans, restores and rollbacks on the timeline deleted it: "
        "one that is archived by now did, or somebody by hand. Run the operation again; if the file is missed then, too, "
        "`hoodie validate` says what is lost"
    )


def _cleaned_by(storage: Storage, path: str) -> str | None:
    """The clean whose plan names the file. Plans name no row copies: those go with their logs."""
    if path.startswith(f"{ROW_COPIES}/"):
        return "a clean" if any(True for _ in _plans(storage, {Action.CLEAN})) else None
    partition_path, _, name = path.rpartition("/")
    for plan, data, file in _plans(storage, {Action.CLEAN}):
        with suppress(CorruptFileError, UnsupportedTableError):
            if name in decode_clean_plan(data, path=file).files.get(partition_path, ()):
                return f"the clean of instant {plan.time}"
    return None


def _undone_by(storage: Storage, path: str) -> Instant | None:
    """The restore or rollback whose plan names the instant with which the file goes."""
    name = name_of(path)
    base, log = parse_base_file(name), parse_log_file(name)
    written = base.instant if base is not None else log.base_instant if log is not None else None
    for plan, data, file in _plans(storage, {Action.RESTORE, Action.ROLLBACK}):
        with suppress(CorruptFileError, UnsupportedTableError):
            if plan.action is Action.ROLLBACK:
                undone = {decode_rollback_plan(data, file).instant}
            else:
                undone = {time for time, _ in decode_restore_plan(data, path=file).instants}
            if written in undone:
                return plan
    return None


def _plans(storage: Storage, actions: Collection[Action]) -> Iterator[tuple[Instant, bytes, str]]:
    """The newest plans of these actions: the instant, its bytes and its file."""
    with suppress(OSError):
        for layout in TIMELINES:
            instants = map(layout.parse, storage.names(layout.folder))
            plans = [i for i in instants if i and i.action in actions and i.state is State.REQUESTED]
            for plan in sorted(plans, reverse=True)[:_PLANS]:
                file = join(layout.folder, f"{plan.time}.{plan.action}.{plan.state}")
                with suppress(FileNotFoundError):
                    yield plan, storage.read(file), file
