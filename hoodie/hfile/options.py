"""How an HFile is written."""

from __future__ import annotations

from dataclasses import dataclass, field

from hoodie.errors import OptionError
from hoodie.hfile.block import Coding
from hoodie.hfile.bloom import CHUNK_BYTES
from hoodie.hfile.key_value import Column

_MOST_BLOCK_BYTES = 1 << 28


@dataclass(frozen=True)
class HFileOptions:
    """What readers find in the file by itself; nothing of it has to be said again to read."""

    block_bytes: int = 64 * 1024
    """A data block is closed with the cell that makes it so large."""
    coding: Coding = field(default_factory=Coding)
    column: Column = field(default_factory=Column)
    bloom_rate: float | None = 0.01
    """How often the bloom filter says yes wrongly; None: no filter."""
    bloom_chunk_bytes: int = CHUNK_BYTES
    index_page_bytes: int = 128 * 1024
    """A data index that is larger gets a level more."""
    index_least_entries: int = 16
    created_ms: int = 0
    """Milliseconds since 1970; the same for the same bytes."""

    def __post_init__(self) -> None:
        if not 1 <= self.block_bytes <= _MOST_BLOCK_BYTES:
            raise OptionError(f"HFile blocks of {self.block_bytes} bytes: give 1 to {_MOST_BLOCK_BYTES}")
        if self.index_page_bytes < 1 or self.index_least_entries < 2:
            raise OptionError("pages of an HFile index have at least 1 byte and 2 entries")
