"""What option values can be: the vocabularies that only options have, and how text becomes a typed value."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from hoodie.errors import UnsupportedTableError
from hoodie.model.enums import MergeMode, TableVersion

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


class MorInserts(StrEnum):
    """Where the new rows of a merge-on-read table go: one way so far, said in the table's properties all the same."""

    BASE_FILE = "base_file"


SUPPORTED_KEY_GENERATORS = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION)

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

EVENT_TIME_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
COMMIT_TIME_PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
PAYLOADS: Mapping[str, MergeMode] = {
    EVENT_TIME_PAYLOAD: MergeMode.EVENT_TIME_ORDERING,
    "org.apache.hudi.common.model.EventTimeAvroPayload": MergeMode.EVENT_TIME_ORDERING,
    COMMIT_TIME_PAYLOAD: MergeMode.COMMIT_TIME_ORDERING,
}
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
STRATEGIES: Mapping[str, MergeMode] = {
    EVENT_TIME_STRATEGY: MergeMode.EVENT_TIME_ORDERING,
    COMMIT_TIME_STRATEGY: MergeMode.COMMIT_TIME_ORDERING,
}


def did_you_mean(word: str, among: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest of the candidates, empty when none is near; without regard to case."""
    folded = {candidate.lower(): candidate for candidate in among}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean {folded[near[0]]!r}?" if near else ""


@dataclass(frozen=True)
class Kind(Generic[T_co]):
    """A set of values and its reader.

    `read` raises ValueError with the rest of a sentence that begins with the option and its text.
    """

    allowed: str
    """For the documentation."""
    read: Callable[[str], T_co]


def text(allowed: str) -> Kind[str]:
    def read(value: str) -> str:
        if not value:
            raise ValueError(f"is empty, expected {allowed}")
        return value

    return Kind(allowed, read)


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


def fraction() -> Kind[float]:
    allowed = "a number between 0 and 1, both excluded"

    def read(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"is not {allowed}") from None
        if not 0 < number < 1:
            raise ValueError(f"is not {allowed}")
        return number

    return Kind(allowed, read)


def fields(of: str = "columns") -> Kind[tuple[str, ...]]:
    """A comma list; empty text is the empty list."""
    allowed = f"a comma list of {of}"

    def read(value: str) -> tuple[str, ...]:
        if not value:
            return ()
        names = tuple(name.strip() for name in value.split(","))
        if not all(names):
            raise ValueError(f"has an empty name, expected {allowed}")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names {twice[0]!r} twice")
        typed = [name for name in names if ":" in name]
        if typed:
            raise ValueError(
                f"has {typed[0]!r}: the form field:TYPE of custom key generators is not supported by this release"
            )
        return names

    return Kind(allowed, read)


def choice(values: Mapping[str, T_co], *, known: Iterable[str] = ()) -> Kind[T_co]:
    """One of some words, in any case. `known`: words of Apache Hudi that are unsupported here, not misspelt."""
    allowed = ", ".join(values)
    folded = {word.lower(): value for word, value in values.items()}
    refused = {word.lower(): word for word in known}

    def read(value: str) -> T_co:
        word = value.lower()
        if word in folded:
            return folded[word]
        if word in refused:
            raise ValueError(f"is not supported by this release, which has {allowed}")
        hint = did_you_mean(value, [*values, *refused.values()])
        raise ValueError(f"is not one of {allowed}" + (f"; {hint}" if hint else ""))

    return Kind(allowed, read)


def only(value: str, why: str) -> Kind[str]:
    """The one value that says what happens here anyway; any other is refused with the reason."""

    def read(given: str) -> str:
        if given.lower() != value.lower():
            raise ValueError(f"is not supported by this release, only {value or 'none'} is: {why}")
        return value

    return Kind(f"{value or 'none'}; others are refused", read)


def _key_generator(known: Mapping[str, KeyGeneratorType]) -> Callable[[str], KeyGeneratorType]:
    folded = {name.lower(): kind for name, kind in known.items()}
    supported = ", ".join(SUPPORTED_KEY_GENERATORS)

    def read(value: str) -> KeyGeneratorType:
        kind = folded.get(value.lower())
        if kind in SUPPORTED_KEY_GENERATORS:
            return kind
        if kind is not None or known is KEY_GENERATOR_CLASSES:
            raise ValueError(f"is a key generator that is not supported by this release, which has {supported}")
        hint = did_you_mean(value, known)
        raise ValueError(f"is not one of {supported}" + (f"; {hint}" if hint else ""))

    return read


KEY_GENERATOR_TYPE = Kind(", ".join(SUPPORTED_KEY_GENERATORS), _key_generator(KEY_GENERATOR_TYPES))
KEY_GENERATOR_CLASS = Kind(
    ", ".join(name for name, kind in KEY_GENERATOR_CLASSES.items() if kind in SUPPORTED_KEY_GENERATORS),
    _key_generator(KEY_GENERATOR_CLASSES),
)


def payload_class() -> Kind[MergeMode]:
    """The merge mode that a built-in payload class stands for."""

    def read(value: str) -> MergeMode:
        mode = PAYLOADS.get(value)
        if mode is None:
            raise ValueError(
                f"is a payload class that is not supported by this release, which has {', '.join(PAYLOADS)}"
            )
        return mode

    return Kind(", ".join(PAYLOADS), read)


def table_version() -> Kind[TableVersion]:
    """Raises UnsupportedTableError for the versions that are only read."""

    def read(value: str) -> TableVersion:
        if value == "6":
            return TableVersion.V6
        if value in {"8", "9"}:
            raise UnsupportedTableError(
                f"hoodie.write.table.version={value}: this release writes tables of version 6 only; "
                "drop the option or set it to 6"
            )
        raise ValueError("is not a table version that can be written, only 6 is")

    return Kind("6", read)
