"""hoodie.sql: statements over tables by name, without Spark."""

import datetime
import io
import json

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.dml.tokens import statements
from hoodie.errors import KeyFieldError, OptionError
from hoodie.read.dataset import TableDataset
from hoodie.writer import TableWriter

pytest.importorskip("duckdb")

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.fixture(params=KINDS)
def trips(request, tmp_path):
    rows = pa.table({"id": ["a", "b", "c"], "city": ["oslo", "rome", "rome"], "fare": [1.0, 2.0, 3.0], "ts": [1, 1, 1]})
    table = hoodie.create_table(
        tmp_path / "trips", rows.schema, record_key="id", partition_by="city", ordering="ts", table_type=request.param
    )
    table.insert(rows)
    return table


def stored(table):
    return sorted(tuple(row.values()) for row in table.scan(["id", "city", "fare"]).to_arrow().to_pylist())


MERGE = "MERGE INTO trips t USING trips s ON t.id = s.id"
BEFORE = [("a", "oslo", 1.0), ("b", "rome", 2.0), ("c", "rome", 3.0)]


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT id FROM trips WHERE fare > 1.5 ORDER BY id", [("b",), ("c",)]),
        ("WITH x AS (SELECT city, sum(fare) f FROM Trips GROUP BY ALL) SELECT f FROM x ORDER BY f;", [(1.0,), (5.0,)]),
        ("FROM trips JOIN late USING (id) SELECT id, note", [("b", "é;--'x")]),
        ('SELECT \';\' AS a, "a;b" FROM (SELECT 1 AS "a;b") -- ;', [(";", 1)]),
    ],
)
def test_queries(trips, statement, rows):
    late = {"id": ["b", "z"], "note": ["é;--'x", None]}
    found = hoodie.sql(statement, trips=trips, late=late)
    assert [tuple(row.values()) for row in found.to_pylist()] == rows


def test_a_query_opens_the_files_that_its_filter_leaves(trips):
    scans, pinned = [], trips._pinned()
    trips._pinned = lambda: lambda *args: scans.append(pinned(*args)) or scans[-1]
    assert hoodie.sql("SELECT sum(fare) s FROM trips WHERE city = 'oslo'", {"trips": trips}).to_pylist() == [{"s": 1.0}]
    assert len(scans[-1].plan.tasks) == 1
    assert set(scans[-1].schema.names) <= {"fare", "city"}


def test_a_query_reads_one_snapshot(trips, monkeypatch):
    begin = TableDataset.scanner

    def scanner(dataset, **query):
        trips.upsert({"id": ["b"], "city": ["rome"], "fare": [9.0 + len(trips.history())], "ts": [9]})
        return begin(dataset, **query)

    monkeypatch.setattr(TableDataset, "scanner", scanner)
    both = "SELECT a.fare = b.fare AS same FROM trips a JOIN trips b USING (id) WHERE id = 'b'"
    assert hoodie.sql(both, trips=trips).to_pylist() == [{"same": True}]
    assert len(trips.history()) == 3


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO trips USING (SELECT id, fare + 1 AS fare FROM trips) s ON trips.id = s.id "
        "WHEN MATCHED THEN UPDATE SET fare = s.fare",
        "UPDATE trips SET fare = (SELECT t.fare FROM trips t WHERE t.id = trips.id) + 1",
        "INSERT INTO trips SELECT id, city, fare + 1, ts FROM trips",
    ],
)
def test_what_a_statement_reads_of_its_table_is_not_older_than_what_it_changes(trips, monkeypatch, statement):
    begin = TableWriter.write_found

    def write_found(writer, write, concurrency):
        def late(found_on):
            if len(trips.history()) == 1:
                hoodie.open_table(trips.uri).upsert({"id": ["b"], "city": ["rome"], "fare": [50.0], "ts": [1]})
            return write(found_on)

        return begin(writer, late, concurrency)

    monkeypatch.setattr(TableWriter, "write_found", write_found)
    hoodie.sql(statement, trips=trips)
    assert stored(trips) == [("a", "oslo", 2.0), ("b", "rome", 51.0), ("c", "rome", 4.0)]


def test_a_table_as_it_was_and_what_changed_since(trips):
    first = trips.history()[-1].instant
    trips.upsert({"id": ["b"], "city": ["rome"], "fare": [9.0], "ts": [2]})
    for words in (f"VERSION AS OF '{first}'", f"FOR TIMESTAMP AS OF '{first}'"):
        then = hoodie.sql(f"SELECT trips.fare FROM trips {words} WHERE trips.id = 'b'", trips=trips)
        assert then.to_pylist() == [{"fare": 2.0}]
    both = f"SELECT new.fare - old.fare AS d FROM trips new JOIN trips VERSION AS OF '{first}' AS old USING (id) WHERE id = 'b'"
    assert hoodie.sql(both, trips=trips).to_pylist() == [{"d": 7.0}]
    changes = f"SELECT id, fare FROM hudi_table_changes('trips', 'latest_state', '{first}')"
    assert hoodie.sql(changes, trips=trips).to_pylist() == [{"id": "b", "fare": 9.0}]
    feed = f"SELECT op FROM hudi_table_changes('trips', 'cdc', '{first}') AS c"
    assert hoodie.sql(feed, trips=trips).to_pylist() == [{"op": "u"}]


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT INTO trips VALUES ('d', 'bern', 4, 1)", [*BEFORE, ("d", "bern", 4.0)]),
        (
            "INSERT INTO trips (id, city, ts) SELECT id, 'rome', 5 FROM late",
            [BEFORE[0], ("b", "rome", None), BEFORE[2], ("z", "rome", None)],
        ),
        (
            "INSERT INTO trips (ID, \"City\", FARE) SELECT id, city, 7 FROM late WHERE id = 'z'",
            [*BEFORE, ("z", "bern", 7.0)],
        ),
        ("UPDATE trips SET FARE = 8 WHERE Id = 'a'", [("a", "oslo", 8.0), *BEFORE[1:]]),
        ("INSERT OVERWRITE trips SELECT 'z', 'rome', 0.5, 1", [BEFORE[0], ("z", "rome", 0.5)]),
        ("UPDATE trips SET fare = fare + 1 WHERE city = 'rome'", [BEFORE[0], ("b", "rome", 3.0), ("c", "rome", 4.0)]),
        (
            "UPDATE trips AS t SET t.fare = (SELECT max(fare) FROM trips)",
            [("a", "oslo", 3.0), ("b", "rome", 3.0), BEFORE[2]],
        ),
        (
            "UPDATE trips SET city = 'bern' WHERE id IN (SELECT id FROM late)",
            [BEFORE[0], ("b", "bern", 2.0), BEFORE[2]],
        ),
        ("UPDATE trips SET fare = CASE WHEN id = 'a' THEN 7 ELSE fare END", [("a", "oslo", 7.0), *BEFORE[1:]]),
        ("DELETE FROM trips WHERE id IN (SELECT id FROM late)", [BEFORE[0], BEFORE[2]]),
        ("DELETE FROM trips t WHERE t.fare BETWEEN 1.5 AND 2.5 OR t.city LIKE 'os%'", [BEFORE[2]]),
        ("DELETE FROM trips", []),
        (
            "MERGE INTO trips AS t USING late AS s ON t.id = s.id WHEN MATCHED AND s.fare > 8 THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT (id, city, fare, ts) VALUES (s.id, upper(s.city), s.fare, s.ts)",
            [("a", "oslo", 1.0), ("c", "rome", 3.0), ("z", "BERN", 8.0)],
        ),
        (
            "MERGE INTO trips USING (SELECT * FROM late WHERE id = 'b') s ON trips.id = s.id WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED BY SOURCE AND trips.id = 'c' THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET fare = 0",
            [("a", "oslo", 0.0), ("b", "rome", 9.0)],
        ),
        (
            "MERGE INTO trips USING late ON trips.id = late.id WHEN NOT MATCHED BY TARGET THEN INSERT *;",
            [*BEFORE, ("z", "bern", 8.0)],
        ),
        (
            "MERGE INTO trips USING (VALUES ('a', 6), ('z', 7)) AS s(k, f) ON trips.id = s.k "
            "WHEN MATCHED THEN UPDATE SET trips.fare = f "
            "WHEN NOT MATCHED AND f > 6 THEN INSERT (id, city, fare, ts) VALUES (k, 'bern', f, 1)",
            [("a", "oslo", 6.0), *BEFORE[1:], ("z", "bern", 7.0)],
        ),
        (
            "MERGE INTO trips USING late AS s(k, c, f, t) ON trips.id = s.k WHEN MATCHED THEN UPDATE SET fare = f, ts = t",
            [BEFORE[0], ("b", "rome", 9.0), BEFORE[2]],
        ),
        (
            "WITH one AS (SELECT id FROM late), two AS (SELECT * FROM one WHERE id < 'q') UPDATE trips SET fare = (SELECT count(*) "
            "FROM one) WHERE id IN (FROM two)",
            [BEFORE[0], ("b", "rome", 2.0), BEFORE[2]],
        ),
        ("WITH x (k) AS (SELECT id FROM late) DELETE FROM trips WHERE id IN (SELECT k FROM x)", [BEFORE[0], BEFORE[2]]),
        (
            "WITH x AS (SELECT * FROM late) INSERT INTO trips WITH y AS (SELECT * FROM x WHERE id = 'z') SELECT * FROM y",
            [*BEFORE, ("z", "bern", 8.0)],
        ),
        (
            "WITH x AS (SELECT * FROM late) MERGE INTO trips USING x ON trips.id = x.id WHEN MATCHED THEN UPDATE SET *",
            [BEFORE[0], ("b", "rome", 9.0), BEFORE[2]],
        ),
    ],
)
def test_changes_are_one_commit(trips, statement, rows):
    late = pa.table({"id": ["b", "z"], "city": ["rome", "bern"], "fare": [9.0, 8.0], "ts": [3, 3]})
    done = hoodie.sql(statement, trips=trips, late=late)
    assert stored(trips) == sorted(rows)
    assert [each.instant for each in trips.history()][1:] == [done.instant]


def test_a_path_is_a_table_and_names_of_any_case_are_found(trips):
    assert hoodie.sql("select count(*) as n from TRIPS", trips=trips.uri.removeprefix("file://")).to_pylist() == [
        {"n": 3}
    ]
    hoodie.sql("delete from tRIPS where id = 'a'", TRIPS=trips)
    assert stored(trips) == BEFORE[1:]


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("SELECT * FROM nothing", OptionError, "nothing"),
        ("UPDATE nothing SET a = 1", OptionError, "'nothing', which is not given; tables that are: trips"),
        ("UPDATE trips SET fare = fare WHERE", OptionError, "yntax error"),
        ("UPDATE trips SET nope = 1", KeyFieldError, "nope"),
        ("UPDATE trips SET id = 'x'", OptionError, "record key does not change"),
        ("UPDATE trips SET fare", OptionError, "column = expression"),
        ("DELETE trips", OptionError, "FROM should stand before 'trips'"),
        ("INSERT INTO trips VALUES (1)", OptionError, "has 4 columns"),
        (
            "MERGE INTO trips USING (SELECT 1 AS id) ON trips.id = id WHEN MATCHED THEN DELETE",
            OptionError,
            "needs a name",
        ),
        ("MERGE INTO trips USING trips ON 1 = 1", OptionError, "WHEN is missing"),
        ("UPDATE trips SET fare = 1, Fare = 1", OptionError, "'fare' of table 'trips' two values"),
        ("INSERT INTO trips (id, ID, city, ts) VALUES ('x', 'y', 'z', 1)", OptionError, "two values"),
        ("UPDATE trips SET late.fare = 1", KeyFieldError, "late.fare"),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET fare = 1, t.FARE = 2", OptionError, "two values"),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET s.fare = 1", KeyFieldError, "s.fare"),
        (f"{MERGE} WHEN NOT MATCHED THEN INSERT (id, Id) VALUES (s.id, s.id)", OptionError, "two values"),
        (f"{MERGE} WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, t.city)", OptionError, 'table "t" not found'),
        (f"{MERGE} WHEN NOT MATCHED AND t.ts = 1 THEN INSERT *", OptionError, 'table "t" not found'),
        (f"{MERGE} WHEN NOT MATCHED BY SOURCE AND s.ts = 1 THEN DELETE", OptionError, 'table "s" not found'),
        (f"{MERGE} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET fare = s.fare", OptionError, 'table "s" not found'),
        ("CREATE TABLE x (a INT)", OptionError, "begins with 'CREATE'"),
        ("SELECT 1; SELECT 2", OptionError, "has 2"),
        ("", OptionError, "has 0"),
        ("SELECT * FROM hudi_table_changes('trips')", OptionError, "hudi_table_changes takes"),
    ],
)
def test_what_cannot_be_understood_is_one_error_and_nothing_is_written(trips, statement, error, words):
    with pytest.raises(error, match=words):
        hoodie.sql(statement, trips=trips)
    assert len(trips.history()) == 1


def test_what_is_no_table_is_named(trips):
    with pytest.raises(OptionError, match="x=3 is no table"):
        hoodie.sql("SELECT 1", x=3)


def test_the_command(trips, tmp_path, capsys, monkeypatch):
    path = str(tmp_path / "trips")
    assert main(["sql", path, "-e", "SELECT id, fare FROM t WHERE city = 'rome' ORDER BY id"]) == 0
    assert capsys.readouterr().out.split() == ["id", "fare", "b", "2.0", "c", "3.0"]
    other = hoodie.create_table(tmp_path / "late", {"id": "string", "note": "string"}, record_key="id")
    other.insert({"id": ["b"], "note": ["x,y"]})
    text = "DELETE FROM trips WHERE id IN (SELECT id FROM late); SELECT count(*) AS n, any_value(note) AS note FROM late, t;"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["sql", path, "--table", f"late={other.uri}", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["n,note", '2,"x,y"']
    assert main(["sql", path, "-e", "SELECT 1 AS a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"columns": ["a"], "rows": [{"a": 1}]}
    assert main(["sql", "--table", f"trips={path}", "-e", "SELECT count(*) AS n FROM trips"]) == 0
    assert capsys.readouterr().out.split() == ["n", "2"]
    assert main(["sql", path, "-e", "DROP TABLE t"]) == 1
    assert "begins with 'DROP'" in capsys.readouterr().err
    assert main(["sql", path, "--table", "late"]) == 2


def test_tables_go_by_their_paths(trips, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = trips.timeline.commits[0].time
    hoodie.sql("UPDATE 'trips' SET fare = fare + 1 WHERE id = 'b'")
    hoodie.sql(f"DELETE FROM '{trips.uri}' WHERE id = 'c'")
    hoodie.sql(
        "MERGE INTO \"trips\" t USING (SELECT * FROM 'trips' WHERE id = 'b') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET fare = 9"
    )
    assert hoodie.sql("SELECT fare FROM './trips' WHERE id = 'b'")["fare"].to_pylist() == [9.0]
    assert hoodie.sql(f"SELECT count(*) AS n FROM 'trips' VERSION AS OF '{first}'")["n"].to_pylist() == [3]
    changed = hoodie.sql(f"SELECT id FROM hudi_table_changes('trips', 'latest_state', '{first}')")
    assert changed["id"].to_pylist() == ["b"]
    with pytest.raises(OptionError, match="Table with name none_such does not exist"):
        hoodie.sql("SELECT * FROM 'none_such'")


def test_a_script_is_parted_by_semicolons():
    assert statements("SELECT ';é'; -- ;\nSELECT 2 ;; ") == ["SELECT ';é'", "-- ;\nSELECT 2"]


@pytest.mark.parametrize(
    ("where", "params", "found"),
    [
        ("fare > :low AND city = :city", {"low": 1.5, "city": "rome"}, "bc"),
        ("city = :city OR city = ':city' -- :city", {"city": "' OR TRUE --"}, ""),
        ("id IN :ids", {"ids": ["a", "c"]}, "ac"),
        ("fare::INT = :n AND [1, 2][1:1] = [1]", {"n": 2}, "b"),
        ("ts + :n = :m", {"n": -1, "m": 0}, "abc"),
        ("DATE '2024-01-02' = :day AND id = :id", {"day": datetime.date(2024, 1, 2), "id": "a"}, "a"),
        ("encode(id) = :raw", {"raw": b"a"}, "a"),
    ],
)
def test_parameters_stand_for_values(trips, where, params, found):
    rows = hoodie.sql(f"SELECT id FROM trips WHERE {where}\nORDER BY id", trips=trips, params=params)
    assert "".join(rows["id"].to_pylist()) == found


def test_changes_take_parameters(trips):
    params = {"by": 2, "city": "it's"}
    hoodie.sql("UPDATE trips SET fare = fare * :by, city = :city WHERE id = 'a'", trips=trips, params=params)
    hoodie.sql("DELETE FROM trips WHERE fare = :low", trips=trips, params={"low": 3.0})
    assert stored(trips) == [("a", "it's", 2.0), ("b", "rome", 2.0)]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"k": 1}, "no value for the parameter :low"),
        ({"low": 1, "k": 1}, "no parameter :k"),
        ({"low": {}}, "no value of SQL"),
    ],
)
def test_parameters_and_values_belong_together(trips, params, words):
    with pytest.raises(OptionError, match=words):
        hoodie.sql("SELECT * FROM trips WHERE fare > :low", trips=trips, params=params)
