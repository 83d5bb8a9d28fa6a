"""hoodie in this process, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.dataset as ds

import hoodie
import hoodie.public  # loaded at the first use otherwise, and the imports of the peers are not measured either
from benchmarks.rides import CODEC, KEY, ORDERING, PARTITION
from benchmarks.systems.base import PLAIN, READ_OPTIMIZED, SNAPSHOT, VERSION_9
from benchmarks.systems.embedded import EmbeddedSystem, answer_of, total_of

_QUERIES = {SNAPSHOT: "snapshot", READ_OPTIMIZED: "read_optimized"}


class MergeOnRead(EmbeddedSystem):
    """Logs beside base files."""

    views = (PLAIN, SNAPSHOT, READ_OPTIMIZED)
    table_type = "MERGE_ON_READ"
    made_with: Mapping[str, str] = MappingProxyType({})
    """More options of the table."""
    more: Mapping[str, str] = MappingProxyType({})
    """Options of every write."""

    @property
    def path(self) -> Path:
        return self.root / "rides"

    def load(self) -> None:
        table = hoodie.create_table(
            self.path,
            self.given.schema,
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            table_type=self.table_type,
            options=self.made_with,
        )
        table.bulk_insert(self.given, self._options())

    def upsert(self, name: str) -> None:
        self.result = hoodie.open_table(self.path).upsert(self.given, self._options())

    def outcome(self) -> str:
        return f"{self.result.inserted} new, {self.result.updated} updated"

    def pull(self) -> str:
        table = hoodie.open_table(self.path)
        return total_of(table.changes(since=table.timeline.commits[-2].position).to_arrow())

    def rows(self, view: str, columns: Sequence[str] | None = None) -> pa.Table:
        table = hoodie.open_table(self.path)
        if view == PLAIN:
            return self._base(table).to_table(columns=list(columns or table.schema.names))
        return table.scan(columns=columns, query=_QUERIES[view]).to_arrow()

    def lookup(self, view: str) -> str:
        table = hoodie.open_table(self.path)
        if view == PLAIN:
            return answer_of(self._base(table).to_table(filter=ds.field(KEY) == self.key))
        return answer_of(table.scan(query=_QUERIES[view], where=f"{KEY} = '{self.key}'").to_arrow())

    def _base(self, table: hoodie.HoodieTable) -> ds.Dataset:
        return ds.dataset([str(self.path / piece.base.path) for piece in table.files() if piece.base is not None])

    def compact(self) -> None:
        hoodie.open_table(self.path).compact()

    def _options(self) -> dict[str, str]:
        return {"hoodie.parquet.compression.codec": CODEC, **self.more}


class MergeOnReadParquet(MergeOnRead):
    """Logs with Parquet blocks, which are as small as base files."""

    more = MappingProxyType({"hoodie.logfile.data.block.format": "parquet"})


class CopyOnWrite(MergeOnRead):
    """Base files that are written anew."""

    views = (PLAIN, SNAPSHOT)
    table_type = "COPY_ON_WRITE"


class MergeOnRead9(MergeOnRead):
    """A table of version 9."""

    made_with = VERSION_9


class CopyOnWrite9(CopyOnWrite):
    """A table of version 9."""

    made_with = VERSION_9
