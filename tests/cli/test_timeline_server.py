"""The command `timeline-server`, as a process."""

import json
import signal
import subprocess
import sys

import pytest

import hoodie
from hoodie.cli.__main__ import main
from tests.effort import long_but
from tests.timeline_server.asking import made


@pytest.mark.parametrize("sent", long_but([signal.SIGINT], [signal.SIGTERM, signal.SIGINT]))
def test_it_tells_its_address_first_and_ends_at_a_signal(tmp_path, sent):
    table = made(tmp_path)
    command = [sys.executable, "-m", "hoodie", "timeline-server", table._context.storage.uri, "--token", "open sesame"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        options = {
            "hoodie.filesystem.view.type": "REMOTE_ONLY",
            "hoodie.filesystem.view.remote.host": "127.0.0.1",
            "hoodie.filesystem.view.remote.port": address.rpartition(":")[2],
            "hoodie.python.view.remote.token": "open sesame",
        }
        assert hoodie.open_table(table._context.storage.uri, options=options).scan().count() == 3
        process.send_signal(sent)
        out, err = process.stdout.read(), process.stderr.read()
        process.wait()
        assert (process.returncode, err) == (0, "")
        assert "hoodie.filesystem.view.remote.host=hoodie:open sesame@127.0.0.1" in out
    finally:
        process.kill()
        process.wait()


def test_it_tells_it_as_json(tmp_path):
    table = made(tmp_path)
    command = [sys.executable, "-m", "hoodie", "timeline-server", table._context.storage.uri, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = json.loads(process.stdout.readline())
        process.terminate()
    assert said["address"].startswith("http://127.0.0.1:")
    assert said["token"]
    assert said["table"] == table._context.storage.uri


@pytest.mark.parametrize(
    ("argv", "status"),
    [(["no/table"], 1), (["PATH", "--store", "redis"], 2), (["PATH", "--port", "70000"], 1), ([], 2)],
)
def test_what_makes_no_sense_is_said(tmp_path, argv, status, capsys):
    table = made(tmp_path)
    assert main(["timeline-server", *(table._context.storage.uri if arg == "PATH" else arg for arg in argv)]) == status
    assert "Traceback" not in capsys.readouterr().err
