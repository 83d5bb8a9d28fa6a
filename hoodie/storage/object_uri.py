"""`s3://`, `gs://` and `az://` with the options that say how to reach them -> ObjectStorage.

Options have obstore's names, which are those of the environment (`AWS_ACCESS_KEY_ID`) in small letters. An option comes first.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Any

from hoodie.errors import OptionError
from hoodie.storage.object_store import ObjectStorage

_CLIENT = frozenset(
    (
        *(
            "allow_http",
            "allow_invalid_certificates",
            "connect_timeout",
            "http1_only",
            "http2_only",
            "pool_idle_timeout",
        ),
        *(
            "pool_max_idle_per_host",
            "proxy_url",
            "proxy_ca_certificate",
            "proxy_excludes",
            "root_certificate",
            "timeout",
        ),
        *("randomize_addresses", "read_timeout", "user_agent"),
    )
)
"""Options of the HTTP client, for every kind of store."""
_READ_AS = {"s3n": "s3", "s3a": "s3", "gcs": "gs", "wasb": "abfs", "wasbs": "abfss"}
_SHORTEST_SECRET = 4


def open_object_store(uri: str, scheme: str, prefix: str, options: Mapping[str, str]) -> ObjectStorage:
    """The storage of the objects below a bucket's folder; `prefix` is that of the options of this kind of store.

    Raises:
        OptionError: the package for object stores is not installed; no bucket or folder is named, or credentials with it; the
            store knows no such option, or it misfits.
    """
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an optional extra
        from obstore.store import from_url  # noqa: PLC0415
    except ImportError as exc:
        raise OptionError(f"{uri} lies in an object store, and reaching one needs: pip install 'hoodie[s3]'") from exc
    bucket, _, folder = uri.partition("://")[2].partition("/")
    before, at, host = bucket.rpartition("@")
    if at and (prefix != "azure" or ":" in before or "@" in before):  # not shown: it is mostly a key with its secret
        raise OptionError(
            f"an address takes no credentials: write {scheme}://{host}/{folder}, and give them as storage options such as "
            f"{prefix}_{_COMMON[prefix][0]}, or in the environment"
        )
    if not bucket or not folder.strip("/"):
        raise OptionError(f"{uri!r} names no folder in a bucket: write {scheme}://bucket/folder")
    client: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for name, value in {**_environment(prefix), **options}.items():
        short = name.lower().removeprefix(f"{prefix}_")
        (client if short in _CLIENT else config)[short if short in _CLIENT else _as_obstore_says(name.lower())] = value
    if f"{prefix}_endpoint" in config:
        config.pop(f"{prefix}_endpoint_url", None)
    endpoint = next((str(value) for name, value in config.items() if "endpoint" in name), "")
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", "true")
    at = f"{_READ_AS.get(scheme, scheme)}://{bucket}/{folder.strip('/')}"
    make: Any = from_url
    try:
        store = make(at, config=config or None, client_options=client or None)
        once = make(at, config=config or None, client_options=client or None, retry_config={"max_retries": 0})
    except (BaseError, ValueError, TypeError) as exc:
        raise OptionError(_misfit(uri, prefix, config, str(exc).partition("\n")[0])) from None
    return ObjectStorage(uri, store, once, endpoint=endpoint, place=at, how={**client, **config})


def _as_obstore_says(name: str) -> str:
    """Azure's options begin with `azure_storage_` or with `azure_`, and some are known by one of the two only."""
    short = name.removeprefix("azure_").removeprefix("storage_")
    if not name.startswith("azure_") or short not in _AZURE_BEGINS:
        return name
    return f"{_AZURE_BEGINS[short]}_{short}"


_AZURE_BEGINS = {
    **dict.fromkeys(("account_name", "account_key", "sas_key", "sas_token", "use_emulator"), "azure_storage"),
    **dict.fromkeys(("use_azure_cli", "federated_token_file"), "azure"),
}


def _environment(prefix: str) -> dict[str, str]:
    """What the environment says of reaching such a store, as options: other processes of the job may have another one.

    What changes while a job runs (roles, tokens in files) is left to obstore, which asks for it wherever it runs.
    """
    names = (*_COMMON[prefix], "allow_http", "default_region", "endpoint_url")
    prefixes = (prefix, "azure_storage") if prefix == "azure" else (prefix,)
    options = {f"{each}_{name}" for each in prefixes for name in names}
    return {name.lower(): value for name, value in os.environ.items() if name.lower() in options and name.isupper()}


def _misfit(uri: str, prefix: str, config: Mapping[str, Any], reason: str) -> str:
    """The error without any value of an option: one may be a secret."""
    for value in map(str, config.values()):
        reason = reason.replace(value, "…") if len(value) >= _SHORTEST_SECRET else reason
    hints = []
    for name in config:
        near = difflib.get_close_matches(name.removeprefix(f"{prefix}_"), _COMMON[prefix], n=1)
        if near and name.removeprefix(f"{prefix}_") != near[0]:
            hints.append(f" For {name!r}, did you mean {prefix}_{near[0]!s}?")
    names = ", ".join(sorted(config)) or "of the environment"
    return f"cannot reach {uri} with the storage options {names}: {reason}.{''.join(hints)}"


_COMMON = {
    "aws": (
        *("access_key_id", "secret_access_key", "session_token", "region", "endpoint", "skip_signature"),
        *(
            "virtual_hosted_style_request",
            "imdsv1_fallback",
            "server_side_encryption",
            "sse_kms_key_id",
            "request_payer",
        ),
    ),
    "google": ("service_account", "service_account_key", "application_credentials", "skip_signature", "base_url"),
    "azure": (
        *("account_name", "account_key", "client_id", "client_secret", "tenant_id", "sas_key", "endpoint"),
        *("use_emulator", "use_azure_cli", "authority_host", "federated_token_file"),
    ),
}
"""Options that are often given, for hints."""
