"""Tests of locks end with some of them held, as if their process had died: none of these reaches the next test."""

from collections.abc import Iterator

import pytest

from hoodie.lock.registry import held_by_this_thread


@pytest.fixture(autouse=True)
def lets_go() -> Iterator[None]:
    yield
    for let_go in held_by_this_thread().values():
        let_go()
