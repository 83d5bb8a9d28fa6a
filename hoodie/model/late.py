"""Modules that are imported when something of theirs is used first.

Importing all that an open table can do takes longer than most commands run. A room that few of them need has
`__getattr__ = late(__name__)` in its `__init__.py`. Who uses it late imports the room (`import hoodie.services`), and its modules
for the type checker alone (`if TYPE_CHECKING: import hoodie.services.cleaning`), and writes `hoodie.services.cleaning.CLEANING`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType


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
