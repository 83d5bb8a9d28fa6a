import json

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.hash_ring import GREATEST, first_ring, format_ring, parse_ring, renewed_ring
from hoodie.model.buckets import places_on
from hoodie.model.instant import InstantTime

# As Apache Hudi 1.2.0 wrote it for partition ny with 4 buckets.
OF_HUDI = """{
  "version" : 0,
  "partitionPath" : "ny",
  "instant" : "00000000000000",
  "numBuckets" : 4,
  "seqNo" : 0,
  "nodes" : [ {
    "value" : 536870912,
    "fileIdPrefix" : "07e3b671-a6d8-3a9e-b5f0-45ffee2e0035",
    "tag" : "NORMAL"
  }, {
    "value" : 1073741824,
    "fileIdPrefix" : "40920745-bb64-3044-9435-fef120c3efc1",
    "tag" : "NORMAL"
  }, {
    "value" : 1610612736,
    "fileIdPrefix" : "adb733b6-36b8-3a7d-93f0-f8e351a96218",
    "tag" : "NORMAL"
  }, {
    "value" : 2147483647,
    "fileIdPrefix" : "150bf5dd-2ae3-3f44-b2ca-ad115c7dabb8",
    "tag" : "NORMAL"
  } ]
}"""


def parsed(text, partition_path="ny"):
    return parse_ring(text.encode(), path="ring", partition_path=partition_path)


def test_the_first_ring_of_a_partition_is_that_of_hudi():
    ring = first_ring("ny", 4)
    assert parsed(OF_HUDI) == ring
    assert json.loads(format_ring(ring)) == json.loads(OF_HUDI)
    assert first_ring("sf", 4).nodes[0].file_id == "b191fdb9-1561-3229-90af-667100004fe7-0"


def test_a_ring_is_read_back():
    for count in (1, 2, 3, 7, 256):
        ring = renewed_ring(first_ring("a/b=é", count), InstantTime("20260101000000000"))
        assert parsed(format_ring(ring).decode(), "a/b=é") == ring
        assert [node.value for node in ring.nodes][-1] == GREATEST
        assert not set(ring.numbers) & set(first_ring("a/b=é", count).numbers)


def test_a_hash_belongs_to_the_next_node_and_beyond_the_last_one_to_the_first():
    values = first_ring("ny", 4).values
    assert places_on(values, values).tolist() == [0, 1, 2, 3]
    assert places_on(values, values[:3] + 1).tolist() == [1, 2, 3]
    assert places_on(values[:2], values).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("cut", range(0, len(OF_HUDI), 7))
def test_a_ring_that_is_cut_off_is_damage(cut):
    with pytest.raises(CorruptFileError, match="is not a hash ring"):
        parsed(OF_HUDI[:cut])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version" : 0', '"version" : 1'),
        ('"ny"', '"sf"'),
        ("2147483647", "2147483648"),
        ("536870912", "-1"),
        ("536870912", "true"),
        ("07e3b671", "../07e3b671"),
        ('"07e3b671-a6d8-3a9e-b5f0-45ffee2e0035"', "null"),
        ('"numBuckets" : 4', '"numBuckets" : 0'),
        ('"seqNo" : 0', '"seqNo" : "x"'),
    ],
)
def test_what_no_ring_says_is_damage(old, new):
    with pytest.raises(CorruptFileError, match="restore the file"):
        parsed(OF_HUDI.replace(old, new, 1))
