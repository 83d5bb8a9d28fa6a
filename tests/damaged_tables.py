"""Tables in memory with what killed writers, careless copies and full disks leave: for repairs and for who looks for them."""

from collections.abc import Callable, Hashable

from hoodie.model.names import PARTITION_METADATA, join, name_of, parse_base_file, parse_log_file
from hoodie.storage.base import Storage
from hoodie.storage.faults import FaultStorage, InjectedFault
from tests.memory_tables import FakeClock, Input, batch, create, opened

ROWS = [Input(f"k{n}", "ab"[n % 2], n, 10) for n in range(8)]
CHANGES = [Input("k0", "a", 100, 20), Input("k1", "b", 101, 20)]
AGE_S = 7200.0
"""Files of these tables are old enough to be judged."""


def data_files(storage: Storage) -> list[str]:
    found = [info.path for info in storage.list("", recursive=True) if not info.is_folder]
    names = ((path, name_of(path)) for path in found if not path.startswith(".hoodie/"))
    return [path for path, name in names if parse_base_file(name) or parse_log_file(name)]


def bases(storage: Storage) -> list[str]:
    return [path for path in data_files(storage) if path.endswith(".parquet")]


def logs(storage: Storage) -> list[str]:
    return [path for path in data_files(storage) if ".log." in path]


def make(storage: Storage, clock: FakeClock | None, table_type: str = "MERGE_ON_READ") -> None:
    """Two commits in two partitions; the second one writes logs where the table has them."""
    create(storage, table_type=table_type)
    opened(storage, clock).upsert(batch(ROWS))
    opened(storage, clock).upsert(batch(CHANGES))


def put_strays(storage: Storage) -> list[str]:
    """What a task that was tried twice leaves: a second file beside each that its commit names; gives their paths."""
    strays = []
    for path in data_files(storage):
        folder, _, name = path.rpartition("/")
        base, log = parse_base_file(name), parse_log_file(name)
        twin = name.replace(base.write_token, "7-7-7") if base else name.replace(str(log and log.write_token), "7-7-7")
        strays.append(join(folder, twin))
        storage.create_new(strays[-1], storage.read(path))
    return sorted(strays)


def damage_partitions(storage: Storage) -> None:
    storage.delete(f"a/{PARTITION_METADATA}")
    storage.replace(f"b/{PARTITION_METADATA}", b"")


def die_before(path_ends: str, storage: Storage, clock: FakeClock | None, act: Callable[[object], object]) -> None:
    """Run an action in a process that dies before it creates a file with such a name."""

    class Dies(FaultStorage):
        def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
            if path.endswith(path_ends):
                raise InjectedFault(f"the process died before {path}")
            super().create_new(path, data, via=via, durable=durable)

        def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
            raise InjectedFault(f"the process died before it decided {path}")

    try:
        act(opened(Dies(storage), clock))
    except InjectedFault:
        return
    raise AssertionError("the action was to die")
