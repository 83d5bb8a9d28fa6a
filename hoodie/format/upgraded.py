"""Converts the files of version 6's timeline and archive for an upgrade to version 8 or 9.

Commits are JSON on the timeline of version 6, and records of an archived entry; from version 8 on they are Avro containers. Plans,
cleans, rollbacks, restores and savepoints are the same bytes. Source: Apache Hudi's `SevenToEightUpgradeHandler`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.format.archive import ENTRY, decoded_entries
from hoodie.format.archive_entries import StateFile, fitted
from hoodie.format.avro_schema import CONTAINER_MAGIC
from hoodie.format.commit_avro import COMMIT, REPLACE_COMMIT
from hoodie.format.plan_avro import (
    COMPACTION_PLAN,
    REPLACE_PLAN,
    ROLLBACK_METADATA,
    encode_plan,
    known_schema,
)
from hoodie.format.service_plans import CLEAN_METADATA, CLEAN_PLAN
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime, is_instant_time

_SAVEPOINT = "HoodieSavepointMetadata"
_COMMITS = (Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT)
_RECORDS = {
    "hoodieCommitMetadata": COMMIT,
    "hoodieCleanMetadata": CLEAN_METADATA,
    "hoodieRollbackMetadata": ROLLBACK_METADATA,
    "hoodieSavePointMetadata": _SAVEPOINT,
    "hoodieCompactionPlan": COMPACTION_PLAN,
    "hoodieCleanerPlan": CLEAN_PLAN,
    "hoodieReplaceCommitMetadata": REPLACE_COMMIT,
    "hoodieRequestedReplaceMetadata": REPLACE_PLAN,
}
"""Field of an archived entry -> the type of its record."""
_TIME, _ACTION, _STATE, _REACHED = "commitTime", "actionType", "actionState", "stateTransitionTime"


def upgraded_file(instant: Instant, content: bytes, *, path: str) -> bytes:
    """The content of a file of the active timeline.

    Raises:
        CorruptFileError: a commit does not decode; the message names `path`.
    """
    is_json = instant.action in _COMMITS and instant.state is not State.REQUESTED
    if not content or not is_json or content.startswith(CONTAINER_MAGIC):
        return content
    replaces = instant.is_completed and instant.action is Action.REPLACECOMMIT
    try:
        parsed: Any = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise CorruptFileError(f"{path}: no JSON of a commit ({exc}); `hoodie doctor` says what to do") from exc
    if not isinstance(parsed, dict):
        raise CorruptFileError(f"{path}: no commit, but JSON of another form; `hoodie doctor` says what to do")
    return _container(REPLACE_COMMIT if replaces else COMMIT, parsed)


def upgraded_entries(data: bytes, *, path: str) -> Iterator[StateFile]:
    """The entries of an archive file of version 6 as files of the timeline.

    Raises:
        CorruptFileError: it does not decode.
    """
    field_names = [each["name"] for each in known_schema(ENTRY)["fields"]]
    columns = tuple(name for name in field_names if name in (*_RECORDS, _TIME, _ACTION, _STATE, _REACHED))
    for entry in decoded_entries(data, columns, path=path):
        time, reached = InstantTime(entry[_TIME]), entry[_REACHED] or ""
        instant = Instant(time, Action(entry[_ACTION]), State[entry[_STATE]])
        record = next(((name, entry[name]) for name in _RECORDS if entry[name] is not None), None)
        content = b"" if record is None else _container(_RECORDS[record[0]], record[1])
        yield StateFile(instant, content, reached if is_instant_time(reached) else time)


def _container(record_name: str, record: dict[str, Any]) -> bytes:
    fields = fitted(record, known_schema(record_name))
    commit = record_name in (COMMIT, REPLACE_COMMIT)
    return encode_plan(record_name, {**fields, "version": None} if commit else fields)
