"""Run single passes on files of IR, print such files in MLIR's generic form, and try a plugin's passes.

`replay` runs a list of jobs. `reduce` is a conversation: a request is a line of JSON on standard input, an
answer one on standard output. `generic` prints files with the Triton that printed them. `plugin` loads a
plugin as Triton would. Each runs in a process of its own: an abort there is an answer here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import tempfile
import time
import types
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from .border import EXIT_REFUSED, WorkerRefusal, read_request, refusal_text, request_of, text_of
from .libtriton import UnusableError, add, context_of, library, load
from .load import content_of
from .messages import (
    CallRequest,
    ChildRow,
    GenericJobRequest,
    GenericRequest,
    LoadPluginRequest,
    PluginStepRow,
    ReadyRow,
    ReduceRequest,
    ReplayedRow,
    ReplayJobRequest,
    ReplayRequest,
    TriedPluginRow,
)
from .processes import adopt, end_adopted, in_child, interrupt_with_parent, limit_memory
from .stage import read_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from .border import Table
    from .foreign import MlirModule, PassManager

# In the log: the IR was parsed, and the passes begin. An earlier failure is not theirs.
MARK = "=== passes ===\n"
# MLIR prints a module in generic form if it is invalid, and `builtin.module` may only have attributes of
# dialects: one without a dialect's prefix makes it print that form.
_INVALID = "generic"

ENTRY = "tritonGetPluginInfo"
SHOWN = 2000  # bytes of what was printed, in an error
PLUGIN_INPUT = """tt.func public @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  tt.return %0 : i32
}
"""
LISTS = ("passes", "dialects", "ops")


def replay_all(request_path: str) -> int:
    """Run every job of a request; results go to the file that it names."""
    request = read_request(ReplayRequest, request_path)
    with open(request.results, "w", encoding="utf-8") as results:
        return write_rows(replay(request), results)


def write_rows(rows: Iterator[Any], out: TextIO) -> int:
    """Write rows as they come, and return the exit code."""
    try:
        for row in rows:
            out.write(text_of(row) + "\n")
            out.flush()
    except (UnusableError, ImportError) as error:
        out.write(refusal_text(WorkerRefusal("unusable", str(error))) + "\n")
        return EXIT_REFUSED
    return 0


def replay(request: ReplayRequest) -> Iterator[ReplayedRow]:
    """Run passes on their inputs."""
    lib = load(library())
    for job in request.jobs:
        answer = in_child(partial(_replay, lib, job), job.log, request.timeout)
        yield ReplayedRow(answer["status"], answer.get("error", ""), answer["seconds"], job.number)
        print(f"[{job.number}] {answer['status']}", flush=True)


def _replay(lib: types.ModuleType, job: ReplayJobRequest) -> None:
    context = context_of(lib)
    module = lib.ir.parse_mlir_module(job.input, context)
    manager = lib.ir.pass_manager(context)
    add_all(lib, manager, job.calls)
    run_passes(manager, module, "replay")
    write(job.out, str(module))


def add_all(lib: types.ModuleType, manager: PassManager, calls: Iterable[CallRequest]) -> None:
    """Add passes to a pass manager."""
    for call in calls:
        add(lib, manager, call.binding, call.arguments)


def run_passes(manager: PassManager, module: MlirModule, name: str) -> None:
    """Run the passes; `name` is for the reproducer."""
    # Since 3.5 `run` takes that name, and requires it. A binding has no signature but its docstring.
    tagged = ": str" in (manager.run.__doc__ or "")
    manager.run(module, *([name] if tagged else []))


def write(path: str, text: str) -> None:
    """Write the whole content of a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def print_all(request_path: str) -> int:
    """Print every file of a request; results go to the file that it names."""
    request = read_request(GenericRequest, request_path)
    rows: list[str] = []
    write(request.results, "")
    try:
        lib = load(library())
        # A context takes longer than most texts, so they share one, until a text ends its process.
        while len(rows) < len(request.jobs):
            left = request.jobs[len(rows) :]
            answer = in_child(partial(_print, lib, left, request), timeout=request.timeout * len(left))
            rows += content_of(request.results).decode().splitlines()[len(rows) :]
            if len(rows) < len(request.jobs):
                rows.append(text_of(ChildRow(answer["status"], answer.get("error", ""), answer["seconds"])))
                write(request.results, "".join(f"{row}\n" for row in rows))
    except (UnusableError, ImportError) as error:
        write(request.results, refusal_text(WorkerRefusal("unusable", str(error))) + "\n")
        return EXIT_REFUSED
    return 0


def _print(lib: types.ModuleType, jobs: Iterable[GenericJobRequest], request: GenericRequest) -> None:
    """Print files in this process, and append a row for each to the results."""
    _limit_addresses(request.memory)
    context = context_of(lib)
    # A handler of Python's would wait for the end of a long call: this kills.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with open(request.results, "a", encoding="utf-8") as results:
        for job in jobs:
            began, error = time.monotonic(), ""
            signal.setitimer(signal.ITIMER_REAL, request.timeout)
            try:
                write(job.out, generic_text(lib, context, lib.ir.parse_mlir_module(job.input, context)))
            except Exception as failure:  # noqa: BLE001 - whatever a binding raises
                error = f"{type(failure).__name__}: {failure}"
            row = ChildRow("failed" if error else "ok", error, time.monotonic() - began)
            results.write(text_of(row) + "\n")
            results.flush()


def _limit_addresses(memory: int) -> None:
    """Limit the address space of this process, in bytes."""
    # The generic form repeats the definition of an alias at each use, so a text may grow without bound.
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = memory if most == resource.RLIM_INFINITY else min(memory, most)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def generic_text(lib: types.ModuleType, context: Any, module: MlirModule) -> str:
    """Return a module in generic form; the module is invalid afterwards."""
    builder = lib.ir.builder(context)
    unit = getattr(builder, "get_unit_attr", None)  # some releases, 3.0 among them, lack it
    module.set_attr(_INVALID, unit() if unit else builder.get_bool_attr(True))
    return str(module)


def answer_requests() -> int:
    """Answer requests until the input ends."""
    try:
        lib = load(library())
    except (UnusableError, ImportError) as error:
        print(refusal_text(WorkerRefusal("unusable", str(error))), flush=True)
        return EXIT_REFUSED
    print(text_of(ReadyRow(ready=True)), flush=True)
    for line in sys.stdin:
        request = request_of(ReduceRequest, line)
        answer = in_child(partial(_answer, lib, request), request.log, request.timeout)
        row = ChildRow(answer["status"], answer.get("error", ""), answer["seconds"])
        print(text_of(row), flush=True)
    return 0


def _answer(lib: types.ModuleType, request: ReduceRequest) -> None:
    """Parse, run the passes, and write the output or its generic form, if requested; runs in the child."""
    context = context_of(lib)
    # One piece of IR has little to do in parallel, so no pool of threads is started for it.
    if hasattr(context, "disable_multithreading"):
        context.disable_multithreading()
    module = lib.ir.parse_mlir_module(request.input, context)
    if request.calls:
        manager = lib.ir.pass_manager(context)
        add_all(lib, manager, request.calls)
        os.write(2, MARK.encode())
        run_passes(manager, module, "reduce")
    if request.generic:
        write(request.out, generic_text(lib, context, module))
    elif request.out:
        text = module.str_nodebug() if hasattr(module, "str_nodebug") else str(module)  # since 3.3
        write(request.out, text)


class PluginInfo(ctypes.Structure):
    """The struct that the entry point returns."""

    # `PluginInfo` in include/triton/Tools/PluginUtils.h, at 3.7 and main. The last field came with version 2
    # of the struct: where `api` is less, it lies beyond the struct's end, and must not be read.
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


def try_plugin(request_text: str) -> int:
    """Print a JSON object: the plugin's description, Triton's view of it, and the run of its passes."""
    interrupt_with_parent()
    adopt()
    request = request_of(LoadPluginRequest, request_text)
    steps = {}
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        for key, act in (("said", described), ("taken", registered), ("ran", run_each)):
            answer = in_child(partial(_bounded, act, request), log, request.timeout)
            # `in_child` ends its child's group. A process that a plugin's constructor starts may have left
            # that group, for a session of its own.
            end_adopted()
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


def described(request: LoadPluginRequest) -> Table:
    """Return a plugin's own description."""
    from triton._C import libtriton  # noqa: F401 - the plugin takes its symbols from there

    # RTLD_NOW resolves all symbols at once: one that this libtriton lacks is an error here with its name,
    # instead of a crash in the middle of a pass.
    library = ctypes.CDLL(request.plugin, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    entry = getattr(library, ENTRY)
    entry.restype = ctypes.POINTER(PluginInfo)
    info = entry().contents
    latest = info.api >= request.names_triton
    return {
        "api": info.api,
        "name": _decoded(info.name),
        "version": _decoded(info.version),
        "triton": _decoded(info.triton) if latest else "",
        **{name: getattr(info, f"{name}_count") for name in LISTS},
    }


def registered(request: LoadPluginRequest) -> Table:
    """Return Triton's view of a plugin: the functions that add its passes."""
    return {"bindings": sorted(_bindings(request))}


def run_each(request: LoadPluginRequest) -> Table:
    """Run each pass on a small module."""
    bindings = _bindings(request)
    from triton._C import libtriton

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "module.mlir")
        with open(file, "w", encoding="utf-8") as module_file:
            module_file.write(PLUGIN_INPUT)
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
    # libtriton reads the variable while it is loaded, so it has to be set before the import.
    if request.variable:
        os.environ[request.variable] = request.plugin
    from triton._C import libtriton

    module: Any = getattr(libtriton.passes, "plugin", None)
    if hasattr(module, "extend_with"):
        module.extend_with(request.plugin)
    names = (name for name in dir(module) if not name.startswith(("_", "extend_")))
    return {name: getattr(module, name) for name in names}


def _decoded(value: bytes | None) -> str:
    """Decode a C string; empty for NULL."""
    return value.decode("utf-8", "replace") if value else ""
