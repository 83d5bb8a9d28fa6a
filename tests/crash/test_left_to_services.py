"""A writer dies at any call, and later ones leave it to the services to take it back: `hoodie.clean.failed.writes.policy=LAZY`."""

import pytest

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.names import heartbeat_path
from tests.crash.actions import crash
from tests.crash.scenes import KINDS, is_decided, is_merge_on_read, scene_of
from tests.effort import in_shares, long_but
from tests.memory_tables import (
    Input,
    batch,
    copy_of,
    left_by,
    leftovers,
    new_table,
    opened,
    snapshot_of,
    stray_files,
)
from tests.placed import EVERY

LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
WRITES = ("merge-on-read upsert", "copy-on-write upsert", "insert_overwrite", "load in one pass", "delete_partitions")
PLACES = [(name, kind) for kind in KINDS for name in WRITES]


def others(storage, clock):
    """The rows that the tests below have not written."""
    return [row for row in snapshot_of(opened(storage, clock)) if not row[0].startswith("next")]


@in_shares(3)
@pytest.mark.parametrize("place", long_but([PLACES[0]], PLACES), ids="-".join)
def test_later_writes_leave_a_dead_one_alone_and_services_take_it_back(place, share):
    scene = scene_of(*place)
    left = 0
    for fault in share.of(scene.points()):
        storage, clock = copy_of(scene.start)
        crash(storage, clock, scene.action, fault)
        bare, clock = left_by(storage)
        expected = list((scene.after if is_decided(bare) else scene.seen(bare, clock)).snapshot)
        pending = opened(bare, clock).timeline.pending_writes
        for number in range(2):
            opened(bare, clock, LAZY).upsert(batch([Input(f"next {number}", "a", number, 1)]))
            assert scene.rows(others(bare, clock)) == tuple(expected), fault
        still = opened(bare, clock).timeline.pending_writes
        assert {i.time for i in still} <= {i.time for i in pending}, fault
        left += bool(still)
        if is_merge_on_read(bare):
            opened(bare, clock, LAZY).compact()
        opened(bare, clock, LAZY).rollback()
        assert scene.rows(others(bare, clock)) == tuple(expected), fault
        assert {row[0] for row in snapshot_of(opened(bare, clock))} >= {"next 0", "next 1"}, fault
        assert not opened(bare, clock).timeline.pending(), fault
        assert leftovers(bare) == [], fault
        assert stray_files(bare, opened(bare, clock)) == [], fault
    assert left or EVERY > 1


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_pulls_end_before_a_dead_write_until_a_clean_takes_it_back(table_type):
    storage, clock = new_table(table_type=table_type)
    first = opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)])).instant
    dead = f"{int(first) + 1}"
    action = Action.COMMIT if table_type == "COPY_ON_WRITE" else Action.DELTACOMMIT
    for state in (State.REQUESTED, State.INFLIGHT):
        opened(storage, clock)._context.active.create(Instant(dead, action, state))
    storage.touch(heartbeat_path(dead))
    clock.now_s += 3600
    opened(storage, clock, LAZY).upsert(batch([Input("k", "a", 2, 2)]))
    assert [i.time for i in opened(storage, clock).timeline.pending_writes] == [dead]
    assert opened(storage, clock).changes(since=first).to_arrow().num_rows == 0
    assert snapshot_of(opened(storage, clock))[0][2] == 2
    opened(storage, clock, LAZY).clean(retain_commits=1)
    assert opened(storage, clock).timeline.pending_writes == ()
    assert opened(storage, clock).changes(since=first).to_arrow().num_rows == 1
    assert leftovers(storage) == []


def test_by_default_the_next_write_takes_it_back():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    first = opened(storage, clock).upsert(batch([Input("k", "a", 1, 1)])).instant
    storage.create_new(f".hoodie/{int(first) + 1}.deltacommit.requested", b"")
    opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)]))
    assert opened(storage, clock).timeline.pending_writes == ()
