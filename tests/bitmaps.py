"""Roaring bitmaps of log blocks, read by the format's specification."""

import base64
import struct


def decoded(text):
    """By https://github.com/RoaringBitmap/RoaringFormatSpec, without run containers."""
    data = base64.b64decode(text)
    maps, high, cookie, count = struct.unpack_from("<qiii", data)
    assert (maps, high, cookie) == (1, 0, 12346)
    body, found = data[12:], []
    heads = [struct.unpack_from("<HH", body, 8 + 4 * n) for n in range(count)]
    offsets = struct.unpack_from(f"<{count}I", body, 8 + 4 * count)
    for (key, less_one), offset in zip(heads, offsets, strict=True):
        if less_one < 4096:
            low = list(struct.unpack_from(f"<{less_one + 1}H", body, offset))
            end = offset + 2 * len(low)
        else:
            bits = int.from_bytes(body[offset : offset + 8192], "little")
            low = [n for n in range(1 << 16) if bits >> n & 1]
            end = offset + 8192
        assert len(low) == less_one + 1
        found += [(key << 16) + n for n in low]
    assert end == len(body)
    return found
