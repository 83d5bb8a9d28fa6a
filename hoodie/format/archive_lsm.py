"""Writing files of the LSM timeline, the archive of versions 8 and 9 (Apache Hudi's `LSMTimelineWriter`). `archive.py` reads them.

A Parquet file holds a row for each action: the bytes of its completed file, and of its plan where the action has one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.format.archive import decode_lsm_file, lsm_columns
from hoodie.format.archive_entries import StateFile
from hoodie.format.avro_schema import CONTAINER_MAGIC
from hoodie.format.base_file import AVRO_SCHEMA
from hoodie.format.column_stats import COLUMN_STATS
from hoodie.format.commit_avro import COMMIT, REPLACE_COMMIT
from hoodie.format.plan_avro import decode_plan, encode_plan, schema_text
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS

_RECORD = "HoodieLSMTimelineInstant"
_SCHEMA: pa.Schema = pa.schema(
    [  # type: ignore[arg-type]
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_HAVE_PLANS = (Action.CLEAN, Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING, Action.REPLACECOMMIT)


class LsmFile(NamedTuple):
    """As a manifest lists it."""

    name: str
    size_bytes: int


def lsm_name(times: Sequence[InstantTime], level: int) -> str:
    """Of a file with these instants, at this level of the tree."""
    return f"{min(times)}_{max(times)}_{level}.parquet"


def lsm_level(name: str) -> int:
    """The level in such a name."""
    return int(name.removesuffix(".parquet").rpartition("_")[2])


def encode_lsm(files: Sequence[StateFile], *, folder: str) -> bytes:
    """A file with the instants that these state files are of; one that is not completed is left out.

    Raises:
        CorruptFileError: a completed file names no time of completion; `folder` is where they lie.
    """
    states: dict[tuple[InstantTime, Action], list[StateFile]] = {}
    for file in files:
        states.setdefault((file.instant.time, COMPLETES_AS.get(file.instant.action, file.instant.action)), []).append(
            file
        )
    return _encoded(row for (_, action), each in sorted(states.items()) for row in _rows(action, each, folder))


def _rows(action: Action, files: Sequence[StateFile], folder: str) -> Iterable[Mapping[str, object]]:
    completed = next((file for file in files if file.instant.is_completed), None)
    if completed is None:
        return
    if completed.instant.completion is None:
        raise CorruptFileError(f"{folder}/{completed.instant} names no time of completion: it is of an older version")
    yield {
        "instantTime": completed.instant.time,
        "completionTime": completed.instant.completion,
        "action": action.value,
        "metadata": completed.content,
        "plan": _plan(files),
        "version": 1,
    }


def _plan(files: Sequence[StateFile]) -> bytes | None:
    """Of an overwrite its inflight file, where that says something; else what was requested."""
    by_state = {file.instant.state: file for file in files if file.instant.action in _HAVE_PLANS}
    requested, inflight = by_state.get(State.REQUESTED), by_state.get(State.INFLIGHT)
    if inflight is not None and inflight.content and inflight.instant.action is Action.REPLACECOMMIT:
        return inflight.content
    return requested.content if requested is not None and requested.content else None


def _encoded(rows: Iterable[Mapping[str, Any]]) -> bytes:
    table = pa.Table.from_pylist([_without_bounds(row) for row in rows], schema=_SCHEMA)
    return _written(table) if table.num_rows else b""


def _without_bounds(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Nobody looks for bounds of columns here, and they name values of rows that may be deleted since."""
    content: bytes = row["metadata"] or b""
    if COLUMN_STATS.encode() not in content:  # all commits of others
        return row
    if not content.startswith(CONTAINER_MAGIC):
        parsed = json.loads(content)
        parsed["extraMetadata"].pop(COLUMN_STATS, None)
        return {**row, "metadata": json.dumps(parsed).encode()}
    name = REPLACE_COMMIT if row["action"] == Action.REPLACECOMMIT.value else COMMIT
    record = decode_plan(name, content, path=f"the archived commit {row['instantTime']}")
    record["extraMetadata"].pop(COLUMN_STATS, None)
    return {**row, "metadata": encode_plan(name, record)}


def _written(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, compression="gzip", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({AVRO_SCHEMA: schema_text(_RECORD), "writer.model.name": "avro"})
    return sink.getvalue()


def lsm_without(data: bytes, times: frozenset[str], *, path: str) -> bytes:
    """The content of a file without these instants; empty where it has no others.

    Raises:
        CorruptFileError: it does not decode.
    """
    rows = [row for row in _read(data, path=path).to_pylist() if row["instantTime"] not in times]
    return _encoded(rows)


def merged_lsm(parts: Mapping[str, bytes]) -> tuple[bytes, Sequence[Instant]]:
    """The content of several files, given by their paths, as one, and the instants in it; an instant stands in it once.

    Raises:
        CorruptFileError: one of them does not decode.
    """
    rows = {
        (row["instantTime"], row["action"]): row
        for path, data in parts.items()
        for row in _read(data, path=path).to_pylist()
    }
    data = _encoded(rows[at] for at in sorted(rows))
    return data, decode_lsm_file(data, path=next(iter(parts)))


def _read(data: bytes, *, path: str) -> pa.Table:
    return lsm_columns(data, _SCHEMA.names, path=path)


def encode_manifest(files: Iterable[LsmFile]) -> bytes:
    """The manifest of a state of the tree."""
    entries = [{"fileName": file.name, "fileLen": file.size_bytes} for file in files]
    return json.dumps({"files": entries}, indent=2).encode()
