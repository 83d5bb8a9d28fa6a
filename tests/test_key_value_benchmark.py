"""The benchmark of the key-value store runs, with few keys, and gives a page."""

import pytest

from benchmarks.key_values.page import page
from benchmarks.key_values.stores import KINDS
from benchmarks.key_values.work import CASES


@pytest.mark.parametrize("name", ["hoodie", "hoodie, blocks", "RocksDB", "SQLite"])
def test_a_store_does_the_work_that_is_measured(tmp_path, name):
    told = {"keys": 20_000, "more": 10_000, "gets": 20}
    store = KINDS[name](str(tmp_path / "store"))
    found = CASES["beside"](store, told)
    store.close()
    assert found["scan"]["keys"] in (20_000, 20_001)  # peers keep the window under a key of its own
    assert [found[case]["keys"] for case in ("load", "overwrite", "change", "single")] == [
        20_000,
        10_000,
        10_000,
        10_000,
    ]
    assert "| scan, keys a core |" in page(
        [{"part": "beside", "store": name, "told": told, "found": found}], made="today", machine="this one"
    )


def test_the_rows_of_hdht_and_growth(tmp_path):
    lines = []
    for number, keys_come in enumerate(("sequential", "ranges")):
        told = {"place": "disk", "keys": 20_000, "window_s": 0.01, "reads": True, "keys_come": keys_come}
        store = KINDS["hoodie"](str(tmp_path / str(number)))
        lines.append({"part": "hdht", "store": "hoodie", "told": told, "found": CASES["hdht"](store, told)})
        assert store.scan() == (20_000 if keys_come == "sequential" else pytest.approx(8_650, abs=300))
        store.close()
    told = {"value_bytes": 10, "steps": [10_000, 20_000], "gets": 20}
    store = KINDS["hoodie"](str(tmp_path / "growing"))
    lines += [
        {"part": "growth", "store": "hoodie", "told": told, "found": each} for each in CASES["growth"](store, told)
    ]
    assert store.scan() == 20_000
    store.close()
    made = page(lines, made="today", machine="this one")
    assert made.count("| disk | read, change, write |") == 2
    assert "| 20,000 | hoodie |" in made
