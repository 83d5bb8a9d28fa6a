"""Apache Hudi's operation `bootstrap`: its options become a migration, in place or by copying."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import hoodie.services.inline
from hoodie.errors import OptionError, TableExistsError
from hoodie.migration.in_place import hadoop_uri
from hoodie.migration.migrate import migrate
from hoodie.migration.parquet_source import counts
from hoodie.migration.sources import kind_of
from hoodie.model.results import CommitResult
from hoodie.options.bootstrap import BootstrapMode, BootstrapOptions
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.option import keys_of, option_name
from hoodie.options.parse import parse_write_options
from hoodie.options.table_options import KEYGEN_CLASS, KEYGEN_TYPE, TableOptions
from hoodie.options.values import KeyGeneratorType
from hoodie.options.write import WriteOptions
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable, open_table

_OPERATION = option_name(WriteOptions, "operation")
_OURS = {name.lower() for key in keys_of(BootstrapOptions) for name in key.names}
_SELECTED = option_name(ClusteringOptions, "selected")
_ALL_FILES = {option_name(ClusteringOptions, each): str(1 << 40) for each in ("small_file_limit", "max_groups")}
_KEYGENS = {name.lower() for key in (KEYGEN_CLASS, KEYGEN_TYPE) for name in key.names}
Reach = Callable[[str], Mapping[str, str] | None]
"""The storage options for an address."""


def is_bootstrap(options: Mapping[str, str]) -> bool:
    """Whether these are the options of one."""
    return any(
        name.lower() == _OPERATION and str(text).strip().lower() == "bootstrap" for name, text in options.items()
    )


def bootstrap(target: str, options: Mapping[str, str], reach: Reach, *, defaults: Mapping[str, str]) -> CommitResult:
    """Make a table of the files that the options name; one that died is run again, and goes on.

    Files that are to be copied while others stay are taken over as they are, and rewritten by a clustering at once.

    Args:
        options: those of the write, without those of the storage.

    Raises:
        OptionError: as `migrate`, or no base path is named. TableExistsError: there is a table already.
    """
    options = {name: text for name, text in options.items() if name.lower() != _OPERATION}
    request = parse_write_options(options, defaults=defaults)
    wishes, base = request.write.bootstrap, request.write.bootstrap.base_path
    table = request.table.over(request.table_defaults)
    if base is None:
        raise OptionError(
            f"operation bootstrap needs {option_name(BootstrapOptions, 'base_path')}: name the folder of the files"
        )
    if not table.record_key_fields:
        raise OptionError("operation bootstrap needs hoodie.datasource.write.recordkey.field")
    if (kind := kind_of(open_storage(base, reach(base)))) != "parquet":
        raise OptionError(
            f"{base} is a table of {kind}, whose log says which of its files count, and operation bootstrap takes all files of a "
            "folder: make a table of it by hoodie.migrate(…, mode='in_place')"
        )
    folders_to_copy, folders_to_keep = _by_mode(wishes, base, reach)
    keygen = _keygen(wishes)
    dropped = {*_OURS, *(_KEYGENS if keygen else ())}
    others = {**{name: text for name, text in options.items() if name.lower() not in dropped}, **keygen}
    result = migrate(
        base,
        target,
        record_key=list(table.record_key_fields),
        partition_by=[] if _is_flat(wishes, table) else list(table.partition_columns) or None,
        name=table.name,
        format="parquet",
        mode="in_place" if folders_to_keep else "copy",
        check=False,
        options=others,
        storage_options=reach(target),
        source_options=reach(base),
    )
    new_table = open_table(target, storage_options=reach(target))
    went_on = (
        _copy(new_table, {hadoop_uri(result.source, folder) for folder in folders_to_copy})
        if folders_to_keep
        else False
    )
    if result.done_before and not result.steps and not went_on:
        raise TableExistsError(
            f"there is a table at {new_table.uri} already, and operation bootstrap makes one: choose another path, or "
            "delete its folder"
        )
    commit = new_table.history()[-1]
    if folders_to_keep:
        hoodie.services.inline.after_commit(new_table._context, request.write, commit)
    return commit


def _by_mode(options: BootstrapOptions, base: str, reach: Reach) -> tuple[set[str], set[str]]:
    """The folders of the source whose files are copied, and those whose files stay."""
    if options.selector is not None:
        return (set(), {""}) if options.selector is BootstrapMode.METADATA_ONLY else ({""}, set())
    files = open_storage(base, reach(base)).list("", recursive=True)
    folders = {info.folder for info in files if not info.is_folder and counts(info)}
    copied = {folder for folder in folders if options.mode_of(folder) is BootstrapMode.FULL_RECORD}
    return copied, folders - copied


def _is_flat(options: BootstrapOptions, table: TableOptions) -> bool:
    return KeyGeneratorType.NON_PARTITION in (options.keygen, table.keygen)


def _keygen(options: BootstrapOptions) -> Mapping[str, str]:
    """That of the bootstrap, as an option of the table."""
    return {KEYGEN_TYPE.name: str(options.keygen)} if options.keygen else {}


def _copy(table: HoodieTable, folders: Collection[str]) -> bool:
    """Make whole files of those whose columns are in these folders; whether there were any."""
    view = table._context.snapshot().view
    bases = [(each.group.partition_path, each.base) for each in view.latest_slices(table.partitions())]
    selected = {path for path, base in bases if base and base.source and base.source.uri.rpartition("/")[0] in folders}
    return bool(selected and table.cluster(options={**_ALL_FILES, _SELECTED: ",".join(sorted(selected))}))
