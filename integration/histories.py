"""Random histories of one table, made from a seed: its shape, its schemas, and the steps of its two writers.

A history is data: the same seed gives the same one, a step may be taken out and the rest still makes sense, and nothing
in it depends on what a table answered. `CAPABILITIES` says who may do what; what the generator leaves out on purpose, because
Apache Hudi itself cannot do it or answers it differently from time to time, stands at the place with its reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa

from integration.history_values import UTC_MICROS, WIDER, named_inside, random_type, random_value, value_of_rank

Values = dict[str, Any]

OURS, HUDI = "ours", "hudi"
PAYLOADS = ("OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload")
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
DELETED = "_hoodie_is_deleted"


@dataclass(frozen=True)
class Ability:
    """What may stand in a history: who does it, on which tables, how often (a weight)."""

    writers: tuple[str, ...] = (OURS, HUDI)
    table_types: tuple[str, ...] = (COW, MOR)
    weight: float = 1
    only: Callable[["Shape"], bool] = lambda _: True
    hudi: Callable[["Shape"], bool] = lambda _: True
    """Whether Hudi does it right on such tables."""

    def allows(self, writer: str, shape: "Shape") -> bool:
        """Whether the writer may do it to a table of that shape."""
        able = writer in self.writers and writer in shape.writers and shape.table_type in self.table_types
        return able and self.only(shape) and (writer == OURS or self.hudi(shape))


CAPABILITIES: Mapping[str, Ability] = {
    "upsert": Ability(weight=5),
    "insert": Ability(),
    # Into buckets that exist, it makes second file groups of them; and it fails to leave partition columns out.
    "bulk_insert": Ability(hudi=lambda shape: shape.buckets is None and not shape.drops_partitions),
    "delete": Ability(weight=2),
    "insert_overwrite": Ability(weight=1.2),
    "insert_overwrite_table": Ability(weight=0.6),
    "delete_partition": Ability(weight=0.8, only=lambda shape: bool(shape.partition_fields)),
    # Some columns only; on table version 6 Hudi has no such thing.
    "partial": Ability((OURS,), weight=1.5, only=lambda shape: shape.payload is None),
    # The columns that are not there are null.
    "upsert+missing": Ability(),
    # Our upsert dies before it is published; the next writer, ours or Hudi, takes it back.
    "dies": Ability((OURS,), weight=0.7),
    "schedule": Ability(table_types=(MOR,)),
    "compact": Ability(table_types=(MOR,), weight=1.5),
    # Services of Hudi in the course of one of its upserts.
    "upsert+compact": Ability((HUDI,), (MOR,)),
    # Buckets of a fixed number cannot be clustered.
    "upsert+cluster": Ability((HUDI,), only=lambda shape: shape.buckets is None),
    "upsert+clean": Ability((HUDI,), weight=0.5),
}
"""Operations. Steps named `upsert+x` are upserts of a kind, or after which the writer's service x runs."""
SERVICES: Mapping[str, Ability] = {
    # Hudi's own clean and clustering come after an upsert.
    "clean": Ability((OURS,), weight=2),
    "cluster": Ability((OURS,), weight=2, only=lambda shape: shape.buckets is None),
    # Not where rows are made of several records.
    "log_compact": Ability((OURS,), (MOR,), weight=2, only=lambda shape: shape.payload in {None, PAYLOADS[0]}),
    # Hudi's procedures and its client, as they are called here, would leave the metadata table behind.
    "archive": Ability(weight=3, hudi=lambda shape: not shape.metadata),
    "savepoint": Ability(weight=6, hudi=lambda shape: not shape.metadata),
    "restore": Ability(weight=14, hudi=lambda shape: not shape.metadata),
}
"""What may stand between the writes of a history besides. A savepoint is of the newest commit, and a restore goes back to it."""
WITHOUT_ROWS = frozenset({"schedule", "compact", *SERVICES})
# Timestamps and binaries are left out: Hudi's bulk_insert makes other keys of them than its upsert.
KEY_TYPES = (pa.string(), pa.int32(), pa.int64(), pa.date32(), pa.decimal128(9, 2), pa.float64())
PLAIN_KEYS = (pa.string(), pa.int32(), pa.int64())
PARTITION_TYPES = (pa.string(), pa.int32(), pa.date32())
# A date is left out: Hudi fails to write a delete that has one.
ORDERING_TYPES = (pa.int32(), pa.int64(), pa.string(), UTC_MICROS, pa.float64())
KEY_TEXTS = ("k{}", "k:{}", "a,b:{}", "ü {}")
PARTITION_TEXTS = ("p{}", "p{}/x=y", "ö {}%")


@dataclass(frozen=True)
class Shape:
    """What a table is, for good."""

    table_type: str
    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    hive_style: bool = False
    url_encode: bool = False
    payload: str | None = None
    """A payload class of Hudi that says how records merge, by its short name."""
    buckets: int | None = None
    """Bucket index with so many buckets."""
    complex_key: bool = False
    """Its key generator is the complex one, whatever the number of fields."""
    packed: bool = True
    """New rows fill up small files; else every batch makes files of its own."""
    metadata: bool = False
    """Hudi keeps its metadata table in its turns."""
    null_ordering: bool = False
    """Some ordering values are null."""
    parquet_logs: bool = False
    """Both writers write log blocks in Parquet."""
    no_meta: bool = False
    """Rows store no `_hoodie_` columns."""
    drops_partitions: bool = False
    """Files leave the partition columns out."""
    version: int = 6
    """Table version; others than 6 are read only, so that Hudi makes every step."""

    @property
    def writers(self) -> tuple[str, ...]:
        return (OURS, HUDI) if self.version == 6 else (HUDI,)

    @property
    def event_time(self) -> bool:
        """Whether the greater ordering value wins, and not the later commit."""
        return bool(self.ordering_fields) and self.payload is None

    @property
    def options(self) -> dict[str, str]:
        """For both writers."""
        found = {
            "hoodie.datasource.write.recordkey.field": ",".join(self.key_fields),
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.hive_style_partitioning": str(self.hive_style).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": str(self.url_encode).lower(),
        }
        if self.partition_fields:
            found["hoodie.datasource.write.partitionpath.field"] = ",".join(self.partition_fields)
        if self.ordering_fields:
            found["hoodie.datasource.write.precombine.field"] = ",".join(self.ordering_fields)
        if self.payload:
            found["hoodie.datasource.write.payload.class"] = f"org.apache.hudi.common.model.{self.payload}"
        if self.complex_key:
            found["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.ComplexKeyGenerator"
        if not self.packed:
            found["hoodie.parquet.small.file.limit"] = "0"
        if self.no_meta:
            found["hoodie.populate.meta.fields"] = "false"
        if self.drops_partitions:
            found["hoodie.datasource.write.drop.partition.columns"] = "true"
        if self.buckets:
            found["hoodie.index.type"] = "BUCKET"
            found["hoodie.bucket.index.num.buckets"] = str(self.buckets)
        return found


@dataclass(frozen=True)
class Step:
    """One turn of one writer."""

    writer: str
    operation: str
    rows: tuple[Values, ...] = ()
    schema: int = 0
    """Number of the schema in `History.schemas` that the rows have."""
    columns: tuple[str, ...] | None = None
    """Of these columns only; None: all."""

    def __str__(self) -> str:
        return f"{self.writer} {self.operation}({len(self.rows)} rows, schema {self.schema})"


@dataclass(frozen=True)
class History:
    seed: int
    shape: Shape
    schemas: tuple[pa.Schema, ...]
    """What the columns were in the course of time."""
    steps: tuple[Step, ...]

    def without(self, at: int) -> "History":
        """The same history, but for one step."""
        return replace(self, steps=self.steps[:at] + self.steps[at + 1 :])

    def as_text(self) -> str:
        """With columns and rows: all that is needed to play it by hand."""
        lines = [str(self)]
        for number, schema in enumerate(self.schemas):
            lines.append(f"  schema {number}: {', '.join(f'{column.name} {column.type}' for column in schema)}")
        for number, step in enumerate(self.steps):
            lines += [f"  {number}. {row}" for row in step.rows]
        return "\n".join(lines)

    def __str__(self) -> str:
        steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(self.steps))
        return f"history of seed {self.seed}: {self.shape}\n{steps}"


def random_history(seed: int, *, steps: int = 6, services: bool = False) -> History:
    """The history of a seed; a longer one begins as the shorter one does. `services`: a table of version 6, with `SERVICES`."""
    return _Generator(seed, services).history(steps)


@dataclass
class _Generator:
    """What has happened so far, as far as the next step depends on it."""

    seed: int
    services: bool = False
    random: Random = field(init=False)
    schemas: list[pa.Schema] = field(init=False)
    fresh: int = 100
    """Number of the next key that was never used."""
    removed: set[tuple[Any, ...]] = field(default_factory=set)
    """Keys that some step may have removed."""
    frozen: set[tuple[Any, ...]] | None = None
    """While a compaction is pending: the keys that were removed before it was scheduled."""
    saved: bool = False
    """Whether there is a savepoint."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.shape = replace(self._shape(), version=6) if self.services else self._shape()
        self.schemas = [self._schema()]

    def history(self, count: int) -> History:
        creator = self.random.choice(self.shape.writers)
        begin = self.random.choice(("upsert", "insert", "bulk_insert"))
        if self.shape.drops_partitions and creator == HUDI and begin == "bulk_insert":
            begin = "insert"
        first = Step(creator, begin, self._new_rows(8, 16))
        steps = [first, *(self._step() for _ in range(count - 1))]
        return History(self.seed, self.shape, tuple(self.schemas), tuple(steps))

    # -- the table ---------------------------------------------------------------------------------------------------

    def _shape(self) -> Shape:
        random = self.random
        ordering = ("o0", "o1")[: random.choice((0, 1, 1, 2))]
        partition = ("p0", "p1")[: random.choice((0, 1, 1, 2))]
        table_type = random.choice((COW, MOR, MOR))
        # Where Hudi's upsert rewrites a base file, it dies of a stored null (NullPointerException).
        null_ordering = table_type == MOR and len(ordering) == 1 and random.random() < 0.2
        found = Shape(
            table_type=table_type,
            key_fields=("k0", "k1")[: random.choice((1, 1, 2))],
            partition_fields=partition,
            ordering_fields=ordering,
            hive_style=random.random() < 0.4,
            url_encode=random.random() < 0.5,
            payload=random.choice(PAYLOADS) if len(ordering) == 1 and random.random() < 0.25 else None,
            buckets=random.choice((1, 2, 4)) if random.random() < 0.15 else None,
            complex_key=bool(partition) and random.random() < 0.15,
            packed=not null_ordering and random.random() < 0.7,
            metadata=random.random() < 0.07,
            null_ordering=null_ordering,
            parquet_logs=random.random() < 0.2,
            version=random.choice((8, 9)) if random.random() < 0.15 else 6,
        )
        return self._left_out(found)

    def _left_out(self, shape: Shape) -> Shape:
        """What its files leave out; by chances of its own, so that all else of a seed stays as it is.

        Hudi can do neither with its metadata table in its turns, nor merge records by such payloads; and both together it does not
        upsert into.
        """
        chance = Random(f"left out {self.seed}").random()
        if shape.payload or shape.metadata or shape.version != 6:
            return shape
        # Of a single key column the complex generator makes other keys than Hudi does of stored rows, which it finds no more.
        single = len(shape.key_fields) == 1 and (shape.complex_key or len(shape.partition_fields) > 1)
        if chance < 0.15 and not single:
            return replace(shape, no_meta=True)
        drops = chance < 0.4 and shape.table_type == COW and bool(shape.partition_fields)
        return replace(shape, drops_partitions=drops)

    def _schema(self) -> pa.Schema:
        random, shape = self.random, self.shape
        # Each name gets one kind of text, so that equal numbers are equal keys.
        self.texts = {name: random.choice(KEY_TEXTS) for name in shape.key_fields}
        # Hudi can neither read nor make folders of such values unless they are encoded.
        texts = PARTITION_TEXTS if shape.url_encode else PARTITION_TEXTS[:1]
        self.texts |= {name: random.choice(texts) for name in shape.partition_fields}
        self.null_partition = random.random() < 0.2
        fields = [pa.field(name, random.choice(KEY_TYPES)) for name in shape.key_fields]
        if shape.no_meta:  # of other types Hudi makes other keys of stored rows than of those that it deletes
            fields = [field if field.type in PLAIN_KEYS else field.with_type(pa.string()) for field in fields]
        fields += [pa.field(f"c{n}", random_type(random)) for n in range(random.randint(2, 5))]
        # A null counts as the Java int 0, which Hudi cannot compare with values of other types.
        kinds = ORDERING_TYPES[:1] if shape.null_ordering else ORDERING_TYPES
        if shape.parquet_logs:  # whose texts Hudi compares wrongly: integration/test_parquet_log_blocks.py
            kinds = tuple(kind for kind in kinds if not pa.types.is_string(kind))
        fields += [pa.field(name, random.choice(kinds)) for name in shape.ordering_fields]
        if random.random() < 0.4:
            fields.append(pa.field(DELETED, pa.bool_()))
        partitions = [pa.field(name, random.choice(PARTITION_TYPES)) for name in shape.partition_fields]
        # Hudi reads columns that files lack as texts, whatever they are.
        fields += [field.with_type(pa.string()) if shape.drops_partitions else field for field in partitions]
        return pa.schema(fields)

    def _evolve(self) -> None:
        """Another column, or a wider one."""
        random, schema = self.random, self.schemas[-1]
        structs = [n for n, column in enumerate(schema) if pa.types.is_struct(column.type)]
        wide = [n for n, column in enumerate(schema) if column.name.startswith("c") and column.type in WIDER]
        if wide and random.random() < 0.5:
            at = random.choice(wide)
            schema = schema.set(at, schema.field(at).with_type(random.choice(WIDER[schema.field(at).type])))
        elif structs and random.random() < 0.5:
            at = random.choice(structs)
            inside = [*schema.field(at).type, pa.field(f"f{len(schema.field(at).type)}", random_type(random, depth=0))]
            schema = schema.set(at, schema.field(at).with_type(pa.struct(inside)))
        else:
            schema = schema.append(pa.field(f"c{len(schema)}", random_type(random)))
        # Hudi, when it takes rows of an older schema over, derives an Avro schema from the file and gives all nested decimals
        # and structs of one place (`value`, `element`, `f0`) the same name: "Can't redefine", on its own tables too.
        if sum(named_inside(column.type) for column in schema) <= 1:
            self.schemas.append(schema)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _step(self) -> Step:
        random = self.random
        if random.random() < 0.12:
            self._evolve()
        abilities = {**CAPABILITIES, **SERVICES} if self.services else CAPABILITIES
        impossible = {
            name for name, is_not in (("schedule", self.frozen is not None), ("restore", not self.saved)) if is_not
        }
        able = [
            (writer, name)
            for name, ability in abilities.items()
            for writer in ability.writers
            if ability.allows(writer, self.shape) and name not in impossible
        ]
        weights = [abilities[name].weight / len(abilities[name].writers) for _, name in able]
        ((writer, name),) = random.choices(able, weights)
        rows = self._rows(name)
        columns = self._some_columns() if name in {"partial", "upsert+missing"} else None
        if columns:
            rows = tuple({name: row[name] for name in columns} for row in rows)
        return Step(writer, name, rows, len(self.schemas) - 1, columns)

    def _some_columns(self) -> tuple[str, ...]:
        shape = self.shape
        needed = {*shape.key_fields, *shape.partition_fields, *shape.ordering_fields}
        return tuple(name for name in self.schemas[-1].names if name in needed or self.random.random() < 0.5)

    def _rows(self, operation: str) -> tuple[Values, ...]:
        if operation == "schedule":
            self.frozen = set(self.removed)
        if operation in {"compact", "upsert+compact"}:
            self.frozen = None
        self.saved |= operation == "savepoint"
        if operation in WITHOUT_ROWS:
            return ()
        if operation in {"insert", "bulk_insert"}:
            # Keys that were never there: an insert looks up none, and two rows of one key have no defined future.
            return self._new_rows(1, 6)
        known = self._known_rows(operation)
        if operation.startswith(("insert_overwrite", "delete_partition")):
            known = tuple(_distinct([row for row in known if not row.get(DELETED)] or known[:1], self._key))
            return tuple({**row, DELETED: None} if DELETED in row else row for row in known)
        if operation == "delete":
            self.removed.update(map(self._key, known))
            return known
        self.removed.update(self._key(row) for row in known if row.get(DELETED))
        return known + self._new_rows(0, 3)

    def _new_rows(self, least: int, most: int) -> tuple[Values, ...]:
        """Half of the first keys of a table are those that later steps come back to."""
        rows = []
        for _ in range(self.random.randint(least, most)):
            number = self.fresh if self.random.random() < 0.5 or least < 8 else self.fresh - 100
            self.fresh += 1
            rows.append(self._row(number, rank=self.random.randrange(10)))
        return tuple(_distinct(rows, self._key))

    def _known_rows(self, operation: str) -> tuple[Values, ...]:
        random, rows = self.random, []
        for _ in range(random.randint(1, 7)):
            marked = operation != "delete" and random.random() < 0.2
            row = self._row(random.randrange(16), rank=random.randrange(20), deleted=marked)
            # Hudi's bloom index looks into base files only: a removed key that is written again while a compaction is
            # pending stands in a log alone afterwards, and Hudi's next upsert would insert it a second time.
            if self.frozen is None or self._key(row) not in self.frozen:
                rows.append(row)
        # Of two rows with one key and the same ordering value, which one Hudi takes is left to its shuffle.
        several = self.shape.event_time and not self.shape.null_ordering
        by = (lambda row: (*self._key(row), *self._ordering(row))) if several else self._key
        return tuple(_distinct(rows or [self._row(self.fresh, rank=0)], by))

    def _row(self, number: int, *, rank: int, deleted: bool = False) -> Values:
        """A row whose key is numbered; a known key is mostly in its home partition."""
        random, schema, shape = self.random, self.schemas[-1], self.shape
        row = {column.name: random_value(random, column.type) for column in schema}
        for place, name in enumerate(shape.key_fields):
            row[name] = self._named(name, number // 2 if place else number)
        for name in shape.partition_fields:
            row[name] = self._named(name, number % 3 if random.random() < 0.9 else random.randrange(3))
        for place, name in enumerate(shape.ordering_fields):
            # The first of several alone decides nothing.
            value = rank // 4 if place < len(shape.ordering_fields) - 1 else rank % 10
            row[name] = value_of_rank(schema.field(name).type, value if len(shape.ordering_fields) > 1 else rank)
        if shape.null_ordering and random.random() < 0.2:
            row[shape.ordering_fields[0]] = None
        if len(shape.partition_fields) == 1 and number % 3 == 2 and self.null_partition:
            row[shape.partition_fields[0]] = None
        if DELETED in schema.names:
            row[DELETED] = True if deleted else random.choice((False, None))
        return row

    def _named(self, name: str, number: int) -> Any:
        kind = self.schemas[-1].field(name).type
        return self.texts[name].format(number) if kind == pa.string() else value_of_rank(kind, number)

    def _key(self, row: Values) -> tuple[Any, ...]:
        return key_of(self.shape, row)

    def _ordering(self, row: Values) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.shape.ordering_fields)


def key_of(shape: Shape, row: Values) -> tuple[Any, ...]:
    """Partition and key values: what one row of a table is known by."""
    return tuple(row[name] for name in (*shape.partition_fields, *shape.key_fields))


def _distinct(rows: Sequence[Values], key: Any) -> list[Values]:
    """The first row of each key."""
    found: dict[Any, Values] = {}
    for row in rows:
        found.setdefault(key(row), row)
    return list(found.values())
