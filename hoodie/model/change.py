"""What an instant changes in a table, by files: for what takes part in its completion. Pure makers, one for each kind of metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS, name_of
from hoodie.model.payloads import CleanPlan, CommitMetadata, RollbackMetadata


@dataclass(frozen=True)
class Change:
    """What is so when the instant is completed. Mappings are by partition path; names are of files in that partition."""

    instant: Instant
    """As completed: a compaction is a commit, and `commit.operation` tells it from others."""
    added: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Name -> size of files that it wrote; a log that grew has its new size."""
    removed: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Names of files that are deleted."""
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids of file groups whose rows do not count any more. Their files stay, until a clean."""
    undone: tuple[tuple[InstantTime, Action], ...] = ()
    """Instants that it took back. All that they wrote is gone or does not count. Whoever carries a restore on does not know which
    files were removed before, so these count, and `removed` is what is known."""
    partitions_removed: tuple[str, ...] = ()
    """Paths of partitions whose folders are gone."""
    commit: CommitMetadata | None = None
    """Of a write: its operation, its schema, and counts of rows."""


def change_of_commit(instant: Instant, metadata: CommitMetadata) -> Change:
    """Of a write, a compaction, a log compaction or a clustering."""
    added = {
        path: {
            name_of(file): size
            for stat in stats
            for file, size in ((stat.path, stat.file_size_bytes), *stat.change_logs.items())
            if file
        }
        for path, stats in metadata.write_stats.items()
    }
    completed = instant._replace(action=COMPLETES_AS.get(instant.action, instant.action))
    return Change(completed, added, replaced=metadata.replaced_file_ids, commit=metadata)


def change_of_clean(
    instant: Instant, plan: CleanPlan, *, surviving: Collection[str], partitions_removed: tuple[str, ...]
) -> Change:
    """`surviving`: names of files that the plan has and the clean left."""
    removed = {path: tuple(name for name in names if name not in surviving) for path, names in plan.files.items()}
    return Change(instant, removed=removed, partitions_removed=partitions_removed)


def change_of_undoing(instant: Instant, rollbacks: Iterable[RollbackMetadata]) -> Change:
    """Of a rollback, or of a restore with one for each instant that it took back."""
    added: dict[str, dict[str, int]] = {}
    removed: dict[str, list[str]] = {}
    undone: list[tuple[InstantTime, Action]] = []
    for rollback in rollbacks:
        undone += rollback.rolled_back
        for part in rollback.partitions:
            removed.setdefault(part.partition_path, []).extend(map(name_of, part.deleted))
            logs = {name_of(path): size for path, size in part.rollback_log_files.items()}
            added.setdefault(part.partition_path, {}).update(logs)
    return Change(
        instant,
        {path: logs for path, logs in added.items() if logs},
        {path: names for path, names in removed.items() if names},
        undone=tuple(undone),
    )
