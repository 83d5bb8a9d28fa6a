"""What ObjectStorage makes of a store that fails, answers late or loses its answers, and what its calls cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from hoodie.storage.base import ConditionalStorage
from hoodie.storage.uri import open_storage
from tests.servers.http_proxy import PASSING, Failing, HttpProxy
from tests.servers.s3 import shared_moto
from tests.storages import write


@pytest.fixture
def proxy() -> Iterator[HttpProxy]:
    with HttpProxy(shared_moto().endpoint) as proxy:
        yield proxy


@pytest.fixture
def storage(proxy: HttpProxy) -> ConditionalStorage:
    server = shared_moto()
    return cast(ConditionalStorage, open_storage(server.new_uri(), {**server.options, "aws_endpoint": proxy.endpoint}))


@pytest.mark.parametrize("failing", [*PASSING, Failing.CONFLICT])
def test_a_put_on_condition_whose_answer_is_no_answer_is_ours(
    storage: ConditionalStorage, proxy: HttpProxy, failing: Failing
) -> None:
    proxy.fail_next("PUT", failing)
    storage.create_new("created", b"new")
    storage.create_new("swapped", b"old")
    _, tag = storage.read_tagged("swapped")
    proxy.fail_next("PUT", failing)
    new_tag = storage.swap("swapped", b"new", tag)
    assert storage.read("created") == b"new"
    assert storage.read_tagged("swapped") == (b"new", new_tag)


@pytest.mark.parametrize("failing", [*PASSING, Failing.CONFLICT])
def test_equal_bytes_of_another_are_not_taken_for_ours(
    storage: ConditionalStorage, proxy: HttpProxy, failing: Failing
) -> None:
    storage.create_new("f", b"same")
    proxy.fail_next("PUT", failing)
    with pytest.raises(FileExistsError):
        storage.create_new("f", b"same")


def test_a_store_that_stays_busy_is_no_taken_name(storage: ConditionalStorage, proxy: HttpProxy) -> None:
    proxy.fail_next("PUT", Failing.CONFLICT, times=20)
    with pytest.raises(OSError, match="busy") as error:
        storage.create_new("f", b"x")
    assert not isinstance(error.value, FileExistsError)


def test_what_calls_cost(storage: ConditionalStorage, proxy: HttpProxy) -> None:
    def cost(act: Callable[[], object]) -> dict[str, int]:
        proxy.counted()
        act()
        return proxy.counted()

    assert cost(lambda: storage.create_new("a/f", b"x")) == {"PUT": 1}
    assert cost(lambda: write(storage, "a/g", b"x")) == {"PUT": 1}
    assert cost(lambda: storage.replace("a/g", b"y")) == {"PUT": 1}
    assert cost(lambda: storage.read("a/f")) == {"GET": 1}
    assert cost(lambda: storage.open_input("a/f").close()) == {"GET": 1}
    assert cost(lambda: storage.list("a")) == {"LIST": 1}
    assert cost(lambda: storage.stat("a/f")) == {"HEAD": 1}
    assert cost(lambda: storage.exists("absent")) == {"HEAD": 1, "LIST": 1}
    assert cost(lambda: storage.delete("a/g")) == {"DELETES": 1}
    assert cost(lambda: storage.touch("a/h")) == {"PUT": 1}
    assert cost(lambda: storage.mkdirs("b")) == {}
    assert cost(lambda: storage.delete_folder("a")) == {"LIST": 1, "DELETES": 1}
