"""Rows by bucket -> write tasks, on a table with the bucket index. Pure; the counterpart of `plan.py`.

The first rows of a bucket make its base file. Later ones go to the log of its file group on merge-on-read tables, new keys too, and
are merged into a new base file on copy-on-write ones: what Apache Hudi does (observed, integration/test_bucket_with_hudi.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hoodie.format.bucket_hash import bucket_file_id
from hoodie.index.bucket import slices_by_bucket
from hoodie.model.buckets import BucketLayout, BucketRows
from hoodie.model.enums import TableType
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.plans import ChunkPiece, Matches, WriteTask
from hoodie.write.plan import WritePlan, next_log_version, spread


def plan_bucket_write(
    found: Iterable[BucketRows],
    pieces: Mapping[str, Sequence[ChunkPiece]],
    slices: Iterable[FileSlice],
    *,
    layout: BucketLayout,
    table_type: TableType,
    inserts: bool,
    table: str,
) -> WritePlan:
    """One task for each bucket that gets rows.

    Args:
        pieces: by partition path, in arrival order.
        slices: latest slices of the batch's partitions, merged over pending compactions.
        inserts: rows may make new file groups (not so for deletes: what is stored nowhere needs no delete).

    Raises:
        UnsupportedTableError: the slices are not one of each bucket.
    """
    rows: dict[tuple[str, int], list[Matches]] = {}
    for each in found:
        rows.setdefault((each.partition_path, each.bucket), []).append(each.rows)
    stored = slices_by_bucket(slices, layout, table=table)
    tasks: list[WriteTask] = []
    based_on: dict[FileGroupId, str] = {}
    for (partition_path, bucket), matches in sorted(rows.items()):
        piece = stored.get((partition_path, bucket))
        if piece is not None:
            based_on[piece.group] = piece.base_instant
            kind = "merge" if table_type is TableType.COPY_ON_WRITE else "append"
        elif inserts:
            kind = "create"
        else:
            continue
        task = WriteTask(
            kind=kind,
            number=len(tasks),
            partition_path=partition_path,
            file_id=piece.group.file_id if piece else bucket_file_id(bucket),
            slice=piece,
            pieces=tuple(pieces[partition_path]),
            updates=tuple(matches),
            log_version=next_log_version(piece) if piece else 0,
        )
        tasks += spread(task) if kind == "append" else [task]
    # Two writers that start file groups in one partition at once may start the same bucket: one of them has to go again.
    created = frozenset(task.partition_path for task in tasks if task.kind == "create")
    return WritePlan(tuple(tasks), based_on, created)
