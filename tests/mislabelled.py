"""Tables as Apache Hudi 0.x and then 1.1 leave them: the older files call milliseconds microseconds, and local times longs."""

import json
from collections.abc import Container
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import hoodie
from hoodie.format.avro_schema import avro_from_arrow

# A whole second, which fits the wrong label without an error, and one that does not.
MOMENT = datetime(2019, 12, 31, 23, 59, 59, tzinfo=UTC)
MILLIS, LOCAL = pa.timestamp("ms", "UTC"), pa.timestamp("ms")


def _columns(moment: pa.DataType, local: pa.DataType, *, nested: bool) -> pa.Schema:
    flat = [("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("at", moment), ("local", local)]
    deep = [
        ("inside", pa.struct([("at", moment), ("local", local)])),
        ("listed", pa.list_(pa.field("element", moment))),
        ("mapped", pa.map_(pa.string(), moment)),
    ]
    return pa.schema(flat + deep if nested else flat)


def moment_of(ident: int, ts: int) -> datetime:
    """What a row has in all of its columns."""
    return MOMENT + timedelta(milliseconds=ident % 2, days=ts)


def rows(idents: range, ts: int, part: str, *, schema: pa.Schema | None = None, nested: bool = True) -> pa.Table:
    """Rows as they are meant; `schema` takes their numbers for those of its own types."""
    right = _columns(MILLIS, LOCAL, nested=nested)
    found = []
    for ident in idents:
        at = moment_of(ident, ts)
        naive = at.replace(tzinfo=None)
        inner = {"at": at, "local": naive}
        found.append(
            {
                "id": ident,
                "part": part,
                "ts": ts,
                "at": at,
                "local": naive,
                "inside": inner,
                "listed": [at, None],
                "mapped": [("a", at)],
            }
        )
    data = pa.Table.from_pylist(found, right)
    return data if schema is None else pa.table([_renamed(data[f.name], f.type) for f in schema], schema=schema)


def _renamed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The column's buffers under other types."""
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    if whole.type == kind:
        return whole
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [_renamed(pa.chunked_array([p]), f.type) for p, f in zip(whole.flatten(), kind)], fields=[*kind]
        )
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(
            whole.offsets, _renamed(pa.chunked_array([whole.values]), kind.value_type), type=kind
        )
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(
            whole.offsets, whole.keys, _renamed(pa.chunked_array([whole.items]), kind.item_type), type=kind
        )
    return whole.cast(pa.int64()).cast(kind)


def mislabelled_table(path: Path, table_type: str, *, nested: bool = True) -> list[str]:
    """Make the table, with rows 0 to 9 in partitions a and b, of which 0 to 2 were updated; gives the instants.

    Only the newest commit, which inserts row 9, knows the right types.
    """
    wrong = _columns(pa.timestamp("us", "UTC"), pa.int64(), nested=nested)
    table = hoodie.create_table(
        path, record_key="id", partition_by="part", ordering="ts", table_type=table_type, schema=wrong
    )
    times = [
        table.insert(rows(range(5), 1, "a", schema=wrong)).instant,
        table.insert(rows(range(5, 9), 1, "b", schema=wrong)).instant,
        table.upsert(rows(range(3), 2, "a", schema=wrong)).instant,
    ]
    # The last commit states the right types for as long as the next one needs to take them over.
    stated = next((path / ".hoodie").glob(f"{times[-1]}.*commit"))
    before = stated.read_text(encoding="utf-8")
    commit = json.loads(before)
    commit["extraMetadata"]["schema"] = json.dumps(
        avro_from_arrow(_columns(MILLIS, LOCAL, nested=nested), table_name=path.name)
    )
    stated.write_text(json.dumps(commit), encoding="utf-8")
    times.append(hoodie.open_table(path).insert(rows(range(9, 10), 1, "b", nested=nested)).instant)
    stated.write_text(before, encoding="utf-8")
    return times


def expected(updated: Container[int] = range(3)) -> list[dict[str, Any]]:
    """The rows of the table; those in `updated` have `ts` 2."""
    parts = [rows(range(i, i + 1), 2 if i in updated else 1, "a" if i < 5 else "b") for i in range(10)]
    return pa.concat_tables(parts).to_pylist()


def by_id(data: pa.Table) -> list[dict[str, Any]]:
    """The rows of an answer in the order of `expected`."""
    return sorted(data.to_pylist(), key=lambda row: row["id"])
