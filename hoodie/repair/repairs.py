"""Repairs of a table that opens: what each of them finds and does, in one order. A run that dies is gone on with by the next one.

Plans come first, because nothing can be told of files without them. Everything is found without the table lock, found again under
it where the timeline has moved on, and done under it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from hoodie.errors import InstantNotFoundError, OptionError
from hoodie.model.enums import Action
from hoodie.model.findings import YOUNG_S, Repair, RepairKind, RepairResult
from hoodie.options.arguments import parse_names
from hoodie.repair.bootstrap_index import find_index_damage, rewrite_index
from hoodie.repair.damaged_plans import find_damaged_plans, remove_damaged_plans
from hoodie.repair.metadata_damage import find_metadata_damage
from hoodie.repair.partition_files import find_partition_repairs, rewrite_partition_metadata
from hoodie.repair.set_aside import forget, move_away, new_name, put_back, set_aside_files, set_aside_names
from hoodie.repair.stray_files import (
    NOTHING,
    Strays,
    counts_without_its_instant,
    data_files_of,
    find_strays,
)
from hoodie.storage.base import FileInfo
from hoodie.txn.critical import under_lock
from hoodie.txn.metadata_table import drop_metadata_table
from hoodie.view.context import Snapshot, TableContext

Files = Mapping[str, Sequence[FileInfo]]


@dataclass(frozen=True)
class _Findings:
    plans: Strays = NOTHING
    partitions: tuple[Repair, ...] = ()
    strays: Strays = NOTHING
    metadata: tuple[Repair, ...] = ()
    index: Strays = NOTHING

    @property
    def result(self) -> RepairResult:
        return RepairResult(
            (*self.plans.certain, *self.index.certain, *self.partitions, *self.strays.certain, *self.metadata),
            (*self.plans.doubtful, *self.index.doubtful, *self.strays.doubtful),
        )


def repair(
    context: TableContext, kinds: Collection[RepairKind], *, dry_run: bool, older_than_s: float = YOUNG_S
) -> RepairResult:
    """Find what is to be repaired, and do it unless it is a dry run.

    Raises:
        CorruptFileError: metadata of an instant do not decode.
    """
    # The files first: whose instant is not on a timeline that is loaded later, that file has none.
    files = context.listing.all_files().files
    following, context = context, context.on_storage()
    snapshot = context.snapshot_as_found()
    findings = _find(context, kinds, files, snapshot, older_than_s)
    if dry_run or not findings.result.repairs:
        return replace(findings.result, dry_run=dry_run)
    name = None
    with under_lock(context):
        if findings.plans.certain:
            remove_damaged_plans(context, findings.plans.certain, snapshot.timeline)
        now = context.snapshot_as_found()
        if now.timeline != snapshot.timeline:
            plans = findings.plans
            findings = replace(_find(context, kinds, files, now, older_than_s), plans=plans)
        rewrite_index(context, findings.index.certain)
        rewrite_partition_metadata(context, findings.partitions, now)
        # Two may have found the same, one after the other.
        there = tuple(each for each in findings.strays.certain if context.storage.exists(each.path))
        findings = replace(findings, strays=replace(findings.strays, certain=there))
        if there:
            name = new_name(context.storage, context.clock.now(), there)
            move_away(context.storage, name, [each.path for each in there])
        if findings.metadata:
            drop_metadata_table(context.storage)
    following.forget_files()  # what this process listed before may have them
    return replace(findings.result, dry_run=False, set_aside=name)


def _find(
    context: TableContext, kinds: Collection[RepairKind], files: Files, snapshot: Snapshot, older_than_s: float
) -> _Findings:
    data = data_files_of(files)
    plans = find_damaged_plans(context, data, snapshot.timeline, older_than_s=older_than_s)
    partitions: tuple[Repair, ...] = ()
    strays = NOTHING
    if RepairKind.PARTITION_METADATA in kinds:
        partitions = find_partition_repairs(context, files, snapshot)
    if RepairKind.STRAY_FILES in kinds:
        if any(snapshot.timeline.pending(Action.RESTORE)):
            strays = Strays(doubtful=(_untold("a restore is pending, which deletes files"),))
        elif plans.certain or plans.doubtful:
            strays = Strays(doubtful=(_untold("a plan on the timeline does not decode; mend that first"),))
        elif data and not snapshot.timeline.instants:
            strays = Strays(doubtful=(_untold("the timeline is lost, which says whose they are"),))
        else:
            strays = find_strays(context, data, snapshot, older_than_s=older_than_s)
    metadata = find_metadata_damage(context, snapshot) if RepairKind.METADATA_TABLE in kinds else ()
    index = find_index_damage(context, data) if RepairKind.BOOTSTRAP_INDEX in kinds else NOTHING
    return _Findings(plans if RepairKind.PLANS in kinds else NOTHING, partitions, strays, metadata, index)


def _untold(why: str) -> Repair:
    return Repair(RepairKind.STRAY_FILES, "", f"stray files cannot be identified now: {why}")


def undo(context: TableContext, name: str) -> list[str]:
    """Put back what a repair moved away; gives the paths.

    Raises:
        InstantNotFoundError: there is no such set. OptionError: readers would take a file for data by now, or another file stands in
            its place.
    """
    storage = context.storage
    if name not in set_aside_names(storage):
        names = ", ".join(set_aside_names(storage)) or "none"
        raise InstantNotFoundError(
            f"no repair {name} of table {storage.uri} moved files away; those that did are: {names}"
        )
    with context.lock.held(context.lock_timeout_s):
        files = set_aside_files(storage, name)
        snapshot = context.on_storage().snapshot_as_found()
        for path, info in files.items():
            if counts_without_its_instant(snapshot, context, info.path):
                raise OptionError(
                    f"{path} of table {storage.uri} was not put back: its instant is older than the timeline by now, so readers "
                    f"would count its rows. It stays in {info.path}; nothing was moved"
                )
            if storage.exists(path) and storage.read(path) != storage.read(info.path):
                raise OptionError(
                    f"{path} of table {storage.uri} was not put back: another file stands there. It stays in {info.path}; "
                    "nothing was moved"
                )
        put_back(storage, name, list(files))
        forget(storage, name)
    context.forget_files()
    return sorted(files)


def kinds_of(what: str | Sequence[str] | None) -> frozenset[RepairKind]:
    """The repairs that a user names; None: all of them.

    Raises:
        OptionError: there is no such repair.
    """
    by_name = {kind.value: kind for kind in RepairKind if kind is not RepairKind.PROPERTIES}
    names = list(by_name) if what is None else list(parse_names(what, what="what"))
    for each in names:
        if str(each) not in by_name:
            raise OptionError(f"there is no repair {each!r}: take one of {', '.join(by_name)}")
    return frozenset(by_name[str(each)] for each in names)
