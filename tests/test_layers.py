"""The layer rules of ARCHITECTURE.md, held over the syntax trees of the package."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.effort import long_but
from tests.layers import LAYERS

ROOT = Path(__file__).resolve().parent.parent

LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
SPARK = {"pyspark", "py4j", "pyspark_hoodie"}


class Imported(NamedTuple):
    """One imported module, where it is imported, whether that is at the top of the file, and whether it is more than a type."""

    name: str
    line: int
    at_top: bool
    at_runtime: bool = True


def sources(package: Path, prefix: str) -> dict[str, str]:
    """Module name -> source text of every module under `package`."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = [prefix, *path.relative_to(package).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


@cache
def imports(text: str) -> tuple[Imported, ...]:
    """Every import of a module, `import_module` calls with a literal name included.

    `from a import b` gives `a.b`: whether that is a module is the caller's to know. An import under `if TYPE_CHECKING:`
    counts as one at the top; one in a `try:` does not.
    """

    def walk(node: ast.AST, at_top: bool, at_runtime: bool = True) -> Iterator[Imported]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Imported(alias.name, child.lineno, at_top, at_runtime) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = "." * child.level + (child.module or "")
                yield from (Imported(f"{base}.{alias.name}", child.lineno, at_top, at_runtime) for alias in child.names)
            elif isinstance(child, ast.Call) and child.args and isinstance(child.args[0], ast.Constant):
                called = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", None)
                if called in {"import_module", "__import__"}:
                    yield Imported(str(child.args[0].value), child.lineno, at_top=False)
                yield from walk(child, at_top=False)
            else:
                types_only = _is_type_checking(child)
                yield from walk(child, at_top and types_only, at_runtime and not types_only)

    return tuple(walk(ast.parse(text), at_top=True))


def _is_type_checking(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)) == "TYPE_CHECKING"


def target(name: str, modules: Mapping[str, str]) -> str | None:
    """The module of ours that an import of `name` reaches: itself, or its parent when it is a name in that."""
    parent = name.rpartition(".")[0]
    return name if name in modules else parent if parent in modules else None


def room_of(name: str) -> str:
    """`hoodie.format.cursor` -> `format`; a name that is no room, such as `hoodie.TableType`, -> `hoodie`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LEVEL else parts[0]


def layer_breaks(modules: Mapping[str, str]) -> list[str]:
    """Imports that do not point down, and rooms that have no level."""
    broken = [f"{name}: its room has no level" for name in modules if name != "hoodie" and room_of(name) == "hoodie"]
    for module, text in modules.items():
        room = room_of(module)
        for found in imports(text):
            if found.name.startswith("."):
                broken.append(f"{module}:{found.line} imports relatively")
            elif found.name.split(".")[0] == "hoodie":
                reached = room_of(found.name)
                if reached != room and LEVEL[reached] >= LEVEL[room]:
                    broken.append(f"{module}:{found.line} ({room}) imports {found.name} ({reached})")
    return broken


def import_cycle(modules: Mapping[str, str]) -> list[str]:
    """The modules of one import cycle, empty when there is none."""
    graph = {
        module: {reached for found in imports(text) if (reached := target(found.name, modules))} - {module}
        for module, text in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


# Required, and imported when it is needed first: it takes long to import, and a cluster's workers may go without it.
LATE = {"tqdm"}
# Imports pandas.
LATE_PARTS = {"pyarrow.dataset"}
# Import nothing before it is used.
SPARING = {"hoodie", "hoodie.cli.__main__"}


def foreign_breaks(modules: Mapping[str, str], *, required: set[str], optional: set[str]) -> list[str]:
    """Imports that stand elsewhere than at the top or reach for what a plain installation does not have.

    Only packages of the extras and late ones may be imported inside a function, and they only there, but for their types.
    """
    broken = []
    for module, text in modules.items():
        for found in imports(text):
            root = found.name.split(".")[0]
            where = f"{module}:{found.line}"
            if root in SPARK:
                broken.append(f"{where} imports {root}: the core runs without Spark")
            elif root in optional | LATE:
                if found.at_top and found.at_runtime:
                    broken.append(f"{where} imports the optional {root} at the top")
            elif root != "hoodie" and root not in sys.stdlib_module_names and root not in required:
                broken.append(f"{where} imports {root}, which pyproject.toml does not name")
            elif not found.at_top and module not in SPARING and found.name not in LATE_PARTS:
                broken.append(f"{where} imports {found.name} elsewhere than at the top")
    return broken


def declared() -> tuple[set[str], set[str]]:
    """Import names of the required and of the optional packages of pyproject.toml; Google's share one."""

    def name(requirement: str) -> str:
        letters = (c if c.isalnum() or c in "-_" else " " for c in requirement)
        found = "".join(letters).split()[0].replace("-", "_")
        return "google" if found.startswith("google_") else found

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {key: values for key, values in project["optional-dependencies"].items() if key not in ("dev", "test")}
    return (
        {name(line) for line in project["dependencies"]},
        {name(line) for lines in extras.values() for line in lines} - SPARK - {project["name"]},
    )


CORE = sources(ROOT / "hoodie", "hoodie")
DOOR = sources(ROOT / "spark_ext" / "pyspark_hoodie", "pyspark_hoodie")


def test_imports_point_down_the_layers():
    assert layer_breaks(CORE) == []


def test_no_module_imports_itself_through_others():
    assert import_cycle(CORE | DOOR) == []


def test_core_imports_at_the_top_and_only_what_it_declares():
    required, optional = declared()
    assert foreign_breaks(CORE, required=required, optional=optional) == []


LOWER = {"hoodie": "", "hoodie.errors": "", "hoodie.storage": "", "hoodie.storage.base": "", "hoodie.txn": ""}


@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        ("hoodie.storage.local", "from hoodie.txn import begin", "hoodie.storage.local:1 (storage) imports hoodie.txn"),
        ("hoodie.model.files", "from hoodie.format.not_there import f", "imports hoodie.format.not_there.f (format)"),
        ("hoodie.errors", "import hoodie.storage.base", "hoodie.errors:1 (errors) imports hoodie.storage.base"),
        (
            "hoodie.engine.base",
            "from hoodie.storage.base import Storage",
            "(engine) imports hoodie.storage.base.Storage (storage)",
        ),
        ("hoodie.view.build", "import hoodie", "hoodie.view.build:1 (view) imports hoodie (hoodie)"),
        (
            "hoodie.view.build",
            "def f():\n    from hoodie import errors, cli\n",
            "hoodie.view.build:2 (view) imports hoodie.cli (cli)",
        ),
        ("hoodie.utils", "", "hoodie.utils: its room has no level"),
        ("hoodie.txn.markers", "from . import context", "hoodie.txn.markers:1 imports relatively"),
    ],
)
def test_an_import_that_does_not_point_down_is_found(module, text, message):
    (broken,) = layer_breaks(LOWER | {module: text})
    assert message in broken


def test_an_import_that_points_down_is_none():
    text = (
        "import os\nfrom hoodie import errors\nfrom hoodie.storage.base import Storage\nfrom hoodie.txn import begin\n"
    )
    assert layer_breaks(LOWER | {"hoodie.write.plan": text, "hoodie.txn": "from hoodie.errors import LockError"}) == []


def test_a_cycle_inside_a_room_is_found_also_under_type_checking():
    cycle = {
        "hoodie.txn.a": "from hoodie.txn.b import B",
        "hoodie.txn.b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hoodie.txn.c import C",
        "hoodie.txn.c": "import hoodie.txn.a",
    }
    assert set(import_cycle(LOWER | cycle)) == set(cycle)
    assert import_cycle(LOWER | cycle | {"hoodie.txn.c": ""}) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from pyspark.sql import DataFrame", "runs without Spark"),
        ("def f():\n    import pyspark_hoodie", "runs without Spark"),
        ("import importlib\nx = importlib.import_module('pyspark.sql')", "runs without Spark"),
        ("import pandas", "imports pandas, which pyproject.toml does not name"),
        ("import pybloom_live", "imports the optional pybloom_live at the top"),
        ("def f():\n    import json", "imports json elsewhere than at the top"),
        ("try:\n    import numpy\nexcept ImportError:\n    pass", "imports numpy elsewhere than at the top"),
        ("class A:\n    from hoodie.errors import LockError", "imports hoodie.errors.LockError elsewhere"),
    ],
)
def test_a_foreign_or_nested_import_is_found(text, message):
    (broken,) = foreign_breaks({"hoodie.txn.a": text}, required={"numpy"}, optional={"pybloom_live"})
    assert message in broken


def test_an_optional_package_may_be_imported_where_it_is_used():
    text = "import json\nimport numpy as np\ndef f():\n    from pybloom_live import BloomFilter\n"
    assert foreign_breaks({"hoodie.format.a": text}, required={"numpy"}, optional={"pybloom_live"}) == []


def test_an_optional_package_may_lend_its_types():
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import polars\n"
    assert foreign_breaks({"hoodie.format.a": text}, required=set(), optional={"polars"}) == []


def test_declared_packages_are_read_from_the_project_file():
    required, optional = declared()
    assert {"pyarrow", "fastavro", "numpy"} <= required
    assert "pybloom_live" in optional
    assert "pyspark" not in optional


@pytest.mark.parametrize("folder", ["tests", "integration", "benchmarks"])
def test_no_module_takes_anything_from_a_test_module(folder):
    """What two of them need stands in a module beside them."""
    for name, text in sources(ROOT / folder, folder).items():
        for imported in imports(text):
            parts = imported.name.split(".")[:-1]
            taken = parts[:1] in (["tests"], ["integration"]) and parts[-1].startswith("test_")
            assert not taken, f"{name}:{imported.line} imports {imported.name}"


# What engines hand to workers: functions of these modules.
FOR_WORKERS = (
    "hoodie.filegroup.run",
    "hoodie.index.bloom",
    "hoodie.index.bucket",
    "hoodie.write.load_part",
    "hoodie.write.prepare",
)


@pytest.mark.parametrize("module", long_but(["hoodie.filegroup.run", "hoodie.write.prepare"], FOR_WORKERS))
def test_what_workers_import_is_little(module):
    """Workers of Spark start often, and with the whole package they would need half a second more."""
    program = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('hoodie.')))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    rooms = {room_of(name) for name in found.stdout.split()}
    assert module.split(".")[1] in rooms
    assert not rooms & {"txn", "read", "undo", "services", "repair", "writer", "table", "public", "cli"}


def test_the_smoke_tests_import_nothing_that_only_developers_install() -> None:
    """They run in environments of other Sparks, which have the extras `connect` and `test` alone."""
    absent = {"atheris", "boto3", "botocore", "griffe", "hdfs_native", "hudi", "moto", "obstore", "thriftpy2"}
    program = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(absent)!r}))  # None: importing it fails
import pytest
sys.exit(pytest.main(["tests/spark", "-m", "smoke", "--collect-only", "-q"]))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert found.returncode == 0, found.stdout[-2000:]
