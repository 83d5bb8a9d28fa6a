"""`hoodie kv`: values, rows and figures of a store."""

import json

import pytest

import hoodie.kv
from hoodie.cli.__main__ import main


@pytest.fixture
def path(tmp_path):
    store = hoodie.kv.open_store(tmp_path / "s", buckets=2)
    for bucket in range(2):
        with store.writer(bucket) as writer:
            for key in (b"apple", b"pear", b"plum", b"\xff\x00"):
                if store.bucket_of(key) == bucket:
                    writer.put(key, b"red" if key != b"plum" else b"x" * 100)
            writer.end_window(4)
            writer.flush()
    return str(tmp_path / "s")


def test_get(path, capsys):
    assert main(["kv", "get", path, "apple"]) == 0
    assert capsys.readouterr().out == "red\n"
    assert main(["kv", "get", path, "0xff00", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"key": "0xff00", "bucket": hoodie.kv.open_store(path).bucket_of(b"\xff\x00"), "value": "red"}
    assert main(["kv", "get", path, "none"]) == 1
    assert capsys.readouterr().out == "(none)\n"
    assert main(["kv", "get", path, "0xzz"]) == 1
    assert "hexadecimal" in capsys.readouterr().err
    assert main(["kv", "get", path, "apple", "--bucket", "7"]) == 1
    assert "there is no bucket 7" in capsys.readouterr().err


def test_scan(path, capsys):
    assert main(["kv", "scan", path, "--prefix", "p", "--json"]) == 0
    assert {row["key"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"pear", "plum"}
    assert main(["kv", "scan", path, "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["kv", "scan", path, "--start", "zebra", "--stop", "zz"]) == 0
    assert capsys.readouterr().out == "no rows\n"
    assert main(["kv", "scan", path]) == 0
    assert "…" in capsys.readouterr().out


def test_stats(path, capsys):
    assert main(["kv", "stats", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(bucket["entries"] for bucket in found["buckets"]) == 4
    assert {bucket["window"] for bucket in found["buckets"]} == {4}
    assert main(["kv", "stats", path]) == 0
    assert "file format" in capsys.readouterr().out


def test_where_there_is_no_store(tmp_path, capsys):
    assert main(["kv", "stats", str(tmp_path / "none")]) == 1
    assert "there is no key-value store" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
