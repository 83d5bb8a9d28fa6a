"""One Avro record without a container, by fastavro."""

from __future__ import annotations

import io
from typing import Any

import fastavro
from fastavro.types import Schema


def write_record(schema: Schema, value: object, *, strict: bool = False) -> bytes:
    """The bytes of a value. `strict`: a field may be left out only where the schema has a default, and none may be added.

    Raises:
        What fastavro raises on a value that does not fit.
    """
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, schema, value, strict_allow_default=strict)
    except SystemError as exc:
        raise _itself(exc) from None
    return body.getvalue()


def read_record(stream: io.BytesIO, writer: Schema, reader: Schema | None = None) -> Any:
    """The next record in the stream, resolved to the reader's schema where one is given.

    Raises:
        What fastavro raises on bytes that are no value of the schema.
    """
    try:
        return fastavro.schemaless_reader(stream, writer, reader)
    except SystemError as exc:
        raise _itself(exc) from None


def _itself(error: SystemError) -> BaseException:
    """A Ctrl-C in some type checks of fastavro comes out as a SystemError: Python's word for a C function that went on after it."""
    return error.__cause__ or error
