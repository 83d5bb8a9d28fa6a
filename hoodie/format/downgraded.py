"""Converts the files of the timeline and the archive of versions 8 and 9 for a downgrade to version 6.

Commits are Avro containers from version 8 on, and JSON on the timeline of version 6. Plans, cleans, rollbacks, restores and savepoints
are the same bytes. Source: Apache Hudi's `EightToSevenDowngradeHandler`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hoodie.errors import CorruptFileError
from hoodie.format.archive import lsm_columns
from hoodie.format.archive_entries import StateFile
from hoodie.format.avro_schema import CONTAINER_MAGIC
from hoodie.format.commit_avro import COMMIT, REPLACE_COMMIT
from hoodie.format.commit_json import commit_of, encode_commit
from hoodie.format.plan_avro import decode_plan
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime

COMPLETED_AT = "hoodie.python.completed.at"
"""Key in the extra metadata of a commit that was made in a later version: its time of completion, for an upgrade."""
_COMMITS = (Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT, Action.CLUSTERING)
_PLANNED_BY = {Action.COMMIT: Action.COMPACTION, Action.DELTACOMMIT: Action.LOGCOMPACTION}
"""The action that a completed commit with a plan had before."""
_COLUMNS = ("instantTime", "completionTime", "action", "metadata", "plan")


def downgraded_file(instant: Instant, content: bytes, *, path: str) -> bytes:
    """The content of a file of the active timeline.

    Raises:
        CorruptFileError: a commit does not decode; the message names `path`.
    """
    is_commit = instant.action in _COMMITS and instant.state is not State.REQUESTED
    if not is_commit or not content.startswith(CONTAINER_MAGIC):
        return content
    replaces = instant.is_completed and instant.action is Action.REPLACECOMMIT
    record = decode_plan(REPLACE_COMMIT if replaces else COMMIT, content, path=path)
    metadata = commit_of(record, path=path, completed=instant.is_completed)
    if instant.completion is not None:
        metadata = replace(metadata, extra={**metadata.extra, COMPLETED_AT: instant.completion})
    return encode_commit(metadata)


def downgraded_entries(data: bytes, *, path: str) -> Iterator[StateFile]:
    """The instants in a file of the LSM archive, as files of the timeline of version 6.

    Raises:
        CorruptFileError: it does not decode.
    """
    for row in lsm_columns(data, _COLUMNS, path=path).to_pylist():
        time, action = InstantTime(row["instantTime"]), Action(row["action"])
        if not row["metadata"]:
            raise CorruptFileError(f"{path}: instant {time} of the archived timeline has no metadata")
        if row["plan"]:
            planned = Instant(time, _PLANNED_BY.get(action, action), State.REQUESTED)
            yield StateFile(planned, row["plan"], time)
        completed = Instant(time, action, State.COMPLETED)
        content = downgraded_file(completed, row["metadata"], path=f"{path} (instant {time})")
        yield StateFile(completed, content, row["completionTime"] or time)
