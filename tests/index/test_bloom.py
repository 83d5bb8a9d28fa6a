"""The look-up of keys: its plan, and answers that are exact whatever decided them."""

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.filegroup.chunks import load_rows, make_chunk
from hoodie.format.base_file import BLOOM, BLOOM_TYPE, MAX_KEY, MIN_KEY, footer_metadata
from hoodie.index import bloom as bloom_module
from hoodie.index import stored_keys
from hoodie.index.bloom import OPENING_BYTES, packed_lookups, pieces_by_partition, places_in, plan_lookup, run_lookups
from hoodie.index.stored_keys import KnownFiles
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import VisibleInstants
from hoodie.model.meta_fields import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.model.names import PROPERTIES
from hoodie.model.plans import LookupPack, LookupTask
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from tests.log_blocks import data, deletes, t
from tests.memory_tables import FakeClock, new_storage

BASE = BaseFile("p", "f", t(1), f"f_0-0-0_{t(1)}.parquet", 1000)
# U+1F600 is above U+FFEE by code points and below it by UTF-16 units, as Hudi's writers compare.
KEYS = st.text("abyz\ud7ff\ue000\uffee\U0001f600\U0010ffff", min_size=1, max_size=3)


def chunk(keys, partition="p"):
    return make_chunk(pa.table({RECORD_KEY: pa.array(keys, pa.string()), PARTITION_PATH: [partition] * len(keys)}))


def with_base(keys, *, footer=None):
    """A storage with a base file of these keys; `footer` changes its key-values (None takes one away)."""
    storage = new_storage(FakeClock())
    storage.mkdirs("rows")
    column = pa.array(keys, pa.string())
    values = footer_metadata(
        column, bloom_type="DYNAMIC_V0", fpp=1e-6, num_entries=None, max_entries=100_000, avro_schema_json=None
    )
    values = {name: value for name, value in {**values, **(footer or {})}.items() if value is not None}
    sink = pa.BufferOutputStream()
    meta = {name: column if name == RECORD_KEY else pa.nulls(len(column), pa.string()) for name in META_COLUMNS}
    rows = pa.table(meta)
    with pq.ParquetWriter(sink, rows.schema) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(values)
    storage.create_new(BASE.path, sink.getvalue().to_pybytes())
    return storage


def look_up(storage, *batches, **task):
    """(way, the matched keys of each chunk by row number)"""
    pieces = tuple(pieces_by_partition([chunk(keys) for keys in batches])["p"])
    (result,) = run_lookups(storage, Cache(), LookupPack((LookupTask(BASE, pieces, **task),)))
    found = {matches.number: load_rows(storage, matches).tolist() for matches in result.matches}
    assert result.matched == sum(map(len, found.values()))
    assert all(found.values())
    return result.how, found


def exact(stored, *batches):
    found = {n: [row for row, key in enumerate(keys) if key in set(stored)] for n, keys in enumerate(batches)}
    return {number: rows for number, rows in found.items() if rows}


@settings(max_examples=60)
@given(
    st.lists(KEYS, min_size=1, max_size=20, unique=True),
    st.lists(st.lists(KEYS, min_size=1, max_size=15), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 3),
)
def test_the_answer_is_that_of_a_set(stored, batches, prune, wide):
    # A batch larger than the file, and one smaller, take different ways through the comparison; many keys pass by the filter.
    batches = [keys * (1 + 2_000 * (n == wide)) for n, keys in enumerate(batches)]
    _, found = look_up(with_base(stored), *batches, prune_by_range=prune)
    assert found == exact(stored, *batches)


@settings(max_examples=30)
@given(st.lists(KEYS, min_size=1, max_size=8, unique=True), st.lists(KEYS, min_size=1, max_size=12))
def test_the_answer_is_that_of_a_set_also_through_the_filter(stored, batch):
    how, found = look_up(with_base(stored), batch, prune_by_range=False)
    assert found == exact(stored, batch)
    assert how == ("bloom+keys" if found else "bloom")


def test_what_decides():
    stored = [f"k{n:05d}" for n in range(1, 20_000, 2)]
    storage = with_base(stored)
    assert look_up(storage, ["a", "b"], ["z"]) == ("range", {})
    assert look_up(storage, ["a", "k00002", "z"]) == ("bloom", {})
    assert look_up(storage, ["a", "k00002", "k00003", "z", "k00003"]) == ("bloom+keys", {0: [2, 4]})
    many = [f"k{n:05d}" for n in range(20_000)]
    assert look_up(storage, many) == ("keys", {0: list(range(1, 20_000, 2))})
    small = with_base(["b", "d"])
    assert look_up(small, ["c", "d"]) == ("bloom+keys", {0: [1]})
    assert look_up(small, ["c"]) == ("bloom", {})
    assert look_up(small, ["c"] * 3_000) == ("keys", {})
    assert look_up(small, ["a"]) == ("range", {})
    assert look_up(small, ["a"], prune_by_range=False) == ("bloom", {})


def test_a_range_of_which_every_piece_lies_outside_or_between_reads_no_keys():
    assert look_up(with_base(["b", "d"]), ["a", "e"]) == ("range", {})  # the piece spans the range, its keys do not
    assert look_up(with_base([]), ["a"]) == ("range", {})


def test_without_bounds_or_filter_the_keys_themselves_are_read():
    stored = [f"k{n:05d}" for n in range(20_000)]
    no_filter = with_base(stored, footer={BLOOM: None, BLOOM_TYPE: None})
    assert look_up(no_filter, ["k00000x", "k00001"]) == ("keys", {0: [1]})
    for bound in (MIN_KEY, MAX_KEY):
        assert look_up(with_base(["b"], footer={bound: None}), ["a", "b"]) == ("bloom+keys", {0: [1]})
        assert look_up(with_base(["b"], footer={bound: None}), ["a"]) == ("bloom", {})


@pytest.mark.parametrize(
    ("footer", "warns"),
    [
        ({BLOOM_TYPE: "CUCKOO"}, False),
        ({BLOOM: "no base64!"}, True),
        ({BLOOM: "AAAA"}, True),
        ({BLOOM: ""}, True),
    ],
)
def test_a_filter_that_is_unknown_or_damaged_does_not_matter(footer, warns, caplog):
    stored = [f"k{n:05d}" for n in range(20_000)]
    assert look_up(with_base(stored, footer=footer), ["k00000x", "k00001"]) == ("keys", {0: [1]})
    assert [BASE.path in record.getMessage() for record in caplog.records] == [True] * warns


def test_a_range_with_characters_beyond_the_basic_plane_is_compared_in_both_orders():
    # By code points the bounds stand the wrong way round: least U+1F600, greatest U+FFEE.
    stored = ["\U0001f600", "\uffee"]
    batch = ["\uffff", "\U0001f600", "\ud7ff", "\uffee", "\U0010ffff", "a"]
    assert look_up(with_base(stored), batch) == ("bloom+keys", {0: [1, 3]})
    assert look_up(with_base(["a", "\U0001f600"]), ["\ue000", "\U0001f600"]) == ("bloom+keys", {0: [1]})


def test_row_numbers_are_those_of_the_chunk():
    storage = with_base(["b", "d"])
    table = pa.table({RECORD_KEY: ["b", "x", "d", "b", "c"], PARTITION_PATH: ["q", "q", "p", "p", "p"]})
    pieces = tuple(pieces_by_partition([make_chunk(table)])["p"])
    (result,) = run_lookups(storage, Cache(), LookupPack((LookupTask(BASE, pieces),)))
    (matches,) = result.matches
    assert load_rows(storage, matches).tolist() == [2, 3]


@settings(max_examples=40)
@given(
    st.lists(st.text("abc", max_size=2), min_size=1, max_size=30),
    st.lists(st.lists(st.text("abcd", max_size=2), min_size=1, max_size=8), min_size=1, max_size=3),
    st.integers(1, 12),
)
def test_keys_that_come_in_batches_are_found_in_the_first_row_that_has_them(stored, wanted, size):
    column = pa.array(stored, pa.string())
    batches = (column.slice(start, size) for start in range(0, len(stored), size))
    found = places_in([pa.array(keys, pa.string()) for keys in wanted], batches)
    expected = [[stored.index(key) if key in stored else -1 for key in keys] for keys in wanted]
    assert [places.tolist() for places in found] == expected


def test_matches_are_staged_where_a_folder_is_given():
    storage = with_base(["b", "d"])
    pieces = tuple(pieces_by_partition([chunk(["a", "b"])])["p"])
    (result,) = run_lookups(storage, Cache(), LookupPack((LookupTask(BASE, pieces, stage_to="rows"),)))
    (matches,) = result.matches
    assert matches.path.startswith("rows/")
    assert (matches.count, load_rows(storage, matches).tolist()) == (1, [1])


@pytest.mark.parametrize("stage_to", [None, "rows"])
def test_keys_of_logs_that_the_base_file_lacks_are_found_too(stage_to):
    storage = with_base(["b", "d"])
    blocks = data(2, ("c", 1, ""), ("e", 1, ""), partition="p") + deletes(3, ("e", None), ("x", None), partition="p")
    blocks += data(4, ("pending", 1, ""), partition="p")
    name = f".f_{t(1)}.log.1_0-0-0"
    storage.create_new(f"p/{name}", blocks)
    logs = FileSlice(FileGroupId("p", "f"), t(1), None, (LogFile("p", "f", t(1), 1, name, len(blocks), len(blocks)),))
    visible = VisibleInstants(frozenset({t(1), t(2), t(3)}), frozenset({t(4)}), t(1))
    how, found = look_up(
        storage, ["a", "c", "b", "e"], ["pending"], ["c"], logs=logs, visible=visible, stage_to=stage_to
    )
    assert how == "bloom+keys+logs"
    assert found == {0: [1, 2, 3], 2: [0]}  # a deleted key is found too: its row may come again


def test_row_numbers_of_keys_in_logs_are_those_of_the_chunk_too():
    storage = with_base(["b"])
    block = data(2, ("c", 1, ""), partition="p")
    name = f".f_{t(1)}.log.1_0-0-0"
    storage.create_new(f"p/{name}", block)
    logs = FileSlice(FileGroupId("p", "f"), t(1), None, (LogFile("p", "f", t(1), 1, name, len(block), len(block)),))
    rows = pa.table({RECORD_KEY: ["c", "c", "b", "c", "x"], PARTITION_PATH: ["q", "q", "p", "p", "p"]})
    pieces = tuple(pieces_by_partition([make_chunk(rows)])["p"])
    visible = VisibleInstants(frozenset({t(2)}), frozenset(), t(1))
    (result,) = run_lookups(storage, Cache(), LookupPack((LookupTask(BASE, pieces, logs=logs, visible=visible),)))
    (matches,) = result.matches
    assert load_rows(storage, matches).tolist() == [2, 3]


@pytest.mark.parametrize(("content", "told"), [(None, "is gone"), (b"x", "not a whole Parquet file")])
def test_a_base_file_that_cannot_be_read_is_told_by_name(content, told):
    storage = new_storage(FakeClock())
    storage.create_new(PROPERTIES, b"")
    if content:
        storage.create_new(BASE.path, content)
    with pytest.raises(CorruptFileError, match=rf"{BASE.path} of table \w+://.*{told}"):
        look_up(storage, ["a"])


def test_a_base_file_without_keys_is_told_by_name():
    storage = new_storage(FakeClock())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"other": ["a"]}), sink)
    storage.create_new(BASE.path, sink.getvalue().to_pybytes())
    with pytest.raises(CorruptFileError, match=f"the record keys of {BASE.path}"):
        look_up(storage, ["a"])


# --- the plan ------------------------------------------------------------------------------------------------------


def file_slice(file_id, partition="p", *, base=True, logs=()):
    found = BaseFile(partition, file_id, t(1), f"{file_id}_0-0-0_{t(1)}.parquet", 1) if base else None
    return FileSlice(FileGroupId(partition, file_id), t(1), found, tuple(logs))


def planned(tasks):
    return [(task.base.file_id, [(part.number, part.span.length) for part in task.pieces]) for task in tasks]


def test_a_task_for_each_base_file_in_a_partition_of_the_batch():
    pieces = pieces_by_partition([chunk(["a"]), chunk(["b"], "q"), chunk(["c", "d"])])
    assert {name: [part.number for part in parts] for name, parts in pieces.items()} == {"p": [0, 2], "q": [1]}
    slices = [file_slice("f"), file_slice("g"), file_slice("h", base=False), file_slice("i", "q"), file_slice("j", "r")]
    tasks = plan_lookup(pieces, slices, stage_to="to", prune_by_range=False)
    assert planned(tasks) == [("f", [(0, 1), (2, 2)]), ("g", [(0, 1), (2, 2)]), ("i", [(1, 1)])]
    assert {(task.stage_to, task.prune_by_range, task.logs) for task in tasks} == {("to", False, None)}


@pytest.mark.parametrize("most", [1, 4, 9, 25, 26, 100])
def test_the_candidates_of_a_hot_file_are_split_over_tasks_each_row_once_and_in_order(most):
    lengths = (3, 4, 5, 12, 1, 1)
    pieces = pieces_by_partition([chunk(["k"] * n) for n in lengths])
    tasks = plan_lookup(pieces, [file_slice("f"), file_slice("g")], stage_to=None, prune_by_range=True, max_keys=most)
    for file_id in "fg":
        mine = [task for task in tasks if task.base.file_id == file_id]
        assert all(sum(part.span.length for part in task.pieces) <= max(most, *lengths) for task in mine)
        assert len(mine) >= 26 / max(most, *lengths)
        assert len(mine) <= 26 / most + len(lengths)
        spans = [(part.number, part.span.start, part.span.length) for task in mine for part in task.pieces]
        rows = [(number, row) for number, start, length in spans for row in range(start, start + length)]
        assert rows == [(number, row) for number, length in enumerate(lengths) for row in range(length)]
    assert (len(tasks) == 2) == (most >= 26)


@pytest.mark.parametrize("most", [1, 2, 3, 10])
def test_answers_do_not_depend_on_how_the_candidates_are_split(most):
    storage = with_base(["b", "d", "f"])
    batches = [["a", "b", "b", "x", "f"], ["z", "d"], ["f"]]
    pieces = pieces_by_partition([chunk(keys) for keys in batches])
    slices = [FileSlice(FileGroupId("p", "f"), t(1), BASE, ())]
    found = {}
    (pack,) = packed_lookups(plan_lookup(pieces, slices, stage_to=None, prune_by_range=True, max_keys=most))
    for result in run_lookups(storage, Cache(), pack):
        for matches in result.matches:
            found.setdefault(matches.number, []).extend(load_rows(storage, matches).tolist())
    assert found == exact(["b", "d", "f"], *batches)


def test_small_files_of_a_partition_are_looked_into_together():
    pieces = tuple(pieces_by_partition([chunk(["k"])])["p"])

    def task(name, partition, size, logs=None, begun=1):
        return LookupTask(BaseFile(partition, name, t(begun), name, size), pieces, logs=logs)

    tasks = [
        task("a", "p", 10),
        task("b", "p", 10),
        task("c", "p", 6),
        task("large", "p", 11),
        task("d", "p", 1),
        task("e", "q", 1),
        task("logged", "q", 1, logs=file_slice("logged", "q", base=False)),
        task("f", "q", 1),
    ]
    packed = partial(packed_lookups, small_bytes=10, pack_bytes=25 + 3 * OPENING_BYTES)
    packs = packed(tasks)
    named = [[each.base.file_id for each in pack.tasks] for pack in packs]
    assert named == [["large"], ["logged"], ["a", "b"], ["c", "d"], ["e", "f"]]
    assert sum(pack.size_bytes for pack in packs) == sum(each.size_bytes for each in tasks)
    assert packed([]) == []
    assert [len(pack.tasks) for pack in packed([task(name, "p", 0) for name in "abcde"])] == [3, 2]
    later = packed([task("begun", "p", 10, begun=2), *tasks])
    assert [[each.base.file_id for each in pack.tasks] for pack in later[2:4]] == [["a", "b"], ["c", "d", "begun"]]


def test_small_files_of_several_partitions_are_looked_into_together_where_they_are_few(monkeypatch):
    monkeypatch.setattr(bloom_module, "_JOINED_FILES", 4)
    room = 8 * OPENING_BYTES

    def named(*counts, rows=1):
        """How many tasks of which partitions each pack has, where the n-th partition has so many small files."""
        paths = "pqrst"[: len(counts)]
        pieces = pieces_by_partition([chunk(["k" * 1000] * rows, path) for path in paths])
        tasks = [
            LookupTask(BaseFile(path, f"{path}{number}", t(1), "f", 0), tuple(pieces[path]))
            for path, count in zip(paths, counts, strict=True)
            for number in range(count)
        ]
        assert [len(pack.tasks) for pack in packed_lookups(tasks, pack_bytes=room)] == [*counts]
        packs = packed_lookups(tasks, pack_bytes=room, joins=True)
        assert [task for pack in packs for task in pack.tasks] == tasks
        return ["".join(task.base.partition_path for task in pack.tasks) for pack in packs]

    assert named(1, 1, 1, 1, 1) == ["pqrs", "t"]
    assert named(2, 3, 1) == ["pp", "qqqr"]
    assert named(5, 1, 6) == ["ppppp", "q", "rrrrrr"]
    assert named(1, 1, 1, 1, rows=200) == ["pq", "rs"], "their rows fill the pack"
    assert named(1, 2, rows=600) == ["p", "qq"]


@pytest.mark.parametrize("few", [0, 1024], ids=["by their own indexes", "together"])
@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(KEYS, min_size=1, max_size=8, unique=True), min_size=1, max_size=4),
    st.lists(st.lists(KEYS, min_size=1, max_size=8), min_size=1, max_size=3),
)
def test_a_pack_answers_what_its_tasks_answer_also_when_its_files_are_known(tmp_path_factory, few, files, batches):
    """Files of two partitions, in which rows of the batch are that have the same keys."""
    storage = LocalStorage(tmp_path_factory.mktemp("pack"))
    sent = [(path, keys) for path in ("p", "q") for keys in batches]
    pieces = pieces_by_partition([chunk(keys, path) for path, keys in sent])
    tasks, stored = [], {}
    for number, keys in enumerate(files):
        path = "pq"[number % 2]
        base = BASE._replace(partition_path=path, file_id=f"f{number}", name=f"f{number}_0-0-0_{t(1)}.parquet")
        data = with_base(keys).read(BASE.path)
        storage.create_new(base.path, data)
        stored[base.path] = keys
        tasks.append(LookupTask(base._replace(size_bytes=len(data)), tuple(pieces[path])))
    cache = Cache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_keys, "_FEW_KEYS", few)
        for _ in range(4):  # the footer, then the keys, then the keys sorted are known
            (pack,) = packed_lookups(tasks, joins=True)
            results = run_lookups(storage, cache, pack)
            assert [result.base for result in results] == [each.base for each in pack.tasks]
            for result in results:
                found = {matches.number: load_rows(storage, matches).tolist() for matches in result.matches}
                mine = [keys if path == result.base.partition_path else [] for path, keys in sent]
                assert found == exact(stored[result.base.path], *mine)


@pytest.mark.parametrize(("length", "kept"), [(8, True), (30, False)])
def test_whether_keys_fit_into_memory_is_told_by_their_length(tmp_path, length, kept):
    """A hundred keys take 24 or 46 bytes each with their index, where a file may take 30 of each."""
    cache = Cache(12 * 3_000)
    keys = [f"{number:0{length}}" for number in range(100)]
    storage, data = LocalStorage(tmp_path), with_base(keys).read(BASE.path)
    storage.create_new(BASE.path, data)
    pieces = tuple(pieces_by_partition([chunk(keys[:3])])["p"])
    for _ in range(3):
        run_lookups(storage, cache, LookupPack((LookupTask(BASE._replace(size_bytes=len(data)), pieces),)))
    files = KnownFiles(storage, cache)
    assert (files.get(files.name_of(BASE.path)).keys is not None) is kept


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize(("sought", "read"), [(["k5"], True), (["absent"], False)])
def test_keys_that_were_read_are_kept_at_once_where_the_file_stays(tmp_path, monkeypatch, stays, sought, read):
    cache = Cache()
    monkeypatch.setattr(bloom_module, "_filter_is_cheaper", lambda candidates, stored: True)
    storage, data = LocalStorage(tmp_path), with_base([f"k{number}" for number in range(10)]).read(BASE.path)
    storage.create_new(BASE.path, data)
    pieces = tuple(pieces_by_partition([chunk(sought)])["p"])
    task = LookupTask(BASE._replace(size_bytes=len(data)), pieces, prune_by_range=False, stays=stays)
    (result,) = run_lookups(storage, cache, LookupPack((task,)))
    assert result.how == ("bloom+keys" if read else "bloom")
    files = KnownFiles(storage, cache)
    assert (files.get(files.name_of(BASE.path)).keys is not None) is (stays and read)


def test_logs_older_than_their_base_file_go_with_every_task_of_it():
    pieces = pieces_by_partition([chunk(["k"] * 3), chunk(["k"] * 3)])
    visible = VisibleInstants(frozenset(), frozenset(), None)
    slices = [file_slice("f", logs=["log"]), file_slice("g")]
    asked = []

    def older(found):
        asked.append(found.group.file_id)
        return found._replace(base=None)

    tasks = plan_lookup(pieces, slices, stage_to=None, prune_by_range=True, max_keys=3, logs_of=older, visible=visible)
    assert [(task.base.file_id, task.logs and task.logs.logs) for task in tasks] == [
        ("f", ("log",)),
        ("f", ("log",)),
        ("g", None),
        ("g", None),
    ]
    assert asked == ["f"]
    assert all(task.visible is visible for task in tasks)
