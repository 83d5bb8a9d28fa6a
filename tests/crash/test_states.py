import pytest

from hoodie.storage.local import LocalStorage
from tests.crash.states import COLUMNS, crashed_tables
from tests.memory_tables import opened
from tests.rows import rows_of


@pytest.mark.long
def test_the_crashed_tables_are_whole_for_our_reader_and_some_are_in_the_middle(tmp_path):
    tables = crashed_tables(tmp_path, count=16)
    assert len(tables) == 16
    pending = 0
    for path, before, after in tables:
        table = opened(LocalStorage(path))
        assert rows_of(table.scan(columns=COLUMNS).to_arrow()) in (before, after), path
        pending += bool(table.timeline.pending())
    assert pending > 4
