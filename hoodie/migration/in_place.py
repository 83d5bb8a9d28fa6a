"""Migration in place: Parquet files become a table where they are, as by Apache Hudi's bootstrap of metadata alone.

Beside each file of the source stands a skeleton in the table, which has the `_hoodie_` columns of its rows. There is no table before
its properties are put, as the last step: a run that dies leaves none, and one that is run again goes on. What such runs write is the
same each time, also by two of them at once, for file ids come from the source and the time from the note that the first one left.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa

from hoodie.errors import CorruptFileError, OptionError, SchemaError, TableExistsError
from hoodie.filegroup.base_writer import BaseFileWriter, RowGroups
from hoodie.filegroup.run import stamp
from hoodie.format.avro_schema import with_meta_columns
from hoodie.format.parquet_file import open_parquet
from hoodie.format.properties import format_properties
from hoodie.keygen.generator import DEFAULT_PARTITION, KeyGenerator, escaped
from hoodie.migration.parquet_rows import footer
from hoodie.migration.parquet_source import ParquetSource
from hoodie.migration.progress import Checkpoint
from hoodie.migration.source import Piece, Rows, identity_of
from hoodie.model.enums import Action, State, TableType, WriteOperation
from hoodie.model.instant import Instant, InstantTime, VisibleInstants
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.migration_results import MigrationStep
from hoodie.model.names import (
    BOOTSTRAP_BEGUN,
    PROPERTIES,
    BaseFileName,
    WriteToken,
    format_base_file,
    join,
)
from hoodie.model.payloads import WriteStat
from hoodie.model.plans import StagedFile, WriteContext, WriteResult
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.storage.base import Storage
from hoodie.timeline.clock import Clock, zone_of
from hoodie.view.bootstrap import INSTANT, SkeletonSource, write_index
from hoodie.view.context import load_config
from hoodie.write.create import check_place
from hoodie.write.publish import commit_metadata, ensure_partitions
from hoodie.write.schema import WIDER, storable_type

_HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
_URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
_RECORD = {"type": "record", "name": "HoodieRecordKey", "doc": "", "fields": []}
"""Of a skeleton, as Apache Hudi calls it."""


def options_of(source: ParquetSource, options: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with those by which folders of the table are called as those of the source are, or as a log calls them; signs are
    encoded by which Apache Hudi, which takes partition columns from folders, would read other values.
    """
    folders = [piece.path.rpartition("/")[0] for piece in source.pieces]
    values = [value.as_py() for piece in source.pieces for value in piece.partition.values()]
    logged = source.format != "parquet" and source.partition_columns
    naming = {_HIVE_STYLE: "true"} if logged or any("=" in each for each in folders) else {}
    signs = any("%" in each for each in folders) or any(
        isinstance(each, str) and escaped(each) != each for each in values
    )
    return {**naming, **({_URL_ENCODE: "true"} if signs else {}), **options}


def require_in_place(source: ParquetSource, config: TableConfig, schema: pa.Schema) -> None:
    """See that rows of all files are rows of the table, which has the columns of `schema`.

    Raises:
        OptionError, SchemaError: say why that is not so, and what to do.
    """
    why = None
    kinds = [source.schema.field(name).type for name in config.partition_fields if name in source.schema.names]
    unsaid = [kind for kind in kinds if not _is_said(kind)] or [each for each in kinds if pa.types.is_date(each)][1:]
    if config.buckets is not None:
        why = "rows are in the file groups that their files give, and not in the buckets of hoodie.index.type=BUCKET"
    elif not config.populate_meta_fields:
        why = "skeletons have the _hoodie_ columns and nothing else, and hoodie.populate.meta.fields=false leaves these out"
    elif config.drops_partition_columns:
        why = "files stay as they are, and hoodie.datasource.write.drop.partition.columns=true takes columns away"
    elif config.generates_keys:
        why = "the table has no record key columns"
    elif unsaid:
        why = (
            "Apache Hudi takes partition columns of a bootstrap from the names of folders, and they are not read back as "
            f"{'a second date' if pa.types.is_date(unsaid[0]) else unsaid[0]}"
        )
    if why:
        raise OptionError(f"{source.uri} cannot be migrated in place: {why}; migrate it by mode='copy'")
    source.storage.each(lambda piece: _require_file(source, piece, config, schema), source.pieces)


def _require_file(source: ParquetSource, piece: Piece, config: TableConfig, schema: pa.Schema) -> None:
    stored, _ = footer(source.storage, piece.path)
    missing = piece.partition.keys() - {*stored.names, *config.partition_fields}
    if missing:
        raise OptionError(
            f"{piece.path} of {source.uri} lacks column {min(missing)!r}, and in place only the partition columns of the table may be "
            "missing in files: partition the table by it, too (partition_by), or migrate it by mode='copy'"
        )
    for field in stored:
        kind = schema.field(field.name).type if field.name in schema.names else None
        if kind is not None and not _reads_as(field.type, kind):
            has = "nanoseconds" if "[ns" in str(field.type) else str(field.type)
            raise SchemaError(
                f"{piece.path} of {source.uri} has {has} in column {field.name!r}, which is {kind} in the table, and in place "
                "nothing is converted; migrate it by mode='copy'"
            )


def _is_said(kind: pa.DataType) -> bool:
    """Whether values are those that readers make of the texts in names of folders."""
    types = pa.types
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return (
        numbers or types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind) or types.is_date(kind)
    )


def version_begun(storage: Storage) -> str | None:
    """The version of the source that a run began with, which has left its note and no table."""
    return _note_in(storage).version if storage.exists(BOOTSTRAP_BEGUN) and not storage.exists(PROPERTIES) else None


@dataclass(frozen=True)
class InPlace:
    """What is made: `config` of a table like it in memory, `storage` where it will be."""

    storage: Storage
    config: TableConfig
    source: ParquetSource
    start: Checkpoint
    """Of the state of the other table whose files these are."""
    rows: Rows
    """Of these files."""
    keys: KeyGenerator
    key_columns: Sequence[str]
    write: WriteOptions

    def steps(self) -> Iterator[MigrationStep]:
        """Make the table, in one step.

        Raises:
            TableExistsError: one came to be there meanwhile, or a run with other arguments began one. SchemaError, OptionError: a file
                cannot be taken as it is.
        """
        started_s = time.monotonic()
        storage, source = self.storage, self.source
        note = self._note()
        pieces = [(number, piece) for number, piece in enumerate(source.pieces) if piece.rows]
        skeletons = storage.each(lambda each: self._skeleton(*each), pieces)
        ensure_partitions(storage, sorted({each.stat.partition_path for each in skeletons}), INSTANT)
        write_index(storage, source.uri, [each.mapped for each in skeletons], made_ms=note.made_ms)
        self._require_ours(skeletons)
        self._commit(note, skeletons)
        if self.config.layout.by_completion:
            storage.mkdirs(self.config.history_folder)
        properties = {**self.config.raw, **_properties(self.config, source.uri)}
        try:
            storage.create_new(PROPERTIES, format_properties(properties, comment=["Properties"]).encode())
        except FileExistsError:
            self._require_ours(skeletons)
        storage.delete(BOOTSTRAP_BEGUN)
        count = len(source.pieces)
        rows = sum(each.stat.num_writes for each in skeletons)
        yield MigrationStep(0, count, count, count, rows, INSTANT, time.monotonic() - started_s)

    def _require_ours(self, skeletons: Sequence[_Skeleton]) -> None:
        """Raises TableExistsError where another table came to be, in which the skeletons would count; a run with the same arguments
        may have been faster.
        """
        storage = self.storage
        if storage.exists(PROPERTIES) and load_config(storage).bootstrap_base != self.source.uri:
            storage.delete_all([each.stat.path for each in skeletons])
            raise TableExistsError(
                f"another table came to be at {storage.uri} during the migration of {self.source.uri}: choose another path"
            )

    def _note(self) -> _Note:
        """The note of the run that began."""
        storage = self.storage
        clock = Clock(storage.now_s, zone_of(self.config.timezone), time.sleep)
        mine = _Note(self._identity(), clock.allot(None), int(storage.now_s() * 1000), self.source.version)
        if not storage.exists(BOOTSTRAP_BEGUN):
            check_place(storage)
            if storage.exists(PROPERTIES):
                raise _just_made(storage)
            with suppress(FileExistsError):
                storage.create_new(BOOTSTRAP_BEGUN, json.dumps(mine._asdict()).encode())
        there = _note_in(storage)
        if there.identity != mine.identity:  # its run may still be at work
            raise TableExistsError(
                f"a migration in place with other arguments, or of other files, began a table at {storage.uri}: run that one again; "
                "or delete the folder when it no longer runs, and begin anew"
            )
        return there

    def _identity(self) -> str:
        """Another one where skeletons would be others."""
        text = json.dumps([identity_of(self.source), self.source.uri, sorted(self.config.raw.items())])
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    def _skeleton(self, number: int, piece: Piece) -> _Skeleton:
        """The file with the meta columns of the rows of a piece; one that an earlier run has finished stays."""
        storage, file_id = self.storage, str(uuid5(NAMESPACE_URL, f"{self.source.uri}/{piece.path}"))
        name = format_base_file(BaseFileName(file_id, str(WriteToken(number, 0, 0)), InstantTime(INSTANT)))
        batches = (self._keyed(batch, piece) for batch in self.rows.of(piece, self.key_columns))
        first = next(batches)
        partition_path = first.column(PARTITION_PATH)[0].as_py()
        self._require_said(piece, partition_path)
        path = join(partition_path, name)
        size_bytes = _finished(storage, path, piece)
        if size_bytes is None:
            storage.delete(path)
            storage.mkdirs(partition_path)
            context = self._context(partition_path)
            groups = RowGroups.of(large=False, memory_bytes=None)
            avro = with_meta_columns(_RECORD)
            with BaseFileWriter(storage, context, name, avro=avro, more_rows=piece.rows or 0, row_groups=groups) as out:
                part: pa.Table | None = first
                while part is not None:
                    self._require_one(piece, partition_path, part)
                    out.write(stamp(part, context, number, file_name="", first=out.rows))
                    part = next(batches, None)
            size_bytes = out.size_bytes
        rows = piece.rows or 0
        stat = WriteStat(
            file_id,
            partition_path,
            path,
            num_writes=rows,
            num_inserts=rows,
            total_bytes=size_bytes,
            file_size_bytes=size_bytes,
        )
        info = self.source.storage.stat(piece.path)
        mapped = SkeletonSource(
            partition_path,
            file_id,
            piece.path.rpartition("/")[0],
            hadoop_uri(self.source.uri, piece.path),
            piece.size_bytes,
            int(info.mtime_s * 1000),
        )
        return _Skeleton(stat, mapped)

    def _keyed(self, batch: pa.RecordBatch, piece: Piece) -> pa.Table:
        table = pa.Table.from_batches([batch])
        return pa.table({RECORD_KEY: self.keys.keys(table), PARTITION_PATH: self.keys.partitions(table)})

    def _context(self, folder: str) -> WriteContext:
        """Of a file that is written where it stays: nobody looks before there is a table."""
        return WriteContext(
            instant=InstantTime(INSTANT),
            table_name=self.config.name,
            schema=pa.schema([]),
            rule=self.config.rule,
            combine=False,
            files=self.write.file_options(),
            staging=folder,
            visible=VisibleInstants(frozenset(), frozenset(), None),
        )

    def _require_said(self, piece: Piece, partition_path: str) -> None:
        for name, part in zip(self.config.partition_fields, partition_path.split("/"), strict=False):
            kind = self.rows.schema.field(name).type if name in self.rows.schema.names else None
            if kind is not None and pa.types.is_date(kind) and part.endswith(DEFAULT_PARTITION):
                raise OptionError(
                    f"{piece.path} of {self.source.uri} has rows without a {name!r}, and Apache Hudi takes partition columns of a "
                    "bootstrap from the names of folders, where it reads no date that is null; migrate it by mode='copy'"
                )

    def _require_one(self, piece: Piece, partition_path: str, rows: pa.Table) -> None:
        others = rows.column(PARTITION_PATH).unique().to_pylist()
        if others != [partition_path]:
            other = next(each for each in others if each != partition_path)
            raise OptionError(
                f"{piece.path} of {self.source.uri} has rows of partitions {partition_path!r} and {other!r}, and in place all rows of "
                "a file are of one: partition the table as the folders do (partition_by), or migrate it by mode='copy'"
            )

    def _commit(self, note: _Note, skeletons: Sequence[_Skeleton]) -> None:
        config, layout = self.config, self.config.layout
        action = Action.COMMIT if config.table_type is TableType.COPY_ON_WRITE else Action.DELTACOMMIT
        completion = InstantTime(note.completion) if layout.by_completion else None
        at = Instant(InstantTime(INSTANT), action, State.COMPLETED, completion)
        checkpoint = replace(self.start, step=0, done=len(self.source.pieces), mode="in_place")
        metadata = commit_metadata(
            [WriteResult(each.stat, StagedFile("", each.stat.path, "CREATE")) for each in skeletons],
            operation=WriteOperation.BOOTSTRAP,
            schema=self.rows.schema,
            table_name=config.name,
            extra={**self.write.commit_entries, **checkpoint.entries},
        )
        for state in (State.REQUESTED, State.INFLIGHT):
            self.storage.replace(join(config.timeline_folder, layout.file_name(at._replace(state=state))), b"")
        path = join(config.timeline_folder, layout.file_name(at))
        self.storage.replace(path, layout.encode_commit(at, metadata))


def _reads_as(stored: pa.DataType, target: pa.DataType) -> bool:
    """Whether readers of every engine take values of a file for those of the table: as they are, or as wider numbers."""
    kind = None if "[ns" in str(stored) else storable_type(stored, "")
    return kind is not None and (kind == target or target in WIDER.get(kind, ()))


class _Note(NamedTuple):
    """What a run leaves as long as there is no table."""

    identity: str
    completion: str
    """The moment when the commit is completed, as its file says it where such files do."""
    made_ms: int
    version: str | None = None
    """Of the source, where it keeps versions: a run that goes on reads the same one."""


class _Skeleton(NamedTuple):
    stat: WriteStat
    mapped: SkeletonSource


def _note_in(storage: Storage) -> _Note:
    try:
        return _Note(**json.loads(storage.read(BOOTSTRAP_BEGUN)))
    except FileNotFoundError as exc:
        raise _just_made(storage) from exc
    except (ValueError, TypeError) as exc:
        raise CorruptFileError(
            f"{BOOTSTRAP_BEGUN} of {storage.uri}, where a migration in place began, does not decode: delete the folder, and begin anew"
        ) from exc


def _just_made(storage: Storage) -> TableExistsError:
    return TableExistsError(
        f"a table has just come to be at {storage.uri}: run this again to see whether it is the same"
    )


def _finished(storage: Storage, path: str, piece: Piece) -> int | None:
    """The size of a skeleton that is there with all rows."""
    try:
        size_bytes = storage.stat(path).size_bytes
        with open_parquet(storage.open_input(path), path=path) as file:
            return size_bytes if file.metadata.num_rows == piece.rows else None
    except (FileNotFoundError, CorruptFileError, pa.ArrowException):
        return None


def _properties(config: TableConfig, base: str) -> Mapping[str, str]:
    key, kind = "hoodie.bootstrap.index.type", "HFILE"
    if not config.layout.by_completion:
        key, kind = "hoodie.bootstrap.index.class", "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
    return {"hoodie.bootstrap.base.path": base, key: kind}


def hadoop_uri(base: str, path: str) -> str:
    """The address of a file as Hadoop writes it: a path of this machine with its scheme, and nothing encoded."""
    full = f"{base.rstrip('/')}/{path}"
    return f"file:{full}" if full.startswith("/") else full
