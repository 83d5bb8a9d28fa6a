"""What the files of a table say about its properties, when the properties themselves are lost.

Only what they say for sure: a column counts as the record key if it is the only one whose values are the keys of the rows that were
looked at. What was set once and left no trace, such as the ordering column, is not guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, HoodieError, UnsupportedTableError
from hoodie.format.avro_schema import record_names
from hoodie.format.commit_avro import decode_commit_file
from hoodie.format.layout import TIMELINES, Layout
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.meta_fields import META_COLUMNS, RECORD_KEY
from hoodie.model.names import (
    BOOTSTRAP_INDEX,
    BOOTSTRAP_INDEX_BY_FILE,
    HOODIE,
    is_partition_path,
    join,
    name_of,
    parse_base_file,
    parse_log_file,
)
from hoodie.model.payloads import CommitMetadata
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.timeline import WRITES
from hoodie.view.bootstrap import read_index
from hoodie.view.listing import StorageListing

T = TypeVar("T")

_SAMPLED_FILES = 5
_SAMPLED_ROWS = 10_000
_READ_COMMITS = 50
_OURS = "hoodie.python."


@dataclass(frozen=True)
class KnownValue:
    """A value, and where it was found; `value` None: it was not, and `source` says why."""

    value: str | None
    source: str


@dataclass(frozen=True)
class Evidence:
    """What is known of each property, by the name that `TableOptions` has for it."""

    name: KnownValue
    version: KnownValue
    table_type: KnownValue
    record_key: KnownValue
    partition: KnownValue
    hive_style: bool = False
    is_ours: bool = False
    """The newest commits were written by hoodie."""
    archive_folder: str | None = None
    change_logs: bool = False
    stores_meta: bool = True
    """Rows have their `_hoodie_` columns; also where no base file is left to say it."""
    columns: frozenset[str] = frozenset()
    """Of base files, but those of `_hoodie_`; none where no base file has others."""
    bootstrap: KnownValue | None = None
    """Where the files stand that the table was bootstrapped from; None: it was not."""


def gather(storage: Storage) -> Evidence:
    """Look at the timeline, the folders, and some rows. Lists the whole table."""
    instants_of = {layout: list(filter(None, map(layout.parse, storage.names(layout.folder)))) for layout in TIMELINES}
    layout = next((each for each in reversed(instants_of) if instants_of[each]), None)
    instants = [instant for each in instants_of.values() for instant in each]
    commits = [] if layout is None else list(_read_commits(storage, layout, instants_of[layout]))
    files = {
        path: [info for info in infos if not info.is_folder]
        for path, infos in StorageListing(storage).all_files().files.items()
        if is_partition_path(path) and any(_is_data(info.path) for info in infos)
    }
    rows = list(_samples(storage, files))
    hive, partition = _partition(rows, sorted(files))
    folders = {info.name for info in storage.list(HOODIE) if info.is_folder}
    return Evidence(
        name=_name(commits),
        version=_version(layout),
        table_type=_type(instants, files, commits),
        record_key=_record_key(rows),
        partition=partition,
        hive_style=hive,
        is_ours=any(key.startswith(_OURS) for metadata in commits for key in metadata.extra),
        archive_folder=next((each for each in ("history", "archived") if each in folders), None),
        change_logs=any(info.path.endswith(".cdc") for infos in files.values() for info in infos),
        stores_meta=_store_meta(storage, files),
        columns=_columns(storage, files),
        bootstrap=_bootstrap(storage),
    )


def _is_data(path: str) -> bool:
    name = name_of(path)
    return parse_base_file(name) is not None or parse_log_file(name) is not None


def _read_commits(storage: Storage, layout: Layout, instants: Iterable[Instant]) -> Iterator[CommitMetadata]:
    """The newest commits that decode, newest first."""
    commits = sorted((i for i in instants if i.is_completed and i.action in WRITES), key=lambda i: i.time, reverse=True)
    for instant in commits[:_READ_COMMITS]:
        path = join(layout.folder, layout.file_name(instant))
        with suppress(CorruptFileError, UnsupportedTableError, FileNotFoundError):
            yield decode_commit_file(storage.read(path), instant.action, path=path, time=instant.time)


def _name(commits: Iterable[CommitMetadata]) -> KnownValue:
    for metadata in commits:
        try:
            schema = json.loads(metadata.schema_json or "null")
        except ValueError:
            continue
        namespace = schema.get("namespace") if isinstance(schema, dict) else None
        if isinstance(namespace, str) and namespace.startswith("hoodie."):
            name = namespace.removeprefix("hoodie.")
            if "__" in name:
                return KnownValue(
                    None, f"the schema in the newest commit has {name}, where __ may stand for another character"
                )
            if record_names(name) == (schema.get("name"), namespace):
                return KnownValue(name, "the schema in the newest commit")
    return KnownValue(None, "no commit states a schema by which the table is named")


def _version(layout: Layout | None) -> KnownValue:
    if layout is None:
        return KnownValue(None, "there is no instant on the timeline")
    if " or " in layout.alike:
        return KnownValue(None, f"the timeline is that of version {layout.alike}, and looks the same in both")
    return KnownValue(layout.alike, "the form of the timeline")


def _type(
    instants: Sequence[Instant],
    files: Mapping[str, Sequence[FileInfo]],
    commits: Sequence[CommitMetadata],
) -> KnownValue:
    if any(i.action in (Action.DELTACOMMIT, Action.COMPACTION) for i in instants):
        return KnownValue("MERGE_ON_READ", "delta commits or compactions on the timeline")
    if any(parse_log_file(f.name) for infos in files.values() for f in infos):
        return KnownValue("MERGE_ON_READ", "log files")
    rows = {WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.BULK_INSERT, WriteOperation.DELETE}
    if any(i.action is Action.COMMIT for i in instants) and any(m.operation in rows for m in commits):
        return KnownValue("COPY_ON_WRITE", "commits of rows on the timeline, where merge-on-read has delta commits")
    return KnownValue(None, "no commit on the timeline shows it")


# -- columns -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    partition_path: str
    keys: pa.Array
    texts: dict[str, pa.Array] = field(default_factory=dict)
    """The values of each flat column, as the texts that keys and paths are made of."""


def _samples(storage: Storage, files: Mapping[str, Sequence[FileInfo]]) -> Iterator[_Sample]:
    """Rows of the newest base file of some partitions."""
    return _of_bases(files, partial(_sample, storage))


def _of_bases(files: Mapping[str, Sequence[FileInfo]], look: Callable[[str, str], T | None]) -> Iterator[T]:
    """What the newest base file of some partitions says; `look` takes the partition and the file."""
    sampled_files = 0
    for path in sorted(files):
        if sampled_files == _SAMPLED_FILES:
            return
        bases = [info.path for info in files[path] if parse_base_file(info.name)]
        for name in sorted(bases, reverse=True):
            with suppress(CorruptFileError, UnsupportedTableError):
                evidence = look(path, name)
                if evidence is not None:
                    sampled_files += 1
                    yield evidence
                    break


def _store_meta(storage: Storage, files: Mapping[str, Sequence[FileInfo]]) -> bool:
    """Whether a row has a key; a bulk_insert of Apache Hudi leaves empty texts where others leave nulls."""

    def look(_: str, path: str) -> bool | None:
        with storage.open_input(path) as source, open_parquet(source, path=path) as file:
            if RECORD_KEY not in file.schema_arrow.names or not file.metadata.num_rows:
                return None
            batch = next(iter(read_batches(file, [RECORD_KEY], batch_rows=_SAMPLED_ROWS, path=path)))
        return bool(pc.any(pc.greater(pc.fill_null(pc.binary_length(batch.column(0)), 0), 0)).as_py())

    answers = list(_of_bases(files, look))
    return any(answers) or not answers


def _columns(storage: Storage, files: Mapping[str, Sequence[FileInfo]]) -> frozenset[str]:
    def look(_: str, path: str) -> list[str]:
        with storage.open_input(path) as source, open_parquet(source, path=path) as file:
            return file.schema_arrow.names

    return frozenset(name for names in _of_bases(files, look) for name in names) - {*META_COLUMNS}


def _bootstrap(storage: Storage) -> KnownValue | None:
    there = [path for path in (BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE) if storage.exists(path)]
    for path in there:
        with suppress(HoodieError, IsADirectoryError):
            base = read_index(storage, path).base
            if base is not None:
                return KnownValue(base, path)
    return KnownValue(None, "the index of the bootstrap does not say it") if there else None


def _sample(storage: Storage, partition_path: str, path: str) -> _Sample | None:
    with storage.open_input(path) as source, open_parquet(source, path=path) as file:
        schema = file.schema_arrow
        flat = [each.name for each in schema if _is_flat(each.type) and each.name not in META_COLUMNS]
        if RECORD_KEY not in schema.names or file.metadata.num_rows == 0:
            return None
        batch = next(iter(read_batches(file, [RECORD_KEY, *flat], batch_rows=_SAMPLED_ROWS, path=path)))
    keys = batch.column(RECORD_KEY).cast(pa.string())
    if keys.null_count:
        return None
    return _Sample(partition_path, keys, {name: _texts(batch.column(name)) for name in flat})


def _is_flat(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_boolean(kind)
    )


def _texts(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _record_key(samples: Sequence[_Sample]) -> KnownValue:
    if not samples:
        return KnownValue(None, "there is no base file with record keys")
    rows = sum(len(sample.keys) for sample in samples)
    key_columns = _named_in_keys(samples)
    if key_columns is not None:
        return KnownValue(",".join(key_columns), f"the keys of {rows:,} rows, which name their columns")
    columns = _columns_equal(samples, lambda sample: sample.keys)
    if len(columns) == 1:
        return KnownValue(columns[0], f"the only column whose values are the keys of {rows:,} rows")
    if columns:
        return KnownValue(None, f"several columns have the values of the keys: {', '.join(columns)}")
    return KnownValue(
        None, "no column has the values of the keys; the table may have no key columns, then give an empty text"
    )


def _named_in_keys(samples: Sequence[_Sample]) -> list[str] | None:
    """The columns of composite keys, `a:1,b:2`, if they are what they seem to be in every row."""
    first = samples[0].keys[0].as_py()
    names = [part.partition(":")[0] for part in str(first).split(",")]
    if not all(":" in part for part in str(first).split(",")):
        return None
    for sample in samples:
        if not all(name in sample.texts for name in names):
            return None
        parts = [pc.binary_join_element_wise(pa.scalar(name), sample.texts[name], ":") for name in names]
        joined_keys = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")
        if not _all_equal(joined_keys, sample.keys):
            return None
    return names


def _columns_equal(samples: Sequence[_Sample], value_of: Callable[[_Sample], pa.Array | pa.Scalar]) -> list[str]:
    columns = set(samples[0].texts)
    for sample in samples:
        columns &= {name for name in columns & sample.texts.keys() if _all_equal(sample.texts[name], value_of(sample))}
    return sorted(columns)


def _all_equal(one: pa.Array, other: pa.Array | pa.Scalar) -> bool:
    return bool(pc.all(pc.fill_null(pc.equal(one, other), fill_value=False)).as_py())


def _level(sample: _Sample, *, number: int) -> pa.Scalar:
    return pa.scalar(sample.partition_path.split("/")[number])


def _partition(samples: Sequence[_Sample], paths: Sequence[str]) -> tuple[bool, KnownValue]:
    """Whether paths name their columns, and the partition columns."""
    if not paths:
        return False, KnownValue(None, "there is no data file")
    if list(paths) == [""]:
        return False, KnownValue("", "data files lie in the table's own folder")
    split = [path.split("/") for path in paths]
    depths = {len(parts) for parts in split}
    if len(depths) > 1 or "" in paths:
        return False, KnownValue(None, "folders with data files lie at several depths")
    levels = list(zip(*split, strict=True))
    prefixes = [
        {part.partition("=")[0] for part in level} if all("=" in p for p in level) else set() for level in levels
    ]
    if all(len(each) == 1 for each in prefixes):
        names = [next(iter(each)) for each in prefixes]
        return True, KnownValue(",".join(names), "the names of the folders")
    names = []
    for number in range(len(levels)):
        at = partial(_level, number=number)
        columns = _columns_equal(samples, at) if samples else []
        if len(columns) != 1:
            several = (
                f"several columns have its values: {', '.join(columns)}" if columns else "no column has its values"
            )
            return False, KnownValue(
                None, f"the folders do not name their columns, and of level {number + 1} {several}"
            )
        names += columns
    rows = sum(len(sample.keys) for sample in samples)
    return False, KnownValue(",".join(names), f"the only columns whose values are the folders of {rows:,} rows")
