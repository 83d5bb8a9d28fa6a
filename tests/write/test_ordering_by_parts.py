"""A table ordered by a part of a struct has the rows of one that is ordered by a column with the same values."""

import random

import pyarrow as pa
import pytest

from hoodie.options.parse import parse_write_options
from hoodie.write.create import create_at
from tests.memory_tables import FakeClock, new_storage, opened

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("n", pa.int64()),
        ("ts", pa.int64()),
        ("s", pa.struct([("a", pa.string()), ("x", pa.int64())])),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
KINDS = [
    {},
    {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
    {"hoodie.populate.meta.fields": "false"},
    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
]


def table(ordering, kind, version, more):
    clock = FakeClock()
    storage = new_storage(clock)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": ordering,
        "hoodie.write.table.version": str(version),
        **more,
    }
    create_at(storage, parse_write_options(options).to_create(), schema=SCHEMA)
    return opened(storage, clock)


def batch(chance, number, *, deletes):
    rows = []
    for _ in range(chance.randrange(1, 9)):
        x = chance.choice([None, 0, 1, 2, 3, 4])
        gone = x is None and chance.random() < 0.5
        at, struct = chance.randrange(10), None if gone else {"a": "z", "x": x}
        dead = deletes and chance.random() < 0.2
        rows.append(
            {"id": f"k{at}", "p": chance.choice("ab"), "n": number, "ts": x, "s": struct} | {SCHEMA.names[5]: dead}
        )
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize(
    ("kind", "version", "seed"),
    [
        ("COPY_ON_WRITE", 6, 0),
        ("COPY_ON_WRITE", 9, 3),
        ("MERGE_ON_READ", 6, 1),
        ("MERGE_ON_READ", 6, 4),
        ("MERGE_ON_READ", 9, 0),
        ("MERGE_ON_READ", 9, 2),
        ("MERGE_ON_READ", 9, 3),
    ],
)
def test_rows_are_those_of_a_table_ordered_by_a_column(kind, version, seed):
    chance = random.Random(f"{seed} {kind} {version}")
    both = [
        table(ordering, kind, version, KINDS[seed])
        for ordering in ("ts,n" if seed == 2 else "ts", "s.x,n" if seed == 2 else "s.x")
    ]
    services = ["compact", "compact_logs"] if kind == "MERGE_ON_READ" else ["cluster"] * (seed != 3)
    for number in range(7):
        what = "upsert" if number < 2 else chance.choice(["upsert"] * 4 + ["delete", *services])
        rows = batch(chance, number, deletes=seed != 2)
        for each in both:
            if what in ("upsert", "delete"):
                getattr(each, what)(rows)
            else:
                getattr(each, what)(**({"blocks": 1} if what == "compact_logs" else {}))
        found = [sorted(each.scan().to_arrow().to_pylist(), key=str) for each in both]
        assert found[0] == found[1], (number, what)
        found = [sorted(each.scan(["id", "n"]).to_arrow().to_pylist(), key=str) for each in both]
        assert found[0] == found[1], (number, what)
