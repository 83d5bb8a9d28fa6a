"""The embedded reader takes rows of logs from row copies, and from the logs where a copy cannot be read."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.filegroup.run import run_read
from hoodie.model.names import ROW_COPIES
from hoodie.read import scan_tasks
from hoodie.read.scan_tasks import FileTask, with_scan_files
from tests.memory_tables import Input, batch, keys, new_table, opened
from tests.small_files import SIZED

ROWS = 400


def table_with_logs(partitions=("a",), **options):
    """Each partition's rows are changed twice by commits that change all partitions; some are deleted by column and by key."""
    storage, clock = new_table(table_type="MERGE_ON_READ", **options)
    rows = [Input(f"k{n}", part, n, 5) for part in partitions for n in range(ROWS)]
    opened(storage, clock).upsert(batch(rows))
    opened(storage, clock).upsert(batch([row._replace(val=1000 + row.val, ts=6) for row in rows[::3]]))
    late = [row._replace(val=-1, ts=1) for row in rows[::7]]
    flagged = [row._replace(val=-2, ts=9, deleted=True) for row in rows[2::14]]
    opened(storage, clock).upsert(batch([*late, *flagged]))
    opened(storage, clock).delete(keys(rows[5::10]))
    return storage, clock


def planned(table, **query):
    plan = table.scan(**query).plan
    return with_scan_files(table._context, plan.context, plan.tasks)


def merged_rows(table, **query):
    """The same query, every slice merged row by row."""
    plan = table.scan(**query).plan
    found = [b for task in plan.tasks for b in run_read(table._context.storage, plan.context, task)]
    return in_order(pa.Table.from_batches(found, plan.output))


def in_order(rows):
    return sorted(rows.to_pylist(), key=repr)


def test_slices_with_copies_are_read_file_by_file():
    table = opened(*table_with_logs())
    tasks = planned(table)
    assert all(isinstance(task, FileTask) for task in tasks)
    assert [bool(task.copy_of) for task in tasks] == [False, *[True] * (len(tasks) - 1)]
    assert in_order(table.scan().to_arrow()) == merged_rows(table)


def test_explain_tells_how_logs_take_part():
    storage, clock = table_with_logs()
    table = opened(storage, clock)
    files = [task.file for task in planned(table)]
    dead = sum(len(file.dead) for file in files if file.dead is not None)
    copies = sum(1 for file in files if file.copy_of)
    assert dead
    assert (
        f"merging: {len(files)} files by row numbers ({copies} row copies; {dead} rows left out)"
        in table.scan().explain()
    )
    for info in storage.list(ROW_COPIES):
        storage.delete(info.path)
    assert "merging: 1 file slices by decoding their logs" in table.scan().explain()


@pytest.mark.parametrize(
    "query", [{"columns": ["val"]}, {"where": "val > 1000"}, {"where": "val > 1000", "columns": ["id"]}]
)
def test_columns_and_filters_see_merged_rows_only(query):
    table = opened(*table_with_logs())
    assert in_order(table.scan(**query).to_arrow()) == merged_rows(table, **query)
    assert table.scan(**query).count() == len(merged_rows(table, **query))


def damaged_page(data, column):
    """A byte changed in the middle of a column's pages."""
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    at = next(chunk.column(i) for i in range(chunk.num_columns) if chunk.column(i).path_in_schema == column)
    place = at.data_page_offset + at.total_compressed_size // 2
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


@pytest.mark.parametrize("how", ["gone", "cut", "a damaged page"])
@pytest.mark.parametrize("batch_rows", [64 * 1024, 16])
def test_a_copy_that_fails_while_it_is_read_gives_way_to_its_logs(how, batch_rows, monkeypatch):
    storage, clock = table_with_logs()
    table = opened(storage, clock)
    expected = merged_rows(table)
    scan = table.scan()
    context = scan.plan.context
    tasks = with_scan_files(table._context, context, scan.plan.tasks)
    for info in storage.list(ROW_COPIES):
        data = storage.read(info.path)
        if how == "gone":
            storage.delete(info.path)
        elif how == "cut":
            storage.replace(info.path, data[: len(data) // 2])
        else:
            storage.replace(info.path, damaged_page(data, "val"))
    read = scan_tasks.read_base_file
    monkeypatch.setattr(scan_tasks, "read_base_file", lambda *args: read(*args, batch_rows=batch_rows))
    found = [b for task in tasks for b in scan_tasks.run_task(storage, context, task)]
    assert in_order(pa.Table.from_batches(found, scan.schema)) == expected


def test_rows_that_were_given_before_a_copy_failed_are_not_given_again(monkeypatch):
    storage, clock = table_with_logs()
    table = opened(storage, clock)
    scan = table.scan()
    tasks = with_scan_files(table._context, scan.plan.context, scan.plan.tasks)
    read = scan_tasks.read_base_file

    def failing(storage, file, schema):
        for number, rows in enumerate(read(storage, file, schema, batch_rows=16)):
            if number == 2 and file.path.startswith(ROW_COPIES):
                raise CorruptFileError("a page is damaged")
            yield rows

    monkeypatch.setattr(scan_tasks, "read_base_file", failing)
    found = [b for task in tasks for b in scan_tasks.run_task(storage, scan.plan.context, task)]
    assert in_order(pa.Table.from_batches(found, scan.schema)) == merged_rows(table)


def test_a_damaged_base_file_is_an_error_with_copies_as_without_them():
    storage, clock = table_with_logs()
    table = opened(storage, clock)
    base = table.files()[0].base
    storage.replace(base.path, damaged_page(storage.read(base.path), "val"))
    with pytest.raises(CorruptFileError, match=base.name):
        table.scan().to_arrow()


def test_copies_of_many_partitions_are_not_read_for_one_of_them():
    table = opened(*table_with_logs(partitions=[f"p{n}" for n in range(8)]))
    assert not any(isinstance(task, FileTask) for task in planned(table, where="part = 'p3'"))
    assert all(isinstance(task, FileTask) for task in planned(table))
    for query in ({}, {"where": "part = 'p3'"}):
        assert in_order(table.scan(**query).to_arrow()) == merged_rows(table, **query)


def test_logs_beyond_the_bound_are_merged_slice_by_slice():
    table = opened(*table_with_logs(), tuning=replace(SIZED, merged_entries=10))
    assert not any(isinstance(task, FileTask) for task in planned(table))
    assert in_order(table.scan().to_arrow()) == merged_rows(table)


def test_a_copy_whose_footer_has_a_column_under_another_name_is_passed_over():
    storage, clock = table_with_logs()
    expected = merged_rows(opened(storage, clock))
    for info in storage.list(ROW_COPIES):
        data = storage.read(info.path)
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        place = data.index(b"val", footer)  # the schema stands first in it
        storage.replace(info.path, data[:place] + b"vam" + data[place + 3 :])
    table = opened(storage, clock)
    assert not any(isinstance(task, FileTask) for task in planned(table))
    assert in_order(table.scan().to_arrow()) == expected
