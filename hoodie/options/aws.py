"""How services of AWS are reached, beside the storage: by Apache Hudi's options, else as boto3 finds it."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.options.option import key, option, shared
from hoodie.options.values import text


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
