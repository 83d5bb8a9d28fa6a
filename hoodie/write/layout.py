"""Whether a table's keys are spread over buckets, found in its files before the first write, and remembered.

Tables of ours say it in their properties. Those of Apache Hudi do not: there the file ids and the keys of some files decide, and an
option where these leave a choice. To write such a table with another index would store keys twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from hoodie.errors import CommitConflictError, OptionError, UnsupportedTableError
from hoodie.format.bucket_rules import RULES
from hoodie.format.properties import format_properties, parse_properties_file
from hoodie.hashes.of_buckets import bucket_of_file_id
from hoodie.index.bucket import Evidence, evidence_of, hash_field_choices, looks_bucketed
from hoodie.index.rings import keep_rules, ruled
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.model.buckets import BUCKET_INDEX, RINGS, BucketEngine, BucketLayout
from hoodie.model.files import FileSlice
from hoodie.model.names import PROPERTIES, PROPERTIES_BACKUP
from hoodie.options.buckets import asked_layout, layout_properties
from hoodie.options.compatibility import check_against, check_writable
from hoodie.options.index import IndexOptions
from hoodie.options.table import TableConfig
from hoodie.options.table_options import TableOptions
from hoodie.options.values import IndexType
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.parallel import together
from hoodie.timeline.timeline import Timeline
from hoodie.txn.critical import require_same_table
from hoodie.view.context import Snapshot, TableContext, load_config
from hoodie.view.view import FileSystemView
from hoodie.write.ring_layout import ring_layout
from hoodie.write.ruled_layout import ruled_layout

log = logging.getLogger("hoodie")

_MAX_FILES = 16
"""Files whose keys are looked at; a thousand keys of one file nearly always decide."""


class Basis(NamedTuple):
    """What a try to write goes by."""

    snapshot: Snapshot
    config: TableConfig
    """As the properties say now."""
    index_folders: Sequence[FileInfo]
    """Of what Apache Hudi keeps of a bucket index."""


def basis_of(
    context: TableContext,
    last_view: FileSystemView | None = None,
    recent: tuple[Timeline, TableConfig] | None = None,
) -> Basis:
    """Ask the storage for it at once; `last_view`: as `TableContext.snapshot` takes it. `recent`: what it said a moment ago.

    Raises:
        TableNotFoundError: the table was deleted.
    """
    storage = context.storage
    if recent is None:
        snapshot, config = together(storage, partial(context.snapshot, last_view), partial(load_config, storage))
    else:
        snapshot, config = context.snapshot(last_view, recent[0]), recent[1]
    return Basis(snapshot, config, context.active.list_beside(BUCKET_INDEX))


def with_layout(context: TableContext, index: IndexOptions, basis: Basis) -> TableContext:
    """The context with the table's layout as it is now; one that only the files show is remembered in the properties.

    Raises:
        OptionError: the options contradict the table, or its files alone do not tell the number of buckets.
        TableChangedError: it is not the table that was opened.
        UnsupportedTableError: its keys are found by something that this release does not keep up to date.
    """
    now = basis.config
    require_same_table(context.config, now)
    check_writable(now)
    layout_options = TableOptions(
        index=index.choice,
        bucket_engine=index.bucket_engine,
        bucket_count=index.bucket_count,
        bucket_fields=index.bucket_fields,
    )
    check_against(now, layout_options)
    has_rules = any(folder.path == RULES for folder in basis.index_folders)
    layout = now.buckets
    if layout is not None:
        if layout.rules is not None and not has_rules:  # who made the table died before it said so
            keep_rules(context.storage, layout)
        layout = ruled(context.storage, basis.snapshot.timeline, layout) if has_rules else layout
        _check_rules(now, layout, index)
    context = replace(context, config=replace(context.config, buckets=layout))
    has_rings = any(folder.path == RINGS for folder in basis.index_folders)
    if now.buckets is not None:
        if has_rings and now.buckets.engine is not BucketEngine.CONSISTENT_HASHING:
            raise UnsupportedTableError(
                f"table at {now.uri} can be read, not written: its properties say that it has simple buckets, and {RINGS} that it has "
                "consistent ones, so keys may be stored twice; load its rows into a new table"
            )
        return context
    if has_rules:
        layout = ruled_layout(context, basis.snapshot, index)
        _check_rules(now, layout, index)
    else:
        layout = (
            ring_layout(context, basis.snapshot, index)
            if has_rings
            else _layout_of_files(context, basis.snapshot, index)
        )
    return context if layout is None else _remembered(context, basis.snapshot, layout)


def _check_rules(config: TableConfig, layout: BucketLayout, index: IndexOptions) -> None:
    """Raises OptionError: the options say other bucket rules than the table has."""
    option, there = index.bucket_rules, layout.rules
    if option is not None and (there is None or option.expressions != there.expressions):
        raise OptionError(
            f"options contradict table {config.name!r} at {config.uri}: its partitions have "
            f"{'the same number of buckets' if there is None else f'buckets by the rules {there.expressions!r}'}, and your options "
            f"say hoodie.bucket.index.partition.expressions={option.expressions!r}; drop the option"
        )


def _layout_of_files(context: TableContext, snapshot: Snapshot, index: IndexOptions) -> BucketLayout | None:
    """What the files of a table say whose properties say nothing; None: no buckets."""
    config = context.config
    wants_buckets = index.choice is IndexType.BUCKET
    file_ids = _newest_file_ids(snapshot)
    if file_ids is not None and not looks_bucketed(file_ids) and not wants_buckets:
        return None
    slices = snapshot.view.latest_slices()
    if not slices:
        if not wants_buckets:
            return None
        return asked_layout(
            index.bucket_count,
            index.bucket_fields,
            index.bucket_engine,
            index.bucket_rules,
            record_key=config.record_key_fields,
            table_type=config.table_type,
            table=config.name,
        )
    if not looks_bucketed(file_slice.group.file_id for file_slice in slices):
        if wants_buckets:
            raise OptionError(
                f"options contradict table {config.name!r} at {config.uri}: hoodie.index.type=BUCKET, but its file ids do not "
                "begin with numbers of buckets; drop the option"
            )
        return None
    if wants_buckets and index.bucket_engine is BucketEngine.CONSISTENT_HASHING:
        raise OptionError(
            f"options contradict table {config.name!r} at {config.uri}: hoodie.index.bucket.engine=CONSISTENT_HASHING, but it has no "
            f"hash rings in {RINGS}; drop the option"
        )
    return _derived(context, slices, index, snapshot.schema)


def _newest_file_ids(snapshot: Snapshot) -> set[str] | None:
    """File ids that the newest commit with any names: enough for most tables, without a listing. None: no commit names one."""
    for instant in reversed(snapshot.timeline.commits):
        file_ids = {stat.file_id for stat in snapshot.active.read_commit(instant).stats() if stat.file_id}
        if file_ids:
            return file_ids
    return None


def _derived(
    context: TableContext, slices: list[FileSlice], index: IndexOptions, schema: pa.Schema | None
) -> BucketLayout | None:
    """What the keys of some files say. None: no buckets, for a few plain files may have ids that begin with digits, too."""
    config, wants_buckets = context.config, index.choice is IndexType.BUCKET
    stated_count = index.bucket_count if wants_buckets else None
    choices = hash_field_choices(config.record_key_fields) or [()]
    if index.bucket_fields:
        choices = [index.bucket_fields]
    elif stated_count:
        choices = choices[:1]  # as Apache Hudi understands these options
    possible = _possible(context, slices, choices, stated_count, schema)
    if len(possible) == 1 and (count := stated_count or possible[0].only_count):
        if index.choice in (None, IndexType.BUCKET) and index.bucket_count in (None, count):
            return BucketLayout(count, possible[0].fields)
        raise OptionError(
            f"options contradict table {config.name!r} at {config.uri}: its files have the bucket index with {count} buckets over "
            f"{','.join(possible[0].fields)}, and to write them otherwise would store keys twice; drop the options about the index"
        )
    if not wants_buckets and (index.choice is not None or (not possible and len(slices) == 1)):
        return None
    if possible:
        raise OptionError(
            f"table {config.name!r} at {config.uri} seems to have the bucket index of Apache Hudi, and its files do not tell the "
            "number of buckets or the hash columns for sure\n"
            "  fix:     set hoodie.index.type=BUCKET, hoodie.bucket.index.num.buckets and, where it is not the whole key,\n"
            "           hoodie.bucket.index.hash.field to what its writers use, once; or hoodie.index.type=BLOOM if it has none"
        )
    if not wants_buckets:
        raise UnsupportedTableError(
            f"table {config.name!r} at {config.uri} can be read, not written: its file ids begin with numbers of buckets, but no "
            "one number of buckets puts its keys there. Were there several, or one for each partition? If it has no bucket "
            "index at all, set hoodie.index.type=BLOOM"
        )
    number = f"hoodie.bucket.index.num.buckets={stated_count}, " if stated_count else ""
    raise OptionError(
        f"options contradict table {config.name!r} at {config.uri}: hoodie.index.type=BUCKET, {number}hash columns "
        f"{' or '.join(','.join(choice) for choice in choices)}, but its keys are not where these put them; "
        "correct the options, or drop them to let the files decide"
    )


def _possible(
    context: TableContext,
    slices: list[FileSlice],
    choices: Sequence[tuple[str, ...]],
    count: int | None,
    schema: pa.Schema | None,
) -> list[Evidence]:
    """What the keys of some files leave of these choices of hash columns; `count`: of buckets, where the options say it."""
    greatest = max(bucket_of_file_id(file_slice.group.file_id) or 0 for file_slice in slices)
    bases = [file_slice.base for file_slice in slices if file_slice.base is not None][:_MAX_FILES]
    unstored = None if schema is None else unstored_of(context.config, schema)
    possible = [Evidence(fields, 0, greatest) for fields in choices if not count or count > greatest]
    for evidence in evidence_of(context.storage, bases, greatest=greatest, choices=choices, unstored=unstored):
        possible = [each for each in evidence if not count or each.allows(count)]
        if count or not possible or (len(possible) == 1 and possible[0].only_count):
            break
    return possible


def _remembered(context: TableContext, looked_at: Snapshot, layout: BucketLayout) -> TableContext:
    """Put the layout into the properties, so that no later writer has to look or to be told; keys that we do not know stay."""
    storage = context.storage
    with context.lock.held(context.lock_timeout_s):
        now = load_config(storage)
        require_same_table(context.config, now)
        commits = context.active.load().commits
        if now.buckets not in (None, layout) or commits != looked_at.timeline.commits:
            raise CommitConflictError(
                f"another writer wrote table {now.uri} while its layout was looked at; nothing was written, run the write again"
            )
        if now.buckets is None:
            add_properties(storage, layout_properties(layout))
            keep_rules(storage, layout)
            log.warning(
                "table %s has the bucket index (%s): %d buckets over %s; its properties say so from now on",
                *(storage.uri, layout.engine, layout.count, ",".join(layout.fields)),
            )
    return replace(context, config=replace(context.config, buckets=layout))


def add_properties(storage: Storage, added: Mapping[str, str]) -> None:
    """Put properties beside, or in place of, those that the table has; under the lock."""
    path = PROPERTIES if storage.exists(PROPERTIES) else PROPERTIES_BACKUP
    properties = parse_properties_file(storage.read(path), path=f"{storage.uri}/{path}")
    date = datetime.now(UTC)
    comment = [f"Updated at {date.isoformat()}", date.strftime("%a %b %d %H:%M:%S UTC %Y")]
    storage.replace(PROPERTIES, format_properties({**properties, **added}, comment=comment).encode())
