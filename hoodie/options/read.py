"""Options of a read: which query, and the instants in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hoodie.model.enums import ChangeFormat, QueryType
from hoodie.model.instant import InstantRange, InstantTime
from hoodie.options.option import Keys, fixed, group, key, listed, option, shared
from hoodie.options.values import boolean, choice, fields, one_of, text, whole
from hoodie.options.view import VIEW, ViewOptions

AS_OF = key("as.of.instant", text("an instant"), None)
"""Read the table as it was at this instant: 17 or 14 digits, `yyyy-MM-dd`, `yyyy-MM-dd HH:mm:ss[.SSS]`, ISO 8601, `2 hours ago`
(seconds to weeks), `today` or `yesterday`. Times without an offset are of the table's time zone."""
TIMESTAMP_AS_OF = key("timestampAsOf", text("a time"), None)
"""The same by Delta Lake's and Spark's name: a date or time without an offset is one of the session's time zone. Without `enable`
the session is not seen, and an offset is needed."""
MERGE_SCHEMA = fixed(
    "mergeSchema",
    "true",
    "new columns of the data are always added, and a query always has all columns of the table",
    "Delta Lake's and Spark's name for what is always done.",
)


@dataclass(frozen=True)
class StreamReadOptions:
    """Where a stream begins that has no checkpoint, and how much of it one batch takes."""

    start: str = option("hoodie.datasource.streaming.startOffset", text("earliest, latest or an instant"), "earliest")
    """Streaming source without a checkpoint: begin with all rows, with what is committed from now on, or after an instant."""
    max_commits: int | None = option("maxCommitsPerTrigger", whole(1), None)
    """Streaming source: commits that one batch takes at most. Unset: all there are."""
    max_bytes: int | None = option("maxBytesPerTrigger", whole(1), None)
    """Streaming source: bytes that the commits of one batch wrote at most; one commit is always taken. Unset: no bound."""


@dataclass(frozen=True)
class ReadOptions:
    """What a query reads: the arguments of `scan` and `changes`, parsed."""

    query: QueryType = option(
        "hoodie.datasource.query.type",
        choice({**{kind.value: kind for kind in QueryType}, "realtime": QueryType.SNAPSHOT}),
        "snapshot",
    )
    """Newest rows; base files only; or rows changed in a range of instants. `realtime` is the old name of snapshot."""
    begin: InstantTime | None = listed(key("hoodie.datasource.read.begin.instanttime", text("an instant"), None))
    """Incremental queries: rows changed after this instant (exclusive); `000` or `earliest`: from the beginning."""
    # An instant time; of versions 8 and 9 a completion time, and so is the end.
    end: InstantTime | None = listed(key("hoodie.datasource.read.end.instanttime", text("an instant"), None))
    """Incremental queries: rows changed up to this instant (inclusive). Unset: the latest."""
    as_of: InstantTime | None = listed(AS_OF, TIMESTAMP_AS_OF)
    """Inclusive."""
    changes: ChangeFormat = option("hoodie.datasource.query.incremental.format", one_of(ChangeFormat), "latest_state")
    """Incremental queries: the changed rows as they are now; or each change with the row before and after it, as JSON text (`cdc`:
    columns op, ts_ms, before, after) or as structs (`before_after`: op, instant, before, after)."""
    full_scan_fallback: bool = option("hoodie.datasource.read.incr.fallback.fulltablescan.enable", boolean(), False)
    """Incremental queries: read a range whose commits were archived, or whose files were cleaned, from the whole table.
    false: that is an error. If files of the range's end are gone, rows that changed after it are not in the result, as
    in Apache Hudi."""
    where: Any = shared(key("where", text("a condition"), None))
    """Rows to read, as SQL-like text."""
    # Or a list of conditions, or a pyarrow expression, as the door was given it; `read/where.py` knows them.
    columns: tuple[str, ...] | None = option("columns", fields(), None)
    """Columns to read. Unset: all."""
    stream: StreamReadOptions = group(StreamReadOptions)
    view: ViewOptions = VIEW
    ignored: tuple[str, ...] = ()
    """Options of Apache Hudi that are not needed here, as the user spelled them; the door warns once of all."""

    OTHERS: ClassVar[Keys] = (
        MERGE_SCHEMA,
        fixed(
            "hoodie.datasource.merge.type",
            "payload_combine",
            "logs are always merged; use query type read_optimized for base files only",
            "Whether a snapshot merges logs.",
        ),
    )

    @property
    def range(self) -> InstantRange:
        """The instants (begin, end] of an incremental query."""
        return InstantRange(self.begin, self.end)
