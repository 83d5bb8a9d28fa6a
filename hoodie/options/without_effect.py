"""Why an option of Apache Hudi may stay without effect: a reason for each, which the log gives with the name.

An option that would change what a query gives is not among them: it is honoured, or refused (`not_done`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from hoodie.options.registry import GROUPS, WRITE_KEYS

_WITH_FLAGS = "it counts for `hoodie ingest` with the flags of Hudi's Streamer"
_OF_A_TOPIC = f"{_WITH_FLAGS}, and as an option of a topic: `source_options` of `hoodie.ingest`"
_OF_INSERT = "it counts for INSERT INTO of Spark SQL"
_OF_MERGE = "it counts for MERGE INTO of Spark SQL"
ELSEWHERE = (_WITH_FLAGS, _OF_A_TOPIC, _OF_INSERT, _OF_MERGE)
"""Of options that count for `hoodie ingest` or for statements of SQL; they have no effect on other writes."""
REASONS: dict[str, tuple[str, ...]] = {
    "it is for AWS Glue's connector; format(…) names the format": ("className", "connectionName"),
    "a template of AWS Glue jobs sets it, a flag of the Streamer in front of an option": (
        "hoodie-conf hoodie.cleaner.parallelism",
    ),
    "Apache Hudi's own examples set it, and Hudi has no such option": (
        *("hoodie.datasource.write.schema.evolution.enable", "hoodie.datasource.write.schema.on.read.enable"),
        "hoodie.bloom.index.false.positive.rate",
    ),
    _WITH_FLAGS: (
        *(
            "hoodie.streamer.source.dfs.root",
            "hoodie.streamer.transformer.sql",
            "hoodie.streamer.schemaprovider.registry.url",
            "hoodie.streamer.schemaprovider.registry.targetUrl",
            "hoodie.streamer.source.hoodieincr.path",
        ),
        *(
            f"hoodie.streamer.jdbc.{name}"
            for name in ("url", "user", "password", "table.name", "incr.pull", "table.incr.column.name")
        ),
        *(f"hoodie.streamer.schemaprovider.{name}.schema.file" for name in ("source", "target")),
        *(f"hoodie.streamer.csv.{name}" for name in ("header", "sep", "delimiter")),
    ),
    "rows come from the program that writes, not from Hudi's Streamer": (
        *("hoodie.streamer.schemaprovider.registry.urlS", "hoodie.streamer.schemaprovider.registry.targetUrlS"),
        *("hoodie.streamer.", "hoodie.deltastreamer.", "hoodie.utilities.", "hoodie.kafka.", "hoodie.debezium."),
        *("hoodie.schemaprovider.", "hoodie.meta.sync.classes", "hoodie.meta.sync.enable", "hoodie.tableservice."),
        "hoodie.streamer.transformer.sql.file",
    ),
    "it counts for a catalog that tables are not registered in": (
        *(
            "hoodie.datasource.meta.sync.glue.",
            "hoodie.aws.glue.",
            "hoodie.meta.sync.datahub.",
            "hoodie.datasource.adb.",
        ),
        *("hoodie.spark.polaris.", "hoodie.meta_sync.global."),
    ),
    "the manifest and the table's own properties say it": ("hoodie.gcp.bigquery.sync.",),
    "partitions are registered by one request after the other": (
        *("hoodie.datasource.meta.sync.glue.all_", "hoodie.datasource.meta.sync.glue.changed_"),
        "hoodie.datasource.meta.sync.glue.partition_change_",
    ),
    "it counts only where a partition index of AWS Glue is made": (
        "hoodie.datasource.meta.sync.glue.partition_index_fields",
    ),
    "the metastore's own interface needs no HiveServer": (
        *("hoodie.datasource.hive_sync.jdbcurl", "hoodie.datasource.hive_sync.username"),
        *("hoodie.datasource.hive_sync.password", "hoodie.datasource.hive_sync.use_jdbc"),
    ),
    "a registration that fails is a warning anyway": ("hoodie.datasource.hive_sync.ignore_exceptions",),
    "the registration finds it from the table": (
        *("hoodie.datasource.hive_sync.", "hoodie.meta.sync.", "hoodie.datasource.partition_extractor_class"),
        "hoodie.table.partition_extractor_class",
    ),
    "a metadata table is built, compacted, cleaned and archived by rules of its own": (
        *("hoodie.metadata.", "_hoodie.metadata.", "hoodie.file.index.", "hoodie.enable.data.skipping"),
        *("hoodie.expression.index.", "hoodie.functional.index.", "hoodie.record.index."),
        *(
            "hoodie.hfile.",
            "_hoodie.hfile.",
            "hoodie.table.metadata.",
            "hoodie.table.index.",
            "hoodie.table.secondary.",
        ),
    ),
    "HBase is reached by its Thrift server, whose own rules count": ("hoodie.index.hbase.",),
    "there is a task for each file, and nothing is shuffled, cached or sampled": (
        *("hoodie.bloom.index.", "hoodie.simple.index.", "hoodie.global.", "hoodie.finalize.write.", "hoodie.markers."),
        *("hoodie.file.listing.", "hoodie.rollback.parallelism", "hoodie.archive.delete.", "hoodie.clean.parallelism"),
        *("hoodie.cleaner.parallelism", "hoodie.clustering.max.parallelism", "hoodie.clustering.group.read."),
        *("hoodie.write.status.storage.", "hoodie.write.tagged.record.", "hoodie.partition.ttl.strategy.stats."),
        *(
            "hoodie.clean.optimize.",
            "hoodie.clustering.plan.generation.",
            "hoodie.write.buffer.",
            "hoodie.write.executor.",
        ),
        *("hoodie.copyonwrite.insert.", "hoodie.compaction.plan.generator", "hoodie.release.resource."),
    ),
    "rows are written as Arrow in any case": (
        *("hoodie.datasource.write.row.writer.", "hoodie.parquet.", "hoodie.avro.write.support.", "hoodie.io.factory."),
        *("hoodie.compact.merge.handle.", "hoodie.write.concat.handle.", "hoodie.write.merge.handle."),
        *("hoodie.writestatus.", "hoodie.storage.class", "hoodie.fileid.prefix."),
    ),
    "shredded variants are read in any case, and written whole": ("hoodie.parquet.variant.",),
    "base files are Parquet": (
        *(
            "hoodie.orc.",
            "hoodie.lance.",
            "hoodie.table.multiple.base.",
            "hoodie.table.rt.file.",
            "hoodie.table.format",
        ),
        "hoodie.read.blob.",
    ),
    "merging keeps to a memory limit by itself": (
        *(
            "hoodie.memory.",
            "hoodie.common.",
            "hoodie.cdc.file.group.",
            "hoodie.compaction.lazy.",
            "hoodie.compaction.reverse.",
        ),
        *("hoodie.log.record.reader.", "hoodie.optimized.log.", "hoodie.file.group.reader.", "hoodie.merge.use."),
        "hoodie.merge.data.validation.",
    ),
    "rows keep their commit times in any case": ("hoodie.compaction.preserve.commit.metadata",),
    "sizes of records are measured at each write": (
        *("hoodie.record.size.", "_hoodie.record.size.", "hoodie.logfile.to.parquet.", "hoodie.merge.small."),
    ),
    "new columns of the data are added, and types only widen; columns that were changed on request are found by their ids": (
        *("hoodie.schema.", "hoodie.datasource.write.schema.canonicalize", "hoodie.datasource.write.new.columns."),
        *("hoodie.avro.schema", "hoodie.write.schema", "hoodie.internal.schema", "hoodie.bulkinsert.schema.ddl"),
        *("hoodie.write.partial.update.schema", "hoodie.table.create.schema", "hoodie.write.concurrency.schema."),
        "hoodie.write.timestamp.logical.type.",
    ),
    "a commit is complete or not there, whatever the storage does": (
        *("hoodie.consistency.", "hoodie.optimistic.", "_hoodie.optimistic.", "hoodie.fs.atomic_creation."),
        *(
            "hoodie.fail.job.on.",
            "hoodie.rollback.",
            "hoodie.block.writes.",
            "_.hoodie.allow.multi.",
            "hoodie.auto.commit",
        ),
        *("hoodie.write.can.ignore.", "hoodie.post.commit.", "hoodie.allow.empty.commit"),
    ),
    "a row that cannot be written fails the write, and none is lost": ("hoodie.write.ignore.failed",),
    "instants are allotted under the table lock": (
        *("hoodie.time.generator.", "_hoodie.time.generator.", "hoodie.timeline.", "hoodie.read.timeline."),
        *("hoodie.archivelog.", "hoodie.table.timeline.timezone", "hoodie.instant_state."),
    ),
    "the lock and its retries keep to hoodie.write.lock.wait_time_ms": ("hoodie.write.lock.",),
    "conflicts are found for each file group, and a write that lost is tried again up to ten times": (
        *("hoodie.write.concurrency.", "hoodie.write.num.retries.", "hoodie.auto.adjust."),
    ),
    "services plan and archive in steps of their own, and one that fails is a warning": (
        *(
            "hoodie.archive.merge.",
            "hoodie.commits.archival.",
            "hoodie.fail.on.timeline.",
            "hoodie.fail.writes.on.inline.",
        ),
        *("hoodie.clustering.", "hoodie.prewrite.cleaner.", "hoodie.write.empty.clean.", "hoodie.table.services."),
        *("hoodie.clean.delete.bootstrap.", "hoodie.cleaner.delete.bootstrap."),
    ),
    "streams compact as batches do": ("hoodie.datasource.write.streaming.disable.compaction",),
    "clusterings sort by the columns and the curve that they are given": ("hoodie.layout.optimize.",),
    "a partitioner of your own is not called: sort the rows, or set hoodie.bulkinsert.sort.mode": (
        *("hoodie.bulkinsert.user.defined.", "hoodie.bulkinsert.sort.suffix."),
    ),
    _OF_INSERT: ("hoodie.spark.sql.insert.into.operation", "hoodie.sql.insert.mode", "hoodie.sql.bulk.insert.enable"),
    _OF_MERGE: ("hoodie.spark.sql.merge.into.partial.updates",),
    "a statement of SQL finds its rows and its operation by itself": (
        *("hoodie.spark.sql.", "hoodie.sql.", "hoodie.bulkinsert.overwrite."),
    ),
    "hoodie lists, retries and caches files in its own way": (
        *("hoodie.filesystem.", "hoodie.embed.timeline.server.", "hoodie.refresh.timeline.", "hoodie.assume.date."),
    ),
    "a query plans from the files of its commits": (
        *("hoodie.datasource.read.file.index.", "hoodie.datasource.read.use.", "hoodie.datasource.read.incr.table."),
        *("hoodie.datasource.read.streaming.table.", "hoodie.datasource.read.partition.value."),
        "hoodie.datasource.read.table.valued.",
    ),
    "compacted and clustered rows are in no incremental answer": ("hoodie.datasource.read.incr.skip_",),
    "the numbers of simple buckets stay as they are": ("hoodie.bucket.index.", "hoodie.storage.layout."),
    "it counts only where a switch beside it is on": (
        *("hoodie.errortable.", "hoodie.metaserver.", "hoodie.metastore."),
        *("hoodie.table.service.manager.", "hoodie.precommit.validators."),
        "hoodie.client.init.callback.",
    ),
    "bootstraps run in threads of this process and index their files as HFiles, and all queries read both files": (
        "hoodie.bootstrap.",
    ),
    "metrics go to Prometheus' push gateway, once for each commit": ("hoodie.metrics",),
    _OF_A_TOPIC: (
        *("hoodie.streamer.source.kafka.topic", "hoodie.streamer.source.kafka.append.offsets"),
        *("hoodie.streamer.source.kafka.enable.", "hoodie.streamer.source.kafka.value.deserializer.schema"),
        "hoodie.streamer.kafka.source.maxEvents",
    ),
    "commits are told by HTTP and to Kafka only": ("hoodie.write.commit.callback.",),
    "no payload class of this release reads it; merges go by the ordering columns": ("hoodie.payload.",),
    "the table's properties are written and checked by the writer": (
        *(
            "hoodie.table.",
            "hoodie.base.path",
            "hoodie.write.complex.keygen.validation.",
            "hoodie.skip.default.partition.",
        ),
    ),
    "commits have the metadata that readers need": (
        *("hoodie.write.meta.key.", "hoodie.write.rolling.", "hoodie.write.config.keys.", "hoodie.commit.metadata."),
        *("hoodie.write.application.id", "hoodie.write.track.event.time.", "hoodie.sensitive.config."),
    ),
}
"""Reason -> the options, or beginnings of their names that end in a dot or an underscore; the longest that fits counts."""


_OTHER_DOOR = {
    **{name.lower(): "it is for writes" for key in WRITE_KEYS for name in key.names},
    **{name.lower(): "it is for reads" for key in GROUPS["Reading"] for name in key.names},
}


@cache
def reason(name: str) -> str:
    """Why the option has no effect."""
    folded = name.lower()
    if folded in _OTHER_DOOR:
        return _OTHER_DOOR[folded]
    fits = [
        (len(start), why) for why, starts in REASONS.items() for start in starts if folded.startswith(start.lower())
    ]
    return max(fits)[1] if fits else "it is kept in the metadata of a commit, where it is set for a write"


def with_reasons(names: Iterable[str]) -> str:
    """The options, each with its reason, those of one reason together."""
    together: dict[str, list[str]] = {}
    for name in names:
        together.setdefault(reason(name), []).append(name)
    return "; ".join(f"{', '.join(names_of_reason)} ({why})" for why, names_of_reason in together.items())
