"""`hoodie consumers`: the list, `--seek`, `--drop`, and what an error says."""

import json

import pytest

import hoodie
from hoodie.cli.__main__ import DONE, FAILED, USAGE, main


@pytest.fixture
def table(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert([{"id": "a"}])
    return table


def read(table, name="dash"):
    with table.consumer(name) as consumer:
        return consumer.changes().count()


def test_the_list_says_place_and_lag(table, capsys):
    assert main(["consumers", table.uri]) == DONE
    assert capsys.readouterr().out == "no consumers\n"
    read(table)
    position = table.consumer("dash").position
    table.upsert([{"id": "b"}])
    table.upsert([{"id": "c"}])
    table.consumer("new")
    assert main(["consumers", table.uri]) == DONE
    header, dash, new = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "name"
    assert dash.split()[:2] == ["dash", position]
    assert dash.split()[-3:-2] == ["2"]
    assert new.split()[:2] == ["new", "(beginning)"]
    assert new.split()[-3:-2] == ["3"]
    assert main(["consumers", table.uri, "--json"]) == DONE
    found = json.loads(capsys.readouterr().out)["consumers"]
    assert [(each["name"], each["position"], each["lag"]["commits"]) for each in found] == [
        ("dash", position, 2),
        ("new", None, 3),
    ]


def test_seek_and_drop(table, capsys):
    read(table)
    assert main(["consumers", table.uri, "--seek", "dash", "earliest"]) == DONE
    assert capsys.readouterr().out == "consumer dash stands at the beginning\n"
    assert read(table) == 1
    assert main(["consumers", table.uri, "--seek", "dash", "2 hours ago", "--json"]) == DONE
    assert json.loads(capsys.readouterr().out)["name"] == "dash"
    assert read(table) == 1
    assert main(["consumers", table.uri, "--drop", "dash"]) == DONE
    assert capsys.readouterr().out == "consumer dash is dropped\n"
    assert table.consumers() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--drop", "dish"], "has no consumer 'dish'; its consumers: dash"),
        (["--seek", "dish", "earliest"], "has no consumer 'dish'; its consumers: dash"),
        (["--seek", "dash", "soon"], "'soon' is not an instant"),
        (["--drop", "../dash"], "is not a name for a consumer"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(table, capsys, arguments, said):
    read(table)
    before = table.consumers()[0].position
    assert main(["consumers", table.uri, *arguments]) == FAILED
    assert said in capsys.readouterr().err
    assert [(each.name, each.position) for each in table.consumers()] == [("dash", before)]


def test_a_damaged_one_is_told_and_can_be_dropped(table, capsys):
    read(table)
    table._context.storage.replace(".hoodie/.hoodie_py/consumers/dash.json", b"{")
    assert main(["consumers", table.uri, "--seek", "dash", "latest"]) == FAILED
    assert "does not say where consumer 'dash' stands" in capsys.readouterr().err
    assert main(["consumers", table.uri, "--drop", "dash"]) == DONE


def test_seek_and_drop_exclude_each_other(table):
    assert main(["consumers", table.uri, "--drop", "a", "--seek", "a", "latest"]) == USAGE
