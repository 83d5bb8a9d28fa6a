"""The description of a base file for other formats, and whether their readers can read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie.errors import UnsupportedTableError
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.format.column_stats import has_bounds, ranges_of_footer
from hoodie.format.timestamp_labels import holds_mislabelled
from hoodie.format.variants import has_shredded, has_variant
from hoodie.keygen.virtual_columns import FolderValues
from hoodie.model.columns import Column
from hoodie.model.files import BaseFile
from hoodie.model.plans import ReadPlan, ReadTask
from hoodie.model.statistics import ValueRange
from hoodie.view.context import TableContext

_WIDER = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


class BaseFileFacts(NamedTuple):
    """A base file by its footer and its folder."""

    base: BaseFile
    rows: int
    ranges: Mapping[str, ValueRange]
    """Bounds of columns that the file stores in the table's type or as narrower integers, or lacks. Those of texts are cut."""
    values: Mapping[str, Any]
    """Of the columns that the folder says, as scalars of Arrow."""
    stored: pa.Schema
    """The columns in the file, also those that the table no longer has."""


class FileDescriber:
    """Describes a base file, which has the columns of the schema but those that the folder says."""

    def __init__(self, context: TableContext, schema: pa.Schema, folders: FolderValues | None) -> None:
        self._context = context
        self._folders = folders
        folder_names = set() if folders is None else {field.name for field in folders.fields}
        self._stored = pa.schema([field for field in schema if field.name not in folder_names])

    def __call__(self, base: BaseFile) -> BaseFileFacts:
        """Raises UnsupportedTableError for a file that others would read otherwise than the table does."""
        place = f"{self._context.storage.uri}/{base.path}"
        if not base.name.endswith(".parquet"):
            raise UnsupportedTableError(f"{place} is no Parquet file: files that other formats share are")
        if base.source is not None:
            raise UnsupportedTableError(
                f"{place} was bootstrapped: the columns of its rows are in {base.source.uri}, and no other format knows rows of two "
                "files. Rewrite it first, by clustering for instance"
            )
        with open_base_file(self._context.storage, base) as (file, footer):
            columns = file.schema_arrow
            stored = {field.name: field.type for field in columns}
            for field in self._stored:
                if field.name in stored and not _reads_as(stored[field.name], field.type):
                    raise UnsupportedTableError(
                        f"{place} has column {field.name!r} as {stored[field.name]}, and the table as {field.type}: readers of other "
                        "formats do not convert that. Rewrite older files, by clustering for instance"
                    )
            bounded = [
                field.with_type(kind)
                for field in self._stored
                if (kind := stored.get(field.name)) and has_bounds(kind) and _has_same_bounds(kind, field.type)
            ]
            ranges = ranges_of_footer(footer, bounded, cut=True)
            absent = ValueRange(nulls=footer.num_rows, values=False)
            ranges |= {field.name: absent for field in self._stored if field.name not in stored}
        values = {} if self._folders is None else self._folders.of(base.partition_path)
        return BaseFileFacts(base, footer.num_rows, ranges, values, columns)


def _reads_as(stored: Any, now: Any) -> bool:
    if holds_mislabelled(stored, now) or (has_variant(now) and has_shredded(stored)):
        return False
    types = pa.types
    if types.is_nested(now) or (types.is_timestamp(stored) and types.is_timestamp(now)):
        return bool(stored.id == now.id)
    return bool(stored == now or _WIDER.get(stored) == now)


def _has_same_bounds(stored: Any, now: Any) -> bool:
    return bool(stored == now or (pa.types.is_integer(stored) and pa.types.is_integer(now)))


def bases_of(plan: ReadPlan) -> Iterator[BaseFile]:
    """The base files that a query reads."""
    for task in plan.tasks:
        if isinstance(task, ReadTask) and task.slice.base is not None:
            yield task.slice.base


def refuse_renamed(plan: ReadPlan, bases: Iterable[BaseFile], table: str) -> None:
    """Raises UnsupportedTableError where a name means another column in a file than now: other formats find columns by names."""
    history = plan.context.history
    if history is None:
        return
    now = dict(_places(history.now))
    ids = {place: number for number, place in now.items()}
    for version in {
        id(columns): columns for base in bases if (columns := history.at(base.instant)) is not None
    }.values():
        for number, place in _places(version.columns):
            if now.get(number, place) != place or ids.get(place, number) != number:
                raise UnsupportedTableError(
                    f"column {now.get(number, place)!r} of table {table} has another name in older files, and other formats go by "
                    "names: rewrite these files, by clustering for instance"
                )


def _places(columns: Iterable[Column], above: str = "") -> Iterator[tuple[int, str]]:
    for column in columns:
        yield column.id, f"{above}{column.name}"
        yield from _places(column.parts, f"{above}{column.name}.")
