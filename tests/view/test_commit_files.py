"""What commits of many partitions say: decoded for the partitions that a query is about, and for no others."""

import json
import pickle

import pytest

from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.format.commit_json import decode_commit, encode_commit
from hoodie.format.stored_stats import MANY_PARTITIONS, StoredStats
from hoodie.model.enums import WriteOperation
from hoodie.model.names import PARTITION_METADATA
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.storage.cache import Cache
from hoodie.view.commit_files import CommittedFiles
from tests.memory_tables import FakeClock, Input, batch, new_table, opened

PARTS = [f"p{n:03d}" for n in range(MANY_PARTITIONS)]
ROWS = [Input(f"k{part}", part, 1) for part in PARTS]


@pytest.fixture
def storage():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock, cache=Cache()).upsert(batch(ROWS))
    return storage


def of_another_process(storage):
    return opened(storage, FakeClock(), cache=Cache())


def read(storage, *parts):
    where = f"part in ({', '.join(map(repr, parts))})"
    return sorted(of_another_process(storage).scan(where=where).to_arrow()["id"].to_pylist())


def the_commit(storage):
    (path,) = [info.path for info in storage.list(".hoodie") if info.path.endswith("commit")]
    return path


def edit(storage, partition, **changes):
    path = the_commit(storage)
    found = json.loads(storage.read(path))
    found["partitionToWriteStats"][partition][0] |= changes
    storage.replace(path, json.dumps(found).encode())


def test_a_query_decodes_what_is_said_of_its_partition_alone(storage):
    edit(storage, "p050", path="p050/another_0-0-0_1.parquet")
    assert read(storage, "p007") == ["kp007"]
    with pytest.raises(CorruptFileError, match="p050/another"):
        read(storage, "p007", "p050")
    with pytest.raises(CorruptFileError, match="p050/another"):
        of_another_process(storage).scan().count()


def test_a_damaged_part_is_found_by_who_looks_at_all(storage):
    edit(storage, "p050", numWrites="many")
    found = of_another_process(storage).doctor().findings
    assert any("p050" in str(each) for each in found), found


def test_a_wanted_partition_that_is_gone_is_missed(storage):
    for info in storage.list("p050", recursive=True):
        storage.delete(info.path)
    assert read(storage, "p007") == ["kp007"]
    with pytest.raises(MissingFileError, match="p050"):
        read(storage, "p050")


def test_a_partition_without_its_mark_is_missed(storage):
    storage.delete(f"p050/{PARTITION_METADATA}")
    with pytest.raises(MissingFileError, match="p050"):
        read(storage, "p050")


def test_what_no_commit_names_is_not_read_and_shorter_files_are_refused(storage):
    (info,) = [each for each in storage.list("p050") if each.path.endswith(".parquet")]
    stray = info.path.replace("_50-", "_99-", 1)
    assert stray != info.path
    storage.create_new(stray, storage.read(info.path))
    assert read(storage, "p050") == ["kp050"]
    storage.replace(info.path, storage.read(info.path)[:-1])
    with pytest.raises(CorruptFileError, match="truncated"):
        read(storage, "p050")


def test_replaced_groups_of_a_choice_are_gone():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch(ROWS))
    opened(storage, clock).insert_overwrite(batch([Input(f"new{part}", part) for part in PARTS]))
    assert read(storage, "p050") == ["newp050"]


def test_one_view_answers_for_partitions_of_a_choice_and_for_others(storage):
    class Choice:
        levels = 1

        def leads(self, folders):
            return [folder == "p007" for folder in folders]

        wants = leads

    view = of_another_process(storage)._context.snapshot().view
    assert view.list_chosen(Choice()).paths == ("p007",)
    assert [len(view.file_groups(part)) for part in ("p007", "p050", "no-such")] == [1, 1, 0]
    assert view.committed.of("p050").sizes
    assert not view.committed.of("no-such").sizes
    assert len(view.committed.partitions) == len(PARTS)


def test_stats_of_many_partitions_are_as_those_of_few():
    stats = {part: (WriteStat("f-0", part, f"{part}/f-0_0-0-0_1.parquet", num_writes=1),) for part in PARTS}
    metadata = CommitMetadata(WriteOperation.UPSERT, stats)
    found = decode_commit(encode_commit(metadata), path="p")
    assert isinstance(found.write_stats, StoredStats)
    assert pickle.loads(pickle.dumps(found)) == found == metadata
    assert found.write_stats.keys() == stats.keys()
    assert "p007" in found.write_stats
    few = CommitMetadata(WriteOperation.UPSERT, {"p000": stats["p000"]})
    assert isinstance(decode_commit(encode_commit(few), path="p").write_stats, dict)


def test_files_of_a_partition_are_decoded_without_those_of_others(storage):
    committed = of_another_process(storage)._context.snapshot().view.committed
    assert committed.of("p007").sizes
    assert not committed.replaced
    (metadata,) = committed._payloads(committed._commits)
    decoded = [part for part, value in metadata.write_stats._values.items() if isinstance(value, tuple)]
    assert decoded == ["p007"]


@pytest.mark.parametrize("most_alone", [0, 1, 2, 1_000])
def test_partitions_one_by_one_are_as_all_at_once(storage, most_alone):
    view = of_another_process(storage)._context.snapshot().view
    alone = CommittedFiles(view.timeline, view.committed._payloads, most_alone=most_alone)
    whole = CommittedFiles(view.timeline, view.committed._payloads, most_alone=0)
    assert [alone.of(part) for part in (*PARTS, "no-such")] == [whole.of(part) for part in (*PARTS, "no-such")]
    assert alone.partitions == whole.partitions


def test_what_is_damaged_stays_damaged_however_often_it_is_asked_for(storage):
    edit(storage, "p050", numWrites="many")
    committed = of_another_process(storage)._context.snapshot().view.committed
    for _ in range(3):
        with pytest.raises(CorruptFileError, match="numWrites"):
            committed.of("p050")


def test_a_process_that_goes_on_reads_the_commits_once():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock, cache=Cache()).upsert(batch(ROWS))
    table = opened(storage, clock, cache=Cache())
    for part in ("p007", "p008"):
        table.upsert(batch([Input(f"k{part}", part, 2)]))
    view = table._context.kept_view()
    assert view is not None
    assert len(view.committed.of("p050").sizes) == 1
    assert view.committed.fold is not None
    read = []
    view.committed._payloads = read.append
    assert [len(view.committed.of(part).sizes) for part in ("p007", "p050")] == [2, 1]
    assert view.committed.partitions_of(AllOf()) == view.committed.partitions
    assert read == []


class AllOf:
    levels = 1

    def leads(self, folders):
        return [True] * len(folders)

    wants = leads
