"""Incremental ranges over any pair of instants: the right rows, or an error that says from where on there are any."""

import itertools
import json
import re
import shutil

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HoodieError, InstantNotFoundError, OptionError
from hoodie.format.plan_avro import encode_plan
from hoodie.model.meta_fields import META_COLUMNS
from tests.effort import in_shares
from tests.golden_tables import FOLDER, copy_golden, golden_names
from tests.rows import rows_of

COMMIT_TIME = "_hoodie_commit_time"
KEY = ("_hoodie_partition_path", "_hoodie_record_key")
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable=true"
V6_ARCHIVED = ["20261121075809902", "20261121075812378", "20261121075814920", "20261121075817254"]


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    found = {}

    def opened(name):
        if name not in found:
            found[name] = hoodie.open_table(copy_golden(name, tmp_path_factory.mktemp(name)).path)
        return found[name]

    return opened


def pulled(table, since=None, until=None, **more):
    return rows_of(table.changes(since=since, until=until, meta_columns=True, **more).to_arrow())


def answer(*args, **more):
    """Rows, or the error."""
    try:
        return pulled(*args, **more)
    except InstantNotFoundError as error:
        return error


def key_of(row):
    return tuple(row[name] for name in KEY)


def keys(rows):
    return {key_of(row) for row in rows}


def shown(rows, columns=None):
    return rows if columns is None else [{name: row[name] for name in columns} for row in rows]


# A log compaction gives rows its own commit time, by which no range finds them, in Hudi neither.
@pytest.mark.parametrize("name", [name for name in golden_names() if name != "v6_log_compaction"])
@in_shares(4)
def test_every_range_is_what_its_commits_left_in_the_state_at_its_end(golden, name, share):
    """Archived instants and moments between instants included. A late row may come in addition (docs/CONCURRENCY.md)."""
    table = golden(name)
    # Partial updates are merged with what the range holds: the rows are the same, some of their columns are not.
    seen = KEY if any("artial" in value for value in table.config.raw.values()) else None
    history = table.history(archived=True)
    active = {instant.position for instant in table.timeline.commits}
    positions = sorted(each.position for each in history)
    asked = sorted({*positions, *(f"{int(position) + 1}" for position in positions[::3])})
    states = {end: answer(table, until=end) for end in asked}
    assert any(isinstance(state, list) for state in states.values())
    for begin, end in share.of(itertools.combinations(asked, 2)):
        found, state = answer(table, begin, end), states[end]
        committed = {each.instant: each.position for each in history if begin < each.position <= end}
        if isinstance(found, InstantNotFoundError):
            assert "cleaned" in str(found) or not active.issuperset(committed.values()), (begin, end)
            continue
        if isinstance(state, InstantNotFoundError):
            continue  # other groups of that moment were cleaned; those of the range are there
        expected = [row for row in state if row[COMMIT_TIME] in committed]
        wanted = keys(expected)
        assert shown([row for row in found if key_of(row) in wanted], seen) == shown(expected, seen), (begin, end)
        # A late row lost against one that stands in the state, or against a delete.
        assert {row[COMMIT_TIME] for row in found} <= set(committed)
        assert len(keys(found)) == len(found)


@pytest.mark.parametrize("name", [name for name in golden_names() if name not in {"v6_mor_logs"}])
@in_shares(3)
def test_from_the_beginning_to_the_end_is_the_snapshot(golden, name, share):
    table = golden(name)
    for begin in share.of((None, "000", "0", "earliest", "00000000000000")):
        assert pulled(table, begin) == rows_of(table.scan(meta_columns=True).to_arrow())


@pytest.mark.parametrize("name", golden_names())
def test_time_travel_that_hudi_refuses_is_refused(golden, name):
    table = golden(name)
    expected = recorded(name)
    for entry in (each for each in expected["time_travel"] if "error" in each):
        with pytest.raises(InstantNotFoundError, match=r"were cleaned.*earliest instant to read is 2026\d+"):
            table.scan(as_of=entry["as_of"])


def recorded(name):
    return json.loads((FOLDER / name / "expected.json").read_text(encoding="utf-8"))


def test_on_version_6_a_range_goes_on_over_the_start_of_the_active_timeline(golden):
    table = golden("v6_archived")
    for since in V6_ARCHIVED:
        committed = {each.instant for each in table.history(archived=True) if each.position > since}
        state = rows_of(table.scan(meta_columns=True).to_arrow())
        assert pulled(table, since) == [row for row in state if row[COMMIT_TIME] in committed]
    with pytest.raises(InstantNotFoundError, match="archived"):
        table.changes(since=V6_ARCHIVED[0], until=V6_ARCHIVED[1])


def test_where_completion_decides_it_does_so_too(golden):
    table = golden("v9_archived")
    for since in ("20261121135400000", "20261121135448119", "20261121135457021"):
        committed = {each.instant for each in table.history(archived=True) if each.position > since}
        state = rows_of(table.scan(meta_columns=True).to_arrow())
        assert pulled(table, since) == [row for row in state if row[COMMIT_TIME] in committed]
    with pytest.raises(InstantNotFoundError, match="archived"):
        table.changes(since="20261121135400000", until="20261121135448119")


def test_a_range_whose_end_was_cleaned_is_an_error_and_with_the_fallback_what_is_left_of_it(golden):
    table = golden("v6_archived")
    first, second = (commit.time for commit in table.timeline.commits[:2])
    with pytest.raises(InstantNotFoundError, match="were cleaned") as caught:
        table.changes(since=first, until=second)
    since = re.search(r"earliest instant to pull until is (\d+)", str(caught.value))[1]
    assert pulled(table, first, since)
    state = rows_of(table.scan(meta_columns=True).to_arrow())
    left = [row for row in state if row[COMMIT_TIME] == second]
    assert pulled(table, first, second, full_scan_fallback=True) == left


def test_a_range_within_the_archive_is_an_error_and_with_the_fallback_what_is_left_of_it(golden):
    table = golden("v6_archived")
    for begin in (None, V6_ARCHIVED[0]):
        with pytest.raises(InstantNotFoundError, match="archived"):
            table.changes(since=begin, until=V6_ARCHIVED[2])
    state = rows_of(table.scan(meta_columns=True).to_arrow())
    left = [row for row in state if V6_ARCHIVED[0] < row[COMMIT_TIME] <= V6_ARCHIVED[2]]
    assert left
    assert pulled(table, V6_ARCHIVED[0], V6_ARCHIVED[2], full_scan_fallback=True) == left


def test_a_range_that_ends_before_it_begins_is_an_error(golden):
    for name in ("v6_cow_simple", "v9_cow"):
        newest = golden(name).timeline.latest_position
        with pytest.raises(OptionError, match="empty"):
            golden(name).changes(since=newest, until="20260101000000000")
        assert pulled(golden(name), newest) == []
        assert pulled(golden(name), "20300101000000000") == []


def overlapping(tmp_path):
    """v9_archived before its last compaction ran, and its last delta commit completed after that was scheduled."""
    source = copy_golden("v9_archived", tmp_path)
    folder = source.path / ".hoodie" / "timeline"
    (folder / "20261121135509537_20261121135510795.commit").unlink()
    late = "20261121135506786_20261121135509999.deltacommit"
    (folder / "20261121135506786_20261121135508095.deltacommit").rename(folder / late)
    return source


def users(rows):
    return sorted(({k: v for k, v in row.items() if k not in META_COLUMNS} for row in rows), key=lambda row: row["id"])


def test_a_delta_commit_that_is_completed_after_a_compaction_was_scheduled_is_read_behind_it(tmp_path):
    source = overlapping(tmp_path)
    table = hoodie.open_table(source.path)
    assert users(rows_of(table.scan().to_arrow())) == users(source.expected["snapshot"])
    before = [entry for entry in source.expected["time_travel"] if entry["as_of"] == "20261121135506786"]
    asked = table.scan(as_of="20261121135506786").to_arrow()
    assert users(rows_of(asked)) == users(before[0]["rows"])
    assert table.timeline.latest_position == "20261121135509999"
    last = pulled(table, "20261121135508095", "20261121135509999")
    assert {row[COMMIT_TIME] for row in last} == {"20261121135506786"}
    assert pulled(table, "20261121135505866", "20261121135508095") == []


def test_a_pending_write_stops_a_range_of_version_9_only_beyond_the_last_completion(tmp_path):
    source = copy_golden("v9_mor", tmp_path)
    folder = source.path / ".hoodie" / "timeline"
    (folder / "20261121075230852_20261121075233074.deltacommit").unlink()
    table = hoodie.open_table(source.path)
    assert {row[COMMIT_TIME] for row in pulled(table, "20261121075229389")} == {"20261121075234505"}
    with pytest.raises(
        InstantNotFoundError, match=r"20261121075230852.deltacommit.inflight.*Pull until 20261121075236633"
    ):
        table.changes(until="20261121075300000")
    with pytest.raises(InstantNotFoundError, match="Read as of 20261121075227578 instead"):
        table.scan(as_of="20261121075234505")


def test_a_pending_clustering_stops_nobody(tmp_path):
    source = copy_golden("v6_replace", tmp_path)
    hoodie_folder = source.path / ".hoodie"
    for replace in sorted(hoodie_folder.glob("*.replacecommit.requested")):
        content = replace.read_bytes()
        if b"CLUSTER" in content:
            (hoodie_folder / "20270101000000000.replacecommit.requested").write_bytes(content)
    table = hoodie.open_table(source.path)
    assert table.pending_clusterings()
    assert not table.timeline.pending_writes
    newest = table.timeline.latest_commit.time
    assert rows_of(table.scan(as_of="20270101000000001").to_arrow()) == rows_of(table.scan().to_arrow())
    assert pulled(table, None, "20270101000000001") == pulled(table, None, newest)


def test_a_savepoint_can_be_read_although_a_clean_kept_less(tmp_path):
    source = copy_golden("v6_savepoint", tmp_path)
    hoodie_folder = source.path / ".hoodie"
    saved = next(hoodie_folder.glob("*.savepoint")).name.split(".")[0]
    before = rows_of(hoodie.open_table(source.path).scan(as_of=saved).to_arrow())
    clean = FOLDER / "v6_archived/table/.hoodie/20261121075831046.clean"
    kept = b"20261121075827110"
    later = hoodie_folder / "20270101000000000.clean"
    later.write_bytes(clean.read_bytes().replace(kept, b"20261231000000000"))
    table = hoodie.open_table(source.path)
    assert rows_of(table.scan(as_of=saved).to_arrow()) == before
    with pytest.raises(InstantNotFoundError, match="a clean kept what is needed from 20261231000000000 on"):
        table.scan(as_of=table.timeline.commits[0].time)
    assert rows_of(
        table.scan(as_of=table.timeline.latest_commit.time).to_arrow()
    )  # a clean takes nothing of the newest state


def test_files_that_were_cleaned_by_numbers_of_versions_are_noticed_too(tmp_path):
    """Such a clean names no first commit that it kept: only the missing files tell."""
    source = copy_golden("v6_replace", tmp_path)
    table = hoodie.open_table(source.path)
    first, *_, last = (commit.time for commit in table.timeline.commits)
    table.scan(as_of=first)
    gone = list(source.path.rglob(f"*_{first}.parquet"))
    assert gone
    for file in gone:
        file.unlink()
    done = {"startCleanTime": "1", "timeTakenInMillis": 0, "totalFilesDeleted": 1, "partitionMetadata": {}}
    clean = encode_plan("HoodieCleanMetadata", done | {"earliestCommitToRetain": ""})
    (source.path / ".hoodie" / "20270101000000000.clean").write_bytes(clean)
    table = hoodie.open_table(source.path)
    with pytest.raises(InstantNotFoundError, match=r"were cleaned.*latest instant to read is"):
        table.scan(as_of=first)
    assert rows_of(table.scan(as_of=last, meta_columns=True).to_arrow()) == source.expected["snapshot"]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_archived_commits_have_replaced_is_not_missed(tmp_path, kind):
    options = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="p", table_type=kind, options=options)
    first = table.upsert([{"id": "z", "p": "q", "v": 0}])
    table.upsert([{"id": "a", "p": "p", "v": 1}])
    table.insert_overwrite([{"id": "b", "p": "p", "v": 1}])
    for n in range(4):
        table.upsert([{"id": "z", "p": "q", "v": n}])
    assert table.clean(retain_commits=1).files > 0
    assert len(table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=2).instants) > 2
    assert sorted(table.changes(since=first).to_arrow().column("id").to_pylist()) == ["b", "z"]


def test_a_table_without_commits_has_no_changes(tmp_path):
    schema = pa.schema([("id", pa.string())])
    table = hoodie.create_table(tmp_path / "t", schema, record_key="id")
    assert table.changes().count() == 0
    assert table.changes(full_scan_fallback=True).to_arrow().num_rows == 0


def test_a_damaged_archive_stops_only_those_who_need_it(tmp_path):
    source = copy_golden("v6_archived", tmp_path)
    (archive,) = (source.path / ".hoodie" / "history").iterdir()
    archive.write_bytes(archive.read_bytes()[:-1000])
    table = hoodie.open_table(source.path)
    assert rows_of(table.scan(meta_columns=True).to_arrow()) == source.expected["snapshot"]
    first = table.timeline.commits[0].time
    assert pulled(table, first)
    for ask in (
        table.archived_instants,
        lambda: table.history(archived=True),
        lambda: table.changes(since=V6_ARCHIVED[0]),
    ):
        with pytest.raises(HoodieError, match=re.escape(archive.name)):
            ask()
    shutil.rmtree(archive.parent)
    assert len(hoodie.open_table(source.path).history(archived=True)) == len(table.timeline.commits)
