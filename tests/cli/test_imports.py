"""What a command line imports: no more than it needs, for that is most of its time."""

import json
import subprocess
import sys

import pytest

import hoodie
from hoodie.cli.__main__ import MODULES, parser_of

RUN = """
import json, sys
before = set(sys.modules)
from hoodie.cli.__main__ import main
lines, first = json.loads(sys.argv[1]), sys.argv[2]
exec(first)
codes = []
for line in lines:
    sys.argv = ["hoodie", *line]
    codes.append(main())
print(json.dumps([codes, sorted(set(sys.modules) - before)]), file=sys.stderr)
"""


def imported(*lines, first=""):
    """The modules that some command lines import, one after another in a new process, and a line of code before them."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(lines), first], capture_output=True, text=True, check=True
    )
    codes, found = json.loads(done.stderr)
    assert codes == [0] * len(lines), done.stdout
    return found


def test_the_version_imports_the_parser_and_nothing_else():
    found = imported(["--version"])
    ours = {name for name in found if name.partition(".")[0] == "hoodie"}
    assert ours == {"hoodie", "hoodie.cli", "hoodie.cli.__main__", "hoodie.cli.arguments", "hoodie.errors"}
    assert {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"hoodie"} == set()


UNASKED = {"pandas", "polars", "duckdb", "pyspark", "zookeeper", "kazoo", "obstore", "matplotlib", "scipy"}


def test_neither_commands_nor_the_public_names_import_frames(tmp_path):
    """pyarrow imports pandas to make scalars and arrays of Python's values, and with its dataset module."""
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type="MERGE_ON_READ")
    for fare in range(3):
        table.upsert({"id": [1, 2], "fare": [fare, 1]})
    path = str(tmp_path / "t")
    looks = ["show", "timeline", "commits", "files", "schema", "savepoints", "consumers", "check", "doctor", "validate"]
    works = [["check", path, "--rows"], ["explain", path, "--where", "fare > 1"], ["compaction", "run", path]]
    lines = [[name, path] for name in looks] + works + [["clean", path, "--dry-run"]]
    looked_up = f"import hoodie.public; assert hoodie.open_table({path!r}).lookup([1]).count() == 1"
    found = imported(*lines, first=f"{looked_up}; assert 'pandas' not in sys.modules")
    assert UNASKED & {name.partition(".")[0] for name in found} == set()
    assert not any(name.startswith("hoodie.kv") for name in found)


LATE = (
    "undo",
    "services",
    "repair",
    "write",
    "index",
    "filegroup",
    "hive",
    "timeline_server",
    "kv",
    "writer",
    "keyed",
    "sql",
)
"""Rooms that opening a table and looking at it needs nothing of."""
HEAVY = UNASKED | {
    "fastavro",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.flight",
    "pyarrow.parquet",
    "pyarrow.substrait",
    "thriftpy2",
    "urllib3",
    "requests",
    "boto3",
    "tqdm",
}


@pytest.mark.parametrize("command", ["show", "timeline", "files", "schema", "commits"])
def test_a_look_at_a_table_imports_neither_writes_nor_services(command, tmp_path):
    """Half of all modules, and of the time of a command."""
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type="MERGE_ON_READ")
    table.upsert({"id": [1, 2]})
    found = imported([command, str(tmp_path / "t")])
    ours = [name for name in found if name.startswith("hoodie.")]
    assert not {name for name in ours if name.split(".")[1] in LATE and name not in PACKAGES}
    assert not {name for name in found if name in HEAVY or name.partition(".")[0] in HEAVY}
    assert len(ours) <= MOST_MODULES


MOST_MODULES = 177
PACKAGES = {f"hoodie.{name}" for name in LATE} - {"hoodie.writer", "hoodie.keyed"}


def test_opening_a_table_imports_what_a_look_needs():
    found = imported(first="import hoodie; hoodie.open_table; hoodie.HoodieTable; hoodie.HoodieError")
    assert not HEAVY & set(found)
    assert len([name for name in found if name.startswith("hoodie.")]) <= MOST_MODULES
    assert "hoodie.read.scan" not in found


@pytest.mark.parametrize("name", hoodie.__all__)
def test_every_public_name_is_there(name):
    assert getattr(hoodie, name) is not None


def test_a_name_that_no_late_module_has_is_an_attribute_error():
    for package in (hoodie, hoodie.undo, hoodie.services, hoodie.repair, hoodie.public):
        with pytest.raises(AttributeError, match="no attribute 'not_there'"):
            package.not_there  # noqa: B018


@pytest.mark.parametrize("module", MODULES)
def test_a_module_registers_the_commands_that_it_is_named_for(module):
    (commands,) = (action for action in parser_of([module])._actions if action.choices)
    assert tuple(commands.choices) == MODULES[module]
