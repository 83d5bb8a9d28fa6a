"""Our hash of a timeline is Apache Hudi's: by it a timeline server and its clients tell whether they speak of the same state."""

import hoodie
from hoodie.timeline.timeline import completed_and_compactions, timeline_hash


def test_hashes_of_a_timeline_with_every_kind_of_instant(hudi, tmp_path):
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id", partition_by="city", table_type="MERGE_ON_READ")

    def same():
        timeline = table.timeline
        assert hudi.timeline_hashes(path) == {
            "all": timeline_hash(timeline),
            "views": timeline_hash(completed_and_compactions(timeline)),
        }

    for fare in range(4):
        table.upsert([{"id": n, "city": "ab"[n % 2], "fare": fare} for n in range(4)])
    same()
    table.compact()
    table.savepoint()
    table.upsert([{"id": 1, "city": "b", "fare": 9}])
    table.clean(retain_commits=1)
    table.insert_overwrite([{"id": 1, "city": "b", "fare": 10}])
    same()
    table.upsert([{"id": 0, "city": "a", "fare": 11}])
    table.schedule_compaction()
    same()
    table.run_compaction()
    table.schedule_clustering(["fare"])
    same()
    table.rollback(table.pending_clusterings()[0].time)
    same()


def test_hashes_of_a_table_of_version_9(hudi, golden):
    table = golden("v9_mor")
    timeline = hoodie.open_table(table.path).timeline
    assert hudi.timeline_hashes(table.path)["all"] == timeline_hash(timeline, timeline.layout)
