"""A batch of a stream is written once: repeated, after crashes, beside other runs of the stream and beside other streams."""

import io
import json
import struct
from dataclasses import replace

import fastavro
import pytest

import hoodie
from hoodie.errors import OptionError
from hoodie.format.commit_json import decode_commit, encode_commit
from hoodie.format.log_block import encode_block, scan_blocks
from hoodie.format.log_content import record_bounds
from hoodie.model.enums import Action, BlockKind, HeaderKey, State
from hoodie.model.names import HOODIE, format_instant_file, join
from hoodie.model.streams import (
    HUDI_STREAM_KEY,
    STREAM_KEY,
    BatchRecord,
    StreamBatch,
    format_batch,
    parse_batch,
    repeats,
)
from hoodie.options.parse import parse_write_options
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.table import open_at
from hoodie.write.streams import is_committed
from tests.engines import Meanwhile
from tests.memory_tables import Input, batch, copy_of, new_table, opened, snapshot_of

IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"


def numbered(number, stream="q1", **more):
    return {"hoodie.python.stream.id": stream, "hoodie.python.stream.batch": str(number), **more}


def row(key, part="a"):
    return batch([Input(key, part, 1, 1)])


def extra_of(table):
    return table._context.active.read_commit(table.timeline.latest_commit).extra


def keys_of(table):
    return [found[0] for found in snapshot_of(table)]


def committed(table, number, stream="q1", identifier=None):
    context = table._context
    return is_committed(context.snapshot(), StreamBatch(stream, number, identifier), table=table.uri)


# -- what is recorded --------------------------------------------------------------------------------------------------


def test_entries_say_stream_and_number_and_read_back():
    ours = format_batch(StreamBatch("q1", 7))
    assert ours == {STREAM_KEY: '{"q1": 7}'}
    assert parse_batch(ours, StreamBatch("q1", 3)) == BatchRecord(7, False)
    assert parse_batch(ours, StreamBatch("q2", 3)) is None
    both = format_batch(StreamBatch("q1", 7, "job"))
    assert json.loads(both[HUDI_STREAM_KEY]) == {"job": "7"}  # as Apache Hudi writes it
    assert parse_batch(both, StreamBatch("q2", 3, "job")) is None  # ours says who counted: another stream
    assert parse_batch({HUDI_STREAM_KEY: '{"job":"7"}'}, StreamBatch("q2", 3, "job")) == BatchRecord(7, True)
    assert parse_batch({HUDI_STREAM_KEY: '{"job":"7"}'}, StreamBatch("q2", 3)) is None


@pytest.mark.parametrize(
    "text", ["", "7", "[7]", '{"q1": true}', '{"q1": -1}', '{"q1": "x"}', '{"q1": 1.5}', "{", "[" * 9999]
)
def test_entries_that_are_no_numbers_of_batches_say_nothing(text):
    assert parse_batch({STREAM_KEY: text}, StreamBatch("q1", 0)) is None
    assert not repeats(format_batch(StreamBatch("q1", 0)), {STREAM_KEY: text})


def test_a_commit_repeats_batches_up_to_its_own_of_its_own_stream():
    held = format_batch(StreamBatch("q1", 7))
    assert [repeats(format_batch(StreamBatch("q1", n)), held) for n in (6, 7, 8)] == [True, True, False]
    assert not repeats(format_batch(StreamBatch("q2", 7)), held)
    assert not repeats({}, held)
    assert not repeats(held, {})


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_repeated_batch_is_not_written_again(operation):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    first = getattr(table, operation)(row("k1"), numbered(0))
    again = getattr(table, operation)(row("k1"), numbered(0))
    assert first.instant is not None
    assert again.instant is None
    second = getattr(table, operation)(row("k2"), numbered(1))
    assert [getattr(table, operation)(row("k9"), numbered(n)).instant for n in (0, 1)] == [None, None]
    assert [i.time for i in table.timeline.commits] == [first.instant, second.instant]
    assert keys_of(table) == ["k1", "k2"]
    assert extra_of(table)[STREAM_KEY] == '{"q1": 1}'


def test_streams_of_one_table_keep_their_numbers_apart():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    for number in range(3):
        table.insert(row(f"one-{number}"), numbered(number, "q1"))
        table.insert(row(f"two-{number}"), numbered(number, "q2"))
    table.insert(row("plain"))
    assert len(keys_of(table)) == 7
    for stream in ("q1", "q2"):
        assert [committed(table, n, stream) for n in (0, 2, 3)] == [True, True, False]
    assert not committed(table, 0, "q3")


def test_number_is_found_below_compactions_rollbacks_and_other_writers():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(row("k1"), numbered(0))
    table.upsert(row("k1"), numbered(1))
    table.compact()
    table.upsert(row("k2"))
    table.delete(row("k2"))
    assert table.upsert(row("late"), numbered(1)).instant is None
    assert table.upsert(row("k3"), numbered(2)).instant is not None


def test_batch_without_rows_leaves_no_commit_and_blocks_nothing():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    assert table.upsert(batch([]), numbered(0)).instant is None
    assert table.timeline.commits == ()
    assert table.upsert(row("k"), numbered(1)).instant is not None


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_batch_that_is_repeated_after_a_crash_at_any_step_is_there_once(kind):
    """Inserts without look-up: a second write of the batch would show."""
    start, clock = new_table(table_type=kind)
    opened(start, clock).insert(row("k0"), numbered(0))
    done, clock = copy_of(start)
    traced = FaultStorage(done)
    opened(traced, clock).insert(row("k1"), numbered(1))
    found = set()
    for fault in crash_points(traced.trace):
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            opened(FaultStorage(storage, [fault]), clock).insert(row("k1"), numbered(1))
        clock.now_s += 3600  # the dead writer's heartbeat has expired
        table = opened(storage, clock)
        found.add(table.insert(row("k1"), numbered(1)).instant is None)
        table.insert(row("k2"), numbered(2))
        assert keys_of(table) == ["k0", "k1", "k2"], str(fault)
        assert len(table.timeline.commits) == 3
    assert found == {True, False}  # some had landed, some had not


@pytest.mark.parametrize("step", ["look up keys", "write files"])
@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_of_two_runs_of_one_stream_at_once_one_writes_the_batch(step, operation):
    """A driver that was thought dead goes on beside its successor; in partitions of their own nothing else would conflict."""
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    other = opened(storage, clock)
    other.insert(row("k0"), numbered(0))
    wrote = []
    engine = Meanwhile(step, lambda: wrote.append(other.insert(row("k1", "elsewhere"), numbered(1))))
    late = open_at(storage, engine=engine, sleep=clock.sleep)
    result = getattr(late, operation)(row("k1"), numbered(1))
    if engine.times:
        assert wrote[0].instant is not None
        assert result.instant is None
    assert keys_of(other) == ["k0", "k1"]
    assert engine.times or (operation, step) == ("insert", "look up keys")  # an insert looks no keys up


@pytest.mark.parametrize("step", ["look up keys", "write files"])
def test_a_write_whose_look_up_is_older_than_the_timeline_is_planned_anew(step):
    """What the successor wrote was archived before the driver that was thought dead went on."""
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    other = opened(storage, clock)
    other.insert(row("k0"), numbered(0))

    def meanwhile():
        other.insert(row("k1", "elsewhere"), numbered(1))
        for n in range(3):
            other.insert(row(f"more{n}", "elsewhere"))
        other.archive(min_commits=1)

    engine = Meanwhile(step, meanwhile)
    late = open_at(storage, engine=engine, sleep=clock.sleep)
    assert late.upsert(row("k1"), numbered(1)).instant is None
    assert engine.times == 1
    assert keys_of(other) == ["k0", "k1", "more0", "more1", "more2"]
    assert (len(other.timeline.commits) == 1) is (step == "look up keys")  # else the write at work holds them back


# -- beside Apache Hudi ------------------------------------------------------------------------------------------------


def by_hudi(table, storage, number, identifier="default_single_writer"):
    """The newest commit as Apache Hudi's sink leaves it: its own entry and not ours."""
    path = join(HOODIE, format_instant_file(table.timeline.latest_commit.time, Action.COMMIT, State.COMPLETED))
    found = decode_commit(storage.read(path), path=path)
    storage.replace(path, encode_commit(replace(found, extra={HUDI_STREAM_KEY: json.dumps({identifier: str(number)})})))


def test_a_job_that_comes_from_hudi_goes_on_where_it_stood_when_it_names_its_identifier():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.insert(row("k1"))
    by_hudi(table, storage, 5)
    mine = {IDENTIFIER: "default_single_writer"}
    assert table.insert(row("k1"), numbered(5, **mine)).instant is None
    table.insert(row("k2"), numbered(6, **mine))
    assert json.loads(extra_of(table)[HUDI_STREAM_KEY]) == {"default_single_writer": "6"}
    assert keys_of(table) == ["k1", "k2"]


def test_batches_of_hudi_count_for_no_stream_that_does_not_name_their_identifier():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.insert(row("k1"))
    by_hudi(table, storage, 5)
    table.insert(row("k2"), numbered(5))
    assert keys_of(table) == ["k1", "k2"]
    assert HUDI_STREAM_KEY not in extra_of(table)  # a stream of Hudi's would skip its own batches


def test_a_stream_that_began_anew_is_not_swallowed_by_the_batches_of_hudi():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.insert(row("k1"))
    by_hudi(table, storage, 5)
    with pytest.raises(OptionError, match="it comes from another checkpoint"):
        table.insert(row("k2"), numbered(0, **{IDENTIFIER: "default_single_writer"}))
    assert keys_of(table) == ["k1"]


# -- archived commits --------------------------------------------------------------------------------------------------


def archive_again(folder, extra):
    """One more archive file that holds the newest archived commit, as Hudi's is but for these entries of extra metadata."""
    file = folder / ".commits_.archive.1_1-0-1"
    entries = []
    for block in scan_blocks(file.read_bytes()):
        schema = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
        content = bytes(block.content)
        for start, end in zip(*record_bounds(content), strict=True):
            entries.append(fastavro.schemaless_reader(io.BytesIO(content[start:end]), schema, None))
    last = next(entry for entry in reversed(entries) if entry["actionState"] == "COMPLETED")
    last["hoodieCommitMetadata"]["extraMetadata"].update(extra)
    record = io.BytesIO()
    fastavro.schemaless_writer(record, schema, last)
    framed = struct.pack(">iii", 3, 1, len(record.getvalue())) + record.getvalue()
    again = encode_block(BlockKind.AVRO_DATA, block.header, framed)
    (folder / ".commits_.archive.2_1-0-1").write_bytes(again)


def test_a_batch_whose_commit_was_archived_is_known(golden):
    """A stream that stood still while others wrote repeats its last batch."""
    copy = golden("v6_archived")
    archive_again(copy.path / ".hoodie" / "history", format_batch(StreamBatch("q1", 4)))
    table = hoodie.open_table(str(copy.path))
    assert [committed(table, number) for number in (3, 4, 5)] == [True, True, False]
    assert not committed(table, 0, "q2")
    rows = table.scan().to_arrow()
    before = table.timeline.latest_time
    assert table.insert(rows, numbered(4)).instant is None
    assert table.timeline.latest_time == before
    assert table.insert(rows, numbered(5)).instant is not None


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lone", [{"hoodie.python.stream.id": "q"}, {"hoodie.python.stream.batch": "1"}])
def test_name_and_number_go_together(lone):
    with pytest.raises(OptionError, match="go together"):
        parse_write_options(lone)


def test_failed_batches_cannot_be_ignored():
    with pytest.raises(OptionError, match="its rows would be lost"):
        parse_write_options({"hoodie.datasource.write.streaming.ignore.failed.batch": "true"})


def test_options_with_the_prefix_are_kept_in_the_commit():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.insert(row("k1"), {"_run": "7"})
    assert extra_of(table)["_run"] == "7"
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "kafka."}
    table.insert(row("k2"), {**prefix, "Kafka.Offset": "12"})
    assert extra_of(table)["Kafka.Offset"] == "12"
    for options in ({"_run": "7", "other": "no"}, {**prefix, "_run": "8"}):
        with pytest.raises(OptionError, match="unknown option"):
            table.insert(row("k3"), options)
