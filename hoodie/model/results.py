"""What a write reports to its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hoodie.model.enums import WriteOperation
from hoodie.model.payloads import WriteStat


@dataclass(frozen=True)
class CommitResult:
    """Outcome of one write or table service."""

    instant: str | None
    """None when there was nothing to do."""
    operation: WriteOperation
    inserted: int = 0
    updated: int = 0
    """Rows written for keys that were there. Merge-on-read appends late rows too; readers drop those that lose."""
    deleted: int = 0
    files: int = 0
    bytes_written: int = 0
    index: Mapping[str, int] = field(default_factory=dict)
    """How many base files each way of the look-up decided: "range", "bloom", "bloom+keys", "keys"."""
    seconds: float = 0.0
    engine: str = ""
    """Where the rows were worked on: "embedded" or "spark"."""

    @classmethod
    def of(cls, instant: str, operation: WriteOperation, stats: Iterable[WriteStat]) -> CommitResult:
        """The sums of a commit's write stats."""
        counted = list(stats)
        return cls(
            instant=instant,
            operation=operation,
            inserted=sum(s.num_inserts for s in counted),
            updated=sum(s.num_updates for s in counted),
            deleted=sum(s.num_deletes for s in counted),
            files=len(counted),
            bytes_written=sum(s.total_bytes for s in counted),
        )

    def __str__(self) -> str:
        if self.instant is None:
            return f"{self.operation.value.lower()}: nothing to do"
        return (
            f"{self.instant} {self.operation.value.lower()}: {self.inserted:,} inserted, {self.updated:,} updated, "
            f"{self.deleted:,} deleted; {self.files} files, {self.bytes_written / 1e6:,.1f} MB, {self.seconds:.2f} s"
        )
