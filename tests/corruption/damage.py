"""Golden tables in memory with one file damaged, and what the queries then answer."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from hoodie.engine.local import LocalEngine
from hoodie.model.names import folder_of
from hoodie.storage.memory import MemorySnapshot, MemoryStorage
from hoodie.table import HoodieTable, open_at
from tests.golden_tables import FOLDER

MTIME_S = 1.0


class Damage(NamedTuple):
    """What happened to one file: its end was cut off at `offset`, or the byte there became `byte`."""

    path: str
    offset: int
    byte: int | None
    """None: cut."""

    def applied(self, data: bytes) -> bytes:
        if self.byte is None:
            return data[: self.offset]
        return data[: self.offset] + bytes([self.byte]) + data[self.offset + 1 :]

    def __str__(self) -> str:
        return f"{self.path}@{self.offset} " + ("cut" if self.byte is None else f"= 0x{self.byte:02x}")


class Source(NamedTuple):
    """The files of a golden table by path."""

    name: str
    files: Mapping[str, bytes]

    def stored(self, damage: Damage | None = None) -> MemoryStorage:
        """A storage with the table in it."""
        storage = MemoryStorage(f"memory://{self.name}", clock=lambda: MTIME_S)
        files = {path: (data, MTIME_S) for path, data in self.files.items()}
        if damage is not None:
            files[damage.path] = (damage.applied(self.files[damage.path]), MTIME_S)
        folders = {"": MTIME_S}
        for path in files:
            while path := folder_of(path):
                folders[path] = MTIME_S
        storage.restore(MemorySnapshot(files, folders))
        return storage


def load(name: str) -> Source:
    root = FOLDER / name / "table"
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return Source(name, dict(sorted(found.items())))


View = Callable[[HoodieTable], Any]


def views_of(source: Source) -> dict[str, View]:
    """The newest state, the newest without logs, an older one, and a pull of all but the first commit."""
    storage = source.stored()
    times = [instant.time for instant in open_at(storage, engine=LocalEngine(1)).timeline.commits]
    later = (
        time
        for time in times[len(times) // 2 :]
        if ask(storage, lambda t, time=time: t.scan(as_of=time, meta_columns=True)).error is None
    )
    middle = next(later)  # files of older states may have been cleaned
    views: dict[str, View] = {
        "snapshot": lambda table: table.scan(meta_columns=True),
        "read optimized": lambda table: table.scan(query="read_optimized", meta_columns=True),
        "as of": lambda table: table.scan(as_of=middle, meta_columns=True),
        "incremental": lambda table: table.changes(since=times[0], meta_columns=True),
    }
    return views


class Answer(NamedTuple):
    """The rows of one query as text, sorted, and their keys; or the error."""

    rows: tuple[tuple[str, ...], ...] = ()
    keys: Counter[str] = Counter()  # noqa: RUF012 - nobody changes it
    error: Exception | None = None


def ask(storage: MemoryStorage, view: View) -> Answer:
    try:
        found = view(open_at(storage, engine=LocalEngine(1))).to_arrow()
        found.validate(full=True)
    except Exception as error:  # noqa: BLE001 - whatever comes is what is judged
        return Answer(error=error)
    names = sorted(found.column_names)
    columns = [[repr(value) for value in found.column(name).to_pylist()] for name in names]
    rows = sorted(zip(*columns, strict=True))
    return Answer((tuple(names), *rows), Counter(columns[names.index("_hoodie_record_key")]))


def random_flips(source: Source, *, seed: int, count: int) -> Iterator[Damage]:
    """Damages of one byte, half of them of one bit. Every file is hit equally often, whatever its size."""
    chance = random.Random(seed)
    paths = [path for path, data in source.files.items() if data]
    for _ in range(count):
        path = chance.choice(paths)
        data = source.files[path]
        at = chance.randrange(len(data))
        byte = data[at] ^ (1 << chance.randrange(8)) if chance.random() < 0.5 else chance.randrange(256)
        yield Damage(path, at, byte if byte != data[at] else byte ^ 0xFF)


def sampled_cuts(source: Source, *, seed: int, count: int) -> Iterator[Damage]:
    """Every file cut to nothing, to all but its last byte, and to `count` lengths between."""
    chance = random.Random(seed)
    for path, data in source.files.items():
        lengths = {0, len(data) - 1, *(chance.randrange(len(data)) for _ in range(count))} if data else set()
        yield from (Damage(path, length, None) for length in sorted(lengths))
