"""The order of keys. Data files hold bytes in lexicographic order, so an order is a way to write keys as bytes that sort so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.kv.binary import KEYS, Binary, listed


class KeyOrder(NamedTuple):
    name: str
    encode: Callable[[bytes], bytes] | None = None
    decode: Callable[[bytes], bytes] | None = None

    def stored(self, key: bytes) -> bytes:
        return key if self.encode is None else self.encode(key)

    def stored_many(self, keys: Binary) -> pa.Array:
        return keys if self.encode is None else pa.array(map(self.encode, listed(keys)), KEYS, size=len(keys))

    def shown_many(self, keys: Binary) -> pa.Array:
        return keys if self.decode is None else pa.array(map(self.decode, listed(keys)), KEYS, size=len(keys))


def _long(key: bytes) -> bytes:
    if len(key) != 8:
        raise OptionError(
            f"a key in the order of integers has 8 bytes, not {len(key)}: int.to_bytes(8, 'little', signed=True)"
        )
    return (int.from_bytes(key, "little", signed=True) + 2**63).to_bytes(8, "big")


def _long_back(key: bytes) -> bytes:
    return (int.from_bytes(key, "big") - 2**63).to_bytes(8, "little", signed=True)


_TURNED = bytes(255 - each for each in range(256))


def _turned(key: bytes) -> bytes:
    """So that longer keys come before their beginnings: an end mark that is greater than any byte that could follow."""
    return b"".join(b"\x00" + each.to_bytes(1, "big") for each in key.translate(_TURNED)) + b"\x01"


def _turned_back(key: bytes) -> bytes:
    return key[1:-1:2].translate(_TURNED)


LEXICOGRAPHIC = KeyOrder("lexicographic")
_orders = {
    order.name: order
    for order in (
        LEXICOGRAPHIC,
        KeyOrder("descending", _turned, _turned_back),
        KeyOrder("int64", _long, _long_back),
    )
}


def register_order(order: KeyOrder) -> None:
    """Make an order known to this process, by its name, which the store keeps.

    `encode` gives bytes for a key so that these, compared as bytes, come in the order of the keys; `decode` gives the key back.
    """
    candidate: Any = order
    parts: Any = tuple(candidate) if isinstance(candidate, KeyOrder) else None
    if parts is None or not isinstance(parts[0], str) or not all(each is None or callable(each) for each in parts[1:]):
        raise OptionError(f"register_order takes a KeyOrder with a name and two functions, not {candidate!r:.80}")
    if order.name in _orders:
        raise OptionError(f"there is an order {order.name!r} already")
    _orders[order.name] = order


def order_named(name: str) -> KeyOrder:
    result = _orders.get(name)
    if result is None:
        raise OptionError(
            f"order {name!r} is not known; known are {', '.join(_orders)}, and hoodie.kv.register_order makes others known"
        )
    return result
