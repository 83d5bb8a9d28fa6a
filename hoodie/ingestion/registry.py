"""Schemas of Avro by their numbers, from a registry of Confluent's kind.

One request for each schema, which never changes. The client of confluent-kafka would bring six more packages for that.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit

from hoodie.errors import CorruptFileError, HoodieError, OptionError, StorageError
from hoodie.format.avro_schema import AvroType, record_type

_TIMEOUT_S = 30
_NOT_FOUND = 404


class Registry:
    """One that is reached by HTTP; a schema is asked for once."""

    def __init__(self, url: str, user: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._user = user
        self._schemas: dict[int, AvroType] = {}
        if urlsplit(url).scheme not in ("http", "https"):
            raise OptionError("schema.registry.url is not an HTTP address: write https://host:port")

    def schema(self, number: int) -> AvroType:
        """Raises CorruptFileError: there is no such schema, or none of a record. StorageError: the registry does not answer."""
        if number not in self._schemas:
            self._schemas[number] = self._read(number)
        return self._schemas[number]

    def _read(self, number: int) -> AvroType:
        host = urlsplit(self._url).hostname
        body = _get(f"{self._url}/schemas/ids/{number}", self._user, what=f"schema {number}")
        if body.get("schemaType", "AVRO") != "AVRO" or body.get("references"):
            raise CorruptFileError(f"schema {number} of {host} is not an Avro schema without references to others")
        try:
            return record_type(body["schema"])
        except (KeyError, HoodieError) as exc:
            raise CorruptFileError(f"schema {number} of {host} cannot be read: {exc}") from exc


def schema_at(url: str) -> str:
    """The text of the schema at an address such as `http://user:password@host/subjects/trips-value/versions/latest`.

    Raises:
        OptionError: it is no such address. CorruptFileError, StorageError: as `Registry.schema`.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise OptionError(
            "the address of the schema is not an HTTP address: write https://host:port/subjects/…/versions/latest"
        )
    user, _, host = parts.netloc.rpartition("@")
    body = _get(urlunsplit(parts._replace(netloc=host)), unquote(user) or None, what=parts.path)
    if body.get("schemaType", "AVRO") != "AVRO" or body.get("references") or not isinstance(body.get("schema"), str):
        raise CorruptFileError(f"{parts.path} of {parts.hostname} is not an Avro schema without references to others")
    result: str = body["schema"]
    return result


def _get(url: str, user: str | None, *, what: str) -> Any:
    """The registry's answer, parsed."""
    host = urlsplit(url).hostname
    request = urllib.request.Request(url)
    if user is not None:
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            return json.load(answer)
    except HTTPError as exc:
        if exc.code == _NOT_FOUND:
            raise CorruptFileError(f"the schema registry {host} has no {what}") from None
        raise StorageError(f"the schema registry {host} answered {exc.code} {exc.reason}") from None
    except (OSError, ValueError) as exc:
        raise StorageError(f"the schema registry {host} does not answer: {getattr(exc, 'reason', exc)}") from None
