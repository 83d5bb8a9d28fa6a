"""Filters of other libraries: they open the files that they need, and find the rows that they find over plain rows."""

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import and_, or_

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import hoodie
from hoodie.errors import OptionError
from tests.memory_tables import reads

FIRST = date(2026, 1, 1)
DAYS = 100
NAN = math.nan


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def many_days(request):
    rows = pa.table(
        {
            "id": list(range(2 * DAYS)),
            "day": [FIRST + timedelta(n % DAYS) for n in range(2 * DAYS)],
            "ts": [1] * 2 * DAYS,
            "n": list(range(2 * DAYS)),
        }
    )
    table = hoodie.create_table(
        f"memory://many-days-{request.param}",
        rows.schema,
        record_key="id",
        partition_by="day",
        ordering="ts",
        table_type=request.param,
    )
    table.insert(rows)
    table.upsert(rows.slice(40, 20).set_column(3, "n", pa.array([-n for n in range(20)])))
    return table


DAY = date(2026, 2, 14)  # the 44th: with an update
FOUND = [(44, -4), (144, 144)]


def by_pyarrow(dataset):
    found = dataset.to_table(columns=["id", "n"], filter=pc.field("day") == DAY)
    return list(zip(*found.to_pydict().values(), strict=True))


def by_duckdb(dataset):
    con = duckdb.connect()
    con.register("trips", dataset)
    return con.execute("SELECT id, n FROM trips WHERE day = ?", [DAY]).fetchall()


@pytest.mark.parametrize("ask", [by_pyarrow, by_duckdb])
@pytest.mark.parametrize("pinned", [False, True], ids=["table", "scan"])
def test_a_filter_of_one_day_opens_the_files_of_that_day(many_days, monkeypatch, ask, pinned):
    dataset = many_days.scan().dataset() if pinned else many_days.dataset()
    files = reads(many_days._context.storage, monkeypatch)
    assert sorted(ask(dataset)) == FOUND
    assert {path.split("/")[0] for path in files()} == {str(DAY)}


@pytest.mark.parametrize(
    "where",
    [
        pl.col("day") == DAY,
        pl.lit(DAY) == pl.col("day"),
        pl.col("day").is_in([DAY]),
        pl.col("day").is_between(DAY, DAY + timedelta(1), closed="left"),
        ~((pl.col("day") < DAY) | (pl.col("day") > DAY)),
        (pl.col("day") >= datetime(2026, 2, 14)) & (pl.col("day") < datetime(2026, 2, 15)),
        (pl.col("day") == DAY) & (pl.col("n") % 1 == 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_opens_the_files_of_one_day(many_days, monkeypatch, where, engine):
    lazy = many_days.scan().to_polars_lazy()
    files = reads(many_days._context.storage, monkeypatch)
    found = lazy.filter(where).select("id", "n").collect(engine=engine)
    assert sorted(found.rows()) == FOUND
    assert {path.split("/")[0] for path in files()} == {str(DAY)}


def test_a_limit_of_polars_stops_reading(many_days, monkeypatch):
    lazy = many_days.scan().to_polars_lazy()
    files = reads(many_days._context.storage, monkeypatch)
    assert lazy.head(1).collect().height == 1
    assert len({path.split("/")[0] for path in files()}) == 1
    assert lazy.head(50).filter(pl.col("n") >= -100).collect().height == 50
    assert lazy.select(pl.len()).collect().item() == 2 * DAYS


def test_a_scan_keeps_its_moment_and_its_filter(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", ordering="ts")
    first = table.upsert({"id": [1, 2, 3], "ts": [1, 1, 1], "n": [1, 2, 3]})
    scans = [table.scan(["id", "n"], where) for where in ("n > 1", pc.field("n") > 1, [("n", ">", 1)])]
    earlier, since = table.scan(as_of=first), table.changes(since=first)
    table.upsert({"id": [1, 4], "ts": [2, 2], "n": [10, 4]})
    for scan in scans:
        assert scan.dataset().schema.names == ["id", "n"]
        assert scan.dataset().to_table(["id"], pc.field("n") < 3).to_pydict() == {"id": [2]}
        assert scan.to_polars_lazy().filter(pl.col("n") != 2).collect().rows() == [(3, 3)]
    assert earlier.dataset().count_rows(filter=pc.field("n") > 1) == 2
    assert since.dataset().to_table(filter=pc.field("n") > 1).num_rows == 0
    changed = table.changes(since=first).to_polars_lazy().filter(pl.col("n") > 4)
    assert changed.select("id").collect().rows() == [(1,)]
    with_meta = table.scan(meta_columns=True).to_polars_lazy().filter(pl.col("_hoodie_record_key") == "4")
    assert with_meta.select("n").collect().rows() == [(4,)]


def test_what_takes_no_filter_says_so(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert({"id": [1]})
    for scan in (table.scan().limit(1), table.changes(images="before_after")):
        for door in (scan.dataset, scan.to_polars_lazy):
            with pytest.raises(OptionError, match=r"limit the result|to_arrow\(\)"):
                door()


# -- Filters of every kind over columns of every kind.

ROWS = 48


def _rows():
    rng = random.Random(7)

    def column(kind, choices):
        return pa.array([None if rng.random() < 0.15 else rng.choice(choices) for _ in range(ROWS)], kind)

    at = [datetime(2026, 1, 1 + n, 6 * n, tzinfo=UTC) for n in range(4)]
    return pa.table(
        {
            "id": [f"k{n:02}" for n in range(ROWS)],
            "day": [FIRST + timedelta(n % 3) for n in range(ROWS)],
            "ts": [1] * ROWS,
            "i": column(pa.int32(), range(-3, 4)),
            "l": column(pa.int64(), [2**53 + 1, 2**53, -5, 0, 7]),
            "f": column(pa.float64(), [math.nan, 0.0, -0.0, 1.5, -2.5, math.inf]),
            "g": column(pa.float32(), [math.nan, 0.1, -0.0, 1.5]),
            "dec": column(pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-2.99"), Decimal("0.10"), Decimal(0)]),
            "s": column(pa.string(), ["", "a", "ab", "b%", "é", "zz"]),
            "t": column(pa.timestamp("us", "UTC"), at),
            "lt": column(pa.timestamp("us"), [each.replace(tzinfo=None) for each in at]),
            "b": column(pa.bool_(), [True, False]),
            "bin": column(pa.binary(), [b"", b"a", b"\xff"]),
        }
    )


@pytest.fixture(scope="module")
def mixed():
    """A table of file slices with logs and without."""
    rows = _rows()
    table = hoodie.create_table(
        "memory://mixed", rows.schema, record_key="id", partition_by="day", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.insert(rows.slice(0, 40))
    table.upsert(rows.filter(pc.field("day") == FIRST))
    table.upsert(rows.slice(40))
    return table


TEXTS = """i > 1; i = 2 OR f > 1; f > 1; f >= 1.5; f < 0; f = 'nan'::double; f <> 'nan'::double; f > 'nan'::double; f IN (0.0, 1.5)
f = 0; isnan(f); g = 0.1; g > 0.1; dec > 1.5; dec = -2.99; dec IN (1.5, 2.0, 0.1); dec BETWEEN 0 AND 1; s = 'a'; s IN ('a', 'zz')
s NOT IN ('a', 'zz'); s IN ('a', NULL); s NOT IN ('a', NULL); s IS NULL; s LIKE 'a%'; s >= 'b%'; t > '2026-01-02 07:00:00+01:00'
t IN (TIMESTAMPTZ '2026-01-01 00:00:00+00'); lt < TIMESTAMP '2026-01-02'; day = '2026-01-03'; day IN ('2026-01-03', '2026-01-04'); b
b IS NULL; b = false; bin = '\\xff'::BLOB; l = 9007199254740993; l > 9007199254740992; l > 1.5; i BETWEEN 0 AND 2; i = l; f IS NULL
i IS DISTINCT FROM 1; i + 1 = 2""".replace("\n", "; ").split("; ")

C = pl.col
EXPRESSIONS = [
    C.i > 1,
    (C.i == 2) | (C.f > 1),
    C.f > 1,
    C.f >= 1.5,
    C.f <= 1.5,
    C.f < 0,
    C.f == NAN,
    C.f != NAN,
    C.f > NAN,
    C.f != 1.5,
    C.f.is_in([0.0, 1.5]),
    C.f.is_in([math.nan]),
    C.f == 0,
    C.f.is_nan(),
    C.f.is_between(0.0, 1.5, closed="right"),
    C.g == 0.1,
    C.g > 0.1,
    C.dec > 1.5,
    C.dec > Decimal("1.4"),
    C.dec == Decimal("-2.99"),
    C.dec.is_in([Decimal("1.50")]),
    C.s == "a",
    C.s.is_in(["a", "zz"]),
    C.s.is_in(["a", None]),
    C.s.is_in([]),
    C.s.is_null(),
    C.s.is_not_null(),
    C.s.str.starts_with("a"),
    C.s.str.starts_with("b%"),
    C.s.str.ends_with("b"),
    C.s >= "b%",
    C.t > datetime(2026, 1, 2, 6, tzinfo=UTC),
    C.t == datetime(2026, 1, 1, tzinfo=UTC),
    C.t.is_in([datetime(2026, 1, 1, tzinfo=UTC)]),
    C.lt < datetime(2026, 1, 2),
    C.day == date(2026, 1, 2),
    C.day.is_in([date(2026, 1, 3)]),
    C.day > datetime(2026, 1, 2, 1),
    C.b,
    C.b == False,  # noqa: E712 - an expression
    C.bin == b"\xff",
    C.l == 2**53 + 1,
    C.l > 2**53,
    C.l > 1.5,
    C.l.is_in([7, 0]),
    C.i.is_between(0, 2),
    C.i == C.l,
    C.i.eq_missing(1),
    C.i.ne_missing(None),
    C.i + 1 == 2,
    C.i == pl.lit(None),
]


def _joined(parts, negated, both, either):
    """The parts, and some of them negated and joined."""
    rng = random.Random(3)
    yield from parts
    yield from map(negated, parts)
    for _ in range(25):
        some = [negated(part) if rng.random() < 0.3 else part for part in rng.sample(parts, rng.choice([2, 3]))]
        whole = (both if rng.random() < 0.5 else either)(some)
        yield negated(whole) if rng.random() < 0.3 else whole


def test_filters_of_duckdb_mean_what_they_mean_over_its_own_rows(mixed):
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.register("given", mixed.to_arrow())
    con.execute("CREATE TABLE plain AS SELECT * FROM given")
    con.register("trips", mixed.dataset())
    ways = (
        lambda part: f"NOT ({part})",
        lambda parts: " AND ".join(f"({part})" for part in parts),
        lambda parts: " OR ".join(f"({part})" for part in parts),
    )
    for where in _joined(TEXTS, *ways):
        query = f"SELECT id FROM {{}} WHERE {where} ORDER BY id"
        found = con.execute(query.format("trips")).fetchall()
        assert found == con.execute(query.format("plain")).fetchall(), where


def test_filters_of_polars_mean_what_they_mean_over_a_frame(mixed):
    plain, lazy = mixed.to_polars().lazy(), mixed.scan().to_polars_lazy()
    ways = (lambda part: ~part, lambda parts: reduce(and_, parts), lambda parts: reduce(or_, parts))
    for where in _joined(EXPRESSIONS, *ways):
        found, there = (frame.filter(where).select("id").collect().to_series() for frame in (lazy, plain))
        assert sorted(found) == sorted(there), str(where)


def test_filters_of_pyarrow_mean_what_they_mean_over_a_plain_dataset(mixed):
    plain, dataset = ds.dataset(mixed.to_arrow()), mixed.dataset()
    f = pc.field
    parts = [
        f("i") > 1,
        f("f") > 1.0,
        f("f") == NAN,
        f("f").is_null(nan_is_null=True),
        f("f").isin([0.0, 1.5, math.nan]),
        f("dec") == pa.scalar(Decimal("-2.99"), pa.decimal128(10, 2)),
        f("s").isin(["a", None]),
        f("s").is_null(),
        f("t") > pa.scalar(datetime(2026, 1, 2, tzinfo=UTC), pa.timestamp("us", "UTC")),
        f("day") == date(2026, 1, 3),
        f("b"),
        f("bin") == b"\xff",
        f("l") == 2**53 + 1,
        pc.starts_with(f("s"), "a"),
        f("i").cast(pa.int64()) == f("l"),
    ]
    ways = (lambda part: ~part, lambda parts: reduce(and_, parts), lambda parts: reduce(or_, parts))
    for where in _joined(parts, *ways):
        found, there = (each.to_table(columns=["id"], filter=where)["id"].to_pylist() for each in (dataset, plain))
        assert sorted(found) == sorted(there), str(where)


def test_a_filter_of_thousands_of_columns_is_left_to_polars(mixed):
    where = reduce(or_, [C.i == n for n in range(1_100)])
    found = mixed.scan().to_polars_lazy().filter(where).select("i").collect()
    assert {*found["i"]} == {0, 1, 2, 3}
