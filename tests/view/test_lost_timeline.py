"""A table that has data files and no instant: its timeline is lost, unless its first write is just beginning."""

import pytest

from hoodie.errors import CorruptFileError
from hoodie.model.names import HOODIE
from hoodie.view.context import TableContext
from tests.memory_tables import Input, batch, new_table, opened

ROWS = batch([Input("k", "a", 1, 1)])


def another(storage, clock):
    return opened(storage, clock=clock)


def test_a_first_write_beside_a_reader_is_no_loss(monkeypatch):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    look, begun = TableContext.file_without_timeline, []

    def beside(context):
        if not begun:
            begun.append(True)
            another(storage, clock).upsert(ROWS)
        return look(context)

    monkeypatch.setattr(TableContext, "file_without_timeline", beside)
    assert another(storage, clock).scan(["id"]).to_arrow().to_pylist() == [{"id": "k"}]
    assert begun


def test_a_lost_timeline_is_no_empty_table():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    another(storage, clock).upsert(ROWS)
    for info in storage.list(HOODIE):
        if info.name[:1].isdigit():
            storage.delete(info.path)
    table = another(storage, clock)
    for act in (lambda: table.scan().count(), lambda: table.upsert(ROWS)):
        with pytest.raises(CorruptFileError, match="is lost"):
            act()
