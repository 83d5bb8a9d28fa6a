"""File names of the format: each `parse_` has its `format_` beside it; and commands as messages print them."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime, is_instant_time

HOODIE = ".hoodie"
PRIVATE = ".hoodie/.hoodie_py"
"""Our own folder in a table: Hudi's readers and writers leave it alone."""
STAGING = f"{PRIVATE}/staging"
ROW_COPIES = f"{PRIVATE}/rows"
"""What commits appended to logs once more, as Parquet files: `filegroup/row_copies.py`."""
SET_ASIDE = f"{HOODIE}/.hoodie_py_set_aside"
"""What repairs took out of the table: `repair/set_aside.py`. Beside the timeline: who lists that sees whether there is any."""
QUARANTINE = f"{PRIVATE}/quarantine"
"""Records that an ingestion could not load: `ingestion/run.py`."""
CONSUMERS = f"{PRIVATE}/consumers"
"""Up to where named consumers have read: `view/consumers.py`."""
INDEX_CHANGES = f"{PRIVATE}/index_changes"
"""Whose changes of an index outside of the table may not count: `txn/index_changes.py`."""
MARKERS = f"{HOODIE}/.temp"
HEARTBEATS = f"{HOODIE}/.heartbeat"
METADATA_TABLE = f"{HOODIE}/metadata"
PROPERTIES = f"{HOODIE}/hoodie.properties"
PROPERTIES_BACKUP = f"{HOODIE}/hoodie.properties.backup"
PARTITION_METADATA = ".hoodie_partition_metadata"
AUXILIARY = ".hoodie/.aux"
BOOTSTRAP_BEGUN = ".hoodie/.aux/.bootstrap/begun.json"
BOOTSTRAP_INDEX = (
    ".hoodie/.aux/.bootstrap/.partitions/00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
)
"""Which files have the columns of the base files of a bootstrap, by their partition, and"""
BOOTSTRAP_INDEX_BY_FILE = BOOTSTRAP_INDEX.replace("/.partitions/", "/.fileids/")
"""the same by their file groups."""
"""Ours: stands until a migration in place has made a table."""
PARQUET = ".parquet"
MAX_NAME = 1024
"""Longer names are nobody's; refused before any parsing."""
_REMEMBERED = 1 << 15
"""Names whose parts are kept: each operation lists the same folders several times."""


def join(*parts: str) -> str:
    """Relative path of the parts; empty ones (a non-partitioned table's partition path) leave no slash."""
    return "/".join(part for part in parts if part)


def name_of(path: str) -> str:
    """The last part of a relative path or of a full one."""
    return path.rpartition("/")[2]


def folder_of(path: str) -> str:
    """What stands before the last part of a path; empty for a file in the root of what the path is relative to."""
    return path.rpartition("/")[0]


def staging_folder(name: str) -> str:
    """A private folder of the table, for files of an instant that are not published yet or rows that are on their way."""
    return join(STAGING, name)


def heartbeat_path(instant_time: str) -> str:
    """The file that the writer of a pending instant touches while it lives; Hudi's, and under its name."""
    return join(HEARTBEATS, instant_time)


_NO_NAMES = frozenset(("", ".", ".."))


def is_inside(path: str, *, may_be_root: bool = False) -> bool:
    """Whether a relative path stays below the folder it is relative to: no empty part, no `.`, no `..`, no NUL."""
    if path == "":
        return may_be_root
    return "\0" not in path and _NO_NAMES.isdisjoint(path.split("/"))


def is_partition_path(path: str) -> bool:
    """Whether data files may lie in the folder: inside the table, not in its `.hoodie`; "" is the table's own folder.

    What metadata and plans name is held against this before anything is read or deleted there.
    """
    return is_inside(path, may_be_root=True) and path.partition("/")[0] != HOODIE


def new_file_id() -> str:
    """A fresh file group id, `{uuid}-0`; never one that begins with 8 decimal digits, as those of buckets do."""
    while (fresh := str(uuid.uuid4()))[:8].isdigit():
        pass
    return f"{fresh}-0"


class WriteToken(NamedTuple):
    """`{task partition}-{stage}-{attempt}`: makes the file names of every attempt of every task different."""

    task: int
    stage: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.task}-{self.stage}-{self.attempt}"


def parse_write_token(text: str) -> WriteToken | None:
    parts = text.split("-")
    if len(parts) != len(WriteToken._fields) or not all(p.isascii() and p.isdigit() for p in parts):
        return None
    return WriteToken(*map(int, parts))


class BaseFileName(NamedTuple):
    """`{fileId}_{writeToken}_{instant}.parquet`"""

    file_id: str
    write_token: str
    instant: InstantTime


def format_base_file(name: BaseFileName, extension: str = PARQUET) -> str:
    return f"{name.file_id}_{name.write_token}_{name.instant}{extension}"


@lru_cache(_REMEMBERED)
def parse_base_file(name: str) -> BaseFileName | None:
    """None for anything that is no base file's name."""
    if len(name) > MAX_NAME or name.startswith(".") or "/" in name:
        return None
    stem, dot, extension = name.rpartition(".")
    parts = stem.split("_")
    if not dot or not extension.isalnum() or len(parts) != len(BaseFileName._fields) or not is_instant_time(parts[2]):
        return None
    return BaseFileName(parts[0], parts[1], InstantTime(parts[2])) if parts[0] and parts[1] else None


class LogFileName(NamedTuple):
    """`.{fileId}_{base instant}.log.{version}_{writeToken}`; `suffix` is `.cdc` for change logs, else empty."""

    file_id: str
    base_instant: InstantTime
    version: int
    write_token: str
    suffix: str = ""


def format_log_file(name: LogFileName) -> str:
    token = f"_{name.write_token}" if name.write_token else ""
    return f".{name.file_id}_{name.base_instant}.log.{name.version}{token}{name.suffix}"


@lru_cache(_REMEMBERED)
def parse_log_file(name: str) -> LogFileName | None:
    """None for anything that is no log file's name."""
    if len(name) > MAX_NAME or not name.startswith(".") or "/" in name:
        return None
    stem, separator, rest = name[1:].partition(".log.")
    file_id, underscore, instant = stem.partition("_")
    if not separator or not underscore or not file_id or not is_instant_time(instant):
        return None
    suffix = ".cdc" if rest.endswith(".cdc") else ""
    version, _, token = rest.removesuffix(".cdc").partition("_")
    if not (version.isascii() and version.isdigit()) or (token and parse_write_token(token) is None):
        return None
    return LogFileName(file_id, InstantTime(instant), int(version), token, suffix)


@lru_cache(_REMEMBERED)
def log_sort_key(name: LogFileName) -> tuple[InstantTime, int, tuple[int, ...], str]:
    """Order in which log files are read: instant, version, write token part by part, suffix."""
    token = parse_write_token(name.write_token)
    return (name.base_instant, name.version, tuple(token) if token else (), name.suffix)


COMPLETES_AS: Mapping[Action, Action] = MappingProxyType(
    {
        Action.COMPACTION: Action.COMMIT,
        Action.LOGCOMPACTION: Action.DELTACOMMIT,
        Action.CLUSTERING: Action.REPLACECOMMIT,
    }
)
"""Actions whose completed file has another action in its name."""


def format_instant_file(time: str, action: Action, state: State, completion: str | None = None) -> str:
    """Timeline file name. A completed one has its completion time in layout 2 (table versions 8 and 9), none in layout 1."""
    if state is State.COMPLETED:
        times = f"{time}_{completion}" if completion else time
        return f"{times}.{COMPLETES_AS.get(action, action)}"
    if action is Action.COMMIT and state is State.INFLIGHT:
        return f"{time}.inflight"
    return f"{time}.{action}.{state}"


@lru_cache(_REMEMBERED)
def parse_instant_file(name: str, layout: int = 1) -> Instant | None:
    """None for anything that is no timeline file of that layout (also temporary `<name>.<uuid>` files).

    Layout 1: `T.commit`; layout 2: `T_C.commit` with the completion time C. Both: `T.commit.requested`, `T.inflight`. A name that no
    writer of the layout gives, such as `T.commit.inflight`, is none: Apache Hudi passes it over, and the file could not be removed.
    """
    if len(name) > MAX_NAME:
        return None
    times, _, rest = name.partition(".")
    time, underscore, completion = times.partition("_")
    if not is_instant_time(time) or (underscore and not is_instant_time(completion)):
        return None
    if rest == State.INFLIGHT and not underscore:
        return Instant(InstantTime(time), Action.COMMIT, State.INFLIGHT)
    action, dot, state = rest.partition(".")
    if action not in set(Action) or (dot and state not in (State.REQUESTED, State.INFLIGHT)):
        return None
    if bool(underscore) is not (layout > 1 and not dot):
        return None
    reached = State(state) if state else State.COMPLETED
    if (reached, action) in _UNUSED or (layout == 1 and action == Action.CLUSTERING):
        return None
    return Instant(InstantTime(time), Action(action), reached, InstantTime(completion) if completion else None)


_UNUSED = frozenset(
    {
        (State.INFLIGHT, Action.COMMIT),
        *((State.COMPLETED, action) for action in COMPLETES_AS),
    }
)
"""States of actions whose files have other names, or that there are none of."""


def format_row_copy(instant_time: str, number: int) -> str:
    """Name of a row copy of an instant, in `ROW_COPIES`."""
    return f"{instant_time}_{number}{PARQUET}"


def parse_row_copy(name: str) -> InstantTime | None:
    """The instant time in the name of a row copy; None for other names."""
    time, _, number = name.removesuffix(PARQUET).partition("_")
    is_copy = name.endswith(PARQUET) and is_instant_time(time) and number.isdigit()
    return InstantTime(time) if is_copy else None


def marker_path(time: str, partition_path: str, file_name: str, kind: str) -> str:
    """Direct marker of a data file that instant `time` is about to write; `kind` is CREATE, MERGE or APPEND."""
    return join(MARKERS, time, partition_path, f"{file_name}.marker.{kind}")


def hoodie_command(*words: str) -> str:
    """`hoodie WORDS` between backticks; each word is one argument."""
    return f"`{shlex.join(('hoodie', *words))}`"


def doctor_of(path: str) -> str:
    """Advice for a damaged file of a table; `path`: the file's, with that of the table."""
    return f"{hoodie_command('doctor', path.partition('/.hoodie/')[0])} says how to repair the table"


def restored(text: str) -> str:
    """What is wrong with a file, with the advice to restore it, if it has no advice yet."""
    return text if "restore" in text.lower() else f"{text}; restore the file from a copy"
