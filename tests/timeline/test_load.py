"""Loading the active timeline: anew each time, but where what was listed a moment ago will do."""

import pytest

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from hoodie.timeline.active import ActiveTimeline

FIRST, SECOND = (Instant(f"2026112112000000{n}", Action.COMMIT, State.REQUESTED) for n in (1, 2))


@pytest.fixture
def now(monkeypatch):
    at = [100.0]
    monkeypatch.setattr("hoodie.timeline.active.time.monotonic", lambda: at[0])
    return at


def test_what_others_do_is_seen_at_once_and_within_the_age_that_is_allowed(tmp_path, now):
    storage = LocalStorage(tmp_path)
    ours, theirs = (ActiveTimeline(storage, Cache()) for _ in range(2))
    theirs.create(FIRST)
    assert list(ours.load(max_age_s=5.0)) == [FIRST]
    theirs.create(SECOND)
    now[0] += 4.9
    assert list(ours.load(max_age_s=5.0)) == [FIRST]
    now[0] += 0.1
    assert list(ours.load(max_age_s=5.0)) == [FIRST, SECOND]
    theirs.remove(SECOND)
    assert list(ours.load()) == [FIRST]
    theirs.create(SECOND)
    assert list(ours.load(max_age_s=5.0)) == [FIRST]
