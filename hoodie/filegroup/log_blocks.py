"""Log files of a slice -> the data and delete blocks that count, in the order in which they are merged.

The order of steps is Apache Hudi's: format notes, "Scanning and merging". Unlike Hudi, a damaged block inside the size
that commit metadata states is an error and not skipped: only what lies behind committed sizes is a torn tail.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import hoodie.filegroup
from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.filegroup.missing_file import missing_file_error
from hoodie.format.log_block import HEAD_BYTES, MAGIC, LogBlock, decode_block, scan_blocks, whole_size
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.files import LogFile
from hoodie.model.instant import VisibleInstants, is_instant_time
from hoodie.model.names import restored
from hoodie.storage.base import Storage

if TYPE_CHECKING:
    import hoodie.filegroup.hfile_blocks

DATA = (BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA)
_ROLLBACK = "0"

Blocks = list[tuple[LogBlock, str]]
"""Blocks with the path of their file."""


class LiveBlocks(NamedTuple):
    blocks: Blocks
    stood_for: frozenset[str]
    """Instants whose blocks were left out, because those of a log compaction stand for them, or because they are such blocks and
    nothing that they stand for is seen."""
    skipped: tuple[LogFile, ...]
    """Log files that were not opened for it."""
    odd: tuple[str, ...]
    """Paths of log files that hold more than live blocks, and those that are stood for."""


def live_blocks(
    storage: Storage,
    logs: tuple[LogFile, ...],
    visible: VisibleInstants,
    *,
    at_once: bool = True,
    data: Collection[BlockKind] = DATA,
    mapped: bool = False,
) -> LiveBlocks:
    """Data and delete blocks that count, grouped by instant in order of first appearance.

    Args:
        data: kinds of data blocks that the caller can merge.
        at_once: with their contents; else without, for `loaded_block`: logs may be larger than memory.
        mapped: contents of large files on a local disk are maps of these, for who reads little of them.

    Raises:
        CorruptFileError: a log file is missing, or a block of a completed commit is damaged.
        UnsupportedTableError: a kind of block that this release cannot merge.
    """
    groups: dict[str, Blocks] = {}
    counted = counted_logs(logs, visible)
    holds: dict[str, set[str]] = {}
    odd = set()
    read = storage.each(lambda log: _blocks_of(storage, log, visible, at_once=at_once, mapped=mapped), counted.logs)
    for log, of_log in zip(counted.logs, read, strict=True):
        if of_log is None:
            odd.add(log.path)
            continue
        holds[log.path] = set()
        for block in of_log:
            instant = block.header.get(HeaderKey.INSTANT_TIME, "")
            if not is_instant_time(instant):
                raise _damaged(storage, log, block, f"instant {instant!r}")
            if block.kind is BlockKind.COMMAND:
                target = block.header.get(HeaderKey.TARGET_INSTANT_TIME, "")
                if block.header.get(HeaderKey.COMMAND_BLOCK_TYPE) != _ROLLBACK or not is_instant_time(target):
                    raise _damaged(storage, log, block, "an unknown command")
                groups.pop(target, None)
                odd.add(log.path)
                continue
            if BlockKind.HFILE_DATA not in data:
                block = _mergeable(block, f"{log.path} of table {storage.uri}")
            if block.kind not in (*data, BlockKind.DELETE):
                raise UnsupportedTableError(
                    f"{log.path} of table {storage.uri} holds a {block.kind.name} block, which this release cannot merge"
                )
            holds[log.path].add(instant)
            if not visible.sees(instant):
                continue
            if log.committed_bytes is None and instant in visible.completed:
                continue  # left over from a dead attempt: the commit does not name this file
            groups.setdefault(instant, []).append((block, log.path))
    by_instant, stood_for = _log_compacted(groups, counted.by)
    block_instants = by_instant.keys() | stood_for
    odd.update(path for path, instants in holds.items() if not instants <= block_instants)
    blocks = [block for of_instant in by_instant.values() for block in of_instant]
    skipped = frozenset(instant for log in counted.skipped for instant, _ in log.committed_entries)
    return LiveBlocks(blocks, stood_for | skipped, counted.skipped, tuple(sorted(odd)))


class CountedLogs(NamedTuple):
    logs: tuple[LogFile, ...]
    """In the order in which they count."""
    skipped: tuple[LogFile, ...] = ()
    """Log files that need not be opened: what the first of the others was written for says the same."""
    by: str | None = None
    """The instant of the log compaction that wrote that one."""


def counted_logs(logs: tuple[LogFile, ...], visible: VisibleInstants) -> CountedLogs:
    """The logs of a slice that have to be looked into, where all of it is read.

    The newest log compaction that is seen has merged all logs that were there before: what it wrote comes first, and the files
    that it stands for are skipped. A file that got a newer block since, as Apache Hudi's writers append them, is none of those. A
    pull reads the older files: a row that lost against one from before the range is pulled all the same.
    """
    if visible.since is not None or visible.only is not None:
        return CountedLogs(logs)
    for merged in reversed(logs):
        if not merged.stands_for or len(merged.committed_entries) != 1:
            continue
        ((time, _),) = merged.committed_entries
        if not visible.sees(time):
            continue
        names = frozenset(merged.stands_for)
        skipped = [
            log for log in logs if log.name in names and all(instant < time for instant, _ in log.committed_entries)
        ]
        skipped_names = frozenset(log.name for log in skipped)
        rest = [log for log in logs if log is not merged and log.name not in skipped_names]
        return CountedLogs((merged, *rest), tuple(skipped), time)
    return CountedLogs(logs)


def changes_nothing(storage: Storage, log: LogFile, visible: VisibleInstants, among: frozenset[str]) -> bool:
    """Whether a slice is the same without this log file: nothing in it is visible, and it takes back none of these instants.

    Only small files are looked into, such as those that a rollback writes; False for others.
    """
    if log.size_bytes > _SMALL or any(visible.sees(instant) for instant, _ in log.committed_entries):
        return False  # what a visible commit wrote here is looked for, and missed where it cannot be found
    for block in _blocks_of(storage, log, visible) or ():
        instant = block.header.get(HeaderKey.INSTANT_TIME, "")
        if block.kind is BlockKind.COMMAND:
            if block.header.get(HeaderKey.TARGET_INSTANT_TIME, "") in among:
                return False
        elif visible.sees(instant) and not (log.committed_bytes is None and instant in visible.completed):
            return False
    return True


_SMALL = 64 * 1024
_LARGE = 256 * 1024
"""Files that take longer to read than to map."""


def _log_compacted(groups: dict[str, Blocks], first: str | None) -> tuple[dict[str, Blocks], frozenset[str]]:
    """The groups, with those that a log compaction merged replaced by its blocks, at the place of the newest of them; and the instants
    of what was left out.

    A log compaction writes the merged blocks of several instants as blocks of its own one, which list these instants.
    Blocks of its inputs say the same once more and are left out. Where no input is seen, its blocks are not either: an
    incremental read does not take what a log compaction wrote anew for a change (golden table v6_log_compaction).

    Args:
        first: a log compaction of whose inputs files were skipped: its blocks count where they stand, before all others.
    """
    replaced_by: dict[str, str] = {}
    for instant, blocks in reversed(groups.items()):
        inputs = blocks[0][0].header.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        if inputs is not None:
            final = replaced_by.get(instant, instant)
            replaced_by.update(dict.fromkeys((text.strip() for text in inputs.split(",")), final))
    if not replaced_by:
        return groups, frozenset()
    outputs = set(replaced_by.values())
    newest = {replaced_by[instant]: instant for instant in groups if instant in replaced_by and instant not in outputs}
    if first is not None and first in outputs:
        newest[first] = first
    placed: dict[str, Blocks] = {}
    for instant, blocks in groups.items():
        if instant not in replaced_by and instant not in outputs:
            placed[instant] = blocks
        elif newest.get(replaced_by.get(instant, instant)) == instant:
            output = replaced_by.get(instant, instant)
            placed[output] = groups[output]
    return placed, frozenset(instant for instant in (*groups, *replaced_by) if instant not in placed)


def _damaged(storage: Storage, log: LogFile, block: LogBlock, what: str) -> CorruptFileError:
    return CorruptFileError(
        f"{log.path} of table {storage.uri}: the {block.kind.name} block at byte {block.offset} has {what}; "
        "the file is damaged, restore it from a copy"
    )


def _mergeable(block: LogBlock, where: str) -> LogBlock:
    """The block; one of an HFile, which few tables have, as one of Avro data."""
    return hoodie.filegroup.hfile_blocks.as_avro_block(block, where) if block.kind is BlockKind.HFILE_DATA else block


def loaded_block(storage: Storage, block: LogBlock, path: str) -> LogBlock:
    """A block with its content."""
    try:
        data = storage.read(path, block.offset, block.size_bytes)
        return _mergeable(decode_block(data, 0)[0], f"{path} of table {storage.uri}")
    except FileNotFoundError as exc:
        raise missing_file_error(storage, path) from exc
    except CorruptFileError as exc:
        raise CorruptFileError(restored(f"{path} of table {storage.uri}: {exc}")) from exc


def _blocks_of(
    storage: Storage, log: LogFile, visible: VisibleInstants, *, at_once: bool = True, mapped: bool = False
) -> Sequence[LogBlock] | None:
    """None: a writer holds the file open, so that it cannot be read, and nothing in it is of a commit."""
    try:
        return list(_whole_blocks(storage, log, mapped=mapped) if at_once else _block_heads(storage, log))
    except OSError as exc:
        if exc.errno == errno.EBUSY and _is_of_no_commit(log, visible):
            return None
        raise


def _is_of_no_commit(log: LogFile, visible: VisibleInstants) -> bool:
    """No active commit wrote it, and no archived one can have: all that is in it is younger than its slice."""
    start = visible.start
    return not log.committed_bytes and start is not None and log.base_instant >= start


def _block_heads(storage: Storage, log: LogFile) -> Iterator[LogBlock]:
    """The blocks of a log without their contents; one at a time is in memory, unless the file is damaged."""
    try:
        size = storage.stat(log.path).size_bytes
        heads, offset = [], 0
        while size - offset >= len(MAGIC):
            length = whole_size(storage.read(log.path, offset, HEAD_BYTES))
            data = storage.read(log.path, offset, length)
            block, after = decode_block(data, 0)
            heads.append(replace(block, content=b"", offset=offset))
            del data, block  # before the next one is read
            offset += after
    except FileNotFoundError as exc:
        raise missing_file_error(storage, log.path) from exc
    except CorruptFileError:
        heads = [replace(block, content=b"") for block in _whole_blocks(storage, log)]
    yield from heads


def _mapped(storage: Storage, log: LogFile) -> bytes | memoryview:
    if storage.can.local_root is None:
        return storage.read(log.path)
    with storage.open_input(log.path) as file:
        return memoryview(file.read_buffer())


def _whole_blocks(storage: Storage, log: LogFile, *, mapped: bool = False) -> Iterator[LogBlock]:
    where = f"{log.path} of table {storage.uri}"
    try:
        data = _mapped(storage, log) if mapped and log.size_bytes >= _LARGE else storage.read(log.path)
    except FileNotFoundError as exc:
        raise missing_file_error(storage, log.path) from exc
    if not data and not log.committed_bytes:
        return
    committed = log.committed_bytes or 0
    try:
        for block in scan_blocks(data):
            if isinstance(block, LogBlock):
                yield block
            elif block.offset < committed:
                raise CorruptFileError(
                    f"{where} is damaged at byte {block.offset} ({block.reason}), inside the {committed} bytes that its commit "
                    "wrote; restore the file from a copy"
                )
    except CorruptFileError as exc:
        raise exc if log.path in str(exc) else CorruptFileError(f"{where}: {exc}") from exc
