"""File groups and slices out of names: values in, values out."""

import pytest

from hoodie.errors import CorruptFileError
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, total_bytes
from hoodie.model.instant import InstantTime
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import Timeline
from hoodie.view.build import build_file_groups, merged_slice
from hoodie.view.commit_files import CommittedFiles

PART = "p=1"
NEVER_ASKED = {}.__getitem__
"""Where instants decide, it does not matter when one was completed."""


def t(number):
    return InstantTime(f"20260101000000{number:03d}")


def base(file_id, number, token="0-0-0"):
    return f"{file_id}_{token}_{t(number)}.parquet"


def log(file_id, number, version=1, token="0-0-0"):
    return f".{file_id}_{t(number)}.log.{version}_{token}"


def files(*names, **sizes):
    found = [FileInfo(f"{PART}/{name}", 100, 0.0, False, 0) for name in names]
    return [info._replace(size_bytes=sizes["sizes"].get(info.name, 100)) if sizes else info for info in found]


def stats(*names, size=100):
    found = (
        WriteStat(name.split("_")[0].removeprefix("."), PART, f"{PART}/{name}", file_size_bytes=size) for name in names
    )
    return CommitMetadata(write_stats={PART: tuple(found)})


def build(timeline_files, listing, commits=(), pending=()):
    """`timeline_files`: as `1.commit`; `commits`: number -> metadata; `pending`: file id -> instant of its compaction."""
    names = []
    for name in timeline_files:
        number, dot, rest = name.partition(".")
        names.append(t(int(number)) + dot + rest)
    timeline = Timeline.from_file_names(names)
    metadata = {t(number): found for number, found in dict(commits).items()}
    committed = CommittedFiles(timeline, lambda instants: [metadata.get(i.time, CommitMetadata()) for i in instants])
    compactions = {FileGroupId(PART, file_id): t(number) for file_id, number in dict(pending).items()}
    groups = build_file_groups(
        PART,
        listing,
        timeline=timeline,
        committed=committed,
        pending_compactions=compactions,
        table="/t",
        completion_of=NEVER_ASKED,
    )
    return {group.id.file_id: group.slices for group in groups}


def shown(file_slice):
    return (
        int(file_slice.base_instant[14:]),
        file_slice.base.name if file_slice.base else None,
        [found.name for found in file_slice.logs],
    )


def test_a_slice_for_each_base_file_oldest_first_and_groups_by_file_id():
    names = [base("b", 1), base("a", 2), base("a", 1)]
    found = build(["1.commit", "2.commit"], files(*names), {1: stats(names[0], names[2]), 2: stats(names[1])})
    assert list(found) == ["a", "b"]
    assert [shown(file_slice) for file_slice in found["a"]] == [(1, base("a", 1), []), (2, base("a", 2), [])]
    assert [shown(file_slice) for file_slice in found["b"]] == [(1, base("b", 1), [])]
    assert found["a"][0].group == FileGroupId(PART, "a")
    assert found["a"][0].base.path == f"{PART}/{base('a', 1)}"
    assert found["a"][0].base.size_bytes == 100


def test_logs_belong_to_the_slice_that_they_are_named_with_in_reading_order():
    logs = [log("a", 1, 10), log("a", 1, 2, "10-0-0"), log("a", 1, 2, "9-0-0"), log("a", 3, 1)]
    names = [base("a", 1), base("a", 3), *logs]
    found = build(["1.commit", "3.commit"], files(*names), {1: stats(names[0]), 3: stats(names[1])})
    assert [shown(file_slice) for file_slice in found["a"]] == [
        (1, base("a", 1), [logs[2], logs[1], logs[0]]),
        (3, base("a", 3), [logs[3]]),
    ]


def test_a_group_of_logs_only():
    found = build(["1.deltacommit"], files(log("a", 1)))
    assert [shown(file_slice) for file_slice in found["a"]] == [(1, None, [log("a", 1)])]
    assert merged_slice(found["a"]) == found["a"][0]


def test_change_logs_folders_and_other_files_make_no_slice():
    others = [log("a", 1) + ".cdc", ".hoodie_partition_metadata", "part-0.parquet", "." + base("a", 1) + ".crc"]
    folder = FileInfo(f"{PART}/{base('z', 1)}", 0, 0.0, True, 0)
    assert build(["1.commit"], [*files(*others), folder]) == {}


def test_base_files_of_pending_and_of_unknown_instants_are_ignored():
    names = [base("a", 1), base("a", 2), base("a", 3), base("b", 2)]
    found = build(["1.commit", "2.inflight"], files(*names), {1: stats(names[0])})
    assert {file_id: [shown(file_slice) for file_slice in slices] for file_id, slices in found.items()} == {
        "a": [(1, base("a", 1), [])]
    }


def test_base_files_of_archived_instants_count_whatever_their_size():
    found = build(["5.commit"], files(base("a", 1), sizes={base("a", 1): 0}))
    assert [shown(file_slice) for file_slice in found["a"]] == [(1, base("a", 1), [])]


def test_of_two_attempts_the_one_that_the_commit_names_counts():
    kept, stray = base("a", 1, "0-0-1"), base("a", 1, "0-0-2")
    for listing in (files(kept, stray), files(stray, kept)):
        found = build(["1.commit"], listing, {1: stats(kept)})
        assert [shown(file_slice) for file_slice in found["a"]] == [(1, kept, [])]


def test_a_group_of_strays_only_is_none():
    assert build(["1.commit"], files(base("a", 1)), {1: stats()}) == {}


@pytest.mark.parametrize("name", [base("a", 1), log("a", 1)])
def test_a_committed_file_that_became_shorter_is_an_error_with_its_name(name):
    with pytest.raises(CorruptFileError) as told:
        build(["1.deltacommit"], files(name, sizes={name: 99}), {1: stats(name, size=100)})
    assert f"{PART}/{name} of table /t is truncated: its commit wrote 100 bytes, 99 are there" in str(told.value)


@pytest.mark.parametrize(("size", "committed"), [(100, 100), (120, 100), (7, 0)])
def test_a_file_may_be_longer_and_its_size_unknown(size, committed):
    for name in (base("a", 1), log("a", 1)):
        found = build(["1.deltacommit"], files(name, sizes={name: size}), {1: stats(name, size=committed)})
        assert found["a"][0].size_bytes == size


def test_logs_carry_their_committed_size():
    named, listed, unknown = log("a", 1, 1), log("a", 1, 2), log("a", 1, 3)
    stat = WriteStat("a", PART, f"{PART}/{named}", file_size_bytes=60, log_files=(named, listed))
    found = build(["1.deltacommit"], files(named, listed, unknown), {1: CommitMetadata(write_stats={PART: (stat,)})})
    assert [file_slice.committed_bytes for file_slice in found["a"][0].logs] == [60, 0, None]


def test_a_pending_compaction_begins_a_slice_that_readers_get_merged_with_the_one_before():
    names = [base("a", 1), log("a", 1, 1), log("a", 3, 1)]
    found = build(
        ["1.deltacommit", "2.deltacommit", "3.compaction.requested", "4.deltacommit"],
        files(*names),
        {1: stats(names[0]), 2: stats(names[1]), 4: stats(names[2])},
        pending={"a": 3},
    )
    assert [shown(file_slice) for file_slice in found["a"]] == [(1, names[0], [names[1]]), (3, None, [names[2]])]
    assert shown(merged_slice(found["a"])) == (3, names[0], [names[1], names[2]])


def test_a_pending_compaction_without_later_logs_begins_a_slice_too():
    names = [base("a", 1), log("a", 1), base("b", 1)]
    found = build(["1.deltacommit", "2.compaction.requested"], files(*names), {1: stats(*names)}, pending={"a": 2})
    assert [shown(file_slice) for file_slice in found["a"]] == [(1, names[0], [names[1]]), (2, None, [])]
    assert shown(merged_slice(found["a"])) == (2, names[0], [names[1]])
    assert len(found["b"]) == 1


def test_the_base_file_of_a_compaction_that_still_runs_is_not_seen():
    names = [base("a", 1), log("a", 1), base("a", 2)]
    found = build(["1.deltacommit", "2.compaction.inflight"], files(*names), {1: stats(*names[:2])}, pending={"a": 2})
    assert shown(merged_slice(found["a"])) == (2, names[0], [names[1]])


def test_after_the_compaction_its_base_file_begins_the_slice():
    names = [base("a", 1), log("a", 1), base("a", 2), log("a", 2)]
    found = build(
        ["1.deltacommit", "2.compaction.requested", "2.commit", "3.deltacommit"],
        files(*names),
        {1: stats(*names[:2]), 2: stats(names[2]), 3: stats(names[3])},
    )
    assert shown(merged_slice(found["a"])) == (2, names[2], [names[3]])


def test_compactions_of_other_partitions_do_not_matter():
    timeline = Timeline.from_file_names([f"{t(1)}.deltacommit"])
    committed = CommittedFiles(timeline, lambda instants: [stats(base("a", 1)) for _ in instants])
    pending = {FileGroupId("p=2", "a"): t(2)}
    (group,) = build_file_groups(
        PART,
        files(base("a", 1)),
        timeline=timeline,
        committed=committed,
        pending_compactions=pending,
        table="/t",
        completion_of=NEVER_ASKED,
    )
    assert len(group.slices) == 1


def slices(*numbers_and_bases):
    group = FileGroupId(PART, "a")
    return [
        FileSlice(group, t(number), f"base {number}" if has_base else None, (f"log {number}",))
        for number, has_base in numbers_and_bases
    ]


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (0, None),
        (1, (1, "base 1", ("log 1",))),
        (2, (1, "base 1", ("log 1",))),
        (3, (3, "base 1", ("log 1", "log 3"))),
        (4, (4, "base 1", ("log 1", "log 3", "log 4"))),
        (5, (5, "base 5", ("log 5",))),
        (None, (5, "base 5", ("log 5",))),
    ],
)
def test_the_slice_as_of_an_instant(until, expected):
    found = merged_slice(slices((1, True), (3, False), (4, False), (5, True)), None if until is None else t(until))
    assert (found and (int(found.base_instant[14:]), found.base, found.logs)) == expected


def test_as_of_14_digits_holds_the_whole_second():
    assert merged_slice(slices((999, True)), "20260101000000") is not None
    assert merged_slice(slices((0, True)), "20251231235959") is None
    assert merged_slice([]) is None


def test_bytes_of_slices():
    names = [base("a", 1), log("a", 1), base("b", 1)]
    found = build(["1.commit"], files(*names, sizes={names[0]: 5, names[1]: 7, names[2]: 11}), {})
    assert found == {"a": found["a"]}  # the commit names neither base file, and logs need no commit
    assert total_bytes([*found["a"]]) == 7


# --- what commit metadata says -------------------------------------------------------------------------------------


def committed_files(metadata, *names):
    reads = []

    def read(instants):
        numbers = [int(instant.time[14:]) for instant in instants]
        reads.extend(numbers)
        return [metadata[number] for number in numbers]

    return CommittedFiles(Timeline.from_file_names(names), read), reads


def commit(number, kind="deltacommit"):
    return f"{t(number)}.{kind}"


def test_each_commit_is_read_once_whatever_is_asked():
    metadata = {n: stats(log("a", 1, n), size=n) for n in (1, 2, 3)}
    committed, reads = committed_files(metadata, *map(commit, (1, 2, 3)))
    assert reads == []
    assert [committed.of(PART).log_size(f"{PART}/{log('a', 1, n)}") for n in (1, 2, 3, 4)] == [1, 2, 3, None]
    assert not committed.replaced
    assert committed.partitions == (PART,)
    assert committed.of("other").sizes == {}
    assert reads == [1, 2, 3]


def test_the_greatest_size_that_a_commit_stated_counts():
    name = log("a", 1, 1)
    metadata = {1: stats(name, size=10), 2: stats(name, size=30), 3: stats(name, size=20)}
    committed, _ = committed_files(metadata, *map(commit, (1, 2, 3)))
    assert committed.of(PART).log_size(f"{PART}/{name}") == 30


def test_sizes_of_base_files():
    committed, _ = committed_files({2: stats(base("a", 2), size=9)}, commit(2, "commit"))
    sizes = [
        committed.base_size(BaseFile(PART, each, t(n), base(each, n), 9)) for each, n in (("a", 2), ("b", 2), ("b", 1))
    ]
    assert sizes == [9, -1, None]


def test_onto_which_base_file_a_log_was_written():
    def stat(name, base_file):
        return CommitMetadata(write_stats={PART: (WriteStat("a", PART, f"{PART}/{name}", base_file=base_file),)})

    metadata = {1: stat(log("a", 1, 1), ""), 2: stat(log("a", 1, 2), "x.parquet"), 3: stat(base("a", 3), None)}
    committed, reads = committed_files(metadata, *map(commit, (1, 2, 3)))
    assert committed.of(PART).onto == {f"{PART}/{log('a', 1, 1)}": "", f"{PART}/{log('a', 1, 2)}": "x.parquet"}
    assert reads == [1, 2, 3]


def test_replaced_groups_by_the_instant_of_their_replacecommit():
    metadata = {
        2: CommitMetadata(replaced_file_ids={"p=1": ("a", "b"), "": ("c",)}),
        3: CommitMetadata(replaced_file_ids={"p=1": ("d",)}),
    }
    metadata[1] = CommitMetadata()
    names = [
        commit(1, "commit"),
        commit(2, "replacecommit"),
        commit(3, "replacecommit"),
        commit(4, "replacecommit.inflight"),
    ]
    committed, reads = committed_files(metadata, *names)
    assert committed.replaced == {
        FileGroupId("p=1", "a"): t(2),
        FileGroupId("p=1", "b"): t(2),
        FileGroupId("", "c"): t(2),
        FileGroupId("p=1", "d"): t(3),
    }
    assert reads == [1, 2, 3]


def naming(number, *files):
    """Metadata as ours are: of a group's logs each commit names all that were before it, and its own with its size."""
    named = {}
    for name in files:
        named.setdefault(name[1], []).append(name)
    return CommitMetadata(
        write_stats={
            PART: tuple(
                WriteStat(file_id, PART, f"{PART}/{logs[-1]}", file_size_bytes=number, log_files=tuple(logs))
                for file_id, logs in named.items()
            )
        }
    )


def test_what_follows_one_commit_after_the_other_is_what_all_of_them_say():
    a, b = ([log(file_id, 1, n) for n in range(1, 6)] for file_id in "ab")
    metadata = {2: naming(2, a[0]), 3: naming(3, *a[:2]), 4: naming(4, *a[:3], b[0]), 5: naming(5, b[0], b[1])}
    metadata[6] = naming(6, *a[:4], *b[:3])
    metadata[7] = naming(7, *(log("a", 6, n) for n in range(1, 5)))  # of the next slice, and those of archived commits
    names = [*map(commit, range(2, 8))]
    followed, _ = committed_files(metadata, names[0])
    for number in range(3, 8):
        earlier = followed.of(PART).copy()
        timeline = Timeline.from_file_names(names[: number - 1])
        later = followed.following(timeline, timeline.commit_at[t(number)])
        fresh, _ = committed_files(metadata, *names[: number - 1])
        assert later.of(PART) == fresh.of(PART)
        assert followed.of(PART) == earlier
        followed = later
    named = {f"{PART}/{name}" for commits in metadata.values() for s in commits.stats() for name in s.log_files}
    assert len(named) == 11
    assert None not in map(followed.of(PART).log_size, named)
