"""Names of logs that commits share are decoded once, and come out as they would be decoded in the usual way."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.commit_json import decode_commit, encode_commit
from hoodie.format.log_name_texts import LogNameTexts
from hoodie.model.log_names import LogNames, names_since
from hoodie.model.payloads import CommitMetadata, WriteStat

NAMES = tuple(f".f-0_20260101000000000.log.{number}_0-1-2" for number in range(1, 8))


def commit(names, file_id="f-0", partition="p"):
    stat = WriteStat(file_id, partition, f"{partition}/x", log_version=1, log_files=tuple(names))
    return encode_commit(CommitMetadata(write_stats={partition: (stat,)}))


def names_in(data, texts):
    (stat,) = decode_commit(data, path="x", texts=texts).stats()
    return stat.log_files


def test_each_commit_holds_what_it_adds():
    texts = LogNameTexts()
    found = [names_in(commit(NAMES[:count]), texts) for count in (1, 2, 2, 5)]
    assert [names.added for names in found] == [NAMES[:1], NAMES[1:2], NAMES[1:2], NAMES[2:5]]
    assert found == [NAMES[:1], NAMES[:2], NAMES[:2], NAMES[:5]]
    assert found[3].since(found[1]) == list(NAMES[2:5])
    assert NAMES[0] in found[3]
    assert NAMES[6] not in found[3]
    assert (len(found[3]), found[3][0], found[3][-1]) == (5, NAMES[0], NAMES[4])
    assert pickle.loads(pickle.dumps(found[3])) == found[3]
    assert hash(found[3]) == hash(NAMES[:5])


def test_another_group_partition_or_order_shares_nothing():
    texts = LogNameTexts()
    names_in(commit(NAMES[:3]), texts)
    for data in (commit(NAMES[:4], file_id="g"), commit(NAMES[:4], partition="q"), commit(NAMES[3::-1])):
        assert len(names_in(data, texts).added) == 4
    # A name that goes on where the last one ended is no name more.
    assert names_in(commit([NAMES[3] + "0"]), LogNameTexts()) == (NAMES[3] + "0",)


def test_what_came_to_the_names_of_before():
    assert names_since(NAMES[:3], NAMES[:1]) == NAMES[1:3]
    assert names_since(NAMES[:3], LogNames(None, NAMES[:2], 0)) == NAMES[2:3]
    assert names_since(NAMES[:3], NAMES[1:2]) == NAMES[:3]
    assert names_since(LogNames(None, NAMES[:3], 0), NAMES[:1]) == list(NAMES[:3])


ODD = st.sampled_from(
    [".f_1.log.1_0", ".f_1.log.2_0", "]", '"', "\\", "../x", "/", "", ".", "é", '"logFiles":[', "a,b", "0"]
)
ODD_NAMES = st.lists(ODD, max_size=4)


@given(st.lists(st.lists(ODD_NAMES, min_size=1, max_size=3), max_size=4), st.sampled_from([None, 1]))
def test_they_are_what_the_usual_way_gives(commits, indent):
    texts = LogNameTexts()
    for groups in commits:
        stats = [{"fileId": f"f{at}", "path": f"p/{names}", "logFiles": names} for at, names in enumerate(groups)]
        data = json.dumps({"partitionToWriteStats": {"p": stats}}, indent=indent).encode()
        assert decode_commit(data, path="x", texts=texts) == decode_commit(data, path="x")


@pytest.mark.parametrize(
    "logs",
    [
        b"[",
        b"[1]",
        b'["a" "b"]',
        b'["a",]',
        b"0",
        b'{"a": []}',
        b'[".a_1.log.1"], "logFiles": [".a_1.log.1"]',
        b"[[]]",
        b'[".a]',
    ],
)
def test_damaged_lists_are_told_as_ever(logs):
    data = b'{"partitionToWriteStats": {"p": [{"fileId": "f", "logFiles": %b}]}}' % logs
    with pytest.raises(CorruptFileError) as usual:
        decode_commit(data, path="x")
    with pytest.raises(CorruptFileError) as told:
        decode_commit(data, path="x", texts=LogNameTexts())
    assert str(told.value) == str(usual.value)


def test_what_is_kept_is_bounded():
    texts = LogNameTexts(most_bytes=1000)
    for at in range(50):
        names_in(commit(NAMES, file_id=f"f-{at}"), texts)
    assert texts._bytes < 2000
    assert names_in(commit(NAMES), texts) == NAMES
