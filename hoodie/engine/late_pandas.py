"""Defers pyarrow's import of pandas until something uses it.

Where pandas is installed, pyarrow imports it before it makes its first array of Python's values, in case they are a Series. In a new
process that takes a quarter of a second of CPU time, about as long as all imports of ours, and 30 MB.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import get_ident
from types import ModuleType
from typing import Any

import pyarrow as pa


def put_pandas_off() -> None:
    """Let pyarrow believe that there is no pandas, until somebody in this process imports it. Does nothing after that."""
    if "pandas" in sys.modules or any(isinstance(finder, _LatePandas) for finder in sys.meta_path):
        return
    finder = _LatePandas()
    sys.meta_path.insert(0, finder)
    pa.array([])  # pyarrow asks now, and only once
    finder.hides_from = None


class _LatePandas(MetaPathFinder):
    """Finds no pandas for the thread that puts it off. Once it is imported by others, pyarrow hears of it."""

    def __init__(self) -> None:
        self.hides_from: int | None = get_ident()

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "pandas":
            return None
        if self.hides_from == get_ident():
            raise ModuleNotFoundError(fullname)
        with suppress(ValueError):  # another thread was first
            sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            _tell_pyarrow_after(spec.loader)
        return spec


def _tell_pyarrow_after(loader: Any) -> None:
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        run(module)
        with suppress(ImportError):  # pyarrow refuses some versions
            pa.table({}).to_pandas()  # whoever asks for a frame makes it look again

    loader.exec_module = exec_module
