"""What to say of a file that a task was given and that is not there."""

from __future__ import annotations

from contextlib import suppress

from hoodie.errors import CorruptFileError, HoodieError, MissingFileError, TableNotFoundError, UnsupportedTableError
from hoodie.format.service_plans import decode_clean_plan
from hoodie.model.enums import Action, State
from hoodie.model.names import HOODIE, PROPERTIES, PROPERTIES_BACKUP, join, parse_instant_file
from hoodie.storage.base import Storage

_TIMELINES = ((HOODIE, 1), (f"{HOODIE}/timeline", 2))
"""Where each layout has its timeline."""
_CLEANS = 20
"""So many of the newest cleans are asked."""


def missing_file_error(storage: Storage, path: str) -> HoodieError:
    """The error to raise: a clean may have taken the file, or somebody the whole table, since the task was planned."""
    if not (storage.exists(PROPERTIES) or storage.exists(PROPERTIES_BACKUP)):
        return TableNotFoundError(f"table {storage.uri} is gone: it was deleted after this operation had begun")
    clean = _cleaned_by(storage, path)
    if clean is not None:
        return MissingFileError(
            f"{path} of table {storage.uri} was deleted by the clean of instant {clean}, while this query was still reading an older "
            "state of the table. Run the query again: it reads the newest state then. For queries that take so long, keep "
            "more of the past: hoodie.clean.commits.retained, or hoodie.clean.policy=KEEP_LATEST_BY_HOURS"
        )
    return MissingFileError(
        f"{path} of table {storage.uri} is gone: it was removed while it was still needed; run the operation again"
    )


def _cleaned_by(storage: Storage, path: str) -> str | None:
    """The instant of the clean whose plan names the file."""
    partition_path, _, name = path.rpartition("/")
    with suppress(OSError):
        for folder, layout in _TIMELINES:
            found = [parse_instant_file(each, layout) for each in storage.names(folder)]
            plans = [i for i in found if i and i.action is Action.CLEAN and i.state is State.REQUESTED]
            for plan in sorted(plans, reverse=True)[:_CLEANS]:
                file = join(folder, f"{plan.time}.{plan.action}.{plan.state}")
                with suppress(CorruptFileError, UnsupportedTableError, FileNotFoundError):
                    if name in decode_clean_plan(storage.read(file), path=file).files.get(partition_path, ()):
                        return plan.time
    return None
