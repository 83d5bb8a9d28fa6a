"""Procedures and the words of statements, on tables that are open without a session."""

import json
import re
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

import hoodie
from hoodie.errors import OptionError
from pyspark_hoodie.procedure_actions import ACTIONS
from pyspark_hoodie.procedure_files import FILES
from pyspark_hoodie.procedure_shows import TIMELINE
from pyspark_hoodie.sql_call import NOT_SERVED, SHOWS, WITHOUT_TABLE, bind, in_columns, signatures
from pyspark_hoodie.sql_evolution import _assigned, _spelled_out, only
from pyspark_hoodie.sql_hook import instead
from pyspark_hoodie.sql_metadata import metadata_rows
from pyspark_hoodie.sql_words import Words, instants_as_versions, tokens_of
from tests.bootstrapped import bootstrapped

ROWS = [{"id": 1, "n": 1.0, "ts": 1, "city": "oslo"}, {"id": 2, "n": 2.0, "ts": 1, "city": "rome"}]


@pytest.fixture(params=["6", "9"])
def table(request, tmp_path):
    made = hoodie.create_table(
        tmp_path / "t",
        {"id": "int64", "n": "float64", "ts": "int64", "city": "string"},
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={"hoodie.write.table.version": request.param},
    )
    made.upsert(ROWS)
    made.upsert([{"id": 1, "n": 5.0, "ts": 2, "city": "oslo"}])
    return made


def call(table, text):
    """The rows of a call, in the types of its columns."""
    words = Words(f"CALL {text}")
    words.expect("CALL")
    (name,) = words.name("a procedure")
    signature = signatures()[name]
    given = bind(None, signature, words.parts())
    return in_columns(signature, list({**SHOWS, **ACTIONS}[name](table, given))).to_pylist()


def test_each_procedure_is_served_or_one_sentence():
    served = [*TIMELINE, *FILES, *WITHOUT_TABLE, *ACTIONS, *NOT_SERVED, "help"]
    assert sorted(served) == sorted(signatures())
    assert len(served) == 72


def test_what_is_shown_has_the_columns_of_apache_hudi(table):
    first, last = (each.instant for each in table.history())
    shown = call(table, "show_commits(table => 't')")
    assert [row["commit_time"] for row in shown] == [last, first]
    assert [row["total_files_added"] for row in shown] == [0, 2]
    assert all(row["state_transition_time"] > row["commit_time"] for row in shown)
    assert [row["num_inserts"] for row in call(table, "show_commits_metadata('t')")] == [0, 1, 1]
    for name in ("show_commit_files", "show_commit_partitions"):
        found = call(table, f"{name}('t', 10, '{first}')")
        assert [row["partition_path"] for row in found] == ["oslo", "rome"], name
    assert call(table, f"show_commit_write_stats('t', 10, '{first}')")[0]["total_records_written"] == 2
    assert [row["state"] for row in call(table, "show_timeline('t')")] == ["COMPLETED", "COMPLETED"]
    assert [row["num_delta_files"] for row in call(table, "show_fsview_latest('t')")] == [1, 0]
    assert len(call(table, "show_fsview_all(table => 't', path_regex => 'os*')")) == 1
    assert [row["instant_time"] for row in call(table, "show_logfile_metadata('t', '', '*')")] == [last]
    assert call(table, "stats_wa('t')")[-1] == {
        "commit_time": "Total", "total_upserted": 1, "total_written": 3, "write_amplification_factor": "3.00"
    }  # fmt: skip
    sizes = {row["commit_time"]: row["num_files"] for row in call(table, "stats_file_sizes('t')")}
    logs = {last: 1} if table.config.version > 6 else {}  # names of older logs have the instant of their base files
    assert sizes == {first: 3 - len(logs), **logs, "ALL": 3}
    for name in ("show_cleans", "show_cleans_metadata", "show_clean_plans", "show_rollbacks", "show_archived_commits"):
        assert call(table, f"{name}('t')") == [], name


def test_records_of_logs_are_shown_as_they_are_or_merged(table):
    table.upsert([{"id": 1, "n": 4.0, "ts": 1, "city": "oslo"}])
    for merge, values in (("false", [5.0, 4.0]), ("true", [5.0])):
        records = call(table, f"show_logfile_records('t', '', 'file:{table.uri}/oslo/*.log.*', {merge})")
        assert [json.loads(row["records"])["n"] for row in records] == values
    assert call(table, "show_logfile_records('t', '', 'rome/*.log.*')") == []


def test_markers_of_an_instant_that_is_not_pending_are_deleted(table):
    first, last = (each.instant for each in table.history())
    folder = Path(table.uri) / ".hoodie/.temp"
    for instant in (first, last, "20200101000000000"):
        (folder / instant).mkdir(parents=True)
        (folder / instant / "x.marker.CREATE").write_bytes(b"")
    assert call(table, f"delete_marker('t', '{first}')") == [{"delete_marker_result": True}]
    call(table, "delete_marker('t', '20200101000000000')")
    call(table, "delete_marker('t', '20200101000000000')")
    call(table, "delete_marker('t', '..')")
    assert [each.name for each in folder.iterdir()] == [last]
    (plan,) = call(table, "run_compaction('schedule', 't')")
    with pytest.raises(OptionError, match="is pending, and its markers say which files it wrote"):
        call(table, f"delete_marker('t', '{plan['timestamp']}')")


def test_files_of_a_bootstrap_are_shown_with_those_of_its_source(tmp_path):
    found = bootstrapped(tmp_path, "mor6_plain")
    properties = found.table / ".hoodie/hoodie.properties"
    base = f"hoodie.bootstrap.base.path={found.source}"
    properties.write_text(re.sub(r"hoodie\.bootstrap\.base\.path=.*", base, properties.read_text()))
    table = hoodie.open_table(found.table)
    mapped = call(table, "show_bootstrap_mapping(table => 't', limit => 100)")
    assert mapped
    for row in mapped:
        source = row["source_file"].removeprefix("file:")
        assert Path(source).parent == found.source / row["source_partition"]
        assert list((found.table / row["partition"]).glob(f"{row['file_id']}*_00000000000001.parquet"))
    last = max(mapped, key=lambda row: row["file_id"])
    first = call(table, "show_bootstrap_mapping(table => 't', sort_by => 'file_id', desc => true)")[0]
    assert first == last
    assert call(table, f"show_bootstrap_mapping(table => 't', file_ids => '{last['file_id']}')") == [last]
    partitions = sorted({row["partition"] for row in mapped})
    assert [row["indexed_partitions"] for row in call(table, "show_bootstrap_partitions('t')")] == partitions


def test_services_are_planned_and_run(table):
    (plan,) = call(table, "run_compaction('schedule', 't')")
    assert (plan["operation_size"], plan["state"]) == (1, "REQUESTED")
    assert call(table, "show_compaction('t')") == [plan]
    (done,) = call(table, f"run_compaction(op => 'run', table => 't', timestamp => {plan['timestamp']})")
    assert done == {**plan, "state": "COMPLETED"}
    (sorted_,) = call(table, "run_clustering(table => 't', order => 'n', show_involved_partition => true)")
    assert (sorted_["state"], sorted_["involved_partitions"]) == ("COMPLETED", "oslo,rome")
    assert [row["timestamp"] for row in call(table, "show_clustering('t')")] == [sorted_["timestamp"]]
    (clean,) = call(table, "run_clean(table => 't', retain_commits => 1)")
    assert [row["clean_time"] for row in call(table, "show_cleans('t')")] == [clean["start_clean_time"]]
    with pytest.raises(OptionError, match="op is schedule, execute"):
        call(table, "run_compaction('later', 't')")
    with pytest.raises(OptionError, match="1 is not pending; pending are none"):
        call(table, "run_clustering(table => 't', instants => '1')")


def test_commits_are_undone_and_shown(table):
    last = table.history()[-1].instant
    assert call(table, f"rollback_to_instant('t', '{last}')") == [{"rollback_result": True}]
    (undone,) = call(table, "show_rollbacks('t')")
    assert undone["rollback_instant"] == last
    details = call(table, f"show_rollback_detail('t', 10, '{undone['instant']}')")
    assert all(row["rollback_instant"] == f"[{last}]" for row in details)
    assert "Rolled back " + last in [row["rollback_info"] for row in call(table, "show_timeline('t')")]


def test_the_metadata_table_is_made_shown_and_compared(table):
    call(table, "create_metadata_table('t')")
    table.build_index("column_stats")
    opened = hoodie.open_table(table.uri)
    assert [row["partition"] for row in call(opened, "show_metadata_table_partitions('t')")] == ["oslo", "rome"]
    assert len(call(opened, "show_metadata_table_files(table => 't', partition => 'oslo')")) == 2
    assert call(opened, "validate_metadata_table_files('t')") == []
    bounds = call(opened, "show_metadata_table_column_stats(table => 't', targetColumns => 'n')")
    assert [(row["min_value"], row["null_number"]) for row in bounds] == [("1.0", 0), ("2.0", 0)]
    found = metadata_rows(opened).to_pylist()
    assert {row["type"] for row in found} >= {1, 2, 3}
    assert {row["key"] for row in found if row["type"] == 2} == {"oslo", "rome"}
    call(opened, "delete_metadata_table('t')")
    with pytest.raises(OptionError, match="CALL create_metadata_table makes one"):
        call(hoodie.open_table(table.uri), "show_metadata_table_partitions('t')")


CALLS = {
    "show_commits()": "needs the parameter table",
    "show_commits('t', 'many')": "limit is of type int, and 'many' is none",
    "show_commits('t', 1, 2)": "takes 2 parameters at most",
    "show_commits(tabel => 't')": "has no parameter tabel: it takes table, limit",
    "show_commits('t', table => 't')": "names the parameter table twice",
    "run_compaction('run', options => 'a')": "options are key=value",
}


@pytest.mark.parametrize("text", CALLS)
def test_wrong_parameters_are_one_sentence(text):
    with pytest.raises(OptionError, match=CALLS[text]):
        call(None, text)


def test_clients_of_connect_are_told_what_to_do_instead():
    changes = instead("select * from hudi_table_changes('t', 'latest_state', 'earliest')", has_catalog=False)
    assert changes is not None
    assert "HoodieTable.for_path" in changes


def test_words_are_found_beside_comments_texts_and_cases():
    text = "a -- it's\n, `b``c`.d /* ( */ (CASE WHEN 'x''y' = \"(\" THEN 1.5e3 END) => 2;"
    found = tokens_of(text)
    assert [token.text for token in found][:5] == ["a", ",", "`b``c`", ".", "d"]
    assert found[2].name == "b`c"
    assert [token.depth for token in found if token.text in ("(", "CASE", "THEN", "END", ")", "=>")] == [
        0,
        1,
        2,
        1,
        0,
        0,
    ]


MERGE = (
    "t USING (SELECT 1 AS id, 2 AS a) AS s ON t.id = s.id WHEN MATCHED AND s.b = 1 THEN UPDATE SET t.a = s.x, n = CASE WHEN c = 1 "
    "THEN 2 END WHEN NOT MATCHED THEN INSERT (id, `d`) VALUES (s.id, e)"
)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("FROM t TIMESTAMP AS OF '20260131120000000' x", "FROM t VERSION AS OF '20260131120000000' x"),
        ("FROM t FOR system_time as of 20260131120000", "FROM t FOR VERSION AS OF '20260131120000'"),
        ('a timestamp AS OF "20260131120000000"; b', "a VERSION AS OF '20260131120000000'; b"),
        ("FROM t TIMESTAMP AS OF '2026-01-31'", None),
        ("FROM t VERSION AS OF '20260131120000000'", None),
        ("SELECT 'TIMESTAMP AS OF 20260131120000000'", None),
        ("FROM t -- TIMESTAMP AS OF '20260131120000000'", None),
    ],
)
def test_instants_after_timestamp_as_of_are_versions(given, made):
    assert instants_as_versions(given) == (made or given)


def test_columns_that_a_merge_assigns():
    words = Words(MERGE)
    words.at = words.find("WHEN")
    assert _assigned(words, ["db", "t"]) == {("id",), ("a",), ("d",), ("n",)}
    words = Words(
        "WHEN MATCHED THEN UPDATE SET db.t.S.b.`C` = s.c WHEN NOT MATCHED THEN INSERT (id, s.a, end) VALUES (1, 2, 3)"
    )
    assert _assigned(words, ["db", "t"]) == {("s", "b", "c"), ("id",), ("s", "a"), ("end",)}


def test_fields_of_a_source_that_a_merge_assigns():
    whole = StructType().add("z", "integer").add("w", "integer")
    fields = (
        StructType()
        .add("a", "integer")
        .add("s", StructType().add("x", "integer").add("Y", whole))
        .add("b", whole)
        .fields
    )
    assert only(fields, None) == fields
    found = only(fields, {("s", "y", "w"), ("b",), ("a", "x"), ("s", "no"), ("no",)})
    assert (
        found == StructType().add("s", StructType().add("Y", StructType().add("w", "integer"))).add("b", whole).fields
    )


def test_stars_are_spelled_out():
    words = Words("WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.a * 2 > 1 THEN INSERT *")
    assert _spelled_out(words, 0, ["id", "a"], "s") == (
        "WHEN MATCHED THEN UPDATE SET `id` = s.`id`, `a` = s.`a` WHEN NOT MATCHED AND s.a * 2 > 1 THEN INSERT (`id`, `a`) "
        "VALUES (s.`id`, s.`a`)"
    )
