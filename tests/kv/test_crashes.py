"""A writer that dies at any call of the storage: committed windows are whole, others are gone, and nothing comes twice."""

from contextlib import suppress

import pytest

from hoodie.errors import CommitOutcomeUnknownError, HoodieError
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, crash_points
from tests.effort import long_but
from tests.kv.stores import KINDS, Place, abandon, binary, committed

STEPS = 6


def window(number):
    """The rows of a window; None: deleted."""
    rows = {b"k%d" % n: b"%d-%d" % (number, n) * 9 for n in range(number % 3, 12, 2)}
    return rows | {b"k%d" % (number % 5): None, b"w%d" % number: b"x" * 50}


def act(writer, number):
    """One window, and what follows it."""
    rows = window(number)
    puts = {key: value for key, value in rows.items() if value is not None}
    some, others = dict(list(puts.items())[:3]), dict(list(puts.items())[3:])
    for key, value in some.items():
        writer.put(key, value)
    writer.put_many(binary(list(others)), binary(list(others.values())))
    if number % 3 == 0:
        writer.flush()  # of the windows before
    for key in rows.keys() - puts.keys():
        writer.delete(key)
    writer.end_window(number)


def service(writer, number):
    if number % 2:
        writer.flush()
    if number == 4:
        writer.compact()
    if number == 5:
        writer.purge(start=b"k1", stop=b"k3")


def model(windows, *, purged=True):
    rows = {}
    for number in windows:
        rows |= window(number)
        if number == 5 and purged:
            rows = {key: value for key, value in rows.items() if not b"k1" <= key < b"k3"}
    return {key: value for key, value in rows.items() if value is not None}


def life(place, acknowledged):
    """From whatever the store has, on to the end; tells which windows were acknowledged."""
    writer = place.store(buckets=1).writer(0)
    try:
        first = (writer.last_window or 0) + 1
        service(writer, first - 1)  # which may have been cut short
        for number in range(first, STEPS + 1):
            act(writer, number)
            acknowledged.append(number)
            service(writer, number)
        writer.close()
    except BaseException:
        abandon(writer)
        raise


def traced(kind):
    faults = {}

    def wrap(storage):
        return faults.setdefault(storage.uri, FaultStorage(storage))

    life(Place(kind, wrap=wrap), [])
    (storage,) = faults.values()
    return storage.trace


def broken(kind, *faults):
    """A store whose writer lives until one of the faults; the windows that it acknowledged."""
    wrapped = {}

    def wrap(storage):
        return wrapped.setdefault(storage.uri, FaultStorage(storage, faults))

    place, acknowledged = Place(kind, wrap=wrap), []
    with suppress(InjectedFault, OSError, HoodieError):
        life(place, acknowledged)
    return place, acknowledged


def check(place, acknowledged, why, *, deaths=1):
    """What the next writer finds; and it goes on to the end. Each death may have left a window that it did not acknowledge."""
    after = place.after_a_crash()
    reader = after.store().reader(0)
    shown = dict(reader)
    assert shown in [model(range(1, (reader.window or 0) + 1), purged=purged) for purged in (True, False)], why
    writer = after.store().writer(0)
    last = writer.last_window or 0
    assert 0 <= last - len(acknowledged) <= deaths, why
    assert committed(writer) in [model(range(1, last + 1), purged=purged) for purged in (True, False)], why
    writer.close()
    life(after, [])
    with after.store().writer(0) as writer:
        assert committed(writer) == model(range(1, STEPS + 1)), why
    after.store().reader(0)
    left = {info.path for info in after.folders["buckets-00000001/00000"].list("data", recursive=True)}
    manifest = after.store().manifest(0)
    assert left == {f"data/{name}" for name in [f.name for f in manifest.files] + [n for n, _ in manifest.old_files]}, (
        why
    )


@pytest.mark.parametrize("kind", long_but(["objects"], KINDS))
def test_a_writer_that_dies_at_any_call(kind):
    points = list(crash_points(traced(kind)))
    assert len(points) > 60
    for fault in points:
        check(*broken(kind, fault), fault)


@pytest.mark.parametrize("kind", long_but(["files"], KINDS))
@pytest.mark.parametrize("share", long_but([0], range(6)))
def test_the_next_writer_dies_too(kind, share):
    points = list(crash_points(traced(kind)))
    for number, fault in enumerate(points[share::6]):
        place, acknowledged = broken(kind, fault)
        after = place.after_a_crash()
        wrapped = {}
        second = Fault(1 + number % 9, ("before", "after", "torn")[number % 3])
        after.wrap = lambda storage, found=wrapped, at=second: found.setdefault(
            storage.uri, FaultStorage(storage, [at])
        )
        with suppress(InjectedFault, OSError, HoodieError):
            life(after, acknowledged)
        check(after, acknowledged, (fault, second), deaths=2)


@pytest.mark.parametrize("kind", long_but(["files"], KINDS))
@pytest.mark.parametrize("moment", long_but(["after"], ["before", "torn", "after"]))
def test_a_storage_that_fails_once_is_told_and_the_next_writer_knows(kind, moment):
    for call in traced(kind):
        fault = Fault(call.n, moment, error_number=5)
        place, acknowledged = broken(kind, fault)
        check(place, acknowledged, fault)


@pytest.mark.parametrize("kind", KINDS)
def test_after_an_error_a_writer_is_of_no_use_and_says_why(kind):
    logged = [call.n for call in traced(kind) if ".wal" in call.path and call.verb != "open_log"]
    fault = Fault(logged[1], "after", error_number=5)
    wrapped = {}
    place = Place(kind, wrap=lambda storage: wrapped.setdefault(storage.uri, FaultStorage(storage, [fault])))
    writer = place.store(buckets=1).writer(0)
    told = []
    for number in range(1, STEPS):
        try:
            act(writer, number)
        except HoodieError as error:
            told.append(error)
    assert isinstance(told[0], CommitOutcomeUnknownError)
    assert "look at its last_window" in str(told[0])
    assert all("has failed, open a new one" in str(error) for error in told[1:])
    with pytest.raises(HoodieError, match="has failed, open a new one"):
        writer.put(b"a", b"b")
    writer.close()
    assert place.store().writer(0).last_window is not None
