"""Clients of AWS's services by boto3. A failure is a `ServiceError`, which is an OSError and names no credentials."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any, NamedTuple

from hoodie.errors import OptionError
from hoodie.options.aws import AwsOptions

CONDITION_FAILED = "ConditionalCheckFailedException"
_FINAL = frozenset({
    *("NoCredentialsError", "PartialCredentialsError", "NoRegionError", "InvalidRegionError"),
    *("AccessDenied", "AccessDeniedException", "UnrecognizedClientException", "InvalidClientTokenId"),
    *("InvalidSignatureException", "ExpiredTokenException", "ValidationException"),
})  # fmt: skip
_LONGEST_MESSAGE = 300
_PATIENCE_S = 10
"""For a connection and for each answer; boto3 asks again three times."""


class ServiceError(OSError):
    """A service of AWS refused a request, or did not answer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}"[:_LONGEST_MESSAGE])
        self.code = code
        """As AWS names the error; the name of boto3's class where no answer came."""

    @property
    def is_final(self) -> bool:
        """Whether the same request would be refused again."""
        return self.code in _FINAL


class Address(NamedTuple):
    """Which service, where."""

    service: str
    region: str | None
    """None: as boto3 finds it."""
    endpoint: str | None

    def __str__(self) -> str:
        return self.endpoint or f"{self.service} in {self.region or 'the usual region'}"


class Client:
    """A client of one service, made when it is asked first."""

    def __init__(self, address: Address, options: AwsOptions, needed_by: str) -> None:
        """`needed_by`: what needs boto3, as the beginning of a sentence."""
        self._address, self._options, self._needed_by = address, options, needed_by

    def __str__(self) -> str:
        return str(self._address)

    def require(self) -> None:
        """Raises OptionError where boto3 is not installed."""
        try:
            import boto3  # noqa: F401, PLC0415 - an optional extra
        except ModuleNotFoundError as exc:
            raise OptionError(f"{self._needed_by} needs boto3: install hoodie with the extra `aws`") from exc

    def ask(self, call: str, **arguments: Any) -> dict[str, Any]:
        """What the service answers. Arguments that are None are left out.

        Raises:
            ServiceError: it refuses, or does not answer. OptionError: boto3 is not installed.
        """
        self.require()
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an optional extra

        try:
            client = _client(os.getpid(), self._address, self._options)
            answer = getattr(client, call)(**{name: value for name, value in arguments.items() if value is not None})
        except ClientError as exc:
            error = exc.response.get("Error", {})
            raise ServiceError(error.get("Code", type(exc).__name__), error.get("Message", "")) from exc
        except BotoCoreError as exc:
            raise ServiceError(type(exc).__name__, str(exc)) from exc
        return dict(answer)


_mutex = threading.Lock()
os.register_at_fork(before=_mutex.acquire, after_in_parent=_mutex.release)
os.register_at_fork(after_in_child=_mutex.release)


def _client(process: int, address: Address, options: AwsOptions) -> Any:
    with _mutex:
        return _client_of(process, address, options)


@cache
def _client_of(process: int, address: Address, options: AwsOptions) -> Any:
    """One for each process: a fork must not share its connections."""
    import boto3  # noqa: PLC0415 - an optional extra
    from botocore.config import Config  # noqa: PLC0415 - an optional extra

    config = Config(
        connect_timeout=_PATIENCE_S, read_timeout=_PATIENCE_S, retries={"mode": "standard", "max_attempts": 4}
    )
    session = boto3.Session(
        aws_access_key_id=options.access_key,
        aws_secret_access_key=options.secret_key,
        aws_session_token=options.session_token,
        region_name=address.region,
    )
    if options.role is not None:
        session = _in_role(session, options, address, config)
    return session.client(address.service, endpoint_url=address.endpoint, config=config)


def _in_role(session: Any, options: AwsOptions, address: Address, config: Any) -> Any:
    """A session whose credentials are those of the role, and are asked for anew before they end."""
    import boto3  # noqa: PLC0415 - an optional extra
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials  # noqa: PLC0415
    from botocore.session import get_session  # noqa: PLC0415 - an optional extra

    more = {"RoleSessionName": options.role_session}
    if options.role_external_id is not None:
        more["ExternalId"] = options.role_external_id
    fetcher = AssumeRoleCredentialFetcher(
        session._session.create_client, session.get_credentials(), options.role, extra_args=more
    )
    inner = get_session()
    inner._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return boto3.Session(botocore_session=inner, region_name=address.region or session.region_name)
