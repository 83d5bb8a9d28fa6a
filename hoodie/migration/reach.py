"""How the libraries of Delta and Iceberg are told to reach the bucket that hoodie reaches by its storage options."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.storage.base import Storage
from hoodie.storage.object_store import ObjectStorage

_AS_PYICEBERG_SAYS = {
    "aws_endpoint": "s3.endpoint",
    "aws_endpoint_url": "s3.endpoint",
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "aws_region": "s3.region",
    "azure_storage_account_name": "adls.account-name",
    "azure_storage_account_key": "adls.account-key",
}


def options_of(storage: Storage) -> dict[str, str]:
    """Options by which the storage was reached, those of the environment among them. deltalake has the same names."""
    return dict(storage.how) if isinstance(storage, ObjectStorage) else {}


def for_pyiceberg(storage: Storage) -> dict[str, str]:
    return {
        _AS_PYICEBERG_SAYS[name]: value for name, value in options_of(storage).items() if name in _AS_PYICEBERG_SAYS
    }


def from_pyiceberg(properties: Mapping[str, str]) -> dict[str, str]:
    """Storage options for what a catalog said of reaching its table."""
    ours = {theirs: name for name, theirs in reversed(_AS_PYICEBERG_SAYS.items())}
    return {ours[name]: value for name, value in properties.items() if name in ours}
