"""Services of AWS beside the storage: how they are reached, and what the Glue catalog is told beside what counts for all catalogs."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.options.option import group, key, option, shared
from hoodie.options.values import boolean, text

_GLUE = "hoodie.datasource.meta.sync.glue."


@dataclass(frozen=True)
class AwsOptions:
    access_key: str | None = option("hoodie.aws.access.key", text("an access key"), None)
    """AWS access key for DynamoDB's lock and the Glue catalog; with `hoodie.aws.secret.key`. Unset: credentials are found as boto3
    finds them, in the environment, the profile or the role of the machine."""
    secret_key: str | None = shared(
        key("hoodie.aws.secret.key", text("a secret key"), None, "The secret that belongs to `hoodie.aws.access.key`."),
        repr=False,
    )
    session_token: str | None = shared(
        key("hoodie.aws.session.token", text("a token"), None, "Session token of temporary credentials."), repr=False
    )
    role: str | None = option("hoodie.aws.role.arn", text("an ARN"), None)
    """Role to assume, by those credentials."""
    role_session: str = option("hoodie.aws.role.session.name", text("a name"), "hoodie")
    """Name of the session in which that role is assumed."""
    role_external_id: str | None = shared(
        key("hoodie.aws.role.external.id", text("an id"), None, "External id by which that role is assumed."),
        repr=False,
    )


@dataclass(frozen=True)
class GlueOptions:
    catalog_id: str | None = option(f"{_GLUE}catalogId", text("an id"), None)
    """AWS Glue: the catalog. Unset: that of the account."""
    database: str | None = option(f"{_GLUE}database_name", text("a name"), None)
    """AWS Glue: database to register in, if it is not that of `hoodie.datasource.hive_sync.database`."""
    table: str | None = option(f"{_GLUE}table_name", text("a name"), None)
    """AWS Glue: name to register by, if it is not that of `hoodie.datasource.hive_sync.table`."""
    skips_archive: bool = option(f"{_GLUE}skip_table_archive", boolean(), True)
    """AWS Glue: keep no older version of the registration when it changes."""
    lists_by_metadata: bool = option(f"{_GLUE}metadata_file_listing", boolean(), False)
    """AWS Glue: tell Athena to list files by the metadata table."""
    recreates: bool = option(f"{_GLUE}recreate_table_on_error", boolean(), False)
    """AWS Glue: replace a registration that cannot be changed, as `hoodie.datasource.hive_sync.recreate_table_on_error`."""
    endpoint: str | None = option("hoodie.aws.glue.endpoint", text("an address"), None)
    """Address of AWS Glue. Unset: that of the region."""
    region: str | None = option("hoodie.aws.glue.region", text("a region"), None)
    """Region of AWS Glue. Unset: as boto3 finds it, such as by `AWS_REGION`."""
    aws: AwsOptions = group(AwsOptions)
