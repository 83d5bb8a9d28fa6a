"""Mergers of the user's own: Python functions, known to this process by name.

A table stores a merger's name only. What a name stands for is said by the program that writes, never by the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.model.plans import Merger, MergeRule
from hoodie.options.merging import merger_name

_registered: dict[str, Callable[[pa.Table, pa.Table], pa.Table]] = {}


def register_merger(name: str, function: Callable[[pa.Table, pa.Table], pa.Table]) -> None:
    """Register a function as a merger, for tables that were created with the option `hoodie.python.merger=<name>`.

    The function gets two Arrow tables with the table's own columns, `older` and `newer`: row i of both has the same record key, and
    `newer` was written later. It gives the merged rows, one for each pair, in the same order, columns and types. It is called for
    several pairs at once, maybe on several threads, and must not keep state: a task may run twice. A deleted row is not merged: later
    rows start afresh.

    On Spark the function is sent to the executors: by its name where it can be imported there, else as it stands (cloudpickle).

    Args:
        name: by which the table knows it. A name that is registered already gets the new function.
        function: takes `older` and `newer`, and gives the merged rows.

    Raises:
        OptionError: the name is none, or the function cannot be called.

    Example:
        >>> def add_up(older, newer):
        ...     total = pc.add(older["total"], newer["total"])
        ...     return newer.set_column(newer.column_names.index("total"), "total", total)
        >>> hoodie.register_merger("add_up", add_up)
        >>> hoodie.create_table("/data/sums", schema, record_key="id", options={"hoodie.python.merger": "add_up"})
    """
    if not isinstance(name, str):
        raise OptionError(f"register_merger({name!r}, …): the name of a merger is a text")
    merger_name(name)
    if not callable(function):
        raise OptionError(f"merger {name!r} is a {type(function).__name__}, not a function of (older, newer)")
    _registered[name] = function


def not_registered(name: str) -> str:
    return (
        f"merger {name!r} is not registered in this process: call hoodie.register_merger({name!r}, function) "
        "before the table is written"
    )


def is_registered(name: str) -> bool:
    return name in _registered


def runnable(rule: MergeRule) -> MergeRule:
    """The rule with the function of its merger, where it has one that is registered."""
    if rule.merger is None:
        return rule
    return replace(rule, merger=Merger(rule.merger.name, _registered.get(rule.merger.name)))
