"""Archived timelines: the instants that a writer moved off the active one.

Version 6: files `.commits_.archive.{n}_1-0-1` in the format of log files, Avro data blocks of HoodieArchivedMetaEntry,
one entry for each state file of an instant. Versions 8 and 9: an LSM tree of Parquet files `{min}_{max}_{level}.parquet`,
one row for each instant, that a manifest lists; `metadata` is the content of the completed instant's file.

Witnesses: golden tables v6_archived and v9_archived.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.commit_avro import decode_commit_file
from hoodie.format.commit_check import check_commit
from hoodie.format.commit_json import commit_of
from hoodie.format.cursor import i32
from hoodie.format.log_block import LogBlock, encode_block, scan_blocks
from hoodie.format.log_content import record_bounds
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.format.plan_avro import decode_entry
from hoodie.model.enums import Action, BlockKind, HeaderKey, State
from hoodie.model.instant import Instant, InstantTime, is_instant_time
from hoodie.model.names import restored
from hoodie.model.payloads import CommitMetadata

_ARCHIVE_FILE = re.compile(r"\.commits_\.archive\.(\d+)(?:_\d+-\d+-\d+)?", re.ASCII)
_LSM_FILE = re.compile(r"(\d{14,})_(\d{14,})_(\d+)\.parquet", re.ASCII)
_MANIFEST = re.compile(r"manifest_(\d+)", re.ASCII)
_MAX_NUMBER_DIGITS = 18
_BATCH_ROWS = 1 << 16

_STATE, _TIME, _ACTION = "actionState", "commitTime", "actionType"
_COMMIT, _REPLACE = "hoodieCommitMetadata", "hoodieReplaceCommitMetadata"
ENTRY = "HoodieArchivedMetaEntry"


def archive_number(name: str) -> int | None:
    """The number of a version 6 archive file; None for any other file."""
    match = _ARCHIVE_FILE.fullmatch(name)
    return int(match[1]) if match and len(match[1]) <= _MAX_NUMBER_DIGITS else None


def manifest_number(name: str) -> int | None:
    """The number of an LSM manifest; None for any other file."""
    match = _MANIFEST.fullmatch(name)
    return int(match[1]) if match and len(match[1]) <= _MAX_NUMBER_DIGITS else None


def decode_archive_file(data: bytes, *, path: str) -> tuple[Instant, ...]:
    """The completed instants in a version 6 archive file, in the order in which they stand.

    Raises:
        CorruptFileError: a block is damaged, or an entry names no instant.
    """
    result = []
    for entry in decoded_entries(data, (_TIME, _ACTION, _STATE), path=path):
        if entry[_STATE] == State.COMPLETED.name:
            result.append(_instant(entry[_TIME], entry[_ACTION], None, path=path))
    return tuple(result)


def decode_archived_commits(
    data: bytes, times: frozenset[InstantTime], *, path: str
) -> dict[InstantTime, CommitMetadata]:
    """Instant time -> metadata of the completed commits among `times` that a version 6 archive file holds.

    Raises:
        CorruptFileError: a block is damaged, or metadata have another form.
    """
    result = {}
    for entry in decoded_entries(data, (_COMMIT, _TIME, _STATE, _REPLACE), path=path):
        record = entry[_COMMIT] or entry[_REPLACE]
        if entry[_STATE] == State.COMPLETED.name and entry[_TIME] in times and record is not None:
            result[InstantTime(entry[_TIME])] = check_commit(
                commit_of(record, path=path, completed=True), path=path, time=entry[_TIME]
            )
    return result


def archive_without(data: bytes, times: frozenset[str], *, path: str) -> bytes:
    """The content of a version 6 archive file without the entries of these instants; the others stay byte for byte.

    Raises:
        CorruptFileError: as `decode_archive_file`.
    """
    blocks = []
    for block, records in _blocks(data, path=path):
        remaining = [
            record for record, entry in _decoded(block, records, (_TIME,), path=path) if entry[_TIME] not in times
        ]
        if len(remaining) == len(records):
            blocks.append(data[block.offset : block.offset + block.size_bytes])
        elif remaining:
            framed = [part for record in remaining for part in (i32(len(record)), record)]
            content = b"".join([bytes(block.content[:4]), i32(len(remaining)), *framed])
            blocks.append(encode_block(block.kind, block.header, content))
    return b"".join(blocks)


def decoded_entries(data: bytes, fields: tuple[str, ...], *, path: str) -> Iterator[dict[str, Any]]:
    """These fields of every entry. Entry by entry: there are a few for each commit, and their schema is far too wide for columns.

    Raises:
        CorruptFileError: a block or an entry is damaged.
    """
    for block, records in _blocks(data, path=path):
        for _, entry in _decoded(block, records, fields, path=path):
            yield entry


def _blocks(data: bytes, *, path: str) -> Iterator[tuple[LogBlock, list[bytes]]]:
    """The blocks, each with its records."""
    for block in scan_blocks(data):
        if not isinstance(block, LogBlock):
            raise CorruptFileError(
                f"{path} is damaged at byte {block.offset} ({block.reason}); restore the file from a copy"
            )
        if block.kind is not BlockKind.AVRO_DATA:
            raise CorruptFileError(
                f"{path} holds a {block.kind.name} block, which no archived timeline has; restore the file from a copy"
            )
        content = bytes(block.content)
        try:
            records = [content[start:end] for start, end in zip(*record_bounds(content), strict=True)]
        except CorruptFileError as exc:
            raise CorruptFileError(restored(f"{path}: {exc}")) from exc
        yield block, records


def _decoded(
    block: LogBlock, records: Sequence[bytes], fields: tuple[str, ...], *, path: str
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    schema = block.header.get(HeaderKey.SCHEMA, "").encode()
    try:
        for record in records:
            yield record, decode_entry(ENTRY, schema, record, fields)
    except CorruptFileError as exc:
        raise CorruptFileError(restored(f"{path}: {exc}")) from exc


def decode_manifest(data: bytes, *, path: str) -> tuple[str, ...]:
    """Names of the Parquet files that a manifest of the LSM timeline lists.

    Raises:
        CorruptFileError: it is no such JSON, or names a file elsewhere.
    """
    try:
        parsed: Any = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise CorruptFileError(restored(f"{path}: no readable manifest of an archived timeline ({exc})")) from exc
    entries = parsed.get("files") if isinstance(parsed, dict) else None
    if not isinstance(entries, list):
        raise CorruptFileError(
            restored(f"{path}: no readable manifest of an archived timeline: it has no list of files")
        )
    result = []
    for each in entries:
        name = each.get("fileName") if isinstance(each, dict) else None
        if not isinstance(name, str) or not _LSM_FILE.fullmatch(name):
            raise CorruptFileError(restored(f"{path}: {str(name)[:200]!r} is not a file of an archived timeline"))
        result.append(name)
    return tuple(result)


def lsm_range(name: str) -> tuple[str, str]:
    """The least and the greatest instant time in a Parquet file of the LSM timeline, both inclusive."""
    match = _LSM_FILE.fullmatch(name)
    if match is None:
        raise CorruptFileError(f"{name!r} is not a file of an archived timeline")
    return match[1], match[2]


def decode_lsm_file(data: bytes, *, path: str) -> tuple[Instant, ...]:
    """The instants in a Parquet file of the LSM timeline; all of them are completed.

    Raises:
        CorruptFileError: the file does not decode, or a row names no instant.
    """
    table = lsm_columns(data, ("instantTime", "completionTime", "action"), path=path)
    return tuple(
        _instant(row["instantTime"], row["action"], row["completionTime"] or row["instantTime"], path=path)
        for row in table.to_pylist()
    )


def decode_lsm_commits(
    data: bytes, actions: Mapping[InstantTime, Action], *, path: str
) -> dict[InstantTime, CommitMetadata]:
    """Instant time -> metadata of the commits among `actions` (time -> action) that a Parquet file of the LSM timeline holds.

    Raises:
        CorruptFileError: the file or the metadata in it do not decode.
    """
    table = lsm_columns(data, ("instantTime", "action", "metadata"), path=path)
    result = {}
    for number, row in enumerate(table.select(["instantTime", "action"]).to_pylist()):
        time = InstantTime(row["instantTime"])
        content = table.column("metadata")[number].as_py() if actions.get(time) == row["action"] else None
        if content:
            result[time] = decode_commit_file(content, actions[time], path=f"{path} (instant {time})", time=time)
    return result


def lsm_columns(data: bytes, columns: Sequence[str], *, path: str) -> pa.Table:
    """Columns of a Parquet file of the LSM timeline.

    Raises:
        CorruptFileError: the file does not decode, or lacks one of them.
    """
    with open_parquet(pa.BufferReader(data), path=path) as file:
        lacking = [name for name in columns if name not in file.schema_arrow.names]
        if lacking:
            what = f"{path} is not a file of an archived timeline: it has no column {lacking[0]}"
            raise CorruptFileError(restored(what))
        batches = list(read_batches(file, columns, batch_rows=_BATCH_ROWS, path=path))
        schema = pa.schema([file.schema_arrow.field(name) for name in columns])
    return pa.Table.from_batches([batch.select(list(columns)) for batch in batches], schema)


def _instant(time: object, action: object, completion: object, *, path: str) -> Instant:
    if not isinstance(time, str) or not is_instant_time(time):
        raise CorruptFileError(
            restored(f"{path}: an entry of the archived timeline has the instant {str(time)[:40]!r}")
        )
    if not isinstance(action, str) or action not in set(Action):
        raise CorruptFileError(
            restored(f"{path}: instant {time} has the action {str(action)[:40]!r}, which no timeline has")
        )
    if completion is not None and (not isinstance(completion, str) or not is_instant_time(completion)):
        raise CorruptFileError(restored(f"{path}: instant {time} has the completion time {str(completion)[:40]!r}"))
    completed = None if completion is None else InstantTime(completion)
    return Instant(InstantTime(time), Action(action), State.COMPLETED, completed)
