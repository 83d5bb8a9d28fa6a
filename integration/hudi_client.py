"""The tests' side of the pipe to Apache Hudi."""

import json
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from tests.rows import Row, rows_of

ROOT = Path(__file__).resolve().parent.parent


class PeerError(Exception):
    """Apache Hudi refused the request or failed; the text is its own message."""


class Answer(NamedTuple):
    """What Hudi returned, with the schema as Spark's JSON."""

    table: pa.Table
    schema: dict[str, Any]

    @property
    def rows(self) -> list[Row]:
        """In the encoding of the golden `expected.json` files."""
        return rows_of(self.table)


def read_options(
    query_type: str = "snapshot", *, begin: str | None = None, end: str | None = None, as_of: str | None = None
) -> dict[str, str]:
    """Hudi's options of a query."""
    wanted = {
        "hoodie.datasource.query.type": query_type,
        "hoodie.datasource.read.begin.instanttime": begin,
        "hoodie.datasource.read.end.instanttime": end,
        "as.of.instant": as_of,
    }
    return {key: value for key, value in wanted.items() if value is not None}


class HudiPeer:
    """A running `hudi_peer.py`; close it. One request at a time."""

    def __init__(
        self,
        *,
        python: Path,
        bundle_jar: Path,
        scratch: Path,
        log: IO[str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Start it and wait for its session. `scratch` takes the files that cross, `log` what Spark prints."""
        self._scratch = scratch
        self._log_name = log.name
        environment = os.environ | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "SPARK_CONF_DIR": str(ROOT / "conf"),
            "HOODIE_PEER_WAREHOUSE": str(scratch / "warehouse"),
            "HOODIE_PEER_SETTINGS": json.dumps(dict(settings or {})),
        }
        # A SPARK_HOME of the caller would start another Spark than the one installed beside `python`.
        environment.pop("SPARK_HOME", None)
        self._process = subprocess.Popen(
            [str(python), str(ROOT / "integration" / "hudi_peer.py"), str(bundle_jar)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
            cwd=scratch,
            env=environment,
        )
        try:
            self.spark_version = str(self._answer()["spark"])
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(
        self,
        path: str | Path,
        query_type: str = "snapshot",
        *,
        begin: str | None = None,
        end: str | None = None,
        as_of: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Answer:
        """Read a table: `snapshot`, `read_optimized` or `incremental` (instants in `(begin, end]`), or `as_of` one."""
        wanted = read_options(query_type, begin=begin, end=end, as_of=as_of) | dict(options or {})
        return self._table("read", path=str(path), options=wanted)

    def read_many(self, path: str | Path, questions: Sequence[Mapping[str, str]]) -> list[pa.Table | PeerError]:
        """The answers to several sets of read options, in their order, for little more than the price of one."""
        outs = [self._scratch / f"{uuid.uuid4().hex}.arrow" for _ in questions]
        asked = [dict(options) for options in questions]
        answer = self._ask("read_many", path=str(path), outs=[str(out) for out in outs], questions=asked)
        errors = {int(number): PeerError(text) for number, text in answer["errors"].items()}
        return [errors.get(number) or _taken(out) for number, out in enumerate(outs)]

    def write(
        self,
        path: str | Path,
        data: pa.Table | str | Path,
        options: Mapping[str, str],
        *,
        mode: str = "append",
        gate: Path | None = None,
    ) -> None:
        """Write an Arrow table or a Parquet file with Hudi's write options (defaults: `hudi_peer.WRITE_DEFAULTS`).

        `gate`: a file. While it is there Hudi has its instant, and no row.
        """
        if isinstance(data, pa.Table):
            parquet = self._scratch / f"{uuid.uuid4().hex}.parquet"
            pq.write_table(data, parquet)
        else:
            parquet = Path(data)
        held = None if gate is None else str(gate)
        self._ask("write", path=str(path), parquet=str(parquet), options=dict(options), mode=mode, gate=held)

    def stream(self, path: str | Path, folder: Path, checkpoint: Path, options: Mapping[str, str]) -> str:
        """Stream the Parquet files of a folder into a table by Hudi's sink, a batch each; gives the id of the query."""
        asked = {"folder": str(folder), "checkpoint": str(checkpoint), "options": dict(options)}
        return str(self._ask("stream", path=str(path), **asked)["id"])

    def keys(self, data: pa.Table, options: Mapping[str, str]) -> pa.Table:
        """Columns key, key_error, path, path_error: what Hudi's key generator makes of each row; text or what it threw."""
        parquet = self._scratch / f"{uuid.uuid4().hex}.parquet"
        pq.write_table(data, parquet)
        return self._table("keys", parquet=str(parquet), options=dict(options)).table

    def sql(self, query: str) -> Answer:
        """Run one statement of Spark SQL with Hudi's extensions."""
        return self._table("sql", query=query)

    def expired(self, path: str | Path, options: Mapping[str, str]) -> list[str]:
        """The partitions that Apache Hudi would delete because they have expired; leaves a pending instant."""
        found: list[str] = self._ask("expired", path=str(path), options=dict(options))["partitions"]
        return found

    def client(self, path: str | Path, act: str, *, argument: str | None, options: Mapping[str, str]) -> None:
        """An act of Hudi's write client: `schedule_clean`, `archive`, `rollback`, `restore` or `expire`."""
        self._ask("client", path=str(path), act=act, argument=argument, options=dict(options))

    def timeline_hashes(self, path: str | Path) -> dict[str, str]:
        """`HoodieTimeline.getTimelineHash` of the active timeline ("all"), and of what views take of it ("views")."""
        return dict(self._ask("timeline_hashes", path=str(path)))

    def view_answers(
        self, path: str | Path, partitions: Sequence[str], *, host: str | None = None, port: int = 0
    ) -> dict[str, Any]:
        """What each method of Hudi's file system view answers: by its own listing, or from the timeline server at that address."""
        asked = {"host": host, "port": port, "partitions": list(partitions)}
        return dict(self._ask("view_answers", path=str(path), **asked)["answers"])

    def start_timeline_server(self, path: str | Path) -> int:
        """Start Hudi's own timeline server; gives its port."""
        return int(self._ask("start_timeline_server", path=str(path))["port"])

    def stop_timeline_server(self, port: int) -> None:
        """Stop it."""
        self._ask("stop_timeline_server", port=port)

    def run_compaction(self, path: str | Path, *, op: str = "run", options: Mapping[str, str] | None = None) -> Answer:
        """Hudi's procedure `run_compaction`: `op` is `run`, `schedule`, `execute` or `scheduleAndExecute`."""
        given = ",".join(
            f"{key}={value}" for key, value in ({"hoodie.metadata.enable": "false"} | dict(options or {})).items()
        )
        return self.sql(f"call run_compaction(op => '{op}', path => '{path}', options => '{given}')")

    def close(self) -> None:
        """End the process: by the end of its input, by its pid when that does not help."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _table(self, call: str, **arguments: Any) -> Answer:
        out = self._scratch / f"{uuid.uuid4().hex}.arrow"
        answer = self._ask(call, out=str(out), **arguments)
        return Answer(_taken(out), answer["schema"])

    def _ask(self, call: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": call, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(
                f"the Hudi peer ended with exit code {self._process.wait()}; its output is in {self._log_name}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return dict(answer["ok"])


def _taken(out: Path) -> pa.Table:
    """The table in a file that crossed, which goes away with that."""
    with pa.OSFile(str(out)) as source:
        table = pyarrow.ipc.open_file(source).read_all()
    out.unlink()
    return table
