"""What was set: the options of a call over those of the defaults file, each parsed, and all others judged.

Of every key: one that the door understands is parsed; one that only Apache Hudi knows is accepted and named in `ignored`, or
in `not_done` where it asks for more than an effect on speed; one of another system is an error that names ours, and one that
nobody knows an error that suggests the nearest. All that is wrong with the options of a call is said in one error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

from hoodie.errors import HoodieError, OptionError, UnsupportedTableError
from hoodie.options import registry
from hoodie.options.class_names import newest_names
from hoodie.options.option import Key, built
from hoodie.options.other_systems import of_another_system
from hoodie.options.streams import COMMIT_ENTRIES
from hoodie.options.unsupported import names_not_done, not_done, refusals
from hoodie.options.values import did_you_mean

T = TypeVar("T")

NOTHING: Mapping[str, str] = MappingProxyType({})
_SHOWN = 5
"""Unknown options that one message lists."""


class UserOption(NamedTuple):
    """One option that was set: the name by which the user called it, and its value."""

    name: str
    text: str
    value: object


Door = Mapping[str, Key[object]]
"""The options that are understood at one place, by each of their names in lower case."""


def _door(understood: Iterable[Key[object]]) -> Door:
    return {name.lower(): key for key in understood for name in key.names}


WRITES, READS, VIEWS = _door(registry.WRITE_KEYS), _door(registry.READ_KEYS), _door(registry.VIEW_KEYS)


class Faults:
    """What is wrong with the options of one call: found one after the other, said in one error."""

    def __init__(self) -> None:
        self._errors: list[HoodieError] = []
        self._names: set[str] = set()

    def add(self, fault: HoodieError, *names: str) -> None:
        """Keep a fault; the options `names` have no value then."""
        self._errors.append(fault)
        self._names.update(names)

    def attempt(self, make: Callable[[], T]) -> T:
        """What `make` gives. Where that fails the fault is kept, and what comes back is no value: `say` comes before its use."""
        try:
            return make()
        except (OptionError, UnsupportedTableError) as fault:
            # What follows from the value of an option that is at fault is no fault of its own.
            if not any(name in str(fault) for name in self._names):
                self.add(fault)
            return cast(T, None)

    def say(self) -> None:
        """Raise the faults, if there are any: a single one as it is, several in one error, a line each."""
        if not self._errors:
            return
        if len(self._errors) == 1:
            raise self._errors[0]
        lines = [line for fault in self._errors for line in str(fault).splitlines()]
        raise OptionError("\n  ".join(["several things are wrong with the options:", *lines]))


class GivenOptions:
    """The options of one mapping that a door understands."""

    def __init__(self, options: Mapping[str, str], door: Door, faults: Faults) -> None:
        """Unknown keys, bad values, and one option with two values are faults."""
        self._faults = faults
        self._options: dict[str, UserOption] = {}
        self.ignored: list[str] = []
        self.newest: dict[str, tuple[str, str]] = {}
        """Name and text of each option that Apache Hudi knows, by the newest name of it in lower case."""
        unknown: list[str] = []
        newest = newest_names()
        for name, text in _checked(options).items():
            folded = name.lower()
            if folded in newest:
                self.newest[newest[folded]] = (name, text)
            key = door.get(folded)
            if key is not None:
                try:
                    self._add(key, UserOption(name, text, key.parse(text, name=name)))
                except (OptionError, UnsupportedTableError) as fault:
                    faults.add(fault, *key.names)
            elif registry.is_known(folded):
                self.ignored.append(name)
            else:
                unknown.append(name)
        prefix = (self.get(COMMIT_ENTRIES) or COMMIT_ENTRIES.default).lower()
        self.notes = [name for name in unknown if _is_note(name, prefix)]
        """Options of the user's own, for the metadata of the commit."""
        if len(unknown) > len(self.notes):
            faults.add(unknown_options([name for name in unknown if name not in self.notes]))

    def _add(self, key: Key[object], option: UserOption) -> None:
        before = self._options.setdefault(key.name, option)
        if before.value != option.value:
            raise OptionError(
                f"options {before.name}={before.text!r} and {option.name}={option.text!r} are two names of one option "
                "with two values: drop one"
            )

    @property
    def values(self) -> dict[str, object]:
        """The values of the set options, by the names of their keys."""
        return {name: option.value for name, option in self._options.items()}

    def find(self, key: Key[T]) -> UserOption | None:
        return self._options.get(key.name)

    def get(self, key: Key[T]) -> T | None:
        """The value of the option, None where it is not set."""
        option = self.find(key)
        return None if option is None else cast(T, option.value)

    def make(self, cls: type[T], **other_fields: object) -> T:
        """A value of the set options, without defaults; `other_fields`: fields that are no options."""
        return built(cls, self.values, self.attempt, **other_fields)

    def attempt(self, make: Callable[[], T]) -> T:
        return self._faults.attempt(make)

    def agreed(self, what: str, *names: Key[T | None]) -> T | None:
        """The one value of several options that say the same thing in different words."""
        options = [option for key in names if (option := self.find(key))]
        if any(each.value != options[0].value for each in options[1:]):
            choices = ", ".join(f"{each.name}={each.text!r} ({each.value})" for each in options)
            raise OptionError(f"options contradict each other about the {what}: {choices}; drop all but one")
        return cast(T, options[0].value) if options else None


class Layers:
    """What was set, over the defaults of a file, over our own."""

    def __init__(self, options: Mapping[str, str], defaults: Mapping[str, str], door: Door) -> None:
        self.faults = Faults()
        self.options, self.defaults = (GivenOptions(each, door, self.faults) for each in (options, defaults))
        self._set = self.defaults.values | self.options.values

    def get(self, key: Key[T]) -> T:
        return cast(T, self._set.get(key.name, key.default))

    def make(self, cls: type[T], **other_fields: object) -> T:
        """A value whose fields are options; `other_fields`: fields that are no options."""
        return built(cls, self._set, self.faults.attempt, **other_fields)

    def ignored(self, *, reading: bool) -> tuple[str, ...]:
        """Of the defaults only what no door understands: they are written for all doors at once."""
        useless = [n for n in self.defaults.ignored if n.lower() not in WRITES and n.lower() not in READS]
        not_done_names = names_not_done(reading=reading)
        names = {*self.options.ignored, *useless, *(self.options.notes if reading else ())}
        return tuple(sorted(name for name in names if newest_names().get(name.lower()) not in not_done_names))

    def not_done(self, *, reading: bool) -> tuple[str, ...]:
        """Sentences on options that are ignored; a refused option is a fault."""
        newest = {**self.defaults.newest, **self.options.newest}
        for refused in refusals(newest, reading=reading):
            self.faults.add(refused)
        return not_done(newest, reading=reading)


def _checked(options: Mapping[Any, Any]) -> dict[str, str]:
    """The options as texts, as Spark makes them of what it is given: True is `true`."""
    result: dict[str, str] = {}
    for name, value in options.items():
        if not isinstance(name, str):
            raise OptionError(f"option {name!r} is a {type(name).__name__}: names of options are texts")
        if not isinstance(value, str | int | float):
            raise OptionError(f"option {name!r} has a value of type {type(value).__name__}: give it as text")
        result[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return result


def _is_note(name: str, prefix: str) -> bool:
    return name.lower().startswith(prefix) and not name.lower().startswith(registry.PREFIXES)


def unknown_options(names: list[str], where: str = "") -> OptionError:
    lines = []
    for name in sorted(names)[:_SHOWN]:
        advice = of_another_system(name)
        hint = "" if advice else did_you_mean(name, registry.spelled_names(), prefix="hoodie.")
        lines.append((advice or f"unknown option {name!r}") + where + (f". {hint}" if hint else ""))
    if len(names) > _SHOWN:
        lines.append(f"and {len(names) - _SHOWN} more")
    return OptionError("\n".join(lines))
