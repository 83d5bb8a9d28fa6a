"""Loading the active timeline: anew each time."""

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from hoodie.timeline.active import ActiveTimeline

FIRST, SECOND = (Instant(f"2026112112000000{n}", Action.COMMIT, State.REQUESTED) for n in (1, 2))


def test_what_others_do_is_seen_at_once_and_the_same_names_are_the_same_timeline(tmp_path):
    storage = LocalStorage(tmp_path)
    ours, theirs = (ActiveTimeline(storage, Cache()) for _ in range(2))
    theirs.create(FIRST)
    first = ours.load()
    assert list(first) == [FIRST]
    assert ours.load() is first
    theirs.create(SECOND)
    assert list(ours.load()) == [FIRST, SECOND]
    theirs.remove(SECOND)
    assert list(ours.load()) == [FIRST]
