"""Rows that somebody else has prepared and staged are written as they are, or not at all."""

import pyarrow as pa
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.errors import CommitConflictError
from hoodie.model.enums import WriteOperation
from hoodie.options.parse import parse_write_options
from hoodie.write.prepare import run_prepare
from hoodie.write.stage import PreparedRows, plan_preparation
from tests.memory_tables import Input, batch, new_table, opened, snapshot_of


def prepared(table, rows, options):
    preparation = plan_preparation(table._context, rows.schema, operation=WriteOperation.UPSERT, options=options)
    return PreparedRows(preparation, [*run_prepare(preparation, None, None, rows.to_batches())])


@pytest.fixture
def staged():
    """A table with one row, another row that was prepared for it, and a call that writes that."""
    table = opened(*new_table(table_type="MERGE_ON_READ"))
    table.upsert(batch([Input("a", "p", 1, 1)]))
    rows = batch([Input("b", "p", 2, 2)])
    options = parse_write_options({"hoodie.write.set.null.for.missing.columns": "true"}, defaults={}).write
    records = prepared(table, rows, options)
    engine = LocalEngine(1)
    return table, lambda: table.writer.write(records, rows.schema, WriteOperation.UPSERT, options, engine=engine)


def test_prepared_rows_are_written(staged):
    table, write = staged
    assert write().inserted == 1
    assert [row[0] for row in snapshot_of(table)] == ["a", "b"]


def test_prepared_rows_are_refused_after_the_schema_changed(staged):
    table, write = staged
    table.upsert(batch([Input("c", "p", 3, 3)]).append_column("more", pa.array([1])))
    with pytest.raises(CommitConflictError, match="changed while the rows were staged"):
        write()
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == ["a", "c"]
