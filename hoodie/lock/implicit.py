"""The name of a lock that Apache Hudi makes of the table's address, where the options name none."""

from __future__ import annotations

from hoodie.hashes.xxhash64 import xxhash64


def implicit_name(uri: str) -> str:
    """The same for s3 and s3a, and with or without a slash at the end."""
    scheme, colon, rest = uri.partition("://")
    return f"{xxhash64(f's3://{rest}'.rstrip('/') if colon and scheme.lower() == 's3a' else uri.rstrip('/')):016X}"
