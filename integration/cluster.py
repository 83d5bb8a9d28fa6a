"""A real Spark cluster on 127.0.0.1: a standalone master and its workers as processes of their own, from pip's pyspark.

They are Java processes that this one started and stops by their ids; no script, no daemon. Jobs are brought by
`spark-submit`, as users bring theirs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import distribution
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import pyspark

from tests.effort import HUNG_S
from tests.servers.java import SHORT_LIVED
from tests.servers.ports import free_ports

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
SPARK_HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
NEEDED = ("fastavro", "numpy", "pandas", "pyarrow", "python-dateutil", "pytz", "six", "tzdata")
"""What the interpreter of a worker must have beside hoodie; Spark brings pyspark itself, and wants pandas for Arrow."""
STORES = ("hdfs-native", "obstore", "typing-extensions")
"""What it must have for tables that are not on a disk."""
_PATIENCE_S = 240
_EXECUTOR = "CoarseGrainedExecutorBackend"


class ClusterError(Exception):
    """A process of the cluster did not start, or something that was waited for did not come; with the end of its log."""


class Cluster:
    """A master and workers of one core each. Enter it to start them; what is still running at the end is killed."""

    def __init__(self, folder: Path, *, workers: int = 2, memory: str = "1g") -> None:
        self._folder = folder
        self._count = workers
        self._memory = memory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port, self._ui_port = free_ports(2)
        self.url = f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            ports = ["--port", str(self._port), "--webui-port", str(self._ui_port)]
            self._start("master", "org.apache.spark.deploy.master.Master", HOST, ports)
            self._wait_for_workers(0)
            for number in range(self._count):
                # Hosts of their own: Spark runs no speculative copy of a task on the host of the first one.
                host, work = f"127.0.0.{1 + number}", str(self._folder / f"work{number}")
                limits = ["--cores", "1", "--memory", self._memory]
                arguments = ["--webui-port", "0", *limits, "--work-dir", work, self.url]
                self._start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", host, arguments)
            self._wait_for_workers(self._count)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Workers first: they end their executors."""
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def executors(self) -> dict[int, list[int]]:
        """The executors that are there now, of all applications: their process ids, and those of the processes below each."""
        workers = {process.pid for process in self._processes[1:]}
        found, children = [], dict[int, list[int]]()
        for pid, parent, command in processes():
            children.setdefault(parent, []).append(pid)
            if parent in workers and _EXECUTOR in command:
                found.append(pid)
        return {executor: list(_below(executor, children)) for executor in found}

    @contextmanager
    def submitted(
        self,
        script: Path,
        *arguments: str,
        python: Path,
        options: Sequence[str] = (),
        conf: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Submitted]:
        """A job brought by spark-submit in client mode; one that has not ended when the block ends is killed.

        Args:
            python: the interpreter of the driver, and of the workers where the environment does not say another one.
            options: of spark-submit; a `--master` among them goes before this cluster.
        """
        settings = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
            "spark.executor.extraJavaOptions": " ".join(SHORT_LIVED),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            **(conf or {}),
        }
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.url, *options]
        command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        log = self._folder / f"job-{len(list(self._folder.glob('job-*')))}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, str(script), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self._environment({"SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": str(python), **(environment or {})}),
                cwd=self._folder,
            )
        job = Submitted(process, script, log)
        try:
            yield job
        finally:
            job.kill()

    def _wait_for_workers(self, count: int) -> None:
        waited(f"a master with {count} workers", lambda: self._alive_workers() == count, self._whole, pause_s=0.2)

    def _start(self, name: str, main: str, host: str, arguments: Sequence[str]) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            java = [
                "java",
                "-Xmx256m",
                *SHORT_LIVED,
                "-Dspark.master.rest.enabled=false",
            ]
            java += ["-cp", f"{SPARK_HOME}/jars/*", main, "--host", host, *arguments]
            environment = self._environment({"SPARK_LOCAL_IP": host})
            self._processes.append(
                subprocess.Popen(
                    java, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self._folder
                )
            )

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Ours without what would let hoodie, or another Spark, be found by chance."""
        settings = self._folder / "conf"
        settings.mkdir(exist_ok=True)
        shutil.copy(ROOT / "conf" / "log4j2.properties", settings)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PYSPARK_", "SPARK_", "HOODIE_")) and name != "VIRTUAL_ENV"
        }
        return kept | {
            "SPARK_HOME": str(SPARK_HOME),
            # Without it a worker of pip's pyspark starts executors that die at once.
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_CONF_DIR": str(settings),
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            **more,
        }

    def _alive_workers(self) -> int | None:
        """None: the master does not answer yet."""
        url = f"http://{HOST}:{self._ui_port}/json/"
        with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=5) as answer:
            found = json.load(answer)
            return int(found["aliveworkers"]) if found["status"] == "ALIVE" else None
        return None

    def _whole(self) -> None:
        for process in self._processes:
            if process.poll() is not None:
                raise ClusterError(
                    f"a process of the cluster ended with {process.returncode}; its log is in {self._folder}"
                )


class Submitted:
    """A job that was brought to the cluster."""

    def __init__(self, process: subprocess.Popen[bytes], script: Path, log: Path) -> None:
        self.process = process
        self._script = script
        self._log = log

    def ended(self, timeout_s: float = 300) -> str:
        """Wait until it has ended well; gives what it printed.

        Raises:
            ClusterError: it failed.
        """
        code = self.process.wait(timeout_s)
        if code:
            raise ClusterError(f"the job ended with {code}:\n{self.printed()[-6000:]}")
        return self.printed()

    def printed(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def runs(self) -> None:
        """Raises ClusterError when it has ended."""
        if self.process.poll() is not None:
            raise ClusterError(f"the job has ended with {self.process.returncode}:\n{self.printed()[-6000:]}")

    def driver(self) -> int:
        """The Python process that runs the script: a child of the process that spark-submit became.

        Raises:
            ClusterError: there is none (any more).
        """
        for pid, parent, command in processes():
            if parent == self.process.pid and self._script.name in command:
                return pid
        raise ClusterError(f"no driver runs {self._script.name}:\n{self.printed()[-6000:]}")

    def kill(self) -> None:
        """End it as the system would, without a word: its Python (and what else Spark started for itself), then its JVM."""
        below = [pid for pid, parent, _ in processes() if parent == self.process.pid]
        for pid in [*below, self.process.pid] if self.process.poll() is None else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def plain_environment(folder: Path, *, copies: bool = False, more: Sequence[str] = ()) -> Path:
    """A virtual environment with what hoodie needs, and `more`, and without hoodie; gives its interpreter.

    Made in a moment of links, or of copies, so that it can be packed.
    """
    venv.create(folder, symlinks=True, with_pip=False)
    site = next((folder / "lib").glob("python*/site-packages"))
    for name in (*NEEDED, *more):
        with suppress(ImportError):  # not all versions of pandas, and of Python, need all of them
            found = distribution(name)
            tops = {Path(str(file)).parts[0] for file in found.files or ()} - {"..", "__pycache__"}
            for top in tops:
                source = Path(str(found.locate_file(top)))
                if copies and source.is_dir():
                    shutil.copytree(source, site / top, ignore=shutil.ignore_patterns("tests", "__pycache__", "*.a"))
                elif copies:
                    shutil.copy(source, site / top)
                else:
                    (site / top).symlink_to(source)
    return folder / "bin" / "python"


def built_wheel(folder: Path) -> Path:
    """The wheel of this tree, as pip builds it."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=HUNG_S)
    (wheel,) = folder.glob("hoodie-*.whl")
    return wheel


def waited(what: str, found: Callable[[], T], alive: Callable[[], None], *, pause_s: float = 0.002) -> T:
    """What `found` gives as soon as it is true; `alive` raises when it cannot come any more.

    Raises:
        ClusterError: it did not come in time.
    """
    end = time.monotonic() + _PATIENCE_S
    while not (result := found()):
        alive()
        if time.monotonic() > end:
            raise ClusterError(f"waited {_PATIENCE_S} s for {what}")
        time.sleep(pause_s)
    return result


def processes() -> Iterator[tuple[int, int, str]]:
    """Process id, parent and command line of all processes that can be looked at."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(entry.name), parent, (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()


def _below(pid: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    for child in children.get(pid, ()):
        yield child
        yield from _below(child, children)


def opened_in(pid: int, folder: Path) -> list[Path]:
    """The files in a folder that a process has open."""
    found = []
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = Path(os.readlink(entry))
                if target.is_relative_to(folder):
                    found.append(target)
    return found
