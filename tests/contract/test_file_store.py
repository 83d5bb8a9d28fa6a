"""Every file store keeps what it is given by partition, and gives it back."""

import os
import random

import pytest

from hoodie.view.embedded_store import EmbeddedStore
from hoodie.view.file_store import MemoryStore, decode_files, encode_files
from hoodie.view.spilled_store import SpilledStore

STORES = {
    "memory": lambda folder: MemoryStore(),
    "spilled": lambda folder: SpilledStore(2000, folder),
    "all spilled": lambda folder: SpilledStore(0, folder),
    "embedded": EmbeddedStore,
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    made = STORES[request.param](str(tmp_path / "store"))
    yield made
    made.close()


def files_of(rng, most=20):
    return {
        f"file-{rng.randrange(1000)}_0-0-0_2026.parquet": rng.randrange(1 << 40) for _ in range(rng.randrange(most))
    }


def test_it_gives_what_was_put_last_in_the_order_of_names(store):
    store.put("a", {"z": 1, "b": 2})
    store.put("a", {"y": 3, "c": 4, "x": 0})
    store.put("b/c", {})
    assert list(store.get("a").items()) == [("c", 4), ("x", 0), ("y", 3)]
    assert store.get("b/c") == {}
    assert store.get("b") is None
    assert store.partitions() == ["a", "b/c"]


def test_what_is_dropped_is_not_there(store):
    store.put("a", {"x": 1})
    store.drop("a")
    store.drop("never there")
    assert store.get("a") is None
    assert store.partitions() == []
    store.put("a", {"y": 2})
    assert store.get("a") == {"y": 2}


def test_names_and_paths_of_any_letters_are_kept(store):
    files = {"ä=ö 日本.parquet": 1, "\ud800": 2, "a\nb\tc": 3}
    store.put("größe=1/\udcff", files)
    assert store.get("größe=1/\udcff") == files
    assert store.partitions() == ["größe=1/\udcff"]


def test_the_root_of_a_table_is_a_partition(store):
    store.put("", {"x": 1})
    assert store.get("") == {"x": 1}
    assert store.partitions() == [""]


def test_it_is_a_dictionary_over_a_long_random_history(store):
    rng, model = random.Random(7), {}
    for _ in range(3000):
        path = f"p{rng.randrange(40)}"
        match rng.randrange(20):
            case 0:
                store.drop(path)
                model.pop(path, None)
            case 1 if rng.randrange(20) == 0:
                store.clear()
                model.clear()
            case number if number < 12:
                model[path] = files_of(rng)
                store.put(path, model[path])
            case _:
                assert store.get(path) == model.get(path)
    assert store.partitions() == sorted(model)
    assert {path: store.get(path) for path in store.partitions()} == model


def test_nothing_is_left_on_disk(store, tmp_path):
    for number in range(100):
        store.put(f"p{number}", {f"file{number}": number})
    store.close()
    store.close()
    assert [name for _, folders, names in os.walk(tmp_path / "store") for name in (*folders, *names)] == []


def test_a_spilled_store_keeps_within_its_bound_and_writes_its_file_anew(tmp_path):
    store = SpilledStore(10_000, str(tmp_path))
    files = {f"{number:036}-0_0-0-0_20261125000000000.parquet": number for number in range(200)}
    for turn in range(40):
        for number in range(10):
            store.put(f"p{number}", {**files, f"t{turn}": turn})
        assert store._warm_bytes <= 10_000
    assert store._end < 4 * 1024 * 1024 < 40 * 10 * len(encode_files(files))
    assert all(store.get(f"p{number}") == {**files, "t39": 39} for number in range(10))
    store.close()


@pytest.mark.parametrize("files", [{}, {"a": 1}, {"b": 2**62, "": 3}])
def test_a_partition_is_one_text_of_bytes(files):
    assert decode_files(encode_files(files)) == files
