"""How a job reaches its tables: options of a read or write, then the Hadoop settings of its session, then the environment.

Executors get what was found with the storage that they are handed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from hoodie.storage.base import Storage
from hoodie.storage.hdfs_client import DEFAULT_FS, OPTION_PREFIXES
from hoodie.storage.uri import OBJECT_STORES, open_storage, scheme_of

Setting = Callable[[str], str | None]
"""What the session says under a name of Hadoop's."""

_S3A = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint.region": "aws_region",
}
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_GOOGLE_KEYFILES = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
_AZURE = {
    "fs.azure.account.key": "azure_storage_account_key",
    "fs.azure.sas.fixed.token": "azure_storage_sas_key",
    "fs.azure.account.oauth2.client.id": "azure_client_id",
    "fs.azure.account.oauth2.client.secret": "azure_client_secret",
}
_AZURE_LOGIN = "fs.azure.account.oauth2.client.endpoint"


def reached(
    path: str, options: Mapping[str, str] | None = None, spark: SparkSession | None = None
) -> tuple[Storage, dict[str, str]]:
    """The storage at a path, and those of the options that do not say how to reach it.

    Args:
        spark: the session, where there is one: workers that Spark starts have none.

    Raises:
        OptionError, UnsupportedTableError: as `open_storage` does.
    """
    scheme = scheme_of(path)
    how, others = split_options(scheme, options or {})
    return open_storage(path, {**session_options(spark, path), **how} or None), others


def session_options(spark: SparkSession | None, path: str) -> dict[str, str]:
    """The storage options that the session says."""
    scheme = scheme_of(path)
    is_asked = scheme in OBJECT_STORES or scheme == "hdfs"
    return session_settings(scheme, path, settings_of(spark)) if spark is not None and is_asked else {}


def split_options(scheme: str | None, options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options of the storage, in small letters, and the others."""
    if scheme in OBJECT_STORES:
        prefixes: tuple[str, ...] = (f"{OBJECT_STORES[scheme]}_",)
    else:
        prefixes = OPTION_PREFIXES if scheme == "hdfs" else ()
    how = {name.lower(): value for name, value in options.items() if name.lower().startswith(prefixes)}
    return how, {name: value for name, value in options.items() if name.lower() not in how}


def settings_of(spark: SparkSession) -> Setting:
    """The session's Hadoop settings: `spark.hadoop.*`, and in a classic session those of `core-site.xml`, too."""
    session: Any = spark
    if hasattr(session, "_jsparkSession"):
        hadoop = session._jsparkSession.sessionState().newHadoopConf()
        result: Setting = hadoop.getTrimmed
        return result
    return lambda name: session.conf.get(f"spark.hadoop.{name}", None)


def session_settings(scheme: str | None, path: str, setting: Setting) -> dict[str, str]:
    """The storage options that correspond to what Hadoop's file systems are told."""
    kind = OBJECT_STORES.get(scheme or "")
    container, _, host = path.partition("://")[2].partition("/")[0].partition("@")
    if scheme == "hdfs" and not container:
        default = setting(DEFAULT_FS)
        # Hadoop itself says file:/// where nobody set it. Small letters, as the options that go before it have.
        return {DEFAULT_FS.lower(): default} if default and default.lower().startswith("hdfs:") else {}
    match kind:
        case "aws":
            return _of_s3a(container, setting)
        case "google":
            keyfile = next(filter(None, map(setting, _GOOGLE_KEYFILES)), None)
            return {} if keyfile is None else {"google_service_account": keyfile}
        case "azure":
            return _of_azure(container, host, setting)
    return {}


def _of_s3a(bucket: str, setting: Setting) -> dict[str, str]:
    """Settings of a bucket go before those of all."""

    def ask(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    result = {ours: value for name, ours in _S3A.items() if (value := ask(name))}
    if endpoint := ask("endpoint"):
        secure = (ask("connection.ssl.enabled") or "true").lower() == "true"
        at = endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}"
        # Without one S3A takes the public address, for which obstore wants to know the region and not the address.
        result |= {} if at.endswith("://s3.amazonaws.com") else {"aws_endpoint": at}
    if _ANONYMOUS in (ask("aws.credentials.provider") or ""):
        result["aws_skip_signature"] = "true"
    return result


def _of_azure(container: str, host: str, setting: Setting) -> dict[str, str]:
    """Settings of the account, which the address names behind the container, go before those of all."""

    def ask(name: str) -> str | None:
        return (setting(f"{name}.{host}") if host else None) or setting(name)

    result = {ours: value for name, ours in _AZURE.items() if (value := ask(name))}
    if login := ask(_AZURE_LOGIN):
        # https://login.microsoftonline.com/<tenant>/oauth2/token
        result["azure_tenant_id"] = login.partition("://")[2].split("/")[1]
    if result and host:
        result["azure_storage_account_name"] = host.partition(".")[0]
    return result
