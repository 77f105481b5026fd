"""Call libtriton's bindings of the passes; the library is loaded without the package.

The package takes longer to import, and 3.0's needs setuptools.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .border import Table
    from .foreign import PassManager

SIGNATURE = re.compile(r"^\w+\((.*)\) -> ")
PARAMETER = re.compile(r"(?:^|, )\w+: ([^,\[\]]+(?:\[[^\]]*\])?)")
# Two values per argument type: the option that changes between them shows that argument.
PROBES: Table = {"int": (7001, 7002), "bool": (False, True), "str": ("first", "second")}


class UnusableError(Exception):
    """This Triton cannot serve the request."""


def library() -> str:
    """Return the path of libtriton.so."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.origin:
        raise UnusableError("this interpreter has no Triton")
    folder = os.path.join(os.path.dirname(spec.origin), "_C")
    candidates = [
        os.path.join(folder, "libtriton" + ending) for ending in importlib.machinery.EXTENSION_SUFFIXES
    ]
    for path in candidates:  # in Python's own order: a library for another Python may lie beside it
        if os.path.isfile(path):
            return path
    raise UnusableError(f"{os.path.dirname(spec.origin)} has no libtriton.so for this Python")


def load(path: str) -> Any:
    """Load the extension module without the package."""
    spec = importlib.util.spec_from_file_location("libtriton", path)
    assert spec is not None  # noqa: S101 - for the type checker
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def context_of(lib: types.ModuleType) -> Any:
    """Return a context with the dialects of Triton and of all backends."""
    context = lib.ir.context()
    lib.ir.load_dialects(context)
    for name in sorted(dir(lib)):
        part = getattr(lib, name)
        if name != "ir" and hasattr(part, "load_dialects"):
            part.load_dialects(context)
    return context


def bindings_of(lib: types.ModuleType) -> Iterator[tuple[Any, str, str]]:
    """Yield every `add_*` function below a module named `passes`: the module, its path, the name."""

    def walk(module: types.ModuleType, path: str) -> Iterator[tuple[Any, str, str]]:
        for name in sorted(dir(module)):
            part = getattr(module, name)
            if isinstance(part, types.ModuleType):
                yield from walk(part, f"{path}.{name}")
            elif name.startswith("add_") and callable(part):
                yield module, path, name

    for name in sorted(dir(lib)):
        part = getattr(lib, name)
        inner = part if name == "passes" else getattr(part, "passes", None)
        if isinstance(inner, types.ModuleType):
            yield from walk(inner, "passes" if name == "passes" else f"{name}.passes")


def binding(lib: types.ModuleType, path: str) -> Any:
    """Return the function of a path such as `nvidia.passes.ttgpuir.add_to_llvmir`."""
    value = lib
    for name in path.split("."):
        value = getattr(value, name)
    return value


def kinds_of(function: object) -> list[str] | None:
    """Return the types of a binding's arguments after the pass manager; None if its docstring lacks them."""
    match = SIGNATURE.match((function.__doc__ or "").strip())
    if not match:
        return None
    kinds = [kind.strip() for kind in PARAMETER.findall(match[1].replace(", /", ""))]
    return [{"typing.SupportsInt": "int"}.get(kind, kind) for kind in kinds[1:]]


def value_of(lib: types.ModuleType, kind: str, number: int) -> Any:
    """Return the first or second sample value for an argument."""
    if kind in PROBES:
        return PROBES[kind][number]
    short = re.split(r"::|\.", kind)[-1]
    for name in sorted(dir(lib)):  # ClusterInfo: a class of a backend, made without arguments
        cls = getattr(getattr(lib, name), short, None)
        if isinstance(cls, type):
            return cls()
    raise UnusableError(f"no sample value for the type {kind}")


def add(lib: types.ModuleType, manager: PassManager, path: str, arguments: Iterable[Any]) -> None:
    """Call a binding."""
    values = [
        value_of(lib, argument["class"], 0) if isinstance(argument, dict) else argument
        for argument in arguments
    ]
    binding(lib, path)(manager, *values)
