"""Whatever a user gives, and whatever the storage does: an error is one of hoodie's, which says what to do."""

from __future__ import annotations

import argparse
import inspect
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import pytest

import hoodie
from hoodie.cli.__main__ import MODULES, main, parser_of
from hoodie.dml.merge import Merge
from hoodie.errors import HoodieError, StorageError
from tests.crash.actions import FIRST, MORE
from tests.effort import in_shares
from tests.failing_storage import ERRORS, FailingStorage
from tests.memory_tables import FakeClock, Input, batch, create, opened
from tests.placed import in_memory
from tests.wrong_arguments import calls

pytestmark = in_memory("what is asked of a storage is counted")

ROW = [{"id": "x", "part": "a", "val": 1, "ts": 9}]
FITTING: dict[str, Any] = {
    "format": "delta",
    "data": ROW,
    "operation": "upsert",
    "partitions": ["a"],
    "keys": [{"id": "x"}],
    "instant": "20260101000000000",
    "name": "c",
    "options": hoodie.ReadOptions(),
    "set_aside": "x",
    "path": "memory://plain_errors",
    "record_key": "id",
    "function": lambda old, new: new,
    "rows": 1,
    "to": "latest",
    "set": {"val": 1},
    "source": ROW,
    "updates": {"val": "s.val"},
}
USERS_OWN = {("strategy", "TypeError")}
"""A function of the user's own that takes nothing fails as it does."""
METHODS = [
    name
    for name, each in inspect.getmembers(hoodie.HoodieTable)
    if name[0] != "_" and callable(each) and name != "read"  # which takes what the doors have parsed
]
FUNCTIONS = ("create_table", "is_table", "open_table", "register_merger", "repair_properties")


def new_table(table_type: str = "MERGE_ON_READ") -> tuple[FailingStorage, FakeClock]:
    clock = FakeClock()
    storage = FailingStorage(clock=clock)
    create(storage, table_type=table_type)
    for rows in (FIRST, MORE):
        opened(storage, clock).upsert(batch(rows))
    return storage, clock


def judge(tried: list[tuple[str, Any, Callable[[], Any]]]) -> list[str]:
    """The calls that end with an error that is none of ours."""
    found = []
    for name, value, call in tried:
        try:
            result = call()
            if isinstance(result, hoodie.Scan):
                result.to_arrow()
            elif isinstance(result, Merge):
                result.when_matched_update_all().execute()
        except HoodieError:
            continue
        except Exception as exc:  # noqa: BLE001 - that is what is looked for
            if (name, type(exc).__name__) not in USERS_OWN:
                found.append(f"{name}={value!r:.40}: {exc!r:.200}")
    return found


@in_shares(16, often=4)
@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_argument_of_a_method_is_an_error_of_ours(name, share):
    storage, clock = new_table()
    tried = share.of(calls(getattr(opened(storage, clock), name), FITTING))
    assert judge(tried) == []


@in_shares(16, often=4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_argument_of_a_function_is_an_error_of_ours(name, share, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert judge(share.of(calls(getattr(hoodie, name), FITTING))) == []


@in_shares(8, often=4)
def test_a_wrong_argument_of_a_scan_or_a_consumer_is_an_error_of_ours(share):
    storage, clock = new_table()
    table = opened(storage, clock)
    consumer = table.consumer("c")
    for method in (table.scan().limit, consumer.changes, consumer.seek):
        assert judge(share.of(calls(method, FITTING))) == []


@in_shares(16, often=4)
@pytest.mark.parametrize("name", [name for name in dir(Merge) if name.startswith("when_")])
def test_a_wrong_argument_of_a_clause_is_an_error_of_ours(name, share):
    storage, clock = new_table()
    merge = opened(storage, clock).merge(ROW, on="t.id = s.id and t.part = s.part")

    def run(call):
        return lambda: call().execute()

    tried = [(name, value, run(call)) for name, value, call in share.of(calls(getattr(merge, name), FITTING))]
    assert judge(tried) == []


ACTS: dict[str, Callable[[hoodie.HoodieTable], Any]] = {
    **{
        name: lambda t, name=name: getattr(t, name)()
        for name in METHODS
        if name not in ("services", "register_in_hive")
    },
    "upsert": lambda t: t.upsert(batch([Input("x", "a", 1, 9)])),
    "insert_overwrite": lambda t: t.insert_overwrite(batch([Input("x", "a", 1, 9)])),
    "bulk_insert": lambda t: t.bulk_insert(batch([Input("x", "a", 1, 9)])),
    "delete": lambda t: t.delete(where="val > 0"),
    "delete_partitions": lambda t: t.delete_partitions(["a"]),
    "update": lambda t: t.update({"val": "val + 1"}),
    "merge": lambda t: t.merge(ROW, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute(),
    "batches": lambda t: list(t.scan().to_batches()),
    "reader": lambda t: t.scan(where="val > 0").to_reader().read_all(),
    "count": lambda t: t.scan().count(),
    "explain": lambda t: t.scan().explain(),
    "changes": lambda t: t.changes(0).to_arrow(),
    "consumer": lambda t: (t.consumer("c").changes(), t.consumer("c").lag(), t.consumer("c").commit()),
    "drop_consumer": lambda t: t.drop_consumer("c"),
    "restore": lambda t: t.restore(t.savepoint()),
    "compact": lambda t: t.compact(),
    "cluster": lambda t: t.cluster(sort_by="val"),
    "services": lambda t: t.services().run_once(),
    "properties": lambda t: (t.schema, t.timeline, t.uri, t.config),
}


def outcome(act: Callable[[], object]) -> str | None:
    """What is wrong with how it ends: with nothing, or an error that is none of ours."""
    try:
        act()
    except HoodieError as exc:
        return None if str(exc).strip() and "\n" not in str(exc) else f"no sentence: {exc!r}"
    except TypeError as exc:  # a method that needs an argument was called without one
        return None if "missing" in str(exc) else repr(exc)
    except Exception as exc:  # noqa: BLE001 - that is what is looked for
        return repr(exc)
    return None


@in_shares(6, often=2)
@pytest.mark.parametrize("name", ACTS)
def test_a_storage_that_fails_at_any_call_is_an_error_of_ours(name, share):
    """One call fails, or all from there on: chosen by a seed, of all calls that the act makes."""
    chance = random.Random(name)
    start, clock = new_table()
    counted = start.copy()
    table = opened(counted, clock)
    counted.fail(at=10**9, error=ERRORS[0], stays=False)
    with suppress(TypeError, HoodieError):
        ACTS[name](table)
    places = chance.sample(range(1, counted.calls + 1), min(counted.calls, 30))
    for number, place in enumerate(share.of(places)):
        storage = start.copy()
        table = opened(storage, clock)
        storage.fail(at=place, error=chance.choice(ERRORS), stays=number % 2 == 0)
        assert outcome(lambda table=table: ACTS[name](table)) is None, (place, name)


VALUES = (
    "",
    "x",
    "-1",
    "0",
    "1e400",
    "nan",
    "\0",
    "9" * 24,
    "20260101000000000",
    "1 hour ago",
    "id=",
    "*",
    "é",
    "../..",
)


def commands(parser: argparse.ArgumentParser, before: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """(words, parser) of each command that ends by itself."""
    choices = [each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not choices:
        yield before, parser
    for name, below in chain.from_iterable(each.items() for each in choices):
        if name not in ("services", "daemon", "timeline-server"):
            yield from commands(below, (*before, name))


@in_shares(10, often=4)
def test_a_wrong_word_of_a_command_is_a_sentence(share, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uri = "memory://plain_errors_of_commands"
    if not hoodie.is_table(uri):
        hoodie.create_table(uri, record_key="id", table_type="MERGE_ON_READ").upsert([{"id": 1}])
    lines: list[list[str]] = []
    for words, parser in commands(parser_of(MODULES)):
        arguments = [each for each in parser._actions if not each.option_strings]
        options = [each.option_strings[-1] for each in parser._actions if each.option_strings and each.nargs != 0]
        plain = [uri if each.dest == "path" else "x" for each in arguments if each.nargs not in ("?", "*")]
        for value in VALUES:
            lines.append([*words, *(uri if each.dest == "path" else value for each in arguments)])
            lines += [[*words, *plain, f"{name}={value}"] for name in options]
    for line in share.of(lines):
        assert main(line) in (0, 1, 2), line
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("error", ERRORS)
def test_opening_a_table_in_a_storage_that_fails(error):
    storage, clock = new_table()
    storage.fail(at=1, error=error, stays=True)
    with pytest.raises(StorageError) as caught:
        opened(storage, clock)
    assert caught.value.errno == error
    assert storage.uri in str(caught.value) or ".hoodie" in str(caught.value)


@pytest.mark.parametrize("path", ["file", "file/below", "x" * 300, "loop"])
def test_a_path_that_is_no_folder(tmp_path, path, capsys):
    (tmp_path / "file").write_text("rows")
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    where = str(tmp_path / path)
    for act in (
        lambda: hoodie.open_table(where),
        lambda: hoodie.create_table(where, record_key="id"),
        lambda: hoodie.repair_properties(where),
        lambda: hoodie.is_table(where) and None,
    ):
        with suppress(HoodieError):
            act()
    with pytest.raises(HoodieError):
        hoodie.create_table(where, record_key="id")
    assert main(["show", where]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_that_nobody_has_written_to_is_healthy(table_type, tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type=table_type)
    assert table.doctor().is_healthy
    assert not hoodie.repair_properties(tmp_path / "t").unknown
    assert main(["doctor", str(tmp_path / "t")]) == 0
