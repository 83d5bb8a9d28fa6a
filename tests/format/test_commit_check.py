"""What a completed commit says twice, and what happens when it does not agree."""

from dataclasses import replace

import pytest

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.commit_avro import decode_commit_file
from hoodie.format.commit_check import check_commit
from hoodie.format.commit_json import encode_commit
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.payloads import CommitMetadata, WriteStat
from tests.golden_tables import FOLDER

TIME = "20260101000000002"
PATH = f"t/.hoodie/{TIME}.deltacommit"
BASE = WriteStat("f-0", "a", f"a/f-0_0-1-2_{TIME}.parquet", num_writes=3)
LOG = WriteStat(
    "g-0",
    "a",
    "a/.g-0_20260101000000001.log.2_0-1-2",
    num_writes=1,
    log_version=2,
    log_files=(".g-0_20260101000000001.log.1_0-1-2", ".g-0_20260101000000001.log.2_0-1-2"),
)
FILES = [path for path in sorted(FOLDER.glob("*/table/.hoodie/**/*commit")) if path.stat().st_size]


def commit(*stats: WriteStat, partition: str = "a") -> CommitMetadata:
    return CommitMetadata(WriteOperation.UPSERT, {partition: stats})


def test_a_sound_commit_passes_as_it_is():
    metadata = commit(BASE, LOG)
    assert check_commit(metadata, path=PATH, time=TIME) is metadata


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.relative_to(FOLDER).parts[0]}-{path.name}")
def test_every_commit_that_apache_hudi_wrote_is_sound(path):
    time, _, action = path.name.partition(".")
    decode_commit_file(path.read_bytes(), Action(action), path=str(path), time=time.partition("_")[0])


@pytest.mark.parametrize(
    "stat",
    [
        replace(BASE, path=BASE.path.replace("a/", "b/")),
        replace(BASE, path=BASE.path.replace("f-0", "f-1")),
        replace(BASE, path=BASE.path.replace(TIME, "20260101000000003")),
        replace(BASE, path=BASE.path.replace("_0-1-2_", "/0-1-2_")),
        replace(BASE, file_id="f-1"),
        replace(BASE, partition_path="b"),
        replace(BASE, path="a/x"),
        replace(BASE, path=f"a/b/../f-0_0-1-2_{TIME}.parquet"),
        replace(LOG, path=LOG.path.replace("log.2", "log.3")),
        replace(LOG, path=LOG.path.replace("0-1-2", "0-1-3")),
        replace(LOG, log_version=1),
        replace(LOG, log_files=("x/y",)),
    ],
    ids=lambda stat: f"{stat.file_id} {stat.partition_path} {stat.path} {stat.log_version}",
)
def test_a_data_file_that_lies_elsewhere_than_its_write_stat_says_is_an_error(stat):
    with pytest.raises(CorruptFileError, match=PATH):
        check_commit(commit(stat), path=PATH, time=TIME)


def test_records_without_a_file_are_an_error_and_nothing_without_a_file_is_not():
    with pytest.raises(CorruptFileError, match="counts 3 records and names no file"):
        check_commit(commit(replace(BASE, path="")), path=PATH)
    check_commit(commit(replace(BASE, path="", num_writes=0)), path=PATH)


def test_files_of_other_systems_are_told_apart_from_damage():
    with pytest.raises(UnsupportedTableError, match="was written by another system"):
        check_commit(commit(replace(BASE, path="a/part-1.parquet_20260101000000002_hudiext")), path=PATH)


@pytest.mark.parametrize("operation", ["INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION", "CLUSTER"])
def test_a_commit_that_replaces_says_so_even_when_that_is_nothing(operation):
    """Where the list of replaced groups has vanished from the file, their rows would be there twice."""
    path = PATH.replace("deltacommit", "replacecommit")
    data = encode_commit(CommitMetadata(WriteOperation(operation)))
    assert decode_commit_file(data, Action.REPLACECOMMIT, path=path).replaced_file_ids == {}
    with pytest.raises(CorruptFileError, match="has no partitionToReplaceFileIds"):
        decode_commit_file(data.replace(b"partitionToReplace", b"partitionToReplacf"), Action.REPLACECOMMIT, path=path)
