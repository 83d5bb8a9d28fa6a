"""What a compaction chooses among."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CompactionCandidate:
    """A file slice with logs that a compaction may take."""

    partition_path: str
    file_id: str
    log_files: int
    """How many there are."""
    log_bytes: int
    base_bytes: int
    """Of the base file; 0 where there is none yet."""
    read_mb: int
    """Whole megabytes of logs and base file."""
    write_mb: int
    """Whole megabytes of the new base file, taken to be as large as the one before, or as large as files get."""

    @property
    def io_mb(self) -> int:
        """What a compaction of the slice reads and writes, as Apache Hudi reckons it."""
        return self.read_mb + self.write_mb


CompactionStrategy = Callable[[Sequence[CompactionCandidate]], Iterable[CompactionCandidate]]
"""Of the candidates those to take, in the order in which it is worth doing."""
