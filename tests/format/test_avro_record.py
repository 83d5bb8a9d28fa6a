"""One Avro record by fastavro."""

import io

import fastavro
import pytest

from hoodie.format.avro_record import read_record, write_record

SCHEMA = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "a", "type": "long", "default": 1}]})


def test_a_value_comes_back():
    assert read_record(io.BytesIO(write_record(SCHEMA, {"a": -7})), SCHEMA) == {"a": -7}


def test_strict_records_have_the_fields_of_the_schema():
    assert write_record(SCHEMA, {"a": 1}, strict=True) == write_record(SCHEMA, {}, strict=True)
    with pytest.raises(ValueError, match="more"):
        write_record(SCHEMA, {"a": 1, "more": 2}, strict=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("name", ["schemaless_writer", "schemaless_reader"])
def test_what_fastavro_goes_on_after_comes_out_as_itself(name, error, monkeypatch):
    def goes_on(*_, **__):
        raise SystemError("<cyfunction _validate> returned a result with an exception set") from error()

    monkeypatch.setattr(fastavro, name, goes_on)
    with pytest.raises(error):
        write_record(SCHEMA, {"a": 1}) if name == "schemaless_writer" else read_record(io.BytesIO(b"\x02"), SCHEMA)


def test_any_other_failure_of_the_interpreter_stays(monkeypatch):
    def fails(*_, **__):
        raise SystemError("bad call")

    monkeypatch.setattr(fastavro, "schemaless_reader", fails)
    with pytest.raises(SystemError, match="bad call"):
        read_record(io.BytesIO(b"\x02"), SCHEMA)
