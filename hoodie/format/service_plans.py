"""What readers need to know of cleans and clusterings that other writers planned or ran: Avro container files."""

from __future__ import annotations

from hoodie.format.plan_avro import decode_plan

CLEAN_PLAN = "HoodieCleanerPlan"
CLEAN_METADATA = "HoodieCleanMetadata"
REPLACE_PLAN = "HoodieRequestedReplaceMetadata"
_CLUSTER = "CLUSTER"


def earliest_kept_by_plan(data: bytes, *, path: str) -> str | None:
    """The first commit whose files a planned clean keeps; None when it goes by numbers of versions.

    Raises:
        CorruptFileError: the bytes are no plan of a clean.
    """
    kept = decode_plan(CLEAN_PLAN, data, path=path)["earliestInstantToRetain"]
    return kept["timestamp"] or None if kept else None


def earliest_kept(data: bytes, *, path: str) -> str | None:
    """The first commit whose files a completed clean kept; None when it went by numbers of versions.

    Raises:
        CorruptFileError: the bytes are no metadata of a clean.
    """
    return decode_plan(CLEAN_METADATA, data, path=path)["earliestCommitToRetain"] or None


def is_clustering_plan(data: bytes, *, path: str) -> bool:
    """Whether the plan of a replacecommit is that of a clustering.

    Raises:
        CorruptFileError: the bytes are no such plan.
    """
    plan = decode_plan(REPLACE_PLAN, data, path=path)
    return plan["operationType"] == _CLUSTER or plan["clusteringPlan"] is not None
