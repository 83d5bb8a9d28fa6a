"""Which slices and leftovers a clean takes: values in, names out."""

import pytest

from hoodie.model.enums import Action, CleanPolicy, State
from hoodie.model.files import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import Instant
from hoodie.options.cleaning import CleaningOptions
from hoodie.services.clean_rules import CleanRules, dead_slices, earliest_to_retain, plan_partition
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import Timeline

GROUP = FileGroupId("p", "f-0")


def at(number):
    return f"2026010100000{number:04}"


def base(number, file_id="f-0"):
    return BaseFile("p", file_id, at(number), f"{file_id}_0-0-0_{at(number)}.parquet", 100)


def log(number, version=1, file_id="f-0"):
    name = f".{file_id}_{at(number)}.log.{version}_0-0-0"
    return LogFile("p", file_id, at(number), version, name, 10, 10)


def group(*slices):
    """Of each slice its number, and `logs` where it has no base file."""
    found = []
    for each in slices:
        number, has_base = each if isinstance(each, tuple) else (each, True)
        found.append(FileSlice(GROUP, at(number), base(number) if has_base else None, (log(number),)))
    return FileGroup(GROUP, tuple(found))


def rules(policy=CleanPolicy.KEEP_LATEST_COMMITS, *, earliest=None, versions=1, replaced=None, **more):
    replaced_at = {GROUP: at(replaced)} if replaced is not None else {}
    return CleanRules(policy, None if earliest is None else at(earliest), versions, replaced_at, **more)


def dead(found, how):
    return [file_slice.base_instant for file_slice in dead_slices(found, how)]


VERSIONS = CleanPolicy.KEEP_LATEST_FILE_VERSIONS


def test_by_commits_what_readers_of_the_earliest_one_see_stays():
    assert dead(group(1, 3, 5), rules(earliest=5)) == [at(1)]
    assert dead(group(1, 3, 5), rules(earliest=4)) == [at(1)]
    assert dead(group(1, 3, 5), rules(earliest=3)) == []
    assert dead(group(1, 3, 5), rules(earliest=9)) == [at(1), at(3)]  # the newest one always


def test_by_versions_the_newest_ones_stay():
    assert dead(group(1, 3, 5), rules(VERSIONS, versions=1)) == [at(1), at(3)]
    assert dead(group(1, 3, 5), rules(VERSIONS, versions=3)) == []


@pytest.mark.parametrize("held", [base(1).name, log(1).name])
def test_a_slice_of_a_savepoint_stays(held):
    assert dead(group(1, 3, 5), rules(earliest=9, protected_names=frozenset({held}))) == [at(3)]
    assert dead(group(1, 3, 5), rules(VERSIONS, protected_names=frozenset({held}))) == [at(3)]
    assert dead(group(1, 3), rules(earliest=9, replaced=2, protected_names=frozenset({held}))) == [at(3)]


def test_what_a_pending_compaction_reads_stays():
    scheduled = {GROUP: at(3)}
    assert dead(group(1, 3, (5, False), (7, True)), rules(earliest=9, scheduled=scheduled)) == [at(1)]
    # Its own slice, which has no base file yet, is no version.
    assert dead(group(1, 2, 3, (5, False)), rules(VERSIONS, versions=2, scheduled=scheduled)) == [at(1)]
    assert dead(group(3, (5, False)), rules(earliest=9, replaced=6, scheduled=scheduled)) == []


def test_a_slice_without_a_base_file_keeps_those_that_it_is_read_with():
    assert dead(group(1, 3, (5, False)), rules(earliest=9)) == [at(1)]
    assert dead(group(1, 3, (5, False)), rules(VERSIONS, versions=1)) == [at(1)]
    assert dead(group(1, 3, (5, False), 7), rules(earliest=8)) == [at(1), at(3), at(5)]


def test_what_a_query_of_this_process_reads_stays():
    assert dead(group(1, 3, 5), rules(earliest=9, read_at=(at(4),))) == [at(1)]
    assert dead(group(1, 3, 5), rules(VERSIONS, read_at=(at(2),))) == [at(3)]


def test_replaced_file_groups_go_as_a_whole_once_nobody_can_see_them():
    assert dead(group(1, 3), rules(earliest=6, replaced=5)) == [at(1), at(3)]
    assert dead(group(1, 3), rules(earliest=5, replaced=5)) == []
    assert dead(group(1, 3), rules(earliest=9, replaced=5, read_at=(at(4),))) == []
    assert dead(group(1, 3), rules(VERSIONS, replaced=5)) == [at(1), at(3)]


def test_only_a_partition_whose_file_groups_are_all_gone_for_good_is_emptied():
    assert plan_partition([group(1)], rules(earliest=9, replaced=5)).emptied
    assert not plan_partition([group(1)], rules(earliest=9)).emptied
    assert not plan_partition([], rules(earliest=9)).emptied


# -- leftovers ---------------------------------------------------------------------------------------------------------


def leftovers(*files, archived=(), **more):
    """Names that go of a partition with one file group, of these listed files; the timeline has the instants 2, 4 and 8."""
    times = frozenset({at(2), at(4), at(8)})
    how = rules(earliest=8, start=at(2), instant_times=times, is_archived=lambda time: time in archived, **more)
    listed = [FileInfo(f"p/{file.name}", file.size_bytes, 0.0, is_folder=False, identity=1) for file in files]
    return plan_partition([group(4)], how, listed).names


def test_a_base_file_of_a_write_that_failed_goes():
    stray = base(3, "other-0")
    assert leftovers(stray) == (stray.name,)


@pytest.mark.parametrize(
    ("number", "more"),
    [
        (4, {}),  # a commit's own, whether it names the file or not
        (9, {}),  # perhaps of a write that is about to begin
        (1, {}),  # older than the timeline: nobody knows
        (3, {"archived": {at(3)}}),
        (3, {"protected_names": frozenset({base(3, "other-0").name})}),
    ],
)
def test_what_may_be_of_use_stays(number, more):
    assert leftovers(base(number, "other-0"), **more) == ()


# -- the first commit that stays readable --------------------------------------------------------------------------------


def timeline(*numbers, pending=()):
    commits = [Instant(at(n), Action.COMMIT, State.COMPLETED) for n in numbers]
    return Timeline((*commits, *(Instant(at(n), Action.COMMIT, State.INFLIGHT) for n in pending)))


def earliest(found, *, commits=2, **more):
    options = CleaningOptions(commits=commits)
    kept = earliest_to_retain(found, options, now=at(99), last=more.pop("last", None), **more)
    return None if kept is None else kept.time


def test_so_many_commits_stay_readable():
    assert earliest(timeline(1, 2, 3, 4)) == at(3)
    assert earliest(timeline(1, 2)) is None


def test_a_pending_write_holds_the_commit_before_it():
    assert earliest(timeline(1, 2, 3, 4, pending=[5])) == at(3)
    assert earliest(timeline(1, 2, 4, 6, 7, pending=[3])) == at(2)
    assert earliest(timeline(4, 6, 7, pending=[3])) is None


def test_a_query_holds_the_commit_that_it_reads():
    assert earliest(timeline(1, 2, 3, 4), read_at=[at(2)]) == at(2)
    assert earliest(timeline(2, 3, 4), read_at=[at(1)]) is None


def test_of_instants_that_state_it_those_count_that_were_completed_last():
    found = [
        Instant(at(n), Action.COMMIT, State.COMPLETED, at(end)) for n, end in [(1, 2), (3, 12), (4, 5), (6, 7), (8, 9)]
    ]
    assert earliest(Timeline(tuple(found)), commits=1) == at(3)
    assert earliest(Timeline(tuple(found)), commits=2) == at(3)
    assert earliest(Timeline(tuple(found[2:])), commits=1) == at(8)


def test_what_is_gone_is_not_promised_again():
    assert earliest(timeline(1, 2, 3, 4), last=at(4)) is None
