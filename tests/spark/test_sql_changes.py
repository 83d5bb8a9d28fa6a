"""UPDATE, DELETE and MERGE as one SELECT, and tables in queries by DataFrames: what becomes of texts."""

import pytest

from hoodie.errors import OptionError
from pyspark_hoodie import hook
from pyspark_hoodie.sql_changes import changes_of
from pyspark_hoodie.sql_entries import Entry, entries_of
from pyspark_hoodie.sql_reads import _has_alias, places_of
from pyspark_hoodie.sql_words import Words, with_named_parameters, with_short_names

pytestmark = pytest.mark.spark

COLUMNS = {"id": "int", "v": "string", "s": "struct<a:int>"}


def changes(text):
    words = Words(text)
    words.at = 1 if words.sees("UPDATE") else 2
    return changes_of(words, words.tokens[0].text, COLUMNS)


@pytest.mark.parametrize("alias", ["", "x", "AS x", "AS `x`"])
def test_a_delete_is_a_select_of_keys(alias):
    called = "`x`" if alias else "`t`"
    select, only_deletes = changes(f"DELETE FROM db.t {alias} WHERE v = 'WHERE'")
    assert select == (
        f"SELECT {called}._hoodie_record_key, {called}._hoodie_partition_path, true AS `*deleted` "
        f"FROM hoodie_part_target AS {called} WHERE v = 'WHERE'"
    )
    assert only_deletes
    assert changes(f"DELETE FROM t {alias}").select.endswith(f"AS {called} ")


def test_an_update_keeps_what_it_does_not_set():
    select, only_deletes = changes("UPDATE t SET T.V = CASE WHEN id > 1 THEN 'a, b' END, `id` = f(1, 2) WHERE id = 1")
    assert "CAST(f(1, 2) AS int) AS `id`, CAST(CASE WHEN id > 1 THEN 'a, b' END AS string) AS `v`, `t`.`s`" in select
    assert not only_deletes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("UPDATE t SET w = 1", "w is no column of the table"),
        ("UPDATE t SET s.a = 1", "is a field"),
        ("UPDATE t SET v = 1, V = 2", "set twice"),
        ("UPDATE t SET v", "= should stand at the end"),
        ("MERGE INTO t USING u ON true", "at least one WHEN"),
        ("MERGE INTO t USING u ON true WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1)", "2 columns and 1 values"),
        ("MERGE INTO t USING u ON true WHEN MATCHED THEN DROP", "INSERT should stand before 'DROP'"),
    ],
)
def test_what_cannot_be_understood_is_said(text, says):
    with pytest.raises(OptionError, match=says):
        changes(text)


@pytest.mark.parametrize("name", ["v", "t.v", "DB.T.v"])
def test_an_assignment_names_a_column_by_the_name_of_its_table(name):
    assert "CAST(1 AS string) AS `v`" in changes(f"UPDATE db.t SET {name} = 1").select


def test_a_merge_is_a_query_for_each_case():
    select, only_deletes = changes(
        "MERGE INTO t USING (SELECT 1 AS id) AS u ON t.id = u.id WHEN MATCHED AND u.id > CASE WHEN true THEN 0 END THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY TARGET THEN INSERT (v, id) VALUES (f(1, 2), u.id) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'x'"
    )
    matched, not_matched, by_source = select.split(" UNION ALL ")
    assert "FROM hoodie_part_target AS `t` JOIN (SELECT 1 AS id) AS `u` ON t.id = u.id" in matched
    assert "CASE WHEN (u.id > CASE WHEN true THEN 0 END) THEN 0 WHEN true THEN 1 END" in matched
    assert "raise_error" in matched
    assert "FROM (SELECT 1 AS id) AS `u` LEFT ANTI JOIN hoodie_part_target AS `t`" in not_matched
    assert "CAST(u.id AS int) END AS `id`" in not_matched
    assert "CAST(f(1, 2) AS string) END AS `v`" in not_matched
    assert "CAST(NULL AS struct<a:int>) END AS `s`" in not_matched  # which no column of the list is
    assert "LEFT ANTI JOIN (SELECT 1 AS id) AS `u`" in by_source
    assert not only_deletes


def test_a_merge_that_only_deletes_has_no_values():
    select, only_deletes = changes("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE")
    assert only_deletes
    assert "CAST" not in select
    assert "raise_error" not in select


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a, b FROM x, db.y z JOIN `w` ON z.a = w.a, v WHERE c IN (SELECT d, e FROM u)", "x db.y w v u"),
        ("SELECT extract(YEAR FROM a), trim(BOTH 'x' FROM b), a IS DISTINCT FROM c FROM (SELECT 1, f FROM g)", "g"),
        ("WITH q AS (SELECT * FROM x) SELECT * FROM q, LATERAL explode(array(1, 2)), hoodie.`/a/b`", "x hoodie./a/b"),
        ("WITH q (a, b) AS (SELECT * FROM q), r AS (SELECT * FROM Q) MERGE INTO t USING r ON f(x)", "q"),
        ("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q, db.q) JOIN q", "db.q q"),
        ("SELECT * FROM x VERSION AS OF '20260101' JOIN y FOR SYSTEM_TIME AS OF '2026-01-01'", "x y"),
        ("SELECT * FROM range(3), hudi_query('t', 'snapshot')", "hudi_query"),
        ("SELECT * FROM x GROUP BY a, b HAVING f(c, d) ORDER BY e, g", "x"),
    ],
)
def test_where_tables_stand(text, names):
    assert [".".join(place.name) for place in places_of(Words(text), 0)] == names.split()


@pytest.mark.parametrize(
    ("text", "has"),
    [("x q", True), ("x `JOIN`", True), ("x AS q", True), ("x", False), ("x JOIN y", False), ("x, y", False)],
)
def test_whether_a_table_has_a_name_of_its_own_in_a_query(text, has):
    assert _has_alias(Words(text), 1) == has


def test_moments_and_parameters_of_functions():
    version, pull = places_of(
        Words("SELECT * FROM x VERSION AS OF '20260101' q, hudi_table_changes('t', 'cdc', '1')"), 0
    )
    assert (version.moment, version.arguments) == ("20260101", None)
    assert (pull.moment, pull.arguments) == (None, ("t", "cdc", "1"))
    with pytest.raises(OptionError, match="take texts and numbers"):
        places_of(Words("SELECT * FROM x TIMESTAMP AS OF now()"), 0)


@pytest.mark.parametrize(
    ("text", "source", "name"),
    [
        ("(VALUES (1, ')')) s (id, v)", "(VALUES (1, ')')) AS `s`(id, v)", "`s`"),
        ("db.s", "db.s AS `s`", "`s`"),
        ("db.t u", "db.t AS `u`", "`u`"),
        ("`a b` AS `q`", "`a b` AS `q`", "`q`"),
        ("((SELECT 1))", "((SELECT 1)) AS `hoodie_source`", "`hoodie_source`"),
    ],
)
def test_the_source_of_a_merge(text, source, name):
    words = Words(f"{text} ON true")
    assert words.source() == (source, name)
    assert words.sees("ON")


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("SELECT db.t.a, `DB`.`t`.* FROM x AS t", "SELECT t.a, `t`.* FROM x AS t"),
        ("SELECT c.db.t.a, db.u.a, db.t, 'db.t.a'", None),
        ("SELECT f(db.t.s.a) -- db.t.a", "SELECT f(t.s.a) -- db.t.a"),
    ],
)
def test_long_names_of_tables_in_front_of_columns(text, short):
    assert with_short_names(text, [("db", "t"), ("db", "t"), ("t",)]) == (short or text)


def test_a_column_may_be_called_end_or_case():
    words = Words("(start, end, CASE WHEN end THEN (case) END, end), end")
    assert [len(part) for part in words.parts()] == [1, 1, 8, 1]
    assert words.take(",", "END")
    assert words.is_over


def test_parameters_by_their_places_get_names():
    text, names = with_named_parameters("SELECT ? AS a, '?' FROM t -- ?\nWHERE b = ?")
    assert text.replace("hoodie_parameter_", "p") == "SELECT :p0 AS a, '?' FROM t -- ?\nWHERE b = :p1"
    assert len(names) == 2


OURS = """Catalog: spark_catalog
Type: MANAGED
Provider: hoodie
Table Properties: [a.b=1, 2, primaryKey=id, provider=hoodie]
Location: file:/w/t
Schema: root
 |-- Provider: string (nullable = true)
"""


class Server:
    """Answers SHOW TABLE EXTENDED."""

    def __init__(self, *rows):
        self.rows = [dict(zip(("tableName", "isTemporary", "information"), row, strict=True)) for row in rows]
        self.texts = []

    def sql(self, text):
        self.texts.append(text)
        return self

    def collect(self):
        return self.rows


def test_entries_of_a_catalog_are_asked_for_once(monkeypatch):
    monkeypatch.setattr(hook, "_formats", {"hoodie"})
    server = Server(("t", False, OURS), ("p", False, OURS.replace("Provider: hoodie", "Provider: parquet")))
    found = entries_of(server, [("T",), ("p",), ("other", "db", "t"), ("hoodie", "/a/b"), ("parquet", "/a/b")])
    assert found == {
        ("T",): Entry("T", "file:/w/t", {"a.b": "1, 2", "primaryKey": "id", "provider": "hoodie"}),
        ("hoodie", "/a/b"): Entry("`hoodie`.`/a/b`", "/a/b", {}),
    }
    assert server.texts == ["SHOW TABLE EXTENDED LIKE 'T|p'"]


def test_a_temporary_view_hides_a_table(monkeypatch):
    monkeypatch.setattr(hook, "_formats", {"hoodie"})
    server = Server(("t", False, OURS), ("t", True, ""))
    assert entries_of(server, [("t",)]) == {}
    assert [*entries_of(server, [("spark_catalog", "d", "t")])] == [("spark_catalog", "d", "t")]
    assert server.texts[-1] == "SHOW TABLE EXTENDED IN `d` LIKE 't'"
