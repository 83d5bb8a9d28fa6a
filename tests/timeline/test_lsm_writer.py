"""The archive of versions 8 and 9: what is added, put together and taken out, and who dies in between."""

from contextlib import nullcontext

import pytest

from hoodie.format.archive import decode_manifest
from hoodie.format.archive_entries import StateFile
from hoodie.format.layout import V9
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CommitMetadata
from hoodie.storage.cache import Cache
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline.archive import ArchivedTimeline
from hoodie.timeline.lsm_writer import LsmArchiveWriter

HISTORY = ".hoodie/timeline/history"


def t(number):
    return InstantTime(f"20260101000000{number:03d}")


def commit(number):
    completed = Instant(t(2 * number), Action.COMMIT, State.COMPLETED, t(2 * number + 1))
    return [
        StateFile(Instant(completed.time, Action.COMMIT, State.REQUESTED), b"", completed.time),
        StateFile(completed, V9.encode_commit(completed, CommitMetadata(extra={"n": str(number)})), completed.time),
    ]


def writer_of(storage):
    return LsmArchiveWriter(storage, HISTORY, layout=V9, lock=nullcontext)


def archived(storage):
    return ArchivedTimeline(storage, HISTORY, layout=V9, cache=Cache(1 << 20))


def numbers(storage):
    commits = archived(storage).commits
    metadata = archived(storage).read_commits(commits)
    return [int(metadata[i.time].extra["n"]) for i in commits]


def files_of(storage):
    return sorted(info.name for info in storage.list(HISTORY) if info.name.endswith(".parquet"))


@pytest.fixture
def storage():
    return MemoryStorage("memory://lsm")


def test_each_batch_is_a_file_and_ten_of_a_level_are_one_of_the_next(storage):
    writer = writer_of(storage)
    for number in range(25):
        writer.add(commit(number), timeline="t")
        writer.merge()
    assert numbers(storage) == list(range(25))
    assert [name.rpartition("_")[2] for name in archived(storage).files].count("1.parquet") == 2
    assert set(archived(storage).files) <= set(files_of(storage))
    version = storage.read(f"{HISTORY}/_version_").decode()
    assert decode_manifest(storage.read(f"{HISTORY}/manifest_{version}"), path="m")


def test_a_hundred_files_make_one_of_the_second_level(storage):
    writer = writer_of(storage)
    for number in range(100):
        writer.add(commit(number), timeline="t")
        writer.merge()
    assert numbers(storage) == list(range(100))
    assert [name.rpartition("_")[2] for name in archived(storage).files] == ["2.parquet"]
    assert len(files_of(storage)) < 40
    assert len([info for info in storage.list(HISTORY) if info.name.startswith("manifest_")]) <= 12


def test_what_is_there_already_is_not_added_again(storage):
    writer = writer_of(storage)
    writer.add([*commit(0), *commit(1)], timeline="t")
    writer.add([*commit(0), *commit(1), *commit(2)], timeline="t")
    writer.add([*commit(1), *commit(2)], timeline="t")
    assert numbers(storage) == [0, 1, 2]
    assert len(files_of(storage)) == 2


def test_instants_are_taken_out(storage):
    writer = writer_of(storage)
    writer.add([*commit(0), *commit(1)], timeline="t")
    writer.add([*commit(2)], timeline="t")
    writer.take_out(frozenset({t(2), t(4)}))
    assert numbers(storage) == [0]
    before = storage.read(f"{HISTORY}/_version_")
    writer.take_out(frozenset({t(2), t(4)}))
    assert storage.read(f"{HISTORY}/_version_") == before
    writer.add(commit(2), timeline="t")
    assert numbers(storage) == [0, 2]


ACTS = {
    "add": lambda writer: writer.add(commit(10), timeline="t"),
    "merge": lambda writer: writer.merge(),
    "take out": lambda writer: writer.take_out(frozenset({t(6)})),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_who_dies_at_any_call_leaves_a_whole_archive_and_the_next_one_ends_it(act, moment):
    for at in range(1, 60):
        storage = MemoryStorage(f"memory://{act}-{moment}-{at}")
        for number in range(10):
            writer_of(storage).add(commit(number), timeline="t")
        before = numbers(storage)
        died = False
        try:
            ACTS[act](writer_of(FaultStorage(storage, [Fault(at, moment)])))
        except InjectedFault:
            died = True
        left = numbers(storage)
        wanted = {"add": [*before, 10], "merge": before, "take out": [n for n in before if n != 3]}[act]
        assert left in (before, wanted)
        ACTS[act](writer_of(storage))
        assert numbers(storage) == wanted
        if not died:
            assert at >= 3
            return
    pytest.fail("it never ended")
