"""All options: the table of those that are fields of values, and which names are known beside them.

A value with options is listed in `_TOPICS`, under the title that it has in docs/OPTIONS.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from hoodie.options.aws import AwsOptions, GlueOptions
from hoodie.options.bigquery import BigQueryOptions
from hoodie.options.bootstrap import BootstrapOptions
from hoodie.options.class_names import hudi_names
from hoodie.options.cleaning import ArchivingOptions, CleaningOptions, ExpiryOptions
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.commits import CallbackOptions, MetricsOptions, ValidatorOptions
from hoodie.options.compaction import CompactionOptions, LogCompactionOptions
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.files import FileSettings
from hoodie.options.hbase import HBaseOptions
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.index import IndexOptions
from hoodie.options.option import Key, keys_of
from hoodie.options.read import MERGE_SCHEMA, ReadOptions, StreamReadOptions
from hoodie.options.streams import StreamRetries, StreamSettings
from hoodie.options.table_options import TableOptions
from hoodie.options.view import (
    EmbeddedOptions,
    ExpressionIndexOptions,
    PartitionedIndexOptions,
    RecordIndexOptions,
    RemoteOptions,
    SecondaryIndexOptions,
    ViewOptions,
)
from hoodie.options.write import WriteOptions

PREFIXES = ("hoodie.", "_hoodie.", "_.hoodie.")
"""A key that begins so is ours or Apache Hudi's, and no note for the commit's metadata."""
_TOPICS: Mapping[str, tuple[type, ...]] = {
    "Table": (TableOptions,),
    "Writing": (WriteOptions,),
    "Files": (FileSettings,),
    "Index": (IndexOptions, HBaseOptions),
    "Services and concurrency": (
        *(CompactionOptions, LogCompactionOptions, CleaningOptions, ArchivingOptions, ExpiryOptions),
        *(ClusteringOptions, ConcurrencyOptions, AwsOptions),
    ),
    "Validators, callbacks and metrics": (ValidatorOptions, CallbackOptions, MetricsOptions),
    "Registration in a catalog": (HiveSyncOptions, GlueOptions, BigQueryOptions),
    "Bootstraps": (BootstrapOptions,),
    "Streams into a table": (StreamSettings, StreamRetries),
    "File system view": (
        ViewOptions,
        RecordIndexOptions,
        PartitionedIndexOptions,
        ExpressionIndexOptions,
        SecondaryIndexOptions,
        RemoteOptions,
        EmbeddedOptions,
    ),
    "Reading": (ReadOptions, StreamReadOptions),
}


def _groups() -> dict[str, tuple[Key[object], ...]]:
    """The options of each title; one that several values have is under the first."""
    result: dict[str, tuple[Key[object], ...]] = {}
    names: set[str] = set()
    for title, topics in _TOPICS.items():
        by_name = {key.name: key for each in topics for key in keys_of(each)}
        result[title] = tuple(key for name, key in by_name.items() if name not in names)
        names.update(by_name)
    return result


VALUES = tuple(each for topics in _TOPICS.values() for each in topics)
GROUPS: Mapping[str, tuple[Key[object], ...]] = MappingProxyType(_groups())
VIEW_KEYS = tuple(
    name
    for each in (
        ViewOptions,
        RecordIndexOptions,
        PartitionedIndexOptions,
        SecondaryIndexOptions,
        ExpressionIndexOptions,
        RemoteOptions,
    )
    for name in keys_of(each)
)
READ_KEYS: tuple[Key[object], ...] = (*GROUPS["Reading"], *VIEW_KEYS)
WRITE_KEYS: tuple[Key[object], ...] = (
    *(key for title, group in GROUPS.items() if title != "Reading" for key in group),
    MERGE_SCHEMA,
)


@cache
def known_keys() -> Mapping[str, str]:
    """Every known name in lower case -> the name as it is spelled; Apache Hudi's and ours."""
    names = [name for line in hudi_names() for name in line]
    ours = [name for group in GROUPS.values() for key in group for name in key.names]
    return MappingProxyType({name.lower(): name for name in (*names, *ours)})


def is_known(name: str) -> bool:
    """Whether it is such a name, in lower case, or begins as one that ends in a dot: what follows is the user's."""
    return name in known_keys() or name.startswith(_prefixes())


@cache
def spelled_names() -> tuple[str, ...]:
    """All that a misspelt name may have meant."""
    return tuple(name for name in known_keys().values() if not name.endswith("."))


@cache
def _prefixes() -> tuple[str, ...]:
    return tuple(name for name in known_keys() if name.endswith("."))


@cache
def remembered_names() -> frozenset[str]:
    """Names in lower case of the options that a table remembers once it is there."""
    return frozenset(name.lower() for key in GROUPS["Table"] for name in key.names)
