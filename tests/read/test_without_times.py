"""Tables whose rows do not store their commits: a pull gives all rows of its range or says that it cannot; none are passed over."""

import pytest

import hoodie
from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.names import PROPERTIES
from tests.memory_tables import Input, batch, new_table, opened

POPULATE = "hoodie.populate.meta.fields"


def table_of(table_type, *commits):
    """A table with these commits, each an operation and its ids, whose properties say that rows store no `_hoodie_` columns."""
    storage, clock = new_table(table_type=table_type)
    written = opened(storage, clock)
    instants = []
    for operation, *names in commits:
        rows = [batch([Input(each, "p", 1, len(instants)) for each in names])] if names else []
        instants.append(getattr(written, operation)(*rows))
    instants = [getattr(each, "instant", each) for each in instants]
    text = storage.read(PROPERTIES).decode()
    storage.replace(PROPERTIES, text.replace(f"{POPULATE}=true", f"{POPULATE}=false").encode())
    return opened(storage, clock), instants


def ids(scan):
    return sorted(scan.to_arrow().column("id").to_pylist())


def test_a_public_table_gives_all_its_rows_from_the_beginning_and_its_consumer_gets_them(public):
    table = public("v6_simplekeygen_hivestyle_no_metafields")
    opened = hoodie.open_table(table.path)
    assert ids(opened.changes()) == [1, 2, 3, 4] == ids(opened.scan())
    with opened.consumer("c") as consumer:
        assert ids(consumer.changes()) == [1, 2, 3, 4]
    with opened.consumer("c") as consumer:
        assert ids(consumer.changes()) == []


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_pull_gives_the_rows_of_files_that_its_commits_began(table_type):
    table, (first, _) = table_of(table_type, ("bulk_insert", "a", "b"), ("bulk_insert", "c"))
    assert ids(table.changes()) == ids(table.changes(since="earliest")) == ["a", "b", "c"]
    assert ids(table.changes(until=first)) == ["a", "b"]
    assert ids(table.changes(since=first)) == ["c"]


def test_a_pull_over_a_file_with_rows_of_older_commits_is_refused_and_its_consumer_stays():
    table, (first, _) = table_of("COPY_ON_WRITE", ("upsert", "a", "b"), ("upsert", "b", "c"))
    with pytest.raises(UnsupportedTableError, match=r"\.parquet may hold rows of other commits"):
        table.changes(since=first)
    consumer = table.consumer("c", start=first)
    with pytest.raises(UnsupportedTableError), consumer:
        consumer.changes()
    assert table.consumer("c").position == first
    assert ids(table.changes()) == ["a", "b", "c"]
    consumer = table.consumer("c")
    consumer.seek("latest")
    assert ids(consumer.changes()) == []


def test_a_pull_gives_the_rows_of_log_blocks_and_is_refused_over_a_compaction():
    commits = [("bulk_insert", "a", "b"), ("upsert", "a")]
    table, (first, second) = table_of("MERGE_ON_READ", *commits)
    assert ids(table.changes(since=first)) == ["a"]
    compacted, (first, second, _) = table_of("MERGE_ON_READ", *commits, ("compact",))
    assert ids(compacted.changes(until=second)) == ids(compacted.changes()) == ["a", "b"]
    with pytest.raises(UnsupportedTableError, match="may hold rows of other commits"):
        compacted.changes(since=first)


def test_the_change_feed_is_refused():
    table, _ = table_of("MERGE_ON_READ", ("upsert", "a"))
    with pytest.raises(UnsupportedTableError, match="does not store the _hoodie_ columns"):
        table.changes(images="before_after")


@pytest.mark.parametrize("name", META_COLUMNS)
def test_a_filter_on_a_column_that_no_row_has_is_refused(name):
    table, _ = table_of("COPY_ON_WRITE", ("upsert", "a"))
    with pytest.raises(OptionError, match=f"so no row has a {name}"):
        table.scan(where=f"{name} > ''")
    with pytest.raises(OptionError, match=name):
        table.changes(where=f"{name} > ''")
