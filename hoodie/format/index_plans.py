"""Indexings, which build a partition of the metadata table beside writers: Avro container files, as `plan_avro.py` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.format.plan_avro import decode_plan, encode_plan
from hoodie.model.instant import InstantTime

INDEX_PLAN = "HoodieIndexPlan"
INDEX_METADATA = "HoodieIndexCommitMetadata"
_VERSION = 1


@dataclass(frozen=True)
class IndexPlan:
    """Which partitions of the metadata table are built."""

    partitions: tuple[str, ...]
    upto: InstantTime
    """The last instant of the table that they show."""
    extra: Mapping[str, str] = field(default_factory=dict)


def encode_index_plan(plan: IndexPlan) -> bytes:
    """Content of `T.indexing.requested`."""
    return encode_plan(INDEX_PLAN, {"version": _VERSION, "indexPartitionInfos": _infos(plan)})


def encode_index_metadata(plan: IndexPlan) -> bytes:
    """Content of `T.indexing`, when all of the plan is built."""
    return encode_plan(INDEX_METADATA, {"version": _VERSION, "indexPartitionInfos": _infos(plan)})


def decode_index_plan(data: bytes, *, path: str) -> IndexPlan:
    """The plan in `T.indexing.requested`, of any writer.

    Raises:
        CorruptFileError: the bytes are no such plan.
    """
    infos = decode_plan(INDEX_PLAN, data, path=path)["indexPartitionInfos"] or []
    extra: dict[str, str] = {}
    for info in infos:
        extra.update(info["extraMetadata"] or {})
    upto = max((info["indexUptoInstant"] or "" for info in infos), default="")
    return IndexPlan(tuple(info["metadataPartitionPath"] or "" for info in infos), InstantTime(upto), extra)


def _infos(plan: IndexPlan) -> list[dict[str, Any]]:
    return [
        {
            "version": _VERSION,
            "metadataPartitionPath": each,
            "indexUptoInstant": plan.upto,
            "extraMetadata": dict(plan.extra),
        }
        for each in plan.partitions
    ]
