"""Tables without `_hoodie_` columns, and tables whose files lack partition columns, from Spark."""

import pytest

import hoodie
import pyspark_hoodie
from hoodie.errors import UnsupportedTableError
from hoodie.model.meta_fields import META_COLUMNS

pytestmark = pytest.mark.spark

NO_META = {"hoodie.populate.meta.fields": "false"}
DROP = {"hoodie.datasource.write.drop.partition.columns": "true"}
COLUMNS = "id long, city string, v string, ts long"
BASE = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


def write(session, path, rows, **options):
    frame = session.createDataFrame(rows, COLUMNS)
    frame.write.format("hoodie").options(**BASE, **options).mode("append").save(path)


def read(session, path, **options):
    return session.read.format("hoodie").options(**options).load(path)


def state(frame):
    return sorted(tuple(row[name] for name in ("id", "city", "v", "ts")) for row in frame.collect())


@pytest.mark.parametrize(
    "options",
    [NO_META, {**NO_META, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}, DROP, {**NO_META, **DROP}],
    ids=["no meta, cow", "no meta, mor", "no columns", "neither"],
)
def test_spark_writes_and_reads_them(door, tmp_path, options):
    path = str(tmp_path / "t")
    options = {**options, "hoodie.python.driver.max.bytes": "0"}
    write(door, path, [(1, "a", "x", 1), (2, "b", "y", 1), (3, "a", "z", 1)], **options)
    write(door, path, [(1, "a", "x2", 2), (2, "b", "late", 0), (4, "b", "w", 1)], **options)
    write(door, path, [(3, "a", None, None)], **options, **{"hoodie.datasource.write.operation": "delete"})
    expected = [(1, "a", "x2", 2), (2, "b", "y", 1), (4, "b", "w", 1)]
    frame = read(door, path)
    assert state(frame) == expected == state(read(door, path, where="id > 0"))
    assert state(frame.where("city = 'b'")) == expected[1:]
    assert frame.where("city = 'a'").count() == 1
    stored = set(frame.columns) & set(META_COLUMNS)
    assert stored == (set() if NO_META.items() <= options.items() else set(META_COLUMNS))
    embedded = hoodie.open_table(path)
    seen = embedded.scan(columns=["id", "city", "v", "ts"]).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in seen) == expected
    assert embedded.validate(deep=True) or not NO_META.items() <= options.items()


def test_pulls_of_a_table_without_commit_times_give_all_rows_or_an_error(door, tmp_path):
    path = str(tmp_path / "t")
    incremental = {"hoodie.datasource.query.type": "incremental"}
    write(door, path, [(1, "a", "x", 1)], **NO_META)
    write(door, path, [(2, "a", "y", 1)], **NO_META)
    first = hoodie.open_table(path).timeline.commits[0].time
    begin = "hoodie.datasource.read.begin.instanttime"
    assert len(state(read(door, path, **incremental, **{begin: "0"}))) == 2
    with pytest.raises(Exception, match="may hold rows of other commits"):
        read(door, path, **incremental, **{begin: first}).collect()


def test_a_stream_of_them_fails_where_it_would_pass_rows_over(enabled, tmp_path):
    path = str(tmp_path / "t")
    write(enabled, path, [(1, "a", "x", 1)], **NO_META)
    with pytest.raises(UnsupportedTableError, match="_hoodie_ columns"):
        pyspark_hoodie.HoodieTable.for_path(enabled, path).changes(images="before_after")
    first = hoodie.open_table(path).timeline.commits[0].time
    write(enabled, path, [(1, "a", "x2", 2)], **NO_META)
    stream = enabled.readStream.format("hoodie").option("hoodie.datasource.streaming.startOffset", first).load(path)
    query = stream.writeStream.format("memory").queryName("gone").trigger(availableNow=True).start()
    with pytest.raises(Exception, match="may hold rows of other commits"):
        query.awaitTermination()
