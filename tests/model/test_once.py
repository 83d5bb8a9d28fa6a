"""What is worked out once, and who waits for it."""

import threading

import pytest

from hoodie.model.late import once


class Asked:
    def __init__(self, answer):
        self._answer = answer
        self.asked = 0

    @once
    def told(self):
        """What it says."""
        self.asked += 1
        return self._answer()


def test_it_is_worked_out_once_for_each_object():
    one, other = Asked(lambda: 1), Asked(lambda: 2)
    assert (one.told, one.told, other.told, other.told) == (1, 1, 2, 2)
    assert (one.asked, other.asked) == (1, 1)
    assert Asked.told.__doc__ == "What it says."


def test_an_error_is_not_kept():
    answers = [1]
    one = Asked(lambda: answers.pop() if one.asked > 1 else answers[9])
    with pytest.raises(IndexError):
        one.told  # noqa: B018
    assert one.told == 1


def test_who_waits_for_a_storage_does_not_hold_up_the_others():
    begun, goes_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert goes_on.wait(60)
        return "late"

    late, found = Asked(slow), []
    waits = threading.Thread(target=lambda: late.told)
    asks = threading.Thread(target=lambda: found.append(Asked(lambda: "now").told))
    waits.start()
    assert begun.wait(60)
    asks.start()
    asks.join(10)  # less than `waits` takes, where the other one has to wait for it
    try:
        assert found == ["now"]
    finally:
        goes_on.set()
        waits.join()
        asks.join()
    assert late.told == "late"
