"""What we do to a table is in its metadata table, by the records and blocks that Apache Hudi has in it."""

import shutil
from datetime import datetime

import pytest

from hoodie.format.layout import V6, V9
from hoodie.format.plan_avro import encode_compaction_plan
from hoodie.format.properties import parse_properties
from hoodie.model.enums import Action
from hoodie.model.instant import next_instant
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.model.payloads import CompactionPlan
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.local import LocalStorage
from hoodie.timeline.timeline import Timeline
from tests.effort import long_but
from tests.golden_tables import FOLDER
from tests.memory_tables import opened
from tests.metadata_tables import BY_FOLDERS, changed, check, check_storage, loaded, read, wrote

GOLDEN = ("v6_mdt_cow", "v6_mdt_mor", "v9_mdt_mor")
LONG = ("v6_mdt_cow",)


WRITES = {"v9_mdt_mor": {"compacted": 4, "cleaned, too": 24}}
"""After so many writes of ours the next one does that to the metadata table."""


def goldens():
    return long_but(set(GOLDEN) - set(LONG), GOLDEN)


def own_timeline(storage):
    layout = V9 if storage.exists(f"{METADATA_TABLE}/{V9.folder}") else V6
    return Timeline.from_file_names(storage.names(f"{METADATA_TABLE}/{layout.folder}"), layout=layout)


def compactions(storage):
    return [each for each in own_timeline(storage).commits if each.action is Action.COMMIT]


@pytest.mark.parametrize("name", GOLDEN)
def test_each_action_is_in_it(name, tmp_path):
    path = tmp_path / "table"
    shutil.copytree(FOLDER / name / "table", path)
    table = opened(LocalStorage(str(path)), cache=Cache())
    rows = table.scan().to_arrow()
    table.upsert(changed(rows, 2))
    check(path)
    table.delete(rows.slice(0, 1))
    check(path)
    table.upsert(changed(rows, 3), options={"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"})
    check(path)
    if name.endswith("mor"):
        table.compact()
        check(path)
    table.insert_overwrite(changed(rows, 1))
    check(path)
    table.clean(retain_commits=1)
    check(path)
    table.rollback(table.timeline.commits[-1].time)
    check(path)


@pytest.mark.parametrize("name", long_but(["v6_mdt_mor"], GOLDEN))
@pytest.mark.parametrize("done", ["written", "compacted", pytest.param("cleaned, too", marks=pytest.mark.long)])
def test_a_writer_that_dies_at_any_call_leaves_the_old_rows_or_the_new_ones(name, done):
    writes_before = 0 if done == "written" else WRITES.get(name, {"compacted": 7, "cleaned, too": 27})[done]
    storage = loaded(name)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    for _ in range(writes_before):
        wrote(storage, changed(rows, 1))
    begin, old = storage.snapshot(), read(storage)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    faulty = FaultStorage(storage)
    wrote(faulty, changed(rows, 2))
    new = read(storage)
    assert old != new
    is_compacted = any(call.path.startswith(METADATA_TABLE) and "compaction" in call.path for call in faulty.trace)
    assert is_compacted == bool(writes_before)
    # The other calls are those of any write.
    concerned = [call for call in faulty.trace if METADATA_TABLE in call.path or "commit" in call.path]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            wrote(faulty, changed(rows, 2))
        faulty.revive()
        found = read(storage)
        assert found == read(storage, BY_FOLDERS), fault
        assert found in (old, new), fault
        wrote(storage, changed(rows, 1))
        after = read(storage)
        assert after == read(storage, BY_FOLDERS), fault
        check_storage(storage)


@pytest.mark.parametrize("name", GOLDEN)
def test_it_is_compacted_after_ten_delta_commits(name):
    storage = loaded(name)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    for turn in range(14):
        wrote(storage, changed(rows, 1 + turn % 3))
    assert len(compactions(storage)) == 1
    check_storage(storage)


OFTEN = {
    **{"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "3"},
    **{"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "12", "hoodie.keep.max.commits": "15"},
}


@pytest.mark.parametrize("name", GOLDEN)
def test_it_is_cleaned_and_archived_as_it_is_compacted(name):
    """Its timeline and its folder stay short, however many writes there are; the table is archived behind its compactions."""
    storage = loaded(name)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    table = opened(storage, storage.clock, OFTEN, cache=Cache())
    for turn in range(50):
        table.upsert(changed(rows, 1 + turn % 3))
    own = own_timeline(storage)
    assert len(own.commits) <= 45
    assert any(each.action is Action.CLEAN for each in own)
    bases = [each for each in storage.names(f"{METADATA_TABLE}/files") if each.endswith(".hfile")]
    assert 2 <= len(bases) <= 3
    assert own.commits[0].time <= table.timeline.start
    history = "archived" if own.layout is V6 else "timeline/history"
    assert storage.names(f"{METADATA_TABLE}/.hoodie/{history}")
    assert storage.names(table.config.history_folder)
    check_storage(storage)


def left_pending(storage, log_since=None):
    """A compaction of the metadata table whose process died when it had written the base file."""
    own = own_timeline(storage)
    time = f"{own.latest_time}001" if own.layout is V6 else next_instant(datetime(2026, 1, 1), own.latest_time)
    data, folder = encode_compaction_plan(CompactionPlan(())), f"{METADATA_TABLE}/{own.layout.folder}"
    storage.create_new(f"{folder}/{time}.compaction.requested", data)
    storage.create_new(f"{folder}/{time}.compaction.inflight", b"")
    storage.create_new(f"{METADATA_TABLE}/files/files-0000-0_0-0-0_{time}.hfile", b"half")
    if log_since:
        storage.create_new(f"{METADATA_TABLE}/files/.files-0000-0_{time}.log.1_0-0-0", b"")
    return time


@pytest.mark.parametrize("name", GOLDEN)
def test_a_compaction_whose_process_died_is_taken_back(name):
    storage = loaded(name)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    time = left_pending(storage)
    wrote(storage, changed(rows, 2))
    assert not [each for each in storage.list(METADATA_TABLE, recursive=True) if time in each.name]
    check_storage(storage)


def test_one_on_which_logs_were_written_since_is_not(caplog):
    storage = loaded("v6_mdt_cow")
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    left_pending(storage, log_since=True)
    wrote(storage, changed(rows, 2))
    assert not storage.exists(METADATA_TABLE)
    assert [each.getMessage() for each in caplog.records if "cannot be maintained" in each.getMessage()]


@pytest.mark.parametrize("name", goldens())
@pytest.mark.parametrize("writes_after", [0, 9])
def test_a_restore_builds_it_anew(name, writes_after):
    """Also where what is taken back was compacted."""
    storage = loaded(name)
    table = opened(storage, storage.clock, cache=Cache())
    rows = table.scan().to_arrow()
    table.upsert(changed(rows, 2))
    saved = table.savepoint()
    old = read(storage)
    for _ in range(1 + writes_after):
        table.upsert(changed(rows, 1))
    table.restore(saved)
    assert read(storage) == old
    check_storage(storage)
    table.upsert(changed(rows, 2))
    check_storage(storage)


@pytest.mark.parametrize("name", long_but(["v6_mdt_mor"], GOLDEN))
def test_a_restore_that_dies_at_any_call_is_carried_on(name):
    storage = loaded(name)
    table = opened(storage, storage.clock, cache=Cache())
    rows = table.scan().to_arrow()
    saved = table.savepoint()
    table.upsert(changed(rows, 2))
    begin, old = storage.snapshot(), read(storage)
    faulty = FaultStorage(storage)
    opened(faulty, storage.clock, cache=Cache()).restore(saved)
    new = read(storage)
    concerned = [each for each in faulty.trace if METADATA_TABLE in each.path or "restore" in each.path]
    concerned += [each for each in faulty.trace if each.path == PROPERTIES]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            opened(faulty, storage.clock, cache=Cache()).restore(saved)
        faulty.revive()
        found = read(storage)
        assert found == read(storage, BY_FOLDERS), fault
        assert found in (old, new), fault
        storage.clock.sleep(3600)
        wrote(storage, changed(rows, 1))
        assert read(storage) == read(storage, BY_FOLDERS), fault
        if "metadata.partitions=files" in storage.read(PROPERTIES).decode():
            check_storage(storage)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_rollback_of_what_was_compacted_is_in_it(name):
    storage = loaded(name)
    table = opened(storage, storage.clock, cache=Cache())
    rows = table.scan().to_arrow()
    for _ in range(12):
        if compactions(storage):
            break
        before = table.timeline.latest_commit.time
        table.upsert(changed(rows, 2))
    # The last write came after the compaction; the one before it is in the base file.
    table.rollback(table.timeline.latest_commit.time)
    assert table.timeline.latest_commit.time == before
    table.rollback(before)
    named = parse_properties(storage.read(PROPERTIES).decode())["hoodie.table.metadata.partitions"]
    assert named == ("column_stats,files,partition_stats" if name == "v9_mdt_mor" else "files")
    check_storage(storage)
    table.upsert(changed(rows, 1))
    check_storage(storage)


def test_a_delta_commit_of_a_writer_at_work_is_left_alone_until_its_instant_is_gone():
    """From version 8 on Apache Hudi's writers begin one before they hold the lock."""
    storage = loaded("v9_mdt_mor")
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    time = next_instant(datetime(2026, 1, 1), own_timeline(storage).latest_time)
    theirs = [f"{METADATA_TABLE}/{V9.folder}/{time}.deltacommit.{state}" for state in ("requested", "inflight")]
    theirs.append(f"{METADATA_TABLE}/files/.files-0000-0_{time}.log.1_7-7-7")
    at_work = f"{V9.folder}/{time}.indexing.requested"
    for path in (*theirs, at_work):
        storage.create_new(path, b"")
    wrote(storage, changed(rows, 2))
    assert all(map(storage.exists, theirs))
    check_storage(storage)
    storage.delete(at_work)
    wrote(storage, changed(rows, 1))
    assert not any(map(storage.exists, theirs))
    check_storage(storage)
