"""Savepoints and restores, by whoever made them: Avro container files, as `plan_avro.py` has them."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import CorruptFileError
from hoodie.format.plan_avro import decode_plan, encode_plan, rollback_of, rollback_record
from hoodie.format.plan_check import check_restore
from hoodie.model.enums import Action
from hoodie.model.instant import InstantTime
from hoodie.model.payloads import RestoreMetadata, RestorePlan, SavepointMetadata

SAVEPOINT = "HoodieSavepointMetadata"
RESTORE_PLAN = "HoodieRestorePlan"
RESTORE_METADATA = "HoodieRestoreMetadata"
_SAVEPOINT_VERSION = 1
_PLAN_VERSION = 2
_METADATA_VERSION = 1


def encode_savepoint(savepoint: SavepointMetadata) -> bytes:
    """Content of `T.savepoint`."""
    partitions = {
        path: {"partitionPath": path, "savepointDataFile": list(names)} for path, names in savepoint.files.items()
    }
    return encode_plan(
        SAVEPOINT,
        {
            "savepointedBy": savepoint.user,
            "savepointedAt": savepoint.at_ms,
            "comments": savepoint.comment,
            "partitionMetadata": partitions,
            "version": _SAVEPOINT_VERSION,
        },
    )


def decode_savepoint(data: bytes, *, path: str) -> SavepointMetadata:
    """What a savepoint says.

    Raises:
        CorruptFileError: the bytes are no savepoint.
    """
    record = decode_plan(SAVEPOINT, data, path=path)
    files: Mapping[str, tuple[str, ...]] = {
        partition: tuple(each["savepointDataFile"]) for partition, each in record["partitionMetadata"].items()
    }
    return SavepointMetadata(record["savepointedBy"], record["savepointedAt"], record["comments"], files)


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """Content of `T.restore.requested`."""
    return encode_plan(
        RESTORE_PLAN,
        {
            "instantsToRollback": _instants(plan.instants),
            "version": _PLAN_VERSION,
            "savepointToRestoreTimestamp": plan.target,
        },
    )


def decode_restore_plan(data: bytes, *, path: str) -> RestorePlan:
    """The plan in `T.restore.requested`.

    Raises:
        CorruptFileError: the bytes are no such plan, or it would take back what is not after the instant to restore.
    """
    record = decode_plan(RESTORE_PLAN, data, path=path)
    instants = tuple(
        (InstantTime(each["commitTime"]), _action(each["action"], path)) for each in record["instantsToRollback"]
    )
    plan = RestorePlan(InstantTime(record["savepointToRestoreTimestamp"] or "") or None, instants)
    check_restore(plan, path)
    return plan


def encode_restore_metadata(metadata: RestoreMetadata) -> bytes:
    """Content of a completed `T.restore`."""
    return encode_plan(
        RESTORE_METADATA,
        {
            "startRestoreTime": metadata.started,
            "timeTakenInMillis": metadata.took_ms,
            "instantsToRollback": [time for time, _ in metadata.undone],
            "hoodieRestoreMetadata": {
                each.rolled_back[0][0]: [rollback_record(each)] for each in metadata.rollbacks if each.rolled_back
            },
            "version": _METADATA_VERSION,
            "restoreInstantInfo": _instants(metadata.undone),
        },
    )


def decode_restore_metadata(data: bytes, *, path: str) -> RestoreMetadata:
    """What a completed `T.restore` says.

    Raises:
        CorruptFileError: the bytes are no such metadata.
    """
    record = decode_plan(RESTORE_METADATA, data, path=path)
    undone = [
        (InstantTime(each["commitTime"]), _action(each["action"], path)) for each in record["restoreInstantInfo"] or ()
    ]
    # Old metadata lists only the times; all that could be restored then were commits.
    times = {time for time, _ in undone}
    undone += [(InstantTime(time), Action.COMMIT) for time in record["instantsToRollback"] if time not in times]
    records = (each for of_instant in record["hoodieRestoreMetadata"].values() for each in of_instant)
    rollbacks = tuple(rollback_of(each, path=path) for each in records if each is not None)
    return RestoreMetadata(
        InstantTime(record["startRestoreTime"]), record["timeTakenInMillis"], tuple(undone), rollbacks
    )


def _instants(instants: tuple[tuple[str, Action], ...]) -> list[dict[str, str]]:
    # On version 6 the timeline files of a clustering are named like those of any replacecommit; Apache Hudi looks for those.
    pairs = ((time, Action.REPLACECOMMIT if action is Action.CLUSTERING else action) for time, action in instants)
    return [{"commitTime": time, "action": action.value} for time, action in pairs]


def _action(text: str, path: str) -> Action:
    try:
        return Action(text)
    except ValueError as exc:
        raise CorruptFileError(f"{path}: {text[:80]!r} is not an action of an instant") from exc
