"""`hoodie services`: it works beside a writer, survives what may pass, and a signal ends it."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

import hoodie
from hoodie.cli.__main__ import DONE, FAILED, USAGE, main
from hoodie.model.enums import Action
from hoodie.storage.local import LocalStorage
from tests.effort import long_but
from tests.memory_tables import leftovers

LEFT_TO_IT = {"hoodie.table.services.enabled": "false"}


def make(path, turns=6):
    table = hoodie.create_table(
        path, record_key="id", partition_by="city", table_type="MERGE_ON_READ", options=LEFT_TO_IT
    )
    for turn in range(turns):
        table.upsert([{"id": n, "city": "ab"[n % 2], "fare": turn} for n in range(4)])
    return table


def test_one_round_compacts_and_says_so_in_a_line_of_json(tmp_path, capsys):
    table = make(tmp_path / "t")
    assert main(["services", str(tmp_path / "t"), "--once", "--json"]) == DONE
    (line,) = capsys.readouterr().out.splitlines()
    said = json.loads(line)
    assert said["event"] == "round"
    assert said["table"] == str(tmp_path / "t")
    assert [run["service"] for run in said["runs"]] == ["compaction"]
    assert said["runs"][0]["results"][0]["instant"] == max(table.timeline.compactions)


def test_options_go_to_the_services(tmp_path, capsys):
    make(tmp_path / "t")
    asked = ["-o", "hoodie.clean.commits.retained=1", "-o", "hoodie.compact.inline.max.delta.commits=100"]
    assert main(["services", str(tmp_path / "t"), "--once", *asked]) == DONE
    out = capsys.readouterr().out
    assert "compact" not in out
    assert "clean" in out


def test_of_several_tables_one_that_is_not_there_does_not_keep_the_others_from_theirs(tmp_path, capsys):
    make(tmp_path / "t")
    assert main(["services", str(tmp_path / "gone"), str(tmp_path / "t"), "--once"]) == FAILED
    first, second = capsys.readouterr().out.splitlines()
    assert "opening failed: no table at" in first
    assert "compact" in second


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["services"], USAGE),
        (["services", "t", "--every", "soon"], USAGE),
        (["services", "t", "-o", "hoodie.clean.commits.retained=few"], FAILED),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused_at_once(arguments, status, capsys):
    assert main(arguments) == status
    assert capsys.readouterr().err


class Daemon:
    """The command in a process of its own; its lines as they come."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hoodie", "services", *map(str, arguments), "--json"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def next(self, event):
        for line in self.process.stdout:
            said = json.loads(line)
            if said["event"] == event:
                return said
        raise AssertionError(f"it ended without {event}")

    def ended(self):
        rest = [json.loads(line) for line in self.process.stdout]
        return self.process.wait(60), rest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdout.close()
        self.process.wait()


@pytest.mark.parametrize("number", long_but([signal.SIGTERM], [signal.SIGTERM, signal.SIGINT]))
def test_a_signal_ends_it_cleanly(number, tmp_path):
    table = make(tmp_path / "t")
    with Daemon(tmp_path / "t", "--every", "1000s") as daemon:
        assert daemon.next("round")["runs"][0]["service"] == "compaction"
        daemon.process.send_signal(number)
        status, rest = daemon.ended()
    assert status == DONE
    assert rest[-1]["event"] == "ended"
    assert not table.timeline.pending()
    assert leftovers(LocalStorage(tmp_path / "t")) == []


def test_it_goes_on_with_a_table_that_was_deleted_and_made_anew(tmp_path):
    make(tmp_path / "t")
    with Daemon(tmp_path / "t", "--every", "0.1s") as daemon:
        daemon.next("round")
        shutil.move(tmp_path / "t", tmp_path / "before")
        said = daemon.next("round")
        assert "no table at" in said["runs"][0]["error"]
        table = make(tmp_path / "t")
        said = daemon.next("round")
        while not any(run["service"] == "compaction" for run in said["runs"]):
            said = daemon.next("round")
        daemon.process.terminate()
        assert daemon.ended()[0] == DONE
    assert table.timeline.compactions


@pytest.mark.long
def test_killed_again_and_again_beside_a_writer_it_loses_nothing(tmp_path):
    path = tmp_path / "t"
    table = make(path)
    options = [
        *("-o", "hoodie.compact.inline.max.delta.commits=2", "-o", "hoodie.clean.commits.retained=2"),
        *("-o", "hoodie.keep.min.commits=4", "-o", "hoodie.keep.max.commits=5"),
    ]
    turn = 0
    for life in range(5):
        with Daemon(path, "--every", "0.01s", *options) as daemon:
            daemon.next("began")
            for _ in range(6 + 3 * life):  # it dies at another moment each time
                turn += 1
                table.upsert([{"id": n, "city": "ab"[n % 2], "fare": 100 + turn} for n in range(4)])
            daemon.process.kill()
    assert table.scan(columns=["fare"]).to_arrow().to_pydict() == {"fare": [100 + turn] * 4}
    assert main(["services", str(path), "--once", *options]) == DONE
    assert main(["services", str(path), "--once", *options]) == DONE
    assert not table.timeline.pending()
    assert leftovers(LocalStorage(path)) == []
    assert table.timeline.newest(Action.CLEAN) is not None
    assert sorted(hoodie.open_table(path).to_arrow().select(["id", "fare"]).to_pylist(), key=str) == [
        {"id": n, "fare": 100 + turn} for n in range(4)
    ]
    assert len(table.history(archived=True)) >= turn


def test_expired_partitions(tmp_path, capsys):
    make(tmp_path / "t", 1)
    assert main(["ttl", str(tmp_path / "t"), "--days", "1", "--dry-run", "--json"]) == DONE
    assert json.loads(capsys.readouterr().out)["partitions"] == []
    assert main(["ttl", str(tmp_path / "t")]) == FAILED
    assert "after how many days a partition expires" in capsys.readouterr().err
