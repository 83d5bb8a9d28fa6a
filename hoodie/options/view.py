"""Options of where a table's files are found: by listing each time, or by following the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.options import keys
from hoodie.options.values import ViewStore


@dataclass(frozen=True)
class ViewOptions:
    follows: bool = keys.VIEW_SYNC.default
    """A partition is listed once, and afterwards instants say what became of its files."""
    type: ViewStore = keys.VIEW_TYPE.default
    secondary: ViewStore = keys.VIEW_SECONDARY.default
    spill_bytes: int = keys.VIEW_SPILL_BYTES.default
    spill_folder: str | None = keys.VIEW_SPILL_DIR.default
    rocksdb_folder: str | None = keys.VIEW_ROCKSDB_DIR.default
    checkpoint: str | None = keys.VIEW_CHECKPOINT.default
    """A folder, or an address: where the next process finds what this one knew."""

    @property
    def store(self) -> ViewStore:
        """What this process keeps files in."""
        return self.secondary if self.type.is_remote else self.type


VIEW = ViewOptions()
