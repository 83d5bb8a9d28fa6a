"""All that is wrong with the options of a call is said in one error."""

import pytest

import hoodie
from hoodie.errors import OptionError
from hoodie.options.parse import parse_read_options, parse_view_options, parse_write_options

JOB = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.index.type": "FLINK_STATE",
    "hoodie.write.lock.provider": "org.apache.hudi.example.LockProvider",
    "hoodie.precommit.validators": "a.B",
    "hoodie.errortable.enable": "true",
    "hoodie.write.table.version": "7",
    "hoodie.datasource.write.operaton": "upsert",
    "fare": "x",
    "hoodie.keep.min.commits": "30",
    "hoodie.python.stream.id": "s",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.payload.delete.field": "op",
}
SAID = (
    "is no lock provider that is known",
    *("hoodie.index.type='FLINK_STATE'", "hoodie.precommit.validators='a.B'", "hoodie.errortable.enable"),
    *("hoodie.write.table.version='7'", "did you mean 'hoodie.datasource.write.operation'", "unknown option 'fare'"),
    *("hoodie.keep.max.commits=30 has to be more", "hoodie.python.stream.batch go together", "about the merge mode"),
    "hoodie.payload.delete.marker beside it",
)  # fmt: skip


def refusal(parse, options, error=OptionError, **more):
    with pytest.raises(error) as caught:
        parse(options, **more)
    return str(caught.value)


def test_one_error_says_all_that_is_wrong_with_a_job():
    message = refusal(parse_write_options, JOB)
    assert [said for said in SAID if said not in message] == []
    first, *lines = message.splitlines()
    assert first == "several things are wrong with the options:"
    assert len(lines) == len(SAID)
    assert all(line.startswith("  ") for line in lines)
    assert "is no lock provider that is known" in refusal(
        parse_write_options, {"fare": "x"}, defaults={"hoodie.write.lock.provider": "etcd"}
    )


def test_every_fault_of_a_job_is_gone_after_one_try():
    wrong = {name for name in JOB if name in refusal(parse_write_options, JOB)}
    parse_write_options({name: text for name, text in JOB.items() if name not in wrong})


def test_the_embedded_doors_say_all_of_it(tmp_path):
    with pytest.raises(OptionError, match=r"(?s)FLINK_STATE.*unknown option 'fare'"):
        hoodie.create_table(tmp_path / "t", {"id": "int64"}, record_key="id", options=JOB)
    table = hoodie.create_table(tmp_path / "t", {"id": "int64"}, record_key="id")
    for call in (table.upsert, table.insert, table.delete):
        with pytest.raises(OptionError, match=r"(?s)FLINK_STATE.*a\.B.*unknown option 'fare'"):
            call({"id": [1]}, options=JOB)
    assert len(table.history()) == 0


def test_one_fault_is_said_as_it_is():
    assert refusal(parse_write_options, {"fare": "x"}) == "unknown option 'fare'"
    refusal(parse_write_options, {"hoodie.write.table.version": "7"})


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.keep.max.commits": "x", "hoodie.keep.min.commits": "40"},
        {"hoodie.python.stream.id": "s", "hoodie.python.stream.batch": "-1"},
        {"hoodie.cleaner.policy": "x", "hoodie.clustering.plan.partition.filter.mode": "x"},
        {"hoodie.datasource.write.keygenerator.type": "SIMPEL", "hoodie.datasource.write.keygenerator.class": "a.B"},
    ],
)
def test_what_follows_from_a_bad_value_is_no_fault_of_its_own(options):
    lines = refusal(parse_write_options, options).splitlines()
    bad = [name for name, text in options.items() if text in ("x", "-1", "SIMPEL", "a.B")]
    assert len(lines) == (1 if len(bad) == 1 else 1 + len(bad))
    assert all(any(f"option {name}=" in line for line in lines) for name in bad)


def test_reads_and_views_say_all_of_it():
    options = {
        "hoodie.datasource.query.type": "incremental",
        "as.of.instant": "yesterdy",
        "hoodie.datasource.read.end.instanttime": "x",
        "hoodie.datasource.read.paths": "/a",
        "hoodie.filesystem.view.remote.port": "x",
        "fare": "1",
    }
    message = refusal(parse_read_options, options)
    assert [name for name in options if name not in message] == ["hoodie.datasource.query.type"]
    assert len(message.splitlines()) == 1 + 6
    views = {"hoodie.filesystem.view.type": "x", "hoodie.filesystem.view.remote.port": "x", "fare": "1"}
    assert len(refusal(parse_view_options, views).splitlines()) == 3
