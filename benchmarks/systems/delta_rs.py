"""delta-rs: MERGE without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake

from benchmarks.rides import CODEC, KEY, PARTITION
from benchmarks.systems.embedded import EmbeddedSystem, answer_of


class DeltaRs(EmbeddedSystem):
    """Copy-on-write: it writes no deletion vectors. The merge is told the partition as well, so that it may prune."""

    pulls = False

    @property
    def uri(self) -> str:
        return str(self.root / "rides")

    def load(self) -> None:
        write_deltalake(self.uri, self.given, partition_by=[PARTITION], writer_properties=_properties())

    def upsert(self, name: str) -> None:
        self.done = (
            DeltaTable(self.uri)
            .merge(
                self.given,
                predicate=f"t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY}",
                source_alias="s",
                target_alias="t",
                writer_properties=_properties(),
            )
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    def outcome(self) -> str:
        return f"{self.done['num_target_rows_inserted']} new, {self.done['num_target_rows_updated']} updated"

    def rows(self, view: str, columns: Sequence[str] | None = None) -> pa.Table:
        return DeltaTable(self.uri).to_pyarrow_table(columns=None if columns is None else list(columns))

    def lookup(self, view: str) -> str:
        query = f"SELECT * FROM rides WHERE {KEY} = '{self.key}'"
        return answer_of(pa.table(QueryBuilder().register("rides", DeltaTable(self.uri)).execute(query).read_all()))

    def compact(self) -> None:
        DeltaTable(self.uri).optimize.compact(writer_properties=_properties())


def _properties() -> WriterProperties:
    return WriterProperties(compression=CODEC.upper())
