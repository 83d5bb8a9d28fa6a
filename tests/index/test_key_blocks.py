"""Several small files under one sorted index: each still answers as if it were asked by itself."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoodie
from hoodie.format.base_file import BaseFileFooter
from hoodie.hashes.of_keys import key_hash
from hoodie.index import hash_index, stored_keys
from hoodie.index.bloom import run_lookups
from hoodie.index.hash_index import HashedKeys
from hoodie.index.stored_keys import BLOCK_FILES, KeyBlock, KnownFile, KnownFiles, in_blocks, places_in_small
from hoodie.storage.cache import Cache, FileKey
from hoodie.storage.memory import MemoryStorage
from hoodie.write import by_key

FOOTER = BaseFileFooter("f", 3, None, None, None, None, None)
KEYS = st.lists(st.sampled_from([f"k{n}" for n in range(12)]), max_size=8)


def known(keys, *, queried=True):
    made = KnownFile(FOOTER)
    made.keys = pa.array(keys, pa.string())
    made.queried = queried
    return made


@pytest.fixture(autouse=True)
def files_of_few_keys_count_as_large(monkeypatch):
    monkeypatch.setattr(stored_keys, "_FEW_KEYS", 0)


def places_by_hand(sought, stored):
    return [stored.index(key) if key in stored else -1 for key in sought]


@pytest.mark.parametrize("alike", [False, True], ids=["hashes differ", "all hashes alike"])
@settings(max_examples=300, deadline=None)
@given(stored=st.lists(KEYS, min_size=1, max_size=5), sought=KEYS)
def test_each_file_of_a_block_answers_as_by_itself(alike, stored, sought):
    """Keys that stand in several files, and several times in one, are found at their first row in each."""
    hashed = (lambda keys: np.full(len(keys), 7, np.uint64)) if alike else key_hash
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_index, "key_hash", hashed)
        files = [known(keys) for keys in stored]
        found = KeyBlock(files).places(HashedKeys(pa.array(sought, pa.string())))
    for file, keys in zip(files, stored, strict=True):
        by_hand = places_by_hand(sought, keys)
        if any(place >= 0 for place in by_hand):
            assert found[file].tolist() == by_hand
        else:
            assert file not in found


@pytest.mark.parametrize("apart", [True, False], ids=["groups differ", "groups alike"])
@pytest.mark.parametrize("hashes", [1, 3, 2**64 - 1], ids=["all alike", "three", "of all bits"])
@settings(max_examples=200, deadline=None)
@given(partitions=st.lists(st.tuples(KEYS, st.lists(KEYS, max_size=4)), max_size=4))
def test_small_files_of_several_partitions_answer_as_each_by_itself(hashes, apart, partitions):
    """A key that is sought in one partition is not found in another one, although it may be there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            *(hash_index, "key_hash"),
            lambda keys: np.array([hash(key) % hashes for key in keys.to_pylist()], dtype=np.uint64),
        )
        patch.setattr(hash_index, "_MANY_OF_A_HASH", 1000)
        if not apart:
            patch.setattr(hash_index, "in_groups", lambda hashes, groups: hashes)
        sought = {
            HashedKeys(pa.array(keys, pa.string())): [known(stored, queried=False) for stored in files]
            for keys, files in partitions
        }
        found = places_in_small(sought)
    assert len(found) == sum(len(files) for files in sought.values())
    for (keys, file), places in found.items():
        by_hand = places_by_hand(keys.keys.to_pylist(), file.keys.to_pylist())
        assert (places.tolist() if places is not None else [-1] * len(keys)) == by_hand
        assert file.queried


def test_small_files_with_too_many_keys_of_one_hash_are_asked_one_by_one(monkeypatch):
    monkeypatch.setattr(hash_index, "key_hash", lambda keys: np.full(len(keys), 7 << 40, dtype=np.uint64))
    keys = pa.array([f"k{n}" for n in range(300)])
    assert places_in_small({HashedKeys(keys): [known(keys.to_pylist())]}) == {}


def test_a_file_whose_keys_are_of_another_type_is_asked_by_itself():
    large = known(["a"])
    large.keys = large.keys.cast(pa.large_string())
    keys, small = HashedKeys(pa.array(["a"])), known(["b", "a"])
    found = places_in_small({keys: [large, small]})
    assert {file: places.tolist() for (_, file), places in found.items()} == {small: [1]}


def test_files_of_few_keys_get_no_index(monkeypatch):
    monkeypatch.setattr(stored_keys, "_FEW_KEYS", 10)
    files = [known(["a"]) for _ in range(BLOCK_FILES)]
    in_blocks(files)
    assert all(file.block is None and file.is_small for file in files)
    files[0].keys = pa.array([f"k{n}" for n in range(11)])
    in_blocks(files)
    assert all(file.block is not None and not file.is_small for file in files)


def test_files_get_an_index_in_common_once_they_stay_as_they_are():
    files = [known([f"a{n}", f"b{n}"]) for n in range(2 * BLOCK_FILES + 3)]
    growing = known(["new"], queried=False)
    in_blocks([*files[:-1], growing])
    blocks = [file.block for file in files]
    assert blocks[:BLOCK_FILES] == [blocks[0]] * BLOCK_FILES
    assert blocks[BLOCK_FILES : 2 * BLOCK_FILES] == [blocks[BLOCK_FILES]] * BLOCK_FILES
    assert blocks[0] is not None
    assert blocks[BLOCK_FILES] not in (None, blocks[0])
    assert blocks[2 * BLOCK_FILES :] == [None] * 3
    in_blocks([*files[:-1], growing, known(["newer"], queried=False)])
    assert [file.block for file in files] == blocks


@pytest.mark.parametrize("missing", ["not read", "not known", "never asked"])
def test_files_of_which_one_may_not_stay_get_none(missing):
    files = [known([f"a{n}"]) for n in range(BLOCK_FILES)]
    if missing == "not known":
        files[3] = None
    elif missing == "not read":
        files[3].keys = None
    else:
        files[3].queried = False
    in_blocks(files)
    assert [file.block for file in files if file is not None] == [None] * (BLOCK_FILES - (missing == "not known"))


def test_a_block_whose_file_is_replaced_is_made_anew():
    files = [known([f"a{n}"]) for n in range(BLOCK_FILES)]
    in_blocks(files)
    before = files[0].block
    other = known(["other"])
    in_blocks([*files[:-1], other])
    assert files[0].block is other.block is not before
    assert files[-1].block is None, "the file that was replaced keeps the old index in memory"
    assert set(other.block.places(HashedKeys(pa.array(["other"])))) == {other}


def test_no_block_keeps_the_keys_of_a_file_that_was_forgotten():
    cache = KnownFiles(MemoryStorage(), Cache(BLOCK_FILES * 10 * 1024))
    names = [FileKey("table", f"f{n}", 1) for n in range(BLOCK_FILES + 3)]
    for at in names[:BLOCK_FILES]:
        cache.put(at, FOOTER, pa.array([at.path]))
    files = [cache.get(at) for at in names[:BLOCK_FILES]]
    for file in files:
        file.queried = True
    in_blocks(files)
    assert all(file.block is not None for file in files)
    for at in names[BLOCK_FILES:]:
        cache.put(at, FOOTER, pa.array([at.path]))
    assert cache.get(names[0]) is None
    assert [file.block for file in files] == [None] * BLOCK_FILES


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_upserts_into_many_small_files_find_every_key(table_type, tmp_path, monkeypatch):
    """Each commit begins a file; the later ones meet keys of all that were there before, by then in blocks."""
    of_blocks = []
    real = KeyBlock.places
    monkeypatch.setattr(KeyBlock, "places", lambda *given: of_blocks.append(given) or real(*given))
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
    path = str(tmp_path / "t")
    hoodie.create_table(path, schema, record_key="id", partition_by="part", table_type=table_type)
    model = {}
    options = {"hoodie.parquet.small.file.limit": "0"}

    def write(rows):
        ids, parts, numbers = zip(*((key, part, n) for (part, key), n in rows.items()), strict=True)
        given = pa.table({"id": ids, "part": parts, "n": numbers}, schema=schema)
        result = hoodie.open_table(path).upsert(given, options)
        assert (result.updated, result.inserted) == (len(rows.keys() & model.keys()), len(rows.keys() - model.keys()))
        model.update(rows)

    for turn in range(2 * BLOCK_FILES + 3):
        # Keys of all files lie in one range, else ranges would tell the files apart.
        write({(part, f"{(7919 * n + 104729 * turn) % 10007:05}"): turn for part in ("p", "q") for n in range(20)})
    for turn in range(100, 105):
        old = [place for number, place in enumerate(sorted(model)) if number % 97 == turn % 7]
        write({**dict.fromkeys(old, turn), ("p", f"{turn}-0"): turn, ("q", f"{turn}-0"): turn})
    assert of_blocks
    rows = hoodie.open_table(path).scan().to_arrow().to_pylist()
    assert len(rows) == len(model)
    assert {(row["part"], row["id"]): row["n"] for row in rows} == model


@pytest.mark.parametrize("few", [0, 1024])
def test_upserts_into_many_partitions_ask_their_files_together(few, tmp_path, monkeypatch):
    """The partitions have the same keys."""
    monkeypatch.setattr(stored_keys, "_FEW_KEYS", few)
    packs = []
    monkeypatch.setattr(by_key, "run_lookups", lambda *given: packs.append(given[-1].tasks) or run_lookups(*given))
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="part", table_type="MERGE_ON_READ")
    model = {}
    for turn in range(4):
        rows = {(f"p{part}", f"k{(key + turn) % 7}"): turn for part in range(20) for key in range(part % 4 + 1)}
        ids, parts, numbers = zip(*((key, part, n) for (part, key), n in rows.items()), strict=True)
        result = table.upsert(pa.table({"id": ids, "part": parts, "n": numbers}))
        assert (result.updated, result.inserted) == (len(rows.keys() & model.keys()), len(rows.keys() - model.keys()))
        model.update(rows)
    assert len(packs) == 3, "once each write but the first"
    stored = table.scan().to_arrow().to_pylist()
    assert len(stored) == len(model)
    assert {(row["part"], row["id"]): row["n"] for row in stored} == model
