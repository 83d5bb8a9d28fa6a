"""Java of ours that Spark compiles as it compiles its queries, in classic sessions."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files as resources
from typing import Any


def compiled(jvm: Any, name: str) -> Any:
    """An object of the class in this file, one for each JVM.

    Spark forgets what it compiled, and py4j does not: it would call the methods of the first class on an object of the next one.
    """
    java = _java(name, old_scala=jvm.scala.util.Properties.versionNumberString().startswith("2.12"))
    for client, text, made in _compiled_before:
        if client is jvm._gateway_client and text == java:
            return made
    generated = jvm.org.apache.spark.sql.catalyst.expressions.codegen
    code = generated.CodeAndComment(java, jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()))
    made = generated.CodeGenerator.compile(code)._1()
    _compiled_before.append((jvm._gateway_client, java, made))
    return made


_compiled_before: list[tuple[Any, str, Any]] = []
"""The way to the JVM, the text in Java, the object: one for each file, but where a process starts another JVM."""


@lru_cache(maxsize=4)
def _java(name: str, *, old_scala: bool) -> str:
    text = resources(__package__).joinpath(name).read_text(encoding="utf-8")
    return text.replace("scala.collection.immutable.Seq", "scala.collection.Seq") if old_scala else text
