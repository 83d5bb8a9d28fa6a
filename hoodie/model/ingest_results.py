"""What an ingestion did."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.model.results import format_count


@dataclass(frozen=True, repr=False)
class IngestRound:
    """One round: what was new in the source, up to its bounds."""

    number: int
    """From 0 on, of all rounds of this source into this table."""
    rows: int = 0
    """After the transformation; with a record key."""
    bad: int = 0
    """Records that could not be rows."""
    pieces: int = 0
    """Files that were read, ranges of another table, or records of a topic."""
    bytes: int = 0
    waiting: int = 0
    """Files, or records of a topic, that were left for the next round."""
    checkpoint: str = ""
    """Up to where the source is read by now."""
    instant: str | None = None
    """Of the commit. None in a dry run, if another process has written the same round, or while the table has no columns."""
    quarantine: str | None = None
    """The file in the table's folder that has the bad records."""
    dry_run: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        parts = [f"{format_count(self.rows, 'row')} of {format_count(self.pieces, 'piece')}"]
        parts += [f"{format_count(self.bad, 'bad record')} kept apart"] if self.bad else []
        parts += [f"{format_count(self.waiting, 'piece')} waiting"] if self.waiting else []
        state = "not written (dry run)" if self.dry_run else f"instant {self.instant}" if self.instant else "no commit"
        rate = f", {self.rows / self.seconds:,.0f} rows/s" if self.seconds else ""
        return f"round {self.number}: {', '.join(parts)}; {state}; {self.seconds:.2f} s{rate}"

    def __repr__(self) -> str:
        return f"<IngestRound {self}>"


@dataclass(frozen=True, repr=False)
class IngestResult:
    """What the rounds of one call did."""

    rounds: tuple[IngestRound, ...] = ()

    @property
    def rows(self) -> int:
        """How many were written."""
        return sum(each.rows for each in self.rounds)

    @property
    def bad(self) -> int:
        """How many records could not be rows."""
        return sum(each.bad for each in self.rounds)

    def __str__(self) -> str:
        return "\n".join(map(str, self.rounds)) or "nothing new"

    def __repr__(self) -> str:
        return f"<IngestResult {len(self.rounds)} rounds, {self.rows} rows, {self.bad} bad records>"
