"""The examples of README.md are run as they stand."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.cli.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def block(language, holding):
    (found,) = [text for kind, text in BLOCKS if kind == language and holding in text]
    return found


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Runs one example in an empty folder; gives the values of its names and of its bare expressions."""
    monkeypatch.chdir(tmp_path)

    def run(text):
        names, values = {}, []
        kept = "\n".join(
            f"_values.append({line.split('  #')[0].rstrip()})" if re.match(r"t\.\w+\(", line) else line
            for line in text.splitlines()
        )
        exec(compile(kept, "README.md", "exec"), {"_values": values} | names)
        return values

    return run


def test_thirty_seconds_of_python_and_the_shell(example):
    upserted, rome, before, changed, compacted = example(block("python", "import hoodie"))
    assert (upserted.inserted, upserted.updated) == (0, 1)
    assert rome.to_pylist() == [{"uuid": "b", "fare": 4.5}]
    assert sorted(before.column("fare").to_pylist()) == [4.0, 9.5]
    assert isinstance(changed, pa.Table)
    assert changed.column("uuid").to_pylist() == ["b"]
    assert len(compacted) == 1
    commands = re.findall(r"^hoodie (.*?)  +#", block("", "hoodie show"), re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(command.split()) == 0


@pytest.mark.spark
def test_thirty_seconds_of_pyspark(example, capfd):
    pyspark_hoodie = pytest.importorskip("pyspark_hoodie")
    text = block("python", "import pyspark_hoodie")
    try:
        example(text.replace("getOrCreate()", 'master("local[2]").config("spark.ui.enabled", "false").getOrCreate()'))
    finally:
        pyspark_hoodie.disable()
    newest, first = re.findall(r"^\|.*\|(?:\n\|.*\||\n\+.*\+)*", capfd.readouterr().out, re.MULTILINE)
    assert len(re.findall(r"\|\s*2\|", newest)) == 2
    assert len(re.findall(r"\|\s*1\|", first)) == 2
