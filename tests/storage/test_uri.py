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
from hoodie.storage.object_store import ObjectStorage
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


@pytest.mark.parametrize("uri", ["hdfs:/trips", "hdfs://name:8020", "hdfs://name/", "hdfs:///", "hdfs://name/a/../t"])
def test_an_hdfs_uri_that_names_no_folder_is_an_option_error(uri: str) -> None:
    with pytest.raises(OptionError, match=re.escape(uri)):
        open_storage(uri)


CORE_SITE = "<configuration><property><name>fs.defaultFS</name><value>{}</value></property></configuration>"


@pytest.fixture
def hadoop_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Hadoop's settings, without any."""
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["fs.defaultFS", "fs.defaultfs"])  # Spark's options are in small letters
def test_an_hdfs_uri_without_a_host_is_one_of_the_default_file_system(hadoop_files: Path, name: str) -> None:
    (hadoop_files / "core-site.xml").write_text(CORE_SITE.format(" hdfs://of-the-file:8020/ "))
    assert open_storage("hdfs:///a/t").uri == "hdfs://of-the-file:8020/a/t"
    given = open_storage("hdfs:///a/t", {name: "hdfs://given", "dfs.replication": "1"})
    assert (given.uri, given.settings) == ("hdfs://given/a/t", {"dfs.replication": "1"})  # type: ignore[attr-defined]
    assert open_storage("hdfs://said:9/a/t", {name: "hdfs://given"}).uri == "hdfs://said:9/a/t"


def test_of_several_defaults_in_a_file_the_last_one_counts(hadoop_files: Path) -> None:
    twice = CORE_SITE.format("hdfs://first").replace("</configuration>", "")
    (hadoop_files / "core-site.xml").write_text(twice + CORE_SITE.format("hdfs://last").removeprefix("<configuration>"))
    assert open_storage("hdfs:///t").uri == "hdfs://last/t"


def test_the_files_of_hadoop_home_are_looked_into_too(hadoop_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.setenv("HADOOP_HOME", str(hadoop_files))
    (hadoop_files / "etc" / "hadoop").mkdir(parents=True)
    (hadoop_files / "etc" / "hadoop" / "core-site.xml").write_text(CORE_SITE.format("hdfs://home"))
    assert open_storage("hdfs:///t").uri == "hdfs://home/t"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "there is no .*core-site.xml: write hdfs://host:port/path, or set fs.defaultFS"),
        ("<configuration/>", "core-site.xml does not say fs.defaultFS: write hdfs://host:port/path, or set"),
        ("<configuration>", "core-site.xml cannot be read"),
        (CORE_SITE.format("file:///"), "core-site.xml says 'file:///', which is not hdfs://host:port"),
        (CORE_SITE.format("hdfs://"), "says 'hdfs://', which is not"),
        (CORE_SITE.format("hdfs://${host}:8020"), "which is not hdfs://host:port"),
        (CORE_SITE.format("hdfs://me:hush@name:8020"), "says 'hdfs://…name:8020', which is not"),
    ],
)
def test_no_default_file_system_is_one_error_that_says_what_to_set(
    hadoop_files: Path, file: str | None, said: str
) -> None:
    if file is not None:
        (hadoop_files / "core-site.xml").write_text(file)
    with pytest.raises(OptionError, match=said) as caught:
        open_storage("hdfs:///t")
    assert "hush" not in str(caught.value)


def test_without_any_configuration_the_error_names_the_variable(
    hadoop_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR")
    with pytest.raises(OptionError, match="'hdfs:///t' names no host, and HADOOP_CONF_DIR is not set: write"):
        open_storage("hdfs:///t")


def test_what_may_be_a_secret_in_an_hdfs_uri_or_its_options_is_not_shown() -> None:
    with pytest.raises(OptionError, match="takes no user") as caught:
        open_storage("hdfs://me:hush@name:8020/t")
    assert "hush" not in str(caught.value)
    with pytest.raises(OptionError, match=r"'password'.*begin with dfs\.") as caught:
        open_storage("hdfs://name:8020/t", {"password": "hush"})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "instead"),
    [
        ("s3://AKID:a-secret@lake/trips", "s3://lake/trips"),
        ("s3a://a-secret@lake/trips", "s3a://lake/trips"),
        ("gs://user:a-secret@lake/trips", "gs://lake/trips"),
        ("abfss://files:a-secret@account.dfs.core.windows.net/trips", "abfss://account"),
        ("https://user:a-secret@host/trips", "https://host/trips"),
        ("https://account.blob.core.windows.net/files/trips?sv=1&sig=a-secret", "https://account.blob"),
        ("hdfs://user:a-secret@name:8020/trips", "hdfs://name:8020/trips"),
    ],
)
def test_credentials_in_an_address_are_refused_and_not_shown(uri: str, instead: str) -> None:
    with pytest.raises((OptionError, UnsupportedTableError)) as refused:
        open_storage(uri)
    assert "a-secret" not in str(refused.value)
    assert instead in str(refused.value)


@pytest.mark.parametrize("begins", ["azure", "azure_storage"])
def test_options_of_azure_may_begin_in_either_way(begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The container before the account is no user either."""
    uri = "abfss://files@account.dfs.core.windows.net/trips"
    monkeypatch.setenv(f"{begins.upper()}_ACCOUNT_NAME", "of the environment")
    given = {"account_name": "account", "account_key": "a2V5", "use_emulator": "false", "use_azure_cli": "false"}
    storage = open_storage(uri, {f"{begins}_{name}": value for name, value in given.items()})
    assert storage.uri == uri
    assert isinstance(storage, ObjectStorage)
    assert storage.how["azure_storage_account_name"] == "account"
