"""Hash rings of consistent buckets as Apache Hudi stores them: JSON in `{instant}.hashing_meta`, a folder for each partition.

Witnesses: tests/format/test_hash_ring.py, integration/test_consistent_buckets_with_hudi.py.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping

from hoodie.errors import CorruptFileError
from hoodie.model.buckets import FIRST_RING, HashRing, RingChange, RingNode, sorted_nodes
from hoodie.model.instant import InstantTime

_PARTITION, _CHILDREN, _NUMBER = (f"clustering.group.{name}" for name in ("partition", "child.node", "sequence.no"))
"""What a clustering plan says of a group of files that changes a ring."""
GREATEST = 0x7FFFFFFF
"""The greatest hash, and the value of the last node of a new ring."""


def first_ring(partition_path: str, count: int) -> HashRing:
    """The ring of a new partition: ranges of equal size. Every writer makes the same one, file ids included."""
    step = (GREATEST + count - 1) // count
    ends = [min(step * number, GREATEST) for number in range(1, count + 1)]
    nodes = _nodes(partition_path, ends, b"")
    return HashRing(partition_path, FIRST_RING, count, 0, nodes)


def renewed_ring(ring: HashRing, instant: InstantTime) -> HashRing:
    """The ring with other file groups, for an overwrite: the old ones are replaced, and a replaced one shows no rows any more."""
    number = ring.number + 1
    nodes = _nodes(ring.partition_path, [node.value for node in ring.nodes], f"/{number}".encode())
    return HashRing(ring.partition_path, instant, ring.count, number, nodes)


def _nodes(partition_path: str, ends: Iterable[int], more: bytes) -> tuple[RingNode, ...]:
    """Nodes whose file ids are made of what they are: Java's `UUID.nameUUIDFromBytes` of the range and the partition path."""
    nodes, start = [], 0
    for end in ends:
        seed = start.to_bytes(8, "big") + end.to_bytes(8, "big") + partition_path.encode() + more
        digest = hashlib.md5(seed, usedforsecurity=False).digest()
        nodes.append(RingNode(end, str(uuid.UUID(bytes=digest, version=3))))
        start = end
    return sorted_nodes(nodes)


def format_ring(ring: HashRing) -> bytes:
    return json.dumps(
        {
            "version": 0,
            "partitionPath": ring.partition_path,
            "instant": ring.instant,
            "numBuckets": ring.count,
            "seqNo": ring.number,
            "nodes": [{"value": node.value, "fileIdPrefix": node.file_prefix, "tag": "NORMAL"} for node in ring.nodes],
        },
        indent=2,
    ).encode()


def parse_ring(data: bytes, *, path: str, partition_path: str) -> HashRing:
    """Raises CorruptFileError where the bytes are no ring of this partition; one without nodes could place no key."""
    try:
        fields = json.loads(data)
        nodes = sorted_nodes(_node(each) for each in fields["nodes"])
        ring = HashRing(
            fields["partitionPath"],
            InstantTime(fields["instant"]),
            int(fields["numBuckets"]),
            int(fields["seqNo"]),
            nodes,
        )
        if fields["version"] != 0 or not nodes or ring.partition_path != partition_path or ring.count < 1:
            raise ValueError(f"version {fields['version']!r}, partition {str(ring.partition_path)[:80]!r}")
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise CorruptFileError(
            f"{path} is not a hash ring of the buckets of partition {partition_path!r} ({exc}); without it no writer knows which file "
            "group a key belongs to: restore the file from a copy of the table"
        ) from exc
    return ring


def _node(fields: dict[str, object]) -> RingNode:
    value, prefix = fields["value"], fields["fileIdPrefix"]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= GREATEST:
        raise ValueError(f"value {value!r} of a node")
    if not isinstance(prefix, str) or not prefix or any(mark in prefix for mark in "/_\0") or prefix.startswith("."):
        raise ValueError(f"file id {prefix!r} of a node")
    return RingNode(value, prefix)


def format_change(change: RingChange) -> dict[str, str]:
    """As a group of a clustering plan has it."""
    removed = [{"value": value, "fileIdPrefix": None, "tag": "DELETE"} for value in change.removed]
    nodes = [{"value": node.value, "fileIdPrefix": node.file_prefix, "tag": "REPLACE"} for node in change.nodes]
    return {
        _PARTITION: change.partition_path,
        _CHILDREN: json.dumps([*removed, *nodes]),
        _NUMBER: str(change.number),
    }


def parse_change(extra: Mapping[str, str], *, path: str) -> RingChange | None:
    """What a group of a clustering plan does to a ring; None: nothing, the table has none.

    Raises:
        CorruptFileError: it cannot be read.
    """
    if _CHILDREN not in extra:
        return None
    try:
        children = json.loads(extra[_CHILDREN])
        tags = {each["tag"] for each in children}
        nodes = tuple(_node(each) for each in children if each["tag"] == "REPLACE")
        removed = tuple(int(each["value"]) for each in children if each["tag"] == "DELETE")
        if not nodes or tags - {"REPLACE", "DELETE"}:
            raise ValueError(f"nodes tagged {', '.join(sorted(map(str, tags)))}")
        return RingChange(extra[_PARTITION], int(extra[_NUMBER]), nodes, removed)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise CorruptFileError(
            f"{path}: its change of the hash ring cannot be read ({exc}); the clustering cannot be trusted: drop the plan"
        ) from exc
