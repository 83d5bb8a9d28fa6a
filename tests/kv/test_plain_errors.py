"""Whatever a user gives to a key-value store, and whatever its storage does: an error is one of hoodie's, in a sentence."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import hoodie.kv
from hoodie.errors import HoodieError
from hoodie.kv.store import KeyValueStore, open_at
from hoodie.storage.cache import Cache
from tests.effort import in_shares
from tests.failing_storage import ERRORS, FailingStorage
from tests.kv.stores import SMALL, abandon
from tests.wrong_arguments import calls

ROWS = pa.record_batch({"key": pa.array([b"c"], pa.binary()), "value": pa.array([b"3"], pa.large_binary())})
FITTING: dict[str, Any] = {
    **{"key": b"a", "value": b"1", "keys": [b"a"], "values": [b"1"], "default": b"", "item": b"a", "prefix": b"a"},
    **{
        "bucket": 0,
        "buckets": 2,
        "window_id": 9,
        "batches": [ROWS],
        "path": "rows.parquet",
        "uri": "memory://kv_errors",
    },
    **{"name": "order_of_a_test", "order": "bytes"},
}


def new_place() -> dict[str, FailingStorage]:
    """The folders of a store with rows in files and in a log, each a storage of its own."""
    place: dict[str, FailingStorage] = {}
    with opened(place, buckets=2).writer(0) as writer:
        writer.put_many([b"a", b"b"], [b"1", b"2"])
        writer.end_window(1)
        writer.flush()
        writer.put(b"a", b"3")
        writer.end_window(2)
    return place


def opened(place: dict[str, FailingStorage], **how: Any) -> KeyValueStore:
    def below(folder: str) -> FailingStorage:
        if folder not in place:
            place[folder] = FailingStorage(f"memory://{folder or 'store'}")
        return place[folder]

    return open_at(below, SMALL, cache=Cache(), **how)


def methods(cls: type) -> list[str]:
    special = {"__getitem__", "__contains__"}
    return [
        name for name, each in inspect.getmembers(cls, callable) if name[0] != "_" or name in special & set(vars(cls))
    ]


def judge(tried: list[tuple[str, Any, Callable[[], Any]]]) -> list[str]:
    found = []
    for name, value, call in tried:
        try:
            result = call()
            if inspect.isgenerator(result):
                list(result)
        except HoodieError as exc:
            if not str(exc).strip():
                found.append(f"{name}={value!r:.40}: no sentence")
        except KeyError as exc:
            if exc.args not in ((b"a",), (value,)) and not isinstance(value, bytes | bytearray | memoryview):
                found.append(f"{name}={value!r:.40}: {exc!r:.200}")
        except Exception as exc:  # noqa: BLE001 - that is what is looked for
            found.append(f"{name}={value!r:.40}: {exc!r:.200}")
    return found


def holder_of(cls: type, store: KeyValueStore) -> Any:
    if cls is hoodie.kv.BucketWriter:
        return store.writer(0)
    return store.reader(0) if cls is hoodie.kv.BucketReader else store


CLASSES = (hoodie.kv.KeyValueStore, hoodie.kv.BucketReader, hoodie.kv.BucketWriter)


@pytest.mark.parametrize(("cls", "name"), [(cls, name) for cls in CLASSES for name in methods(cls)])
def test_a_wrong_argument_is_an_error_of_ours(cls, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = opened(new_place())
    held = holder_of(cls, store)
    tried = calls(getattr(held, name), FITTING)
    if (cls, name) == (hoodie.kv.KeyValueStore, "writer"):  # a bucket has one
        tried = ((each, value, lambda call=call: call().close()) for each, value, call in tried)
    assert judge(list(tried)) == []
    if cls is hoodie.kv.BucketWriter:
        abandon(held)


@pytest.mark.parametrize("name", ["open_store", "register_order"])
def test_a_wrong_argument_of_a_function_is_an_error_of_ours(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert judge(list(calls(getattr(hoodie.kv, name), FITTING))) == []


def write(store: KeyValueStore) -> None:
    with store.writer(0) as writer:
        writer.put(b"x", b"9")
        writer.delete(b"a")
        writer.end_window(3)
        writer.flush()
        writer.lookup(b"b")
        writer.compact()
        writer.purge(start=b"b")


ACTS: dict[str, Callable[[KeyValueStore], object]] = {
    "write": write,
    "get": lambda store: store.reader(0).get(b"a"),
    "scan": lambda store: list(store.scan()),
    "check": lambda store: store.check(rows=True),
    "last_window": lambda store: store.last_window(0),
    "manifest": lambda store: store.manifest(0),
    "import_rows": lambda store: store.import_rows([ROWS], 9),
    "rebucket": lambda store: store.rebucket(3, window=2),
}


def sentence(act: Callable[[KeyValueStore], object], store: KeyValueStore) -> str | None:
    """What is wrong with the error that it ends with."""
    try:
        act(store)
    except HoodieError as exc:
        return None if str(exc).strip() and "\n" not in str(exc) else repr(exc)
    except Exception as exc:  # noqa: BLE001 - that is what is looked for
        return repr(exc)
    return None


@in_shares(6, often=2)
@pytest.mark.parametrize("name", ACTS)
def test_a_storage_that_fails_at_any_call_is_an_error_of_ours(name, share):
    """From the n-th call of each folder on: once, or always, as a server does that only answers 503."""
    chance = random.Random(name)
    counted = new_place()
    store = opened(counted)
    for storage in counted.values():
        storage.fail(at=10**9, error=ERRORS[0], stays=False)
    with suppress(HoodieError):
        ACTS[name](store)
    places = [(folder, at) for folder, storage in counted.items() for at in range(1, storage.calls + 1)]
    start = new_place()
    for number, (folder, at) in enumerate(share.of(chance.sample(places, min(len(places), 30)))):
        place = {each: storage.copy() for each, storage in start.items()}
        store = opened(place)
        store._below(folder)
        place[folder].fail(at=at, error=chance.choice(ERRORS), stays=number % 2 == 0)
        assert sentence(ACTS[name], store) is None, (folder, at)
        assert place[folder].calls < 1_000, "an end to tries"
