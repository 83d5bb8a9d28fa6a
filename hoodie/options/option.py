"""An option is a field of the value that has it: its name, its values, its default and its meaning stand there, once.

    @dataclass(frozen=True)
    class CleaningOptions:
        commits: int = option("hoodie.clean.commits.retained", whole(1), 10)
        "Commits whose state can still be read after a clean."

Topics are files with such values. `registry.py` has the list of them, and with it the table of all options; `Layers.make`
(`settings.py`) makes a value of what was set. A default is written as a user would write it. The docstring below it is the text
for docs/OPTIONS.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

from hoodie.errors import OptionError
from hoodie.options.class_names import other_names
from hoodie.options.values import Kind, only

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_KEYS, _MAKE, _GROUP = "keys", "make", "group"


@dataclass(frozen=True)
class Key(Generic[T_co]):
    """One option."""

    name: str
    kind: Kind[T_co]
    default: T_co
    """None where unset means something of its own; the text says what."""
    doc: str = ""
    """For docs/OPTIONS.md; empty: the docstring below its field or its constant."""
    also: tuple[str, ...] = ()
    """Names of it that Apache Hudi does not know as such; they mean exactly the same."""
    shown: str = ""
    """The default as a user writes it; empty: unset."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name, Apache Hudi's other names of the same option, and ours."""
        return tuple(dict.fromkeys((self.name, *other_names(self.name), *self.also)))

    def parse(self, value: str, *, name: str | None = None) -> T_co:
        """The typed value of a text; `name` is the name by which the user called the option.

        Raises:
            OptionError: the text is no value of it; the message has both and what is allowed.
        """
        try:
            return self.kind.read(value.strip())
        except ValueError as error:
            raise OptionError(f"option {name or self.name}={value!r} {error}") from None


Keys: TypeAlias = tuple[Key[Any], ...]


@overload
def key(name: str, kind: Kind[T], default: None, doc: str = "", *, also: tuple[str, ...] = ()) -> Key[T | None]: ...
@overload
def key(name: str, kind: Kind[T], default: str | float, doc: str = "", *, also: tuple[str, ...] = ()) -> Key[T]: ...
def key(
    name: str, kind: Kind[T], default: str | float | None, doc: str = "", *, also: tuple[str, ...] = ()
) -> Key[T | None]:
    """An option that is not a field by itself: several fields read it, or one field reads several."""
    if default is None:
        return Key(name, cast(Kind[T | None], kind), None, doc, also)
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return Key(name, cast(Kind[T | None], kind), kind.read(shown), doc, also, shown)


def fixed(name: str, value: str, why: str, doc: str, also: tuple[str, ...] = ()) -> Key[str]:
    """An option that would change what is stored or read, accepted only where it says what happens here anyway."""
    return key(name, only(value, why), value, doc, also=also)


@overload
def option(name: str, kind: Kind[T], default: None, *, also: tuple[str, ...] = ()) -> T | None: ...
@overload
def option(name: str, kind: Kind[T], default: str | float, *, also: tuple[str, ...] = ()) -> T: ...
def option(name: str, kind: Kind[T], default: str | float | None, *, also: tuple[str, ...] = ()) -> T | None:
    """A field that is one option."""
    return shared(key(name, kind, cast(str, default), also=also))


def shared(key: Key[T], *, repr: bool = True) -> T:
    """A field that is an option which other fields read, too."""
    return cast(T, combined(_alone, key, repr=repr))


def combined(make: Callable[..., T], *keys: Key[Any], repr: bool = True) -> T:
    """A field that is made of the values of several options, or of one in another way."""
    default: Any = make(*(each.default for each in keys))
    metadata = {_KEYS: keys, _MAKE: make}
    if isinstance(default, Hashable):
        return cast(T, field(default=default, metadata=metadata, repr=repr))
    return cast(T, field(default_factory=lambda: default, metadata=metadata, repr=repr))


def remembered(key: Key[T]) -> T | None:
    """A field of what is asked of a table, which remembers it: None where nothing is said."""
    return cast(T, field(default=None, metadata={_KEYS: (key,), _MAKE: _alone}))


def listed(*keys: Key[Any]) -> Any:
    """A field that is made of these options by whoever makes the value: None where nothing is said."""
    return field(default=None, metadata={_KEYS: keys})


def group(cls: type[T]) -> T:
    """A field that is a value with options of its own."""
    return field(default_factory=cls, metadata={_GROUP: cls})


def first_set(*values: T | None) -> T:
    """For `combined`: the value of the first option that has one."""
    return next(value for value in values if value is not None)


def _alone(value: T) -> T:
    return value


def built(
    cls: type[T], options: Mapping[str, object], attempt: Callable[[Callable[[], Any]], Any], **other_fields: object
) -> T:
    """The value of the options that were set, by their names; `other_fields`: fields that are no options.

    Where the class has a method `check`, it is called to refuse options that contradict each other. Several fields may fail:
    `attempt` calls what makes one, and may go on after an error.
    """
    arguments = dict(other_fields)
    for each in fields(cast(Any, cls)):
        keys, inside = each.metadata.get(_KEYS, ()), each.metadata.get(_GROUP)
        if each.name in other_fields:
            continue
        if inside is not None:
            arguments[each.name] = built(inside, options, attempt)
        elif _MAKE in each.metadata and any(key.name in options for key in keys):
            values = [options.get(key.name, key.default) for key in keys]
            arguments[each.name] = attempt(partial(each.metadata[_MAKE], *values))
    return cast(T, attempt(partial(_checked, cls, arguments)))


def _checked(cls: type[T], arguments: Mapping[str, Any]) -> T:
    value = cls(**arguments)
    if (check := getattr(value, "check", None)) is not None:
        check()
    return value


def keys_of(cls: type, *, only: str = "") -> Keys:
    """The options of a value by the order of its fields, without those of the value it extends; `only`: those of one field.

    `OTHERS` of a class are options that belong to it and have no field.
    """
    inherited = {each.name for base in cls.__mro__[1:] if is_dataclass(base) for each in fields(base)}
    own = [each for each in fields(cls) if (each.name == only if only else each.name not in inherited)]
    keys = [key for each in own for key in each.metadata.get(_KEYS, ())]
    return (*keys, *(() if only else cls.__dict__.get("OTHERS", ())))


def key_of(cls: type, name: str) -> Key[Any]:
    """The option of a field; of several the first."""
    (first_key,) = (each.metadata[_KEYS][0] for each in fields(cast(Any, cls)) if each.name == name)
    return cast(Key[Any], first_key)


def option_name(cls: type, name: str) -> str:
    """The name of the option of a field."""
    return key_of(cls, name).name
