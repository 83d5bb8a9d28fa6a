"""A damaged `hoodie.properties`: what can be put back, and from where.

In this order: what the user says; the backup that Apache Hudi's update leaves, if it is whole; the lines that are left; what the
files of the table say for sure (`properties_evidence.py`). Nothing is guessed: what none of them says is asked for.

The damaged file is kept before another one takes its place, and that happens in one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError, HoodieError, OptionError, TableNotFoundError, UnsupportedTableError
from hoodie.format.layout import LAYOUTS, NEW, V6, V8, layout_named
from hoodie.format.properties import format_properties, parse_properties, parse_properties_file, table_checksum
from hoodie.lock.base import Lock
from hoodie.model.enums import TableType
from hoodie.model.findings import PropertiesRepair, PropertySource, Repair, RepairKind
from hoodie.model.instant import format_instant
from hoodie.model.names import PROPERTIES, PROPERTIES_BACKUP
from hoodie.options.table import (
    BOOTSTRAP_BASE,
    DROP_COLUMNS,
    HIVE_STYLE,
    META_FIELDS,
    parse_table_config,
    table_properties,
)
from hoodie.options.table_options import TableOptions
from hoodie.repair.properties_evidence import Evidence, KnownValue, gather
from hoodie.repair.set_aside import keep_copy, new_name
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.view.context import TableContext, foreign_timeline, lost_properties
from hoodie.write.agreement import Contradiction, contradictions

_NAME = "hoodie.table.name"
_DATABASE = "hoodie.database.name"
_TYPE = "hoodie.table.type"
_VERSION = "hoodie.table.version"
_LAYOUT = "hoodie.timeline.layout.version"
_CHECKSUM = "hoodie.table.checksum"
_KEY = "hoodie.table.recordkey.fields"
_PARTITION = "hoodie.table.partition.fields"
_ORDERING = "hoodie.table.ordering.fields"
_PRECOMBINE = "hoodie.table.precombine.field"
_TIMEZONE = "hoodie.table.timeline.timezone"
_MERGE_MODE = "hoodie.record.merge.mode"
_BASE_FORMAT = "hoodie.table.base.file.format"
_MANY_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
_REQUIRED = (_NAME, _TYPE, _VERSION)
_STAND_INS = {_NAME: "table", _TYPE: "COPY_ON_WRITE", _VERSION: str(int(NEW.version))}
"""For required properties, where the others are judged."""
_USER = "you"
_BETWEEN = frozenset(map(str, range(min(LAYOUTS), max(LAYOUTS)))) - {*map(str, map(int, LAYOUTS))}
"""Numbers of versions that no table has once it is upgraded."""


def find_damage(storage: Storage) -> str | None:
    """What is wrong with the properties; None when they are whole, or hoodie does not read such tables.

    Raises:
        TableNotFoundError: there is nothing of a table.
    """
    data = _read(storage, PROPERTIES)
    if data is not None and data.strip():
        return _why_damaged(storage, PROPERTIES, data)
    damage = lost_properties(storage)
    if damage is None:
        raise TableNotFoundError(f"no table at {storage.uri}: there is neither {PROPERTIES} nor a timeline in it")
    return damage


def plan_properties(storage: Storage, given_values: Mapping[str, str] | None = None) -> PropertiesRepair:
    """What the properties would be. Nothing is changed.

    Args:
        said: properties that the user knows; they win. An empty text says that there is none.

    Raises:
        OptionError: the properties that are found contradict each other, or hoodie knows no such table.
    """
    given_values = {key.strip(): value.strip() for key, value in (given_values or {}).items()}
    damage = find_damage(storage)
    _require_columns(storage, given_values)
    unknown: tuple[str, ...] = ()
    if damage is None:
        wrong = _contradictions(storage)
        if not wrong:
            return PropertiesRepair(None)
        damage = f"{PROPERTIES} contradicts the table: {'; '.join(each.what for each in wrong)}"
        sources: dict[str, PropertySource] = _uncut(storage) or {}
        for key, text in ((each.key, each.value) for each in wrong if each.key not in given_values):
            value = text or evident(storage, key)
            if value is None:
                unknown += (f"{key}: no file proves it",)
            else:
                sources[key] = PropertySource(key, value, "the files of the table")
    else:
        stored = _backed_up(storage) or _uncut(storage)
        sources, unknown = (stored, ()) if stored is not None else _gathered(storage, given_values)
        values = {key: each.value for key, each in sources.items()}
        for key, known in _disproved(storage, values).items() if stored is not None else ():
            if known.value is not None:
                sources[key] = PropertySource(key, known.value, known.source)
            elif key not in given_values:
                unknown += (f"{key}: {known.source}",)
    sources |= {key: PropertySource(key, value, _USER) for key, value in given_values.items()}
    if _VERSION in given_values:
        sources |= _of_version(sources)
    if not unknown:
        sources = _summed(sources)
        _require_sound(storage, sources)
    properties = tuple(each for each in sources.values() if each.value)
    return PropertiesRepair(damage, properties, unknown)


def repair_at(
    storage: Storage, lock: Lock, given_values: Mapping[str, str] | None = None, *, timeout_s: float
) -> PropertiesRepair:
    """Put the properties back.

    Raises:
        OptionError: something is not known and was not said; the message names the properties.
    """
    with lock.held(timeout_s):
        plan = plan_properties(storage, given_values)
        if plan.damage is None:
            return PropertiesRepair(None, dry_run=False)
        if plan.unknown:
            raise OptionError(
                f"{plan.damage} in table {storage.uri}, and no file shows {'; nor '.join(plan.unknown)}. Give them, such as by "
                f"--set {plan.unknown[0].partition(':')[0]}=…; an empty value says that there is none"
            )
        now = datetime.fromtimestamp(storage.now_s(), UTC)
        name = new_name(storage, format_instant(now), [Repair(RepairKind.PROPERTIES, PROPERTIES, plan.damage)])
        for path in (PROPERTIES, PROPERTIES_BACKUP):
            data = _read(storage, path)
            if data is not None:
                keep_copy(storage, name, path, data)
        comment = [f"Repaired at {now.isoformat()}", now.strftime("%a %b %d %H:%M:%S UTC %Y")]
        text = format_properties({each.key: each.value for each in plan.properties}, comment=comment)
        storage.replace(PROPERTIES, text.encode())
        # Only now: until then a reader goes by the backup.
        storage.delete(PROPERTIES_BACKUP)
    return PropertiesRepair(plan.damage, plan.properties, dry_run=False, set_aside=name)


def evident(storage: Storage, key: str) -> str | None:
    """The value of a property that the files of the table show for sure."""
    if key not in (_KEY, _PARTITION, _TYPE):
        return None
    evidence = gather(storage)
    return {_KEY: evidence.record_key, _PARTITION: evidence.partition, _TYPE: evidence.table_type}[key].value


def _require_columns(storage: Storage, given_values: Mapping[str, str]) -> None:
    """Refuse names that are no columns of the base files. Partition columns need not be in them."""
    names = [name for key in (_KEY, _ORDERING, _PRECOMBINE) for name in _names(given_values.get(key, ""))]
    columns = gather(storage).columns if names else frozenset()
    for name in names if columns else ():
        if name.partition(".")[0] not in columns:
            raise OptionError(
                f"table {storage.uri} has no column {name!r}; its columns are {', '.join(sorted(columns))}"
            )


def _contradictions(storage: Storage) -> list[Contradiction]:
    """What the table speaks against of properties that are whole."""
    try:
        context = TableContext.open(storage, LocalEngine(1), cache=Cache())
        foreign = foreign_timeline(storage, context.config)
        if foreign is not None:
            return [Contradiction(_VERSION, foreign)]
        # One file whose rows say otherwise than those of others is damaged itself.
        return [each for each in contradictions(context, context.snapshot_as_found()) if each.file is None]
    except (HoodieError, FileNotFoundError):
        return []


def _of_version(properties: Mapping[str, PropertySource]) -> dict[str, PropertySource]:
    """The properties that follow from the version that the user states."""
    layout = layout_named(properties[_VERSION].value) or V8
    implied = {_LAYOUT: str(layout.number)}
    if layout.states_merge_mode and _MERGE_MODE not in properties:
        implied[_MERGE_MODE] = _merge_mode(properties[_ORDERING].value if _ORDERING in properties else "")
    return {key: PropertySource(key, value, "the version") for key, value in implied.items()}


def _merge_mode(ordering: str) -> str:
    return "EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING"


def _read(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except (FileNotFoundError, IsADirectoryError):
        return None


def _why_damaged(storage: Storage, path: str, data: bytes) -> str | None:
    try:
        values = parse_properties_file(data, path=path)
        lacking = [key for key in _REQUIRED if not values.get(key, "").strip()]
        if lacking:
            return f"{path} has no {', '.join(lacking)}"
        parse_table_config(values, uri=storage.uri)
    except CorruptFileError as exc:
        return str(exc).removeprefix(f"{storage.uri}/")
    except UnsupportedTableError:
        wrong = _disproved(storage, values)
        if wrong:
            return f"{path} contradicts the table: {', '.join(f'{each} is {values[each]}' for each in wrong)}"
        return None  # whole, and of a table that this release does not read
    return None


def _disproved(storage: Storage, values: Mapping[str, str]) -> dict[str, KnownValue]:
    """Properties by which this release would not read the table, and what its files show in their place."""
    evidence, layout = gather(storage), layout_named(values.get(_VERSION, ""))
    shown: dict[str, KnownValue] = {}
    if layout is not None:
        shown[_LAYOUT] = KnownValue(str(layout.number), "the version")
    elif values[_VERSION] in _BETWEEN:
        shown[_VERSION] = evidence.version
    if evidence.columns:
        shown |= {
            _BASE_FORMAT: KnownValue("PARQUET", "the base files"),
            _MANY_FORMATS: KnownValue("false", "the base files"),
        }
    return {
        key: each for key, each in shown.items() if values.get(key, each.value or "").upper() != str(each.value).upper()
    }


def _backed_up(storage: Storage) -> dict[str, PropertySource] | None:
    """The properties of a backup that is whole."""
    data = _read(storage, PROPERTIES_BACKUP)
    if data is None or not data.strip() or _why_damaged(storage, PROPERTIES_BACKUP, data) is not None:
        return None
    values = parse_properties_file(data, path=PROPERTIES_BACKUP)
    return {key: PropertySource(key, value, PROPERTIES_BACKUP) for key, value in values.items()}


def _uncut(storage: Storage) -> dict[str, PropertySource] | None:
    """The properties where all lines are there, and only what one of them says is wrong: what is absent was never there."""
    data = _read(storage, PROPERTIES) or b""
    try:
        values = parse_properties_file(data, path=PROPERTIES)
    except CorruptFileError:
        return None
    if _refused(values) - {_CHECKSUM} or not all(values.get(key, "").strip() for key in _REQUIRED):
        return None
    return {key: PropertySource(key, value, PROPERTIES) for key, value in values.items()}


def _refused(values: Mapping[str, str]) -> frozenset[str]:
    """Properties with impossible values. An error names one at a time, so they are left out one after the other."""
    usable = {key: value for key, value in values.items() if value.strip()}
    while True:
        try:
            parse_table_config({**_STAND_INS, **usable}, uri="")
        except CorruptFileError as exc:
            faulty = {key for key in usable if key in str(exc)}
            if not faulty:
                break
            usable = {key: value for key, value in usable.items() if key not in faulty}
        except HoodieError:
            break  # sound, and of a table that this release does not read
        else:
            break
    return frozenset(key for key, value in values.items() if key not in usable and (value.strip() or key in _REQUIRED))


def _lines_left(storage: Storage) -> tuple[dict[str, PropertySource], dict[str, str]]:
    """What can still be read: lines that ended, each by itself; and those of them whose values are none that they can have."""
    sources: dict[str, PropertySource] = {}
    for path in (PROPERTIES_BACKUP, PROPERTIES):
        data = _read(storage, path) or b""
        whole = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
        for line in whole.decode("latin-1").splitlines(keepends=True):
            try:
                values = parse_properties(line, path=path)
            except CorruptFileError:
                continue
            # A line of noise is a property, too, for Java; ours have names like these.
            good = {k: v for k, v in values.items() if k.startswith("hoodie.") and k.isascii() and k.isprintable()}
            sources |= {key: PropertySource(key, value, f"what is left of {path}") for key, value in good.items()}
    wrong = _refused({key: each.value for key, each in sources.items()})
    sound = {key: each for key, each in sources.items() if key not in wrong}
    return sound, {key: each.value for key, each in sources.items() if key in wrong}


def _gathered(storage: Storage, given_values: Mapping[str, str]) -> tuple[dict[str, PropertySource], tuple[str, ...]]:
    """The properties as far as the sources say them, and sentences on those that are unknown."""
    sources, malformed = _lines_left(storage)
    evidence = gather(storage)
    unknown = []

    def settle(key: str, finding: KnownValue, also: str | None = None) -> str | None:
        """The value of a property: what the caller gives, what the file has left, or what the files of the table say."""
        for each in (key, also):
            if each and each in given_values:
                return given_values[each]
            if each and each in sources:
                return sources[each].value
        if finding.value is None:
            unknown.append(f"{key}: {finding.source}")
        else:
            sources[key] = PropertySource(key, finding.value, finding.source)
        return finding.value

    name = settle(_NAME, evidence.name)
    kind = settle(_TYPE, evidence.table_type)
    version = settle(_VERSION, evidence.version)
    keys = settle(_KEY, evidence.record_key)
    partition = settle(_PARTITION, evidence.partition)
    ordering = settle(_ORDERING, KnownValue(None, "no file says whether there is an ordering column"), _PRECOMBINE)
    if evidence.bootstrap is not None:
        settle(BOOTSTRAP_BASE, evidence.bootstrap)
    unknown_keys = {each.partition(":")[0] for each in unknown}
    possible = {
        _NAME,
        _TYPE,
        _VERSION,
        _CHECKSUM,
        HIVE_STYLE,
        META_FIELDS,
        DROP_COLUMNS,
        *unknown_keys,
        *given_values,
        *sources,
    }
    folders = {each.property: each.default for layout in LAYOUTS.values() for each in (layout.timeline, layout.history)}
    folders[V6.history.property] = evidence.archive_folder or V6.history.default
    for key in malformed.keys() & folders.keys() - possible:
        sources[key] = PropertySource(key, folders[key], "the name that all writers give")
        possible.add(key)
    unknown += [
        f"{key}: {value!r} is not a value of this property" for key, value in malformed.items() if key not in possible
    ]
    if unknown or None in (name, kind, version, keys, partition, ordering):
        return sources, tuple(unknown)
    for key, value in _rest(
        evidence, str(name), str(kind), str(version), str(keys), str(partition), str(ordering)
    ).items():
        sources.setdefault(key, PropertySource(key, str(value.value), value.source))
    return sources, ()


def _rest(
    evidence: Evidence, name: str, kind: str, version: str, keys: str, partition: str, ordering: str
) -> dict[str, KnownValue]:
    """What follows from what is known: what a new table of this kind has, and what the files say besides."""
    try:
        table_options = TableOptions(
            name=name,
            table_type=TableType(kind),
            record_key_fields=_names(keys),
            partition_fields=_names(partition),
            ordering_fields=_names(ordering),
            hive_style=evidence.hive_style,
            populate_meta_fields=evidence.stores_meta,
            drops_partition_columns=bool(evidence.columns and _names(partition))
            and not evidence.columns & {*_names(partition)},
        )
    except ValueError:
        raise OptionError(f"{_TYPE}={kind!r} is neither COPY_ON_WRITE nor MERGE_ON_READ") from None
    implied = {
        key: KnownValue(value, "the default: no file says otherwise")
        for key, value in table_properties(table_options).items()
    }
    layout = layout_named(version) or V8
    if layout is not NEW:
        implied[_LAYOUT] = KnownValue(str(layout.number), "the version")
    if layout.states_merge_mode:
        implied[_MERGE_MODE] = KnownValue(
            _merge_mode(ordering), "the ordering column" if ordering else "no ordering column"
        )
    if not layout.states_payload:
        for key in ("hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id"):
            implied.pop(key, None)
    if not evidence.is_ours:
        implied[_TIMEZONE] = KnownValue("LOCAL", "Apache Hudi's default, as the commits are not hoodie's")
    if evidence.archive_folder:
        implied[V6.history.property] = KnownValue(evidence.archive_folder, "the folder that is there")
    if evidence.change_logs:
        implied["hoodie.table.cdc.enabled"] = KnownValue("true", "change logs among the data files")
    return {key: source for key, source in implied.items() if key != _CHECKSUM}


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _summed(sources: Mapping[str, PropertySource]) -> dict[str, PropertySource]:
    """With the checksum of name and database, and both names of the ordering column."""
    result = dict(sources)
    values = {key: each.value for key, each in result.items()}
    checksum = str(table_checksum(values.get(_NAME, ""), values.get(_DATABASE, "")))
    if values.get(_CHECKSUM) != checksum:
        result[_CHECKSUM] = PropertySource(_CHECKSUM, checksum, "computed from the names of table and database")
    if values.get(_PRECOMBINE, "") != values.get(_ORDERING, ""):
        newer = result.get(_ORDERING) or result[_PRECOMBINE]
        for key in (_ORDERING, _PRECOMBINE):
            result[key] = PropertySource(key, newer.value, newer.source)
    return result


def _require_sound(storage: Storage, properties: Mapping[str, PropertySource]) -> None:
    values = {key: each.value for key, each in properties.items() if each.value}
    try:
        parse_table_config(values, uri=storage.uri)
    except (CorruptFileError, UnsupportedTableError) as exc:
        raise OptionError(
            f"the properties that were found do not make a table: {exc}. Give the right ones by --set"
        ) from exc
