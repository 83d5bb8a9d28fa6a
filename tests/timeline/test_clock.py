"""Allotting instants, with a clock that tests set."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from hoodie.errors import LockError
from hoodie.timeline.clock import MAX_COMMIT_WAIT_S, Clock, zone_of
from tests.memory_tables import FakeClock

NOW = datetime(2026, 11, 21, 7, 58, 18, 449_000, tzinfo=UTC).timestamp()
NOW_TEXT = "20261121075818449"


def clock(now_s=NOW, zone=UTC):
    time = FakeClock(now_s)
    return Clock(time, zone, time.sleep), time


def test_instants_are_the_storage_clock():
    assert clock()[0].allot(None) == NOW_TEXT
    assert clock()[0].allot("20261121075818448") == NOW_TEXT


def test_allotted_instants_strictly_increase_also_when_the_clock_stands_or_goes_back():
    allotting, time = clock()
    found = [allotting.allot(None)]
    for step in (0, 0, 0.0004, -1, -60, 0.002, 61, -100):
        time.now_s += step
        found.append(allotting.allot(found[-1]))
    assert found == sorted(set(found))
    assert found[1] == "20261121075818450"


def test_a_clock_too_far_behind_the_timeline_is_an_error_that_names_the_instant():
    ahead = Clock(lambda: NOW + MAX_COMMIT_WAIT_S - 1, UTC)
    latest = ahead.allot(None)
    behind, _ = clock()
    assert behind.allot(latest) > latest
    too_far = Clock(lambda: NOW + MAX_COMMIT_WAIT_S, UTC).allot(None)
    with pytest.raises(LockError, match=rf"{too_far} lies 120 s ahead of the storage's clock: set the clock right"):
        behind.allot(too_far)


def test_the_commit_wait_ends_when_the_clock_is_past_the_instant():
    waiting, time = clock()
    waiting.wait_until_passed("20261121075818948")
    assert 0.499 < time.now_s - NOW < 0.505
    before = time.slept_s
    waiting.wait_until_passed(NOW_TEXT)
    assert time.slept_s == before


def test_the_commit_wait_also_passes_the_instant_of_this_very_moment():
    waiting, time = clock()
    waiting.wait_until_passed(NOW_TEXT)
    assert 0 < time.slept_s < 0.01


def test_the_commit_wait_sleeps_in_short_pieces():
    naps = []
    time = FakeClock(NOW)

    def nap(seconds):
        naps.append(seconds)
        time.sleep(seconds)

    Clock(time, UTC, nap).wait_until_passed("20261121075819449")
    assert max(naps) <= 0.05
    assert sum(naps) == pytest.approx(1.001, abs=0.01)


@pytest.mark.parametrize(("shift_s", "ahead"), [(-1, True), (-0.001, True), (0, False), (0.001, False), (1, False)])
def test_whether_an_instant_lies_ahead_of_a_moment(shift_s, ahead):
    assert clock()[0].ahead_of(NOW + shift_s, NOW_TEXT) is ahead


def test_pause_is_the_sleep_that_was_given():
    pausing, time = clock()
    pausing.pause(1.5)
    assert time.slept_s == 1.5


def test_instants_are_in_the_zone_of_the_table():
    east = timezone(timedelta(hours=5, minutes=30))
    allotting, time = clock(zone=east)
    assert allotting.allot(None) == "20261121132818449"
    allotting.wait_until_passed("20261121132818549")
    assert time.slept_s == pytest.approx(0.1, abs=0.01)
    assert not allotting.ahead_of(NOW, "20261121132818449")
    assert allotting.ahead_of(NOW, "20261121132818450")


def test_local_is_the_zone_of_the_process():
    assert zone_of("LOCAL") is None
    assert zone_of("UTC") is zone_of("utc") is UTC
    local = datetime.fromtimestamp(NOW)
    assert clock(zone=None)[0].allot(None) == local.strftime("%Y%m%d%H%M%S") + "449"
