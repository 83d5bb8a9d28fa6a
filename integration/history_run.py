"""Plays a history: each step by its writer on the same table; then every reader is asked, and the model beside them."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from zlib import crc32

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InstantNotFoundError
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.storage.local import LocalStorage
from hoodie.table import HoodieTable
from integration import rust_peer
from integration.histories import MOR, OURS, PAYLOADS, History, Step, key_of
from integration.histories import SERVICES as BETWEEN
from integration.history_rows import ExpectedRows
from integration.hudi_client import HudiPeer, PeerError, read_options
from integration.tables import dies_before_publishing
from integration.views import BEGINNING, View, ours, views_of
from tests.followed import Followers
from tests.rows import Row, rows_of, sorted_rows, without
from tests.small_files import treat_small_files

PARQUET_LOGS = {"hoodie.logfile.data.block.format": "parquet"}
COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
SERVICES = {
    "compact": COMPACT,
    "cluster": {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"},
    "missing": {"hoodie.write.set.null.for.missing.columns": "true"},
    "clean": {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"},
}
# Else Hudi refuses tables with a complex key of one field, whose form is not known from the table.
UNCHECKED = {"hoodie.write.complex.keygen.validation.enable": "false"}
ARCHIVE = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


class Play:
    """One history on one table."""

    def __init__(self, history: History, path: Path, hudi: HudiPeer) -> None:
        self.history = history
        self.path = path
        self.hudi = hudi
        self.expected = ExpectedRows(history.shape)
        self.seen: dict[str, list[Row]] = {}
        """Commit -> the snapshot that we read right after it."""
        self.followers: Followers | None = None
        self.was_unsure = False
        """A compaction may have changed what there was to see of some commit, as it does in Hudi."""

    def run(self, *, check_each: bool = False) -> list[str]:
        """Play it; the disagreements, each on a line. `check_each`: all views after every step, not at the end alone."""
        for number, step in enumerate(self.history.steps):
            try:
                self._do(step)
            except (hoodie.HoodieError, PeerError) as error:
                return [f"step {number}, {step}, failed: {error}"]
            self.expected.apply(step)
            self.was_unsure |= bool(self.expected.unsure)
            self.seen[hoodie.open_table(self.path).timeline.commits[-1].time] = self._shown(ours(self.path, View()))
            self.followers = self.followers or Followers(LocalStorage(self.path), f"memory://{uuid.uuid4().hex}")
            try:
                self.followers.check()
            except AssertionError as error:
                return [f"after step {number}, {step}, a view that follows shows other files: {error}"]
            found = []
            if number == len(self.history.steps) - 1:
                if hoodie.open_table(self.path).timeline.pending_writes:
                    hoodie.open_table(self.path).rollback()
                found = list(self._disagreements())
            elif check_each and step.operation != "dies":
                found = list(self._disagreements())
            if found:
                return [f"after step {number}, {step}:", *found]
        return []

    # -- the writers -------------------------------------------------------------------------------------------------

    def _do(self, step: Step) -> None:
        if step.writer == OURS:
            self._do_ours(step)
        else:
            self._do_hudi(step)

    def _rows(self, step: Step) -> pa.Table:
        schema = self.history.schemas[step.schema]
        if step.columns is not None:
            schema = pa.schema([schema.field(name) for name in step.columns])
        return pa.Table.from_pylist(list(step.rows), schema=schema)

    def _do_ours(self, step: Step) -> None:
        with pytest.MonkeyPatch.context() as patch:
            # Half of the tables merge new rows into every small file, as large ones do into small files only.
            treat_small_files(patch, as_small=crc32(repr(self.history.shape).encode()) % 2 == 1)
            self._write_ours(step)

    def _write_ours(self, step: Step) -> None:
        shape = self.history.shape
        if not self.path.exists():
            hoodie.create_table(
                self.path,
                self.history.schemas[0],
                record_key=shape.key_fields,
                partition_by=shape.partition_fields,
                ordering=shape.ordering_fields,
                table_type=shape.table_type,
                options={**shape.options, "hoodie.table.name": "history"},
            )
        table = hoodie.open_table(self.path)
        options = {} if shape.packed else {"hoodie.parquet.small.file.limit": "0"}
        options |= PARQUET_LOGS if shape.parquet_logs else {}
        options |= {"hoodie.python.write.integers.to.floating": "true"}  # as Hudi's writers do unasked
        operation, *services = step.operation.split("+")
        options |= {key: value for name in services for key, value in SERVICES[name].items()}
        if step.operation == "schedule":
            table.schedule_compaction()
        elif step.operation == "compact":
            if not table.run_compaction():
                table.compact()
        elif step.operation in BETWEEN:
            self._serve(table, step.operation)
        elif step.operation == "dies":
            dies_before_publishing(self.path, self._rows(step))
        elif step.operation == "partial":
            table.upsert(self._rows(step), options | {"hoodie.python.upsert.partial": "true"})
        elif step.rows:
            table.write(self._rows(step), hoodie.WriteOperation[operation.upper()], options)

    def _serve(self, table: HoodieTable, service: str) -> None:
        saved = [each.instant for each in table.savepoints()]
        match service:
            case "clean":
                table.clean(retain_commits=1)
            case "cluster":
                table.cluster([self.history.shape.key_fields[0]])
            case "log_compact":
                table.compact_logs(blocks=1)
            case "archive":
                table.archive(ARCHIVE)
            case "savepoint":
                for each in saved:
                    table.drop_savepoint(each)
                table.savepoint()
            case "restore" if saved:
                table.restore(saved[-1])

    def _hudi_serves(self, service: str) -> None:
        table = hoodie.open_table(self.path)
        saved = [each.instant for each in table.savepoints()]
        match service:
            case "archive":
                self.hudi.client(self.path, "archive", argument=None, options=ARCHIVE | UNCHECKED)
            case "savepoint":
                for each in saved:
                    self._call("delete_savepoint", f"instant_time => '{each}'")
                self._call("create_savepoint", f"commit_time => '{table.timeline.commits[-1].time}'")
            case "restore" if saved:
                self._call("rollback_to_savepoint", f"instant_time => '{saved[-1]}'")

    def _call(self, procedure: str, argument: str) -> None:
        """A procedure of Hudi's, which leaves a table at its version and makes no metadata table."""
        settings = {**UNCHECKED, "hoodie.metadata.enable": "false", "hoodie.write.auto.upgrade": "false"}
        for name, value in settings.items():
            self.hudi.sql(f"set {name}={value}")
        try:
            self.hudi.sql(f"call {procedure}(path => '{self.path}', {argument})")
        finally:
            for name in settings:
                self.hudi.sql(f"reset {name}")

    def _do_hudi(self, step: Step) -> None:
        if step.operation == "schedule":
            self.hudi.run_compaction(self.path, op="schedule", options=COMPACT)
        elif step.operation == "compact":
            pending = hoodie.open_table(self.path).pending_compactions()
            self.hudi.run_compaction(self.path, op="run" if pending else "scheduleAndExecute", options=COMPACT)
        elif step.operation in BETWEEN:
            self._hudi_serves(step.operation)
        elif step.rows:
            operation, _, service = step.operation.partition("+")
            options = {
                **self.history.shape.options,
                "hoodie.table.name": "history",
                "hoodie.write.table.version": str(self.history.shape.version),
                "hoodie.datasource.write.operation": operation,
                "hoodie.metadata.enable": str(self.history.shape.metadata).lower(),
                **UNCHECKED,
                **(PARQUET_LOGS if self.history.shape.parquet_logs else {}),
                **(SERVICES[service] if service else {}),
            }
            mode = "append" if self.path.exists() else "overwrite"
            self.hudi.write(self.path, self._rows(step), options, mode=mode)

    # -- the readers -------------------------------------------------------------------------------------------------

    def _disagreements(self) -> Iterator[str]:
        views = [
            view for view in views_of(self.path) if not (self.history.shape.no_meta and view.query == "incremental")
        ]
        mine = [self._ours(view) for view in views]
        by_hudi = self._by_hudi(views)
        for view, left, right in zip(views, mine, by_hudi, strict=True):
            if isinstance(left, list) and not self._is_as_then(view, left):
                yield f"{view}: {len(left)} rows are not what we read right after that commit"
            # What Hudi refuses, because files were cleaned, we may still answer, but then in full.
            elif right not in (left, REFUSED) and not (left == REFUSED and self._scans_everything(view)):
                loses = self._loses_logs(view) or self._loses_archived(view)
                if isinstance(right, list) and loses and all(row in left for row in right):
                    continue
                yield f"{view}: {difference(left, right, 'ours', 'Hudi')}"
        snapshot = mine[0]
        if isinstance(snapshot, str):
            return
        keys = [str(key_of(self.history.shape, row)) for row in snapshot]
        if len(set(keys)) != len(keys):
            yield f"keys are there twice: {sorted({key for key in keys if keys.count(key) > 1})}"
        if self.history.shape.payload in {None, PAYLOADS[0]}:
            yield from self._against_model()
        if not hudi_rs_defect(self.history, self.path):
            found = self._by_rust()
            if found != snapshot:
                yield f"snapshot: {difference(snapshot, found, 'ours', 'hudi-rs')}"

    def _scans_everything(self, view: View) -> bool:
        """Whether Hudi, for a pull whose files were cleaned, gives what is left of it in the newest files instead of an error."""
        return self.history.shape.version > 6 and view.query == "incremental"

    def _loses_logs(self, view: View) -> bool:
        """Whether Hudi 1.2.0 may lose rows of a pull that begins after a pending compaction (the last test_ours_read_by_peers.py)."""
        pending = hoodie.open_table(self.path).pending_compactions()
        pulls = self.history.shape.version == 6 and view.query == "incremental"
        return pulls and any(each.time <= (view.begin or "") for each in pending)

    def _loses_archived(self, view: View) -> bool:
        """Whether Hudi 1.2.0 leaves rows of archived commits out of a pull from the beginning."""
        return (
            view.query == "incremental"
            and view.begin == BEGINNING
            and bool(hoodie.open_table(self.path).archived_instants())
        )

    def _is_as_then(self, view: View, rows: list[Row]) -> bool:
        """Whether an answer holds what we saw when the last of its commits was the newest."""
        then = self.seen.get(view.as_of or view.end or "")
        if then is None or self.was_unsure or view.query != "incremental":
            return then is None or self.was_unsure or rows == then
        found = {(row["_hoodie_partition_path"], row["_hoodie_record_key"], row["_hoodie_commit_time"]) for row in rows}
        # A pull may hold more: late rows that lost against rows before its range.
        return found.issuperset(
            (row["_hoodie_partition_path"], row["_hoodie_record_key"], row["_hoodie_commit_time"])
            for row in then
            if row["_hoodie_commit_time"] > (view.begin or "")
        )

    def _shown(self, rows: list[Row]) -> list[Row]:
        """As Hudi shows them: without `_hoodie_` columns where rows do not store them."""
        return unordered(without(rows, *META_COLUMNS) if self.history.shape.no_meta else rows)

    def _against_model(self) -> Iterator[str]:
        rows = hoodie.open_table(self.path).scan().to_arrow()
        sure = self.expected.keep_sure(rows.to_pylist(), lambda row: key_of(self.history.shape, row))
        found = unordered(rows_of(pa.Table.from_pylist(sure, schema=rows.schema)))
        wanted = unordered(rows_of(pa.Table.from_pylist(self.expected.rows, schema=rows.schema)))
        if found != wanted:
            yield f"snapshot: {difference(found, wanted, 'ours', 'the model')}"

    def _ours(self, view: View) -> list[Row] | str:
        try:
            return self._shown(ours(self.path, view))
        except InstantNotFoundError:
            return REFUSED
        except hoodie.HoodieError as error:
            return str(error)

    def _by_rust(self) -> list[Row] | str:
        try:
            return self._shown(rust_peer.read(self.path))
        except Exception as error:  # noqa: BLE001 - it has no class of its own
            return str(error)

    def _by_hudi(self, views: list[View]) -> list[list[Row] | str]:
        questions = [read_options(view.query, begin=view.begin, end=view.end, as_of=view.as_of) for view in views]
        answers = self.hudi.read_many(self.path, questions)
        return [
            refusal(answer) if isinstance(answer, PeerError) else unordered(self._decoded(view, rows_of(answer)))
            for view, answer in zip(views, answers, strict=True)
        ]

    def _decoded(self, view: View, rows: list[Row]) -> list[Row]:
        """Hudi's incremental queries take partition columns from the path and do not decode them (test_ours_read_by_peers.py)."""
        if view.query != "incremental" or not self.history.shape.url_encode:
            return rows
        names = self.history.shape.partition_fields
        return [row | {name: unquote(row[name]) for name in names if isinstance(row[name], str)} for row in rows]


REFUSED = "refused: files were cleaned"


def refusal(error: PeerError) -> str:
    """What Hudi says of a view whose files were cleaned, in one form; another error as it is."""
    text = str(error)
    cleaned = ("Cleaner cleaned up", "FileNotFoundException", "Exception when reading log file")
    return REFUSED if any(part in text for part in cleaned) else text


def difference(left: list[Row] | str, right: list[Row] | str, one: str, other: str) -> str:
    """How many rows each has; the first row that only it has, and where the other has that key, what differs."""
    if isinstance(left, str) or isinstance(right, str):
        shown = ((one, left), (other, right))
        return "; ".join(
            f"{name}: {found if isinstance(found, str) else f'{len(found)} rows'}" for name, found in shown
        )
    only_left = [row for row in left if row not in right]
    only_right = [row for row in right if row not in left]
    text = f"{len(left)} rows of {one} and {len(right)} of {other}"
    for row, counterpart in zip(only_left, only_right, strict=False):
        differing = [name for name in row if row[name] != counterpart.get(name)]
        if len(differing) <= 2:
            values = ", ".join(f"{name}: {row[name]} and {counterpart.get(name)}" for name in differing)
            return f"{text}; of the row {row} differ {values}"
    return f"{text}; only {one}: {only_left[:2]}; only {other}: {only_right[:2]}"


def unordered(rows: list[Row]) -> list[Row]:
    """Rows whose maps compare as what they are: each writer has its own order of a map's entries."""

    def settled(value: object) -> object:
        if isinstance(value, dict):
            entries = value.get("$map")
            if entries is not None:
                return {"$map": sorted(([key, settled(item)] for key, item in entries), key=str)}
            return {name: settled(item) for name, item in value.items()}
        return [settled(item) for item in value] if isinstance(value, list) else value

    return sorted_rows({name: settled(value) for name, value in row.items()} for row in rows)


def hudi_rs_defect(history: History, path: Path) -> bool:
    """Whether hudi-rs 0.5.0 is known to get the snapshot of such a table wrong."""
    shape = history.shape
    if len(shape.ordering_fields) > 1:
        return True  # it refuses several ordering fields
    if shape.drops_partitions:
        return True  # it refuses tables whose files lack partition columns
    if shape.table_type == MOR and shape.payload in PAYLOADS[1:]:
        return True  # it refuses logs whose records merge field by field
    if hoodie.open_table(path).pending_compactions():
        return True  # it does not merge logs that are named with a compaction which is not done
    # It cannot widen a column of a log block.
    return shape.table_type == MOR and len(history.schemas) > 1


def reduced(history: History, fails: Callable[[History], bool]) -> History:
    """A shorter history that still fails: steps, then rows are left out one by one as long as it does."""
    for at in reversed(range(len(history.steps))):
        shorter = history.without(at)
        if shorter.steps and shorter.steps[0].rows and fails(shorter):
            history = shorter
    for at, step in enumerate(history.steps):
        for row in reversed(range(len(step.rows))):
            rows = history.steps[at].rows
            fewer = replace(step, rows=rows[:row] + rows[row + 1 :])
            shorter = replace(history, steps=(*history.steps[:at], fewer, *history.steps[at + 1 :]))
            if fewer.rows and fails(shorter):
                history = shorter
    return history
