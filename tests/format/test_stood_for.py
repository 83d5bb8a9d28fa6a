"""What a commit says of the log files that the output of a log compaction stands for: round trip, and what is damaged says nothing."""

import json

import pytest

from hoodie.model.enums import WriteOperation
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.view.commit_files import LOG_COMPACTED, format_stood_for, stood_for

STAT = WriteStat("f", "p", "p/.f.log.4", log_version=4, log_files=(".f.log.1", ".f.log.2", ".f.log.3", ".f.log.4"))


def metadata(extra, operation=WriteOperation.LOG_COMPACT):
    return CommitMetadata(operation, {"p": (STAT,)}, extra=extra)


def test_all_logs_of_the_slice_but_those_that_are_named():
    said = format_stood_for({STAT.path: [".f.log.2"]})
    assert stood_for(metadata(said), "p") == {STAT.path: (".f.log.1", ".f.log.3")}
    assert stood_for(metadata(format_stood_for({STAT.path: []})), "p")[STAT.path] == STAT.log_files[:3]
    assert stood_for(metadata(said), "q") == {}
    assert stood_for(metadata(said, WriteOperation.UPSERT), "p") == {}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", json.dumps({STAT.path: "x"}), json.dumps({STAT.path: [1]}), json.dumps({"other": []})],
)
def test_nothing_is_known_where_the_entry_is_damaged_or_of_another_file(text):
    assert stood_for(metadata({LOG_COMPACTED: text}), "p") == {STAT.path: ()}
    assert stood_for(metadata({}), "p") == {STAT.path: ()}
