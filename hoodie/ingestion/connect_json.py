"""Kafka Connect's JSON with its schema, `{"schema": …, "payload": …}`: the payload is what counts, and what types its row has.

The schemas are most of the bytes, and alike: each is read once, and what it says of the row goes with the payload
(`connect_types.TYPES`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress

from hoodie.ingestion.connect_types import TYPES, described

_WRAPPED = re.compile(rb'\s*\{\s*"(schema|payload)"\s*:')
_BEFORE_SCHEMA, _BEFORE_PAYLOAD = b'{"schema":', b',"payload":'


def unwrapped(values: Sequence[bytes]) -> list[bytes]:
    """The payloads of such values, others as they are."""
    known: dict[bytes, bytes] = {}
    return [_payload(value, known) if _WRAPPED.match(value) else value for value in values]


def _payload(value: bytes, known: dict[bytes, bytes]) -> bytes:
    head, _, payload = value.rstrip().partition(_BEFORE_PAYLOAD)
    is_first = head.startswith(_BEFORE_SCHEMA) and head.count(b"{") - head.count(b"}") == 1
    if is_first and payload.startswith(b"{") and payload.endswith(b"}}"):  # as Connect writes it
        if head not in known:
            known[head] = _first_member(head.removeprefix(_BEFORE_SCHEMA))
        return b"{" + known[head] + payload[1:-1] if known[head] else payload[:-1]
    try:
        parsed = json.loads(value)
    except ValueError:
        return value  # as it is it is a bad one
    if parsed.keys() != {"schema", "payload"}:
        return value
    inner, types = parsed["payload"], described(parsed["schema"])
    return json.dumps({TYPES: types, **inner} if types and isinstance(inner, dict) else inner).encode()


def _first_member(schema: bytes) -> bytes:
    """What the payload gets in front of its members."""
    types = ""
    with suppress(ValueError):  # the payload is read all the same
        types = described(json.loads(schema))
    return f"{json.dumps(TYPES)}:{json.dumps(types)},".encode() if types else b""
