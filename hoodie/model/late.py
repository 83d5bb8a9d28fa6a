"""What is done at first use: imports of modules (`late`), and attributes that are kept then (`once`).

Importing all that an open table can do takes longer than most commands run. A room that few of them need has
`__getattr__ = late(__name__)` in its `__init__.py`. Who uses it late imports the room (`import hoodie.services`), and its modules
for the type checker alone (`if TYPE_CHECKING: import hoodie.services.cleaning`), and writes `hoodie.services.cleaning.CLEANING`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar, overload


def late(package: str, names: Mapping[str, str] = MappingProxyType({})) -> Callable[[str], object]:
    """A `__getattr__` for a package or module: its modules, and the names that other modules have.

    Args:
        names: from a name to the module that it is taken from.
    """

    def __getattr__(name: str) -> object:
        if name in names:
            return getattr(import_module(names[name]), name)
        module = f"{package}.{name}"
        if not name.startswith("__"):  # Python asks for paths and the like
            try:
                return import_module(module)
            except ModuleNotFoundError as exc:
                if exc.name not in (module, package):
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


T = TypeVar("T")
A = TypeVar("A")


class once(Generic[T]):
    """An attribute that is worked out when it is first asked for, and kept: for what asks a storage.

    `functools.cached_property` of Python 3.11 holds one lock for all objects while it works: a thread that waits for a slow store
    would hold up every other thread and table of the process. Here two threads may work the same out at the same time.
    """

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self.func = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        result = self.func(instance)
        instance.__dict__[self._name] = result  # from now on it is found there, before this is asked
        return result


def for_the_same(work_out: Callable[[A], T]) -> Callable[[A], T]:
    """A function that keeps its last answer, for the very same object: all tasks of a write ask the same of its context."""
    last: tuple[A, T] | None = None

    def answer(about: A) -> T:
        nonlocal last
        pair = last
        if pair is None or pair[0] is not about:
            last = pair = (about, work_out(about))
        return pair[1]

    answer.__doc__ = work_out.__doc__
    return answer
