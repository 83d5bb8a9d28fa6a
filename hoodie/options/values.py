"""What option values can be: the vocabularies that only options have, and how text becomes a typed value."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from hoodie.format.layout import VERSIONS, written_layout
from hoodie.model.enums import TableVersion
from hoodie.options.class_names import one_name
from hoodie.options.merging import DELETING_PAYLOAD, MERGER_NAME, PAYLOADS

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class KeyGeneratorType(StrEnum):
    """How record keys and partition paths are made of columns, as `hoodie.table.keygenerator.type` says it."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    GLOBAL_DELETE = "GLOBAL_DELETE"
    AUTO_RECORD = "AUTO_RECORD"
    OTHER = "OTHER"
    """A class of the user's own, or of Spark SQL: its keys cannot be made here."""


class IndexType(StrEnum):
    BLOOM = "BLOOM"
    SIMPLE = "SIMPLE"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BUCKET = "BUCKET"
    INMEMORY = "INMEMORY"
    RECORD_INDEX = "RECORD_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"
    HBASE = "HBASE"
    CUSTOM = "CUSTOM"
    """One of the user's own: `hoodie.index.class`."""


OUTSIDE_INDEXES = (IndexType.HBASE, IndexType.CUSTOM)
"""These are kept outside of the table."""
GLOBAL_INDEXES = (
    IndexType.GLOBAL_BLOOM,
    IndexType.GLOBAL_SIMPLE,
    IndexType.RECORD_INDEX,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX,
    *OUTSIDE_INDEXES,
)
"""By these a key is unique in the whole table."""


class SortMode(StrEnum):
    """How a bulk_insert orders the rows of its files; the words are Apache Hudi's."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


class DuplicatePolicy(StrEnum):
    """What an insert does with rows whose key is stored already."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class OverwriteMode(StrEnum):
    """What an overwrite that does not say so replaces: the whole table, or the partitions that the rows are in."""

    STATIC = "STATIC"
    DYNAMIC = "DYNAMIC"


class ConcurrencyMode(StrEnum):
    """Whether a writer expects others, in Apache Hudi's words."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"


class FailedWritesPolicy(StrEnum):
    """When what dead writers left is taken back, in Apache Hudi's words."""

    EAGER = "EAGER"
    """Before each write."""
    LAZY = "LAZY"
    """By table services, and by who asks for it."""


class MorInserts(StrEnum):
    """Where the new rows of a merge-on-read table go: one way so far, said in the table's properties all the same."""

    BASE_FILE = "base_file"


class HiveViews(StrEnum):
    """Which views of a merge-on-read table a Hive metastore has."""

    ALL = "ALL"
    RO = "RO"
    RT = "RT"


class Extractor(StrEnum):
    """How partition values are read from partition paths, by the names of Apache Hudi's classes."""

    MULTI_PART = "MultiPartKeysValueExtractor"
    HIVE_STYLE = "HiveStylePartitionValueExtractor"
    SINGLE_PART = "SinglePartPartitionValueExtractor"
    SLASH_DAY = "SlashEncodedDayPartitionValueExtractor"
    SLASH_HOUR = "SlashEncodedHourPartitionValueExtractor"
    NOT_PARTITIONED = "NonPartitionedExtractor"


class LogBlockFormat(StrEnum):
    """What the data blocks of log files hold."""

    AVRO = "avro"
    PARQUET = "parquet"


class Durability(StrEnum):
    """Durability of a commit on a local disk."""

    POWER_CUT = "power_cut"
    PROCESS = "process"


class MarkersType(StrEnum):
    """How the files are marked that a write is about to make."""

    DIRECT = "DIRECT"
    TIMELINE_SERVER_BASED = "TIMELINE_SERVER_BASED"


class ViewStore(StrEnum):
    """Where the files of a table are kept that was listed once; the words are Apache Hudi's."""

    MEMORY = "MEMORY"
    SPILLABLE_DISK = "SPILLABLE_DISK"
    EMBEDDED_KV_STORE = "EMBEDDED_KV_STORE"
    REMOTE_FIRST = "REMOTE_FIRST"
    REMOTE_ONLY = "REMOTE_ONLY"

    @property
    def is_remote(self) -> bool:
        """A timeline server is asked."""
        return self in (ViewStore.REMOTE_FIRST, ViewStore.REMOTE_ONLY)


class CatalogKind(StrEnum):
    """A catalog of tables that is kept up to date."""

    HIVE = "hive"
    GLUE = "glue"


class LockProvider(StrEnum):
    """Who grants the table lock, by our short names."""

    IN_PROCESS = "in_process"
    FILESYSTEM = "filesystem"
    STORAGE = "storage"
    ZOOKEEPER = "zookeeper"
    ZOOKEEPER_IMPLICIT = "zookeeper_implicit"
    HIVE_METASTORE = "hive_metastore"
    DYNAMODB = "dynamodb"
    DYNAMODB_IMPLICIT = "dynamodb_implicit"


_LOCK_PACKAGE = "org.apache.hudi.client.transaction.lock."
LOCK_PROVIDER_CLASSES: Mapping[str, LockProvider] = {
    f"{_LOCK_PACKAGE}InProcessLockProvider": LockProvider.IN_PROCESS,
    f"{_LOCK_PACKAGE}FileSystemBasedLockProvider": LockProvider.FILESYSTEM,
    f"{_LOCK_PACKAGE}StorageBasedLockProvider": LockProvider.STORAGE,
    f"{_LOCK_PACKAGE}ZookeeperBasedLockProvider": LockProvider.ZOOKEEPER,
    f"{_LOCK_PACKAGE}ZookeeperBasedImplicitBasePathLockProvider": LockProvider.ZOOKEEPER_IMPLICIT,
    "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": LockProvider.HIVE_METASTORE,
    "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider": LockProvider.DYNAMODB,
    "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider": LockProvider.DYNAMODB_IMPLICIT,
}


def lock_provider() -> Kind[LockProvider]:
    """Our short names, and Apache Hudi's classes with or without their package."""
    providers = {**{provider.value: provider for provider in LockProvider}}
    for name, provider in LOCK_PROVIDER_CLASSES.items():
        providers[name.lower()] = providers[name.rpartition(".")[2].lower()] = provider
    names = ", ".join(LockProvider)

    def read(value: str) -> LockProvider:
        provider = providers.get(one_name(value).lower())
        if provider is not None:
            return provider
        raise ValueError(f"is no lock provider that is known: it can be {names}, or the class of Apache Hudi")

    return Kind(f"{names}, or the classes of Apache Hudi", read)


SUPPORTED_KEY_GENERATORS = (
    KeyGeneratorType.SIMPLE,
    KeyGeneratorType.COMPLEX,
    KeyGeneratorType.NON_PARTITION,
    KeyGeneratorType.TIMESTAMP,
    KeyGeneratorType.CUSTOM,
)

VIRTUAL_KEY_GENERATORS = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION)
"""Those with which a table may go without its `_hoodie_` columns, or its files without partition columns."""

KEY_GENERATOR_TYPES: Mapping[str, KeyGeneratorType] = {
    **{kind.value: kind for kind in KeyGeneratorType if kind is not KeyGeneratorType.OTHER},
    **{f"{kind}_AVRO": kind for kind in KeyGeneratorType if kind is not KeyGeneratorType.OTHER},
    "HOODIE_TABLE_METADATA": KeyGeneratorType.OTHER,
    "SPARK_SQL": KeyGeneratorType.OTHER,
    "SPARK_SQL_UUID": KeyGeneratorType.OTHER,
    "SPARK_SQL_MERGE_INTO": KeyGeneratorType.OTHER,
    "USER_PROVIDED": KeyGeneratorType.OTHER,
}

# Names from a table or a user are only ever looked up here, never imported.
KEY_GENERATOR_CLASSES: Mapping[str, KeyGeneratorType] = {
    f"org.apache.hudi.keygen.{name}": kind
    for name, kind in {
        "SimpleKeyGenerator": KeyGeneratorType.SIMPLE,
        "SimpleAvroKeyGenerator": KeyGeneratorType.SIMPLE,
        "ComplexKeyGenerator": KeyGeneratorType.COMPLEX,
        "ComplexAvroKeyGenerator": KeyGeneratorType.COMPLEX,
        "NonpartitionedKeyGenerator": KeyGeneratorType.NON_PARTITION,
        "NonpartitionedAvroKeyGenerator": KeyGeneratorType.NON_PARTITION,
        "TimestampBasedKeyGenerator": KeyGeneratorType.TIMESTAMP,
        "TimestampBasedAvroKeyGenerator": KeyGeneratorType.TIMESTAMP,
        "CustomKeyGenerator": KeyGeneratorType.CUSTOM,
        "CustomAvroKeyGenerator": KeyGeneratorType.CUSTOM,
        "GlobalDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
        "GlobalAvroDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
        "AutoRecordGenWrapperKeyGenerator": KeyGeneratorType.AUTO_RECORD,
        "AutoRecordGenWrapperAvroKeyGenerator": KeyGeneratorType.AUTO_RECORD,
    }.items()
}


def key_generator_class(kind: KeyGeneratorType) -> str:
    """The Java class by which readers of the 0.x age know a key generator."""
    return next(name for name, candidate in KEY_GENERATOR_CLASSES.items() if candidate is kind)


def did_you_mean(word: str, among: Iterable[str], *, prefix: str = "") -> str:
    """`did you mean 'x'?` for the nearest of the candidates, empty when none is near; without regard to case.

    A `prefix` that many of them have does not make them alike.
    """
    folded = {candidate.lower().removeprefix(prefix): candidate for candidate in among}
    near = difflib.get_close_matches(word.lower().removeprefix(prefix), folded, n=1, cutoff=0.6)
    return f"did you mean {folded[near[0]]!r}?" if near else ""


@dataclass(frozen=True)
class Kind(Generic[T_co]):
    """A set of values and its reader.

    `read` raises ValueError with the rest of a sentence that begins with the option and its text.
    """

    allowed: str
    """For the documentation."""
    read: Callable[[str], T_co]

    def then(self, make: Callable[[T_co], T]) -> Kind[T]:
        """The same texts, and what `make` makes of their values."""
        return Kind(self.allowed, lambda value: make(self.read(value)))


def text(allowed: str) -> Kind[str]:
    def read(value: str) -> str:
        if not value:
            raise ValueError(f"is empty, expected {allowed}")
        return value

    return Kind(allowed, read)


def optional(kind: Kind[T_co]) -> Kind[T_co | None]:
    """The same, where empty text means unset."""
    return Kind(kind.allowed, lambda value: kind.read(value) if value else None)


def boolean() -> Kind[bool]:
    return choice({"true": True, "false": False})


def whole(at_least: int, *, clamp: bool = False) -> Kind[int]:
    """Whole numbers; with `clamp` smaller ones mean `at_least`."""
    allowed = "a whole number" + ("" if clamp else f", at least {at_least}")

    def read(value: str) -> int:
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(2**63)):
            raise ValueError(f"is not {allowed}")
        if int(value) < at_least and not clamp:
            raise ValueError(f"is not {allowed}")
        return max(at_least, int(value))

    return Kind(allowed, read)


def milliseconds(at_least: int) -> Kind[float]:
    """Whole numbers of milliseconds -> seconds."""
    return whole(at_least).then(lambda number: number / 1000)


def minutes(at_least: int) -> Kind[float]:
    """Whole numbers of minutes -> seconds."""
    return whole(at_least).then(lambda number: number * 60.0)


def unless_empty(kind: Kind[T]) -> Kind[T | None]:
    """The same, where an empty value means unset."""
    return kind.then(lambda value: value or None)


def pairs() -> Kind[Mapping[str, str]]:
    """Lines of `name=value`. Errors have no text of it: a value may be a secret."""

    def read(value: str) -> Mapping[str, str]:
        lines = [line.partition("=") for each in value.splitlines() if (line := each.strip())]
        if not all(name.strip() and equals for name, equals, _ in lines):
            raise ValueError("has a line that is not name=value")
        return {name.strip(): text.strip() for name, _, text in lines}

    return Kind("lines of name=value", read)


def paths() -> Kind[tuple[str, ...]]:
    """A comma list of partition paths; empty text is the empty list."""
    return Kind(
        "a comma list of partition paths", lambda value: tuple(p for each in value.split(",") if (p := each.strip()))
    )


def fraction() -> Kind[float]:
    return _between(0, 1, "a number between 0 and 1, both excluded")


def positive() -> Kind[float]:
    return _between(0, math.inf, "a number greater than 0")


def _between(least: float, most: float, allowed: str) -> Kind[float]:
    def read(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"is not {allowed}") from None
        if not least < number < most:
            raise ValueError(f"is not {allowed}")
        return number

    return Kind(allowed, read)


def regex() -> Kind[str]:
    """A pattern of Python's `re`, which common ones share with Java's."""

    def read(value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from None
        return value

    return Kind("a regular expression", read)


def fields(of: str = "columns", *, typed: bool = False) -> Kind[tuple[str, ...]]:
    """A comma list; empty text is the empty list. `typed`: a column may be `column:KIND`."""
    allowed = f"a comma list of {of}" + (
        ", each with `:SIMPLE` or `:TIMESTAMP` for a custom key generator" if typed else ""
    )

    def read(value: str) -> tuple[str, ...]:
        if not value:
            return ()
        names = tuple(name.strip() for name in value.split(","))
        if not all(names):
            raise ValueError(f"has an empty name, expected {allowed}")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names {twice[0]!r} twice")
        colons = [name for name in names if ":" in name]
        if colons and not typed:
            raise ValueError(f"has {colons[0]!r}: only partition columns take the form column:KIND")
        return names

    return Kind(allowed, read)


def one_of(values: Iterable[T], *, unsupported: Iterable[str] = ()) -> Kind[T]:
    """`choice` of values that are their own words, such as those of an enumeration."""
    return choice({str(value): value for value in values}, unsupported=unsupported)


def choice(values: Mapping[str, T_co], *, unsupported: Iterable[str] = ()) -> Kind[T_co]:
    """One of some words, in any case. `unsupported`: words of Apache Hudi that are unsupported here, not misspelt."""
    allowed = ", ".join(values)
    folded = {word.lower(): value for word, value in values.items()}
    refused = {word.lower(): word for word in unsupported}

    def read(value: str) -> T_co:
        word = value.lower()
        if word in folded:
            return folded[word]
        if word in refused:
            raise ValueError(f"is not supported by this release, which has {allowed}")
        hint = did_you_mean(value, [*values, *refused.values()])
        raise ValueError(f"is not one of {allowed}" + (f"; {hint}" if hint else ""))

    return Kind(allowed, read)


def named_class(kind: Kind[T_co]) -> Kind[T_co]:
    """The same for the names of a class that moved."""
    return Kind(kind.allowed, lambda value: kind.read(one_name(value)))


def only(value: str, why: str) -> Kind[str]:
    """The one value that says what happens here anyway; any other is refused with the reason."""

    def read(word: str) -> str:
        if word.lower() != value.lower():
            raise ValueError(f"is not supported by this release, only {value or 'none'} is: {why}")
        return value

    return Kind(f"{value or 'none'}; others are refused", read)


_CHOSEN = (*SUPPORTED_KEY_GENERATORS, KeyGeneratorType.GLOBAL_DELETE)
"""Of a write; one that deletes by keys alone makes no table."""


def _key_generator(classes: Mapping[str, KeyGeneratorType]) -> Callable[[str], KeyGeneratorType]:
    folded = {name.lower(): kind for name, kind in classes.items()}
    supported = ", ".join(_CHOSEN)

    def read(value: str) -> KeyGeneratorType:
        kind = folded.get(one_name(value).lower())
        if kind in _CHOSEN:
            return kind
        if kind is not None or classes is KEY_GENERATOR_CLASSES:
            raise ValueError(f"is a key generator that is not supported by this release, which has {supported}")
        hint = did_you_mean(value, classes)
        raise ValueError(f"is not one of {supported}" + (f"; {hint}" if hint else ""))

    return read


KEY_GENERATOR_TYPE = Kind(", ".join(_CHOSEN), _key_generator(KEY_GENERATOR_TYPES))
KEY_GENERATOR_CLASS = Kind(
    ", ".join(name for name, kind in KEY_GENERATOR_CLASSES.items() if kind in _CHOSEN),
    _key_generator(KEY_GENERATOR_CLASSES),
)


def payload_class() -> Kind[str]:
    """The name of one of the payload classes that are known."""

    def read(value: str) -> str:
        value = one_name(value)
        if value not in (*PAYLOADS, DELETING_PAYLOAD):
            raise ValueError(
                f"is a payload class that is not supported by this release, which has {', '.join(_short(n) for n in PAYLOADS)}"
            )
        return value

    return Kind(", ".join((*PAYLOADS, DELETING_PAYLOAD)), read)


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def merger() -> Kind[str]:
    """The name of a merger of the user's own."""

    def read(value: str) -> str:
        if not MERGER_NAME.fullmatch(value):
            raise ValueError("is not a name: letters, digits and _, in parts joined by dots")
        return value

    return Kind("a name that hoodie.register_merger was given", read)


def index_class() -> Kind[str]:
    """The name of an index of the user's own."""

    def read(value: str) -> str:
        if not MERGER_NAME.fullmatch(value):
            raise ValueError("is not a name: letters, digits and _, in parts joined by dots")
        return value

    return Kind("a name that hoodie.register_index was given, or the dotted name of a Python class", read)


def table_version() -> Kind[TableVersion]:
    def read(value: str) -> TableVersion:
        layout = written_layout(value)
        if layout is None:
            raise ValueError(f"is not a table version that can be written, only {VERSIONS} are")
        return layout.version

    return Kind(VERSIONS, read)
