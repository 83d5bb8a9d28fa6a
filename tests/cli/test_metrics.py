"""The command `metrics`: what Prometheus reads."""

import json
import re

import pytest

import hoodie
from hoodie.cli.__main__ import main

SAMPLE = re.compile(r'hoodie_(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (-?[0-9.e+]+)')


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_state_of_a_table(tmp_path, capsys, version):
    path = tmp_path / 'a "table"'
    table = hoodie.create_table(
        path,
        record_key="id",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={"hoodie.write.table.version": version},
    )
    with table.consumer("job") as consumer:
        consumer.changes()
    assert main(["metrics", str(path)]) == 0
    assert 'commits{table="a_table",' in capsys.readouterr().out.replace('a \\"table\\"', "a_table")
    table.insert({"id": ["a", "b"], "ts": [1, 1]})
    table.upsert({"id": ["a"], "ts": [2]})
    table.schedule_compaction()
    assert main(["metrics", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    samples = [SAMPLE.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(samples)
    found = {sample[1]: float(sample[3]) for sample in samples if "kind=" not in sample[2]}
    wanted = {"file_groups": 1, "log_files": 1, "commits": 2, "pending_instants": 1, "consumer_lag_commits": 2}
    assert {name: found[name] for name in wanted} == wanted
    ages = [found[name] for name in ("latest_commit_age_seconds", "pending_oldest_age_seconds", "consumer_lag_seconds")]
    assert all(0 <= age < 600 for age in ages)
    assert main(["metrics", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {each["kind"]: each["value"] for each in data["hoodie_latest_commit_rows"]} == {
        "inserted": 0,
        "updated": 1,
        "deleted": 0,
    }
