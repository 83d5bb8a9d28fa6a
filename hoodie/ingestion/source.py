"""The source seam: where rows come from. A new one is a file beside `folders.py` with a `Source`, and a row of `SOURCES` in
`sources.py`.

A source is asked for what comes after a checkpoint, and gives rows with the checkpoint behind them. It keeps nothing itself: the
checkpoint is in the metadata of the commit that has the rows, so both are there or neither is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from hoodie.engine.base import Records
from hoodie.filegroup.conform import with_plain_types


class Checkpoint(NamedTuple):
    """Up to where a source has been read."""

    text: str
    """As Apache Hudi's Streamer keeps it, which can go on from there."""
    more: Mapping[str, object] = {}
    """What we have to know beyond that, as JSON has it."""


class Bounds(NamedTuple):
    """How much one round takes at most; a source always takes one piece."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    """Of a source without files."""


NO_BOUNDS = Bounds()


class BadRecord(NamedTuple):
    """What cannot be a row."""

    origin: str
    """The file, or where else it comes from."""
    reason: str
    content: str


@dataclass(frozen=True)
class Round:
    """What a source gives at once."""

    rows: Records
    """Of a source a table of Arrow, or a reader of one."""
    checkpoint: Checkpoint
    bad: Sequence[BadRecord] = ()
    pieces: int = 0
    """Files, commits, or records of a topic."""
    bytes: int = 0
    waiting: int = 0
    """Pieces that the bounds left for later rounds."""
    whole: bool = False
    """These are all rows that the source has now."""
    repeats: bool = False
    """Some of them may be in the table already: written as they are, they would be there twice."""
    may_lack: bool = False
    """The rows are of files or records that each may lack columns of the table: these are null in them."""
    notes: Mapping[str, str] = field(default_factory=dict)
    committed: Callable[[], object] | None = None
    """Is called when the commit with these rows stands. It raises nothing: what fails there is a warning."""
    ended: Callable[[], object] | None = None
    """Is called when the round is over, whatever became of it."""

    def __post_init__(self) -> None:
        """Rows are filtered and joined, which Arrow does not do with views."""
        if isinstance(self.rows, pa.RecordBatchReader):
            schema = with_plain_types(self.rows.schema.empty_table()).schema
            if schema != self.rows.schema:
                object.__setattr__(self, "rows", pa.RecordBatchReader.from_batches(schema, _plain_batches(self.rows)))
        elif isinstance(self.rows, pa.Table):
            object.__setattr__(self, "rows", with_plain_types(self.rows))


def _plain_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield from with_plain_types(pa.Table.from_batches([batch])).to_batches()


class Source(Protocol):
    def __str__(self) -> str:
        """For messages."""
        ...

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        """The rows after the checkpoint (None: all rows), up to the bounds; None if there are no new ones.

        `schema`: the table's columns; a record that does not fit them is a bad one.
        """
        ...
