"""Another writer commits between the reading of a statement and its commit: the statement runs again, on what is there then."""

import pytest

import hoodie
from hoodie.dml.changes import Changes
from hoodie.errors import DuplicateKeyError

FIRST = [{"id": n, "city": "rome", "ts": 1, "n": n} for n in range(4)]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="city", ordering="ts", table_type=request.param
    )
    table.insert(FIRST)
    return table


@pytest.fixture
def meanwhile(monkeypatch):
    """Something that another writer does once, when the rows of a statement have been read."""
    turns = []

    def during(act):
        rest = Changes.rest

        def late(self):
            yield from rest(self)
            turns.append(1)
            if len(turns) == 1:
                act()

        monkeypatch.setattr(Changes, "rest", late)
        return turns

    return during


def rows(table):
    return {(row["id"], row["city"]): row["n"] for row in table.scan().to_arrow().to_pylist()}


def test_an_update_sees_what_another_one_wrote(table, meanwhile):
    other = hoodie.open_table(table.uri)
    turns = meanwhile(lambda: other.upsert([{"id": 1, "city": "rome", "ts": 2, "n": 100}]))
    table.update({"n": "n + 1"}, where="id <= 1")
    assert len(turns) == 2
    assert rows(table) == {(0, "rome"): 1, (1, "rome"): 101, (2, "rome"): 2, (3, "rome"): 3}


def test_a_merge_does_not_insert_a_key_twice(table, meanwhile):
    other = hoodie.open_table(table.uri)
    turns = meanwhile(lambda: other.insert([{"id": 9, "city": "rome", "ts": 1, "n": 50}]))
    source = [{"id": 9, "city": "rome", "ts": 1, "n": 1}]
    (
        table.merge(source, on="t.id = s.id and t.city = s.city")
        .when_matched_update({"n": "t.n + s.n"})
        .when_not_matched_insert_all()
        .execute()
    )
    assert len(turns) == 2
    assert rows(table)[9, "rome"] == 51


def test_a_row_does_not_move_onto_one_that_came_meanwhile(table, meanwhile):
    other = hoodie.open_table(table.uri)
    meanwhile(lambda: other.insert([{"id": 1, "city": "oslo", "ts": 1, "n": 77}]))
    with pytest.raises(DuplicateKeyError, match="oslo"):
        table.update({"city": "'oslo'"}, where="id = 1 and city = 'rome'")
    assert rows(table) == {**{(n, "rome"): n for n in range(4)}, (1, "oslo"): 77}


def test_a_write_elsewhere_disturbs_nobody(table, meanwhile):
    other = hoodie.open_table(table.uri)
    turns = meanwhile(lambda: other.insert([{"id": 1, "city": "bern", "ts": 1, "n": 5}]))
    table.update({"n": "n + 1"}, where="city = 'rome' and id = 0")
    assert len(turns) == 1
    assert rows(table)[0, "rome"] == 1


def test_a_row_that_would_have_been_a_partner_came_meanwhile(tmp_path, meanwhile):
    """It stands in a file group of its own, under another key: only its partition says that the two writes meet."""
    options = {"hoodie.parquet.small.file.limit": "0"}
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city", options=options)
    table.insert(FIRST)
    other = hoodie.open_table(table.uri)
    turns = meanwhile(lambda: other.insert([{"id": 9, "city": "rome", "ts": 1, "n": 50}], options))
    source = [{"id": 8, "city": "rome", "ts": 1, "n": 50}]
    table.merge(source, on="t.n = s.n", options=options).when_not_matched_insert_all().execute()
    assert len(turns) == 2
    assert (8, "rome") not in rows(table)
