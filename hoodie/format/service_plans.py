"""Cleans and clusterings, by whoever planned or ran them: Avro container files, as `plan_avro.py` has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.plan_avro import decode_plan, encode_plan
from hoodie.format.plan_check import check_clean
from hoodie.model.enums import Action, CleanPolicy, State
from hoodie.model.instant import InstantTime
from hoodie.model.names import join, name_of
from hoodie.model.payloads import CleanedPartition, CleanMetadata, CleanPlan

CLEAN_PLAN = "HoodieCleanerPlan"
CLEAN_METADATA = "HoodieCleanMetadata"
REPLACE_PLAN = "HoodieRequestedReplaceMetadata"
EMPTIED = "hoodie.python.clean.emptied"
"""Key in a clean plan's extra metadata: the partitions that it leaves without file groups, as a JSON list.

Not in Apache Hudi's own field: who runs a plan by that deletes the folders with all that came into them since.
"""
_CLUSTER = "CLUSTER"
_VERSION = 2
"""1: names of files; 2: full paths in plans, names in what the completed clean says."""


def encode_clean_plan(plan: CleanPlan, *, uri: str) -> bytes:
    """Content of `T.clean.requested`; `uri` is where the table lies, for the full paths that Apache Hudi deletes by."""
    root = uri.rstrip("/")
    earliest = plan.earliest and {
        "timestamp": plan.earliest[0],
        "action": plan.earliest[1].value,
        "state": State.COMPLETED.value.upper(),
    }
    files = {
        partition_path: [
            {"filePath": f"{root}/{join(partition_path, name)}", "isBootstrapBaseFile": False} for name in names
        ]
        for partition_path, names in plan.files.items()
    }
    extra = dict(plan.extra)
    if plan.emptied:
        extra[EMPTIED] = json.dumps(plan.emptied)
    return encode_plan(
        CLEAN_PLAN,
        {
            "earliestInstantToRetain": earliest,
            "lastCompletedCommitTimestamp": plan.last_completed,
            "policy": plan.policy.value,
            "filesToBeDeletedPerPartition": {},
            "version": _VERSION,
            "filePathsToBeDeletedPerPartition": files,
            "partitionsToBeDeleted": [],
            "extraMetadata": extra,
        },
    )


def decode_clean_plan(data: bytes, *, path: str) -> CleanPlan:
    """The plan in `T.clean.requested`, of any writer and version: names of files by the partition, wherever the table lay then.

    Raises:
        CorruptFileError: the bytes are no such plan, or it would delete what is no data file of the table.
        UnsupportedTableError: it deletes files outside of the table, from which that was bootstrapped.
    """
    record = decode_plan(CLEAN_PLAN, data, path=path)
    files: dict[str, tuple[str, ...]] = {}
    for partition_path, names in (record["filesToBeDeletedPerPartition"] or {}).items():
        files[partition_path] = tuple(name_of(name) for name in names)
    for partition_path, infos in (record["filePathsToBeDeletedPerPartition"] or {}).items():
        if any(info["isBootstrapBaseFile"] for info in infos):
            raise UnsupportedTableError(
                f"{path}: the plan deletes files outside of the table, from which it was bootstrapped; "
                "this release does not: run the clean by Apache Hudi"
            )
        files[partition_path] = tuple(name_of(info["filePath"] or "") for info in infos)
    extra = dict(record["extraMetadata"] or {})
    earliest = record["earliestInstantToRetain"]
    plan = CleanPlan(
        policy=_policy(record["policy"], path),
        files=files,
        earliest=(InstantTime(earliest["timestamp"]), _action(earliest["action"], path))
        if earliest and earliest["timestamp"]
        else None,
        last_completed=record["lastCompletedCommitTimestamp"],
        emptied=(*(record["partitionsToBeDeleted"] or ()), *_emptied(extra.pop(EMPTIED, None), path)),
        extra=extra,
    )
    check_clean(plan, path)
    return plan


def _policy(text: str, path: str) -> CleanPolicy:
    try:
        return CleanPolicy(text)
    except ValueError as exc:
        raise CorruptFileError(
            f"{path}: {text[:80]!r} is not a policy of a clean; it can be {', '.join(CleanPolicy)}"
        ) from exc


def _action(text: str, path: str) -> Action:
    try:
        return Action(text)
    except ValueError as exc:
        raise CorruptFileError(f"{path}: {text[:80]!r} is not an action of an instant") from exc


def _emptied(text: str | None, path: str) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        result = json.loads(text)
    except ValueError as exc:
        raise CorruptFileError(f"{path}: {EMPTIED} is not a list of partitions") from exc
    if not isinstance(result, list) or not all(isinstance(each, str) for each in result):
        raise CorruptFileError(f"{path}: {EMPTIED} is not a list of partitions")
    return tuple(result)


def encode_clean_metadata(
    plan: CleanPlan, *, instant: str, took_ms: int, surviving: Iterable[str] = (), removed: Iterable[str] = ()
) -> bytes:
    """Content of `T.clean` after the plan was carried out.

    Args:
        surviving: names of files that were not deleted after all, because a savepoint had come to need them.
        removed: partitions of which not even the folder is left.
    """
    kept_names, deleted_partitions = frozenset(surviving), frozenset(removed)
    partitions: dict[str, Mapping[str, Any]] = {}
    for partition_path, names in plan.files.items():
        partitions[partition_path] = {
            "partitionPath": partition_path,
            "policy": plan.policy.value,
            "deletePathPatterns": list(names),
            "successDeleteFiles": [name for name in names if name not in kept_names],
            "failedDeleteFiles": [name for name in names if name in kept_names],
            "isPartitionDeleted": partition_path in deleted_partitions,
        }
    return encode_plan(
        CLEAN_METADATA,
        {
            "startCleanTime": instant,
            "timeTakenInMillis": took_ms,
            "totalFilesDeleted": plan.count
            - sum(name in kept_names for names in plan.files.values() for name in names),
            "earliestCommitToRetain": plan.earliest[0] if plan.earliest else "",
            "lastCompletedCommitTimestamp": plan.last_completed,
            "partitionMetadata": partitions,
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(plan.extra),
        },
    )


def decode_clean_metadata(data: bytes, *, path: str) -> CleanMetadata:
    """What a completed clean says of itself.

    Raises:
        CorruptFileError: the bytes are no metadata of a clean.
    """
    record = decode_plan(CLEAN_METADATA, data, path=path)
    return CleanMetadata(
        InstantTime(record["earliestCommitToRetain"].strip()) or None,
        record["lastCompletedCommitTimestamp"],
        dict(record["extraMetadata"] or {}),
    )


def decode_cleaned(data: bytes, *, path: str) -> tuple[CleanedPartition, ...]:
    """What a completed clean deleted.

    Raises:
        CorruptFileError: the bytes are no metadata of a clean.
    """
    record = decode_plan(CLEAN_METADATA, data, path=path)
    return tuple(
        CleanedPartition(
            partition_path,
            tuple(name_of(name) for name in each["successDeleteFiles"]),
            tuple(name_of(name) for name in each["failedDeleteFiles"]),
            bool(each["isPartitionDeleted"]),
        )
        for partition_path, each in record["partitionMetadata"].items()
    )


def earliest_kept_by_plan(data: bytes, *, path: str) -> InstantTime | None:
    """The first commit whose files a planned clean keeps; None when it goes by numbers of versions.

    Raises:
        CorruptFileError: the bytes are no plan of a clean.
    """
    earliest = decode_plan(CLEAN_PLAN, data, path=path)["earliestInstantToRetain"]
    return InstantTime(earliest["timestamp"]) if earliest and earliest["timestamp"] else None


def earliest_kept(data: bytes, *, path: str) -> InstantTime | None:
    """The first commit whose files a completed clean kept; None when it went by numbers of versions.

    Raises:
        CorruptFileError: the bytes are no metadata of a clean.
    """
    return decode_clean_metadata(data, path=path).earliest


def is_clustering_plan(data: bytes, *, path: str) -> bool:
    """Whether the plan of a replacecommit is that of a clustering.

    Raises:
        CorruptFileError: the bytes are no such plan.
    """
    plan = decode_plan(REPLACE_PLAN, data, path=path)
    return plan["operationType"] == _CLUSTER or plan["clusteringPlan"] is not None


def clustered_files(data: bytes, *, path: str) -> frozenset[str]:
    """Names of the files that a planned clustering will read; none where it is another replacecommit.

    Raises:
        CorruptFileError: the bytes are no plan of a replacecommit.
    """
    plan = decode_plan(REPLACE_PLAN, data, path=path)["clusteringPlan"]
    slices = [each for group in (plan["inputGroups"] or () if plan else ()) for each in group["slices"] or ()]
    paths = [path for each in slices for path in (each["dataFilePath"], *(each["deltaFilePaths"] or ()))]
    return frozenset(name_of(path) for path in paths if path)
