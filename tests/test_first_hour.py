"""What somebody tries first: a prompt, a notebook, completion, a few rows."""

import inspect
import pickle
import re
import rlcompleter
import subprocess
import sys

import pyarrow as pa
import pytest

import hoodie
import pyspark_hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import HoodieError, OptionError
from hoodie.model.results import SHOWN, CommitResult, History
from hoodie.storage.memory import MemorySnapshot, MemoryStorage
from tests.effort import long_but
from tests.memory_tables import FakeClock, Input, batch, new_table, opened

ROWS = pa.table({"id": [f"k{n:03}" for n in range(300)], "part": ["x", "y", "z"] * 100, "n": range(300)})


TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.fixture(params=TYPES)
def table(tmp_path, request):
    made = hoodie.create_table(
        tmp_path / "<t>", ROWS.schema, record_key="id", partition_by="part", table_type=request.param
    )
    made.upsert(ROWS)
    made.upsert(ROWS.slice(0, 30))
    return made


# -- rows ----------------------------------------------------------------------------------------------------------------


def test_all_rows_and_some(table):
    assert table.to_arrow().num_rows == len(table.to_pandas()) == 300
    assert table.head().num_rows == 10
    assert table.head(3).column_names == ["id", "part", "n"]
    pytest.importorskip("polars")
    assert table.to_polars().height == 300


@pytest.mark.parametrize("rows", [0, 1, 99, 100, 101, 300, 1000])
def test_a_limit_gives_so_many_rows_of_the_answer(table, rows):
    first = table.timeline.commits[0].time
    for scan in (
        table.scan(),
        table.scan(columns=[]),
        table.scan(as_of=first),
        table.changes(),
        table.scan(where="n >= 0"),
    ):
        limited = scan.limit(rows)
        found = limited.to_arrow()
        assert (found.num_rows, limited.count()) == (min(rows, 300),) * 2
    assert set(table.scan().limit(rows).to_arrow().column("id").to_pylist()) <= set(ROWS.column("id").to_pylist())
    assert table.changes(since=first, images="cdc").limit(rows).to_arrow().num_rows == min(rows, 30)


def test_of_two_limits_the_smaller_one_counts_and_the_scan_stays_as_it_was(table):
    scan = table.scan()
    assert scan.limit(5).limit(9).count() == scan.limit(9).limit(5).count() == 5
    assert scan.count() == 300


@pytest.mark.parametrize("rows", [-1, 1.5, "3", None])
def test_limits_that_are_none(table, rows):
    with pytest.raises(OptionError, match=r"limit\(.*\) takes a whole number of rows"):
        table.scan().limit(rows)


class Counting(MemoryStorage):
    """Counts the base files that are opened."""

    opened = 0

    def open_input(self, path, *, mapped=True):
        self.opened += path.endswith(".parquet")
        return super().open_input(path, mapped=mapped)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_limit_stops_reading_early(kind):
    storage, clock = new_table(table_type=kind)
    rows = [Input(f"k{n}", f"p{n:02}") for n in range(40)]
    opened(storage, clock).insert(batch(rows))
    counting = Counting(storage.uri, clock=FakeClock(storage.now_s()))
    counting.restore(storage.snapshot())
    scan = opened(counting).scan()
    counting.opened = 0
    assert scan.limit(1).to_arrow().num_rows == 1
    assert counting.opened == 1
    assert scan.limit(3).to_arrow().num_rows == 3
    assert counting.opened == 1 + 3
    counting.opened = 0
    assert scan.limit(40).to_arrow().num_rows == 40
    assert counting.opened == 40


# -- where is a table ----------------------------------------------------------------------------------------------------


def test_is_table(table, tmp_path):
    assert hoodie.is_table(table.uri)
    assert not hoodie.is_table(tmp_path)
    assert not hoodie.is_table(tmp_path / "nowhere")
    properties = tmp_path / "<t>" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=6", "hoodie.table.version=99"))
    assert hoodie.is_table(tmp_path / "<t>")


# -- prompts and notebooks -----------------------------------------------------------------------------------------------


def test_texts_at_a_prompt_are_short_and_say_what_it_is(table):
    shown = [table, table.scan(where="n > 1", columns=["id"]).limit(3), table.changes(), table.timeline]
    told = [repr(each) for each in shown]
    assert all(len(text) < 400 and "\n" not in text for text in told), told
    assert told[0] == f"<HoodieTable {table.uri}: {table.config.table_type.value}, version 6>"
    assert "columns=id, where=n > 1, limit=3" in told[1]
    assert "2 commits, 0 pending" in told[3]
    assert repr(table.history()).splitlines()[0] == "<History of 2 commits>"
    assert "300 inserted" in repr(table.history())


def test_notebooks_show_tables_whose_texts_are_escaped(table):
    shown = [
        table,
        table.scan(where="part = '<b>'"),
        table.changes(),
        table.history(),
        table.history()[0],
        table.upsert([]),
    ]
    for each in shown:
        html = each._repr_html_()
        assert html.startswith("<table>")
        assert html.count("<table") == 1
        assert "<t>" not in html
        assert "<b>" not in html
        assert len(html) < 4000
    assert "&lt;t&gt;" in table._repr_html_()


def test_a_long_history_shows_its_newest_commits():
    results = [CommitResult(f"2026010100000{n:04}", hoodie.WriteOperation.UPSERT) for n in range(SHOWN + 5)]
    long = History(results)
    assert long == results
    assert "(5 older not shown)" in repr(long)
    assert results[4].instant not in repr(long)
    assert results[-1].instant in long._repr_html_()
    assert pickle.loads(pickle.dumps(long)) == results


def test_showing_a_table_or_a_scan_touches_no_file():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input("a", "p")]))
    scan = table.scan()
    storage.restore(MemorySnapshot({}, {}))
    for each in (table, scan):
        assert repr(each)
        assert each._repr_html_()
    with pytest.raises(HoodieError):
        scan.to_arrow()


# -- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [hoodie, pyspark_hoodie])
def test_completion_shows_the_public_names_only(module):
    assert sorted(dir(module)) == sorted(module.__all__)
    namespace = {"m": module}
    completer = rlcompleter.Completer(namespace)
    offered = []
    while (match := completer.complete("m.", len(offered))) is not None:
        offered.append(match.split("(")[0].removeprefix("m."))
    assert {name for name in offered if not name.startswith("_")} == {
        name for name in module.__all__ if not name.startswith("_")
    }


@pytest.mark.parametrize("module", [hoodie, pyspark_hoodie])
def test_every_public_name_has_a_docstring_and_so_has_each_of_its_methods(module):
    without = []
    for name in module.__all__:
        value = getattr(module, name)
        if name == "DefaultSource" or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if not value.__doc__:
            without.append(name)
        for part, member in vars(value).items() if inspect.isclass(value) else ():
            documented = isinstance(member, property | classmethod) or inspect.isfunction(member)
            if documented and not part.startswith("_") and not inspect.getdoc(getattr(value, part)):
                without.append(f"{name}.{part}")
    assert without == []


def test_what_the_doors_call_is_not_offered_and_results_tell_small_sizes(table):
    assert "writer" not in dir(table)
    assert {"upsert", "scan", "uri"} <= set(dir(table))
    assert re.search(r"; \d+ files?, [\d.]+ K?B", str(table.history()[0]))
    assert "1 files" not in repr(table.history())


def test_the_command_alone_prints_its_help(capsys):
    assert main([]) == 2
    assert "usage: hoodie" in capsys.readouterr().err


@pytest.mark.parametrize("table", long_but(["MERGE_ON_READ"], TYPES), indirect=True)
def test_the_module_is_the_command(table):
    run = subprocess.run(
        [sys.executable, "-m", "hoodie", "show", table.uri], capture_output=True, text=True, check=True
    )
    assert "file groups" in run.stdout
    assert subprocess.run([sys.executable, "-m", "hoodie"], capture_output=True, check=False).returncode == 2
