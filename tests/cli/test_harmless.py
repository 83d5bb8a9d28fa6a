"""What a table holds cannot drive the terminal that shows it: control characters are written out, by every command and every error."""

import argparse
import json
import re

import pytest

import hoodie
from hoodie.cli.__main__ import MODULES, main, parser_of
from hoodie.errors import HoodieError, TableNotFoundError, harmless

NASTY = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202egnp"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# They serve until they are stopped, need a metastore, or take no table.
NOT_TRIED = {"timeline-server", "daemon", "services", "hive-sync", "kv", "service-job"}


def commands():
    """Commands that take nothing but a path, with their subcommands."""

    def below(parser, words):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, sub in action.choices.items():
                    if name not in NOT_TRIED:
                        yield from below(sub, [*words, name])
                return
        required = [a for a in parser._actions if (a.required if a.option_strings else a.nargs not in ("?", "*"))]
        if [a.dest for a in required] == ["path"]:
            yield words

    return sorted(below(parser_of(MODULES), []))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("nasty") / "table"
    table = hoodie.create_table(path, record_key="id", partition_by="city", table_type="MERGE_ON_READ")
    table.upsert([{"id": NASTY, "city": NASTY, "v": NASTY}])
    table.upsert([{"id": NASTY, "city": NASTY, "v": "2"}])
    table.savepoint(comment=NASTY)
    return path


def test_there_are_commands_to_try():
    found = commands()
    assert ["files"] in found
    assert len(found) > 15


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_no_command_prints_control_characters(words, path, capsys):
    main([*words, str(path)])
    shown = capsys.readouterr()
    assert not RAW.search(shown.out + shown.err)
    main([*words, str(path), "--json"])
    shown = capsys.readouterr()
    assert not RAW.search(shown.out + shown.err)
    if shown.out:
        json.loads(shown.out)


def test_what_json_escapes_comes_back_as_it_was(path, capsys):
    assert main(["files", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert NASTY in {each["partition"] for each in found["file_slices"]}


def test_errors_and_findings_quote_harmlessly(path):
    for error in (HoodieError(NASTY), TableNotFoundError(NASTY), hoodie.AccessDeniedError(13, "no", NASTY)):
        assert not RAW.search(str(error))
        assert "owned" in str(error)
    for file in path.glob("*/*.parquet"):
        file.unlink()
    table = hoodie.open_table(path)
    with pytest.raises(HoodieError) as caught:
        table.scan().to_arrow()
    for shown in (str(caught.value), str(table.validate()), str(table.doctor())):
        assert not RAW.search(shown)


def test_lines_and_letters_stay():
    text = "two\nlines\tand Zürich, 東京, 🙂"
    assert harmless(text) == text
    assert harmless("\x1b[2J\r\x00\ud800") == r"\x1b[2J\r\x00\ud800"


def test_json_of_any_value_is_json(tmp_path, capsys):
    """`json.dumps` writes NaN, which no other reader takes."""
    hoodie.create_table(tmp_path / "t", {"id": int, "x": float, "b": "binary"}, record_key="id").upsert(
        [{"id": 1, "x": float("nan"), "b": b"\xff"}, {"id": 2, "x": float("-inf"), "b": None}]
    )
    main(["sql", str(tmp_path / "t"), "-e", "SELECT *, [x, 1] AS l, {'y': x} AS s FROM t ORDER BY id", "--json"])

    def refuse(constant):
        raise ValueError(constant)

    one, two = json.loads(capsys.readouterr().out, parse_constant=refuse)["rows"]
    assert one == {"id": 1, "x": "NaN", "b": "/w==", "l": ["NaN", 1.0], "s": {"y": "NaN"}}
    assert two == {"id": 2, "x": "-Infinity", "b": None, "l": ["-Infinity", 1.0], "s": {"y": "-Infinity"}}
