"""Arguments of the Python API -> the values that they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hoodie.errors import OptionError
from hoodie.model.enums import ChangeFormat, CleanPolicy, LakeFormat, QueryType, TableType, WriteOperation
from hoodie.options.cleaning import ArchivingOptions, CleaningOptions, ExpiryOptions
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.compaction import CompactionOptions, LogCompactionOptions
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.option import key_of, option_name
from hoodie.options.write import WriteOptions

_TAKE_ROWS = (
    WriteOperation.UPSERT,
    WriteOperation.INSERT,
    WriteOperation.BULK_INSERT,
    WriteOperation.DELETE,
    WriteOperation.INSERT_OVERWRITE,
    WriteOperation.INSERT_OVERWRITE_TABLE,
    WriteOperation.DELETE_PARTITION,
)


def parse_names(value: str | Sequence[str], *, what: str) -> tuple[str, ...]:
    """Column names: a list of them, or a text with commas between them.

    Raises:
        OptionError: neither, or a name that the table's properties would not keep: with blanks at its ends, or with a comma.
    """
    names = tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else _texts(value, what)
    for name in names:
        if not is_text(name):
            raise OptionError(f"{what} has {name!r}, which is not valid text: half of a surrogate pair stands alone")
        if not name or name != name.strip() or "," in name:
            raise OptionError(
                f"{what} has {name!r}: such columns have no comma and no blanks at their ends; rename the column"
            )
    return names


def parse_columns(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns of a query; None: all."""
    if isinstance(columns, str):
        raise OptionError(f"columns={columns!r} is a text: give a list of column names, [{columns!r}]")
    return None if columns is None else _texts(columns, "columns")


def parse_partitions(partitions: Sequence[str]) -> tuple[str, ...]:
    """Partition paths."""
    if isinstance(partitions, str):
        raise OptionError(f"delete_partitions({partitions!r}) takes a list of partition paths: give [{partitions!r}]")
    return _texts(partitions, "partitions")


def parse_options(options: Any) -> Mapping[str, str]:
    """Options by their names; None: none."""
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(f"options={options!r} is a {type(options).__name__}: give a dict from names to texts")
    return options or {}


def parse_texts(values: Any, *, what: str) -> Mapping[str, str]:
    """Texts by names, of which all have to be texts."""
    if not isinstance(values, Mapping):
        raise OptionError(f"{what}={values!r:.200} is a {type(values).__name__}: give a dict from names to texts")
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise OptionError(f"{what} has {name!r}: {value!r}: give names and values as texts")
    return values


def parse_text(value: Any, *, what: str) -> str:
    """Raises OptionError: it is no text that can be written."""
    if not isinstance(value, str) or not is_text(value):
        raise OptionError(f"{what}={value!r:.80} is no text")
    return value


def is_text(value: str) -> bool:
    """Whether it can be written: half of a surrogate pair cannot."""
    return not any("\ud800" <= each <= "\udfff" for each in value)


def append_options() -> dict[str, str]:
    """A bulk insert of the rows as they are: none is looked for, in the table or among the others."""
    options = {"combine_before_insert": "false", "drop_duplicates": "false", "duplicates": "none"}
    return {option_name(WriteOptions, field): text for field, text in options.items()}


def check_seconds(value: object, what: str, *, or_none: bool = False) -> None:
    """A length of time."""
    if not (or_none and value is None) and not (isinstance(value, int | float) and 0 <= value < math.inf):
        raise OptionError(f"{what}={value!r} is not a duration: give seconds as a number, at least 0")


def clean_options(*, commits: object, hours: object, versions: object) -> dict[str, str]:
    """What a clean is asked to keep, as options."""
    arguments = {
        "commits": (commits, CleanPolicy.KEEP_LATEST_COMMITS),
        "hours": (hours, CleanPolicy.KEEP_LATEST_BY_HOURS),
        "versions": (versions, CleanPolicy.KEEP_LATEST_FILE_VERSIONS),
    }
    limits = [(name, value, policy) for name, (value, policy) in arguments.items() if value is not None]
    if len(limits) > 1:
        raise OptionError(
            f"clean() takes one of {', '.join(f'retain_{name}' for name, _, _ in limits)}: they exclude each other"
        )
    policies = {option_name(CleaningOptions, "policy"): policy.value for _, _, policy in limits}
    counts = [_count(CleaningOptions, name, value, argument=f"retain_{name}") for name, value, _ in limits]
    return policies | dict(pair for count in counts for pair in count.items())


def log_compaction_options(*, blocks: object, memory_mb: object) -> dict[str, str]:
    """What a log compaction is asked to take, as options."""
    memory = compaction_options(strategy=None, memory_mb=memory_mb)
    return memory | _count(LogCompactionOptions, "blocks", blocks)


def expiry_options(*, days: object) -> dict[str, str]:
    """How long partitions are kept, as options."""
    return _count(ExpiryOptions, "days", days)


def _count(cls: type, field: str, value: object, *, argument: str = "", times: int = 1) -> dict[str, str]:
    """A whole number as the option of a field; None: no option."""
    if value is None:
        return {}
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise OptionError(f"{argument or field}={value!r} is not a whole number of at least 1")
    return {option_name(cls, field): str(value * times)}


def hive_options(*, metastore: object, database: object, table: object) -> dict[str, str]:
    """The options that the arguments of a registration say.

    Raises:
        OptionError: one of them is no text.
    """
    settings = (("servers", metastore, "metastore"), ("database", database, "database"), ("table", table, "table"))
    option_texts: dict[str, str] = {}
    for field, value, argument in settings:
        if value is not None and not isinstance(value, str):
            raise OptionError(f"{argument} is a {type(value).__name__}: give a text")
        option_texts |= {} if value is None else {option_name(HiveSyncOptions, field): value}
    return option_texts


def archive_options(*, min_commits: object, max_commits: object) -> dict[str, str]:
    """How much of the timeline is to stay, as options."""
    settings = _count(ArchivingOptions, "min_commits", min_commits) | _count(
        ArchivingOptions, "max_commits", max_commits
    )
    if isinstance(min_commits, int) and max_commits is None:
        return settings | _count(ArchivingOptions, "max_commits", min_commits + 1)
    if isinstance(max_commits, int) and min_commits is None:
        least = min(ArchivingOptions.min_commits, max(1, max_commits - 1))
        return settings | _count(ArchivingOptions, "min_commits", least)
    return settings


def compaction_options(*, strategy: object, memory_mb: object) -> dict[str, str]:
    """What a compaction is asked to take and to hold, as options; a strategy that is a function is none."""
    settings = _count(CompactionOptions, "memory_bytes", memory_mb, argument="memory_mb", times=1024 * 1024)
    if strategy is None or callable(strategy):
        return settings
    if not isinstance(strategy, str):
        raise OptionError(
            f"strategy={strategy!r} is a {type(strategy).__name__}: give a name such as 'log_file_size', or a function of the "
            "candidate slices that gives those to take"
        )
    return settings | {option_name(CompactionOptions, "strategies"): strategy}


def cluster_options(*, sort_by: Any, layout: object, target_file_mb: object) -> dict[str, str]:
    """What a clustering is asked for, as options."""
    settings = {}
    if sort_by is not None:
        names = parse_names(sort_by, what="sort_by")
        if not names:
            raise OptionError("sort_by names no column; leave it out to put small files together as they are")
        settings[option_name(ClusteringOptions, "sort_columns")] = ",".join(names)
    if layout is not None:
        if not isinstance(layout, str):
            raise OptionError(f"layout={layout!r} is a {type(layout).__name__}: give 'linear', 'z-order' or 'hilbert'")
        try:
            settings[option_name(ClusteringOptions, "layout")] = (
                key_of(ClusteringOptions, "layout").kind.read(layout).value
            )
        except ValueError as exc:
            raise OptionError(f"layout={layout!r} {exc}") from None
    if target_file_mb is not None:
        if (
            not isinstance(target_file_mb, int | float)
            or isinstance(target_file_mb, bool)
            or not 0 < target_file_mb < 2**40
        ):
            raise OptionError(f"target_file_mb={target_file_mb!r} is not a size: give megabytes as a number above 0")
        settings[option_name(ClusteringOptions, "target_bytes")] = str(max(1, int(target_file_mb * 1024 * 1024)))
    return settings


def _texts(values: Any, what: str) -> tuple[str, ...]:
    result = tuple(values) if isinstance(values, Iterable) and not isinstance(values, bytes) else None
    wrong = [values] if result is None else [each for each in result if not isinstance(each, str)]
    if result is None or wrong:
        raise OptionError(f"{what} has {wrong[0]!r}, a {type(wrong[0]).__name__}: give names as texts, in a list")
    return result


def parse_table_type(value: str | TableType) -> TableType:
    """A table type by its name, in any case."""
    try:
        return TableType(value.upper())
    except (AttributeError, ValueError) as exc:
        raise OptionError(f"table type {value!r} is none of {', '.join(TableType)}") from exc


def parse_operation(value: str | WriteOperation) -> WriteOperation:
    """An operation that takes rows by its name, in any case."""
    result = next((each for each in _TAKE_ROWS if each == str(value).upper()), None)
    if result is None:
        raise OptionError(f"operation {value!r} is none of {', '.join(each.lower() for each in _TAKE_ROWS)}")
    return result


def parse_images(images: str) -> ChangeFormat:
    """What `changes` gives of a change."""
    if images not in list(ChangeFormat):
        raise OptionError(f"images={images!r} is none of {', '.join(ChangeFormat)}")
    return ChangeFormat(images)


def parse_format(format: str | LakeFormat) -> LakeFormat:
    """What `publish` publishes a table in."""
    if format not in list(LakeFormat):
        raise OptionError(f"publish({format!r}): the formats are {', '.join(LakeFormat)}")
    return LakeFormat(format)


def parse_query(query: str) -> QueryType:
    """What `scan` reads."""
    if query not in (QueryType.SNAPSHOT, QueryType.READ_OPTIMIZED):
        raise OptionError(
            f"query {query!r} is neither 'snapshot' nor 'read_optimized'; for incremental pulls use changes()"
        )
    return QueryType(query)
