"""What is known of the indexes of a table. Little is read: of a bloom filter or a record that is there, that it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie.errors import HoodieError
from hoodie.format.bloom import HudiBloomFilter
from hoodie.metadata.column_stats import columns_of
from hoodie.metadata.expression_values import expression_index
from hoodie.metadata.keys import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_INDEX, SECONDARY_INDEX
from hoodie.metadata.maintenance import partition_of
from hoodie.metadata.secondary_index import value_index
from hoodie.metadata.slices import HFileRecords
from hoodie.metadata.table import MetadataTable, finished_partitions
from hoodie.model.enums import WriteOperation
from hoodie.model.index_results import IndexInfo, IndexState, parse_ways
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import METADATA_TABLE, join
from hoodie.options.table import TableConfig
from hoodie.options.values import OUTSIDE_INDEXES, IndexType
from hoodie.options.write import WriteOptions
from hoodie.services.index_build import PendingBuild, pending_builds
from hoodie.txn.heartbeat import Life
from hoodie.view.context import Snapshot, TableContext, load_config

_MOST_FILES = 256
"""Files that are looked for in an index."""
_MOST_COMMITS = 50
"""Commits among which the last one that looked keys up is sought."""
_LOOKS_UP = (WriteOperation.UPSERT, WriteOperation.DELETE, WriteOperation.INSERT)


def describe_indexes(context: TableContext, options: WriteOptions) -> list[IndexInfo]:
    """What finds the keys of an upsert, and the partitions of the metadata table."""
    context = context.on_storage()
    snapshot, config = context.snapshot(), load_config(context.storage)
    result = [_of_keys(config, options, snapshot)]
    finished = finished_partitions(config.raw)
    builds = {name: each for each in pending_builds(context, snapshot.timeline) for name in each.plan.partitions}
    table = MetadataTable.open(context.storage, config, snapshot.timeline, context.cache)
    for name in sorted(finished):
        if partition_of(name) is not None:
            result.append(_of_partition(context, config, snapshot, table, name))
        else:
            result.append(IndexInfo(name, IndexState.READY, size_bytes=_size(context, name)))
    for name in sorted({*config.metadata_partitions, *builds} - finished):
        result.append(IndexInfo(name, IndexState.BUILDING, _who_builds(context, builds.get(name))))
    return result


def _of_keys(config: TableConfig, options: WriteOptions, snapshot: Snapshot) -> IndexInfo:
    kind = config.index or options.index.choice or IndexType.BLOOM
    outside = kind in OUTSIDE_INDEXES
    state, ways = IndexState.OUTSIDE if outside else IndexState.READY, _last_ways(snapshot)
    return IndexInfo(kind.value, state, config.index_name or None if outside else None, last_write=ways)


def _last_ways(snapshot: Snapshot) -> Mapping[str, int]:
    """How the last write that looked keys up found them, as its commit says."""
    for commit in snapshot.timeline.commits[: -_MOST_COMMITS - 1 : -1]:
        metadata = snapshot.active.read_commit(commit)
        result = parse_ways(metadata.extra) if metadata.operation in _LOOKS_UP else None
        if result is not None:
            return result
    return {}


def _of_partition(
    context: TableContext, config: TableConfig, snapshot: Snapshot, table: MetadataTable, name: str
) -> IndexInfo:
    why = table.problem_of(name)
    newest = max((InstantTime(each.time[:17]) for each in _commits(table)), default=None)
    if why is not None:
        return IndexInfo(name, IndexState.DAMAGED, why, instant=newest, size_bytes=_size(context, name))
    pieces = table.slices_of(name)
    layers = [each for number in range(len(pieces)) for each in table.layers_of(name, number)]
    info = IndexInfo(
        name,
        IndexState.READY,
        instant=newest,
        records=sum(len(each.reader) for each in layers if isinstance(each, HFileRecords)),
        size_bytes=sum(each.size_bytes for each in pieces),
        file_groups=len(pieces),
        logs=sum(_later_logs(len(each.logs)) for each in pieces),
    )
    if name.startswith(EXPRESSION_INDEX):
        index = expression_index(context, config.raw, name)
        expression = index.expression
        return replace(info, columns=(expression.column,), kind=index.kind, expression=str(expression))
    if name.startswith(SECONDARY_INDEX):
        return replace(info, columns=(value_index(context.storage, config.raw, name).column,))
    if name not in (COLUMN_STATS, BLOOM_FILTERS):
        return info
    bases = [each.base.path for each in snapshot.view.latest_slices() if each.base is not None]
    looked_for = bases[:: -(-len(bases) // _MOST_FILES)] if bases else []
    with_files = replace(info, files=len(looked_for))
    if name == BLOOM_FILTERS:
        blooms = table.bloom_filters(looked_for) or {}
        rates = [each.rate for each in blooms.values() if isinstance(each, HudiBloomFilter)]
        mean = sum(rates) / len(rates) if rates else None
        return replace(with_files, covered=len(blooms), false_positives=mean)
    columns = columns_of(context, config.raw)
    fields = [field for field in snapshot.schema or () if field.name in columns]
    stats = table.column_stats(looked_for, pa.schema(fields[:1])) or {}
    covered = sum(len(each) - each["values"].null_count for each in stats.values())
    return replace(with_files, covered=covered, columns=tuple(columns))


def _commits(table: MetadataTable) -> Sequence[Instant]:
    try:
        return table.opened.own.commits
    except HoodieError:
        return ()


def _later_logs(logs: int) -> int:
    """A file group begins with one, which is empty."""
    return max(logs - 1, 0)


def _size(context: TableContext, name: str) -> int:
    files = context.storage.list(join(METADATA_TABLE, name), recursive=True)
    return sum(each.size_bytes for each in files if not each.is_folder)


def _who_builds(context: TableContext, build: PendingBuild | None) -> str:
    if build is None:
        return "the properties say so, and no instant of the timeline does: drop it"
    if not build.is_ours:
        return f"planned by Apache Hudi, in {build.instant}"
    if build.life is Life.DEAD:
        return f"its process died, in {build.instant}: build it again"
    return f"by {context.liveness.holder(build.instant.time) or 'another process'}, in {build.instant}"
