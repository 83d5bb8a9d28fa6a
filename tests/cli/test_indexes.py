"""`hoodie index`: the indexes of a table, and the rebuild that the warning about an index that may lack entries names."""

import json
import logging
import re
import shlex

import hoodie
from hoodie.cli.__main__ import DONE, FAILED, main
from tests.kept_keys import new_kept_keys


def test_the_command_of_the_warning_ends_what_it_warns_of(tmp_path, capsys, caplog):
    index, options = new_kept_keys()
    hoodie.create_table(tmp_path / "t", record_key="id").upsert([{"id": "a"}])
    with caplog.at_level(logging.WARNING, "hoodie"):
        hoodie.open_table(tmp_path / "t", options=options).upsert([{"id": "a"}, {"id": "b"}])
    (named,) = re.findall(r"`hoodie (index .*)`", caplog.text)
    given = [word for name, value in options.items() for word in ("--option", f"{name}={value}")]
    assert main([*shlex.split(named), *given]) == DONE
    assert capsys.readouterr().out == "the index has 2 keys\n"
    assert sorted(index.places) == ["a", "b"]
    result = hoodie.open_table(tmp_path / "t").upsert([{"id": "b"}, {"id": "c"}])
    assert (dict(result.index), result.updated, result.inserted) == ({"index": 1}, 1, 1)


def test_there_is_nothing_to_rebuild_where_keys_are_in_the_files(tmp_path, capsys):
    hoodie.create_table(tmp_path / "t", record_key="id")
    assert main(["index", "rebuild", str(tmp_path / "t")]) == FAILED
    assert "no index that is kept outside" in capsys.readouterr().err


def test_indexes_are_built_listed_checked_and_dropped(tmp_path, capsys):
    path = str(tmp_path / "t")
    hoodie.create_table(path, record_key="id").upsert([{"id": "a", "n": 1}, {"id": "b", "n": 2}])

    def said(*words):
        status = main(["index", *words])
        return status, capsys.readouterr().out

    assert said("list", path) == (DONE, "BLOOM: ready\n")
    assert said("check", path) == (DONE, "there is no metadata table\n")
    built = json.loads(said("build", path, "column_stats", "--json")[1])
    assert built["built"]
    assert said("build", path, "column_stats") == (DONE, "column_stats is there already\n")
    listed = {each["name"]: each for each in json.loads(said("list", path, "--json")[1])["indexes"]}
    assert set(listed) == {"BLOOM", "column_stats", "files"}
    assert (listed["column_stats"]["covered"], listed["column_stats"]["files"]) == (1, 1)
    assert said("check", path)[1].splitlines()[0] == "column_stats: agrees with the files; 1 looked up"
    assert said("drop", path, "files") == (DONE, "would drop files; --yes does it\n")
    for data in (tmp_path / "t").glob("*.parquet"):
        data.unlink()
    status, out = said("check", path, "files", "--json")
    assert (status, json.loads(out)["checks"][0]["checked"]) == (FAILED, 0)
    assert said("drop", path, "files", "--yes") == (DONE, "dropped files\n")
    assert said("drop", path, "files", "--yes") == (DONE, "there is no index files\n")
