"""A batch that meets one file only: its candidate keys are looked up by several tasks, with the answer of one."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.filegroup.chunks import make_chunk
from hoodie.index.bloom import pieces_by_partition, plan_lookup, run_lookups
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import LookupPack
from hoodie.options.table_options import TableOptions
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from hoodie.table import open_at
from hoodie.write.create import create_at


def stored_keys():
    return [f"k{i:05d}" for i in range(0, 2000, 2)]


@pytest.fixture
def table():
    storage = MemoryStorage("memory://hot")
    create_at(storage, TableOptions(name="hot", record_key_fields=("id",), partition_fields=("part",)))
    made = open_at(storage)
    made.upsert(pa.table({"id": stored_keys(), "part": ["p"] * 1000}))
    return storage, made


@pytest.mark.parametrize("most", [1, 97, 400, 10_000])
def test_the_candidate_keys_of_a_hot_file_are_split_over_tasks(table, most):
    storage, made = table
    keys = [f"k{i:05d}" for i in np.random.default_rng(5).permutation(2000)[:1000]]
    halves = [pa.table({RECORD_KEY: part, PARTITION_PATH: ["p"] * 500}) for part in (keys[:500], keys[500:])]
    chunks = [make_chunk(half) for half in halves]
    pieces = pieces_by_partition(chunks)
    tasks = plan_lookup(pieces, made.files(), stage_to=None, prune_by_range=True, max_keys=most)
    assert [sum(p.span.length for p in task.pieces) for task in tasks[:-1]] == [most] * (len(tasks) - 1)
    assert sum(p.span.length for task in tasks for p in task.pieces) == 1000
    found = set()
    for result in (result for task in tasks for result in run_lookups(storage, Cache(), LookupPack((task,)))):
        for match in result.matches:
            found |= {(match.number, int(row)) for row in match.rows}
    stored = set(stored_keys())
    assert found == {(at // 500, at % 500) for at, key in enumerate(keys) if key in stored}
