"""Kafka Connect's JSON with its schema, `{"schema": …, "payload": …}`: the payload is what counts.

The schemas are left unread: they are most of the bytes, and defaults of several types in them fit no column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_WRAPPED = re.compile(rb'\s*\{\s*"(schema|payload)"\s*:')
_BEFORE_PAYLOAD = b',"payload":'


def unwrapped(values: Sequence[bytes]) -> list[bytes]:
    """The payloads of such values, others as they are."""
    return [_payload(value) if _WRAPPED.match(value) else value for value in values]


def _payload(value: bytes) -> bytes:
    head, _, payload = value.rstrip().partition(_BEFORE_PAYLOAD)
    is_first = head.startswith(b'{"schema":') and head.count(b"{") - head.count(b"}") == 1
    if is_first and payload.startswith(b"{") and payload.endswith(b"}}"):
        return payload[:-1]  # as Connect writes it
    try:
        parsed = json.loads(value)
    except ValueError:
        return value  # as it is it is a bad one
    return json.dumps(parsed["payload"]).encode() if parsed.keys() == {"schema", "payload"} else value
