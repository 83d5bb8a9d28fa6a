"""The source that a user's arguments name; another table is one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import pyarrow as pa

from hoodie.consumers import safe_end
from hoodie.errors import InstantNotFoundError, OptionError
from hoodie.ingestion.csv_settings import parse_csv_settings
from hoodie.ingestion.database_connections import is_database
from hoodie.ingestion.database_options import database_source
from hoodie.ingestion.databases import DatabaseSource
from hoodie.ingestion.folders import FolderSource
from hoodie.ingestion.formats import FORMATS
from hoodie.ingestion.kafka import KafkaSource
from hoodie.ingestion.kafka_settings import SCHEME, VALUES, parse_settings
from hoodie.ingestion.queues import QueueSource, is_queue, queue_source
from hoodie.ingestion.source import Bounds, Checkpoint, Round, Source
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable, is_table, open_table

_INSTANT_LENGTHS = (14, 17)


@dataclass(frozen=True)
class TableSource:
    """`Source` of the latest state of changed rows; deletes are not among them. Bounds do not cut a range."""

    table: HoodieTable

    def __str__(self) -> str:
        return f"the table {self.table.uri}"

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        end = safe_end(self.table._context)
        since = after.text if after is not None else None
        if since is not None and not (since.isdecimal() and len(since) in _INSTANT_LENGTHS):
            raise OptionError(
                f"the checkpoint {since!r} is no instant of {self}: another source has been written to the table under the same name; "
                "give name="
            )
        if end is None or (since is not None and end <= since):
            return None
        try:
            rows = self.table.changes(since=since, until=end).to_reader()
        except InstantNotFoundError as exc:
            raise InstantNotFoundError(
                f"{self} cannot be read from its checkpoint on ({exc}). To read all of its rows again, give another name="
            ) from exc
        return Round(rows, Checkpoint(str(end)), pieces=1)


def address_of(source: Source) -> str:
    """Where a folder or a table is; empty for what a checkpoint itself tells apart."""
    if isinstance(source, FolderSource):
        return source.storage.uri
    return source.table.uri if isinstance(source, TableSource) else ""


Make = Callable[[str, str, Mapping[str, str] | None], Source]
"""By the format, the address, and how its storage is reached."""


def _folder(kind: str, address: str, reached_by: Mapping[str, str] | None) -> Source:
    csv, options = parse_csv_settings(reached_by)
    return FolderSource(open_storage(address, options or None), kind, csv=csv)


def _table(kind: str, address: str, reached_by: Mapping[str, str] | None) -> Source:
    return TableSource(open_table(address, storage_options=reached_by))


SOURCES: Mapping[str, Make] = {**dict.fromkeys(FORMATS, _folder), "hudi": _table, "database": database_source}
"""By the word for the format."""
KINDS = sorted({*SOURCES, *VALUES})
"""All words for formats; those of a topic are its own."""


_OF_FILES, _OF_RECORDS = ("max_files", "max_bytes"), ("max_rows", "max_bytes")
_LIMITS: Mapping[type, Sequence[str]] = {
    FolderSource: _OF_FILES,
    QueueSource: _OF_FILES,
    KafkaSource: _OF_RECORDS,
    DatabaseSource: ("max_rows",),
    TableSource: (),
}


def require_limits(source: Source, given: Iterable[str]) -> None:
    """Raises OptionError for a limit of rounds that the source does not have; those of the user's own are not known."""
    limits = _LIMITS.get(type(source))
    if limits is None:
        return
    for name in given:
        if name not in limits:
            raise OptionError(f"{name} does not limit a round of {source}; {' or '.join(limits) or 'nothing'} does")


def events_of(source: Source) -> Source:
    """The same, where JSON with schemas of Kafka Connect is understood."""
    if isinstance(source, FolderSource | QueueSource):
        return replace(source, unwraps=True)
    if isinstance(source, KafkaSource):
        return source.unwrapping()
    return source


def source_of(
    address: str | PathLike[str] | HoodieTable | Source, kind: str | None, reached_by: Mapping[str, str] | None
) -> Source:
    """The source of an address, which may be a table's; one of the user's own is taken as it is.

    Raises:
        OptionError: there is no such format.
    """
    if isinstance(address, HoodieTable):
        return TableSource(address)
    if not isinstance(address, str | PathLike):
        if not callable(getattr(address, "next", None)):
            raise OptionError(
                f"source={address!r:.80} is no source: give a folder, a table or an address; rows are written by `upsert` of a table"
            )
        return address
    if kind is None and is_database(str(address)):
        kind = "database"
    if str(address).startswith(f"{SCHEME}://"):
        return KafkaSource(parse_settings(str(address), kind, reached_by))
    if is_queue(str(address)) and (kind is None or kind in FORMATS):
        return queue_source(str(address), kind, reached_by)
    if kind is None:
        csv, options = parse_csv_settings(reached_by)
        if is_table(address, storage_options=options or None):
            return _table("hudi", str(address), options or None)
        return FolderSource(open_storage(address, options or None), csv=csv)
    if kind not in SOURCES:
        raise OptionError(f"format={kind!r} is not one of {', '.join(SOURCES)}")
    return SOURCES[kind](kind, str(address), reached_by)
