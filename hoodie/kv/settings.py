"""What a store is, written once when it is made, and how one opening of it works.

The file of the store is numbered: `store-00000002.json` takes the place of `store-00000001.json`, as more buckets do. Files of one
name are never replaced, so that of two who make a store, or change one, one wins.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hoodie.errors import CorruptFileError, OptionError

MB = 1024 * 1024
NO_COMPRESSION = "none"
_YEAR_S = 366 * 86_400


@dataclass(frozen=True)
class StoreLayout:
    """What all openings of a store share."""

    number: int
    """Of the file that says it, from 1."""
    buckets: int
    file_format: str
    order: str
    """Name of the order of keys."""

    def encode(self) -> bytes:
        fields = {"buckets": self.buckets, "file_format": self.file_format, "order": self.order}
        return json.dumps({"version": 1, **fields}).encode()

    @classmethod
    def decode(cls, number: int, content: bytes, *, path: str) -> StoreLayout:
        """Raises: CorruptFileError: the file is damaged, or of a release that is newer than this one."""
        try:
            fields = json.loads(content)
            version, buckets = fields["version"], fields["buckets"]
            result = cls(number, buckets, str(fields["file_format"]), str(fields["order"]))
        except (ValueError, KeyError, TypeError) as exc:
            raise CorruptFileError(f"{path} does not say what store this is ({exc}): {content[:80]!r}") from exc
        if version != 1 or not isinstance(buckets, int) or isinstance(buckets, bool) or buckets < 1:
            raise CorruptFileError(
                f"{path} is of version {version!r} with {buckets!r} buckets; this release knows version 1"
            )
        return result


@dataclass(frozen=True)
class StoreOptions:
    """How one opening works: nothing of it is in the store."""

    flush_size: int = 1_000_000
    """Keys in memory that are written to data files."""
    flush_interval_count: int = 120
    """Windows after which they are."""
    flush_bytes: int = 256 * MB
    """Bytes of keys and values in memory after which they are."""
    max_wal_file_size: int = 64 * MB
    max_file_size: int = 128 * MB
    compression: str = NO_COMPRESSION
    """Of new data files."""
    keep_replaced_s: float = 600.0
    """So long a data file stays that was merged or purged, for readers that have not yet seen what took its place."""
    sync: str = "window"
    """"window": a window is on storage, a power cut included, when `end_window` returns. "process": it outlives the process."""

    def __post_init__(self) -> None:
        for name in ("flush_size", "flush_interval_count", "flush_bytes", "max_wal_file_size", "max_file_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise OptionError(f"{name}={value!r} is not a whole number above 0")
        kept_s: object = self.keep_replaced_s
        if not isinstance(kept_s, int | float) or not 0 <= kept_s <= _YEAR_S:
            raise OptionError(f"keep_replaced_s={self.keep_replaced_s!r} is not a number of seconds from 0 to a year")
        if self.sync not in ("window", "process"):
            raise OptionError(f'sync={self.sync!r} is neither "window" nor "process"')
