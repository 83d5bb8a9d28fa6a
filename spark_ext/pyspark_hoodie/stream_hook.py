"""`enable` for streams: `DataFrame.writeStream` and `SparkSession.readStream` that know format hoodie.

A stream into a table is a `foreachBatch`: every batch takes the way of a DataFrame's write. A stream out of one is Spark's
own Python data source, which Spark finds by itself; the hook only lets it answer to aliases.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.engine.local import LocalEngine
from hoodie.errors import OptionError
from pyspark_hoodie import dataframe, hook
from pyspark_hoodie.live_frames import with_live_sides
from pyspark_hoodie.schema import given_schema
from pyspark_hoodie.stream_sink import APPEND, SPARKS_OWN, StreamSink, mode_of, stream_writer


def enable(spark: SparkSession) -> None:
    """After `hook.enable`, which keeps what it replaces; `hook.disable` undoes both."""
    hook.replace_property(type(spark), "readStream", lambda plain, session: hook.remembering(_Reading, plain, session))
    frame = type(spark.range(0))
    hook.replace_property(frame, "writeStream", _writing)


def _writing(plain: Any, df: Any) -> Any:
    """A writer of the DataFrame, whose static sides read the newest commit of each batch."""
    live = with_live_sides(df)
    return hook.remembering(_Writing, plain if live is df else hook.original(live, "writeStream"), live)


class _Reading(hook.Remembers):
    """In front of Spark's DataStreamReader."""

    def format(self, source: str) -> Any:
        super().format(source)
        if self._hoodie.is_ours:
            super().format(hook.FORMAT)  # Spark knows the source by this name only
        return self

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        if format is not None:
            self.format(format)
        if self._hoodie.is_ours and find_spec("pyspark.sql.datasource") is None:
            raise OptionError(
                f"Spark 3.5 has no streams out of format {hook.FORMAT!r}: read in a loop with HoodieTable.changes(since=…), keeping "
                "the last commit's position, or use Spark 4"
            )
        if self._hoodie.is_ours:
            hook.tell_spark(self._hoodie.source)
        loaded: DataFrame = super().load(path, None, schema, **options)  # type: ignore[misc]
        return loaded


class _Writing(hook.Remembers):
    """In front of Spark's DataStreamWriter. What is said is kept, to be said again to the writer that runs our function."""

    def outputMode(self, outputMode: str) -> Any:
        self._hoodie.mode = outputMode
        return super().outputMode(outputMode)  # type: ignore[misc]

    def partitionBy(self, *cols: Any) -> Any:
        flat = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._hoodie.partition_by = tuple(flat)
        return super().partitionBy(*cols)  # type: ignore[misc]

    def clusterBy(self, *args: Any, **kwargs: Any) -> Any:
        self._hoodie.layout = "clusterBy"
        return super().clusterBy(*args, **kwargs)  # type: ignore[misc]

    def queryName(self, queryName: str) -> Any:
        self._hoodie.query_name = queryName
        return super().queryName(queryName)  # type: ignore[misc]

    def trigger(self, **kwargs: Any) -> Any:
        self._hoodie.trigger = kwargs
        return super().trigger(**kwargs)  # type: ignore[misc]

    def foreach(self, f: Any) -> Any:
        self._hoodie.format = None  # as with Spark's own formats, the function counts
        return super().foreach(f)  # type: ignore[misc]

    def foreachBatch(self, func: Any) -> Any:
        self._hoodie.format = None
        return super().foreachBatch(func)  # type: ignore[misc]

    def start(
        self,
        path: Any = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        self.options(**options)
        for value, method in (
            (outputMode, self.outputMode),
            (partitionBy, self.partitionBy),
            (format, self.format),
            (queryName, self.queryName),
        ):
            if value is not None:
                method(value)
        state = self._hoodie
        if not state.is_ours:
            return super().start(path)  # type: ignore[misc]
        if state.layout is not None:
            raise OptionError(f"{state.layout} has no meaning for a table of format {hook.FORMAT!r}: leave it out")
        target, other_options = state.target(path)
        sink = stream_writer(target, other_options, output_mode=state.mode or APPEND, partition_by=state.partition_by)
        _open(state.source, sink)
        return _runs(state, sink).start()

    def toTable(self, tableName: str, format: str | None = None, *args: Any, **kwargs: Any) -> Any:
        if format is not None:
            self.format(format)
        if self._hoodie.is_ours:
            raise OptionError(
                f"Spark makes catalog tables USING {hook.FORMAT} that it cannot read back: start the stream with a path, .start(path)"
            )
        return super().toTable(tableName, None, *args, **kwargs)  # type: ignore[misc]


def _open(df: DataFrame, sink: StreamSink) -> None:
    """Create the table, or find it and hold the options against it: here, not in the first batch, users see what is wrong."""
    mode = mode_of(sink.output_mode)
    schema = given_schema(df.schema)
    dataframe.open_for_write(sink.open_storage(df.sparkSession), sink.request, schema, mode=mode, engine=LocalEngine())


def _runs(state: Any, sink: StreamSink) -> Any:
    """A writer of Spark's own that is told the same, but for the layout, and runs the sink."""
    writer = hook.original(state.source, "writeStream").foreachBatch(sink)
    sparks_own = {name.lower() for name in SPARKS_OWN}
    for key, value in state.options.values():
        if key.lower() in sparks_own:
            writer = writer.option(key, value)
    if state.mode is not None:
        writer = writer.outputMode(state.mode)
    if state.query_name is not None:
        writer = writer.queryName(state.query_name)
    return writer.trigger(**state.trigger) if state.trigger else writer
