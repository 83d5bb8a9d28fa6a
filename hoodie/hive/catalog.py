"""The catalog seam: what a registration asks of a catalog of tables and tells it, and a table as it is registered there.

A catalog is used for one registration, with a bound on the time of all of it. What goes wrong is a `HiveSyncError`, and never has a
table's parameters in its text: they may hold secrets of the user's. A new catalog is a file beside `metastore.py` and `glue.py`, a
word in `options/values.CatalogKind` and a row of `CATALOGS` in `sync.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from hoodie.hive.views import Description

T = TypeVar("T")
CURE = "the commit stands, and the next registration makes up for it"
MADE_BY = "automatically created by hoodie"
EXTERNAL = "EXTERNAL_TABLE"


class Column(NamedTuple):
    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class Registration:
    """A table as a catalog has it, or is to have it."""

    database: str
    name: str
    columns: tuple[Column, ...]
    """Without partition columns."""
    partition_columns: tuple[Column, ...]
    location: str | None
    input_format: str | None
    output_format: str | None
    serde: str | None
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]
    owner: str = field(default="", compare=False)
    source: Any = field(default=None, compare=False, repr=False)
    """What the catalog itself gave: what is not named here stays as it is there. None: it is not registered yet."""

    @classmethod
    def of(cls, described: Description) -> Registration:
        return cls(
            described.database,
            described.view.name,
            columns_of(described),
            tuple(Column(name, kind) for name, kind in described.partition_columns),
            described.location,
            described.input_format,
            described.output_format,
            described.serde,
            dict(described.serde_properties),
            dict(described.properties),
            described.owner,
        )

    def at(self, place: str) -> Registration:
        """The same elsewhere: what a partition of it is like."""
        return replace(self, location=place)


def columns_of(described: Description, comments: Mapping[str, str] | None = None) -> tuple[Column, ...]:
    """The columns. `comments`: the registered ones, by names in lower case; they stay where the table has no comment."""
    old_comments = comments or {}
    return tuple(
        Column(c.name, c.hive_type, c.comment or old_comments.get(c.name.lower(), "")) for c in described.columns
    )


Values = tuple[str, ...]
Places = Sequence[tuple[Values, str]]
"""Values of a partition, and where it is."""


class Catalog(Protocol):
    """With `reads_only` nothing is told to it."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def properties(self) -> Mapping[str, str]:
        """What every table gets that is registered there."""
        ...

    def has_database(self, name: str) -> bool: ...
    def table(self, database: str, name: str) -> Registration | None:
        """The table as the catalog has it, None where it has none."""
        ...

    def partitions(self, table: Registration, values: Sequence[Values] | None, at_once: int) -> dict[Values, str]:
        """Values -> place of the partitions that are registered: all, or those of these values."""
        ...

    def make_database(self, name: str) -> None: ...
    def make_table(self, table: Registration) -> bool:
        """False where another program was faster."""
        ...

    def drop_registration(self, database: str, name: str) -> None:
        """The files stay."""
        ...

    def change_table(self, table: Registration, *, cascade: bool = False) -> None:
        """`cascade`: registered partitions get the columns, too."""
        ...

    def add_partitions(self, table: Registration, places: Places, at_once: int) -> None:
        """Those that are there already stay as they are."""
        ...

    def update_partitions(self, table: Registration, places: Places, at_once: int) -> None: ...
    def drop_partitions(self, table: Registration, values: Sequence[Values]) -> None:
        """The files stay."""
        ...


def batches(items: Sequence[T], at_once: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), at_once):
        yield items[start : start + at_once]
