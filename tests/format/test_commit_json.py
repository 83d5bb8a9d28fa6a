"""Commit metadata: files of Apache Hudi, round trips, and what must not be taken for a commit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.commit_json import decode_commit, encode_commit
from hoodie.model.enums import WriteOperation
from hoodie.model.payloads import CommitMetadata, WriteStat
from tests.golden_tables import FOLDER

FILES = [
    path
    for path in sorted(FOLDER.glob("v6_*/table/**/.hoodie/*"))
    if path.is_file() and path.name[0].isdigit() and path.read_bytes()[:1] == b"{"
]
LOG_STAT = WriteStat(
    file_id="f-0",
    partition_path="a",
    path="a/.f-0_1.log.2_0-42-53",
    prev_commit="1",
    num_writes=2,
    num_updates=2,
    num_deletes=1,
    total_bytes=7,
    file_size_bytes=9,
    log_version=2,
    base_file="",
    log_files=(".f-0_1.log.1_0-42-53", ".f-0_1.log.2_0-42-53"),
)


def test_there_are_golden_files_of_every_kind():
    assert len(FILES) > 80
    assert {path.name.partition(".")[2] for path in FILES} >= {
        "commit",
        "inflight",
        "deltacommit",
        "deltacommit.inflight",
        "replacecommit",
        "replacecommit.inflight",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.relative_to(FOLDER).parts[0]}-{path.name}")
def test_golden_commit_says_the_same_after_a_round_trip(path):
    data = path.read_bytes()
    metadata = decode_commit(data, path=str(path))
    again = encode_commit(metadata)
    assert decode_commit(again, path=str(path)) == metadata
    # What the other readers need must be in our bytes as it was in Hudi's, by their keys.
    theirs, ours = json.loads(data), json.loads(again)
    assert ours["extraMetadata"] == theirs["extraMetadata"]
    assert ours["compacted"] == theirs["compacted"]
    assert ours.get("partitionToReplaceFileIds", {}) == theirs.get("partitionToReplaceFileIds", {})
    assert ours["operationType"] in (theirs["operationType"], "UNKNOWN")
    assert list(ours["partitionToWriteStats"]) == list(theirs["partitionToWriteStats"])
    for partition, stats in theirs["partitionToWriteStats"].items():
        for our, their in zip(ours["partitionToWriteStats"][partition], stats, strict=True):
            their["partitionPath"] = partition
            assert our.items() <= their.items()
            assert {"baseFile", "logFiles", "logVersion", "logOffset"} & set(their) <= set(our)


def test_golden_compaction_is_decoded_field_by_field():
    path = FOLDER / "v6_mor_compacted/table/.hoodie/20261121074858416.commit"
    metadata = decode_commit(path.read_bytes(), path=str(path))
    assert metadata.operation is WriteOperation.COMPACT
    assert metadata.compacted
    assert metadata.schema_json.startswith('{"type":"record","name":"v6_mor_compacted_record"')
    assert metadata.extra == {}
    assert metadata.write_stats["a"] == (
        WriteStat(
            file_id="af57d032-54ea-4406-a08c-9e1bb1839513-0",
            partition_path="a",
            path="a/af57d032-54ea-4406-a08c-9e1bb1839513-0_0-73-102_20261121074858416.parquet",
            prev_commit="20261121074759507",
            num_writes=10,
            num_updates=4,
            total_bytes=10767,
            file_size_bytes=10767,
            prev_base_file="af57d032-54ea-4406-a08c-9e1bb1839513-0_0-19-20_20261121074759507.parquet",
            total_log_records=5,
            total_log_files_compacted=2,
            total_log_bytes_compacted=647,
            total_updated_records_compacted=4,
        ),
    )


def test_log_write_is_encoded_as_a_delta_write_stat_and_a_base_file_is_not():
    base = WriteStat(file_id="g-0", partition_path="a", path="a/g-0_0-1-2_3.parquet", num_writes=4, num_inserts=4)
    encoded = json.loads(encode_commit(CommitMetadata(write_stats={"a": (LOG_STAT, base)})))
    log, file = encoded["partitionToWriteStats"]["a"]
    assert (log["logVersion"], log["logOffset"], log["baseFile"]) == (2, 0, "")
    assert log["logFiles"] == list(LOG_STAT.log_files)
    assert not {"logVersion", "logOffset", "baseFile", "logFiles"} & set(file)
    # Hudi marks a new file group by the text "null", not by the null of JSON.
    assert (log["prevCommit"], file["prevCommit"]) == ("1", "null")


def test_schema_goes_into_extra_metadata_and_wins_over_an_entry_of_its_name():
    metadata = CommitMetadata(schema_json="S", extra={"k": "v", "schema": "other"})
    assert json.loads(encode_commit(metadata))["extraMetadata"] == {"k": "v", "schema": "S"}
    assert json.loads(encode_commit(CommitMetadata(extra={"k": "v"})))["extraMetadata"] == {"k": "v"}


def test_replaced_file_ids_are_written_only_where_there_are_some():
    assert "partitionToReplaceFileIds" not in json.loads(encode_commit(CommitMetadata()))
    encoded = encode_commit(CommitMetadata(replaced_file_ids={"": ("f", "g")}))
    assert json.loads(encoded)["partitionToReplaceFileIds"] == {"": ["f", "g"]}


@pytest.mark.parametrize(
    ("path", "partition", "found"),
    [
        ("file:a/b/.x", "a/b", "a/b/.x"),
        ("file:.x", "", ".x"),
        ("a:b/.x", "a:b", "a:b/.x"),
        ("file:b/.x", "a", "file:b/.x"),
        ("file:/b/.x", "", "file:/b/.x"),
    ],
)
def test_a_path_that_hudi_found_by_a_marker_has_the_scheme_in_front(path, partition, found):
    commit = {"partitionToWriteStats": {partition: [{"fileId": "f", "path": path}]}, "extraMetadata": {}}
    (stat,) = decode_commit(json.dumps(commit).encode(), path="c").stats()
    assert stat.path == found


def test_unknown_keys_and_operations_and_nulls_do_no_harm():
    data = json.dumps(
        {
            "new": {"key": [1]},
            "operationType": "UPSERT_PREPPED",
            "partitionToReplaceFileIds": None,
            "extraMetadata": {"schema": "", "gone": None, "kept": "v"},
            "partitionToWriteStats": {
                "p": [{"fileId": "f", "path": "p/f", "numWrites": None, "recordsStats": {"a": 1}}]
            },
        }
    ).encode()
    assert decode_commit(data, path="x") == CommitMetadata(
        extra={"kept": "v"},
        write_stats={"p": (WriteStat(file_id="f", partition_path="p", path="p/f"),)},
    )
    assert decode_commit(b"{}", path="x") == CommitMetadata()


def test_a_writer_that_did_not_count_says_a_number_below_zero():
    stat = {"fileId": "f", "path": "p/f", "numWrites": -1, "fileSizeInBytes": -1}
    commit = decode_commit(json.dumps({"partitionToWriteStats": {"p": [stat]}}).encode(), path="x")
    assert commit.write_stats == {"p": (WriteStat(file_id="f", partition_path="p", path="p/f"),)}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes"),
        (b"Obj\x01", "not the JSON"),
        (b"\xff\xfe", "not the JSON"),
        (b'{"compacted": tr', "not the JSON"),
        (b"[" * 200_000, "not the JSON"),
        (b"[]", "the commit is '[]', expected an object"),
        (b'{"compacted": "no"}', "compacted of the commit is 'no', expected true or false"),
        (b'{"operationType": 3}', "operationType"),
        (b'{"extraMetadata": {"schema": {}}}', "extraMetadata 'schema'"),
        (b'{"partitionToWriteStats": []}', "partitionToWriteStats"),
        (b'{"partitionToWriteStats": {"p": {}}}', "expected a list"),
        (b'{"partitionToWriteStats": {"p": [null]}}', "a write stat of partition 'p'"),
        (b'{"partitionToWriteStats": {"p": [{"fileId": 1}]}}', "fileId of a write stat of partition 'p' is '1'"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": true}]}}', "expected a whole number"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": 1.5}]}}', "expected a whole number"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": 9223372036854775808}]}}', "a number of 64 bits"),
        (b'{"partitionToWriteStats": {"p": [{"logFiles": "l"}]}}', "logFiles"),
        (b'{"partitionToReplaceFileIds": {"p": [1]}}', "partitionToReplaceFileIds 'p'"),
    ],
)
def test_what_is_no_commit_names_the_file_and_what_is_wrong(data, says):
    with pytest.raises(CorruptFileError) as error:
        decode_commit(data, path="t/.hoodie/1.commit")
    assert str(error.value).startswith("t/.hoodie/1.commit: ")
    assert says in str(error.value)


def test_a_commit_cut_anywhere_is_no_commit():
    data = encode_commit(CommitMetadata(write_stats={"a": (LOG_STAT,)}, schema_json="S"))
    for cut in range(len(data)):
        with pytest.raises(CorruptFileError):
            decode_commit(data[:cut], path="x")


TEXT = st.text(max_size=5)
COUNT = st.integers(0, 2**63 - 1)
BASE = st.builds(
    WriteStat,
    file_id=TEXT,
    partition_path=st.just(""),
    path=TEXT,
    prev_commit=st.none() | TEXT.filter(lambda text: text != "null"),
    num_writes=COUNT,
    num_inserts=COUNT,
    num_updates=COUNT,
    num_deletes=COUNT,
    total_bytes=COUNT,
    file_size_bytes=COUNT,
    prev_base_file=st.none() | TEXT,
    total_log_records=COUNT,
)
LOG = st.builds(
    WriteStat,
    file_id=TEXT,
    partition_path=st.just(""),
    path=TEXT,
    log_version=COUNT,
    base_file=st.none() | TEXT,
    log_files=st.lists(TEXT).map(tuple),
)


@given(
    st.builds(
        CommitMetadata,
        operation=st.sampled_from(WriteOperation),
        write_stats=st.dictionaries(st.just(""), st.lists(BASE | LOG, max_size=3).map(tuple)),
        schema_json=st.none() | st.text(min_size=1),
        extra=st.dictionaries(TEXT.filter(lambda text: text != "schema"), TEXT, max_size=3),
        compacted=st.booleans(),
        replaced_file_ids=st.dictionaries(TEXT, st.lists(TEXT).map(tuple), max_size=3),
    )
)
def test_every_commit_comes_back(metadata):
    assert decode_commit(encode_commit(metadata), path="x") == metadata


def wide(end="", **how):
    """A large commit as JSON, with `end` at the end of a key and of a text; and what it says."""
    stats = {f"p{n:04d}": (WriteStat(f"f{n}-0", f"p{n:04d}", f"p{n:04d}/f{n}-0_0-0-0_1.parquet"),) for n in range(200)}
    extra = {f'a key": with a "colon" : and {end}': f'text": of a "key" : and {end}'}
    fields = json.loads(encode_commit(CommitMetadata(WriteOperation.UPSERT, stats, extra=extra)))
    data = json.dumps(fields, **how).encode()
    assert len(data) > 65_536
    return data, CommitMetadata(WriteOperation.UPSERT, stats, extra=extra)


@pytest.mark.parametrize("end", ["", "\\", '"', '\\"'])
@pytest.mark.parametrize("how", [{"separators": (",", ":")}, {"indent": 2, "separators": (",", " : ")}, {}])
def test_large_commits_are_read_in_any_layout(how, end):
    data, metadata = wide(end, **how)
    assert decode_commit(data, path="p") == metadata


@pytest.mark.parametrize("end", ["", "\\", '"', '\\"'])
@pytest.mark.parametrize("how", [{"separators": (",", ":")}, {"indent": 2, "separators": (",", " : ")}, {}])
@pytest.mark.parametrize(
    ("key", "other"), [(b"p0007", b"p0008"), (b"numWrites", b"numDeletes"), (b"compacted", b"extraMetadata")]
)
def test_a_key_that_stands_twice_in_a_large_commit_is_damage(how, end, key, other):
    data, _ = wide(end, **how)
    with pytest.raises(CorruptFileError, match="stands twice"):
        decode_commit(data.replace(b'"' + key + b'"', b'"' + other + b'"', 1), path="p")
