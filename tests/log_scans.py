"""Logs made of blocks, scanned."""

import pyarrow as pa

from hoodie.filegroup.log_scan import read_log_records
from hoodie.format.log_block import rollback_block
from hoodie.model.enums import MergeMode
from hoodie.model.files import FileGroupId, FileSlice, LogFile
from hoodie.model.instant import VisibleInstants
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import MergeRule
from tests.log_blocks import t
from tests.memory_tables import FakeClock, new_storage

EVENT = MergeRule(MergeMode.EVENT_TIME_ORDERING, ("ts",))
COMMIT = MergeRule(MergeMode.COMMIT_TIME_ORDERING)
WANTED = pa.schema([(RECORD_KEY, pa.string()), ("ts", pa.int64()), ("val", pa.string())])


def undo(number, target):
    return rollback_block(instant=t(number), target=t(target))


def scan(
    *files,
    completed=range(1, 10),
    pending=(),
    rule=EVENT,
    committed=...,
    schema=WANTED,
    said=(),
    stands=(),
    sought=None,
    **ends,
):
    """Files are lists of blocks, in reading order; `committed`: their committed sizes, all of each by default; `said`: of each the
    (number of an instant, entries) that commits state; `stands`: version of a file that stands for others -> their versions.
    """
    storage = new_storage(FakeClock())
    logs = []
    for version, blocks in enumerate(files, 1):
        content = b"".join(blocks)
        name = f".f_{t(0)}.log.{version}_0-0-0"
        storage.create_new(name, content)
        size = len(content) if committed is ... else committed[version - 1]
        entries = tuple((t(number), count) for number, count in (said[version - 1] if said else ()))
        others = dict(stands).get(version)
        names = None if others is None else tuple(f".f_{t(0)}.log.{each}_0-0-0" for each in others)
        logs.append(LogFile("", "f", t(0), version, name, len(content), size, entries, names))
    piece = FileSlice(FileGroupId("", "f"), t(0), None, tuple(logs))
    visible = VisibleInstants(frozenset(map(t, completed)), frozenset(map(t, pending)), t(1), **ends)
    keys = None if sought is None else pa.array(sorted(sought), pa.string())
    return read_log_records(storage, piece, schema, rule=rule, visible=visible, keys=keys)
