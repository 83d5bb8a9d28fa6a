"""Tables on a real HDFS: a NameNode and a DataNode."""

from __future__ import annotations

import errno
import os
import pickle
import secrets
import signal
import subprocess
import sys

import pytest
from hdfs_native import Client

import hoodie
from hoodie.storage.hdfs import HdfsStorage
from hoodie.storage.uri import open_storage
from integration.hudi_client import ROOT
from tests.servers.hdfs import Hdfs


@pytest.fixture
def place(hdfs_server: Hdfs) -> str:
    """The address of a table that is not there yet."""
    return f"{hdfs_server.uri}/tables/{secrets.token_hex(8)}/t"


@pytest.fixture
def storage(place: str) -> HdfsStorage:
    opened = open_storage(place)
    assert isinstance(opened, HdfsStorage)
    return opened


def path_in(storage: HdfsStorage, path: str) -> str:
    return "/" + storage.uri.split("/", 3)[3] + "/" + path


# -- the storage


def test_a_pickled_storage_is_the_same_one(storage: HdfsStorage) -> None:
    storage.create_new("f", b"1")
    other = pickle.loads(pickle.dumps(storage))
    assert (other.identity, other.read("f")) == (storage.identity, b"1")


def test_settings_reach_the_client_and_are_not_shown(hdfs_server: Hdfs) -> None:
    authority = hdfs_server.uri.removeprefix("hdfs://")
    storage = open_storage(
        "hdfs://cluster/tables/ns",
        {
            "dfs.nameservices": "cluster",
            "dfs.ha.namenodes.cluster": "a",
            "dfs.namenode.rpc-address.cluster.a": authority,
        },
    )
    storage.create_new("f", b"1")
    assert open_storage(f"{hdfs_server.uri}/tables/ns").read("f") == b"1"
    assert repr(storage) == "HdfsStorage('hdfs://cluster/tables/ns')"


def test_a_large_file_is_read_in_ranges(storage: HdfsStorage) -> None:
    data = os.urandom(9 << 20)
    with storage.open_output("f") as stream:
        for at in range(0, len(data), 100_000):
            stream.write(data[at : at + 100_000])
    with storage.open_input("f") as source:
        assert source.size() == len(data)
        source.seek(8 << 20)
        assert source.read(10) == data[8 << 20 :][:10]
        source.seek(0)
        assert source.read() == data


def test_a_name_with_a_colon_is_refused_in_one_sentence(storage: HdfsStorage) -> None:
    with pytest.raises(OSError, match="a ':' is not possible") as caught:
        storage.create_new("a:b", b"")
    assert "\n" not in str(caught.value)


def test_a_file_that_a_writer_holds_open_is_not_taken_for_a_shorter_one(storage: HdfsStorage) -> None:
    storage.create_new("log", b"committed")
    writer = Client(storage.uri).append(path_in(storage, "log"))
    try:
        with pytest.raises(OSError, match="0 of its 9 bytes can be read") as caught:
            storage.read("log")
        assert caught.value.errno == errno.EBUSY
    finally:
        writer.close()
    assert storage.read("log") == b"committed"


KILLED_IN_A_WRITE = """
import os, sys
from hoodie.storage.uri import open_storage
with open_storage(sys.argv[1]).open_output("staging/T/f") as stream:
    stream.write(bytes(3 << 20))
    print("writes", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_held_open_is_renamed_and_deleted_at_once(storage: HdfsStorage) -> None:
    with started(KILLED_IN_A_WRITE, storage.uri) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"
        process.send_signal(signal.SIGKILL)
    storage.rename_folder("staging/T", "staging/T.rolled-back")
    storage.move_new("staging/T.rolled-back/f", "aside")
    assert storage.delete("aside")
    storage.delete_folder("staging")
    assert not storage.exists("staging")


def started(program: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
    )


def test_permission_denied_is_a_permission_error_that_says_why(storage: HdfsStorage) -> None:
    storage.mkdirs("closed")
    Client(storage.uri).set_permission(path_in(storage, "closed"), 0o555)
    program = (
        "import sys\nfrom hoodie.storage.uri import open_storage\n"
        "try:\n    open_storage(sys.argv[1]).create_new('closed/f', b'1')\n"
        "except PermissionError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, storage.uri],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HADOOP_USER_NAME": "somebody"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
    )
    assert "somebody" in run.stdout
    assert run.stdout.count("\n") == 1


def test_a_full_quota_and_safe_mode_are_said_plainly(hdfs_server: Hdfs, storage: HdfsStorage) -> None:
    storage.mkdirs("full")
    hdfs_server.admin("-setQuota", "1", path_in(storage, "full"))
    with pytest.raises(OSError, match="the quota of HDFS is used up"):
        storage.touch("full/f")
    hdfs_server.admin("-safemode", "enter")
    try:
        with pytest.raises(OSError, match="the NameNode is in safe mode") as caught:
            storage.touch("f")
        assert caught.value.errno == errno.EROFS
    finally:
        hdfs_server.admin("-safemode", "leave")


def test_a_cluster_that_is_not_there_is_one_error() -> None:
    quick = {"dfs.client.failover.max.attempts": "1", "dfs.client.failover.sleep.base.millis": "10"}
    with pytest.raises((OSError, hoodie.HoodieError), match=r"127\.0\.0\.1:1/t") as caught:
        hoodie.is_table("hdfs://127.0.0.1:1/t", storage_options=quick)
    assert len(str(caught.value).splitlines()) == 1
