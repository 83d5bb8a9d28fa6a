"""Tables whose writer died at a storage call and that nobody has repaired: the peers read them as before or as after.

Apache Hudi then writes to some of them: it repairs what our dead writer left, and no row is lost or doubled.
"""

import pytest

import hoodie
from integration.views import View, by_hudi, by_rust, ours
from tests.crash.states import COLUMNS, UNDOING, crashed_tables, states_of
from tests.rows import sorted_rows

COUNT = 40
HUDI_WRITES_TO = 6
"""Of the states, evenly spread; a write of Hudi takes seconds."""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    return crashed_tables(tmp_path_factory.mktemp("crashed"), count=COUNT)


def user_rows(rows):
    return sorted_rows({name: row[name] for name in COLUMNS} for row in rows)


def test_there_are_states_of_both_outcomes(crashed):
    """Else the tests below would show little."""
    assert len(crashed) == COUNT
    outcomes = {user_rows(ours(path, View())) == after for path, _, after in crashed}
    assert outcomes == {True, False}


def test_hudi_reads_each_as_before_or_as_after(hudi, crashed):
    read = by_hudi(hudi)
    for path, before, after in crashed:
        rows = read(path, View())
        assert user_rows(rows) in (before, after), path
        assert rows == ours(path, View()), path


def test_hudi_rs_reads_each_as_before_or_as_after(crashed):
    for path, before, after in crashed:
        rows = by_rust(path, View())
        assert user_rows(rows) in (before, after), path


def test_while_commits_are_undone_each_state_that_others_see_is_that_after_a_commit(hudi, tmp_path):
    read = by_hudi(hudi)
    for name in UNDOING:
        states = states_of(name, tmp_path)
        for path, before, after in crashed_tables(tmp_path / name.replace(" ", "-"), count=6, names=[name]):
            assert user_rows(ours(path, View())) in (before, after), path
            assert user_rows(by_rust(path, View())) in states, path
            assert user_rows(read(path, View())) in states, path


def test_hudi_s_next_write_loses_and_doubles_nothing(hudi, crashed):
    # Hudi refuses to update what a pending clustering names; `test_clustering_with_hudi.py` goes on with those.
    written = [path for path, _, _ in crashed if not hoodie.open_table(path).pending_clusterings()]
    for path in written[:: len(written) // HUDI_WRITES_TO]:
        table = hoodie.open_table(path)
        before = user_rows(ours(path, View()))
        config = table.config
        options = {
            "hoodie.table.name": config.name,
            "hoodie.datasource.write.recordkey.field": ",".join(config.record_key_fields),
            "hoodie.datasource.write.partitionpath.field": ",".join(config.partition_fields),
            "hoodie.datasource.write.precombine.field": ",".join(config.ordering_fields),
            "hoodie.datasource.write.table.type": config.table_type.value,
        }
        hudi.write(path, table.scan().to_arrow().slice(0, 3), options)
        assert user_rows(by_hudi(hudi)(path, View())) == before, path
        assert user_rows(ours(path, View())) == before, path
        assert user_rows(by_rust(path, View())) == before, path
