"""Overwrites: which partitions, and so which file groups, a write replaces. Pure.

The replaced groups are named in the completed replacecommit and are gone for whoever reads from its instant on; their files
stay for readers of earlier instants until they are cleaned. What Apache Hudi does in each case was observed on 1.2.0:

- A partition whose rows are overwritten by none is emptied: `insert_overwrite_table` without rows empties the table,
  `insert_overwrite` without rows and without a static list of partitions changes nothing.
- A group in a pending compaction is replaced like any other. The compaction can still be run: its base file belongs to the
  replaced group, which only readers of earlier instants see. (Apache Hudi refuses delete_partition there, not insert_overwrite.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileSlice
from hoodie.options.write import WriteOptions
from hoodie.write.operation_rules import Replaces
from hoodie.write.plan import WritePlan


def overwritten_partitions(
    operation: WriteOperation,
    replaces: Replaces,
    options: WriteOptions,
    *,
    of_rows: Iterable[str],
    stored: Sequence[str],
) -> tuple[str, ...]:
    """Partition paths whose file groups are replaced, of those that are there, sorted.

    Args:
        of_rows: partition paths of the batch's rows. stored: those of the table.
    """
    there = set(stored)
    if replaces is Replaces.ALL:
        return tuple(sorted(there))
    if operation is WriteOperation.DELETE_PARTITION and options.partitions_to_delete is not None:
        return matching_partitions(options.partitions_to_delete, stored)
    if operation is WriteOperation.INSERT_OVERWRITE and options.static_partitions:
        return tuple(sorted(there.intersection(options.static_partitions)))
    return tuple(sorted(there.intersection(of_rows)))


def matching_partitions(patterns: Iterable[str], stored: Iterable[str]) -> tuple[str, ...]:
    """The stored partition paths that one of the patterns names, sorted; `*` (or `%2A`) stands for any text, `/` included."""
    tests = [re.compile(".*".join(map(re.escape, re.split(r"\*|%2A", pattern))), re.DOTALL) for pattern in patterns]
    return tuple(sorted(path for path in set(stored) if any(test.fullmatch(path) for test in tests)))


def replacing(plan: WritePlan, partitions: Iterable[str], slices: Iterable[FileSlice], *, all_of_it: bool) -> WritePlan:
    """The plan with the groups of the overwritten partitions as replaced; whatever else happens to these is a conflict.

    Args:
        slices: the latest slices of those partitions. all_of_it: the whole table is overwritten, so that rows which
            others bring into any partition meanwhile are a conflict.
    """
    ids: dict[str, list[str]] = {partition_path: [] for partition_path in partitions}
    based_on = dict(plan.based_on)
    for file_slice in slices:
        ids[file_slice.group.partition_path].append(file_slice.group.file_id)
        based_on[file_slice.group] = file_slice.base_instant
    touched = None if all_of_it else frozenset(ids) | (plan.absent_in or frozenset())
    replaced = {partition_path: tuple(sorted(ids_of_path)) for partition_path, ids_of_path in sorted(ids.items())}
    return replace(plan, based_on=based_on, absent_in=touched, replaced=replaced)
