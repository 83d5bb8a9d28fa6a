"""Archived timelines of both layouts: what Apache Hudi wrote, every cut of it, and names that lead elsewhere."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.archive import (
    archive_number,
    archive_without,
    decode_archive_file,
    decode_archived_commits,
    decode_lsm_commits,
    decode_lsm_file,
    decode_manifest,
    lsm_range,
    manifest_number,
)
from hoodie.format.commit_json import commit_of
from hoodie.model.enums import Action, WriteOperation
from tests.golden_tables import FOLDER

V6 = (FOLDER / "v6_archived/table/.hoodie/history/.commits_.archive.1_1-0-1").read_bytes()
HISTORY = FOLDER / "v9_archived/table/.hoodie/timeline/history"
LSM = HISTORY / "20261121135449207_20261121135455334_0.parquet"
TIMES = ["20261121075809902", "20261121075812378", "20261121075814920", "20261121075817254"]


def test_the_completed_instants_of_version_6():
    found = decode_archive_file(V6, path="f")
    assert [str(instant) for instant in found] == [f"{time}.commit" for time in TIMES]
    assert all(instant.completion is None for instant in found)


def test_the_metadata_of_version_6_are_those_of_the_commits_asked_for():
    found = decode_archived_commits(V6, frozenset(TIMES[1:3]), path="f")
    assert sorted(found) == TIMES[1:3]
    commit = found[TIMES[1]]
    assert commit.operation is WriteOperation.UPSERT
    assert commit.schema_json.startswith('{"type":"record"')
    assert [stat.path for stat in commit.stats()] == [
        "a/acd122d9-1c3c-44f5-9c4e-b1834240a109-0_0-645-959_20261121075812378.parquet"
    ]


@pytest.mark.parametrize("gone", [[], TIMES[:1], TIMES[1:3], TIMES])
def test_instants_are_taken_out_of_a_file_of_version_6_and_the_others_stay(gone):
    left = archive_without(V6, frozenset(gone), path="f")
    assert [i.time for i in decode_archive_file(left, path="f")] == [time for time in TIMES if time not in gone]
    there = decode_archived_commits(V6, frozenset(TIMES) - {*gone}, path="f")
    assert decode_archived_commits(left, frozenset(TIMES), path="f") == there
    assert (left == V6) is (not gone)
    assert (left == b"") is (gone == TIMES)


@pytest.mark.parametrize("step", [1499])
def test_a_cut_file_of_version_6_is_whole_up_to_a_block_or_an_error(step):
    answers = {(), tuple(TIMES[:3]), tuple(TIMES)}
    for size in range(0, len(V6), step):
        try:
            found = decode_archive_file(V6[:size], path="the file")
        except CorruptFileError as error:
            assert "the file" in str(error)  # noqa: PT017 - or no error at all
        else:
            assert tuple(instant.time for instant in found) in answers


def test_the_instants_of_an_lsm_file_have_completion_times():
    found = decode_lsm_file(LSM.read_bytes(), path="f")
    assert [(i.time[-9:], i.action.value, i.completion[-9:]) for i in found] == [
        ("135449207", "deltacommit", "135451845"),
        ("135452159", "clean", "135452709"),
        ("135453199", "commit", "135454791"),
        ("135455334", "deltacommit", "135457021"),
    ]


def test_the_metadata_in_an_lsm_file_are_those_of_the_commits_asked_for():
    wanted = {
        "20261121135453199": Action.COMMIT,
        "20261121135452159": Action.COMMIT,
        "20261121135455334": Action.COMMIT,
    }
    found = decode_lsm_commits(LSM.read_bytes(), wanted, path="f")
    assert list(found) == ["20261121135453199"]  # the others are a clean and a delta commit
    assert found["20261121135453199"].operation is WriteOperation.COMPACT
    assert sum(1 for _ in found["20261121135453199"].stats()) == 2


def test_a_cut_lsm_file_is_an_error_that_names_it():
    data = LSM.read_bytes()
    for size in range(0, len(data), 97):
        with pytest.raises(CorruptFileError, match="the file"):
            decode_lsm_file(data[:size], path="the file")


@pytest.mark.parametrize("lacking", ["instantTime", "completionTime", "action"])
def test_an_lsm_file_without_a_column_is_an_error(tmp_path, lacking):
    pq.write_table(pq.read_table(LSM).drop_columns([lacking]), tmp_path / "x.parquet")
    with pytest.raises(CorruptFileError, match=lacking):
        decode_lsm_file((tmp_path / "x.parquet").read_bytes(), path="f")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("instantTime", "../x", "'../x'"), ("action", "explode", "explode"), ("completionTime", "soon", "soon")],
)
def test_an_entry_that_is_no_instant_is_an_error(tmp_path, column, value, message):
    table = pq.read_table(LSM)
    at = table.column_names.index(column)
    bad = table.set_column(at, table.schema.field(column), pa.array([value] * table.num_rows, pa.string()))
    pq.write_table(bad, tmp_path / "x.parquet")
    with pytest.raises(CorruptFileError, match=message):
        decode_lsm_file((tmp_path / "x.parquet").read_bytes(), path="f")


def test_a_manifest_lists_files_with_the_range_in_their_names():
    found = decode_manifest((HISTORY / "manifest_3").read_bytes(), path="m")
    assert len(found) == 3
    assert lsm_range(found[-1]) == ("20261121135449207", "20261121135455334")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"files": {}}',
        '{"files": [1]}',
        '{"files": [{}]}',
        json.dumps({"files": [{"fileName": "../../x.parquet"}]}),
        json.dumps({"files": [{"fileName": "a/20261121135449207_20261121135455334_0.parquet"}]}),
    ],
)
def test_a_manifest_that_is_damaged_or_leads_elsewhere_is_an_error(text):
    with pytest.raises(CorruptFileError, match="the manifest"):
        decode_manifest(text.encode(), path="the manifest")


def test_which_files_belong_to_an_archive():
    assert archive_number(".commits_.archive.12_1-0-1") == 12
    assert archive_number(".commits_.archive.7") == 7
    for name in (".commits_.archive.1_1-0-1.crc", ".commits_.archive._1-0-1", "mergeArchivePlan", ".x", "9" * 40):
        assert archive_number(name) is None
    assert manifest_number("manifest_3") == 3
    for name in ("manifest_", "manifest_3.tmp", "_version_", f"manifest_{'9' * 40}"):
        assert manifest_number(name) is None


def test_the_same_commit_reads_the_same_from_json_and_from_the_archive():
    """The fields are those of the JSON, whichever way they are stored."""
    (commit,) = decode_archived_commits(V6, frozenset(TIMES[:1]), path="f").values()
    stat = next(commit.stats())
    again = commit_of(
        {
            "partitionToWriteStats": {
                "a": [{"fileId": stat.file_id, "path": stat.path, "prevCommit": "null", "numWrites": stat.num_writes}]
            }
        },
        path="f",
    )
    (found,) = again.stats()
    assert (found.file_id, found.path, found.prev_commit, found.num_writes) == (
        stat.file_id,
        stat.path,
        stat.prev_commit,
        stat.num_writes,
    )
