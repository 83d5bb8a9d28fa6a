"""Data files that no completed instant explains: found against the timeline, and moved away, never deleted.

A stray is what a task that was tried twice left beside the file that its commit names, or what a write left that was rolled back or
never came to anything. Our readers leave such files out. Apache Hudi's may take one for data: a second base file of one instant, a
log whose instant has left the active timeline.

Files are listed before the timeline is. So a file that was seen belongs to an instant that is on the timeline by then, if its writer
is at work. What cannot be told for sure stays where it is, and is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hoodie.errors import CorruptFileError, HoodieError
from hoodie.format.log_block import CorruptBlock, LogBlock, scan_blocks
from hoodie.format.plan_avro import decode_rollback_plan
from hoodie.model.enums import Action, BlockKind, HeaderKey, State
from hoodie.model.findings import YOUNG_S, Repair, RepairKind
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.late import once
from hoodie.model.names import (
    MARKERS,
    BaseFileName,
    LogFileName,
    folder_of,
    heartbeat_path,
    is_partition_path,
    join,
    name_of,
    parse_base_file,
    parse_log_file,
)
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.undo.undo_files import instants_in
from hoodie.view.context import Snapshot, TableContext


@dataclass(frozen=True)
class Strays:
    """What no completed instant explains."""

    certain: tuple[Repair, ...] = ()
    """To be moved away."""
    doubtful: tuple[Repair, ...] = ()
    """To be left alone, because somebody may need them, or nobody can tell."""


NOTHING = Strays()


def data_files_of(files: Mapping[str, Sequence[FileInfo]]) -> dict[str, list[FileInfo]]:
    """Base and log files among all files of a table, by their folders."""
    result: dict[str, list[FileInfo]] = {}
    for folder, infos in files.items():
        data = [info for info in infos if not info.is_folder and _is_data(info.path)]
        if data and is_partition_path(folder):
            result[folder] = data
    return result


def find_strays(
    context: TableContext, files: Mapping[str, Sequence[FileInfo]], snapshot: Snapshot, *, older_than_s: float = YOUNG_S
) -> Strays:
    """The strays among files that were listed before the snapshot was taken.

    Raises:
        CorruptFileError: metadata of an instant do not decode: nothing can be told without them.
    """
    evidence = Evidence(context, snapshot)
    strays, skipped = [], []
    young_since_s = context.storage.now_s() - older_than_s
    for folder in sorted(files):
        for info, verdict in _judge(evidence, folder, files[folder]):
            entry = Repair(RepairKind.STRAY_FILES, info.path, verdict.why, info.size_bytes)
            if not verdict.is_stray:
                skipped.append(entry)
            elif info.path in evidence.read_before_start:
                strays.append(replace(entry, is_read=True))  # of an archived commit: nobody is writing it
            elif info.mtime_s > young_since_s:
                skipped.append(replace(entry, why=f"{entry.why}; but it is young", is_young=True))
            else:
                strays.append(entry)
    return Strays(tuple(strays), tuple(skipped))


def counts_without_its_instant(snapshot: Snapshot, context: TableContext, path: str) -> bool:
    """Whether readers would take a file that was moved away for data, should it come back now.

    Its instant may have been inside the active timeline then, and before it by now.
    """
    name = name_of(path)
    base = parse_base_file(name)
    if base is not None:
        return base.instant not in snapshot.timeline.commit_at and snapshot.timeline.sees(base.instant)
    start = snapshot.timeline.start
    times = _LogContent.of(context, path).times if start is not None else frozenset()
    return any(time < start for time in times) if start is not None else False


def _is_data(path: str) -> bool:
    name = name_of(path)
    return parse_base_file(name) is not None or parse_log_file(name) is not None


@dataclass(frozen=True)
class _Verdict:
    is_stray: bool
    why: str


@dataclass(frozen=True)
class _LogContent:
    """What the blocks of a log file say."""

    times: frozenset[InstantTime] = frozenset()
    """Instants of blocks with rows or deletes."""
    undone: frozenset[str] = frozenset()
    """Instants that its rollback blocks disarm."""
    is_rollback: bool = False

    @classmethod
    def of(cls, context: TableContext, path: str) -> _LogContent:
        try:
            blocks = list(scan_blocks(context.storage.read(path)))
        except (FileNotFoundError, CorruptFileError):
            return cls()
        whole = [block for block in blocks if not isinstance(block, CorruptBlock)]
        commands = [block for block in whole if block.kind is BlockKind.COMMAND]
        return cls(
            frozenset(_times(whole, HeaderKey.INSTANT_TIME, but=BlockKind.COMMAND)),
            frozenset(_times(commands, HeaderKey.TARGET_INSTANT_TIME)),
            bool(commands),
        )


def _times(blocks: Iterable[LogBlock], key: HeaderKey, but: BlockKind | None = None) -> Iterator[InstantTime]:
    return (time for block in blocks if block.kind is not but and (time := InstantTime(block.header.get(key, ""))))


def without_trace(context: TableContext, instants: Iterable[Instant]) -> set[InstantTime]:
    """Times of the pending instants whose writers have left nothing, as those do that complete them."""
    storage = context.storage
    times = {
        instant.time
        for instant in instants
        if context.liveness.is_alive(instant.time) is None
        and not storage.exists(heartbeat_path(instant.time))
        and not storage.list(join(MARKERS, instant.time))
    }
    return times - context.publisher.remains() if times else times


def lost_completions(context: TableContext, timeline: Timeline) -> Iterator[tuple[Instant, str]]:
    """Pending writes that seem to have been completed, while the file that says so is lost; each with one of its data files.

    A writer that dies or fails leaves a mark, a heartbeat, staged files or markers, and only completing removes them all. Recovery
    goes by the timeline alone and undoes such a write, as Apache Hudi does.
    """
    storage = context.storage
    times = without_trace(context, timeline.pending_writes)
    if not times:
        return
    now = context.active.load()  # one that was completed or undone meanwhile has no trace either
    pending = {each.time: each for each in now.pending_writes if each.time in times}
    traceless = {time: each for time, each in pending.items() if context.active.rollback_of(now, time) is None}
    for infos in context.listing.all_files().files.values() if traceless else ():
        for info in infos:
            base, log = parse_base_file(info.name), parse_log_file(info.name)
            if base is None and (log is None or log.suffix):
                continue
            for time in {base.instant} if base is not None else instants_in(storage, info.path):
                if time in traceless:
                    yield traceless.pop(time), info.path


@dataclass(frozen=True)
class Evidence:
    """What explains files, read as far as it is asked for."""

    context: TableContext
    snapshot: Snapshot
    _logs: dict[str, _LogContent] = field(default_factory=dict)

    @once
    def pending(self) -> frozenset[str]:
        """Instants that somebody is at, or that a rollback will look for."""
        context = self.context
        marks = context.liveness.marks() | context.publisher.remains()
        return frozenset(i.time for i in self.snapshot.timeline.pending()) | marks

    @once
    def holders(self) -> Mapping[str, str]:
        """Path, or bare name, of a file that somebody relies on -> a sentence that says who."""
        active, timeline = self.context.active, self.snapshot.timeline
        result: dict[str, str] = {}
        for instant in timeline:
            if instant.action is Action.SAVEPOINT and instant.is_completed:
                files = active.read_savepoint(instant).files
                paths = (join(partition, name) for partition, names in files.items() for name in names)
                result.update(dict.fromkeys(paths, "a savepoint holds it"))
        result.update(dict.fromkeys(active.clustered_files(timeline), "a pending clustering reads it"))
        for instant in timeline.pending(Action.COMPACTION, Action.LOGCOMPACTION):
            for operation in active.read_compaction_plan(instant.time, instant.action).operations:
                names = [*([operation.data_file] if operation.data_file else ()), *operation.log_files]
                result.update(dict.fromkeys((join(operation.partition_path, n) for n in names), f"{instant} reads it"))
        for instant in timeline.pending(Action.CLEAN):
            for partition, doomed in self._clean_files(instant).items():
                result.update(dict.fromkeys((join(partition, n) for n in doomed), f"{instant} deletes it"))
        for instant in timeline.pending(Action.ROLLBACK):
            result.update(dict.fromkeys(self._rollback_files(instant), f"{instant} undoes it"))
        return result

    def _clean_files(self, instant: Instant) -> Mapping[str, Sequence[str]]:
        try:
            return self.context.active.read_clean_plan(instant.time).files
        except (CorruptFileError, FileNotFoundError):
            return {}

    def _rollback_files(self, instant: Instant) -> Iterator[str]:
        path = self.context.active.path(instant._replace(state=State.REQUESTED))
        try:
            plan = decode_rollback_plan(self.context.storage.read(path), path=path)
        except (CorruptFileError, FileNotFoundError):
            return
        for request in plan.requests:
            names = [name_of(full) for full in request.files_to_delete]
            yield from (join(request.partition_path, name) for name in (*names, *request.log_blocks))

    @once
    def read_before_start(self) -> frozenset[str]:
        """Files of the newest slices whose instant is older than the timeline: readers count them, whoever wrote them."""
        try:
            slices = self.snapshot.view.latest_slices()
        except HoodieError:
            return frozenset()  # another finding
        bases = {each.base.path for each in slices if each.base is not None and self.is_before(each.base.instant)}
        logs = (log.path for each in slices for log in each.logs if log.committed_bytes is None)
        return frozenset(bases).union(path for path in logs if any(map(self.is_before, self.log(path).times)))

    @once
    def _archived(self) -> Mapping[str, Instant]:
        return {instant.time: instant for instant in self.snapshot.archived.instants if instant.action in WRITES}

    def is_before(self, time: InstantTime) -> bool:
        """Whether an instant lies before the active timeline."""
        start = self.snapshot.timeline.start
        return start is not None and time < start

    def archived_names(self, time: InstantTime) -> frozenset[str] | None:
        """Paths that an archived commit names; None where the archive has no such commit, or lost what it said."""
        instant = self._archived.get(time)
        if instant is None:
            return None
        metadata = self.snapshot.archived.read_commits([instant])[time]
        logs = {join(s.partition_path, name) for s in metadata.stats() for name in s.log_files}
        return frozenset(stat.path for stat in metadata.stats()) | logs or None

    @once
    def lost_archived(self) -> Mapping[InstantTime, str]:
        """Instants before the timeline that the archive does not have, each with a base file of it that readers count."""
        try:
            slices = self.snapshot.view.latest_slices()
        except HoodieError:
            return {}  # another finding
        bases = [each.base for each in slices if each.base is not None and self.is_before(each.base.instant)]
        if not bases:
            return {}
        there = {instant.time for instant in self.snapshot.archived.instants} | self.snapshot.timeline.completed_times
        return {
            each.instant: each.path for each in bases if each.instant not in there
        }  # a savepoint keeps an older one active

    @once
    def nameless(self) -> frozenset[InstantTime]:
        """Completed writes that name no file. Files of these are no strays: it is the commit that is damaged."""
        commits = self.snapshot.timeline.commits
        return frozenset(each.time for each in commits if not any(self.context.active.read_commit(each).stats()))

    def unnamed_files(self, files: Mapping[str, Sequence[FileInfo]]) -> dict[InstantTime, list[str]]:
        """The files of `nameless` writes that no other commit names either."""
        result: dict[InstantTime, list[str]] = {}
        for folder, infos in data_files_of(files).items() if self.nameless else ():
            committed = self.snapshot.view.committed.of(folder)
            for info in infos:
                if info.path in committed.sizes or committed.log_size(info.path) is not None:
                    continue
                base = parse_base_file(info.name)
                for time in self.nameless & (self.log(info.path).times if base is None else {base.instant}):
                    result.setdefault(time, []).append(info.path)
        return result

    def files_without_instant(self, files: Mapping[str, Sequence[FileInfo]]) -> dict[InstantTime, list[str]]:
        """Data files of instants since the timeline's start that are not on it, though no rollback and no restore undid them.

        A writer puts its instant on the timeline before any file, and a rollback stays there for longer than what it undid.
        """
        result: dict[InstantTime, list[str]] = {}
        restored = max((i.time for i in self.snapshot.timeline if i.action is Action.RESTORE), default=InstantTime(""))
        for folder, infos in files.items():
            committed = self.snapshot.view.committed.of(folder)
            logs = [info.path for info in infos if parse_log_file(info.name)]
            for info in infos:
                if info.path in committed.sizes or committed.log_size(info.path) is not None:
                    continue
                base = parse_base_file(info.name)
                times = {base.instant} if base is not None else self.log(info.path).times
                for time in lost_instants(self, {each for each in times if each > restored}, logs):
                    result.setdefault(time, []).append(info.path)
        return result

    def is_of(self, path: str, time: InstantTime) -> bool:
        """Whether a data file has rows of an instant."""
        base = parse_base_file(name_of(path))
        return time in self.log(path).times if base is None else base.instant == time

    def log(self, path: str) -> _LogContent:
        if path not in self._logs:
            self._logs[path] = _LogContent.of(self.context, path)
        return self._logs[path]


def _judge(evidence: Evidence, folder: str, infos: Sequence[FileInfo]) -> Iterator[tuple[FileInfo, _Verdict]]:
    there = {info.path for info in infos}
    for info in infos:
        name = info.name
        base, log = parse_base_file(name), parse_log_file(name)
        verdict = None
        if base is not None:
            verdict = _judge_base(evidence, folder, info, base, there)
        elif log is not None and not log.suffix:
            verdict = _judge_log(evidence, folder, info, log, infos)
        if verdict is None:
            continue
        holder = evidence.holders.get(info.path) or evidence.holders.get(name)
        yield info, verdict if holder is None else _Verdict(False, holder)


def _judge_base(
    evidence: Evidence, folder: str, info: FileInfo, base: BaseFileName, there: set[str]
) -> _Verdict | None:
    """None where the file is as it should be, or a rollback to come takes it."""
    time, committed = base.instant, evidence.snapshot.view.committed.of(folder)
    if info.path in committed.sizes or time in evidence.pending:
        return None
    if time in evidence.nameless:
        return _Verdict(False, _nameless(time))
    if time in evidence.snapshot.timeline.commit_at:
        return _beside(time, _same_slice(committed.sizes, base), there)
    if not evidence.is_before(time):
        return _Verdict(True, _no_instant(time))
    names = evidence.archived_names(time)
    if names is None:
        return _Verdict(
            not info.size_bytes, f"it is empty: {_unknown(time)}" if not info.size_bytes else _unknown(time)
        )
    if info.path in names:
        return None
    return _beside(time, _same_slice((n for n in names if folder_of(n) == folder), base), there)


def _same_slice(paths: Iterable[str], base: BaseFileName) -> str | None:
    """The file that the commit names for the file group of a stray."""
    for path in paths:
        other = parse_base_file(name_of(path))
        if other is not None and (other.file_id, other.instant) == (base.file_id, base.instant):
            return path
    return None


def _beside(time: str, instead: str | None, there: set[str]) -> _Verdict:
    if instead is not None and instead not in there:
        # A clean may have taken the other one, or somebody renamed it: then this may be the only copy.
        return _Verdict(False, f"commit {time} names {instead} in its place, which is not there")
    return _Verdict(True, f"commit {time} does not name it: a task was tried twice, or left it behind")


def _judge_log(
    evidence: Evidence, folder: str, info: FileInfo, log: LogFileName, infos: Sequence[FileInfo]
) -> _Verdict | None:
    committed = evidence.snapshot.view.committed.of(folder)
    if committed.log_size(info.path) is not None:
        return None
    content = evidence.log(info.path)
    if content.is_rollback or content.times & evidence.pending:
        return None
    if not content.times:
        if evidence.snapshot.timeline.pending():
            return _Verdict(False, "it holds no whole block, and work is pending that may have begun it")
        return _Verdict(True, "it holds no whole block, and no commit names it")
    reasons = []
    for time in sorted(content.times):
        verdict = _judge_blocks(evidence, info, log, time, infos)
        if verdict is None or not verdict.is_stray:
            return verdict
        reasons.append(verdict.why)
    return _Verdict(True, reasons[-1])


def _judge_blocks(
    evidence: Evidence, info: FileInfo, log: LogFileName, time: InstantTime, infos: Sequence[FileInfo]
) -> _Verdict | None:
    """The blocks of one instant in a log file that no active commit names."""
    if time in evidence.nameless:
        return _Verdict(False, _nameless(time))
    if time in evidence.snapshot.timeline.commit_at:
        return _Verdict(True, f"commit {time} does not name it: a task was tried twice, or left it behind")
    names = evidence.archived_names(time) if evidence.is_before(time) else None
    if names is not None:
        if info.path in names:
            return None
        return _Verdict(True, f"commit {time} does not name it: a task was tried twice, or left it behind")
    if _is_disarmed(evidence, log, time, infos):
        return None
    return _Verdict(False, _unknown(time)) if evidence.is_before(time) else _Verdict(True, _no_instant(time))


def _is_disarmed(evidence: Evidence, log: LogFileName, time: InstantTime, infos: Sequence[FileInfo]) -> bool:
    """Whether a rollback block in the file slice tells every reader not to count the blocks of an instant."""
    for info in infos:
        other = parse_log_file(info.name)
        if other is None or (other.file_id, other.base_instant) != (log.file_id, log.base_instant):
            continue
        if time in evidence.log(info.path).undone:
            return True
    return False


def lost_instants(
    evidence: Evidence, times: Iterable[InstantTime], slice_logs: Sequence[str] = ()
) -> Sequence[InstantTime]:
    """Which of these instants are on no timeline, though nothing says that they were undone; `slice_logs` may say it."""
    timeline, active = evidence.snapshot.timeline, evidence.context.active
    instants = {instant.time for instant in timeline} | evidence.pending
    unexplained = sorted(time for time in {*times} - instants if not evidence.is_before(time))
    if unexplained:
        undone = {time for log in slice_logs for time in evidence.log(log).undone}
        undone |= {active.rollback_target(i) or "" for i in timeline if i.action is Action.ROLLBACK}
        unexplained = [time for time in unexplained if time not in undone]
    return unexplained


def _nameless(time: str) -> str:
    return f"commit {time} names no file: its metadata are damaged"


def _no_instant(time: str) -> str:
    return f"there is no instant {time}: its write was undone, or its writer died before it had an instant"


def _unknown(time: str) -> str:
    return f"instant {time} is older than the timeline and not in the archive, so readers count the file"
