"""A PostgreSQL of this machine in a folder of its own, on a port of 127.0.0.1, stopped by its process id."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.ports import free_port

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def programs() -> Path | None:
    """The folder that has `initdb` and `postgres`; None: this machine has none."""
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else next(iter(_PLACES), None)


@contextmanager
def postgres(bin_folder: Path, **settings: str) -> Iterator[str]:
    """Its address; user `postgres` needs no password."""
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL does not run as root
    with tempfile.TemporaryDirectory(prefix="hoodie-postgres-", dir="/tmp") as folder:
        if user:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        data, port = f"{folder}/data", free_port()
        subprocess.run(
            [bin_folder / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"],
            check=True,
            capture_output=True,
            user=user,
            cwd=folder,
        )
        command = [bin_folder / "postgres", "-D", data, "-p", str(port), "-k", folder, "-F"]
        command += [f"--{name}={value}" for name, value in settings.items()]
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, "-c", "listen_addresses=127.0.0.1"], stdout=out, stderr=out, user=user, cwd=folder
            )
        try:
            _wait(log, process)
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            process.send_signal(signal.SIGINT)  # its clients are ended
            process.wait(30)


def _wait(log: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if b"ready to accept connections" in log.read_bytes():
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise TimeoutError(f"PostgreSQL is not ready: {log.read_text()}")
