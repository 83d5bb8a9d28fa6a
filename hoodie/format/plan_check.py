"""What plans of table services may name: files of their own file groups and instants, inside the table.

Whoever runs a plan deletes and writes by it, and somebody else may have written the plan.
"""

from __future__ import annotations

from hoodie.errors import CorruptFileError
from hoodie.model.instant import is_instant_time
from hoodie.model.names import is_partition_path, name_of, parse_base_file, parse_log_file
from hoodie.model.payloads import CleanPlan, ClusteredSlice, CompactionOperation, RestorePlan, RollbackPlan


def check_operation(operation: CompactionOperation, path: str) -> None:
    """Raises CorruptFileError where an operation names files of another group, elsewhere, or one twice.

    The file id becomes part of the new base file's name, so it must not lead anywhere; a log file that is named twice
    stands where another should, whose rows would be gone.
    """
    base = parse_base_file(operation.data_file) if operation.data_file else None
    logs = [parse_log_file(name) for name in operation.log_files]
    if (
        not is_partition_path(operation.partition_path)
        or not is_instant_time(operation.base_instant)
        or any(mark in operation.file_id for mark in "/_\0")
        or (operation.data_file and (base is None or base.file_id != operation.file_id))
        or any(log is None or log.file_id != operation.file_id for log in logs)
        or any("/" in name for name in (operation.data_file or "", *operation.log_files))
        or len(set(operation.log_files)) < len(operation.log_files)
    ):
        raise CorruptFileError(
            f"{path}: the files of the operation on group {operation.file_id[:80]!r} in partition "
            f"{operation.partition_path[:200]!r} do not belong to it; the compaction cannot be trusted: roll it back"
        )


def check_clustered(piece: ClusteredSlice, path: str) -> None:
    """Raises CorruptFileError where a slice of a clustering plan names files of another group, elsewhere, or one twice."""
    base = parse_base_file(piece.data_file) if piece.data_file else None
    logs = [parse_log_file(name) for name in piece.log_files]
    if (
        not is_partition_path(piece.partition_path)
        or not piece.file_id
        or any(mark in piece.file_id for mark in "/_\0")
        or (piece.data_file and (base is None or base.file_id != piece.file_id))
        or not (piece.data_file or piece.log_files)
        or any(log is None or log.file_id != piece.file_id for log in logs)
        or len(set(piece.log_files)) < len(piece.log_files)
    ):
        raise CorruptFileError(
            f"{path}: the files of group {piece.file_id[:80]!r} in partition {piece.partition_path[:200]!r} do not belong to it; the "
            "clustering cannot be trusted: drop the plan"
        )


def check_rollback(plan: RollbackPlan, path: str) -> None:
    """Raises CorruptFileError where carrying the plan out would delete or write what is not the instant's."""
    if not is_instant_time(plan.instant):
        raise CorruptFileError(f"{path}: {plan.instant[:80]!r} is not an instant to roll back")
    for request in plan.requests:
        if (
            not is_partition_path(request.partition_path)
            or any(mark in (request.file_id or "") for mark in "/_\0")
            or not (request.base_instant in (None, "") or is_instant_time(request.base_instant))
        ):
            raise CorruptFileError(
                f"{path}: partition {request.partition_path[:200]!r} or file group {(request.file_id or '')[:80]!r} lead "
                "out of the table: nothing was deleted; remove the plan and roll the instant back again"
            )
        for full in request.files_to_delete:
            name = name_of(full)
            base, log = parse_base_file(name), parse_log_file(name)
            written = base.instant if base else log.base_instant if log else None
            if written != plan.instant or "\0" in name:
                raise CorruptFileError(
                    f"{path}: the plan deletes {full[:300]!r}, which instant {plan.instant} did not write: nothing was "
                    "deleted; remove the plan and roll the instant back again"
                )


def check_restore(plan: RestorePlan, path: str) -> None:
    """Raises CorruptFileError where carrying the plan out would take back what is not after the instant to restore."""
    target = plan.target
    for time, _ in plan.instants:
        if not is_instant_time(time) or (target is not None and time <= target):
            raise CorruptFileError(
                f"{path}: the plan undoes {time[:80]!r}, which is not after {(target or '')[:80]!r}, the instant to restore: nothing "
                "was done; remove the plan and restore again"
            )


def check_clean(plan: CleanPlan, path: str) -> None:
    """Raises CorruptFileError where carrying the plan out would delete anything but data files of the table."""
    for partition_path in (*plan.files, *plan.emptied):
        if not is_partition_path(partition_path):
            raise CorruptFileError(
                f"{path}: partition {partition_path[:200]!r} leads out of the table: nothing was deleted; remove the plan"
            )
    for partition_path, names in plan.files.items():
        for name in names:
            if "\0" in name or (parse_base_file(name) is None and parse_log_file(name) is None):
                raise CorruptFileError(
                    f"{path}: the plan deletes {name[:300]!r} in partition {partition_path[:200]!r}, which is not a data file: "
                    "nothing was deleted; remove the plan"
                )
