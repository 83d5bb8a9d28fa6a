"""Other numbers of buckets in some partitions, by rules that the table was made with, or that Apache Hudi changed since."""

import json

import pytest

from hoodie.errors import CommitConflictError, CorruptFileError, OptionError, UnsupportedTableError
from hoodie.format.bucket_rules import CONFIGS, parse_rules
from hoodie.hashes.of_buckets import bucket_of_file_id
from hoodie.model.buckets import BucketLayout, BucketRules
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.names import PROPERTIES
from hoodie.storage.cache import Cache
from hoodie.txn.lock_look import require_same_layout
from hoodie.write.layout import basis_of, with_layout
from tests.memory_tables import Input, batch, new_table, opened, plain

EXPRESSIONS = "^a,2;b|c,5"
RULES = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "3",
    "hoodie.bucket.index.partition.expressions": EXPRESSIONS,
}
BOTH = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def rows(count, val=0):
    return batch([Input(f"k{number}", part, val, val) for part in ("a1", "b", "d") for number in range(count)])


def another(storage, clock, options=None):
    return opened(storage, clock, options, cache=Cache())


def buckets(table):
    found = {}
    for each in table.files():
        found.setdefault(each.group.partition_path, set()).add(bucket_of_file_id(each.group.file_id))
    return {path: len(numbers) for path, numbers in found.items()}


def forget(storage):
    """The table as if Apache Hudi had made it."""
    text = storage.read(PROPERTIES).decode()
    storage.replace(PROPERTIES, "".join(x for x in text.splitlines(True) if "hoodie.python" not in x).encode())


@BOTH
def test_the_first_rule_that_fits_the_partition_says_how_many_buckets_it_has(table_type):
    storage, clock = new_table(table_type=table_type, more=RULES)
    another(storage, clock).upsert(rows(40))
    another(storage, clock).upsert(rows(50, 1))
    table = another(storage, clock)
    assert buckets(table) == {"a1": 2, "b": 5, "d": 3}
    assert len(plain(table.scan(meta_columns=True))) == 150
    assert json.loads(storage.read(f"{CONFIGS}/00000000000000.hashing_config")) == {
        "expressions": EXPRESSIONS,
        "defaultBucketNumber": 3,
        "rule": "regex",
        "version": 1,
        "instant": "00000000000000",
    }


@BOTH
def test_a_table_of_apache_hudi_tells_its_rules(table_type):
    storage, clock = new_table(table_type=table_type, more=RULES)
    another(storage, clock).upsert(rows(40))
    forget(storage)
    another(storage, clock).upsert(rows(50, 1))
    table = another(storage, clock)
    assert buckets(table) == {"a1": 2, "b": 5, "d": 3}
    assert table.scan().count() == 150
    assert table.config.buckets == BucketLayout(3, ("id",), rules=BucketRules(EXPRESSIONS))


def test_rules_may_be_chosen_by_the_first_write_and_are_written_where_their_maker_died():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    another(storage, clock, RULES).upsert(rows(20))
    storage.delete_folder(".hoodie/.bucket_index")
    another(storage, clock).upsert(rows(20, 1))
    assert buckets(another(storage, clock)) == {"a1": 2, "b": 5, "d": 3}
    assert storage.names(CONFIGS) == ["00000000000000.hashing_config"]


def rescaled(storage, expressions, instant):
    content = {"expressions": expressions, "defaultBucketNumber": 4, "rule": "REGEX", "version": 1, "filename": "x"}
    storage.create_new(f"{CONFIGS}/{instant}.hashing_config", json.dumps({**content, "instant": instant}).encode())


def test_the_newest_rules_that_no_pending_replacecommit_brings_count():
    storage, clock = new_table(table_type="COPY_ON_WRITE", more=RULES)
    table = another(storage, clock)
    pending = Instant(table._context.clock.allot(None), Action.REPLACECOMMIT, State.REQUESTED)
    rescaled(storage, "nothing,7", "20200101000000000")
    rescaled(storage, "d,9", pending.time)
    table._context.active.create(pending)
    table.upsert(rows(60))  # takes the dead rescale back, and its rules
    assert buckets(another(storage, clock)) == {"a1": 4, "b": 4, "d": 4}
    assert sorted(storage.names(CONFIGS)) == ["00000000000000.hashing_config", "20200101000000000.hashing_config"]


def test_other_rules_while_a_write_is_at_work_end_it():
    storage, clock = new_table(table_type="COPY_ON_WRITE", more=RULES)
    table = another(storage, clock)
    table.upsert(rows(10))
    context = table._context
    ruled = with_layout(context, table._at_work()[1].index, basis_of(context))
    require_same_layout(ruled, places_rows=True)
    rescaled(storage, "d,9", "20300101000000000")
    with pytest.raises(CommitConflictError, match="other numbers of buckets"):
        require_same_layout(ruled, places_rows=True)


@pytest.mark.parametrize(
    ("expressions", "message"),
    [
        ("a", "'a' is not EXPRESSION,NUMBER"),
        ("a,b,3", "is not EXPRESSION,NUMBER"),
        ("a,0", "'0' in 'a,0' is not a number of buckets"),
        ("a,-1", "is not a number of buckets"),
        ("a(,1", "is no regular expression"),
        (r"\p{L},3", "means something else in Java"),
        ("(?<year>2),3", "means something else in Java"),
        ("[a-z&&[b]],3", "means something else in Java"),
    ],
)
def test_rules_that_cannot_be_evaluated_are_refused(expressions, message):
    with pytest.raises(OptionError, match=message):
        new_table(table_type="COPY_ON_WRITE", more={**RULES, "hoodie.bucket.index.partition.expressions": expressions})


def test_options_against_the_rules_of_the_table_are_refused():
    storage, clock = new_table(table_type="MERGE_ON_READ", more=RULES)
    another(storage, clock, RULES).upsert(rows(10))
    with pytest.raises(OptionError, match=r"buckets by the rules '\^a,2;b\|c,5', and your options"):
        another(storage, clock, {"hoodie.bucket.index.partition.expressions": "a,2"}).upsert(rows(10))
    with pytest.raises(OptionError, match=r"is for hoodie\.index\.bucket\.engine=SIMPLE"):
        new_table(table_type="MERGE_ON_READ", more={**RULES, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"})


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", CorruptFileError),
        (b"[]", CorruptFileError),
        (b'{"expressions": "a,2"}', CorruptFileError),
        (
            b'{"expressions": "a,2", "defaultBucketNumber": 2, "rule": "glob", "version": 1, "instant": "0"}',
            UnsupportedTableError,
        ),
        (
            b'{"expressions": "a,2", "defaultBucketNumber": 2, "rule": "regex", "version": 2, "instant": "0"}',
            UnsupportedTableError,
        ),
        (
            b'{"expressions": "a,x", "defaultBucketNumber": 2, "rule": "regex", "version": 1, "instant": "0"}',
            UnsupportedTableError,
        ),
    ],
)
def test_files_of_rules_that_are_none_are_errors(content, error):
    with pytest.raises(error, match=r"^here"):
        parse_rules(content, path="here")


def test_rules_are_split_as_java_splits_texts():
    rules = BucketRules("dt=(2021\\-01\\-05|2021\\-01\\-07),2;x,3,;;")
    with pytest.raises(ValueError, match="is not EXPRESSION,NUMBER"):
        BucketRules("a,2;;b,3").count_of("a")
    assert [rules.count_of(path) for path in ("dt=2021-01-05", "dt=2021-01-06", "yxy")] == [2, None, 3]
