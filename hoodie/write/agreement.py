"""Whether a table's properties fit its files: with wrong properties a write would store keys twice, or rows in wrong folders.

The columns that the properties name must be among the table's, and make the keys and paths of rows that are stored. A thousand rows of
one file of the newest commits are looked at, once for a process and the properties it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import hoodie.view
from hoodie.errors import CorruptFileError, HoodieError, UnsupportedTableError
from hoodie.filegroup.log_scan import rows_elsewhere
from hoodie.filegroup.slice_reader import stored_batches
from hoodie.format.layout import LAYOUTS
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.keygen.generator import KeyGenerator, key_generator
from hoodie.model.enums import MergeMode, TableType
from hoodie.model.files import BaseFile
from hoodie.model.instant import BOOTSTRAP_INSTANTS, InstantTime
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.names import BOOTSTRAP_INDEX, HOODIE, PROPERTIES, folder_of, join, name_of, parse_base_file
from hoodie.options.merging import EVENT_TIME_STRATEGY, MODE, STRATEGY
from hoodie.options.table import (
    BOOTSTRAP_BASE,
    DROP_COLUMNS,
    KEYGEN_CLASS,
    KEYGEN_TYPE,
    PROPERTY_OF,
    TableConfig,
    flag_text,
    infer_key_generator,
)
from hoodie.options.values import KEY_GENERATOR_TYPES, KeyGeneratorType, key_generator_class
from hoodie.storage.cache import Kind
from hoodie.txn.critical import require_same_table
from hoodie.view.context import Snapshot, TableContext, load_config

if TYPE_CHECKING:
    import hoodie.view.bootstrap

_AGREED: Kind[bool] = Kind("properties that fit the table")
_COMMITS = 20
_ROWS = 1000
_OTHERS = 3
"""So many other files are asked where one contradicts the properties."""
_SHOWN = 10


class Contradiction(NamedTuple):
    """A property that the table's files speak against."""

    key: str
    """The property."""
    what: str
    is_certain: bool = True
    """False: the properties say nothing, as those of old writers."""
    value: str | None = None
    """What the property has to say, where the rows show it."""
    file: str | None = None
    """The base file whose rows say so, where those of others do not: then it is the file that is damaged."""


def require_agreement(context: TableContext) -> None:
    """Refuse to write by properties that contradict the table.

    Raises:
        CorruptFileError: names the first contradiction. TableChangedError: it is not the table that was opened.
        UnsupportedTableError: its folders have names that are not made here.
    """
    key = (context.storage.identity, frozenset(context.config.raw.items()))
    if context.cache.find(_AGREED, key):
        return
    snapshot = context.snapshot()
    if not snapshot.timeline.commits:
        return
    for contradiction in contradictions(context, snapshot):
        require_same_table(
            context.config, load_config(context.storage)
        )  # others may have made it anew since it was opened
        if contradiction.file is not None:
            raise CorruptFileError(
                f"{contradiction.file} of table {context.storage.uri} has rows of other keys than its columns make: "
                f"{contradiction.what}. Nothing was written; restore the file from a copy"
            )
        raise CorruptFileError(
            f"{context.storage.uri}/{PROPERTIES} contradicts the table: {contradiction.what}. Nothing was written; "
            f"{contradiction.key} has to say what it said when the table was made"
        )
    _refuse_times_of_sql(context, snapshot)
    context.cache.put(_AGREED, key, True, 0)


def contradictions(context: TableContext, snapshot: Snapshot) -> Iterator[Contradiction]:
    """What of the properties the table speaks against."""
    yield from misnamed_folders(context, snapshot)
    yield from _lost_bootstrap(context, snapshot)
    config, schema = context.config, snapshot.schema
    roles = {"record key": config.record_key_fields}
    if not (config.drops_partition_columns or config.bootstrap_base):  # folders may say it, until rows are written
        roles["partition"] = config.partition_fields
    if config.merge_mode is MergeMode.EVENT_TIME_ORDERING:
        roles["ordering"] = config.ordering_fields
    lacking = set()
    for role, fields in roles.items():
        for name in fields if schema is not None else ():
            if schema is not None and not {name, name.partition(".")[0]} & {*schema.names}:
                lacking.add(role)
                columns = ", ".join(schema.names[:_SHOWN]) + (", …" if len(schema.names) > _SHOWN else "")
                yield Contradiction(_PROPERTY[role], f"{role} column {name!r} is none of its columns ({columns})")
    if config.table_type is TableType.COPY_ON_WRITE and _has_logs(snapshot):
        yield Contradiction(
            PROPERTY_OF["table_type"], "its type is COPY_ON_WRITE, and the newest commits wrote log files"
        )
    if config.raw.get(KEYGEN_TYPE, "").upper() not in {"", *KEY_GENERATOR_TYPES}:
        yield Contradiction(
            KEYGEN_TYPE,
            f"{KEYGEN_TYPE} is {config.raw[KEYGEN_TYPE]}, which is no key generator of Apache Hudi",
            value=infer_key_generator(config.record_key_fields, config.partition_fields).value,
        )
    yield from _lost_ordering(config)
    if {"record key", "partition"} <= lacking:
        return
    samples = _samples(context, snapshot)
    for sample in islice(samples, 1):
        by_rows = [each for each in _by_rows(context, sample) if _ROLE.get(each.key) not in lacking]
        others = list(islice(samples, _OTHERS)) if by_rows else []
        for each in by_rows:
            agree = any(each.key not in {it.key for it in _by_rows(context, other)} for other in others)
            # With a global index rows stay in their folder when their partition columns change.
            if not agree or _ROLE.get(each.key) == "record key":
                yield each._replace(file=sample.path if agree else None)


def _lost_ordering(config: TableConfig) -> Iterator[Contradiction]:
    """A table that is said to merge by ordering values, of which no column is named."""
    stated = {MODE: MergeMode.EVENT_TIME_ORDERING.value, STRATEGY: EVENT_TIME_STRATEGY}
    said = next((key for key, value in stated.items() if config.raw.get(key) == value), None)
    if said is not None and config.merge_mode is MergeMode.EVENT_TIME_ORDERING and not config.ordering_fields:
        yield Contradiction(
            _PROPERTY["ordering"], f"there is no ordering column, and {said} says that the table merges by one"
        )


def misnamed_folders(context: TableContext, snapshot: Snapshot) -> Iterator[Contradiction]:
    """Folders of the timeline that the properties name, which have nothing, while those that all writers name have it."""
    config, names = context.config, context.storage.names
    timeline, history = config.layout.timeline, config.layout.history
    usual = join(HOODIE, timeline.default)
    if (
        not snapshot.timeline.instants
        and usual != config.timeline_folder
        and any(map(config.layout.parse, names(usual)))
    ):
        what = f"{timeline.property} names {config.timeline_folder}, which has no instant, and {usual} has the timeline"
        yield Contradiction(timeline.property, what, value=timeline.default)
    for name in {each.history.default for each in LAYOUTS.values()}:
        usual = join(config.timeline_folder, name)
        is_there = usual != config.history_folder and context.active.may_have(usual) and names(usual)
        if is_there and not names(config.history_folder):
            what = f"{history.property} names {config.history_folder}, which is empty, and {usual} has the archive"
            yield Contradiction(history.property, what, value=name)


def _lost_bootstrap(context: TableContext, snapshot: Snapshot) -> Iterator[Contradiction]:
    """A bootstrapped table whose properties do not say so: Apache Hudi would read rows without columns. In an object store it is
    looked for as long as its first commit is on the timeline.
    """
    storage, is_stated = context.storage, bool(context.config.bootstrap_base)
    may_be = storage.can.local_root is not None or BOOTSTRAP_INSTANTS[0] in snapshot.timeline.completed_times
    if not is_stated and may_be and storage.exists(BOOTSTRAP_INDEX):
        try:
            base = hoodie.view.bootstrap.read_index(storage, BOOTSTRAP_INDEX).base
        except HoodieError:
            base = None  # another finding
        what = f"there is no {BOOTSTRAP_BASE}, and {BOOTSTRAP_INDEX} is that of a bootstrap"
        yield Contradiction(BOOTSTRAP_BASE, what, value=base)


_PROPERTY = {
    "record key": PROPERTY_OF["record_key_fields"],
    "partition": PROPERTY_OF["partition_fields"],
    "ordering": PROPERTY_OF["ordering_fields"],
}
_ROLE = {key: role for role, key in _PROPERTY.items()}


def _has_logs(snapshot: Snapshot) -> bool:
    """Whether the newest commit appended to logs: a table becomes one of another type after all were compacted."""
    newest = [snapshot.active.read_commit(each) for each in snapshot.timeline.commits[-1:]]
    return any(stat.log_version is not None for commit in newest for stat in commit.stats())


def _refuse_times_of_sql(context: TableContext, snapshot: Snapshot) -> None:
    """Apache Hudi's SQL names folders of a TIMESTAMP by the time. Its other writers make numbers of it, as those here do, and each key
    of a batch would be stored again.
    """
    columns = snapshot.schema or pa.schema([])
    found = {name: columns.field(name).type for name in context.config.partition_fields if name in columns.names}
    times = [name for name, kind in found.items() if pa.types.is_timestamp(kind)]
    sample = next(_samples(context, snapshot), None) if times else None
    if sample is None or not _TIME_OF_DAY.search(sample.folder):
        return
    paths = _values(lambda rows: key_generator(context.config).partitions(rows), sample.rows)
    if paths is not None and not _TIME_OF_DAY.search(paths[0].as_py()):
        raise UnsupportedTableError(
            f"table {context.storage.uri} has folders such as {sample.folder!r}, which Apache Hudi's SQL makes of TIMESTAMP column "
            f"{times[0]!r}; rows that are written here would go to {paths[0].as_py()!r}, and their keys be stored twice. Nothing was "
            "written: write this table with Apache Hudi's SQL, or copy its rows to a table that is partitioned by a date"
        )


_TIME_OF_DAY = re.compile(r"\d{4}-\d\d-\d\d \d\d(:|%3A)\d\d(:|%3A)\d\d")


class _Sample(NamedTuple):
    path: str
    folder: str
    rows: pa.Table


def _samples(context: TableContext, snapshot: Snapshot) -> Iterator[_Sample]:
    """Rows of base files that the newest commits wrote, or wrote onto."""
    if not context.config.populate_meta_fields:
        return
    tried = set()
    for instant in islice(reversed(snapshot.timeline.commits), _COMMITS):
        for stat in snapshot.active.read_commit(instant).stats():
            path = stat.path if stat.log_version is None else join(stat.partition_path, stat.base_file or "")
            if path in tried or parse_base_file(name_of(path)) is None:
                continue
            tried.add(path)
            rows = _first_rows(context, path)
            if rows is not None and _has_keys(rows) and _lies_right(rows, stat.partition_path):
                yield _Sample(path, stat.partition_path, rows)
            break


def _has_keys(rows: pa.Table) -> bool:
    """Whether there are rows, and each has a key; rows without one say that the file is damaged, not the properties."""
    return bool(rows.num_rows) and not rows.column(RECORD_KEY).null_count


def _lies_right(rows: pa.Table, folder: str) -> bool:
    """Whether the rows themselves say so; else the file is that of another folder, which says nothing of properties."""
    return PARTITION_PATH not in rows.column_names or not rows_elsewhere(rows.column(PARTITION_PATH), folder)


def _first_rows(context: TableContext, path: str) -> pa.Table | None:
    """The keys of a file's first rows, and the columns that make them; None where the file is gone, or damaged."""
    config = context.config
    columns = {name.partition(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    base = parse_base_file(name_of(path))
    try:
        if base is not None and base.instant == BOOTSTRAP_INSTANTS[0]:
            return _first_completed_rows(context, path, base.file_id)
        with context.storage.open_input(path) as source, open_parquet(source, path=path) as file:
            names = [n for n in file.schema_arrow.names if n in {RECORD_KEY, PARTITION_PATH, *columns}]
            if RECORD_KEY not in names:
                return None
            batch = next(iter(read_batches(file, names, batch_rows=_ROWS, path=path)), None)
            return None if batch is None else pa.Table.from_batches([batch]).slice(0, _ROWS)
    except (FileNotFoundError, IsADirectoryError, HoodieError):
        return None  # whoever reads the file reports it


def _first_completed_rows(context: TableContext, path: str, file_id: str) -> pa.Table | None:
    """Those of a skeleton; how its folder is called, the source settled."""
    source = context.skeletons().source(folder_of(path), file_id)
    if source is None:
        return None
    names = dict.fromkeys(name.partition(".")[0] for name in context.config.record_key_fields)
    base = BaseFile(folder_of(path), file_id, InstantTime(BOOTSTRAP_INSTANTS[0]), name_of(path), 0, source)
    with context.storage.open_input(path) as file_input, open_parquet(file_input, path=path) as file:
        batches = stored_batches(
            context.storage, file, base, pa.schema([]), [RECORD_KEY, *names], batch_rows=_ROWS, path=path
        )
        batch = next(batches, None)
        return None if batch is None else pa.Table.from_batches([batch]).slice(0, _ROWS)


def _by_rows(context: TableContext, sample: _Sample) -> Iterator[Contradiction]:
    """Compare stored keys and paths with those that the properties make of the rows."""
    config, rows = context.config, sample.rows
    try:
        generator = key_generator(config)
    except HoodieError:  # the options of a write say the rest of it
        yield from _no_times(config, sample)
        return
    names_generator = any(config.raw.get(key) for key in (KEYGEN_TYPE, KEYGEN_CLASS))
    if config.generates_keys and names_generator:
        stored = rows.column(RECORD_KEY)
        generated = pc.match_substring_regex(
            stored, r"^(\d{14,17}_\d+|[0-9a-f]{32})_\d+$"
        )  # the second: of SQL statements
        if not pc.any(generated).as_py():
            yield Contradiction(
                _PROPERTY["record key"],
                f"no column makes the record key, and the rows of {sample.path} have keys of columns, such as {stored[0].as_py()!r}",
            )
    if not config.generates_keys and _are_plain(rows, config.record_key_fields):
        stored = rows.column(RECORD_KEY).cast(pa.string())
        bare = _bare(stored, config.record_key_fields[0])
        values = _values(generator.keys, rows)
        single = len(config.record_key_fields) == 1
        if (
            values is not None
            and not _most_equal(values, stored)
            and not (single and _most_equal_bare(values, bare, generator))
        ):
            yield Contradiction(
                _PROPERTY["record key"],
                f"{', '.join(config.record_key_fields)} makes other record keys than those of the rows in {sample.path}, such as "
                f"{values[0].as_py()!r} for {stored[0].as_py()!r}",
            )
    if config.drops_partition_columns and config.partition_fields and not config.bootstrap_base:
        there_are = [name for name in config.partition_fields if name in rows.column_names]
        if there_are:
            what = f"{DROP_COLUMNS} is true, and {sample.path} has column {there_are[0]!r}"
            yield Contradiction(DROP_COLUMNS, what, value="false")
    dated = generator.timestamps is not None
    there = all(name in rows.column_names for name in config.partition_fields)
    if there and not dated and not config.drops_partition_columns:
        paths = _values(generator.partitions, rows)
        plain = _are_plain(rows, config.partition_fields)
        if paths is None or not (_all_in(paths, sample.folder) if plain else len(pc.unique(paths)) == 1):
            others = {
                "hive_style": replace(generator, hive_style=not generator.hive_style),
                "url_encode": replace(generator, url_encode=not generator.url_encode),
            }
            for flag, other in others.items():
                values = _values(other.partitions, rows)
                if values is not None and _all_in(values, sample.folder):
                    key, value = PROPERTY_OF[flag], flag_text(getattr(other, flag))
                    flag_value = flag_text(getattr(generator, flag))
                    yield Contradiction(
                        key,
                        f"{key} is {flag_value}, and the rows of {sample.path} lie in {sample.folder!r}",
                        value=value,
                    )
                    return
            if config.keygen is KeyGeneratorType.NON_PARTITION:
                key = KEYGEN_TYPE if config.raw.get(KEYGEN_TYPE) else KEYGEN_CLASS
                kind = infer_key_generator(config.record_key_fields, config.partition_fields)
                value = kind.value if key == KEYGEN_TYPE else key_generator_class(kind)
                what = f"{key} is that of tables without partitions, and the rows of {sample.path} lie in {sample.folder!r}"
                yield Contradiction(key, what, value=value)
                return
            columns = ", ".join(config.partition_fields) or "no partition column"
            made_path = "" if paths is None else f", such as {paths[0].as_py()!r}"
            yield Contradiction(
                _PROPERTY["partition"],
                f"{columns} puts the rows of {sample.path} into other folders than {sample.folder!r}{made_path}",
                is_certain=bool(config.partition_fields) or names_generator,
            )


def _no_times(config: TableConfig, sample: _Sample) -> Iterator[Contradiction]:
    """A key generator of times for folders that are the values of their columns, and no times: these have digits."""
    if config.raw.get(KEYGEN_TYPE, "").upper() != KeyGeneratorType.TIMESTAMP.value or re.search(r"\d", sample.folder):
        return
    kind = infer_key_generator(config.record_key_fields, config.partition_fields)
    plain = key_generator(replace(config, keygen=kind))
    paths = _values(plain.partitions, sample.rows)
    if paths is not None and _all_in(paths, sample.folder):
        what = f"{KEYGEN_TYPE} is that of times, and the rows of {sample.path} lie in {sample.folder!r}"
        yield Contradiction(KEYGEN_TYPE, what, value=kind.value)


def generator_of_stored_keys(config: TableConfig) -> KeyGenerator | None:
    """What makes the keys of a table's rows of their columns; None where nothing can be said of them."""
    if not config.populate_meta_fields or config.generates_keys:
        return None
    try:
        return key_generator(config)
    except HoodieError:
        return None


def count_strange_keys(generator: KeyGenerator, rows: pa.Table) -> int:
    """How many rows have another key than their columns make. Columns of which some writers make other texts say nothing.

    Partition columns are not asked: with a global index a row stays in its folder when they change.
    """
    fields = generator.record_key_fields
    if not _are_texts(rows, fields):
        return 0
    is_null = reduce(pc.or_, (pc.is_null(rows.column(name)) for name in fields))
    whole = rows.filter(pc.invert(is_null))
    single = len(fields) == 1
    missing = rows.num_rows - whole.num_rows if single else 0
    values, stored = _values(generator.keys, whole), whole.column(RECORD_KEY)
    if values is None:
        return missing
    if single:
        values, stored = _bare(values, fields[0]), _bare(stored, fields[0])
    return missing + (pc.sum(pc.not_equal(values, stored)).as_py() or 0)


def _are_texts(rows: pa.Table, fields: Sequence[str]) -> bool:
    kinds = [rows.schema.field(name).type for name in fields if name in rows.column_names]
    return len(kinds) == len(fields) and all(any(is_kind(kind) for is_kind in _TEXTS) for kind in kinds)


def _values(make: Callable[[pa.Table], pa.ChunkedArray[Any]], rows: pa.Table) -> pa.ChunkedArray[Any] | None:
    try:
        return make(rows)
    except HoodieError:
        return None


def _most_equal_bare(keys: pa.ChunkedArray[Any], bare: pa.ChunkedArray[Any], generator: KeyGenerator) -> bool:
    return _most_equal(_bare(keys, generator.record_key_fields[0]), bare)


def _bare(keys: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
    """With one key column some writers put its name into the keys, and some do not."""
    bare: pa.ChunkedArray[Any] = pc.replace_substring(keys, f"{name}:", "", max_replacements=1)
    return bare


def _all_in(paths: pa.ChunkedArray[Any], folder: str) -> bool:
    # Whether the days of a date are folders of their own, properties need not say.
    same = pc.replace_substring(paths, "-", "/")
    return _most_equal(same, pa.chunked_array([pa.repeat(folder.replace("-", "/"), len(paths))]))


def _most_equal(one: pa.ChunkedArray[Any], other: pa.ChunkedArray[Any]) -> bool:
    """More than half of the rows: a few may have keys that a writer made in a way of its own."""
    return 2 * (pc.sum(pc.fill_null(pc.equal(one, other), False)).as_py() or 0) > len(one)


def _are_plain(rows: pa.Table, fields: Sequence[str]) -> bool:
    """Whether all writers make the same texts of the columns. Of dates, times and decimals some writers make others."""
    kinds = [rows.schema.field(name).type for name in fields if name in rows.column_names]
    return len(kinds) == len(fields) and all(any(is_kind(kind) for is_kind in _PLAIN) for kind in kinds)


_TEXTS = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
_PLAIN = (*_TEXTS, pa.types.is_boolean, pa.types.is_floating)
