"""Many folders of an object store are listed by spans of names, and are as they are one by one."""

from collections import Counter

import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from hoodie.storage.base import Storage
from hoodie.storage.object_store import ObjectStorage

NAMES = st.text(st.sampled_from("ab.-=é\U00010000 0z~"), min_size=1, max_size=4).filter(lambda name: set(name) != {"."})


def filled(files: dict[str, int]) -> ObjectStorage:
    store = MemoryStore()
    for folder, count in files.items():
        for n in range(count):
            obstore.put(store, f"{folder}/{'x/' * (n % 2)}f{n}", b"x")
    return ObjectStorage("memory://spans", store, store)


def one_by_one(storage: ObjectStorage, folders: list[str]) -> list[str]:
    return sorted(info.path for info in Storage.list_below(storage, folders))


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(NAMES, st.integers(1, 3), min_size=40, max_size=60), st.data())
def test_spans_show_what_the_folders_have(files, data):
    storage = filled(files)
    folders = data.draw(st.lists(st.sampled_from(sorted(files)), unique=True, min_size=33))
    found = [info.path for info in storage.list_below(folders)]
    assert sorted(found) == one_by_one(storage, folders)


def test_a_span_takes_a_request_for_a_thousand_names(monkeypatch):
    calls: Counter[str] = Counter()
    listed = obstore.list

    def counted(store, prefix=None, **how):
        for chunk in listed(store, prefix, **how):
            calls["pages"] += 1
            yield chunk

    monkeypatch.setattr(obstore, "list", counted)
    files = {f"p{n:04d}": 2 for n in range(400)}
    storage = filled(files)
    found = list(storage.list_below(list(files)))
    assert len(found) == 800
    assert calls["pages"] <= storage.can.at_once


@pytest.mark.parametrize("shown", [0, 7])
def test_a_store_with_an_order_of_its_own_is_listed_folder_by_folder(monkeypatch, shown):
    files = {f"p{n:04d}": 2 for n in range(100)}
    storage = filled(files)
    listed = obstore.list

    def odd(store, prefix=None, *, offset=None, **how):
        found = [meta for chunk in listed(store, prefix, **how) for meta in chunk]
        return [found[::-1][:shown]] if offset is not None else [found]

    monkeypatch.setattr(obstore, "list", odd)
    assert sorted(info.path for info in storage.list_below(list(files))) == one_by_one(storage, list(files))
