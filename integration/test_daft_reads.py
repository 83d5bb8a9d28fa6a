"""Daft reads the copy-on-write tables that hoodie wrote, as it reads those of Apache Hudi 0.x: by the class of the key generator.

Daft (0.7.26) shows rows that an overwrite replaced, and fails on a base file without rows, which a delete of all of them leaves:
whoever wrote the table.
"""

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

import hoodie
from integration.hudi_client import ROOT
from tests.rows import rows_of, sorted_rows

# The environment of the peers has it: Daft wants an older pyarrow than the first one has.
PYTHON = ROOT / Path(os.environ.get("HOODIE_PEER_PYTHON", ".venv-integration/bin/python"))
READ = """
import os, sys, daft, pyarrow.feather as feather
feather.write_feather(daft.read_hudi(sys.argv[1]).to_arrow(), sys.argv[2])
os._exit(0)  # Daft's threads sometimes abort the process while Python shuts down
"""
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ROWS = pa.table(
    {"id": [1, 2, 3, 4], "city": ["sf", "la", "sf", "la"], "ts": [1, 1, 1, 1], "fare": [1.5, None, 3.0, 4.0]}
)


def by_daft(path, scratch):
    answer = scratch / "daft.arrow"
    done = subprocess.run([PYTHON, "-c", READ, path, answer], capture_output=True, text=True, check=False)
    if "No module named 'daft'" in done.stderr:
        pytest.fail(f"{PYTHON} has no Daft; `make integration` installs it", pytrace=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return sorted_rows(rows_of(feather.read_table(answer)))


@pytest.mark.parametrize(
    ("key", "partition_by", "options"),
    [
        ("id", None, {}),
        ("id", "city", {}),
        ("id", "city", HIVE_STYLE),
        (["id", "ts"], ["city"], {}),
        (["id"], ["city", "ts"], HIVE_STYLE),
    ],
)
def test_daft_reads_what_we_read(tmp_path, key, partition_by, options):
    path = tmp_path / "rides"
    table = hoodie.create_table(path, record_key=key, partition_by=partition_by, ordering="fare", options=options)
    table.bulk_insert(ROWS)
    table.upsert(pa.table({"id": [1, 5], "city": ["sf", "la"], "ts": [1, 1], "fare": [9.0, 5.0]}))
    table.delete(ROWS.slice(2, 1))
    ours = sorted_rows(rows_of(table.scan(meta_columns=True).to_arrow()))
    assert len(ours) == 4
    assert by_daft(path, tmp_path) == ours
