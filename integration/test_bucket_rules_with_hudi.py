"""Numbers of buckets by partition: Apache Hudi goes by the rules that our tables are made with, and we by those that it changes."""

import json
from collections import Counter

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.bucket_rules import CONFIGS
from hoodie.hashes.of_buckets import bucket_of_file_id
from integration.tables import TRIPS
from integration.turns import Turns
from tests.effort import soak_but

EXPRESSIONS = "o.*o,2;^paris$,5"
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
RULES = {**BUCKET, "hoodie.bucket.index.partition.expressions": EXPRESSIONS}
CITIES = ("oslo", "paris", "rome")


def trips_of(numbers, turn, cities=CITIES):
    return [
        {**dict.fromkeys(TRIPS.names), "id": f"{city}{number}", "city": city, "ts": turn}
        for city in cities
        for number in numbers
    ]


class RuledTurns(Turns):
    def check(self, step):
        super().check(step)
        groups = Counter((s.group.partition_path, bucket_of_file_id(s.group.file_id)) for s in self.table.table.files())
        assert max(groups.values()) == 1, step

    def buckets(self):
        return Counter(s.group.partition_path for s in self.table.table.files())


@pytest.mark.parametrize("table_type", soak_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_one_table_in_turns(hudi, tmp_path, table_type):
    turns = RuledTurns(hudi, tmp_path / "table", table_type, more=BUCKET, own=RULES)
    turns.create()
    turns.we_upsert(trips_of(range(20), 1))
    turns.hudi_upserts(trips_of(range(10, 40), 2))
    turns.we_upsert(trips_of(range(30, 50), 3, (*CITIES, "opo")))
    turns.hudi_upserts(trips_of(range(20), 4, ("opo", "bern")))
    turns.we_upsert(trips_of(range(30), 5, ("opo", "bern")))
    turns.we_delete(trips_of(range(5), 6))
    turns.hudi_deletes(trips_of(range(5, 9), 7))
    assert turns.buckets() == {"oslo": 2, "opo": 2, "paris": 5, "rome": 3, "bern": 3}


@pytest.mark.parametrize("table_type", soak_but(["COPY_ON_WRITE"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_rules_that_apache_hudi_gives_a_table(hudi, tmp_path, table_type):
    path, name = tmp_path / "table", f"rescaled_{table_type.lower()}"
    options = BUCKET | {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
    }
    first = pa.Table.from_pylist(trips_of(range(40), 1), schema=TRIPS)
    hudi.write(path, first, options, mode="overwrite")
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    hudi.sql(
        f"CALL partition_bucket_index_manager(table => '{name}', overwrite => 'paris,7', rule => 'regex', bucket_number => 3, "
        "dry_run => false)"
    )
    (config,) = (each for each in (path / CONFIGS).iterdir() if each.suffix == ".hashing_config")
    assert json.loads(config.read_bytes())["expressions"] == "paris,7"
    table = hoodie.open_table(path)
    table.upsert(pa.Table.from_pylist(trips_of(range(30, 60), 2), schema=TRIPS))
    hudi.write(path, pa.Table.from_pylist(trips_of(range(50, 70), 3), schema=TRIPS), options)
    assert hoodie.open_table(path).scan().count() == 3 * 70
    groups = Counter((s.group.partition_path, s.group.file_id[:8]) for s in hoodie.open_table(path).files())
    assert max(groups.values()) == 1
    assert Counter(path for path, _ in groups) == {"oslo": 3, "paris": 7, "rome": 3}
    assert hudi.sql(f"SELECT count(*) AS n, count(distinct id) AS ids FROM {name}").rows == [{"n": 210, "ids": 210}]
