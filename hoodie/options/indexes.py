"""Indexes of the user's own: Python objects, known to this process by name, or classes that a write names.

A table stores a registered name only. What a name stands for is said by the program that writes, never by the table.
"""

from __future__ import annotations

import importlib
from typing import cast

from hoodie.errors import OptionError
from hoodie.model.key_index import KeyIndex
from hoodie.options.merging import merger_name

_METHODS = ("look_up", "put", "delete")
_registered: dict[str, KeyIndex] = {}


def register_index(name: str, index: KeyIndex) -> None:
    """Register an object as an index, for writes with the option `hoodie.index.class=<name>`.

    The index says where record keys are stored, and is kept outside of the table. It has three methods over Arrow: `look_up`, `put`
    and `delete` (`hoodie.KeyIndex`). A key is unique in the whole table.

    Args:
        name: by which options and the table know it. A name that is registered already gets the new index.
        index: has the methods of `hoodie.KeyIndex`.

    Raises:
        OptionError: the name is none, or the index lacks a method.

    Example:
        >>> hoodie.register_index("places", PlacesInMyDatabase("postgresql://…"))
        >>> hoodie.create_table("/data/users", schema, record_key="id", options={"hoodie.index.class": "places"})
    """
    if not isinstance(name, str):
        raise OptionError(f"register_index({name!r}, …): the name of an index is a text")
    merger_name(name)
    _registered[name] = _checked(name, index)


def index_named(name: str, *, stored: bool) -> KeyIndex:
    """The index of that name. `stored`: the table says the name, which is imported only where the program says it.

    Raises:
        OptionError: there is none, or it lacks a method.
    """
    if name in _registered:
        return _registered[name]
    module, dot, attribute = name.rpartition(".")
    if not dot or stored:
        raise OptionError(
            f"index {name!r} is not registered in this process: call hoodie.register_index({name!r}, index), or set "
            "hoodie.index.class to the dotted name of a Python class, before the table is written"
        )
    try:
        made_index = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as exc:
        raise OptionError(
            f"hoodie.index.class={name!r} is no Python class that can be imported ({exc}); indexes written in Java are not run"
        ) from exc
    return _checked(name, made_index() if isinstance(made_index, type) else made_index)


def _checked(name: str, index: object) -> KeyIndex:
    missing = [method for method in _METHODS if not callable(getattr(index, method, None))]
    if missing:
        raise OptionError(
            f"index {name!r} is a {type(index).__name__} without {', '.join(missing)}: see hoodie.KeyIndex"
        )
    return cast(KeyIndex, index)
