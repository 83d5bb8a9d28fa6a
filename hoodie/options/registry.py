"""All options: the table of those that are fields of values, and which names are known beside them.

A value with options is listed in `_TOPICS`, under the title that it has in docs/OPTIONS.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from hoodie.options import keys
from hoodie.options.cleaning import ArchivingOptions, CleaningOptions
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.compaction import MEMORY_LIMIT, CompactionOptions, LogCompactionOptions
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.expiry import ExpiryOptions
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.hudi_names import hudi_names
from hoodie.options.option import Key, keys_of
from hoodie.options.view import EmbeddedOptions, RemoteOptions, ViewOptions

PREFIXES = ("hoodie.", "_hoodie.", "_.hoodie.")
"""A key that begins so is ours or Apache Hudi's, and no note for the commit's metadata."""
_SECRET_WORDS = ("key", "secret", "token", "password", "credential")
_TOPICS: Mapping[str, tuple[Key[object] | type, ...]] = {
    "Table": (
        *(
            keys.TABLE_NAME,
            keys.DATABASE_NAME,
            keys.TABLE_TYPE,
            keys.RECORD_KEY,
            keys.PARTITION_PATH,
            keys.ORDERING,
            keys.KEYGEN_TYPE,
            keys.KEYGEN_CLASS,
        ),
        *(
            keys.HIVE_STYLE,
            keys.URL_ENCODE,
            keys.META_FIELDS,
            keys.DROP_COLUMNS,
            keys.TIMESTAMPS_AS_TEXT,
            keys.SLASH_DATES,
            *keys.TIMEBASED,
        ),
        *(keys.CREATE_VERSION, keys.AUTO_UPGRADE, keys.MERGE_MODE, keys.PAYLOAD_CLASS, keys.MERGE_STRATEGY),
        *(keys.PYTHON_MERGER, keys.DELETE_FIELD, keys.DELETE_MARKER),
        *(keys.MOR_INSERTS, *keys.TABLE_CHECKS),
    ),
    "Writing": (
        *(
            keys.OPERATION,
            keys.COMBINE_BEFORE_UPSERT,
            keys.COMBINE_BEFORE_INSERT,
            keys.COMBINE_BEFORE_DELETE,
            keys.COMPLEX_NEW_ENCODING,
        ),
        *(keys.DROP_DUPLICATES, keys.DUPLICATE_POLICY, keys.ALLOW_DUPLICATES, keys.SORT_MODE, keys.PARTIAL_UPSERT),
        *(keys.NULL_FOR_MISSING, keys.RECONCILE_SCHEMA, keys.INTEGERS_TO_FLOATING),
        *(keys.OVERWRITE_MODE, keys.STATIC_OVERWRITE, keys.PARTITIONS_TO_DELETE),
        *(
            keys.UPSERT_PARALLELISM,
            keys.INSERT_PARALLELISM,
            keys.BULK_PARALLELISM,
            keys.DELETE_PARALLELISM,
            keys.DRIVER_MAX_BYTES,
        ),
        MEMORY_LIMIT,
        keys.ROW_COPIES,
    ),
    "Files": (
        *(keys.MAX_FILE_SIZE, keys.SMALL_FILE_LIMIT, keys.COMPRESSION, keys.RECORD_SIZE),
        *(keys.LOG_MAX_SIZE, keys.LOG_BLOCK_FORMAT, keys.LOG_BLOCK_MAX_SIZE, *keys.FILE_CHECKS),
    ),
    "Index": (
        *(
            keys.INDEX_TYPE,
            keys.BLOOM_FPP,
            keys.BLOOM_ENTRIES,
            keys.BLOOM_TYPE,
            keys.BLOOM_MAX_ENTRIES,
            keys.BLOOM_PRUNE,
        ),
        *(keys.BUCKET_COUNT, keys.BUCKET_FIELDS, *keys.BUCKET_CHECKS),
    ),
    "Services and concurrency": (
        *(
            keys.SERVICES_ENABLED,
            CompactionOptions,
            LogCompactionOptions,
            CleaningOptions,
            ArchivingOptions,
            ExpiryOptions,
        ),
        *(ClusteringOptions, keys.METADATA_ENABLE, ConcurrencyOptions),
    ),
    "Registration in a Hive metastore": (HiveSyncOptions,),
    "Streams that are written": (
        *(
            keys.STREAM_ID,
            keys.STREAM_BATCH,
            keys.STREAM_IDENTIFIER,
            keys.STREAM_RETRIES,
            keys.STREAM_RETRY_INTERVAL,
            *keys.STREAM_CHECKS,
        ),
        keys.COMMIT_ENTRIES,
    ),
    "File system view": (ViewOptions, RemoteOptions, EmbeddedOptions, keys.MARKERS_TYPE),
    "Reading": (
        keys.QUERY_TYPE,
        keys.BEGIN_INSTANT,
        keys.END_INSTANT,
        keys.INCREMENTAL_FORMAT,
        keys.FULL_SCAN_FALLBACK,
        keys.AS_OF,
        keys.TIMESTAMP_AS_OF,
        keys.WHERE,
        keys.COLUMNS,
        keys.START_OFFSET,
        keys.MAX_COMMITS,
        keys.MAX_BYTES,
        keys.MERGE_SCHEMA,
        *keys.READ_CHECKS,
    ),
}


def _groups() -> dict[str, tuple[Key[object], ...]]:
    """The options of each title; one that several values have is under the first."""
    found: dict[str, tuple[Key[object], ...]] = {}
    seen: set[str] = set()
    for title, topics in _TOPICS.items():
        listed = {key.name: key for each in topics for key in ((each,) if isinstance(each, Key) else keys_of(each))}
        found[title] = tuple(key for name, key in listed.items() if name not in seen)
        seen.update(listed)
    return found


VALUES = tuple(each for topics in _TOPICS.values() for each in topics if isinstance(each, type))
GROUPS: Mapping[str, tuple[Key[object], ...]] = MappingProxyType(_groups())
VIEW_KEYS = (*keys_of(ViewOptions), *keys_of(RemoteOptions))
READ_KEYS: tuple[Key[object], ...] = (*GROUPS["Reading"], *VIEW_KEYS, keys.METADATA_ENABLE)
WRITE_KEYS: tuple[Key[object], ...] = (
    *(key for title, group in GROUPS.items() if title != "Reading" for key in group),
    keys.MERGE_SCHEMA,
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


def is_secret(name: str) -> bool:
    """Whether an option's value may be a secret: any name with such a word that is none of our own options."""
    own = {known for group in GROUPS.values() for key in group for known in key.names}
    return name.lower() not in own and any(word in name.lower() for word in _SECRET_WORDS)


def redact(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the values of possible secrets replaced, for messages and logs."""
    return {name: "********" if is_secret(name) else value for name, value in options.items()}
