"""How a table with a bucket index spreads its keys: the hash of a key says in which file group it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hoodie.model.instant import InstantTime
from hoodie.model.late import once
from hoodie.model.names import join
from hoodie.model.plans import Chunk, Matches

RULE_TYPE = "regex"
FIRST_RULES = InstantTime("00000000000000")
"""Of rules that a table was made with."""
_MOST_BUCKETS = 99_999_999
"""As a file id has room for."""
_OTHERWISE = re.compile(r"\\[pPQERXGhHvVzZN]|\(\?<[A-Za-z]|&&|\[[^\]]*\[")
"""What Java understands otherwise than Python, or Python not at all."""


@dataclass(frozen=True)
class BucketRules:
    expressions: str
    """`EXPRESSION,NUMBER;EXPRESSION,NUMBER;…`, as Apache Hudi has it."""
    instant: InstantTime = FIRST_RULES
    """Since when."""

    def count_of(self, partition_path: str) -> int | None:
        """None: no expression is found in it."""
        return next((count for pattern, count in self.parsed if pattern.search(partition_path)), None)

    @once
    def parsed(self) -> tuple[tuple[re.Pattern[str], int], ...]:
        """Raises ValueError: the expressions are none, with the rest of a sentence that begins with what says them."""
        return tuple(_rule(each) for each in _split(self.expressions, ";"))


def _rule(text: str) -> tuple[re.Pattern[str], int]:
    parts = _split(text.strip(), ",")
    if len(parts) != 2:
        raise ValueError(f"{text!r} is not EXPRESSION,NUMBER")
    expression, number = (part.strip() for part in parts)
    if not (number.isascii() and number.isdigit()) or not 0 < int(number[:12]) <= _MOST_BUCKETS:
        raise ValueError(f"{number!r} in {text!r} is not a number of buckets")
    match = _OTHERWISE.search(expression)
    if match is not None:
        raise ValueError(
            f"{match[0]!r} in {text!r} means something else in Java, or nothing in Python; write it otherwise"
        )
    try:
        return re.compile(expression, re.ASCII), int(number)
    except re.error as exc:
        raise ValueError(f"{expression!r} is no regular expression: {exc}") from exc


def _split(text: str, by: str) -> list[str]:
    """As Java does: empty texts at the end do not count."""
    result = text.split(by)
    while len(result) > 1 and not result[-1]:
        result.pop()
    return result


BUCKET_INDEX = join(".hoodie", ".bucket_index")
"""Folder in which Apache Hudi keeps what other bucket engines than the simple one need to find a key."""
RINGS = join(BUCKET_INDEX, "consistent_hashing_metadata")
"""Folder of the hash rings: in it a folder for each partition path."""
RING_FILE, RING_MARK = ".hashing_meta", ".commit"
"""`{instant}.hashing_meta` has a ring; `{instant}.commit` beside it says that the instant is completed."""
FIRST_RING = InstantTime("00000000000000")
"""The instant of a ring that no clustering has made: its content follows from the partition path and the number of buckets."""


class BucketEngine(StrEnum):
    SIMPLE = "SIMPLE"
    """The hash modulo the number of buckets, which never changes."""
    CONSISTENT_HASHING = "CONSISTENT_HASHING"
    """A ring for each partition, whose ranges of hashes clusterings split and merge."""


@dataclass(frozen=True)
class BucketLayout:
    """Each bucket of a partition has one file group."""

    count: int
    """Buckets of a partition; on hash rings: of a new one."""
    fields: tuple[str, ...]
    """Record key columns whose values are hashed."""
    engine: BucketEngine = BucketEngine.SIMPLE
    rules: BucketRules | None = None
    """Other numbers of simple buckets in some partitions."""

    def count_in(self, partition_path: str) -> int:
        """Simple buckets of a partition."""
        return (None if self.rules is None else self.rules.count_of(partition_path)) or self.count

    def holds_against(self, now: BucketLayout | None) -> bool:
        """Whether properties that say `now` still say this. Rules change without them."""
        if self.rules is None or now is None:
            return now == self
        return (now.fields, now.engine) == (self.fields, self.engine)


class RingNode(NamedTuple):
    """A bucket on a hash ring: it has the hashes above the node before it, up to its value."""

    value: int
    file_prefix: str
    """The id of its file group, without the `-0` at its end."""

    @property
    def file_id(self) -> str:
        return f"{self.file_prefix}-0"


@dataclass(frozen=True)
class HashRing:
    """The buckets of one partition."""

    partition_path: str
    instant: InstantTime
    """Of the replacecommit that made it, or `FIRST_RING`."""
    count: int
    """Buckets that the partition began with."""
    number: int
    """How many rings of the partition came before it."""
    nodes: tuple[RingNode, ...]
    """By value."""

    @once
    def values(self) -> npt.NDArray[np.uint32]:
        return np.array([node.value for node in self.nodes], dtype=np.uint32)

    @once
    def numbers(self) -> Mapping[str, int]:
        """File id -> number of its bucket."""
        return {node.file_id: number for number, node in enumerate(self.nodes)}


@dataclass(frozen=True)
class RingChange:
    """What a clustering does to the ring of a partition: one bucket becomes two, neighbours become one, or one is written anew."""

    partition_path: str
    number: int
    """Of the ring that it changes."""
    nodes: tuple[RingNode, ...]
    """Of new file groups; one that has the value of an old node takes its place."""
    removed: tuple[int, ...] = ()
    """Values of nodes that go."""


def changed_ring(ring: HashRing, changes: Iterable[RingChange], instant: InstantTime) -> HashRing:
    """The ring after these changes of one clustering."""
    nodes = {node.value: node for node in ring.nodes}
    for change in changes:
        for value in change.removed:
            nodes.pop(value, None)
        nodes.update({node.value: node for node in change.nodes})
    return HashRing(ring.partition_path, instant, ring.count, ring.number + 1, sorted_nodes(nodes.values()))


def places_on(values: npt.NDArray[np.uint32], hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """The number of the bucket of each hash, on a ring with nodes of these values; beyond the last one the first follows."""
    places: npt.NDArray[np.int64] = np.searchsorted(values, hashes) % len(values)
    return places


@dataclass(frozen=True)
class BucketTask:
    """Find the bucket of every row of a chunk."""

    number: int
    """The chunk's, in arrival order."""
    chunk: Chunk
    layout: BucketLayout
    stage_to: str | None = None
    """Folder for the row numbers; None keeps them in memory."""
    rings: Mapping[str, npt.NDArray[np.uint32]] = field(default_factory=dict)
    """The values of the nodes of each partition of the chunk, where its table has rings."""

    @property
    def size_bytes(self) -> int:
        return self.chunk.size_bytes


@dataclass(frozen=True)
class BucketRows:
    """The rows of one chunk that belong into one bucket of one partition."""

    partition_path: str
    bucket: int
    rows: Matches


def sorted_nodes(nodes: Iterable[RingNode]) -> tuple[RingNode, ...]:
    """By value, of several with one value the last."""
    return tuple(sorted({node.value: node for node in nodes}.values()))
