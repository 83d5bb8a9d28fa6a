"""The schema of a table whose files leave their partition columns out."""

import json

import pyarrow as pa

import hoodie


def test_a_commit_need_not_state_what_folders_say(tmp_path):
    """Apache Hudi's commits do not, beside ours, which do."""
    path = tmp_path / "t"
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64())])
    table = hoodie.create_table(path, schema, record_key="id", partition_by="city", options=options)
    for n in range(2):
        table.upsert([{"id": n, "city": "rome", "n": n}])
    commit = path / ".hoodie" / f"{table.timeline.commits[-1].time}.commit"
    metadata = json.loads(commit.read_text())
    stated = json.loads(metadata["extraMetadata"]["schema"])
    stated["fields"] = [each for each in stated["fields"] if each["name"] != "city"]
    metadata["extraMetadata"]["schema"] = json.dumps(stated)
    commit.write_text(json.dumps(metadata))
    found = hoodie.open_table(path).scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["city"]) for row in found] == [(0, "rome"), (1, "rome")]
