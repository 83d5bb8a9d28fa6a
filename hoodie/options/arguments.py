"""Arguments of the Python API -> the values that they stand for."""

from __future__ import annotations

from collections.abc import Sequence

from hoodie.errors import OptionError
from hoodie.model.enums import ChangeFormat, QueryType, TableType


def parse_names(value: str | Sequence[str]) -> tuple[str, ...]:
    """Column names: a list of them, or a text with commas between them."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value)


def parse_columns(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns of a query; None: all."""
    if isinstance(columns, str):
        raise OptionError(f"columns={columns!r} is a text: give a list of column names, [{columns!r}]")
    return None if columns is None else tuple(columns)


def parse_table_type(value: str | TableType) -> TableType:
    """A table type by its name, in any case."""
    try:
        return TableType(value.upper())
    except (AttributeError, ValueError) as exc:
        raise OptionError(f"table type {value!r} is none of {', '.join(TableType)}") from exc


def parse_images(images: str) -> ChangeFormat:
    """What `changes` gives of a change."""
    if images not in list(ChangeFormat):
        raise OptionError(f"images={images!r} is none of {', '.join(ChangeFormat)}")
    return ChangeFormat(images)


def parse_query(query: str) -> QueryType:
    """What `scan` reads."""
    if query not in (QueryType.SNAPSHOT, QueryType.READ_OPTIMIZED):
        raise OptionError(
            f"query {query!r} is neither 'snapshot' nor 'read_optimized'; for incremental pulls use changes()"
        )
    return QueryType(query)
