"""A request to list a bucket, made into one for short pages: signed anew, since its query is."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, quote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

_REPLACED = ("authorization", "x-amz-date", "x-amz-content-sha256")
_PLAIN = "-_.~"
"""What the signature leaves as it is."""


def short_page(
    path: str, headers: Mapping[str, str], options: Mapping[str, str], keys: int
) -> tuple[str, dict[str, str]]:
    """The path and the headers of a request for at most so many keys; `options` are the credentials of `S3Server`."""
    kept = {name: value for name, value in headers.items() if name.lower() not in _REPLACED}
    host = next(value for name, value in kept.items() if name.lower() == "host")
    folder, _, query = path.partition("?")
    words = [*parse_qsl(query, keep_blank_values=True), ("max-keys", str(keys))]
    written = "&".join(f"{quote(name, safe=_PLAIN)}={quote(value, safe=_PLAIN)}" for name, value in words)
    asked = AWSRequest("GET", f"http://{host}{folder}?{written}", headers={"host": host})
    who = Credentials(options["aws_access_key_id"], options["aws_secret_access_key"])
    S3SigV4Auth(who, "s3", options["aws_region"]).add_auth(asked)
    return f"{folder}?{written}", {**kept, **dict(asked.headers.items())}
