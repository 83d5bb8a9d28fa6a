"""A queue of notifications as a source: each file once, over deaths, repeats and two runs at once; against moto's SQS and S3."""

import json
import secrets
import time
from dataclasses import replace
from urllib.parse import quote_plus

import pytest

from hoodie.errors import OptionError, StorageError
from hoodie.ingestion import run
from hoodie.ingestion.queues import QueueSource, queue_source
from hoodie.ingestion.source import NO_BOUNDS
from hoodie.storage.object_store import ObjectStorage
from hoodie.storage.refusals import denied
from tests.ingestion.queues import Queue, rows_of
from tests.servers.s3 import BUCKET


@pytest.fixture
def queue():
    return Queue()


def test_announced_files_are_read_once_and_their_messages_deleted(queue, tmp_path):
    table = str(tmp_path / "t")
    for number in range(25):
        queue.put(f"{number}.json", {"id": number, "n": 1})
    queue.s3.put_object(Bucket=BUCKET, Key=f"{queue.folder}/unannounced.json", Body=b'{"id": 99, "n": 1}')
    result = queue.ingest(table, operation="insert")
    assert (result.rows, result.bad) == (25, 0)
    assert queue.left() == (0, 0)
    assert queue.ingest(table, operation="insert").rounds == ()
    assert rows_of(table) == [(number, 1) for number in range(25)]


def test_a_round_takes_no_more_files_than_the_bounds(queue, tmp_path):
    for number in range(7):
        queue.put(f"{number}.json", {"id": number, "n": 1})
    result = queue.ingest(str(tmp_path / "t"), max_files=3)
    assert [each.pieces for each in result.rounds] == [3, 3, 1]
    assert result.rounds[0].waiting >= 1


def test_a_message_that_comes_again_adds_nothing(queue, tmp_path):
    """So SQS does now and then; and so it is if a process dies after its commit, before it deletes messages."""
    table = str(tmp_path / "t")
    body = queue.put("a.json", {"id": 1, "n": 1})
    queue.ingest(table, operation="insert")
    queue.send(body)
    queue.put("b.json", {"id": 2, "n": 1})
    queue.send(body)
    assert queue.ingest(table, operation="insert").rows == 1
    queue.send(body)
    assert queue.ingest(table, operation="insert").rounds == ()
    assert rows_of(table) == [(1, 1), (2, 1)]
    assert queue.left() == (0, 0)


def test_messages_that_could_not_be_deleted_add_nothing_when_they_come_again(queue, tmp_path, monkeypatch, caplog):
    table = str(tmp_path / "t")
    queue.put("a.json", {"id": 1, "n": 1})
    ask = QueueSource._ask

    def no_deletes(self, call, **arguments):
        if call == "delete_message_batch":
            raise StorageError("cut")
        return ask(self, call, **arguments)

    short = {**queue.options, "hoodie.streamer.s3.source.queue.visibility.timeout": "1"}
    with monkeypatch.context() as patched:
        patched.setattr(QueueSource, "_ask", no_deletes)
        assert queue.ingest(table, operation="insert", source_options=short).rows == 1
    assert "will come again" in caplog.text
    deadline_s = time.monotonic() + 60
    while queue.left() != (1, 0) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert queue.ingest(table, operation="insert").rounds == ()
    assert rows_of(table) == [(1, 1)]
    assert queue.left() == (0, 0)


def test_a_file_that_is_written_anew_is_read_anew(queue, tmp_path):
    table = str(tmp_path / "t")
    queue.put("a.json", {"id": 1, "n": 1})
    queue.ingest(table)
    older = queue.announce("a.json", 20)
    queue.put("a.json", {"id": 1, "n": 2})
    queue.send(older)
    result = queue.ingest(table)
    assert (result.rows, rows_of(table)) == (1, [(1, 2)])


def test_of_two_files_with_a_key_the_later_one_counts_in_whatever_order_they_are_announced(queue, tmp_path):
    table = str(tmp_path / "t")
    first, second = queue.put("z.json", {"id": 1, "n": 1}), queue.put("a.json", {"id": 1, "n": 2})
    queue.sqs.purge_queue(QueueUrl=queue.url)
    queue.send(second)
    queue.send(first)
    queue.ingest(table)
    assert rows_of(table) == [(1, 2)]


def test_nothing_is_deleted_before_the_commit(queue, tmp_path, monkeypatch):
    table = str(tmp_path / "t")
    queue.put("a.json", {"id": 1, "n": 1})

    def fails(*_args, **_more):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr("hoodie.ingestion.run._write", fails)
        with pytest.raises(OSError, match="disk full"):
            queue.ingest(table)
    assert queue.left() == (1, 0)  # seen again at once
    assert queue.ingest(table).rows == 1


def test_a_dry_run_leaves_the_messages(queue, tmp_path):
    queue.put("a.json", {"id": 1, "n": 1})
    assert queue.ingest(str(tmp_path / "t"), dry_run=True).rows == 1
    assert queue.left() == (1, 0)


def test_two_runs_at_once_lose_nothing(queue, tmp_path, monkeypatch):
    """The second has other messages for a round of the same number, and the table takes only one of the two."""
    table = str(tmp_path / "t")
    queue.put("0.json", {"id": 0, "n": 1})
    queue.ingest(table, operation="insert")
    queue.put("1.json", {"id": 1, "n": 1})
    queue.put("2.json", {"id": 2, "n": 1})
    write, others = run._write, []

    def after_another(*arguments):
        if not others:
            others.append(True)
            others.append(queue.ingest(table, operation="insert", max_files=1))
        return write(*arguments)

    monkeypatch.setattr(run, "_write", after_another)
    queue.ingest(table, operation="insert", max_files=1)
    monkeypatch.setattr(run, "_write", write)
    queue.ingest(table, operation="insert")
    assert rows_of(table) == [(0, 1), (1, 1), (2, 1)]
    assert queue.left() == (0, 0)


def test_what_cannot_be_rows_is_set_apart(queue, tmp_path):
    table = str(tmp_path / "t")
    queue.put("a.json", {"id": 1, "n": 1})
    queue.send("nonsense")
    queue.announce("gone.json", 5)
    result = queue.ingest(table)
    assert (result.rows, result.bad) == (1, 2)
    kept = (tmp_path / "t" / result.rounds[0].quarantine).read_text()
    assert "no notification of S3" in kept
    assert "does not exist any more" in kept
    assert queue.left() == (0, 0)


def refusing(monkeypatch, *names):
    """Some files may not be read."""
    read = ObjectStorage.read

    def refused(self, path, *part):
        if path.rpartition("/")[2] in names:
            raise denied("the store refuses it: AccessDenied", f"{self.uri}/{path}")
        return read(self, path, *part)

    monkeypatch.setattr(ObjectStorage, "read", refused)


def test_a_file_that_may_not_be_read_stops_no_other_and_is_read_once_it_may(queue, tmp_path, monkeypatch):
    table = str(tmp_path / "t")
    for number in range(12):
        queue.put(f"{number}.json", {"id": number, "n": 1})
    with monkeypatch.context() as patched:
        refusing(patched, "3.json", "11.json")
        with pytest.raises(StorageError, match=r"2 files of .* cannot be read.*/3\.json: .*AccessDenied.* A later run"):
            queue.ingest(table, operation="insert", max_files=4)
    assert rows_of(table) == [(number, 1) for number in range(12) if number not in (3, 11)]
    assert queue.left() == (2, 0)  # seen again at once
    assert queue.ingest(table, operation="insert").rows == 2
    assert rows_of(table) == [(number, 1) for number in range(12)]
    assert queue.left() == (0, 0)


def test_a_file_in_a_bucket_that_is_not_there_stops_no_other(queue, tmp_path):
    """The message announces a file of each kind: what could be read is not read again."""
    table, bucket = str(tmp_path / "t"), f"late-{secrets.token_hex(6)}"
    queue.put("a.json", {"id": 1, "n": 1})
    (message,) = queue.sqs.receive_message(QueueUrl=queue.url, VisibilityTimeout=0)["Messages"]
    record = json.loads(message["Body"])["Records"][0]
    place = {"bucket": {"name": bucket}, "object": {**record["s3"]["object"], "key": "f/b.json"}}
    queue.sqs.purge_queue(QueueUrl=queue.url)
    queue.send(json.dumps({"Records": [record, {**record, "s3": place}]}))
    with pytest.raises(StorageError, match=f"no bucket '{bucket}' in the store: check its name"):
        queue.ingest(table, operation="insert")
    with pytest.raises(StorageError, match=f"1 file of .*no bucket '{bucket}'"):
        queue.ingest(table, operation="insert", dry_run=True)
    assert (rows_of(table), queue.left()) == ([(1, 1)], (1, 0))
    queue.s3.create_bucket(Bucket=bucket)
    queue.s3.put_object(Bucket=bucket, Key="f/b.json", Body=b'{"id": 2, "n": 1}')
    assert queue.ingest(table, operation="insert").rows == 1
    assert (rows_of(table), queue.left()) == ([(1, 1), (2, 1)], (0, 0))


def test_a_run_that_does_not_end_goes_on_beside_files_that_may_not_be_read(queue, monkeypatch, caplog):
    refusing(monkeypatch, "a.json")
    source = replace(queue_source(queue.url, None, queue.options), goes_on=True)
    queue.put("a.json", {"id": 1, "n": 1})
    assert source.next(None, NO_BOUNDS, None) is None
    assert "1 file of the queue" in caplog.text
    assert queue.left() == (0, 1)  # hidden: it is tried again after a while, and not over and over
    queue.put("b.json", {"id": 2, "n": 1})
    assert source.next(None, NO_BOUNDS, None).rows.to_pylist() == [{"id": 2, "n": 1}]


def test_records_that_are_set_apart_say_which_file_they_are_of(queue, tmp_path):
    queue.put("a.json", {"id": 1, "n": 1}, 5)
    result = queue.ingest(str(tmp_path / "t"))
    (kept,) = map(json.loads, (tmp_path / "t" / result.rounds[0].quarantine).read_text().splitlines())
    assert kept["origin"] == f"s3://{BUCKET}/{queue.folder}/a.json"


def test_what_counts_in_no_folder_does_not_count_here(queue, tmp_path):
    table = str(tmp_path / "t")
    queue.put("_hidden.json", {"id": 1, "n": 1})
    queue.put("note.txt", {"id": 2, "n": 1})
    queue.announce("folder/", 0)
    queue.announce("removed.json", 9, "ObjectRemoved:Delete")
    queue.send('{"Event": "s3:TestEvent"}')
    queue.put("a.json", {"id": 3, "n": 1})
    assert queue.ingest(table).rows == 1
    assert rows_of(table) == [(3, 1)]
    assert queue.left() == (0, 0)


@pytest.mark.parametrize("key", ["root.json", "/root.json", "a//b.json", "a/b//c.json"])
def test_a_file_that_no_folder_names_is_told(queue, tmp_path, key):
    table = str(tmp_path / "t")
    queue.put("a.json", {"id": 1, "n": 1})
    place = {"bucket": {"name": BUCKET}, "object": {"key": quote_plus(key), "size": 3, "sequencer": "FF"}}
    record = {"eventName": "ObjectCreated:Put", "eventTime": "2026-01-31T12:00:00Z", "s3": place}
    queue.send(json.dumps({"Records": [record]}))
    result = queue.ingest(table)
    assert (result.rows, result.bad) == (1, 1)
    assert "in folders of a bucket" in (tmp_path / "t" / result.rounds[0].quarantine).read_text()


@pytest.mark.parametrize("folder", ["sp ace#1?x%41", "ü", "day=2026-01-01 10:00+02"])
def test_folders_may_have_any_name(queue, tmp_path, folder):
    queue.folder = f"{folder}{secrets.token_hex(4)}/inner {folder}"
    queue.put("a#b.json", {"id": 1, "n": 1})
    result = queue.ingest(str(tmp_path / "t"))
    assert (result.rows, result.bad) == (1, 0)


def test_only_files_below_the_prefix_count(queue, tmp_path):
    queue.put("in/a.json", {"id": 1, "n": 1})
    queue.put("out/a.json", {"id": 2, "n": 1})
    prefix = {"hoodie.streamer.source.s3incr.key.prefix": f"{queue.folder}/in/"}
    assert queue.ingest(str(tmp_path / "t"), source_options={**queue.options, **prefix}).rows == 1


def test_files_of_the_table_itself_are_not_read(queue):
    table = f"s3://{BUCKET}/{queue.folder}/table"
    queue.put("a.json", {"id": 1, "n": 1})
    queue.ingest(table, storage_options=queue.server.options)
    files = queue.s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{queue.folder}/table/")["Contents"]
    for each in files:
        if each["Key"].endswith(".parquet"):
            queue.announce(each["Key"].removeprefix(f"{queue.folder}/"), each["Size"])
    assert queue.ingest(table, storage_options=queue.server.options).rounds == ()
    assert queue.left() == (0, 0)


def test_a_round_ends_before_its_messages_come_again(queue):
    """A queue that answers slowly would otherwise give the same messages for ever."""
    for number in range(40):
        queue.put(f"{number}.json", {"id": number, "n": 1})
    clock = iter(range(1_000))
    source = replace(queue_source(queue.url, None, queue.options), visibility_s=6, now_s=lambda: next(clock))
    round_ = source.next(None, NO_BOUNDS, None)
    assert 10 <= round_.pieces < 40
    assert round_.waiting >= 1


def test_notes_go_when_no_message_can_come_again(queue):
    source = queue_source(queue.url, None, queue.options)
    bounds = NO_BOUNDS

    def at(seconds, after):
        queue.put(f"{seconds}.json", {"id": seconds, "n": 1})
        round_ = replace(source, now_s=lambda: seconds).next(after, bounds, None)
        round_.committed()
        return round_.checkpoint

    def names(checkpoint):
        return sorted(name.rpartition("/")[2] for name in checkpoint.more["taken"])

    first = at(1_000, None)
    second = at(1_899, first)
    assert names(second) == ["1000.json", "1899.json"]
    assert names(at(1_901, second)) == ["1899.json", "1901.json"]


def test_a_queue_that_is_not_there_is_one_sentence(queue, tmp_path):
    with pytest.raises(StorageError, match=r"cannot be read: .*NonExistentQueue"):
        queue.ingest(str(tmp_path / "t"), source=f"{queue.url}x")


@pytest.mark.parametrize(
    ("option", "value"),
    [("hoodie.streamer.s3.source.queue.visibility.timeout", "soon"), ("hoodie.streamer.s3.source.queue.fss", "s3")],
)
def test_options_of_the_queue_are_checked(option, value):
    with pytest.raises(OptionError, match=option):
        queue_source("https://sqs.eu-west-1.amazonaws.com/1/q", None, {option: value})
