"""`hoodie erase`: it shows what it would delete, takes keys of every type as text, and tells what remains."""

import json
from datetime import date

import pytest

import hoodie
from hoodie.cli.__main__ import DONE, FAILED, main
from tests.held_texts import holding


def erase(capsys, *argv):
    status = main(["erase", *map(str, argv), "--json"])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else None, err


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_it_is_shown_first_and_then_done(tmp_path, capsys, kind):
    root = tmp_path / "t"
    table = hoodie.create_table(root, record_key="id", partition_by="p", table_type=kind)
    table.upsert({"id": ["secret-1", "b", "secret-2"], "p": ["x", "x", "y"]})
    keys = tmp_path / "keys"
    keys.write_text("secret-2\n\nnobody\n")
    assert erase(capsys, root, "secret-1", "--keys", keys)[:2] == (DONE, {"dry_run": True, "rows": 2, "savepoints": []})
    assert table.scan().count() == 3
    status, done, _ = erase(capsys, root, "secret-1", "--keys", keys, "--yes")
    assert (status, done["deleted"], done["remaining"]) == (DONE, 2, [])
    assert holding(root, "secret") == []


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"id": [7, 8]}, "7"),
        ({"id": [date(2020, 1, 2), date(1, 1, 1)]}, "2020-01-02"),
        ({"id": [b"7", b"8"]}, "7"),
        ({"id": ["7", "8"], "n": [1, 1]}, '{"id": "7", "n": 1}'),
        ({"id": [{"a": 7}, {"a": 8}]}, '{"id": {"a": 7}}'),
    ],
)
def test_keys_are_texts_of_the_tables_type_or_objects(tmp_path, capsys, columns, text):
    key = {"n": "id,n"}.get([*columns][-1], "id.a" if "{" in text else "id")
    table = hoodie.create_table(tmp_path / "t", record_key=key.split(","), partition_by="p")
    table.upsert({**columns, "p": ["x", "y"]})
    assert erase(capsys, tmp_path / "t", text)[1]["rows"] == 1
    assert erase(capsys, tmp_path / "t", text, "--yes")[1]["deleted"] == 1
    assert table.to_arrow()["p"].to_pylist() == ["y"]
    if columns["id"][0] not in ("7", b"7"):
        status, _, err = erase(capsys, tmp_path / "t", "soon", "--yes")
        assert status == FAILED
        assert str(tmp_path / "t") in err


def test_what_keeps_files_is_told(tmp_path, capsys):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="p")
    assert "is empty" in erase(capsys, tmp_path / "t", "a")[2]
    table.upsert({"id": ["b", "a", "c"], "p": ["x", "y", "y"]})
    assert "--keys FILE" in erase(capsys, tmp_path / "t")[2]
    (tmp_path / "keys").write_bytes(b"\xff")
    assert "is not UTF-8 text" in erase(capsys, tmp_path / "t", "--keys", tmp_path / "keys")[2]
    saved = table.savepoint()
    assert erase(capsys, tmp_path / "t", "a")[1]["savepoints"] == [saved]
    assert erase(capsys, tmp_path / "t", "a", "--yes")[0] == FAILED
    table.drop_savepoint(saved)
    reading = iter(table.scan().to_batches())
    next(reading)
    assert main(["erase", table.uri, "a", "--yes"]) == FAILED
    assert "remains: " in capsys.readouterr().out
    reading.close()
    assert main(["erase", table.uri, "a", "--yes"]) == DONE
