"""A field that is an option is all that an option needs."""

from dataclasses import dataclass, field, fields

import pytest

from hoodie.errors import OptionError
from hoodie.options import registry
from hoodie.options.option import built, combined, group, key, key_of, keys_of, listed, option, option_name, remembered
from hoodie.options.settings import Faults
from hoodie.options.values import boolean, milliseconds, pairs, whole

LIMIT, SHARE = key("t.limit", whole(1), 10), key("t.share", whole(1), 2)


@dataclass(frozen=True)
class Inner:
    wait_s: float = option("t.wait.ms", milliseconds(0), 1500)


@dataclass(frozen=True)
class Topic:
    count: int = option("t.count", whole(1), 3)
    more: dict = option("t.more", pairs(), "")
    part: int = combined(lambda limit, share: limit // share, LIMIT, SHARE)
    asked: bool | None = remembered(key("t.asked", boolean(), True))
    made: str | None = listed(key("t.made", boolean(), None))
    inner: Inner = group(Inner)
    plain: list = field(default_factory=list)

    def check(self):
        if self.count > self.part:
            raise OptionError(f"{option_name(Topic, 'count')}={self.count} is more than {self.part}")


def topic(given, **known):
    faults = Faults()
    value = built(Topic, given, faults.attempt, **known)
    faults.say()
    return value


def test_defaults_are_read_as_a_user_writes_them():
    assert topic({}) == Topic()
    assert (Topic().count, Topic().more, Topic().part, Topic().asked, Topic().made) == (3, {}, 5, None, None)
    assert Topic().inner.wait_s == 1.5
    assert key_of(Inner, "wait_s").shown == "1500"


def test_what_was_set_arrives_at_its_field():
    value = topic({"t.count": 1, "t.share": 5, "t.asked": False, "t.wait.ms": 0.25}, made="m")
    assert value == Topic(count=1, part=2, asked=False, made="m", inner=Inner(0.25))


def test_a_value_checks_what_its_options_say_together():
    with pytest.raises(OptionError, match=r"t\.count=9 is more than 5"):
        topic({"t.count": 9})
    assert Topic(count=9).count == 9  # what the program says is not checked


def test_the_options_of_a_value_stand_by_the_order_of_its_fields():
    assert [each.name for each in keys_of(Topic)] == ["t.count", "t.more", "t.limit", "t.share", "t.asked", "t.made"]
    assert keys_of(Topic, only="part") == (LIMIT, SHARE)


def test_every_field_with_a_default_of_an_option_has_the_value_of_its_text():
    for cls in registry.VALUES:
        value = cls()
        for each in fields(cls):
            (one, *others) = keys_of(cls, only=each.name) or (None,)
            if one and one.shown and not others and getattr(value, each.name) is not None:
                assert getattr(cls(), each.name) == each.metadata["make"](one.kind.read(one.shown)), each.name
