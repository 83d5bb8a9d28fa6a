"""Calls that are made at the same time: who makes them, in which order answers come, and what of errors."""

from __future__ import annotations

import threading

import pytest

from hoodie.storage.capabilities import Capabilities
from hoodie.storage.parallel import for_each, in_turns, together


class Far:
    can: Capabilities

    def __init__(self, at_once: int) -> None:
        self.can = Capabilities(at_once=at_once)


@pytest.mark.parametrize("at_once", [1, 8])
def test_answers_come_in_the_order_of_the_questions(at_once: int) -> None:
    assert together(Far(at_once), lambda: 1, lambda: "two", lambda: 3.0) == (1, "two", 3.0)
    assert for_each(str, range(20), at_once=at_once) == [str(n) for n in range(20)]
    assert for_each(str, [], at_once=at_once) == []


@pytest.mark.parametrize("at_once", [1, 8])
def test_in_turns_no_more_is_asked_for_than_is_taken(at_once: int) -> None:
    asked: list[int] = []

    def ask(number: int) -> str:
        asked.append(number)
        return str(number)

    answers = in_turns(Far(at_once), ask, range(20))
    assert asked == []
    assert next(answers) == "0"
    assert sorted(asked) == list(range(at_once))
    assert [*answers] == [str(n) for n in range(1, 20)]
    assert [*in_turns(Far(at_once), ask, [])] == []


@pytest.mark.parametrize("at_once", [1, 8])
def test_the_first_is_asked_by_the_calling_thread(at_once: int) -> None:
    mine, other = together(Far(at_once), threading.get_ident, threading.get_ident)
    assert mine == threading.get_ident()
    assert (other == mine) == (at_once == 1)


def test_those_far_away_are_under_way_at_the_same_time() -> None:
    meet = threading.Barrier(3)  # who comes alone waits for ever
    together(Far(8), meet.wait, meet.wait, meet.wait)
    for_each(lambda _: meet.wait(), range(3), at_once=8)


def test_one_by_one_an_error_ends_it() -> None:
    asked: list[int] = []

    def ask(number: int) -> None:
        asked.append(number)
        if number == 1:
            raise OSError(number)

    with pytest.raises(OSError, match="1"):
        together(Far(1), lambda: ask(0), lambda: ask(1), lambda: ask(2))
    assert asked == [0, 1]


@pytest.mark.parametrize("failing", [{0, 2}, {1, 2}, {2}])
def test_all_have_ended_when_the_first_error_is_raised(failing: set[int]) -> None:
    ended: list[int] = []
    meet = threading.Barrier(3)

    def ask(number: int) -> None:
        meet.wait()
        ended.append(number)
        if number in failing:
            raise OSError(f"number {number}")

    with pytest.raises(OSError, match=f"number {min(failing)}"):
        together(Far(8), lambda: ask(0), lambda: ask(1), lambda: ask(2))
    assert sorted(ended) == [0, 1, 2]
    ended.clear()
    with pytest.raises(OSError, match=f"number {min(failing)}"):
        for_each(ask, range(3), at_once=8)
    assert sorted(ended) == [0, 1, 2]
