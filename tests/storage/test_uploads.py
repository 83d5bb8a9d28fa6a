"""Files that go to a store in parts: nothing stays of one that was given up, and a lost answer is no failure."""

from __future__ import annotations

import boto3
import pytest

from hoodie.storage.uri import open_storage
from tests.servers.http_proxy import Failing, HttpProxy
from tests.servers.s3 import BUCKET, S3Server, shared_moto

LARGE = b"x" * (20 << 20)


def unfinished(server: S3Server) -> list[str]:
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=server.options["aws_access_key_id"],
        aws_secret_access_key=server.options["aws_secret_access_key"],
        region_name=server.options["aws_region"],
    )
    return [each["Key"] for each in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])]


def test_of_an_upload_that_was_given_up_nothing_stays() -> None:
    server = shared_moto()
    storage = open_storage(server.new_uri(), server.options)

    def give_up() -> None:
        with storage.open_output("f") as stream:
            stream.write(LARGE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        give_up()
    assert unfinished(server) == []
    assert storage.list("", recursive=True) == []


@pytest.mark.parametrize("failing", [Failing.LOST_ANSWER, Failing.BUSY_AFTER, Failing.RESET, Failing.BUSY])
@pytest.mark.parametrize("kind", ["PART", "UPLOAD"])
def test_an_upload_whose_answer_is_lost_is_whole(failing: Failing, kind: str) -> None:
    server = shared_moto()
    with HttpProxy(server.endpoint) as proxy:
        storage = open_storage(server.new_uri(), {**server.options, "aws_endpoint": proxy.endpoint})
        with storage.open_output("f") as stream:
            stream.write(LARGE[: 12 << 20])
            proxy.fail_next(kind, failing)
            stream.write(LARGE[12 << 20 :])
        assert storage.stat("f").size_bytes == len(LARGE)
