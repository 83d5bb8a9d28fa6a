"""Keys of base files that are kept in memory: the same answers, within a bound, and never those of another file."""

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.filegroup.footer_keys import FooterKeys
from hoodie.format.base_file import BaseFileFooter
from hoodie.index import bloom
from hoodie.index.hash_index import HashedKeys
from hoodie.index.stored_keys import (
    KnownFile,
    KnownFiles,
    held_key_bytes,
    places_among,
)
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import FileOptions
from hoodie.storage.cache import CAPACITY_BYTES, Cache, FileKey, process_cache
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from tests.small_files import treat_small_files

FOOTER = BaseFileFooter("f", 3, None, None, None, None, None)


def known(keys):
    made = KnownFile(FOOTER)
    made.keys = pa.array(keys, pa.string())
    return made


def name(path, size=1):
    return FileKey("table", path, size)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_each_look_up_says_which_keys_are_stored(times):
    rng = np.random.default_rng(7)
    stored = [f"key-{n}" for n in rng.permutation(1000)]
    file = known(stored)
    wanted = pa.array(["key-3", "absent", "key-999", "key-3", "", "key-1000"])
    for _ in range(times):
        found = file.places(HashedKeys(wanted)).tolist()
        assert [place if place < 0 else stored[place] for place in found] == ["key-3", -1, "key-999", "key-3", -1, -1]


HASHES = {
    "of few keys alike": lambda keys: np.array([ord(key[0]) // 4 << 32 for key in keys.to_pylist()], dtype=np.uint64),
    "all alike": lambda keys: np.zeros(len(keys), dtype=np.uint64),  # so that the index has far too many pairs
}


@pytest.mark.parametrize("hashes", [None, *HASHES])
def test_all_rows_of_keys_that_are_stored_twice_are_found(hashes, monkeypatch):
    if hashes is not None:
        monkeypatch.setattr("hoodie.index.hash_index.key_hash", HASHES[hashes])
    file = known([*"abac", *map(str, range(100))])
    for _ in range(2):
        assert file.rows(HashedKeys(pa.array(["c", "a", "another"]))).tolist() == [0, 2, 3]
        assert file.rows(HashedKeys(pa.array(["another"]))).tolist() == []


def test_keys_of_one_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr("hoodie.index.hash_index.key_hash", HASHES["all alike"])
    file = known([f"key-{n}" for n in range(100)])
    wanted = pa.array(["key-0", "key-99", "other"])
    for _ in range(3):
        assert file.places(HashedKeys(wanted)).tolist() == [0, 99, -1]


def test_an_index_that_another_thread_undoes_meanwhile_still_answers():
    class UndoneOnceSeen(KnownFile):
        @property
        def _index(self):
            return self.__dict__.pop("made", None)

        @_index.setter
        def _index(self, made):
            self.__dict__["made"] = made

    file = UndoneOnceSeen(FOOTER)
    file.keys = pa.array(["a", "b"])
    for _ in range(2):
        assert file.places(HashedKeys(pa.array(["b", "c"]))).tolist() == [1, -1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_keys_that_a_file_stores_as_it_likes_are_found_and_null_is_none(kind):
    file = KnownFile(FOOTER)
    file.keys = pa.array([None, "a", "", "b", "a"]).cast(kind)
    for _ in range(2):
        assert file.places(HashedKeys(pa.array(["b", "", "x", "a"]))).tolist() == [3, 2, -1, 1]


@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_keys_are_found_whichever_side_is_the_larger(count):
    keys = pa.array(["a", "x", "a", "b"])
    stored = pa.array(["b", "a", *(f"k{n}" for n in range(count))])
    assert places_among(keys, stored).tolist() == [1, -1, 1, 0]


def test_the_files_that_were_asked_least_recently_are_forgotten():
    files = KnownFiles(MemoryStorage(), Cache(64 * 1024))
    for n in range(20):
        files.put(name(f"f{n}"), FOOTER, pa.array([f"{i:04}" for i in range(100)]))
        files.get(name("f0"))
    assert files.get(name("f0")) is not None
    assert files.get(name("f19")) is not None
    assert files.get(name("f1")) is None


def test_keys_that_would_take_all_the_room_are_not_kept():
    files = KnownFiles(MemoryStorage(), Cache(64 * 1024))
    files.put(name("large"), FOOTER, pa.array([f"{i:040}" for i in range(1000)]))
    assert files.get(name("large")).keys is None


def test_another_file_of_the_same_name_is_another_file(tmp_path):
    files = KnownFiles(LocalStorage(tmp_path), Cache())
    (tmp_path / "f.parquet").write_bytes(b"12345678")
    first = files.name_of("f.parquet")
    files.put(first, FOOTER, pa.array(["a"]))
    os.utime(tmp_path / "f.parquet", (1, 1))
    assert files.get(files.name_of("f.parquet")) is None
    assert files.get(first) is not None
    (tmp_path / "f.parquet").unlink()
    assert files.name_of("f.parquet") is None


def test_storages_whose_uris_are_alike_share_nothing():
    cache = Cache()
    one, other = (KnownFiles(storage, cache) for storage in (MemoryStorage(), MemoryStorage()))
    for files in (one, other):
        files._storage.create_new("f.parquet", b"")
    one.put(one.name_of("f.parquet"), FOOTER)
    assert one.get(one.name_of("f.parquet")) is not None
    assert other.get(other.name_of("f.parquet")) is None


ROWS = 50_000
"""A file of so many is not rewritten for a single insert."""


def test_upserts_after_upserts_find_every_stored_key(tmp_path):
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    table = hoodie.create_table(tmp_path / "t", schema, record_key="id", table_type="MERGE_ON_READ")
    table.bulk_insert(pa.table({"id": [f"{i:05}" for i in range(ROWS)], "n": [0] * ROWS}, schema=schema))
    ways = []
    for turn in range(1, 5):
        ids = [f"{i:05}" for i in (turn, 100 + turn, 4000)] + [f"new-{turn}"]
        result = table.upsert(pa.table({"id": ids, "n": [turn] * 4}, schema=schema))
        assert (result.updated, result.inserted) == (3, 1)
        ways.append(set(result.index))
    assert "keys" in ways[-1]
    rows = table.scan().to_arrow()
    assert rows.num_rows == ROWS + 4
    values = dict(zip(rows.column("id").to_pylist(), rows.column("n").to_pylist(), strict=True))
    assert {key: value for key, value in values.items() if value} == {
        **{f"{turn:05}": turn for turn in range(1, 5)},
        **{f"{100 + turn:05}": turn for turn in range(1, 5)},
        **{f"new-{turn}": turn for turn in range(1, 5)},
        "04000": 4,
    }


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_small_files_that_a_process_wrote_are_not_opened_for_their_keys(table_type, tmp_path, monkeypatch):
    treat_small_files(monkeypatch, as_small=True)
    opened = []
    real = bloom.open_base_file
    monkeypatch.setattr(bloom, "open_base_file", lambda storage, base: opened.append(base.path) or real(storage, base))
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    path = str(tmp_path / "t")
    hoodie.create_table(path, schema, record_key="id", table_type=table_type)
    for turn in range(6):
        keys = [f"k{n}" for n in range(10 * turn, 10 * turn + 20)]
        result = hoodie.open_table(path).upsert(pa.table({"id": keys, "n": [turn] * 20}, schema=schema))
        assert (result.inserted, result.updated) == ((20, 0) if turn == 0 else (10, 10))
        if turn == 3:
            hoodie.open_table(path).delete(pa.table({"id": ["k1", "k35"]}))
    assert opened == []
    storage = LocalStorage(path)
    newest = [file_slice.base.path for file_slice in hoodie.open_table(path).files()]
    files = KnownFiles(storage, process_cache())
    held = {base: files.get(files.name_of(base)) for base in newest}
    assert newest
    for base, file in held.items():
        stored = pq.read_table(tmp_path / "t" / base, columns=[RECORD_KEY]).column(0).to_pylist()
        assert file.keys.to_pylist() == stored
        assert (file.footer.min_key, file.footer.max_key, file.footer.record_count) == (
            min(stored),
            max(stored),
            len(stored),
        )


def test_keys_of_many_files_are_held_within_the_room_that_is_there():
    assert held_key_bytes(Cache(), 1) == held_key_bytes(Cache(), 10) > 0
    for files in (1, 1_000, 1_000_000):
        assert held_key_bytes(Cache(), files) * files <= CAPACITY_BYTES


def test_without_room_no_keys_are_held_and_none_of_an_empty_file_either():
    """Tasks in other processes have room for none: their results are sent."""
    for keys in ([], ["a"]):
        footer = FooterKeys(FileOptions("zstd", "DYNAMIC_V0", 1e-6, None, 100_000, 1024))
        footer.add(pa.chunked_array([pa.array(keys, pa.string())]), new=True)
        assert footer.keys_below(0) is None
        assert footer.keys_below(100).to_pylist() == keys


@pytest.mark.parametrize("longest", [8, 2_000], ids=["kept", "longer than its ends say"])
def test_keys_are_read_once_where_they_fit(longest, tmp_path, monkeypatch):
    """Whether they fit is taken from the file's least and greatest key, and seen once they are read."""
    passed_by = []
    real = bloom.places_in
    monkeypatch.setattr(bloom, "places_in", lambda *given: passed_by.append(given) or real(*given))
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    keys = ["a", *(f"k{n:06}".ljust(longest, "-") for n in range(10_000)), "z"]
    table = hoodie.create_table(tmp_path / "t", schema, record_key="id", table_type="MERGE_ON_READ")
    table.bulk_insert(pa.table({"id": keys, "n": [0] * len(keys)}, schema=schema))
    sought = [*keys[::3], "absent"]
    for _ in range(2):
        result = table.upsert(pa.table({"id": sought, "n": [1] * len(sought)}, schema=schema))
        assert result.updated in (len(sought) - 1, len(sought))
    assert len(passed_by) == (0 if longest == 8 else 2)
    rows = table.scan().to_arrow()
    assert rows.num_rows == len(keys) + 1
    assert sum(rows.column("n").to_pylist()) == len(sought)


def test_where_a_look_is_a_request_the_size_that_commits_state_names_a_file():
    class Remote(MemoryStorage):
        can = replace(MemoryStorage.can, is_remote=True)

        def stat(self, path):
            raise AssertionError("a request")

    files = KnownFiles(Remote(), Cache())
    files.remember("p/base", pa.array(["a", "b"]), 100)
    assert files.get(files.name_of("p/base", 100)).keys.to_pylist() == ["a", "b"]
    assert files.get(files.name_of("p/base", 101)) is None
