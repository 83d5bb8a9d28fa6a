"""Tables that merge by a Python function, embedded: what it is given, what it may give, where it must be registered."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import OptionError, SchemaError, UnsupportedTableError
from hoodie.options import mergers

BOTH_TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), False),
        ("n", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    monkeypatch.setattr(mergers, "_registered", {})


def sums(older, newer):
    return newer.set_column(1, newer.schema.field(1), pc.add(older["n"], newer["n"]))


def rows(*values, deleted=()):
    return pa.table(
        [
            pa.array([key for key, _ in values], pa.string()),
            pa.array([n for _, n in values], pa.int64()),
            pa.array([[str(n)] for _, n in values], pa.list_(pa.string())),
            pa.array([key in deleted for key, _ in values]),
        ],
        schema=SCHEMA,
    )


def create(path, *, table_type="COPY_ON_WRITE", merger="sums", **more):
    options = {"hoodie.python.merger": merger}
    return hoodie.create_table(path, SCHEMA, record_key="id", table_type=table_type, options=options, **more)


def stored(table):
    return {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}


@BOTH_TYPES
def test_stored_rows_and_rows_of_one_batch_are_merged_in_their_order(tmp_path, table_type):
    hoodie.register_merger("sums", sums)
    table = create(tmp_path / "t", table_type=table_type)
    table.upsert(rows(("a", 1), ("b", 1)))
    table.upsert(rows(("a", 10), ("c", 5), ("a", 100), ("c", 50), ("a", 1000)))
    assert stored(table) == {"a": 1111, "b": 1, "c": 55}
    assert not list(tmp_path.rglob("*.log.*"))
    found = table.changes(since=table.timeline.commits[0].time, meta_columns=True).to_arrow()
    assert set(found["id"].to_pylist()) == {"a", "c"}


@BOTH_TYPES
def test_deletes_are_not_merged_and_what_follows_one_starts_afresh(tmp_path, table_type):
    hoodie.register_merger("sums", sums)
    table = create(tmp_path / "t", table_type=table_type)
    table.upsert(rows(("a", 1), ("b", 1), ("c", 1)))
    table.delete(pa.table({"id": ["a"]}))
    table.upsert(rows(("b", 7), deleted=("b",)))
    assert stored(table) == {"c": 1}
    table.upsert(rows(("a", 5)))
    table.upsert(pa.concat_tables([rows(("c", 2)), rows(("c", 0), deleted=("c",)), rows(("c", 30)), rows(("c", 4))]))
    # The batch's delete forgot what the batch had before it; the stored row meets what is left.
    assert stored(table) == {"a": 5, "c": 35}


def test_the_function_sees_the_tables_own_columns_aligned_by_key(tmp_path):
    seen = []

    def look(older, newer):
        seen.append((older, newer))
        return newer

    hoodie.register_merger("sums", look)
    table = create(tmp_path / "t")
    table.upsert(rows(*((f"k{n}", n) for n in range(50))))
    table.upsert(rows(*((f"k{n}", -n) for n in reversed(range(0, 50, 3)))))
    ((older, newer),) = seen
    assert older.schema.names == newer.schema.names == SCHEMA.names
    assert older["id"].to_pylist() == newer["id"].to_pylist()
    assert older["n"].to_pylist() == [-n for n in newer["n"].to_pylist()]


def fails(older, newer):
    raise RuntimeError("no sum today")


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda o, n: n.slice(1), "returned 1 rows for 2 pairs"),
        (lambda o, n: n.select(["id", "n"]), "2 columns where 4 were expected"),
        (lambda o, n: n.set_column(1, "n", n["n"].cast(pa.int32())), "n: int32 where n: int64 was expected"),
        (lambda o, n: n.to_pylist(), "returned a list, not a pyarrow.Table"),
        (fails, "failed with RuntimeError: no sum today"),
    ],
)
def test_what_is_no_merged_table_is_told_with_the_mergers_name_and_nothing_is_written(tmp_path, function, told):
    hoodie.register_merger("sums", function)
    table = create(tmp_path / "t")
    table.upsert(rows(("a", 1), ("b", 1)))
    with pytest.raises(SchemaError, match=f"merger 'sums' .*{told}"):
        table.upsert(rows(("a", 1), ("b", 1)))
    assert stored(table) == {"a": 1, "b": 1}


def test_a_table_is_read_by_everybody_and_written_only_where_its_merger_is_registered(tmp_path):
    hoodie.register_merger("sums", sums)
    create(tmp_path / "t").upsert(rows(("a", 1)))
    mergers._registered.clear()
    table = hoodie.open_table(tmp_path / "t")
    assert stored(table) == {"a": 1}
    assert table.config.merger == "sums"
    with pytest.raises(
        UnsupportedTableError, match=r"merger 'sums' is not registered .* hoodie\.register_merger\('sums'"
    ):
        table.upsert(rows(("a", 1)))


@pytest.mark.parametrize("name", ["", "two words", "os.system()", "../x", "a..b", "x" * 300])
def test_names_are_names(tmp_path, name):
    with pytest.raises(OptionError, match="merger"):
        hoodie.register_merger(name, sums)
    with pytest.raises(OptionError, match="merger"):
        create(tmp_path / "t", merger=name)


def test_what_cannot_be_called_is_no_merger():
    with pytest.raises(OptionError, match="is a str, not a function"):
        hoodie.register_merger("sums", "os.system")


def test_a_merger_beside_a_merge_mode_is_refused(tmp_path):
    hoodie.register_merger("sums", sums)
    options = {"hoodie.python.merger": "sums", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    with pytest.raises(OptionError, match="cannot have a merger of its own"):
        hoodie.create_table(tmp_path / "t", SCHEMA, record_key="id", options=options)


def test_a_table_is_not_created_with_a_merger_that_nobody_knows(tmp_path):
    with pytest.raises(OptionError, match="merger 'sums' is not registered"):
        create(tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_the_tables_merger_is_not_changed_by_an_option(tmp_path):
    hoodie.register_merger("sums", sums)
    hoodie.register_merger("other", sums)
    table = create(tmp_path / "t")
    with pytest.raises(OptionError, match="merger is 'sums' in the table, 'other' in your options"):
        table.upsert(rows(("a", 1)), {"hoodie.python.merger": "other"})
