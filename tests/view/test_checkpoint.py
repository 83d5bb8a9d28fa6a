"""A checkpoint: the next process lists nothing, and one that is damaged, stale or another table's is told and dropped."""

import logging
from dataclasses import replace

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.layout import V6
from hoodie.model.names import HOODIE
from hoodie.storage.memory import MemoryStorage
from hoodie.view.checkpoint import Checkpoint, decode_checkpoint, encode_checkpoint
from hoodie.view.file_store import MemoryStore
from tests.followed import FOLLOWS, Counting, by_listing, check_followed, follower, slices
from tests.memory_tables import Input, batch, new_table, opened


@pytest.fixture
def table():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 1), Input("l", "b", 1, 1), Input("m", "c/d", 1, 1)]))
    table.upsert(batch([Input("k", "a", 2, 2)]))
    return table


@pytest.fixture
def options(tmp_path):
    return replace(FOLLOWS, checkpoint=str(tmp_path / "checkpoints"))


def started(table, options):
    """A process that begins now: its context, and what it lists."""
    counting = Counting(table._context.storage)
    return follower(counting, options), counting.listed


def the_file(tmp_path):
    (path,) = (tmp_path / "checkpoints").glob("*.view")
    return path


def test_the_next_process_lists_nothing(table, options, tmp_path):
    context, listed = started(table, options)
    slices(context)
    assert listed
    for turn in range(3, 6):
        table.upsert(batch([Input("k", "a", turn, turn), Input(f"n{turn}", f"new{turn}", 1, 1)]))
        context, listed = started(table, options)
        assert slices(context) == by_listing(table._context.storage)
        assert listed == []
        assert check_followed(context) > 3
    assert the_file(tmp_path)


def test_it_is_written_anew_from_time_to_time(table, options, tmp_path):
    context, _ = started(table, options)
    slices(context)
    first = the_file(tmp_path).read_bytes()
    contents = {first}
    for turn in range(3, 23):
        table.upsert(batch([Input("k", "a", turn, turn)]))
        slices(context)
        contents.add(the_file(tmp_path).read_bytes())
    assert len(contents) == 3
    table.upsert(batch([Input("k", "a", 30, 30)]))
    slices(context)
    context.synced.save()
    last = the_file(tmp_path).read_bytes()
    assert last not in contents
    context.synced.save()
    assert the_file(tmp_path).read_bytes() == last


def test_one_that_cannot_be_followed_any_more_is_told_and_dropped(table, options, caplog):
    context, _ = started(table, options)
    slices(context)
    for turn in range(3, 12):
        table.upsert(batch([Input("k", "a", turn, turn)]))
    table.compact()
    table.clean(retain_commits=1)
    table.archive(min_commits=1)
    context, listed = started(table, options)
    with caplog.at_level(logging.WARNING, "hoodie"):
        assert slices(context) == by_listing(table._context.storage)
    assert listed
    assert "is out of date: commits were archived since" in caplog.text
    context, listed = started(table, options)
    assert slices(context) == by_listing(table._context.storage)
    assert listed == []


def test_a_damaged_one_is_told_and_dropped(table, options, tmp_path, caplog):
    slices(started(table, options)[0])
    path = the_file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    with caplog.at_level(logging.WARNING, "hoodie"):
        context, listed = started(table, options)
    assert "is not a whole checkpoint" in caplog.text
    assert "it is dropped" in caplog.text
    assert not path.exists()
    assert slices(context) == by_listing(table._context.storage)
    assert listed
    assert path.exists()


def test_a_place_that_cannot_be_written_is_told_and_costs_nothing_else(table, tmp_path, caplog):
    (tmp_path / "checkpoints").write_text("a file, and no folder")
    options = replace(FOLLOWS, checkpoint=str(tmp_path / "checkpoints"))
    with caplog.at_level(logging.WARNING, "hoodie"):
        context, _ = started(table, options)
        assert slices(context) == by_listing(table._context.storage)
    assert "was not written" in caplog.text


def encoded(table):
    context = follower(table._context.storage)
    slices(context)
    return encode_checkpoint(context.synced._files, table="memory://t")


def decoded(data, table="memory://t"):
    store = MemoryStore()
    return decode_checkpoint(data, store, V6, table=table, path="p"), store


def test_it_holds_all_that_is_known(table):
    context = follower(table._context.storage)
    slices(context)
    known = context.synced._files
    known.doubt("b")
    found, store = decoded(encode_checkpoint(known, table="memory://t"))
    assert found.timeline.instants == known.timeline.instants
    assert (found.is_whole, found.doubted) == (True, {"b"})
    assert (found.archive, found.set_aside) == (known.archive, known.set_aside)
    assert store.partitions() == ["", "a", "c/d"] or store.partitions() == ["a", "c/d"]
    assert {path: store.get(path) for path in store.partitions()} == {
        path: known.store.get(path) for path in known.store.partitions()
    }


def test_every_byte_counts(table):
    data = encoded(table)
    for cut in range(0, len(data), 7):
        with pytest.raises(CorruptFileError):
            decoded(data[:cut])
        damaged = bytearray(data)
        damaged[cut] ^= 0x40
        with pytest.raises(CorruptFileError):
            decoded(bytes(damaged))


def test_that_of_another_table_is_refused(table):
    with pytest.raises(CorruptFileError, match="of another table"):
        decoded(encoded(table), table="memory://other")


def test_one_that_leads_out_of_the_table_is_refused(table):
    context = follower(table._context.storage)
    slices(context)
    known = context.synced._files
    known.put("../elsewhere", {})
    with pytest.raises(CorruptFileError, match="not a partition of a table"):
        decoded(encode_checkpoint(known, table="memory://t"))
    known.store.drop("../elsewhere")
    known.put("a", {"../../x_0-0-0_20261125000000000.parquet": 1})
    with pytest.raises(CorruptFileError, match="outside of its partition"):
        decoded(encode_checkpoint(known, table="memory://t"))


def test_tables_with_one_name_have_files_of_their_own():
    storage = MemoryStorage()
    names = {Checkpoint.of(storage, uri).name for uri in ("file:///a/t", "file:///b/t", "file:///a/t2")}
    assert len(names) == 3
    assert all(HOODIE not in name and "/" not in name for name in names)
