"""A folder of files as a source: each file once, in the order of their times.

The checkpoint is that of Apache Hudi's `DFSPathSelector`: the time of the last file in milliseconds. A file that arrives with an
older time would be missed by it alone. So the files of the last minutes are noted by name, too, and one that is not among them is
new. Files do not change: one that grows is read as it is when it is seen first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.ingestion.connect_json import unwrapped
from hoodie.ingestion.formats import Decoded, decoder, format_of, wider
from hoodie.ingestion.source import BadRecord, Bounds, Checkpoint, Round
from hoodie.storage.base import FileInfo, Storage

LATE_MS = 600_000
"""A file may get its time so long before it can be seen."""
_HIDDEN = (".", "_")
_TAKEN = "taken"


@dataclass(frozen=True)
class FolderSource:
    """`Source` of the files below a folder; names that begin with a dot or an underscore are left out, as Hudi does."""

    storage: Storage
    format: str | None = None
    """None: by the ends of the names, others are left out."""
    unwraps: bool = False
    """Lines of JSON may be Kafka Connect's `{"schema": …, "payload": …}`: the payload counts."""

    def __str__(self) -> str:
        return f"the folder {self.storage.uri}"

    def next(self, after: Checkpoint | None, bounds: Bounds, known: pa.Schema | None) -> Round | None:
        new = sorted(self._new(after), key=lambda info: (_ms(info), info.path))
        taken = list(_bounded(new, bounds))
        if not taken:
            return None
        rows, bad = self._read(taken, known)
        return Round(
            rows,
            _behind(after, taken),
            tuple(bad),
            pieces=len(taken),
            bytes=sum(info.size_bytes for info in taken),
            waiting=len(new) - len(taken),
        )

    def _new(self, after: Checkpoint | None) -> Iterator[FileInfo]:
        last_ms, taken = _read_checkpoint(after)
        for info in self.storage.list("", recursive=True):
            parts = info.path.split("/")
            if info.is_folder or any(part.startswith(_HIDDEN) for part in parts) or info.size_bytes == 0:
                continue
            if self.format is None and format_of(info.name) is None:
                continue
            late = _TAKEN in (after.more if after else {}) and _ms(info) > last_ms - LATE_MS
            if _ms(info) > last_ms or (late and info.path not in taken):
                yield info

    def _read(self, taken: list[FileInfo], known: pa.Schema | None) -> tuple[pa.Table, list[BadRecord]]:
        rows = pa.table({})
        bad: list[BadRecord] = []
        for info in taken:
            try:
                found = self._decoded(info, known)
                together = _together(rows, found.rows)
            except pa.ArrowException:  # a column has other values than in the files before: only these are bad
                found = self._decoded(info, wider(known or pa.schema([]), rows.schema))
                try:
                    together = _together(rows, found.rows)
                except pa.ArrowException as exc:
                    found = Decoded(pa.table({}))
                    together = rows
                    bad.append(BadRecord(info.path, f"the columns do not fit those of the files before it: {exc}", ""))
            rows = together
            bad += found.bad
        return rows, bad

    def _decoded(self, info: FileInfo, known: pa.Schema | None) -> Decoded:
        kind = self.format or format_of(info.name)
        if kind is None:
            raise OptionError(f"{self} has {info.path}, whose format its name does not tell: give format=")
        content = self.storage.read(info.path)
        if self.unwraps and kind == "json":
            content = b"\n".join(unwrapped(content.splitlines()))
        return decoder(kind)(info.path, content, known)


def _together(rows: pa.Table, more: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, more], promote_options="permissive")


def _ms(info: FileInfo) -> int:
    return int(info.mtime_s * 1000)


def _bounded(new: list[FileInfo], bounds: Bounds) -> Iterator[FileInfo]:
    size = 0
    for number, info in enumerate(new):
        size += info.size_bytes
        too_much = (bounds.files is not None and number >= bounds.files) or (
            bounds.bytes is not None and size > bounds.bytes
        )
        if number and too_much:
            return
        yield info


def _read_checkpoint(after: Checkpoint | None) -> tuple[int, Mapping[str, Any]]:
    if after is None:
        return -1, {}
    try:
        taken = after.more.get(_TAKEN, {})
        return int(after.text), taken if isinstance(taken, dict) else {}
    except ValueError as exc:
        raise OptionError(
            f"the checkpoint {after.text!r} is not the time of a file in milliseconds: another source has been written to this table "
            "under the same name; give name="
        ) from exc


def _behind(after: Checkpoint | None, taken: list[FileInfo]) -> Checkpoint:
    last_ms, before = _read_checkpoint(after)
    newest_ms = max(last_ms, *map(_ms, taken))
    noted = {**before, **{info.path: _ms(info) for info in taken}}
    return Checkpoint(str(newest_ms), {_TAKEN: {p: ms for p, ms in noted.items() if ms > newest_ms - LATE_MS}})
