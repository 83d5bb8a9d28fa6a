"""Plans of clusterings, in `T.replacecommit.requested` of version 6: an Avro container file, as `plan_avro.py` has them."""

from __future__ import annotations

from hoodie.errors import CorruptFileError
from hoodie.format.plan_avro import REPLACE_PLAN, decode_plan, encode_plan
from hoodie.format.plan_check import check_clustered
from hoodie.model.enums import WriteOperation
from hoodie.model.names import join, name_of
from hoodie.model.payloads import ClusteredSlice, ClusteringGroup, ClusteringPlan

_STRATEGY = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
"""What Apache Hudi runs such a plan with; ours does the same work."""
_RING_STRATEGY = "org.apache.hudi.client.clustering.run.strategy.SingleSparkJobConsistentHashingExecutionStrategy"
"""The same for plans that change hash rings."""
_VERSION = 1


def encode_clustering_plan(plan: ClusteringPlan, *, uri: str) -> bytes:
    """Content of `T.replacecommit.requested`; `uri` is where the table lies: Apache Hudi opens files by these full paths."""
    root = uri.rstrip("/")

    def full(partition_path: str, name: str | None) -> str:
        return f"{root}/{join(partition_path, name)}" if name else ""

    groups = [
        {
            "slices": [
                {
                    "dataFilePath": full(each.partition_path, each.data_file),
                    "deltaFilePaths": [full(each.partition_path, name) for name in each.log_files],
                    "fileId": each.file_id,
                    "partitionPath": each.partition_path,
                    "bootstrapFilePath": each.bootstrap_file or "",
                    "version": _VERSION,
                }
                for each in group.slices
            ],
            "metrics": dict(group.metrics),
            "numOutputFileGroups": group.output_groups,
            "extraMetadata": dict(group.extra) or None,
            "version": _VERSION,
        }
        for group in plan.groups
    ]
    return encode_plan(
        REPLACE_PLAN,
        {
            "operationType": WriteOperation.CLUSTER.value,
            "clusteringPlan": {
                "inputGroups": groups,
                "strategy": {
                    "strategyClassName": _RING_STRATEGY if any(group.extra for group in plan.groups) else _STRATEGY,
                    "strategyParams": dict(plan.params),
                    "version": _VERSION,
                },
                "extraMetadata": {},
                "version": _VERSION,
                "preserveHoodieMetadata": plan.keeps_commit_times,
                "missingSchedulePartitions": [],
            },
            "extraMetadata": {},
            "version": _VERSION,
        },
    )


def decode_clustering_plan(data: bytes, *, path: str) -> ClusteringPlan:
    """Raises CorruptFileError where the bytes are no plan of a clustering, or name files that do not belong together."""
    record = decode_plan(REPLACE_PLAN, data, path=path)["clusteringPlan"]
    if record is None:
        raise CorruptFileError(f"{path}: there is no clustering plan in it; it belongs to another kind of write")
    groups = []
    for group in record["inputGroups"] or ():
        slices = []
        for each in group["slices"] or ():
            one = ClusteredSlice(
                each["partitionPath"] or "",
                each["fileId"] or "",
                _name(each["dataFilePath"]),
                tuple(name for log in each["deltaFilePaths"] or () if (name := _name(log))),
                each["bootstrapFilePath"] or None,
            )
            check_clustered(one, path)
            slices.append(one)
        if slices:
            outputs = max(1, group["numOutputFileGroups"] or 1)
            groups.append(ClusteringGroup(tuple(slices), outputs, group["metrics"] or {}, group["extraMetadata"] or {}))
    groups_of_slices = [(each.partition_path, each.file_id) for group in groups for each in group.slices]
    if len(set(groups_of_slices)) < len(groups_of_slices):
        raise CorruptFileError(f"{path}: a file group is named twice, so its rows would be there twice; drop the plan")
    strategy = record["strategy"] or {}
    keeps = record["preserveHoodieMetadata"]
    return ClusteringPlan(tuple(groups), strategy.get("strategyParams") or {}, keeps is not False)


def _name(full: str | None) -> str | None:
    return name_of(full) if full else None
