"""`validate` and `doctor`: what is wrong is found, each by itself, and a whole table has nothing."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.model.enums import Action, State
from hoodie.model.findings import Level
from hoodie.model.instant import Instant
from hoodie.model.names import PARTITION_METADATA
from hoodie.model.tuning import Tuning
from hoodie.repair.checks import CHECKS
from tests.damaged_tables import AGE_S, CHANGES, bases, damage_partitions, die_before, make, put_strays
from tests.memory_tables import FakeClock, Input, batch, copy_of, new_storage, opened


@pytest.fixture
def made():
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock)
    return storage, clock


def rewritten(storage, path, change, metadata=None):
    """The base file with other rows, under the same footer."""
    table = pq.read_table(io.BytesIO(storage.read(path)))
    kept = {**table.schema.metadata, **(metadata or {})}
    out = io.BytesIO()
    pq.write_table(change(table).replace_schema_metadata(kept), out)
    storage.replace(path, out.getvalue())


def with_keys(keys):
    return lambda table: table.set_column(
        table.schema.names.index("_hoodie_record_key"), table.schema.field("_hoodie_record_key"), [pa.array(keys)]
    )


def problems(storage, clock, *, deep=True):
    return [each.what for each in opened(storage, clock).validate(deep=deep).problems]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_whole_table_is_valid_and_healthy(table_type):
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock, table_type)
    table = opened(storage, clock)
    found = table.validate(deep=True)
    assert found
    assert (found.rows, found.commits, found.partitions, found.file_groups) == (8, 2, 2, 2)
    assert table.doctor().findings == ()
    assert table.doctor().is_healthy


def test_files_that_are_gone_are_found_in_each_partition(made):
    storage, clock = made
    gone = bases(storage)
    for path in gone:
        storage.delete(path)
    found = problems(storage, clock, deep=False)
    assert len(found) == len(gone) == 2
    assert all(any(path in what for what in found) for path in gone)


def test_a_bloom_filter_and_bounds_that_do_not_fit_the_rows_are_found(made):
    storage, clock = made
    path = next(p for p in bases(storage) if p.startswith("a/"))
    # The commit states a size; a file that grew counts still.
    rewritten(storage, path, with_keys(["k0", "k2", "k4", "zz-not-in-the-filter" + "y" * 200]), {b"pad": b"x" * 9000})
    found = problems(storage, clock)
    assert any("bloom filter" in what and path in what for what in found)
    assert any("footer" in what and "zz-not-in-the-filter" in what for what in found)


def test_bounds_that_are_wider_than_the_rows_are_no_damage(made):
    storage, clock = made
    path = next(p for p in bases(storage) if p.startswith("a/"))
    wide = {b"hoodie_min_record_key": b"a", b"hoodie_max_record_key": b"zz"}
    rewritten(storage, path, lambda table: table, {**wide, b"pad": b"x" * 9000})
    assert problems(storage, clock) == []


def test_keys_that_stand_twice_and_missing_rows_are_found(made):
    storage, clock = made
    path = next(p for p in bases(storage) if p.startswith("a/"))
    rewritten(storage, path, lambda t: with_keys(["k2", "k2", "k4"])(t.slice(1)), {b"pad": b"x" * 9000})
    found = problems(storage, clock)
    assert any("stands more than once in partition 'a'" in what and "k2" in what for what in found)
    assert any("holds 3 rows, and its commit says 4" in what for what in found)


def test_inserts_without_look_up_that_made_duplicates_are_found_and_nothing_else(made):
    storage, clock = made
    opened(storage, clock).bulk_insert(batch([Input("k0", "a", 1, 1)]))
    (what,) = problems(storage, clock)
    assert "1 record key stands more than once" in what
    assert not problems(storage, clock, deep=False)


def kinds(storage, clock, level=None, *, tuning=None):
    findings = opened(storage, clock, tuning=tuning).doctor().findings
    return {each.kind for each in findings if level in (None, each.level)}


def test_the_doctor_tells_damage_from_neglect_and_says_what_mends_it(made):
    storage, clock = made
    put_strays(storage)
    damage_partitions(storage)
    clock.sleep(AGE_S)
    found = opened(storage, clock).doctor()
    assert not found.is_healthy
    assert kinds(storage, clock, Level.DAMAGE) == {"partition-metadata"}
    assert kinds(storage, clock, Level.NEGLECT) == {"stray-files"}
    assert all(each.mend and "hoodie repair memory://table" in each.mend for each in found.findings)
    opened(storage, clock).repair(dry_run=False)
    after = opened(storage, clock).doctor()
    assert [each.kind for each in after.findings] == ["set-aside"]
    assert after.is_healthy


def test_the_doctor_finds_a_dead_writer_and_what_it_left(made):
    storage, clock = made
    die_before(".deltacommit", storage, clock, lambda table: table.upsert(batch(CHANGES)))
    storage, clock = copy_of(storage)
    assert kinds(storage, clock, Level.NEGLECT) == {"dead-writes"}
    opened(storage, clock).rollback()
    assert opened(storage, clock).doctor().is_healthy


def test_the_doctor_names_a_damaged_plan(made):
    storage, clock = made
    clock.sleep(10)
    storage.create_new(".hoodie/20251124160005000.compaction.requested", b"")
    clock.sleep(AGE_S)
    assert kinds(storage, clock, Level.DAMAGE) == {"plans"}


def test_services_that_never_run_are_found(made):
    storage, clock = made
    tuning = Tuning(neglected_commits=10, neglected_logs=5)
    for number in range(12):
        opened(storage, clock).upsert(batch([Input("k0", "a", number, 50 + number)]))
    assert kinds(storage, clock, Level.NEGLECT, tuning=tuning) == {"timeline", "compaction"}
    opened(storage, clock).compact()
    opened(storage, clock).archive(min_commits=2)
    assert not kinds(storage, clock, tuning=tuning) & {"compaction", "timeline"}


def test_nothing_is_changed_by_looking(made):
    storage, clock = made
    put_strays(storage)
    storage.delete(f"a/{PARTITION_METADATA}")
    clock.sleep(AGE_S)
    before = storage.snapshot()
    opened(storage, clock).doctor()
    opened(storage, clock).validate(deep=True)
    opened(storage, clock).repair()
    assert storage.snapshot() == before
    assert Instant("20251124160000000", Action.CLEAN, State.REQUESTED) not in opened(storage, clock).timeline


def described_checks():
    """The list of checks as the page has it."""
    lines = ["| check | level | finds | repair |", "|---|---|---|---|"]
    for each in CHECKS:
        action = each.action.format(table="PATH", path="the file", subject="…").replace("|", "\\|") or "-"
        level = f"{each.level.value}{', reads rows' if each.deep else ''}"
        lines.append(f"| `{each.name}` | {level} | {each.finds} | {action} |")
    return "\n".join(lines) + "\n"


def test_the_page_has_the_list_of_checks():
    text = (Path(__file__).parents[2] / "docs/CHECKS.md").read_text(encoding="utf-8")
    assert described_checks() in text


def test_what_validate_finds_the_doctor_finds_too(made):
    storage, clock = made
    for path in bases(storage):
        storage.delete(path)
    storage.replace(f"a/{PARTITION_METADATA}", b"")
    for deep in (False, True):
        found = opened(storage, clock).validate(deep=deep).problems
        damage = [f for f in opened(storage, clock).doctor(deep=deep).findings if f.level is Level.DAMAGE]
        assert len(found) == 3
        assert sorted(map(str, damage)) == sorted(map(str, found))
