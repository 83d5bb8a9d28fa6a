"""The forms in which S3 announces a file, and what is none of them."""

import json

import pytest

from hoodie.ingestion.notifications import objects_of

RECORD = {
    "eventName": "ObjectCreated:Put",
    "eventTime": "2026-01-31T12:00:00.500Z",
    "s3": {"bucket": {"name": "lake"}, "object": {"key": "new+day%3D1/a%2Bb.json", "size": 7, "sequencer": "00A1"}},
}
DETAIL = {
    "detail-type": "Object Created",
    "time": "2026-01-31T12:00:00Z",
    "detail": {"bucket": {"name": "lake"}, "object": {"key": "a+b.json", "size": 7, "sequencer": "00A1"}},
}


NAMED = (
    '{"Records": [{"eventName": "ObjectCreated:Put", "eventTime": "2026-01-31T12:00:00Z", '
    '"s3": {"bucket": {"name": %s}, "object": {"key": "a/b.json", "size": %s}}}]}'
)


def told(message):
    return objects_of(json.dumps(message))


def test_a_message_of_s3_names_each_file():
    other = {**RECORD, "s3": {**RECORD["s3"], "object": {"key": "b.json", "size": 1, "sequencer": "00A2"}}}
    first, second = told({"Records": [RECORD, other]})
    assert first.name == "lake/new day=1/a+b.json"
    assert (first.size_bytes, first.time_ms) == (7, 1_769_860_800_500)
    assert second.version > first.version


def test_sns_wraps_the_message():
    assert told({"Type": "Notification", "Message": json.dumps({"Records": [RECORD]})}) == told({"Records": [RECORD]})


def test_eventbridge_does_not_encode_the_name():
    assert [new.name for new in told(DETAIL)] == ["lake/a+b.json"]


def test_sequencers_are_numbers_of_any_length():
    def version(sequencer):
        entry = {**RECORD["s3"]["object"], "sequencer": sequencer}
        return told({"Records": [{**RECORD, "s3": {**RECORD["s3"], "object": entry}}]})[0].version

    assert version("9") < version("0A") < version("1AB") < version("FFFF")


@pytest.mark.parametrize(
    "message",
    [
        {"Service": "Amazon S3", "Event": "s3:TestEvent"},
        {"Records": []},
        {"Records": [{**RECORD, "eventName": "ObjectRemoved:Delete"}]},
        {**DETAIL, "detail-type": "Object Deleted"},
    ],
    ids=["test", "none", "removed", "deleted"],
)
def test_other_events_name_no_file(message):
    assert told(message) == ()


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        NAMED % ("7", "1"),
        NAMED % ('"lake"', "1e999"),
        "",
        "nonsense",
        "[]",
        "3",
        "{}",
        '{"Message": "x"}',
        '{"Records": 3}',
        '{"Records": [{}]}',
        "null",
    ],
)
def test_what_is_no_notification_is_an_error(body):
    with pytest.raises(ValueError, match="no notification of S3"):
        objects_of(body)
