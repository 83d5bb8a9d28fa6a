"""`hoodie index rebuild`, as the warning about an index that may lack entries names it."""

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
