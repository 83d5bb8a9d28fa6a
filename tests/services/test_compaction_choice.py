"""Apache Hudi's strategies, rule for rule: candidates in, candidates out."""

from datetime import date

import pytest

from hoodie.errors import OptionError
from hoodie.model.payloads import CompactionCandidate
from hoodie.options.compaction import STRATEGY_CLASSES, CompactionOptions, Strategy
from hoodie.options.option import key_of
from hoodie.options.parse import parse_write_options
from hoodie.services.compaction_plan import choose

TODAY = date(2026, 3, 1)
MB = 1024 * 1024


def candidate(file_id, *, partition="p", files=1, log_bytes=0, io_mb=0):
    return CompactionCandidate(partition, file_id, files, log_bytes, base_bytes=0, read_mb=io_mb, write_mb=0)


def chosen(strategy, candidates, **options):
    strategies = strategy if isinstance(strategy, tuple) else (strategy,)
    found = choose(candidates, CompactionOptions(strategies=strategies, **options), today=TODAY)
    return [each.file_id for each in found]


def days(*partitions, **sizes):
    return [candidate(path, partition=path, **sizes) for path in partitions]


# -- by size and number --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "taken"), [(0, ""), (1, "a"), (5, "a"), (6, "ab"), (8, "ab"), (9, "abc")])
def test_the_slice_that_passes_the_bound_is_the_last_one(target, taken):
    """Apache Hudi takes a slice as long as anything of the bound is left, and nothing where the bound is 0."""
    candidates = [candidate("a", io_mb=5), candidate("b", io_mb=3), candidate("c", io_mb=1)]
    assert chosen(Strategy.BOUNDED_IO, candidates, target_io_mb=target) == list(taken)


def test_bounded_io_keeps_the_order_that_it_is_given():
    candidates = [candidate("a", log_bytes=1), candidate("b", log_bytes=9), candidate("c", log_bytes=5)]
    assert chosen(Strategy.BOUNDED_IO, candidates) == ["a", "b", "c"]


def test_log_file_size_takes_the_largest_logs_first_within_the_bound():
    candidates = [candidate(name, log_bytes=size, io_mb=4) for name, size in (("a", 5), ("b", 9), ("c", 9), ("d", 1))]
    assert chosen(Strategy.LOG_FILE_SIZE, candidates) == ["b", "c", "a", "d"]
    assert chosen(Strategy.LOG_FILE_SIZE, candidates, target_io_mb=5) == ["b", "c"]
    assert chosen(Strategy.LOG_FILE_SIZE, candidates, min_log_bytes=5) == ["b", "c", "a"]
    assert chosen(Strategy.LOG_FILE_SIZE, candidates, min_log_bytes=6) == ["b", "c"]


def test_log_file_num_takes_most_log_files_first_within_the_bound():
    candidates = [candidate(name, files=count, io_mb=4) for name, count in (("a", 2), ("b", 7), ("c", 2), ("d", 3))]
    assert chosen(Strategy.LOG_FILE_NUM, candidates) == ["b", "d", "a", "c"]
    assert chosen(Strategy.LOG_FILE_NUM, candidates, target_io_mb=4) == ["b"]
    assert chosen(Strategy.LOG_FILE_NUM, candidates, min_log_files=3) == ["b", "d"]
    assert chosen(Strategy.LOG_FILE_NUM, candidates, min_log_files=8) == []


def test_unbounded_takes_all_whatever_the_bound():
    assert chosen(Strategy.UNBOUNDED, [candidate(name, io_mb=9) for name in "ab"], target_io_mb=1) == ["a", "b"]


# -- by partition --------------------------------------------------------------------------------------------------------


def test_day_based_takes_the_newest_days_within_the_bound():
    candidates = days("2026/01/31", "2026/02/28", "2025/12/31", "2026/02/3", io_mb=2)
    assert chosen(Strategy.DAY_BASED, candidates) == ["2026/02/28", "2026/02/3", "2026/01/31", "2025/12/31"]
    assert chosen(Strategy.DAY_BASED, candidates, days=2) == ["2026/02/28", "2026/02/3"]
    assert chosen(Strategy.DAY_BASED, candidates, target_io_mb=3) == ["2026/02/28", "2026/02/3"]


def test_slices_of_one_day_keep_their_order_and_count_as_one():
    candidates = [candidate(name, partition=f"2026/02/0{name[0]}") for name in ("1a", "2a", "1b", "2b")]
    assert chosen(Strategy.DAY_BASED, candidates, days=1) == ["2a", "2b"]


def test_bounded_partition_aware_takes_the_last_days_and_those_to_come():
    candidates = days("2026/02/18", "2026/02/19", "2026/03/01", "2027/01/01", io_mb=9)
    assert chosen(Strategy.BOUNDED_PARTITION_AWARE, candidates, days=10, target_io_mb=1) == [
        *("2027/01/01", "2026/03/01", "2026/02/19"),
    ]
    assert chosen(Strategy.BOUNDED_PARTITION_AWARE, candidates, days=11)[-1] == "2026/02/18"


def test_unbounded_partition_aware_takes_what_that_leaves():
    candidates = days("2026/02/18", "2026/03/01", "2025/01/01", "2026/02/19")
    assert chosen(Strategy.UNBOUNDED_PARTITION_AWARE, candidates, days=10) == ["2026/02/18", "2025/01/01"]


@pytest.mark.parametrize(
    "path", ["2026/02/28", "year=2026/month=02/day=28", "day=2026-02-28", "2026-02-28", "2026/2/28", "2026/02/28/07"]
)
def test_ways_to_write_a_day(path):
    assert chosen(Strategy.BOUNDED_PARTITION_AWARE, days(path), days=1) == [path]
    assert chosen(Strategy.BOUNDED_PARTITION_AWARE, days(path.replace("2026", "2025")), days=1) == []


@pytest.mark.parametrize("path", ["", "rome", "2026/02", "20260228", "city=rome"])
def test_a_partition_that_is_no_day_is_an_error_that_names_it(path):
    for strategy in (Strategy.DAY_BASED, Strategy.BOUNDED_PARTITION_AWARE, Strategy.UNBOUNDED_PARTITION_AWARE):
        with pytest.raises(OptionError, match=f"partition {path!r} is not a day"):
            chosen(strategy, days(path))


def test_partition_regex_is_found_somewhere_in_the_path():
    candidates = days("eu/rome", "eu/paris", "us/rome")
    assert chosen(Strategy.PARTITION_REGEX, candidates, partition_regex="rome$") == ["eu/rome", "us/rome"]
    assert chosen(Strategy.PARTITION_REGEX, candidates, partition_regex="^eu/.*s", target_io_mb=0) == ["eu/paris"]


# -- several, and one's own ----------------------------------------------------------------------------------------------


def test_a_chain_gives_each_what_the_one_before_has_taken():
    candidates = [
        candidate("a", partition="eu", files=2, log_bytes=9),
        candidate("b", partition="eu", files=5, log_bytes=1),
        candidate("c", partition="us", files=9, log_bytes=8),
    ]
    chain = (Strategy.PARTITION_REGEX, Strategy.LOG_FILE_NUM)
    assert chosen(chain, candidates, partition_regex="eu", min_log_files=1) == ["b", "a"]
    assert chosen((*chain, Strategy.LOG_FILE_SIZE), candidates, partition_regex="eu") == ["a", "b"]


def test_a_function_chooses_and_orders():
    candidates = [candidate("a", log_bytes=1), candidate("b", log_bytes=2), candidate("c", log_bytes=3)]
    assert chosen(Strategy.UNBOUNDED, candidates, chooses=lambda found: [found[2], found[0]]) == ["c", "a"]
    assert chosen(Strategy.UNBOUNDED, candidates, chooses=lambda found: (c for c in found if c.log_bytes > 1)) == [
        *("b", "c"),
    ]
    assert chosen(Strategy.UNBOUNDED, candidates, chooses=lambda found: [found[1], found[1]]) == ["b"]


def test_a_function_that_makes_slices_up_is_an_error():
    with pytest.raises(OptionError, match="which is none of the slices that it was given"):
        chosen(Strategy.UNBOUNDED, [candidate("a")], chooses=lambda _: [candidate("b")])


@pytest.mark.parametrize("given", [None, True, ["a"], [[]]])
def test_a_function_that_gives_something_else_is_an_error_that_names_it(given):
    with pytest.raises(OptionError, match=r"the compaction strategy returned .*slices"):
        chosen(Strategy.UNBOUNDED, [candidate("a")], chooses=lambda _: given)


# -- the option ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "strategy"), STRATEGY_CLASSES.items())
def test_strategies_go_by_hudis_classes_and_by_short_names(name, strategy):
    for text in (name, name.rpartition(".")[2], strategy.value, strategy.value.upper()):
        assert key_of(CompactionOptions, "strategies").parse(text) == (strategy,)


@pytest.mark.parametrize("first", ["", "composite,", "CompositeCompactionStrategy, "])
def test_commas_make_a_chain(first):
    found = key_of(CompactionOptions, "strategies").parse(f"{first}partition_regex, LogFileNumBasedCompactionStrategy")
    assert found == (Strategy.PARTITION_REGEX, Strategy.LOG_FILE_NUM)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log_file_sise", "did you mean 'log_file_size'"),
        ("org.example.Own", "has 'org.example.Own', and it can be log_file_size, "),
        ("composite", "names no strategies"),
        ("log_file_size,", "has ''"),
    ],
)
def test_a_strategy_that_is_none(text, message):
    with pytest.raises(OptionError, match=f"option hoodie.compaction.strategy=.*{message}"):
        key_of(CompactionOptions, "strategies").parse(text)


def test_partition_regex_needs_one():
    with pytest.raises(OptionError, match=r"needs hoodie.compaction.partition.path.regex"):
        parse_write_options({"hoodie.compaction.strategy": "partition_regex"})


def test_the_default_is_hudis():
    assert CompactionOptions().strategies == (Strategy.LOG_FILE_SIZE,)
