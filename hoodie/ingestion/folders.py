"""A folder of files as a source: each file once, in the order of their times.

The checkpoint is that of Apache Hudi's `DFSPathSelector`: the time of the last file in milliseconds. A file that arrives with an
older time would be missed by it alone. So the files of the last minutes are noted by name, too, and one that is not among them is
new. A time in the future, by a wrong clock, would hide all files until then: the checkpoint never lies there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie.engine.base import Records
from hoodie.errors import OptionError
from hoodie.ingestion.connect_json import unwrapped
from hoodie.ingestion.csv_settings import PLAIN_CSV, CsvSettings
from hoodie.ingestion.formats import FORMATS, DecodedRows, all_bad, decode_csv, decoder, format_of, uncompressed, wider
from hoodie.ingestion.salvage import with_known_types
from hoodie.ingestion.source import BadRecord, Bounds, Checkpoint, Round
from hoodie.storage.base import FileInfo, Storage

log = logging.getLogger("hoodie")

LATE_MS = 600_000
"""A file may get its time so long before it can be seen."""
_HIDDEN = (".", "_")
_TAKEN = "taken"


class NewFiles(NamedTuple):
    """What a round reads."""

    files: tuple[FileInfo, ...]
    checkpoint: Checkpoint
    waiting: int

    def round(self, rows: Records, bad: Sequence[BadRecord]) -> Round:
        return Round(
            rows,
            self.checkpoint,
            tuple(bad),
            pieces=len(self.files),
            bytes=sum(info.size_bytes for info in self.files),
            waiting=self.waiting,
            may_lack=True,
        )


@dataclass(frozen=True)
class FolderSource:
    """`Source` of the files below a folder; names that begin with a dot or an underscore are left out, as Hudi does."""

    storage: Storage
    format: str | None = None
    """None: by the ends of the names, others are left out."""
    unwraps: bool = False
    """Lines of JSON may be Kafka Connect's `{"schema": …, "payload": …}`: the payload counts."""
    csv: CsvSettings = PLAIN_CSV
    now_s: Callable[[], float] = time.time

    def __str__(self) -> str:
        return f"the folder {self.storage.uri}"

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        new = self.new_files(after, bounds)
        return None if new is None else new.round(*read_files([(self, info) for info in new.files], schema))

    def new_files(self, after: Checkpoint | None, bounds: Bounds) -> NewFiles | None:
        """The new files up to the bounds, unread; None: there is none."""
        new = sorted(self._new(after), key=lambda info: (_ms(info), info.path))
        files = tuple(_bounded(new, bounds))
        now_ms = int(self.now_s() * 1000)
        return NewFiles(files, _behind(after, files, now_ms), len(new) - len(files)) if files else None

    def _new(self, after: Checkpoint | None) -> Iterator[FileInfo]:
        last_ms, old_paths = _read_checkpoint(after)
        for info in self._listed():
            if not counts(info, self.format):
                continue
            if old_paths.get(info.path) == _ms(info):
                continue
            late = _TAKEN in (after.more if after else {}) and _ms(info) > last_ms - LATE_MS
            if _ms(info) > last_ms or (late and info.path not in old_paths):
                yield info

    def _listed(self) -> Sequence[FileInfo]:
        try:
            infos = self.storage.list("", recursive=True)
        except NotADirectoryError as exc:
            raise OptionError(f"{self} is a file: give the folder that it is in") from exc
        on_disk = self.storage.can.local_root is not None  # others have no empty folders
        if not infos and on_disk and not self.storage.exists(""):
            raise OptionError(f"{self} does not exist")
        if not infos and format_of(self.storage.uri) is not None:
            raise OptionError(f"there is nothing below {self.storage.uri}: of a file give the folder that it is in")
        if self.format is None and not any(counts(info, None) for info in infos):
            others = [info.path for info in infos if counts(info, "any")]
            if others:
                _tell_of_others(str(self), others[0])
        return infos

    def decoded(self, info: FileInfo, schema: pa.Schema | None) -> DecodedRows:
        """The rows of a file; columns of the schema get its types, as far as the file's format leaves them open."""
        kind = self.format or format_of(info.name)
        if kind is None:
            raise OptionError(f"the extension of {info.path} in {self} does not tell its format: give format=")
        try:
            content = self.storage.read(info.path)
        except FileNotFoundError:
            return DecodedRows(pa.table({}), (BadRecord(info.path, "the file does not exist any more", ""),))
        try:
            content = uncompressed(info.path, content)
        except OSError as exc:
            return all_bad(info.path, exc)
        if self.unwraps and kind == "json":
            content = b"\n".join(unwrapped(content.splitlines()))
        if kind == "csv":
            return decode_csv(info.path, content, schema, self.csv)
        return decoder(kind)(info.path, content, schema)


@lru_cache(maxsize=1000)
def _tell_of_others(folder: str, path: str) -> None:
    """Once: a run that does not end looks again and again."""
    ends = ", ".join(end for _, its_ends in FORMATS.values() for end in its_ends)
    log.warning(
        "%s has no file with an extension that hoodie reads (%s), but others, such as %s: give format=",
        *(folder, ends, path),
    )


def counts(info: FileInfo, format: str | None) -> bool:
    """Whether a file is read at all, by its name and size."""
    is_hidden = any(part.startswith(_HIDDEN) for part in info.path.split("/"))
    has_rows = not info.is_folder and not is_hidden and info.size_bytes > 0
    return has_rows and (format is not None or format_of(info.name) is not None)


def read_files(
    files: Sequence[tuple[FolderSource, FileInfo]], schema: pa.Schema | None
) -> tuple[pa.Table, list[BadRecord]]:
    """The rows of files, each with the folder that it is in."""
    rows = pa.table({})
    bad: list[BadRecord] = []
    for folder, info in files:
        try:
            decoded = folder.decoded(info, schema)
            together = _together(rows, decoded.rows)
        except pa.ArrowException:  # a column has other values than in the files before: only these are bad
            decoded = folder.decoded(info, wider(schema or pa.schema([]), with_known_types(rows).schema))
            try:
                together = _together(rows, decoded.rows)
            except pa.ArrowException as exc:
                decoded = DecodedRows(pa.table({}))
                together = rows
                bad.append(not_fitting(info, exc))
        rows = together
        bad += decoded.bad
    return with_known_types(rows), bad


def not_fitting(info: FileInfo, error: pa.ArrowException) -> BadRecord:
    """All of a file."""
    return BadRecord(info.path, f"the columns do not fit those of the files before it: {error}", "")


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
        paths = after.more.get(_TAKEN, {})
        return int(after.text), paths if isinstance(paths, dict) else {}
    except ValueError as exc:
        raise OptionError(
            f"the checkpoint {after.text!r} is not the time of a file in milliseconds: another source has been written to this table "
            "under the same name; give name="
        ) from exc


def _behind(after: Checkpoint | None, files: Sequence[FileInfo], now_ms: int) -> Checkpoint:
    last_ms, before = _read_checkpoint(after)
    newest_ms = max(last_ms, min(now_ms, max(map(_ms, files))))
    noted = {**before, **{info.path: _ms(info) for info in files}}
    return Checkpoint(str(newest_ms), {_TAKEN: {p: ms for p, ms in noted.items() if ms > newest_ms - LATE_MS}})
