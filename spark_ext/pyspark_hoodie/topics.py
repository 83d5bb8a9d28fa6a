"""Topics of Kafka by Spark: executors read ranges of offsets, and decode them.

The driver learns where partitions end, which types columns have, and which records to quarantine
(`hoodie/ingestion/kafka_types.py`). Spark keeps the records of a round until it ends, so that it reads Kafka once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from hoodie.ingestion.change_logs import ChangeLog
from hoodie.ingestion.kafka import KafkaRound, KafkaSource
from hoodie.ingestion.kafka_ranges import RAW_SCHEMA, ranges_of, read_range
from hoodie.ingestion.kafka_types import Decoding, check, common_types, look, merged, rows_of_records, together
from hoodie.ingestion.source import Bounds, Checkpoint, Round, Source
from pyspark_hoodie.engine import SparkEngine

FEW_OFFSETS = 20_000
"""The driver has read so many before jobs of Spark have begun: about half a second."""


def topics_of(source: Source) -> KafkaSource | None:
    """The topics that a source reads, also as a change log."""
    events = source.events if isinstance(source, ChangeLog) else source
    return events if isinstance(events, KafkaSource) else None


def next_of_topics(
    spark: SparkSession,
    source: Source,
    topics: KafkaSource,
    after: Checkpoint | None,
    bounds: Bounds,
    schema: pa.Schema | None,
) -> Round | None:
    """As `Source.next`; the rows are a DataFrame, unless they are few."""
    log = source if isinstance(source, ChangeLog) else None
    decoding = Decoding(topics.settings, schema, None if log is None else log.changes)
    planned = topics.planned(after, bounds)
    round_ = None
    if planned.offsets > FEW_OFFSETS:
        round_ = _by_executors(SparkEngine(spark), topics, planned, decoding)
    if round_ is None:  # also where these offsets have no records: the driver goes on to those that have
        round_ = topics.read(planned, decoding.schema_of_values)
        round_ = round_ if log is None else log.round(round_, schema)
    return round_


def _by_executors(engine: SparkEngine, topics: KafkaSource, planned: KafkaRound, decoding: Decoding) -> Round | None:
    """None: there is no record."""
    ends = topics.ends(planned)
    ranges = ranges_of(planned.begin, ends)
    records = engine.read(partial(read_range, topics.settings), ranges, RAW_SCHEMA).persist()
    try:
        looked = together(engine.stage(records, partial(look, decoding), label="types of new records"))
        if not looked.records:
            records.unpersist()
            return None
        decoding = replace(decoding, types=common_types(decoding, looked))
        checked = merged(engine.stage(records, partial(check, decoding), label="new records that are no rows"))
        rows = engine.mapped(records, partial(rows_of_records, decoding), checked.schema)
    except BaseException:
        records.unpersist()
        raise
    round_ = topics.round(planned, ends, rows, checked.bad, records=looked.records, size_bytes=looked.bytes)
    return replace(round_, ended=records.unpersist)
