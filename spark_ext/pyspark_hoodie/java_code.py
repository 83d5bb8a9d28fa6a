"""Java code that Spark compiles as it compiles its queries, in classic sessions."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any


def compiled(jvm: Any, name: str) -> Any:
    """An object of the class in this file, one for each JVM.

    Spark forgets what it compiled, and py4j does not: it would call the methods of the first class on an object of the next one.
    """
    java = _java(name, old_scala=jvm.scala.util.Properties.versionNumberString().startswith("2.12"))
    for client, text, instance in _compiled_before:
        if client is jvm._gateway_client and text == java:
            return instance
    generated = jvm.org.apache.spark.sql.catalyst.expressions.codegen
    code = generated.CodeAndComment(java, jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()))
    instance = generated.CodeGenerator.compile(code)._1()
    _compiled_before.append((jvm._gateway_client, java, instance))
    return instance


_compiled_before: list[tuple[Any, str, Any]] = []
"""The way to the JVM, the text in Java, the object: one for each file, but where a process starts another JVM."""


def load_classes(jvm: Any, *names: str) -> None:
    """Compile the public classes of these files, once for each JVM, so that Spark finds them by their names.

    The compiler is the one by which Spark compiles its queries. It wants the classes that a file names before the file.
    """
    if are_loaded(jvm):
        return
    old_scala = jvm.scala.util.Properties.versionNumberString().startswith("2.12")
    folder = _folder_of_classes(jvm)
    for name in names:
        _compile_into(folder, jvm, _java(name, old_scala=old_scala))
    _loaded.append(jvm._gateway_client)


def are_loaded(jvm: Any) -> bool:
    """Whether `load_classes` was called for this JVM."""
    return any(client is jvm._gateway_client for client in _loaded)


def load_source(jvm: Any, package: str) -> None:
    """Let Spark 3.5 find a format by the name of this package, once for each JVM."""
    if any(client is jvm._gateway_client and name == package for client, name in _sources):
        return
    _compile_into(_folder_of_classes(jvm), jvm, _java("sql_source.java", old_scala=True).replace("PACKAGE", package))
    _sources.append((jvm._gateway_client, package))


def _folder_of_classes(jvm: Any) -> Path:
    """One in which the JVM looks for classes."""
    folder = Path(tempfile.mkdtemp(prefix="hoodie-classes-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    jvm.Thread.currentThread().getContextClassLoader().addURL(jvm.java.io.File(f"{folder}/").toURI().toURL())
    return folder


def _compile_into(folder: Path, jvm: Any, text: str) -> None:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(text)
    for name, code in dict(compiler.getBytecodes()).items():
        path = folder.joinpath(*name.split("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f"{path.name}.class").write_bytes(bytes(code))


_sources: list[tuple[Any, str]] = []
_loaded: list[Any] = []
"""The ways to JVMs that have the classes."""


@lru_cache(maxsize=8)
def _java(name: str, *, old_scala: bool) -> str:
    text = resources(__package__).joinpath(name).read_text(encoding="utf-8")
    if not old_scala:
        return text
    return text.replace("scala.collection.immutable.Seq", "scala.collection.Seq").replace("sql.classic.", "sql.")
