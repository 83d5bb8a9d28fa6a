"""Commit metadata of table versions 8 and 9: Avro container files with the fields that version 6 has as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hoodie.format
from hoodie.format.avro_schema import CONTAINER_MAGIC
from hoodie.format.commit_check import check_commit
from hoodie.format.commit_json import commit_fields, commit_of, decode_commit
from hoodie.format.log_name_texts import LogNameTexts
from hoodie.model.enums import Action
from hoodie.model.payloads import CommitMetadata

if TYPE_CHECKING:
    import hoodie.format.plan_avro

COMMIT = "HoodieCommitMetadata"
REPLACE_COMMIT = "HoodieReplaceCommitMetadata"


def encode_commit_file(metadata: CommitMetadata, *, replaces: bool) -> bytes:
    """The file of a commit in versions 8 and 9, with the `version` that Apache Hudi leaves null.

    `replaces`: of a completed replacecommit; all others, and pending ones, do not say what they replace.
    """
    fields = commit_fields(metadata) | {"version": None}
    replaced = fields.pop("partitionToReplaceFileIds", {})
    if replaces:
        return hoodie.format.plan_avro.encode_plan(REPLACE_COMMIT, fields | {"partitionToReplaceFileIds": replaced})
    return hoodie.format.plan_avro.encode_plan(COMMIT, fields)


def decode_commit_file(
    data: bytes, action: Action, *, path: str, time: str | None = None, texts: LogNameTexts | None = None
) -> CommitMetadata:
    """The metadata in a completed commit's file of any table version; its first bytes tell Avro from JSON. `time`: its instant;
    `texts`: as in `decode_commit`.

    Raises:
        CorruptFileError: the bytes are neither, or are damaged (`check_commit`); the message names `path`.
        UnsupportedTableError: see `check_commit`.
    """
    if not data.startswith(CONTAINER_MAGIC):
        commit = decode_commit(data, path=path, completed=True, texts=texts)
    else:
        name = REPLACE_COMMIT if action is Action.REPLACECOMMIT else COMMIT
        # What it says of files is checked below.
        record = hoodie.format.plan_avro.decode_plan(name, data, path=path, exact=False)
        commit = commit_of(record, path=path, completed=True)
    return check_commit(commit, path=path, time=time)
