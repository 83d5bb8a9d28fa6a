"""A queue of notifications as a source: files of S3 are read as they are announced, and no folder is listed.

Messages may come twice and in any order, and one that is not deleted comes again. So messages are deleted when the commit with
their rows stands, and that commit notes which files it has: a message that comes again adds nothing. A note is kept until the queue
was empty at a time when each message that was received before could be seen again. The checkpoint is that of Apache Hudi's
`S3EventsSource`: the time of the last notification, in milliseconds.

A file that may not be read, or whose bucket is not there, stops no other file: somebody may have to give a permission first. Its
message stays in the queue, and a run that ends ends with an error about it.
"""

from __future__ import annotations

import errno
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa

from hoodie.aws.client import Address, Client, ServiceError
from hoodie.errors import AccessDeniedError, OptionError, StorageError
from hoodie.ingestion.csv_settings import PLAIN_CSV, CsvSettings, parse_csv_settings
from hoodie.ingestion.folders import FolderSource, counts, read_files
from hoodie.ingestion.formats import DecodedRows
from hoodie.ingestion.notifications import NewObject, objects_of
from hoodie.ingestion.source import BadRecord, Bounds, Checkpoint, Round
from hoodie.model.results import format_count
from hoodie.options.aws import AwsOptions
from hoodie.storage.base import FileInfo
from hoodie.storage.uri import open_storage

log = logging.getLogger("hoodie")

_PREFIX = "hoodie.streamer.s3.source.queue."
VISIBILITY, WAIT, REGION = f"{_PREFIX}visibility.timeout", f"{_PREFIX}long.poll.wait", f"{_PREFIX}region"
KEY_PREFIX = "hoodie.streamer.source.s3incr.key.prefix"
_VISIBILITY_S, _WAIT_S, _LONGEST_WAIT_S = 300, 1, 8
_MOST_FILES, _MOST_BYTES = 1_000, 1 << 28
_AT_ONCE = 10
"""Messages of one request, which is what SQS allows."""
_MARGIN_MS = 600_000
_LONGEST_KEPT_MS = 14 * 86_400_000
"""SQS drops older messages."""
_TAKEN = "taken"
_REGION_OF_HOST = re.compile(r"sqs[.-](?:fips\.)?(?P<region>[a-z0-9-]+)\.(?:amazonaws|api\.aws)")


def is_queue(address: str) -> bool:
    return address.startswith(("https://", "http://"))


@dataclass
class _Received:
    """Messages, and what they say."""

    messages: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By id: one that comes again has another receipt, and the last one counts."""
    objects: dict[str, NewObject] = field(default_factory=dict)
    """By name; of one that is announced twice the later."""
    names: dict[str, set[str]] = field(default_factory=dict)
    """By id of a message: of the new files that it announces."""
    bad: list[BadRecord] = field(default_factory=list)
    bytes: int = 0
    last_ms: int = -1
    is_all: bool = False
    """The queue had no more."""


@dataclass
class QueueSource:
    """`Source` of the files that a queue of SQS announces."""

    url: str
    format: str | None
    """Of the files; None: by the ends of their names, others are left out."""
    reached_by: Mapping[str, str]
    """How the storage of the files is reached; SQS with the same credentials."""
    client: Client
    key_prefix: str = ""
    visibility_s: int = _VISIBILITY_S
    wait_s: int = _WAIT_S
    unwraps: bool = False
    csv: CsvSettings = PLAIN_CSV
    table: str = ""
    """Where the table is. Its own files are none of the source."""
    goes_on: bool = False
    """The run does not end: files that cannot be read are no error, but tried again when their messages come again."""
    now_s: Callable[[], float] = time.time
    _folders: dict[str, FolderSource] = field(default_factory=dict)
    _unread: dict[str, str] = field(default_factory=dict)
    """Of the last round: files that cannot be read now, by name, and why."""
    _kept: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Messages that announce such files, of all rounds; hidden for a while."""
    _reasons: dict[str, str] = field(default_factory=dict)
    """The same as `_unread`, of all rounds."""

    def __str__(self) -> str:
        return f"the queue {self.url}"

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        noted = _notes(after)
        while True:
            known = set(self._kept)
            started_ms = int(self.now_s() * 1000)
            received = self._received(noted, bounds)
            if not received.objects and not received.bad:
                self._delete(received.messages)
                break
            try:
                round_ = self._round(received, after, schema, noted, started_ms)
            except BaseException:
                self._release(received.messages)
                raise
            if round_.pieces or round_.bad:
                return round_
            if received.is_all or known.issuperset(self._kept):
                break
        self._require_all_read()
        return None

    def _round(
        self,
        received: _Received,
        after: Checkpoint | None,
        schema: pa.Schema | None,
        noted: Mapping[str, tuple[str, int]],
        started_ms: int,
    ) -> Round:
        rows, bad = self._read(received, schema)
        kept = self._keep(received)
        done = {id: message for id, message in received.messages.items() if id not in kept}
        read = {name: new for name, new in received.objects.items() if name not in self._unread}
        is_committed = False

        def committed() -> None:
            nonlocal is_committed
            is_committed = True
            self._delete(done)

        def ended() -> None:
            if not is_committed:
                self._release(received.messages)

        last_ms = max(received.last_ms, int(after.text) if after and after.text.isdecimal() else -1)
        kept_ms = started_ms - (self.visibility_s * 1000 + _MARGIN_MS if received.is_all else _LONGEST_KEPT_MS)
        taken = {name: note for name, note in noted.items() if note[1] > kept_ms}
        taken |= {name: (new.version, started_ms) for name, new in read.items()}
        return Round(
            rows,
            Checkpoint(str(last_ms), {_TAKEN: taken}),
            bad,
            pieces=len(read),
            bytes=sum(new.size_bytes for new in read.values()),
            waiting=max(0 if received.is_all else self._waiting(), len(self._unread)),
            may_lack=True,
            committed=committed,
            ended=ended,
        )

    def _keep(self, received: _Received) -> Mapping[str, Mapping[str, Any]]:
        """The messages that announce files which cannot be read: neither deleted nor released, they come again after a while."""
        kept = {id: received.messages[id] for id, names in received.names.items() if not names.isdisjoint(self._unread)}
        if kept:
            self._kept |= kept
            self._reasons |= self._unread
            log.warning("%s", _told(self, self._unread))
        return kept

    def _require_all_read(self) -> None:
        """Raises StorageError where the run ends: files could not be read. The next run finds their messages at once."""
        kept, reasons = dict(self._kept), dict(self._reasons)
        self._kept.clear()
        self._reasons.clear()
        if kept and not self.goes_on:
            self._release(kept)
            raise StorageError(_told(self, reasons))

    def _received(self, noted: Mapping[str, tuple[str, int]], bounds: Bounds) -> _Received:
        """Messages up to the bounds, or up to the end of the queue; at least one that names a new file.

        After a third of the time for which they are hidden, those that were received first would soon come again.
        """
        result = _Received()
        most_files, most_bytes = bounds.files or _MOST_FILES, bounds.bytes or _MOST_BYTES
        try:
            until_s = self.now_s() + self.visibility_s / 3
            while len(result.objects) < most_files and result.bytes < most_bytes:
                if result.messages and self.now_s() > until_s:
                    break
                messages = self._ask(
                    "receive_message",
                    MaxNumberOfMessages=min(_AT_ONCE, most_files - len(result.objects)),
                    VisibilityTimeout=self.visibility_s,
                    WaitTimeSeconds=self.wait_s,
                ).get("Messages", [])
                if not messages:
                    result.is_all = True
                    break
                for message in messages:
                    self._add(result, message, noted)
                if not result.objects and not result.bad:  # others than files: nobody needs them
                    self._delete(result.messages)
                    result.messages.clear()
                    until_s = self.now_s() + self.visibility_s / 3
        except BaseException:
            self._release(result.messages)
            raise
        return result

    def _add(self, result: _Received, message: Mapping[str, Any], noted: Mapping[str, tuple[str, int]]) -> None:
        result.messages[message["MessageId"]] = message
        try:
            objects = objects_of(message["Body"])
        except ValueError as exc:
            result.bad.append(BadRecord(f"message {message['MessageId']}", str(exc), message["Body"]))
            return
        names = result.names.setdefault(message["MessageId"], set())
        for new in objects:
            result.last_ms = max(result.last_ms, new.time_ms)
            if not self._counts(new) or new.version <= noted.get(new.name, ("", 0))[0]:
                continue
            names.add(new.name)
            before = result.objects.get(new.name)
            if before is None or new.version > before.version:
                result.bytes += new.size_bytes - (before.size_bytes if before else 0)
                result.objects[new.name] = new

    def _counts(self, new: NewObject) -> bool:
        is_own = bool(self.table) and f"s3://{new.name}".startswith(f"{self.table.rstrip('/')}/")
        return not is_own and new.key.startswith(self.key_prefix) and counts(_info(new, new.key), self.format)

    def _folder(self, bucket: str, name: str) -> FolderSource:
        folder = self._folders.get(f"{bucket}/{name}")
        if folder is None:
            storage = open_storage(f"s3://{bucket}/{quote(name)}", self.reached_by or None)
            folder = self._folders[f"{bucket}/{name}"] = _Announced(
                storage, self.format, self.unwraps, self.csv, name=f"{bucket}/{name}", unread=self._unread
            )
        return folder

    def _read(self, received: _Received, schema: pa.Schema | None) -> tuple[pa.Table, list[BadRecord]]:
        """In the order of their times, so that the later of two rows of one key wins."""
        files, misplaced = [], []
        self._unread.clear()
        for new in sorted(received.objects.values(), key=lambda new: (new.time_ms, new.version, new.name)):
            folder, _, path = new.key.partition("/")
            if folder and all(path.split("/")) and "\0" not in path:
                files.append((self._folder(new.bucket, folder), _info(new, path)))
            else:
                reason = "hoodie reads files in folders of a bucket, and no part of their paths is empty"
                misplaced.append(BadRecord(f"s3://{new.name}", reason, ""))
        rows, bad = read_files(files, schema)
        return rows, [*received.bad, *misplaced, *bad]

    def _waiting(self) -> int:
        """At least one: the queue did not say that it is empty."""
        name = "ApproximateNumberOfMessages"
        attributes = self._ask("get_queue_attributes", AttributeNames=[name]).get("Attributes", {})
        return max(int(attributes.get(name, 1)), 1)

    def _delete(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises nothing: those that stay come again, and are known."""
        for entries in _by_tens(messages):
            self._try("delete_message_batch", Entries=entries)

    def _release(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Let others see them at once. Raises nothing: they do after a while."""
        for entries in _by_tens(messages):
            self._try("change_message_visibility_batch", Entries=[{**each, "VisibilityTimeout": 0} for each in entries])

    def _try(self, call: str, **arguments: Any) -> None:
        try:
            failed = self._ask(call, **arguments).get("Failed", [])
        except StorageError as exc:
            log.warning("%s; the messages will come again", exc)
            return
        if failed:
            log.warning("%s did not carry out %s of %d messages; they will come again", self, call, len(failed))

    def _ask(self, call: str, **arguments: Any) -> dict[str, Any]:
        try:
            return self.client.ask(call, QueueUrl=self.url, **arguments)
        except ServiceError as exc:
            raise StorageError(f"{self} cannot be read: {exc}") from exc


@dataclass(frozen=True)
class _Announced(FolderSource):
    """A file may be out of reach."""

    name: str = ""
    """Of the bucket and the folder."""
    unread: dict[str, str] = field(default_factory=dict)
    """Gets the files that are out of reach, and why."""

    def decoded(self, info: FileInfo, schema: pa.Schema | None) -> DecodedRows:
        name = f"{self.name}/{info.path}"
        try:
            rows, bad = super().decoded(info, schema)
        except StorageError as exc:
            if not isinstance(exc, AccessDeniedError) and exc.errno != errno.ENOENT:  # a bucket that is not there
                raise
            self.unread[name] = exc.strerror or str(exc)
            rows, bad = pa.table({}), ()
        return DecodedRows(rows, tuple(each._replace(origin=f"s3://{name}") for each in bad))


def _told(source: QueueSource, reasons: Mapping[str, str]) -> str:
    name, reason = next(iter(reasons.items()))
    return (
        f"{format_count(len(reasons), 'file')} of {source} cannot be read, and the queue keeps what announces them. The first is "
        f"s3://{name}: {reason}. A later run reads them; if they are gone for good, delete their messages"
    )


def _info(new: NewObject, path: str) -> FileInfo:
    return FileInfo(path, new.size_bytes, new.time_ms / 1000, new.key.endswith("/"), new.version)


def _by_tens(messages: Mapping[str, Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    receipts = [each["ReceiptHandle"] for each in messages.values()]
    for first in range(0, len(receipts), _AT_ONCE):
        some = receipts[first : first + _AT_ONCE]
        yield [{"Id": str(number), "ReceiptHandle": each} for number, each in enumerate(some)]


def _notes(after: Checkpoint | None) -> Mapping[str, tuple[str, int]]:
    """Name of a file -> the version that the table has, and when it was received in milliseconds."""
    taken = after.more.get(_TAKEN, {}) if after is not None else {}
    if not isinstance(taken, Mapping):
        return {}
    return {name: (note[0], note[1]) for name, note in taken.items() if isinstance(note, Sequence) and len(note) == 2}


def queue_source(url: str, kind: str | None, reached_by: Mapping[str, str] | None) -> QueueSource:
    """The source of a queue's URL; options of the queue are those of Apache Hudi's.

    Raises:
        OptionError: an option of the queue is unknown, or cannot have its value.
    """
    csv, options = parse_csv_settings(reached_by)
    given = {key: options.pop(key) for key in list(options) if key.startswith("hoodie.")}
    unknown = sorted(set(given) - {VISIBILITY, WAIT, REGION, KEY_PREFIX})
    if unknown:
        raise OptionError(f"the queue {url} has no option {', '.join(unknown)}")
    address = urlsplit(url)
    named = _REGION_OF_HOST.match(address.hostname or "")
    region = given.get(REGION) or (named["region"] if named else options.get("aws_region"))
    aws = AwsOptions(
        access_key=options.get("aws_access_key_id"),
        secret_key=options.get("aws_secret_access_key"),
        session_token=options.get("aws_session_token"),
    )
    sqs = Address("sqs", region, f"{address.scheme}://{address.netloc}")
    return QueueSource(
        url,
        kind,
        options,
        Client(sqs, aws, f"the source {url} is a queue of SQS, which"),
        given.get(KEY_PREFIX, ""),
        _seconds(given, VISIBILITY, _VISIBILITY_S, 43_200),
        _seconds(given, WAIT, _WAIT_S, _LONGEST_WAIT_S),
        csv=csv,
    )


def _seconds(given: Mapping[str, str], key: str, usual: int, most: int) -> int:
    """Waits of Hudi's may be longer than those here: then it is the longest."""
    text = str(given.get(key, usual))
    if not text.isdecimal():
        raise OptionError(f"{key}={text!r} is no number of seconds")
    return min(int(text), most)
