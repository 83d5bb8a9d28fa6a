"""What every Publisher promises, held against each storage that it serves."""

from __future__ import annotations

import errno
import itertools
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie.errors import CommitOutcomeUnknownError, UnsupportedTableError
from hoodie.model.names import MARKERS, PRIVATE, join
from hoodie.model.plans import StagedFile
from hoodie.publish.base import Publisher
from hoodie.publish.marker_files import read_marker_files
from hoodie.publish.publishers import publisher_of
from hoodie.storage.base import Storage
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, crash_points
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from tests.bucket import BucketStorage
from tests.storages import COPYING, RENAMING

T, OTHER = "20260101000000001", "20260101000000002"
COMPLETED = f".hoodie/{T}.commit"
BEAT = f".hoodie/.heartbeat/{T}"


PUBLISHED = {**RENAMING, **COPYING}


@pytest.fixture(params=sorted(PUBLISHED))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return PUBLISHED[request.param](tmp_path)


@pytest.fixture(params=[False, True], ids=["", "leased"])
def publisher(storage: Storage, request: pytest.FixtureRequest) -> Publisher:
    return publisher_of(storage, leased=request.param)


def stage(publisher: Publisher, *finals: str, instant: str = T, marker: str = "CREATE") -> list[StagedFile]:
    files = []
    for final in finals:
        path = join(publisher.staging(instant), final.replace("/", "-"))
        with publisher.open_staged(path, within=publisher.staging(instant)) as stream:
            stream.write(final.encode())
        files.append(StagedFile(path, final, marker))
    return files


def data_files(storage: Storage) -> list[str]:
    return [info.path for info in storage.list("", recursive=True) if not info.path.startswith(".hoodie/")]


def everything(storage: Storage) -> list[str]:
    return [info.path for info in storage.list("", recursive=True)]


def test_a_write_from_its_beginning_to_its_end(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    files = stage(publisher, "a/f", "a/g", "h")
    assert data_files(storage) == []
    publisher.publish(T, files)
    assert [storage.read(path) for path in data_files(storage)] == [b"a/f", b"a/g", b"h"]
    assert not storage.exists(COMPLETED)
    publisher.complete(T, COMPLETED, b"metadata", publisher.epoch(T))
    assert storage.read(COMPLETED) == b"metadata"
    publisher.clear(T)
    assert everything(storage) == [COMPLETED, "a/f", "a/g", "h"]
    assert publisher.remains() == frozenset()


def test_the_staging_place_is_a_value_that_other_processes_take(tmp_path: Path) -> None:
    here = publisher_of(LocalStorage(tmp_path))
    here.begin(T)
    place = pickle.loads(pickle.dumps(here.staging(T)))
    there = publisher_of(pickle.loads(pickle.dumps(LocalStorage(tmp_path))))
    with there.open_staged(join(place, "f"), within=place) as stream:
        stream.write(b"theirs")
    here.publish(T, [StagedFile(join(place, "f"), "a/f", "CREATE")])
    assert LocalStorage(tmp_path).read("a/f") == b"theirs"


def test_to_begin_again_takes_away_what_an_earlier_try_staged(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    (file,) = stage(publisher, "a/f")
    publisher.begin(T)
    assert not storage.exists(file.staged)
    assert publisher.remains() == {T}


def test_a_file_that_states_no_marker_has_none(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    publisher.publish(T, stage(publisher, "a/f", marker="") + stage(publisher, "a/g", marker="MERGE"))
    assert [info.path for info in storage.list(join(MARKERS, T), recursive=True)] == [f"{MARKERS}/{T}/a/g.marker.MERGE"]


def test_markers_are_gathered_in_one_file_before_the_files_have_their_names(
    storage: Storage, publisher: Publisher
) -> None:
    publisher.begin(T)
    publisher.publish(T, stage(publisher, "a/f", "h") + stage(publisher, "a/log", marker=""), gathered=True)
    publisher.publish(T, stage(publisher, "a/g", marker="MERGE"), gathered=True)
    publisher.publish(T, [], gathered=True)
    folder = join(MARKERS, T)
    assert storage.read(f"{folder}/MARKERS.type") == b"TIMELINE_SERVER_BASED"
    assert read_marker_files(storage, folder) == {0: ["a/f.marker.CREATE", "h.marker.CREATE"], 1: ["a/g.marker.MERGE"]}
    assert len(storage.list(folder, recursive=True)) == 3
    publisher.complete(T, COMPLETED, b"metadata", publisher.epoch(T))
    publisher.clear(T)
    assert everything(storage) == [COMPLETED, "a/f", "a/g", "a/log", "h"]


@pytest.mark.parametrize("storage", sorted(RENAMING), indirect=True)
def test_no_file_is_replaced(storage: Storage, publisher: Publisher) -> None:
    storage.create_new("a/g", b"theirs")
    publisher.begin(T)
    with pytest.raises(FileExistsError):
        publisher.publish(T, stage(publisher, "a/f", "a/g"))
    assert storage.read("a/g") == b"theirs"


def test_an_instant_is_completed_once(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    epoch = publisher.epoch(T)
    publisher.complete(T, COMPLETED, b"first", epoch)
    with pytest.raises(FileExistsError):
        publisher.complete(T, COMPLETED, b"second", epoch)
    assert storage.read(COMPLETED) == b"first"


def test_a_fenced_writer_publishes_nothing(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    files = stage(publisher, "a/f")
    epoch = publisher.epoch(T)
    publisher_of(storage).fence(T)
    with suppress(FileNotFoundError):
        files += stage(publisher, "a/late")
    with pytest.raises(FileNotFoundError):
        publisher.publish(T, files)
    with pytest.raises(FileNotFoundError):
        publisher.complete(T, COMPLETED, b"late", epoch)
    with pytest.raises(FileNotFoundError):
        publisher.complete(T, COMPLETED, b"late", publisher.epoch(T))
    assert data_files(storage) == []
    assert not storage.exists(COMPLETED)
    assert publisher.remains() == {T}


def test_a_writer_that_is_fenced_while_a_task_writes_keeps_nothing(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    place = publisher.staging(T)
    with suppress(FileNotFoundError), publisher.open_staged(join(place, "f"), within=place) as stream:
        stream.write(b"late")
        publisher.fence(T)
    with pytest.raises(FileNotFoundError):
        publisher.publish(T, [StagedFile(join(place, "f"), "a/f", "CREATE")])
    assert data_files(storage) == []


def test_a_fence_after_the_completed_file_leaves_that(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    publisher.complete(T, COMPLETED, b"metadata", publisher.epoch(T))
    publisher.fence(T)
    assert storage.read(COMPLETED) == b"metadata"


def test_a_fence_may_be_put_up_again_and_where_nothing_was_begun(storage: Storage, publisher: Publisher) -> None:
    publisher.fence(OTHER)
    for _ in range(2):
        publisher.begin(T)
        publisher.fence(T)
        publisher.fence(T)
    with pytest.raises(FileNotFoundError):
        publisher.complete(T, COMPLETED, b"late", publisher.epoch(T))


def test_an_instant_does_not_reach_into_another_one(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    publisher.begin(OTHER)
    files = stage(publisher, "a/f", instant=OTHER)
    publisher.fence(T)
    publisher.forget(T)
    assert publisher.remains() == {OTHER}
    publisher.publish(OTHER, files)
    assert data_files(storage) == ["a/f"]


def test_an_abandoned_write_gives_its_room_back_and_keeps_its_markers(storage: Storage, publisher: Publisher) -> None:
    publisher.begin(T)
    first, second = stage(publisher, "a/f", "a/g")
    publisher.publish(T, [first])
    publisher.abandon(T)
    assert not storage.exists(second.staged)
    seen = [path for path in everything(storage) if not path.startswith(PRIVATE)]
    assert seen == [f"{MARKERS}/{T}/a/f.marker.CREATE", "a/f"]


@pytest.mark.parametrize("fenced", [False, True])
def test_what_is_forgotten_leaves_nothing(storage: Storage, publisher: Publisher, fenced: bool) -> None:
    publisher.begin(T)
    first, _ = stage(publisher, "a/f", "a/g")
    publisher.publish(T, [first])
    if fenced:
        publisher.fence(T)
    publisher.forget(T)
    publisher.forget(T)
    assert everything(storage) == ["a/f"]
    assert publisher.remains() == frozenset()


def _write(publisher: Publisher) -> None:
    publisher.begin(T)
    publisher.publish(T, stage(publisher, "a/f", "b/g"))
    publisher.complete(T, COMPLETED, b"metadata", publisher.epoch(T))


KINDS = {"memory": MemoryStorage, "bucket": BucketStorage}


def _crashes() -> list[tuple[str, Fault]]:
    found = []
    for kind, make in KINDS.items():
        storage = FaultStorage(make())
        _write(publisher_of(storage))
        found += [(kind, crash) for crash in crash_points(storage.trace)]
    return found


@pytest.mark.parametrize(
    ("kind", "crash"), _crashes(), ids=lambda at: at if isinstance(at, str) else f"{at.at}-{at.moment}"
)
def test_after_a_crash_the_fence_tells_whether_it_is_completed(kind: str, crash: Fault) -> None:
    inner = KINDS[kind]()
    with suppress(InjectedFault):
        _write(publisher_of(FaultStorage(inner, [crash])))
    before = inner.exists(COMPLETED)
    publisher = publisher_of(inner)
    for path in data_files(inner):
        assert inner.exists(f"{MARKERS}/{T}/{path}.marker.CREATE")
    publisher.fence(T)
    completed = inner.exists(COMPLETED)
    if completed:
        assert inner.read(COMPLETED) == b"metadata"
        assert data_files(inner) == ["a/f", "b/g"]
    else:
        assert not before
    with pytest.raises(FileNotFoundError):
        publisher.complete(T, f"{COMPLETED}.late", b"late", publisher.epoch(T))
    assert inner.exists(COMPLETED) == completed
    publisher.forget(T)
    assert publisher.remains() == frozenset()


class OnlyPuts:
    """A store that can put a file if it is absent, and has no renames."""

    def __init__(self) -> None:
        inner = MemoryStorage("bucket")
        for name in ("uri", "read", "create_new", "replace", "open_output", "list", "delete"):
            setattr(self, name, getattr(inner, name))
        self.lock_root = self


def test_a_storage_that_nobody_can_publish_in_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="files cannot be published in bucket"):
        publisher_of(OnlyPuts())  # type: ignore[arg-type]


@pytest.fixture
def bucket() -> BucketStorage:
    return BucketStorage("memory://bucket")


@pytest.mark.parametrize("make", [lambda: BucketStorage("memory://bucket"), MemoryStorage], ids=["copying", "renaming"])
def test_of_two_writers_that_both_believe_to_hold_the_lock_one_completes_at_most(make: Callable[[], Storage]) -> None:
    storage = make()
    publisher = publisher_of(storage, leased=True)
    completed = {time: f".hoodie/{time}.commit" for time in (T, OTHER)}
    for steps in set(itertools.permutations([T, T, T, OTHER, OTHER, OTHER])):
        for time in completed:
            publisher.begin(time)
        epochs, at, landed = {}, dict.fromkeys(completed, 0), []
        for time in steps:
            at[time] += 1
            other = OTHER if time == T else T
            if at[time] == 1:
                epochs[time] = publisher.epoch(time)
            elif at[time] == 2:
                if publisher.advance(other) and storage.exists(completed[other]):
                    break  # it looks again, and sees the other one
            else:
                with suppress(FileNotFoundError):
                    publisher.complete(time, completed[time], b"metadata", epochs[time])
                    landed.append(time)
        assert len(landed) <= 1
        for time, path in completed.items():
            assert storage.exists(path) == (time in landed)
            publisher.forget(time)
            storage.delete(path)


def test_a_writer_that_completed_and_cleared_since_it_was_seen_is_looked_for_again(bucket: BucketStorage) -> None:
    publisher = publisher_of(bucket)
    publisher.begin(T)
    assert not publisher.advance(T)
    publisher.complete(T, COMPLETED, b"metadata", publisher.epoch(T))
    publisher.clear(T)
    assert publisher.advance(T)


def test_who_advances_puts_the_completed_file_of_a_writer_that_died_after_its_decision(bucket: BucketStorage) -> None:
    storage = FaultStorage(bucket)
    dying = publisher_of(storage)
    dying.begin(T)
    epoch = dying.epoch(T)
    storage.revive([Fault(1, "after")])
    with pytest.raises(InjectedFault):
        dying.complete(T, COMPLETED, b"metadata", epoch)
    assert not bucket.exists(COMPLETED)
    assert publisher_of(bucket).advance(T)
    assert bucket.read(COMPLETED) == b"metadata"


def test_a_completed_file_that_cannot_be_put_is_no_failure_of_the_write(bucket: BucketStorage) -> None:
    storage = FaultStorage(bucket)
    publisher = publisher_of(storage)
    publisher.begin(T)
    epoch = publisher.epoch(T)
    storage.revive([Fault(2, "before", errno.EIO)])
    with pytest.raises(CommitOutcomeUnknownError, match=r"is decided, but .* could not be put"):
        publisher.complete(T, COMPLETED, b"metadata", epoch)
    publisher.fence(T)
    assert bucket.read(COMPLETED) == b"metadata"


def test_a_copy_that_comes_after_the_fence_finds_nothing(bucket: BucketStorage) -> None:
    publisher = publisher_of(bucket)
    publisher.begin(T)
    (file,) = stage(publisher, "a/f")
    publisher.fence(T)
    with pytest.raises(FileNotFoundError):
        bucket.copy_file(file.staged, file.final)


class AtOnce(BucketStorage):
    """Takes several requests at the same time."""

    can = replace(BucketStorage.can, at_once=8)


def test_a_fenced_writer_that_puts_markers_meanwhile_leaves_none() -> None:
    storage = AtOnce()
    publisher = publisher_of(storage)
    publisher.begin(T)
    files = stage(publisher, "a/f", "a/g")
    publisher.fence(T)
    with pytest.raises(FileNotFoundError):
        publisher.publish(T, files)
    assert not storage.list(join(MARKERS, T), recursive=True)
    assert data_files(storage) == []


def test_files_that_are_staged_while_markers_are_put_get_their_names_with_the_others(
    storage: Storage, publisher: Publisher
) -> None:
    publisher.begin(T)
    publisher.publish(T, stage(publisher, "a/f"), stage_more=lambda: stage(publisher, "a/g", marker=""))
    assert data_files(storage) == ["a/f", "a/g"]
    assert [info.name for info in storage.list(join(MARKERS, T), recursive=True)] == ["f.marker.CREATE"]


@pytest.mark.parametrize("by_names", [True, False])
def test_who_dies_while_he_clears_leaves_nothing_that_nobody_would_look_for(by_names: bool) -> None:
    """The mark of the instant may be gone by then."""

    def published(storage: FaultStorage) -> tuple[Publisher, Sequence[str] | None]:
        publisher = publisher_of(storage)
        storage.create_new(BEAT, b"")
        publisher.begin(T)
        paths = publisher.publish(T, stage(publisher, "a/f", "a/g", "h"))
        publisher.complete(T, COMPLETED, b"metadata", publisher.epoch(T))
        storage.revive()
        return publisher, paths if by_names else None

    traced = FaultStorage(BucketStorage())
    publisher, paths = published(traced)
    publisher.clear(T, paths, [BEAT])
    assert everything(traced) == [COMPLETED, "a/f", "a/g", "h"]
    for crash in crash_points(traced.trace):
        bucket = BucketStorage()
        storage = FaultStorage(bucket)
        publisher, paths = published(storage)
        storage.revive([crash])
        with pytest.raises(InjectedFault):
            publisher.clear(T, paths, [BEAT])
        left = set(everything(bucket)) - {COMPLETED, "a/f", "a/g", "h"}
        assert not left or publisher_of(bucket).remains() == {T}, crash
