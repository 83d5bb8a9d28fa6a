"""What an engine gets that reads the files of `read/scan_files.py` by itself, held against the embedded engine."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.filegroup.run import run_read
from hoodie.read.scan_files import plan_scan_files

NAMES = ["id", "part", "val", "ts", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]


def plan_of(table, **query):
    scan = table.changes(**query, meta_columns=True) if "since" in query else table.scan(**query, meta_columns=True)
    context = table._context
    return scan, plan_scan_files(context.storage, context.cache, scan.plan.context, scan.plan.tasks, scan.schema)


def final_rows(table, scan, found):
    """What a native scan of the files gives, and the rest as our engine reads it."""
    storage, context = table._context.storage, scan.plan.context
    span = next((task.span for task in scan.plan.tasks), None)
    tables = []
    for file in found.files:
        assert file.size_bytes == storage.stat(file.path).size_bytes
        with storage.open_input(file.path) as source:
            rows = pq.ParquetFile(source).read(NAMES)
        if file.dead is not None:
            assert file.rows == rows.num_rows
            assert len(file.dead)
            kept = np.ones(rows.num_rows, dtype=bool)
            kept[file.dead] = False
            rows = rows.filter(pa.array(kept))
        tables.append(rows)
    for task in found.rest:
        tables += [pa.Table.from_batches([b]).select(NAMES) for b in run_read(storage, context, task)]
    tables += [] if found.rows is None else [found.rows.select(NAMES)]
    rows = [row for rows in tables for row in rows.to_pylist()]
    return [r for r in rows if span is None or span.contains(r["_hoodie_commit_time"])]


def check(table, **query):
    """The plan, once its rows are those of slices that are merged row by row, and those of the embedded engine."""
    scan, found = plan_of(table, **query)
    context = scan.plan.context
    merged = [b for task in scan.plan.tasks for b in run_read(table._context.storage, context, task)]
    expected = sorted(pa.Table.from_batches(merged, scan.schema).select(NAMES).to_pylist(), key=repr)
    assert sorted(final_rows(table, scan, found), key=repr) == expected
    assert sorted(scan.to_arrow().select(NAMES).to_pylist(), key=repr) == expected
    return found
