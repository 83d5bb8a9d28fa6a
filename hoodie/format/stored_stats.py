"""Write stats of a commit that wrote into many partitions: decoded and checked partition by partition, when one is asked for.

To decode ten thousand takes several times as long as to parse the JSON, and most queries are about few partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from hoodie.model.log_names import LogNames
from hoodie.model.payloads import WriteStat

MANY_PARTITIONS = 100
"""Stats of a commit with fewer are decoded at once."""

Stats = tuple[WriteStat, ...]


class StoredStats(Mapping[str, Stats]):
    """`CommitMetadata.write_stats` over the parsed values of `partitionToWriteStats`, of which it takes possession.

    Raises, when a partition is asked for:
        CorruptFileError: its stats are damaged.
    """

    def __init__(self, values: dict[str, object], decode: Callable[[str, object], Stats]) -> None:
        self._values = values
        """A tuple where it is decoded."""
        self._decode = decode

    def checked(self, check: Callable[[WriteStat], None]) -> StoredStats:
        """The same, where each stat has to pass a check."""

        def decode(partition_path: str, value: object) -> Stats:
            result = self._decode(partition_path, value)
            for stat in result:
                check(stat)
            return result

        return StoredStats(self._values, decode)

    def __getitem__(self, partition_path: str) -> Stats:
        value = self._values[partition_path]
        if not isinstance(value, tuple):
            value = self._values[partition_path] = self._decode(partition_path, value)
        return value

    def __contains__(self, partition_path: object) -> bool:
        return partition_path in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[type[dict[str, Stats]], tuple[dict[str, Stats]]]:
        return dict, (dict(self),)

    def log_names(self) -> Iterator[LogNames]:
        """The lists of log files that share their texts with other commits; nothing is decoded for it."""
        for value in self._values.values():
            for stat in value if isinstance(value, list) else ():
                names = stat.get("logFiles") if isinstance(stat, dict) else None
                if isinstance(names, LogNames):
                    yield names
