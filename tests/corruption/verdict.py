"""What may become of a query on a damaged table, and which bytes no checksum covers."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from hoodie.errors import CorruptFileError, HoodieError, SchemaError, UnsupportedTableError
from hoodie.format.log_block import MAGIC, LogBlock, scan_blocks
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.names import name_of
from tests.corruption.damage import Answer, Damage, Source


class Verdict(StrEnum):
    RIGHT = "the right rows"
    REPORTED = "one error that names a file"
    CHANGED = "a changed value, in bytes that no checksum covers"
    OTHER_RECORD = "another key or another winner, in bytes of a log record that no checksum covers"
    UNNAMED = "FAULT: an error that names no file"
    FOREIGN = "FAULT: an error of another library"
    LOST = "FAULT: rows lost, doubled or changed in silence"


FAULTS = (Verdict.UNNAMED, Verdict.FOREIGN, Verdict.LOST)


class Uncovered(NamedTuple):
    """Bytes that the format protects by nothing: from `start` up to, not including, `end`."""

    start: int
    end: int
    what: str
    decides_records: bool
    """Whether they say which record is meant, or which of two wins: then another row may come out, or one more."""


def uncovered(path: str, data: bytes) -> Iterator[Uncovered]:
    """The list of docs/FORMAT.md, "What no checksum covers", for one file."""
    name = name_of(path)
    if name == "hoodie.properties":
        yield Uncovered(0, len(data), "table properties but name and database", True)
    elif ".log." in name:
        for block in scan_blocks(data):
            if isinstance(block, LogBlock):
                yield from _uncovered_in(block, data)
    elif name.endswith(".parquet"):
        yield Uncovered(0, len(data), "Parquet page headers and footer", False)
    elif name.endswith("commit") and (found := re.search(rb'"schema"|\x0cschema', data)):  # in JSON, in Avro
        at = found.start()
        yield Uncovered(at, len(data), "the table's schema in commit metadata", False)


def _uncovered_in(block: LogBlock, data: bytes) -> Iterator[Uncovered]:
    end = block.offset + block.size_bytes
    if block.kind in (BlockKind.AVRO_DATA, BlockKind.DELETE):
        start = data.index(bytes(block.content), block.offset + len(MAGIC)) if block.content else end
        yield Uncovered(start, start + len(block.content), f"content of {block.kind.name}", True)
    if block.kind is BlockKind.PARQUET_DATA:
        start = data.index(bytes(block.content), block.offset + len(MAGIC))
        yield Uncovered(start, start + len(block.content), "Parquet page headers and footer of a block", False)
    schema = block.header.get(HeaderKey.SCHEMA, "").encode()
    if schema:
        start = data.index(schema, block.offset)
        # The name of an ordering column in it decides winners.
        yield Uncovered(start, start + len(schema), "schema in a block's header", True)


def judge(source: Source, damage: Damage, good: Answer, found: Answer) -> Verdict:
    if found.error is not None:
        return _judge_error(source, damage, found.error)
    if found.rows == good.rows:
        return Verdict.RIGHT
    hit = [
        region
        for region in uncovered(damage.path, source.files[damage.path])
        if region.start <= damage.offset < region.end and (damage.byte is not None or not region.decides_records)
    ]
    if any(region.decides_records for region in hit):
        return Verdict.CHANGED if found.keys == good.keys else Verdict.OTHER_RECORD
    return Verdict.CHANGED if hit and found.keys == good.keys else Verdict.LOST


def _judge_error(source: Source, damage: Damage, error: Exception) -> Verdict:
    text = str(error)
    if not isinstance(error, HoodieError):
        return Verdict.FOREIGN
    if text.count("\n") >= 8:
        return Verdict.UNNAMED
    if damage.path.endswith("hoodie.properties"):  # what they say is about the table, and the table is named
        return Verdict.REPORTED if f"memory://{source.name}" in text else Verdict.UNNAMED
    # A message may name a completed instant of versions 8 and 9 without its completion time.
    names = {re.sub(r"^(\d+)_\d+\.", r"\1.", name_of(path)) for path in source.files} | {
        name_of(path) for path in source.files
    }
    if not damage.path.endswith((".parquet", "commit")) and f"memory://{source.name}" in text and ".hoodie/" in text:
        return Verdict.REPORTED  # a manifest that names a file that is not there
    right_kind = isinstance(error, CorruptFileError | UnsupportedTableError | SchemaError)
    return Verdict.REPORTED if right_kind and any(name in text for name in names) else Verdict.UNNAMED


Verdicts = Mapping[str, Verdict]


def worst(verdicts: Verdicts) -> Verdict:
    order = list(Verdict)
    return max(verdicts.values(), key=order.index)
