"""Tables without `_hoodie_` columns, and tables whose files lack partition columns: both writers in turns, and what Hudi refuses."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import OptionError, UnsupportedTableError
from integration import rust_peer
from integration.hudi_client import PeerError

NO_META = {"hoodie.populate.meta.fields": "false"}
DROP = {"hoodie.datasource.write.drop.partition.columns": "true"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
COMPACT_NOW = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
DELETE = {"hoodie.datasource.write.operation": "delete"}
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
SCHEMA = pa.schema(
    [("id", pa.int64()), ("city", pa.string()), ("n", pa.int32()), ("v", pa.string()), ("ts", pa.int64())]
)


def rows(*values):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=True)) for each in values], schema=SCHEMA)


def plain(found):
    """In our order of columns; Hudi calls a partition column that files lack a text."""
    return sorted(tuple(int(row[name]) if name == "n" else row[name] for name in SCHEMA.names) for row in found)


class Both:
    """One table and what it must hold."""

    def __init__(self, hudi, path, table_type, key, partition_by, options):
        self.hudi, self.path, self.table_type, self.key, self.partition_by = hudi, path, table_type, key, partition_by
        self.more = options
        self.options = {
            "hoodie.table.name": path.name,
            "hoodie.datasource.write.recordkey.field": ",".join(key),
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": table_type,
            **({"hoodie.datasource.write.partitionpath.field": partition_by} if partition_by else {}),
            **options,
        }
        self.rows = {}

    @property
    def table(self):
        return hoodie.open_table(self.path)

    def create(self):
        hoodie.create_table(
            self.path,
            SCHEMA,
            record_key=self.key,
            partition_by=self.partition_by,
            ordering="ts",
            table_type=self.table_type,
            options=self.more,
        )

    def ours(self, *values):
        self.table.upsert(rows(*values))
        self._merge(values)

    def theirs(self, *values, **more):
        self.hudi.write(self.path, rows(*values), {**self.options, **more})
        self._merge(values)

    def _merge(self, values):
        for row in values:
            if row[0] not in self.rows or row[4] >= self.rows[row[0]][4]:
                self.rows[row[0]] = row
        self.check()

    def ours_deletes(self, *values):
        self.table.delete(rows(*values))
        self._remove(values)

    def theirs_deletes(self, *values):
        self.hudi.write(self.path, rows(*values), {**self.options, **DELETE})
        self._remove(values)

    def _remove(self, values):
        for row in values:
            self.rows.pop(row[0], None)
        self.check()

    def check(self):
        expected = sorted(self.rows.values())
        assert plain(self.table.scan().to_arrow().to_pylist()) == expected
        assert plain(self.hudi.read(self.path).table.to_pylist()) == expected
        newest = self.table.timeline.commits[-1].time
        assert plain(self.table.scan(as_of=newest).to_arrow().to_pylist()) == expected
        bases = plain(self.table.scan(query="read_optimized").to_arrow().to_pylist())
        assert bases == plain(self.hudi.read(self.path, "read_optimized").table.to_pylist())
        if self.more is not None and DROP.items() <= self.more.items():
            with pytest.raises(Exception, match=r"drop\.partition\.columns"):
                rust_peer.read(self.path)
        else:
            assert self.table.validate(deep=True)
            assert plain(rust_peer.read(self.path)) == expected


@pytest.mark.parametrize(
    ("table_type", "key", "partition_by", "options", "creator"),
    [
        (COW, ["id"], "city", NO_META, "ours"),
        (MOR, ["id"], "city", NO_META, "theirs"),
        (MOR, ["id", "n"], "city", NO_META, "ours"),
        (MOR, ["id"], "city", {**NO_META, **BUCKET}, "ours"),
        (COW, ["id"], "city", DROP, "theirs"),
        (COW, ["id"], "n", {**DROP, **HIVE}, "ours"),
    ],
)
def test_both_writers_take_turns(hudi, tmp_path, table_type, key, partition_by, options, creator):
    both = Both(hudi, tmp_path / "t", table_type, key, partition_by, options)
    if creator == "ours":
        both.create()
    first = both.ours if creator == "ours" else both.theirs
    first((1, "a", 1, "x", 1), (2, "b", 2, "y", 1), (3, "a", 1, "z", 1), (5, "b", 2, "k", 1))
    both.theirs((1, "a", 1, "x2", 2), (4, "b", 2, "w", 1))
    both.ours((2, "b", 2, "y3", 3), (6, "a", 1, "n", 1), (4, "b", 2, "late", 0))
    both.ours_deletes((3, "a", 1, "z", 9))
    both.theirs((6, "a", 1, "n2", 2), (7, "b", 2, "h", 1))
    both.theirs_deletes((5, "b", 2, "k", 9))
    both.ours((1, "a", 1, "x5", 5), (8, "a", 1, "e", 1))
    if table_type == MOR:
        assert both.table.compact()
        both.check()
        both.theirs((8, "a", 1, "e2", 2), (9, "b", 2, "i", 1))
        both.theirs((1, "a", 1, "x6", 6), **COMPACT_NOW)
    if both.table.config.buckets is None:
        assert both.table.cluster("v")
        both.check()
    both.theirs((8, "a", 1, "e3", 3))
    both.ours((8, "a", 1, "e4", 4), (9, "b", 2, "i2", 2))


def test_a_table_with_neither_is_read_by_hudi(hudi, tmp_path):
    both = Both(hudi, tmp_path / "t", COW, ["id"], "city", {**NO_META, **DROP})
    both.create()
    both.ours((1, "a", 1, "x", 1), (2, "b", 2, "y", 1))
    both.ours((1, "a", 1, "x2", 2))
    both.ours_deletes((2, "b", 2, "y", 2))


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_what_an_insert_of_hudi_leaves_out_is_read(hudi, tmp_path, operation):
    """Also of merge-on-read tables without partition columns, which Hudi makes by inserts only."""
    insert = {"hoodie.datasource.write.operation": operation}
    for name, options in (("a", NO_META), ("b", {**NO_META, "hoodie.datasource.write.row.writer.enable": "false"})):
        both = Both(hudi, tmp_path / name, MOR, ["id"], "city", options)
        both.theirs((1, "a", 1, "x", 1), (2, "b", 2, "y", 1), **insert)
        both.ours((1, "a", 1, "x2", 2), (3, "a", 1, "z", 1))
    if operation == "insert":
        both = Both(hudi, tmp_path / "c", MOR, ["id"], "city", DROP)
        both.theirs((1, "a", 1, "x", 1), (2, "b", 2, "y", 1), **insert)
        both.theirs((3, "b", 2, "z", 1), **insert)
        with pytest.raises(UnsupportedTableError, match="keep partition columns"):
            both.ours((1, "a", 1, "x2", 2))


@pytest.mark.parametrize(
    ("options", "told", "ours_told"),
    [
        (
            {
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "ts",
                "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
                "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
                "hoodie.keygen.timebased.output.dateformat": "yyyy",
            },
            "Only simple, non-partitioned or complex key generator",
            "only key generators SIMPLE, COMPLEX, NON_PARTITION",
        ),
        (
            {"hoodie.datasource.write.operation": "insert"},
            "not supported with auto generation of record keys",
            "keys that are generated stand nowhere",
        ),
    ],
)
def test_what_hudi_refuses_is_refused(hudi, tmp_path, options, told, ours_told):
    with pytest.raises(PeerError, match=told):
        hudi.write(tmp_path / "t", rows((1, "a", 1, "x", 1)), {"hoodie.table.name": "t", **NO_META, **options})
    key = [name] if (name := options.get("hoodie.datasource.write.recordkey.field")) else []
    with pytest.raises(OptionError, match=ours_told):
        hoodie.create_table(tmp_path / "u", SCHEMA, record_key=key, options={**NO_META, **options})


def test_hudi_refuses_every_pull_that_we_answer_or_refuse(hudi, tmp_path):
    both = Both(hudi, tmp_path / "t", COW, ["id"], "city", NO_META)
    both.theirs((1, "a", 1, "x", 1), (2, "b", 2, "y", 1))
    both.theirs((1, "a", 1, "x2", 2))
    with pytest.raises(PeerError, match="Incremental queries are not supported when meta fields are disabled"):
        hudi.read(both.path, "incremental", begin="0")
    assert plain(both.table.changes().to_arrow().to_pylist()) == sorted(both.rows.values())
    with pytest.raises(UnsupportedTableError, match="may hold rows of other commits"):
        both.table.changes(since=both.table.timeline.commits[0].time)
