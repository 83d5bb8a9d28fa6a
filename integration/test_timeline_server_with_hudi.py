"""Our timeline server and Apache Hudi's client, and the other way round: answers are those of Hudi's own view, which lists."""

import pytest

import hoodie
import hoodie.timeline_server
from hoodie.options.parse import parse_write_options
from hoodie.services.acts import schedule
from hoodie.services.clustering import CLUSTERING
from integration.tables import trips
from integration.turns import Turns

PARTITIONS = ("oslo", "rome", "not/there")


def compare(hudi, path, server, partitions=PARTITIONS):
    """Every method of Hudi's view: by listing, and from the server; gives how many answers there were."""
    expected = hudi.view_answers(path, partitions)
    host = f"hoodie:{server.token}@127.0.0.1" if server.token else "127.0.0.1"
    found = hudi.view_answers(path, partitions, host=host, port=server.port)
    assert found.keys() == expected.keys()
    differ = {key: (found[key], expected[key]) for key in expected if found[key] != expected[key]}
    differ = {key: both for key, both in differ.items() if both[1] is not None}  # where Hudi's own view throws
    assert not differ, "\n".join(f"{key}\n  ours {ours}\n  hudi {theirs}" for key, (ours, theirs) in differ.items())
    return len(found)


@pytest.mark.parametrize("store", ["memory", "spillable", "rocksdb"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudis_client_gets_from_our_server_what_hudi_lists(hudi, tmp_path, table_type, store):
    if store != "memory" and table_type == "COPY_ON_WRITE":
        pytest.skip("the stores are told apart by merge-on-read tables")
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    cities = sorted({row["city"] for row in trips(range(8), fare=1, ts=10)})
    with hoodie.timeline_server.start(turns.path, store) as server:
        check = [compare(hudi, turns.path, server, [*cities, "not/there"])]
        turns.hudi_upserts(trips(range(4), fare=2, ts=11))
        check.append(compare(hudi, turns.path, server, cities))
        turns.we_upsert(trips(range(10), fare=3, ts=12))
        if table_type == "MERGE_ON_READ":
            hoodie.open_table(turns.path).schedule_compaction()
            check.append(compare(hudi, turns.path, server, cities))
            turns.we_upsert(trips(range(6), fare=4, ts=13))  # logs of the pending compaction's slices
            check.append(compare(hudi, turns.path, server, cities))
            hoodie.open_table(turns.path).run_compaction()
            turns.check("after the compaction")
            check.append(compare(hudi, turns.path, server, cities))
        turns.hudi_upserts_and_cleans_up(trips(range(3), fare=5, ts=14))
        check.append(compare(hudi, turns.path, server, cities))
        hoodie.open_table(turns.path).delete_partitions([cities[0]])
        check.append(compare(hudi, turns.path, server, cities))
        options = parse_write_options({"hoodie.clustering.plan.strategy.small.file.limit": "1000000"}).write
        assert schedule(CLUSTERING, hoodie.open_table(turns.path)._context, options)
        check.append(compare(hudi, turns.path, server, cities))
    assert min(check) > 50
