"""Load a plugin as Triton would, in processes of their own: an abort there is an answer here.

The struct that a plugin returns is `PluginInfo` in include/triton/Tools/PluginUtils.h at 3.7 and main; its
last field, Triton's version, came with version 2.
"""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
from typing import TYPE_CHECKING, Any

from .border import request_of, text_of
from .libtriton import context_of
from .messages import LoadPluginRequest, PluginStepRow, TriedPluginRow
from .processes import adopt, end_adopted, in_child, interrupt_with_parent, limit_memory
from .ptxas_remarks import read_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from .border import Table

ENTRY = "tritonGetPluginInfo"
SHOWN = 2000  # bytes of what was printed, in an error
MODULE = """tt.func public @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  tt.return %0 : i32
}
"""
LISTS = ("passes", "dialects", "ops")


class PluginInfo(ctypes.Structure):
    """The struct that the entry point returns."""

    _fields_ = [
        ("api", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        *(
            pair
            for name in LISTS
            for pair in ((name, ctypes.POINTER(ctypes.c_char_p)), (f"{name}_count", ctypes.c_size_t))
        ),
        ("triton", ctypes.c_char_p),
    ]


def try_it(request_text: str) -> int:
    """Print a JSON object: `said` by the plugin, `taken` by Triton, `ran`; each a value or an error."""
    interrupt_with_parent()
    adopt()
    request = request_of(LoadPluginRequest, request_text)
    steps = {}
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        for key, act in (("said", said), ("taken", taken), ("ran", ran)):
            answer = in_child(functools.partial(_bounded, act, request), log, request.timeout)
            end_adopted()  # sessions of their own, too
            steps[key] = PluginStepRow(
                answer["status"],
                answer.get("error", ""),
                answer["seconds"],
                answer.get("value", {}),
                read_tail(log, SHOWN),
            )
    print(text_of(TriedPluginRow(**steps)))
    return 0


def _bounded(act: Callable[[LoadPluginRequest], Table], request: LoadPluginRequest) -> Table:
    limit_memory(request.memory)
    return act(request)


def said(request: LoadPluginRequest) -> Table:
    """Return a plugin's own description; all of its symbols are resolved first."""
    from triton._C import libtriton  # noqa: F401 - the plugin takes its symbols from there

    library = ctypes.CDLL(request.plugin, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    entry = getattr(library, ENTRY)
    entry.restype = ctypes.POINTER(PluginInfo)
    info = entry().contents
    latest = info.api >= request.names_triton
    return {
        "api": info.api,
        "name": text(info.name),
        "version": text(info.version),
        "triton": text(info.triton) if latest else "",
        **{name: getattr(info, f"{name}_count") for name in LISTS},
    }


def taken(request: LoadPluginRequest) -> Table:
    """Return Triton's view of a plugin: the functions that add its passes."""
    return {"bindings": sorted(_bindings(request))}


def ran(request: LoadPluginRequest) -> Table:
    """Run each pass on a small module; a crash is libtriton's own, which it reports as a failure."""
    bindings = _bindings(request)
    from triton._C import libtriton

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "module.mlir")
        with open(file, "w", encoding="utf-8") as module_file:
            module_file.write(MODULE)
        for add in bindings.values():
            context = context_of(libtriton)
            module = libtriton.ir.parse_mlir_module(file, context)
            module.context = context
            manager = libtriton.ir.pass_manager(context)
            add(manager, [])
            manager.run(module, "plugin")
            str(module)
    return {"passes": len(bindings)}


def _bindings(request: LoadPluginRequest) -> dict[str, Callable[..., object]]:
    variable = request.variable
    if variable:
        os.environ[variable] = request.plugin
    from triton._C import libtriton

    module: Any = getattr(libtriton.passes, "plugin", None)
    if hasattr(module, "extend_with"):
        module.extend_with(request.plugin)
    names = (name for name in dir(module) if not name.startswith(("_", "extend_")))
    return {name: getattr(module, name) for name in names}


def text(value: bytes | None) -> str:
    """Decode a C string; empty for NULL."""
    return value.decode("utf-8", "replace") if value else ""
