"""Public jobs for Apache Hudi: their options (`public_jobs.conf`), rows to write with them, and what a query gives then."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
KEYGEN, PARTITION = "hoodie.datasource.write.keygenerator.class", "hoodie.datasource.write.partitionpath.field"
OPERATION, PAYLOAD = "hoodie.datasource.write.operation", "hoodie.datasource.write.payload.class"
_NOBODY = {"hoodie.datasource.hive_sync.metastore.uris": "thrift://localhost:1"}
"""In place of a metastore's name that would be looked up: the registration fails at once, and the commit stands."""
_KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "text": (pa.string(), lambda n: f"2015-01-01T13:51:{n:02}.340396Z"),
    "timestamp": (pa.timestamp("us", "UTC"), lambda n: datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC)),
    "seconds": (pa.int64(), lambda n: 1_578_283_932 + n * 86_400),
    "milliseconds": (pa.int64(), lambda n: (1_578_283_932 + n * 86_400) * 1000),
    "days": (pa.int64(), lambda n: 20_000 + n),
    "iso": (pa.string(), lambda n: f"2020-04-{n:02}T13:01:33.428Z"),
    "long": (pa.int64(), lambda n: n),
}


@dataclass(frozen=True)
class Job:
    name: str
    options: Mapping[str, str]
    types: Mapping[str, str]
    refused: str | None
    server: str | None
    in_spark: bool
    stored_by: str | None = None
    """The partition column of the table that a job deletes from by keys alone."""
    misspelled: Mapping[str, str] = field(default_factory=dict)
    """Options that are none of Apache Hudi's: it drops them without a word. The others are in `options`."""
    differs: str | None = None
    """Why Apache Hudi makes another table of the options, or none."""

    def _columns(self, *names: str) -> tuple[str, ...]:
        text = next((self.options[name] for name in names if self.options.get(name)), "")
        return tuple(part.partition(":")[0].strip() for part in text.split(",") if part.strip())

    @property
    def keys(self) -> tuple[str, ...]:
        return self._columns("hoodie.datasource.write.recordkey.field")

    @property
    def partition(self) -> tuple[str, ...]:
        return self._columns(PARTITION) or self._stored_by

    @property
    def _stored_by(self) -> tuple[str, ...]:
        return () if self.stored_by is None else (self.stored_by,)

    @property
    def deletes_by_keys(self) -> bool:
        return self.options.get(KEYGEN, "").endswith("GlobalDeleteKeyGenerator")

    @property
    def ordering(self) -> tuple[str, ...]:
        return self._columns("hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields")

    @property
    def payload(self) -> str:
        return self.options.get(PAYLOAD, "").rpartition(".")[2]

    @property
    def operation(self) -> str:
        """What the second write does."""
        if self.payload == "EmptyHoodieRecordPayload":
            return "delete"
        return "insert" if self._drops else self.options.get(OPERATION, "upsert")

    @property
    def _drops(self) -> bool:
        return self.options.get("hoodie.datasource.write.insert.drop.duplicates") == "true" or (
            self.options.get("hoodie.datasource.insert.dup.policy") == "drop"
        )

    @property
    def load_options(self) -> dict[str, str]:
        """Those of the first write, which has to leave rows."""
        dropped = {PAYLOAD} if self.payload == "EmptyHoodieRecordPayload" else set()
        if self.operation not in ("insert", "bulk_insert"):
            dropped.add(OPERATION)
        if self.deletes_by_keys:
            dropped.add(KEYGEN)
        made = {} if self.stored_by is None else {PARTITION: self.stored_by}
        return {**made, **{name: text for name, text in self.options.items() if name not in dropped}}

    def rows(self) -> tuple[pa.Table, pa.Table]:
        """Two batches: the second has a newer row, an older one and another key, and nothing in column `w`."""
        first = [self._row(key, part, 10, f"{key}1", "w") for key, part in (("a", 1), ("b", 1), ("c", 2))]
        apart = 7 if self.deletes_by_keys else 1  # in another partition than the stored row
        second = [self._row(*each, None) for each in (("b", apart, 20, "b2"), ("c", 2, 5, "c2"), ("d", 2, 20, "d2"))]
        if self.payload == "AWSDmsAvroPayload":
            first, second = ([{**row, "Op": op} for row in rows] for rows, op in ((first, "I"), (second, "U")))
            second[0]["Op"] = "D"
        schema = pa.schema([(name, self._kind(name)[0]) for name in first[0]])
        batches = [pa.Table.from_pylist(rows, schema=schema) for rows in (first, second)]
        if self.options.get("hoodie.datasource.write.reconcile.schema") == "true":
            batches[1] = batches[1].drop_columns(["w"])
        return batches[0], batches[1]

    def later_rows(self) -> tuple[pa.Table, pa.Table]:
        """Two more batches, each with a stored key, one that comes late, and a new one."""
        third = (("a", 1, 22, "a3"), ("d", 2, 15, "d3"), ("e", 1, 22, "e3"))
        fourth = (("c", 2, 25, "c4"), ("e", 1, 21, "e4"), ("f", 2, 25, "f4"))
        return self._later(third), self._later(fourth)

    def _later(self, batch: tuple[tuple[str, int, int, str], ...]) -> pa.Table:
        told = {"Op": "U"} if self.payload == "AWSDmsAvroPayload" else {}
        rows = [{**self._row(*each, "w"), **told} for each in batch]
        return pa.Table.from_pylist(rows, schema=pa.schema([(name, self._kind(name)[0]) for name in rows[0]]))

    def _kind(self, name: str) -> tuple[pa.DataType, Any]:
        if name in self.types:
            return _KINDS[self.types[name]]
        return _KINDS["long"] if name in self.ordering and name not in self.keys else (pa.string(), str)

    def _row(self, key: str, part: int, order: int, v: str, w: str | None) -> Row:
        row: Row = {"v": v, "w": w}
        for names, value in ((self.ordering, order), (self.partition, part)):
            row |= {name: self._kind(name)[1](value) for name in names}
        row |= {
            name: self._kind(name)[1](order) if name in self.ordering and len(self.keys) > 1 else key
            for name in self.keys
        }
        return row

    def expected(self) -> list[Row]:
        """The rows after both writes."""
        first, second = ([{"w": None, **row} for row in table.to_pylist()] for table in self.rows())
        stored = {self._identity(row): row for row in first}
        match self.operation:
            case "insert" | "bulk_insert":
                new = [row for row in second if not (self._drops and self._identity(row) in stored)]
                return [*first, *new]
            case "delete_partition":
                gone = self.options["hoodie.datasource.write.partitions.to.delete"].split(",")
                return [row for row in first if row[self.partition[0]] not in gone]
            case "insert_overwrite_table":
                return second
            case "insert_overwrite":
                replaced = {self._part(row) for row in second}
                return [*(row for row in first if self._part(row) not in replaced), *second]
            case "delete":
                gone = {self._identity(row) for row in second}
                return [row for row in first if self._identity(row) not in gone]
        if not self.keys:
            return [*first, *second]
        for row in second:
            merged = self._merged(stored.pop(self._identity(row), None), row)
            if merged is not None:
                stored[self._identity(row)] = merged
        return list(stored.values())

    def _merged(self, old: Row | None, new: Row) -> Row | None:
        by_commit = ("OverwriteWithLatestAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "AWSDmsAvroPayload")
        mode = self.options.get("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING" if self.payload in by_commit else "")
        if new.get("Op") == "D":
            return None
        if old is None:
            return new
        if mode != "COMMIT_TIME_ORDERING" and any(new[name] < old[name] for name in self.ordering):
            return old
        fills = self.payload in ("PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload")
        return {name: old[name] if fills and value is None else value for name, value in new.items()}

    def _identity(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in (*self.keys, *(() if self.deletes_by_keys else self.partition)))

    def _part(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.partition)


def public_jobs() -> list[Job]:
    text = configparser.ConfigParser(delimiters=("=",), interpolation=None, default_section="")
    text.optionxform = str  # type: ignore[assignment,method-assign]
    text.read(Path(__file__).parent / "public_jobs.conf", encoding="utf-8")
    return [_job(name, dict(text[name])) for name in text.sections()]


def _job(name: str, lines: dict[str, str]) -> Job:
    del lines["source"]
    types = dict(pair.split("=") for pair in lines.pop("types", "").split(",") if pair)
    words = ("refused", "server", "spark", "stored", "differs")
    refused, server, in_spark, stored_by, differs = (lines.pop(name, None) for name in words)
    misspelled = {key: lines.pop(key) for key in lines.pop("misspelled", "").split()}
    options = {key: _NOBODY.get(key, value) for key, value in lines.items()}
    return Job(name, options, types, refused, server, in_spark is not None, stored_by, misspelled, differs)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: repr(sorted(row.items())))
