"""Partition paths as Hive's partition values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hoodie.errors import OptionError
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.option import option_name
from hoodie.options.table import TableConfig
from hoodie.options.values import Extractor

_EXTRACTOR = "hoodie.table.partition_extractor_class"
_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^") | frozenset(map(chr, range(1, 32)))
"""What Hive writes as %XX in names of partitions."""
_EMPTY = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class PartitionValues:
    """Reads the values of Hive's partition columns from the paths of one table."""

    fields: tuple[str, ...]
    """The columns; none: the table has no partitions in Hive."""
    extractor: Extractor

    @classmethod
    def of(cls, config: TableConfig, options: HiveSyncOptions) -> PartitionValues:
        fields = config.partition_fields if options.partition_fields is None else options.partition_fields
        extractor = options.extractor or _extractor_of_table(config) or _inferred(config, fields)
        return cls(() if extractor is Extractor.NOT_PARTITIONED else fields, extractor)

    def of_path(self, path: str) -> tuple[str, ...]:
        """One value for each column.

        Raises:
            OptionError: the path has another form than the extractor reads.
        """
        values = self._read(path)
        if values is None or len(values) != len(self.fields):
            raise OptionError(
                f"partition path {path!r} is not {len(self.fields)} values for {', '.join(self.fields)} as {self.extractor.value} "
                f"reads them: set {option_name(HiveSyncOptions, 'extractor')}, or {option_name(HiveSyncOptions, 'partition_fields')}"
            )
        return values

    def _read(self, path: str) -> tuple[str, ...] | None:
        folders = path.split("/") if path else []
        bare = [folder.partition("=")[2] if "=" in folder else folder for folder in folders]
        match self.extractor:
            case Extractor.MULTI_PART:
                return None if any(folder.count("=") > 1 for folder in folders) else tuple(bare)
            case Extractor.HIVE_STYLE:
                return (bare[0],) if len(folders) == 1 and path.count("=") == 1 else None
            case Extractor.SINGLE_PART:
                return (path.replace("/", "-"),)
            case Extractor.SLASH_DAY:
                return _moment(bare, 3)
            case Extractor.SLASH_HOUR:
                return _moment(bare, 4)
            case Extractor.NOT_PARTITIONED:
                return ()


def partition_name(fields: Sequence[str], values: Sequence[str]) -> str:
    """As a Hive metastore names the partition."""
    return "/".join(f"{_escaped(f.lower())}={_escaped(v)}" for f, v in zip(fields, values, strict=True))


def _moment(folders: Sequence[str], count: int) -> tuple[str, ...] | None:
    """Year, month, day and perhaps hour as one value."""
    if len(folders) != count or not all(folder.isascii() and folder.isdigit() for folder in folders):
        return None
    numbers = [int(folder) for folder in folders]
    try:
        datetime(*numbers)  # type: ignore[arg-type]
    except ValueError:
        return None
    return ("-".join([f"{numbers[0]:04d}", *(f"{number:02d}" for number in numbers[1:])]),)


def _extractor_of_table(config: TableConfig) -> Extractor | None:
    """The extractor that the table's properties name, if it is one of Apache Hudi's."""
    class_name = config.raw.get(_EXTRACTOR, "").rpartition(".")[2]
    return next((each for each in Extractor if each.value == class_name), None)


def _inferred(config: TableConfig, fields: tuple[str, ...]) -> Extractor:
    if not fields:
        return Extractor.NOT_PARTITIONED
    if len(fields) > 1:
        return Extractor.MULTI_PART
    return Extractor.HIVE_STYLE if config.hive_style else Extractor.SINGLE_PART


def _escaped(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text) or _EMPTY
