"""The switch behind `enable`: readers and writers that remember their format, options and mode in Python.

`SparkSession.read` and `DataFrame.write` are replaced by properties that give subclasses of Spark's own reader and
writer. Whatever is called on those is passed on to Spark as well, so that for every other format, and for every method
not named here, they are Spark's own. Nothing of the JVM is looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructType
from pyspark.sql.utils import to_str

from hoodie.errors import OptionError
from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS
from hoodie.options.values import OverwriteMode
from pyspark_hoodie import dataframe
from pyspark_hoodie.frame_marks import is_classic, marked
from pyspark_hoodie.schema import selected_schema
from pyspark_hoodie.sql_create import creating
from pyspark_hoodie.where import quoted

FORMAT = "hoodie"
_PATTERN = re.compile(r"(/\*+)+/?$")
"""Jobs for Apache Hudi before 0.9 name the files of a table as `path/*/*`, one star for each level of folders."""

_formats: set[str] = set()
tables_by_name: list[Any] = []
"""The modules that know the session's catalog (`sql_catalog.py`), and what clients write (`connect_saves.py`), by `sql_hook.py`."""
_originals: dict[tuple[Any, str], Any] = {}
"""What `disable` puts back: properties and methods of Spark's classes, and functions of its modules."""


def enable(spark: SparkSession, aliases: Iterable[str] = ()) -> None:
    """See `pyspark_hoodie.enable`. A string is one alias."""
    _formats.update(name.lower() for name in (FORMAT, *([aliases] if isinstance(aliases, str) else aliases)))
    _require_classes(spark)
    _use_this_python(spark)
    replace_property(type(spark), "read", lambda reader, session: remembering(_Reading, reader, session))
    replace_property(type(spark.range(0)), "write", lambda writer, df: remembering(_Writing, writer, df))


def _require_classes(spark: SparkSession) -> None:
    """Raises OptionError where jobs would fail at their first row: for a class of Apache Hudi's bundle that is not there.

    Other settings that name its classes do no harm: the extension is passed over, and the catalog is replaced.
    """
    context = getattr(spark, "sparkContext", None)  # Connect sessions have none
    registrators = context.getConf().get(_REGISTRATOR, "") if context is not None else ""
    if _HUDI_REGISTRATOR not in registrators.split(","):
        return
    jvm: Any = spark._jvm
    try:
        jvm.org.apache.spark.util.Utils.classForName(_HUDI_REGISTRATOR, True, False)
    except import_module("py4j.protocol").Py4JError:
        raise OptionError(
            f"{_REGISTRATOR}={_HUDI_REGISTRATOR} names a class of Apache Hudi's bundle, which is not there, and Spark fails without "
            "it: leave the setting out"
        ) from None


_REGISTRATOR, _HUDI_REGISTRATOR = "spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar"


def disable() -> None:
    """See `pyspark_hoodie.disable`."""
    for (owner, name), original in _originals.items():
        setattr(owner, name, original)
    _originals.clear()
    _formats.clear()


def _use_this_python(spark: SparkSession) -> None:
    """In local mode tasks run in the interpreter that runs this, unless another one was asked for.

    Spark's default is whatever `python3` is first on the path, which may have neither pyarrow nor this package.
    """
    context = getattr(spark, "sparkContext", None)  # Connect sessions have none
    if context is None or not context.master.startswith("local") or context.pythonExec != "python3":
        return
    if not _asked_for_python():
        context.pythonExec = sys.executable


def _asked_for_python() -> bool:
    return any(name in os.environ for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"))


_notified_sessions: WeakSet[SparkSession] = WeakSet()


def tell_spark(spark: SparkSession) -> None:
    """See to it that Spark 4 knows the source, before a stream or a view USING it: its own search may not find it.

    It looks through what the `python3` on the path can import: in a virtual environment that is not activated another one. Not
    done by `enable`: the first registration starts that search, which takes most of a second.
    """
    if spark in _notified_sessions or find_spec("pyspark.sql.datasource") is None:
        return
    _notified_sessions.add(spark)
    python = shutil.which("python3")
    if _asked_for_python() or (python and os.path.dirname(python) == os.path.dirname(sys.executable)):
        return  # Spark looks where this package is
    register(spark, import_module("pyspark_hoodie.datasource").DefaultSource)


def register(spark: Any, source: Any) -> None:
    """Let SQL and streams know a source by its name, unless a jar has one of that name."""
    with suppress(PySparkException), _active(spark):  # readers and writers are ours all the same, SQL is the jar's
        spark.dataSource.register(source)


@contextmanager
def _active(spark: Any) -> Iterator[None]:
    """While it is entered, this session is the active one: what that one knows, Spark does not register in any."""
    if not hasattr(spark, "_jsparkSession"):
        yield
        return
    sessions = SparkSession._get_j_spark_session_class(spark._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        sessions.setActiveSession(before.get()) if before.isDefined() else sessions.clearActiveSession()


def replace_property(cls: type, name: str, wrap: Callable[[Any, Any], Any]) -> None:
    """Replace a property where it is defined, once; classic and Connect have classes of their own."""
    owner = next(base for base in cls.__mro__ if name in vars(base))
    if (owner, name) in _originals:
        return
    original: property = vars(owner)[name]
    getter = original.fget
    if getter is None:
        raise OptionError(f"{owner.__name__}.{name} of this Spark is not readable: enable does not work with it")
    _originals[owner, name] = original
    setattr(owner, name, property(lambda self: wrap(getter(self), self), doc=original.__doc__))


def replace_method(cls: type, name: str, wrap: Callable[[Any], Any]) -> None:
    """The same for a method."""
    owner = next(base for base in cls.__mro__ if name in vars(base))
    if (owner, name) not in _originals:
        _originals[owner, name] = vars(owner)[name]
        setattr(owner, name, wrap(vars(owner)[name]))


def replace_function(module: str, name: str, wrap: Callable[[Any], Any]) -> None:
    """The same for a function of a module of Spark's."""
    owner = import_module(module)
    if (owner, name) not in _originals:
        _originals[owner, name] = getattr(owner, name)
        setattr(owner, name, wrap(getattr(owner, name)))


def formats() -> frozenset[str]:
    """`hoodie` and the aliases."""
    return frozenset(_formats)


def is_ours(name: str) -> bool:
    """Whether it is `hoodie` or one of the aliases."""
    return name.lower() in _formats


def no_catalog_table(what: str) -> str:
    """The sentence for all that would end in a catalog table."""
    return (
        f"{what} would make a catalog table of format {FORMAT!r}, and Spark cannot read those back, because it keeps no path of "
        f"them: save to a path, and query it by CREATE TEMPORARY VIEW … USING {FORMAT} OPTIONS (path '…') or "
        "pyspark_hoodie.HoodieTable.for_path"
    )


_DIRECT = re.compile(r"(?<![\w.`])`?([\w.]+?)`?\s*\.\s*`[^`]*/[^`]*`")


def no_direct_name(text: str) -> str | None:
    """The sentence for a name, or a statement with one, that is made of the format and a path; None for others."""
    if not any(is_ours(match[1]) for match in _DIRECT.finditer(text)):
        return None
    return (
        f"Spark does not let SQL read {FORMAT}.`path` of a format written in Python: CREATE TEMPORARY VIEW … USING "
        f"{FORMAT} OPTIONS (path '…'), or spark.read.format('{FORMAT}').load(path).createOrReplaceTempView(name)"
    )


def no_view_changes(spark: Any, name: str, what: str, instead: str) -> str | None:
    """The sentence for a method that would change a view of ours; None where the name is another's."""
    try:
        if COMMIT_TIME not in spark.table(name).columns:
            return None
    except PySparkException:
        return None  # Spark will say what is wrong with it
    return (
        f"{name} is a view of a table of format {FORMAT!r}, and {what} does not work on views: use "
        f"pyspark_hoodie.HoodieTable.for_path(spark, path).{instead}"
    )


def original(owner: Any, name: str) -> Any:
    """Spark's own reader or writer of a session or DataFrame, whatever stands in front of it."""
    for (cls, replaced), plain in _originals.items():
        if replaced == name and isinstance(cls, type) and isinstance(owner, cls) and plain.fget is not None:
            return plain.fget(owner)
    return getattr(owner, name)


@dataclass
class _CallState:
    """What was said to a reader or writer so far."""

    source: Any
    """The session that reads, or the DataFrame that is written."""
    format: str | None = None
    options: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By lower-case key, as Spark takes them: a later spelling of one option replaces an earlier one."""
    mode: str | None = None
    partition_by: tuple[str, ...] = ()
    layout: str | None = None
    """A method about the layout of files that no table here can honour."""
    schema: StructType | str | None = None
    query_name: str | None = None
    trigger: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return self.format is not None and is_ours(self.format)

    def add(self, options: Mapping[str, Any]) -> None:
        for key, value in options.items():
            text = to_str(value)
            if text is None:
                self.options.pop(key.lower(), None)
            else:
                self.options[key.lower()] = (key, text)

    def target(self, path: Any) -> tuple[str, dict[str, str]]:
        """The one path, from the argument or the option, and the other options."""
        options = dict(self.options)
        _, option_path = options.pop("path", ("path", None))
        if isinstance(path, list | tuple):
            if len(path) != 1:
                raise OptionError(
                    f"format {FORMAT!r} takes one table at a time, not {len(path)} paths: union what they give"
                )
            path = path[0]
        if path is not None and option_path is not None and str(path) != option_path:
            raise OptionError(f"two paths: {str(path)!r} as argument and {option_path!r} as option; drop one of them")
        target = option_path if path is None else str(path)
        if not target:
            raise OptionError(
                f"format {FORMAT!r} needs the path of the table: .save(path), .load(path), or option 'path'"
            )
        return target, dict(options.values())


def remembering(mixin: type, plain: Any, source: Any) -> Any:
    """Spark's reader or writer once more, as an object that remembers."""
    copy: Any = object.__new__(_subclass(mixin, plain.__class__))
    copy.__dict__.update(plain.__dict__)
    copy._hoodie = _CallState(source)
    return copy


@cache
def _subclass(mixin: Any, spark_class: Any) -> Any:
    return type(spark_class.__name__, (mixin, spark_class), {"__doc__": spark_class.__doc__})


class Remembers:
    _hoodie: _CallState

    def format(self, source: str) -> Any:
        self._hoodie.format = source
        return super().format(source)  # type: ignore[misc]

    def option(self, key: str, value: Any) -> Any:
        self._hoodie.add({key: value})
        return super().option(key, value)  # type: ignore[misc]

    def options(self, **options: Any) -> Any:
        self._hoodie.add(options)
        return super().options(**options)  # type: ignore[misc]


class _Reading(Remembers):
    """In front of Spark's DataFrameReader."""

    def schema(self, schema: StructType | str) -> Any:
        self._hoodie.schema = schema
        return super().schema(schema)  # type: ignore[misc]

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        state = self._hoodie
        if not state.is_ours:
            plain: DataFrame = super().load(path)  # type: ignore[misc]
            return plain
        target, other_options = state.target(path)
        target = _PATTERN.sub("", target)
        result = marked(state.source, dataframe.read(state.source, target, other_options), target, other_options)
        if state.schema is None:
            return result
        requested = state.schema if isinstance(state.schema, StructType) else _parsed(state.source, state.schema)
        chosen = selected_schema(result.schema, requested, path=target)
        return result.select(*[col(quoted(name)) for name in chosen.names])


def without_meta_columns(frame: DataFrame) -> DataFrame:
    """The rows as a table takes them: a frame that was read from another one has its meta columns, too."""
    return frame.drop(*META_COLUMNS) if {*META_COLUMNS} <= {*frame.columns} else frame


def _parsed(spark: SparkSession, ddl: str) -> StructType:
    return spark.createDataFrame([], ddl).schema


class _Writing(Remembers):
    """In front of Spark's DataFrameWriter."""

    def mode(self, saveMode: str | None) -> Any:
        if saveMode is not None:
            self._hoodie.mode = saveMode
        return super().mode(saveMode)  # type: ignore[misc]

    def partitionBy(self, *cols: Any) -> Any:
        flat = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._hoodie.partition_by = tuple(flat)
        return super().partitionBy(*cols)  # type: ignore[misc]

    def bucketBy(self, *args: Any, **kwargs: Any) -> Any:
        self._hoodie.layout = "bucketBy"
        return super().bucketBy(*args, **kwargs)  # type: ignore[misc]

    def sortBy(self, *args: Any, **kwargs: Any) -> Any:
        self._hoodie.layout = "sortBy"
        return super().sortBy(*args, **kwargs)  # type: ignore[misc]

    def clusterBy(self, *args: Any, **kwargs: Any) -> Any:
        self._hoodie.layout = "clusterBy"
        return super().clusterBy(*args, **kwargs)  # type: ignore[misc]

    def save(
        self,
        path: Any = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        self.mode(mode)
        self.options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if format is not None:
            self.format(format)
        state = self._hoodie
        if not state.is_ours:
            super().save(path)  # type: ignore[misc]
            return
        if state.layout is not None:
            raise OptionError(f"{state.layout} has no meaning for a table of format {FORMAT!r}: leave it out")
        target, other_options = state.target(path)
        dataframe.write(state.source, target, other_options, state.mode, state.partition_by)

    def saveAsTable(
        self, name: str, format: str | None = None, mode: str | None = None, partitionBy: Any = None, **options: Any
    ) -> None:
        state, (catalog, saves, widening) = self._hoodie, tables_by_name
        spark = state.source.sparkSession
        if format is None and state.format is None:
            stored = catalog.provider_of(spark, name)
            if stored is not None:
                self.format(stored)
        elif format is not None:
            self.format(format)
        if state.is_ours or catalog.is_ours(state.format):
            if state.layout is not None:
                raise OptionError(f"{state.layout} has no meaning for a table of format {FORMAT!r}: leave it out")
            if not is_classic(spark):
                state.add(options)
                by = (
                    state.partition_by
                    if partitionBy is None
                    else [partitionBy]
                    if type(partitionBy) is str
                    else partitionBy
                )
                saved = dict(state.options.values())
                with widening.widened(state.source, name, saved):
                    saves.save_as_table(state.source, name, dataframe.mode_of(mode or state.mode), saved, by)
                return
            if not catalog.prepare(spark, f"table {name} using {state.format}"):
                raise OptionError(no_catalog_table(f"saveAsTable({name!r})"))
            state.add(options)
            if dataframe.mode_of(mode or state.mode) in (dataframe.APPEND, dataframe.OVERWRITE):
                saves.name_the_table_at(spark, name, dict(state.options.values()).get("path"))
            self._leave_meta_columns()
        write_options = dict(state.options.values())
        replaces = (mode or state.mode or "").lower() == dataframe.OVERWRITE  # by a table with the columns of the rows
        widened = nullcontext() if replaces else widening.widened(state.source, name, write_options)
        with creating(name, write_options), widened:
            super().saveAsTable(name, None, mode, partitionBy, **options)  # type: ignore[misc]

    def insertInto(self, tableName: str, *args: Any, **options: Any) -> None:
        state, (catalog, saves, _) = self._hoodie, tables_by_name
        if not is_classic(state.source.sparkSession):
            overwrite = (args or (options.get("overwrite"),))[0]
            replaces = (
                dataframe.mode_of(state.mode or dataframe.APPEND) == dataframe.OVERWRITE
                if overwrite is None
                else overwrite
            )
            dynamic = dataframe.session_overwrite_mode(state.source.sparkSession) is OverwriteMode.DYNAMIC
            mode = "append" if not replaces else "overwrite partitions" if dynamic else "overwrite"
            if saves.write(state.source, tableName, mode, dict(state.options.values()), by_name=False):
                return
        if not catalog.prepare(self._hoodie.source.sparkSession, tableName) and self._hoodie.is_ours:
            raise OptionError(
                f"insertInto({tableName!r}) writes to catalog tables, and there are none of format {FORMAT!r}: "
                'use mode("append") and save(path)'
            )
        refusal = no_view_changes(self._hoodie.source.sparkSession, tableName, "insertInto", "insert(df)")
        if refusal is not None:
            raise OptionError(refusal)
        columns, session = state.source.columns, state.source.sparkSession
        is_copy = COMMIT_TIME in columns and catalog.is_of_ours(session, tableName)
        if is_copy and len(columns) != len(session.table(tableName).columns):  # else they are values of other columns
            self._leave_meta_columns()
        super().insertInto(tableName, *args, **options)  # type: ignore[misc]

    def _leave_meta_columns(self) -> None:
        """Let Spark write the rows without them, with all that was said so far."""
        state = self._hoodie
        rows = without_meta_columns(state.source)
        if rows is not state.source:
            writer: Any = rows.write.mode(state.mode).options(**dict(state.options.values()))
            if state.format is not None:
                writer.format(state.format)
            if state.partition_by:
                writer.partitionBy(*state.partition_by)
            self._jwrite = writer._jwrite
