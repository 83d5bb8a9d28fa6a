"""Tables that UPDATE and MERGE have changed: Apache Hudi and hudi-rs read them as we do, and Hudi goes on with them."""

import random

import pyarrow as pa
import pytest

import hoodie
from integration.views import View, by_hudi, by_rust, differences, ours

SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("name", pa.string()), ("ts", pa.int64())]
)


def some(rng, ids, ts):
    return pa.Table.from_pylist(
        [
            {"id": each, "part": rng.choice("abc"), "n": rng.randrange(9), "name": rng.choice("xyz"), "ts": ts}
            for each in ids
        ],
        schema=SCHEMA,
    )


@pytest.mark.parametrize("index", ["BLOOM", "BUCKET"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_reader_has_the_same_rows_in_all_views(hudi, table_type, index, tmp_path):
    rng = random.Random(5)
    path = tmp_path / "t"
    table = hoodie.create_table(
        path,
        record_key="id",
        partition_by="part",
        ordering="ts",
        table_type=table_type,
        options={"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "3"},
    )
    table.insert(some(rng, [f"k{n}" for n in range(30)], 1))
    table.update({"part": "CASE part WHEN 'a' THEN 'b' ELSE 'a' END", "n": "n + 10"}, where="n > 4")
    (
        table.merge(some(rng, [f"k{n}" for n in range(20, 40)], 2), on="t.id = s.id")
        .when_matched_delete("s.n = 3")
        .when_matched_update_all()
        .when_not_matched_insert_all("s.n > 1")
        .when_not_matched_by_source_delete("t.id = 'k1'")
        .when_not_matched_by_source_update({"name": "concat(t.name, '!')"}, "t.id < 'k15'")
        .execute()
    )
    if table_type == "MERGE_ON_READ":
        table.compact()
    table.update({"name": "upper(name)", "part": "'d'"}, where="id in ('k5', 'k6', 'k21')")
    assert differences(path, ours, by_hudi(hudi)) == []
    assert differences(path, ours, by_rust) == []
    ids = [row["id"] for row in ours(path, View())]
    assert len(ids) == len(set(ids))

    hudi.write(
        path,
        some(rng, ["k5", "k50"], 9).set_column(1, "part", pa.array(["d", "d"])),
        {
            "hoodie.table.name": table.config.name,
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.index.type": index,
            "hoodie.bucket.index.num.buckets": "3",
        },
    )
    assert differences(path, ours, by_hudi(hudi)) == []
    assert [row["ts"] for row in ours(path, View()) if row["id"] in ("k5", "k50")] == [9, 9]
