"""A server in a process of its own that writes its log into a folder: until it takes connections."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

_PATIENCE_S = 300.0


def wait_for(name: str, port: int, process: subprocess.Popen[bytes], folder: Path, *, host: str = "127.0.0.1") -> None:
    """Raises RuntimeError with the end of `folder`/log when the process ends, or does not serve in time."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection((host, port), timeout=5).close()
        except OSError as exc:
            if process.poll() is not None or time.monotonic() > deadline_s:
                log = (folder / "log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{name} does not serve: {log}") from exc
            time.sleep(0.05)
        else:
            return
