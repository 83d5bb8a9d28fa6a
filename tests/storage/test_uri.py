"""Which storage a path or URI opens, and what is said about the others."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage, forget_shared_memory_storage
from hoodie.storage.uri import open_storage


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("/data/trips", "/data/trips"),
        ("/data/trips/", "/data/trips"),
        ("/data/x/../trips", "/data/trips"),
        (Path("/data/trips"), "/data/trips"),
        ("file:///data/trips", "/data/trips"),
        ("file:/data/trips", "/data/trips"),
        ("FILE://localhost/data/trips", "/data/trips"),
        ("file:///data/a%20b", "/data/a b"),
        (Path("/data/50% #1?").as_uri(), "/data/50% #1?"),
        (Path("file:///data/trips"), "/data/trips"),
        ("/data/a%20b", "/data/a%20b"),
        ("/data/day:2024/x", "/data/day:2024/x"),
    ],
)
def test_paths_and_file_uris_open_the_local_disk(uri: str | os.PathLike[str], root: str) -> None:
    storage = open_storage(uri)
    assert isinstance(storage, LocalStorage)
    assert storage.uri == root


@pytest.mark.parametrize("path", ["trips", "./trips", "day:2024/trips", "s3:trips", "./~/trips", "a~"])
def test_relative_paths_start_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage(path).uri == str(tmp_path / path)


@pytest.mark.parametrize("path", ["~/trips", Path("~/trips"), "~//trips/"])
def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_storage(path).uri == str(tmp_path / "trips")


@pytest.mark.parametrize("path", [None, 5, b"/data/trips", "", " ", ["/data"], "a\0b"])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(OptionError, match="is not a path: give the table's folder"):
        open_storage(path)


def test_memory_uri_opens_the_same_table_every_time() -> None:
    try:
        storage = open_storage("memory://uri-test")
        assert isinstance(storage, MemoryStorage)
        assert storage.uri == "memory://uri-test"
        assert open_storage("memory://uri-test/") is storage
    finally:
        forget_shared_memory_storage("memory://uri-test")


@pytest.mark.parametrize(
    ("uri", "scheme"),
    [
        ("ftp://bucket/trips", "ftp"),
        ("HTTP://bucket/trips", "http"),
        ("https://host/trips", "https"),
        (Path("ftp://bucket/trips"), "ftp"),
    ],
)
def test_other_schemes_are_refused_by_name_with_what_is_supported(uri: str | os.PathLike[str], scheme: str) -> None:
    with pytest.raises(
        UnsupportedTableError, match=f"'{scheme}'.*file:///path, memory://name, hdfs://host:port/path, s3://"
    ):
        open_storage(uri)


def test_file_on_another_host_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="host 'server'"):
        open_storage("file://server/share")


@pytest.mark.parametrize("uri", ["", "a\0b", "file://", "file:///a%00b", "memory://", "memory:/x", "memory:///"])
def test_what_names_no_table_is_an_option_error(uri: str) -> None:
    with pytest.raises(OptionError):
        open_storage(uri)


def test_storage_options_are_refused_by_key_without_showing_values() -> None:
    with pytest.raises(OptionError, match="'secret_key'") as caught:
        open_storage("/data/trips", {"secret_key": "canary"})
    assert "canary" not in str(caught.value)
    assert open_storage("/data/trips", {}).uri == "/data/trips"


def test_an_hdfs_uri_is_a_namenode_or_a_nameservice_and_a_path() -> None:
    opened = open_storage("hdfs://name:8020/a b/%2F/t/", {"dfs.client.use.datanode.hostname": "true"})
    assert opened.uri == "hdfs://name:8020/a b/%2F/t"
    assert opened.identity == open_storage("hdfs://name:8020/a b/%2F/t").identity
    assert open_storage("hdfs://cluster/t").uri == "hdfs://cluster/t"


@pytest.mark.parametrize("uri", ["hdfs:/trips", "hdfs://name:8020", "hdfs://name/", "hdfs:///t", "hdfs://name/a/../t"])
def test_an_hdfs_uri_that_names_no_folder_is_an_option_error(uri: str) -> None:
    with pytest.raises(OptionError, match=re.escape(uri)):
        open_storage(uri)


def test_what_may_be_a_secret_in_an_hdfs_uri_or_its_options_is_not_shown() -> None:
    with pytest.raises(OptionError, match="takes no user") as caught:
        open_storage("hdfs://me:hush@name:8020/t")
    assert "hush" not in str(caught.value)
    with pytest.raises(OptionError, match=r"'password'.*begin with dfs\.") as caught:
        open_storage("hdfs://name:8020/t", {"password": "hush"})
    assert "hush" not in str(caught.value)
