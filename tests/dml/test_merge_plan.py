"""`explain` of a MERGE: it says what the statement does then, and nothing of the table changes."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import DuplicateKeyError, OptionError

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
SOURCE = [
    {"id": 1, "city": "oslo", "ts": 2, "n": 1, "op": "U"},
    {"id": 2, "city": "oslo", "ts": 2, "n": 2, "op": "D"},
    {"id": 3, "city": "oslo", "ts": 2, "n": 3, "op": "?"},
    {"id": 9, "city": "<b>", "ts": 2, "n": 9, "op": "U"},
]


def table_at(path, kind, options=None):
    table = hoodie.create_table(
        path, record_key="id", partition_by="city", ordering="ts", table_type=kind, options=options
    )
    table.insert([{"id": n, "city": "oslo" if n < 4 else "rome", "ts": 1, "n": n} for n in range(8)])
    return table


def merge(table, source=SOURCE):
    made = table.merge(source, on="t.id = s.id").when_matched_delete("s.op = 'D'").when_matched_update_all("s.op = 'U'")
    made = made.when_not_matched_insert({name: f"s.{name}" for name in ("id", "city", "ts", "n")})
    return made.when_not_matched_by_source_update({"n": "t.n + 1"}, "t.id = 7")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
def test_it_says_what_the_statement_does_then(tmp_path, kind, index):
    options = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    table = table_at(tmp_path / "t", kind, options if index == "BUCKET" else {"hoodie.index.type": index})
    before = sorted((tmp_path / "t").rglob("*"))
    plan = merge(table).explain()
    assert sorted((tmp_path / "t").rglob("*")) == before
    assert (plan.source_rows, plan.matched, [each.rows for each in plan.clauses]) == (4, 3, [1, 1, 1, 1])
    result = merge(table).execute()
    assert (plan.updated, plan.deleted, plan.partitions) == (result.updated, result.deleted, 3)
    assert (plan.inserted, plan.file_groups) == (result.inserted, result.files)
    assert (plan.appended > 0) == (kind == "MERGE_ON_READ")
    assert (plan.rewritten > 0) == (kind == "COPY_ON_WRITE")


def test_its_texts_are_for_people(tmp_path):
    plan = merge(table_at(tmp_path / "t", "COPY_ON_WRITE")).explain()
    lines = str(plan).splitlines()
    assert lines[:-1] == [
        "MERGE into t, not run: 3 of 4 rows of the source meet a stored row",
        "  when matched and s.op = 'D' then delete: 1 row deleted",
        "  when matched and s.op = 'U' then update *: 1 row updated",
        "  when not matched then insert id, city, ts, n: 1 row inserted",
        "  when not matched by source and t.id = 7 then update n: 1 row updated",
    ]
    assert lines[-1].startswith("  writes about ")
    assert lines[-1].endswith(" to 3 file groups in 3 partitions: 2 rewritten, 1 new")
    assert str(plan) in repr(plan)
    assert "when matched and s.op = &#x27;D&#x27; then delete" in plan._repr_html_()


def test_pairs_that_no_clause_fits_are_no_conflict(tmp_path):
    table = table_at(tmp_path / "t", "COPY_ON_WRITE")
    twice = pa.Table.from_pylist([SOURCE[0], {**SOURCE[0], "op": "?"}])
    plan = table.merge(twice, on="t.id = s.id").when_matched_update_all("s.op = 'U'").explain()
    assert (plan.matched, plan.updated) == (2, 1)
    with pytest.raises(DuplicateKeyError, match="several rows of the source"):
        table.merge(twice, on="t.id = s.id").when_matched_update_all().explain()


def test_a_merge_that_changes_nothing_writes_nothing(tmp_path):
    table = table_at(tmp_path / "t", "MERGE_ON_READ")
    plan = table.merge(SOURCE, on="t.id = s.id").when_matched_delete("false").explain()
    assert (plan.matched, plan.file_groups, plan.bytes_to_write) == (3, 0, 0)
    assert str(plan).endswith("\n  writes nothing")


def test_what_cannot_run_is_said_by_explain_too(tmp_path):
    table = table_at(tmp_path / "t", "MERGE_ON_READ")
    with pytest.raises(OptionError, match="no clause"):
        table.merge(SOURCE, on="t.id = s.id").explain()
    with pytest.raises(OptionError, match="nope"):
        table.merge(SOURCE, on="t.id = s.id").when_matched_update({"n": "s.nope"}).explain()


def test_bytes_are_about_those_that_are_written(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    rows = pa.table({"id": [f"{n:09}" for n in range(20_000)], "n": [n * 7919 % 99_991 for n in range(20_000)]})
    table.insert(rows)
    made = table.merge(rows.slice(0, 50), on="t.id = s.id").when_matched_update({"n": "t.n + 1"})
    plan = made.explain()
    assert 0.7 < plan.bytes_to_write / made.execute().bytes_written < 1.5
