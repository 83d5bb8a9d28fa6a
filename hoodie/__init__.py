"""hoodie: read and write Apache Hudi tables from Python, over Arrow, with or without Spark.

Nothing is imported before a name is used: workers of Spark import a few modules of this package, and are started often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hoodie.public import *  # noqa: F403

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    # Python asks a package for its paths and the like before there is anything in it.
    if not name.startswith("__") or name == "__all__":
        import hoodie.public as public  # noqa: PLC0415, PLR0402 - `from hoodie` would ask this function again

        if name == "__all__":
            return [*public.__all__, "__version__"]
        if name in public.__all__:
            globals()[name] = result = getattr(public, name)
            return result
        from hoodie.model.late import late  # noqa: PLC0415

        return late(__name__)(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names: what completion shows."""
    names: list[str] = __getattr__("__all__")
    return names
