"""Checks of a bootstrapped table: its index, and the files outside of the table that have the columns of its skeletons."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from hoodie.errors import CorruptFileError, HoodieError
from hoodie.filegroup.skeleton import HAS_COLUMNS, require_source, source_folder
from hoodie.filegroup.slice_reader import stored_batches
from hoodie.format.parquet_file import open_parquet
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.files import BaseFile, SourceFile
from hoodie.model.findings import RepairKind
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.names import BOOTSTRAP_INDEX
from hoodie.model.results import format_count
from hoodie.repair.check_rows import all_rows
from hoodie.repair.inspection import Hit, Inspection
from hoodie.storage.base import FileInfo, Storage
from hoodie.view.bootstrap import read_index
from hoodie.write.agreement import count_strange_keys, generator_of_stored_keys

_BATCH_ROWS = 1 << 16


# -- the index ---------------------------------------------------------------------------------------------------------


def damaged_index(look: Inspection) -> Iterator[Hit]:
    """A file of the index that can be written from the other one."""
    for each in look.repairs.of(RepairKind.BOOTSTRAP_INDEX):
        yield Hit(f"{each.path}: {each.why}", each.path)


def lost_index(look: Inspection) -> Iterator[Hit]:
    """Both files of the index, where none of them is whole, or nobody can say which one is right."""
    for each in look.repairs.left:
        if each.kind is RepairKind.BOOTSTRAP_INDEX:
            yield Hit(f"{each.path}: {each.why}", each.path)


# -- the source --------------------------------------------------------------------------------------------------------


def sources(look: Inspection) -> Iterator[Hit]:
    """Files outside of the table that are gone, or of another size than they had."""
    skeletons = list(_skeletons(look))
    infos = _infos(look.context.storage, skeletons)
    for base, source in skeletons:
        try:
            require_source(source, infos.get(source.uri), skeleton=base.path)
        except CorruptFileError as exc:
            yield Hit(_plain(look, str(exc)), subject=_address(source.uri))


def changed_sources(look: Inspection) -> Iterator[Hit]:
    """Files outside of the table that were modified after they were bootstrapped: other values than then nothing else shows."""
    skeletons = list(_skeletons(look))
    if not skeletons:
        return
    mapped = read_index(look.context.storage, BOOTSTRAP_INDEX).mapped
    changed_ms = {(each.partition_path, each.file_id): each.changed_ms for each in mapped}
    infos = _infos(look.context.storage, skeletons)
    for base, source in skeletons:
        info, known_ms = infos.get(source.uri), changed_ms.get((base.partition_path, base.file_id))
        if info is None or info.size_bytes != source.size_bytes or known_ms is None:
            continue  # another finding
        if int(info.mtime_s * 1000) > known_ms:
            yield Hit(f"{source.uri}{HAS_COLUMNS}{base.path}, was modified after the table was made")


def source_rows(look: Inspection) -> Iterator[Hit]:
    """Files outside of the table that do not decode, or whose rows are not those of their skeletons."""
    skeletons, context = list(_skeletons(look)), look.context
    if not skeletons:
        return
    uris = sorted((source.uri for _, source in skeletons), key=len, reverse=True)
    named: set[str] = set()
    for text in all_rows(look).keys:
        uri = next((each for each in uris if isinstance(text, str) and f"{each}{HAS_COLUMNS}" in text), None)
        if uri is not None and not _is_told_by_names(str(text)):
            named.add(uri)
            yield Hit(_plain(look, str(text)), subject=_address(uri))
    keys = generator_of_stored_keys(context.config)
    checks = [_SourceCheck(base, source, keys) for base, source in skeletons if keys and source.uri not in named]
    label = f"validate sources of {context.config.name}"
    results = context.engine.run(partial(_run_source_check, context.storage), checks, label=label)
    for check, what in zip(checks, results, strict=True):
        if what is not None:
            yield Hit(f"{check.source.uri}{HAS_COLUMNS}{check.base.path}, {what}", subject=_address(check.source.uri))


@dataclass(frozen=True)
class _SourceCheck:
    """Read the keys of a skeleton beside the columns that make them."""

    base: BaseFile
    source: SourceFile
    keys: KeyGenerator


def _run_source_check(storage: Storage, check: _SourceCheck) -> str | None:
    """What is wrong with the rows of a source; None also where they cannot be read, which others say."""
    path, fields = check.base.path, [name.partition(".")[0] for name in check.keys.record_key_fields]
    strange = rows = 0
    try:
        with storage.open_input(path) as file_input, open_parquet(file_input, path=path) as file:
            names = [RECORD_KEY, *dict.fromkeys(fields)]
            for batch in stored_batches(
                storage, file, check.base, pa.schema([]), names, batch_rows=_BATCH_ROWS, path=path
            ):
                lacking = [name for name in names if name not in batch.schema.names]
                if lacking:
                    return f"was changed: it has no column {lacking[0]!r}"
                rows += batch.num_rows
                strange += count_strange_keys(check.keys, pa.Table.from_batches([batch]))
    except HoodieError:
        return None
    return (
        f"was changed: it makes other record keys for {format_count(strange, 'row')} of {rows:,}" if strange else None
    )


def _skeletons(look: Inspection) -> Iterator[tuple[BaseFile, SourceFile]]:
    """Those of the newest state, as far as it is whole, and what completes them."""
    context = look.context
    if look.unreadable or not (context.config.bootstrap_base or context.storage.exists(BOOTSTRAP_INDEX)):
        return
    view = look.snapshot.view
    for partition_path in view.every_partition():
        try:
            slices = view.latest_slices([partition_path])
        except HoodieError:
            continue  # another finding
        for base in (each.base for each in slices):
            if base is not None and base.source is not None:
                yield base, base.source


def _infos(table: Storage, skeletons: Iterable[tuple[BaseFile, SourceFile]]) -> Mapping[str, FileInfo]:
    """What is in the folders of the sources, by address."""
    folders = sorted({source.uri.rpartition("/")[0] for _, source in skeletons})

    def listed(folder: str) -> Sequence[FileInfo]:
        return source_folder(table, folder).list("")

    found = zip(folders, table.each(listed, folders), strict=True)
    return {f"{folder}/{info.path}": info for folder, infos in found for info in infos}


def _address(uri: str) -> str:
    return shlex.quote("/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri)


def _plain(look: Inspection, text: str) -> str:
    """An error of a source without the table's own path, and without advice, which the check has."""
    return look.plain(CorruptFileError(text.partition("put the file back")[0].rstrip(" ;:")))


def _is_told_by_names(text: str) -> bool:
    """Whether `sources` says it."""
    return ", is gone: " in text or "was changed: it had " in text
