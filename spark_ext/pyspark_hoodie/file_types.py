"""The types that columns have in the files of a table: a Parquet scan of Spark's has one schema for all of its files.

Spark 3.5 reads no file with a narrower type than it is told, Spark 4 some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.format.avro_schema import record_type
from hoodie.format.parquet_file import stored_schema
from hoodie.format.parquet_footer import SOUND_FLOATS, has_floats
from hoodie.format.timestamp_labels import holds_mislabelled, is_mislabelled
from hoodie.model.files import BaseFile
from hoodie.model.plans import ReadPlan, ReadTask
from hoodie.read.deletion_vectors import ScanFile
from hoodie.storage.base import Storage
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext
from pyspark_hoodie.schema import spark_schema

Narrow = Mapping[str, pa.DataType]
"""Columns that a file holds in an older type than the table's."""


class FileTypes:
    """Of the columns that a plan needs, by the instant that wrote a file: as its commit states them, else as footers do."""

    def __init__(self, context: TableContext, plan: ReadPlan, tasks: Sequence[ReadTask]) -> None:
        needed = {*plan.output.names, *(plan.context.filter.columns if plan.context.filter else ())}
        self._table = {field.name: field.type for field in plan.context.schema if field.name in needed}
        instants = {instant for task in tasks for instant in _instants(task)}
        types_of, self._sound = _stated_by(context, instants)
        unknown = [t.slice.base for t in tasks if t.slice.base is not None and t.slice.base.instant not in types_of]
        footers = LocalEngine().run(partial(_footer_types, context.storage), unknown, label="footers")
        self._by_instant = {instant: self._narrow(types) for instant, types in types_of.items()}
        self._by_path = {base.path: self._narrow(types) for base, types in zip(unknown, footers, strict=True)}

    def suit(self, task: ReadTask) -> bool:
        """Whether Spark's own casts make the table's values of all that is in the slice's files."""
        base = task.slice.base
        types_of_files = [] if base is None else [self._of(base.path, base.instant)]
        for log in task.slice.logs:
            for instant, _ in log.committed_entries:
                if instant not in self._by_instant:
                    return False
                types_of_files.append(self._by_instant[instant])
        return not any(
            _needs_care(kind, self._table[name]) for narrow in types_of_files for name, kind in narrow.items()
        )

    def are_sound(self, files: Iterable[ScanFile]) -> bool:
        """Whether what the files say of floating columns holds for Spark (`hoodie/format/parquet_footer.py`)."""
        return all(file.instant in self._sound for file in files)

    def groups(self, files: Iterable[ScanFile]) -> list[tuple[Narrow, list[ScanFile]]]:
        """Files of one scan each."""
        by_text: dict[str, tuple[Narrow, list[ScanFile]]] = {}
        for file in files:
            narrow = self._of(file.path, file.instant)
            by_text.setdefault(str(narrow), (narrow, []))[1].append(file)
        return list(by_text.values())

    def _of(self, path: str, instant: str) -> Narrow:
        narrow = self._by_instant.get(instant)
        return self._by_path[path] if narrow is None else narrow

    def _narrow(self, types: Mapping[str, pa.DataType]) -> Narrow:
        return {
            name: types[name] for name, kind in self._table.items() if name in types and not _same(types[name], kind)
        }


def _instants(task: ReadTask) -> Iterable[str]:
    if task.slice.base is not None:
        yield task.slice.base.instant
    for log in task.slice.logs:
        for instant, _ in log.committed_entries:
            yield instant


def _needs_care(stored: pa.DataType, now: pa.DataType) -> bool:
    """Spark casts structs by position, and floats to the nearest double, where Apache Hudi takes their decimal digits.

    Timestamps under a wrong label are those of the label to it.
    """
    if pa.types.is_nested(now) or is_mislabelled(stored, now):
        return True
    return pa.types.is_float32(stored) and not pa.types.is_string(now)


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    def name(kind: pa.DataType) -> Any:
        return spark_schema(pa.schema([("value", kind)])).fields[0].dataType

    return one == other or (not holds_mislabelled(one, other) and bool(name(one) == name(other)))


def _stated_by(context: TableContext, instants: set[str]) -> tuple[dict[str, dict[str, pa.DataType]], set[str]]:
    """What commit metadata that is still there states of the files of an instant: their column types, and which are sound."""
    timeline: Timeline = context.active.load()
    types_of: dict[str, dict[str, pa.DataType]] = {}
    sound: set[str] = set()
    for instant in timeline.commits:
        if instant.time in instants:
            commit = context.active.read_commit(instant)
            if commit.schema_json:
                types = {field.name: field.type for field in record_type(commit.schema_json).arrow_fields}
                types_of[instant.time] = types
                if SOUND_FLOATS in commit.extra or not any(map(has_floats, types.values())):
                    sound.add(instant.time)
    return types_of, sound


def _footer_types(storage: Storage, base: BaseFile) -> dict[str, pa.DataType]:
    with open_base_file(storage, base) as (file, _):
        try:
            return {field.name: field.type for field in stored_schema(file)}
        except pa.ArrowInvalid as exc:
            raise CorruptFileError(f"{base.path} of table {storage.uri} has no readable schema: {exc}") from exc
