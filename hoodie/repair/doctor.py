"""What is wrong with a table, or will be, on one page: each finding with its repair. Nothing is changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby

from hoodie.errors import HoodieError, TableNotFoundError
from hoodie.model.findings import Diagnosis, Finding, Level
from hoodie.model.names import HOODIE, PROPERTIES, parse_base_file, parse_log_file
from hoodie.options.write import WriteOptions
from hoodie.repair.checks import LOST_TIMELINE, MISPLACED, run_checks
from hoodie.repair.inspection import Inspection
from hoodie.repair.properties_repair import find_damage, plan_properties
from hoodie.storage.base import Storage
from hoodie.view.context import FOLDER_OF_PROPERTIES, TableContext

_SHOWN = 5
_DEPTH = 4
"""Of folders that are looked into where nothing says that a path is a table."""


def diagnose_properties(storage: Storage) -> Diagnosis | None:
    """What is wrong where a table cannot be opened because of its properties; None when these are whole.

    Raises:
        TableNotFoundError: there is nothing of a table.
    """
    try:
        damage = find_damage(storage)
    except TableNotFoundError:
        path = _some_data_file(storage)
        if path is None:
            raise
        what = f"there is no {HOODIE}, and {path} is a data file of a table: nothing can be read"
        folder = shlex.quote(f"{storage.uri.rstrip('/')}/{HOODIE}")
        return Diagnosis((Finding("lost-timeline", Level.DAMAGE, what, HOODIE, LOST_TIMELINE.format(path=folder)),))
    if damage is None:
        return None
    if damage is FOLDER_OF_PROPERTIES:
        path = shlex.quote(f"{storage.uri.rstrip('/')}/{PROPERTIES}")
        return Diagnosis((Finding("misplaced", Level.DAMAGE, damage, PROPERTIES, MISPLACED.format(path=path)),))
    return Diagnosis((Finding("properties", Level.DAMAGE, damage, mend=_put_back(storage)),))


def _some_data_file(storage: Storage, folder: str = "", depth: int = _DEPTH) -> str | None:
    """A file with the name of a data file in the first folders: a path that somebody mistyped may lead to very many."""
    infos = storage.list(folder)
    files = (info for info in infos if not info.is_folder)
    found = next((each.path for each in files if parse_base_file(each.name) or parse_log_file(each.name)), None)
    below = [info.path for info in infos if info.is_folder][:_SHOWN] if found is None and depth else ()
    return found or next(filter(None, (_some_data_file(storage, each, depth - 1) for each in below)), None)


def _put_back(storage: Storage) -> str:
    """The command, with what the user has to say: a word in the place of each value that is not known."""
    try:
        unknown = plan_properties(storage).unknown
    except HoodieError:
        unknown = ()
    arguments = "".join(f" --set {each.partition(':')[0]}=VALUE" for each in unknown)
    command = f"`hoodie repair {shlex.quote(storage.uri)} properties{arguments} --yes`"
    if not unknown:
        return f"{command} puts them back; without --yes it shows them with their sources"
    return f"{command} puts them back, with your values; an empty one says that there is none"


def diagnose(context: TableContext, options: WriteOptions, *, deep: bool | None = None) -> Diagnosis:
    """Everything that is found, worst first.

    Args:
        deep: whether all rows are read; None: where they are few (`Tuning.doctor_bytes`).
    """
    look = Inspection(context.on_storage(), options)
    if deep is None:
        deep = _is_small(look)
    all_findings = list(run_checks(look, deep=deep))
    damaged = any(each.level is Level.DAMAGE for each in all_findings)
    # What costs later does not matter before the damage is mended; what the damage explains is said already.
    findings = [
        each for each in all_findings if not damaged or each.level is not Level.NEGLECT or each.kind not in _COSTS
    ]
    return Diagnosis.of(tuple(_shortened(findings)))


_COSTS = frozenset({"timeline", "held-timeline", "cleaning", "compaction"})


def _is_small(look: Inspection) -> bool:
    try:
        slices = look.snapshot.view.latest_slices()
    except (HoodieError, OSError):
        return True  # damaged: what there is to read is read as far as it goes
    return sum(each.size_bytes for each in slices) <= look.context.tuning.doctor_bytes


def _shortened(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, of a long row of one kind only the first few."""
    for (kind, level), group in groupby(findings, key=lambda each: (each.kind, each.level)):
        those = list(group)
        yield from those[:_SHOWN]
        if len(those) > _SHOWN:
            yield Finding(kind, level, f"{len(those) - _SHOWN:,} more like this", mend=those[-1].mend)
