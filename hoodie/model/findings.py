"""Findings of checks of a table, and results of repairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hoodie.errors import harmless
from hoodie.model.html import html_rows
from hoodie.model.results import BriefRepr, format_count, format_size

YOUNG_S = 3600.0
"""A repair leaves younger files alone, whatever the timeline says."""


class Level(StrEnum):
    """How bad a finding is."""

    DAMAGE = "damage"
    """Something is missing or cannot be read."""
    NEGLECT = "neglect"
    """All rows are there; the table costs more than it has to, or will."""
    NOTE = "note"
    """Worth knowing; nothing is wrong."""


class RepairKind(StrEnum):
    """What can be repaired."""

    PARTITION_METADATA = "partition-metadata"
    STRAY_FILES = "stray-files"
    PLANS = "plans"
    METADATA_TABLE = "metadata-table"
    BOOTSTRAP_INDEX = "bootstrap-index"
    PROPERTIES = "properties"
    """By `repair_properties` only."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found."""

    kind: str
    level: Level
    what: str
    """A sentence for people."""
    path: str | None = None
    """Relative to the table."""
    mend: str | None = None
    """What to do about it."""

    def __str__(self) -> str:
        return harmless(f"{self.what}. {self.mend}" if self.mend else self.what)


@dataclass(frozen=True)
class Repair:
    """One file that a repair mends."""

    kind: RepairKind
    path: str
    """Relative to the table."""
    why: str
    size_bytes: int = 0
    is_young: bool = False
    """It was left alone because it may just be written."""
    is_read: bool = False
    """Readers take it for data, though it is none."""
    restores: str = ""
    """What has to come from a copy of the table, where nothing else helps: a path, or words."""
    missing: str = ""
    """Path of a file that is gone, though the file at `path` names it."""


@dataclass(frozen=True, repr=False)
class RepairResult(BriefRepr):
    """What a repair did, or in a dry run would do."""

    repairs: tuple[Repair, ...] = ()
    left: tuple[Repair, ...] = ()
    """Faulty files that were left alone, with the reason."""
    dry_run: bool = True
    set_aside: str | None = None
    """Under this name the files that were moved away can be put back; None: nothing was moved."""

    def of(self, kind: RepairKind) -> tuple[Repair, ...]:
        """The repairs of one kind."""
        return tuple(each for each in self.repairs if each.kind is kind)

    def __str__(self) -> str:
        if not self.repairs:
            return "repair: nothing to do" + self._left_alone()
        size = sum(each.size_bytes for each in self.of(RepairKind.STRAY_FILES))
        parts = []
        for kind, noun in (
            (RepairKind.PARTITION_METADATA, "partition metadata file"),
            (RepairKind.STRAY_FILES, "stray file"),
            (RepairKind.PLANS, "damaged plan"),
            (RepairKind.METADATA_TABLE, "metadata table"),
            (RepairKind.BOOTSTRAP_INDEX, "file of the bootstrap index"),
        ):
            count = len(self.of(kind))
            if count:
                parts.append(
                    format_count(count, noun) + (f" ({format_size(size)})" if kind is RepairKind.STRAY_FILES else "")
                )
        what = ", ".join(parts)
        if self.dry_run:
            return f"repair, dry run: would mend {what}{self._left_alone()}"
        aside = f"; moved away as {self.set_aside}" if self.set_aside else ""
        return f"repair: {what}{aside}{self._left_alone()}"

    def _left_alone(self) -> str:
        return f"; {format_count(len(self.left), 'file')} left alone" if self.left else ""

    def _repr_html_(self) -> str:
        rows = [(each.kind.value, each.path, each.why) for each in self.repairs]
        return html_rows(str(self), ("repair", "file", "why"), rows)


@dataclass(frozen=True)
class PropertySource:
    """One property of a table, and from where it is known."""

    key: str
    value: str
    source: str


@dataclass(frozen=True, repr=False)
class PropertiesRepair(BriefRepr):
    """What is wrong with a table's properties, and what they would be."""

    damage: str | None
    """None: nothing is wrong with the file."""
    properties: tuple[PropertySource, ...] = ()
    unknown: tuple[str, ...] = ()
    """What only the user can say, each a sentence that begins with the property."""
    dry_run: bool = True
    set_aside: str | None = None
    """Where the damaged file was put."""

    def __str__(self) -> str:
        if self.damage is None:
            return "the properties are whole: nothing to repair"
        if self.unknown:
            return f"{self.damage}; not known: {', '.join(each.partition(':')[0] for each in self.unknown)}"
        would = "would be" if self.dry_run else "were"
        return f"{self.damage}; {len(self.properties)} properties {would} put back"


@dataclass(frozen=True, repr=False)
class ValidationResult(BriefRepr):
    """What was checked, and the problems."""

    problems: tuple[Finding, ...] = ()
    commits: int = 0
    partitions: int = 0
    file_groups: int = 0
    size_bytes: int = 0
    rows: int | None = None
    """Rows that were read; None: not asked for."""

    @property
    def is_valid(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.is_valid

    def __str__(self) -> str:
        read = "" if self.rows is None else f", {format_count(self.rows, 'row')}"
        scope = f"{format_count(self.file_groups, 'file group')}{read}"
        if self.is_valid:
            return f"valid: {scope}"
        return f"{format_count(len(self.problems), 'problem')} in {scope}: {self.problems[0]}"


@dataclass(frozen=True, repr=False)
class Diagnosis(BriefRepr):
    """All findings on a table, worst first."""

    findings: tuple[Finding, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """Whether nothing needs a repair; notes do not count."""
        return all(each.level is Level.NOTE for each in self.findings)

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Diagnosis:
        """With these findings, in their order."""
        order = list(Level)
        return cls(tuple(sorted(findings, key=lambda each: order.index(each.level))))

    def __str__(self) -> str:
        if not self.findings:
            return "healthy"
        return "\n".join(f"{each.level.value}: {each}" for each in self.findings)
