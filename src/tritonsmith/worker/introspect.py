"""Ask libtriton about itself: which binding adds which pass, what a backend calls, what a layout means.

Nothing is compiled. An assertion of the compiler ends the process, so each question has a process of its own.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import json
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .border import EXIT_REFUSED, WorkerRefusal, refusal_text, request_of, text_of
from .libtriton import PROBES, UnusableError, add, bindings_of, context_of, kinds_of, library, load
from .messages import BindingRow, CallRow, FormRow, LayoutRequest, LayoutRow, RehearsedRow, RehearseRequest
from .passes import write, write_rows
from .processes import in_child, interrupt_with_parent
from .stage import read_tail

if TYPE_CHECKING:
    from .border import Table
    from .foreign import Backend, Layout, PassManager

# Stages read attributes of the module and of its function, so an empty module is not enough to rehearse them.
KERNEL = """\
module {
  tt.func public @kernel() {
    tt.return
  }
}
"""
LAYOUT_MODULE = "module {\n  tt.func public @f(%%0: %s) {\n    tt.return\n  }\n}\n"
SIZES = re.compile(r"<((?:\d+x)+)")
SHOWN = 2000  # bytes of what was printed, in an error


def print_bindings(_: str) -> int:
    """Print one line per binding."""
    return write_rows(bindings(), sys.stdout)


def print_rehearsal(request_text: str) -> int:
    """Print one line per stage."""
    return write_rows(rehearse(request_of(RehearseRequest, request_text)), sys.stdout)


def bindings() -> Iterator[BindingRow]:
    """Yield a row per binding: its path, the types of its arguments, and its pass for sample values."""
    lib = load(library())
    for module, path, name in bindings_of(lib):
        kinds = kinds_of(getattr(module, name))
        binding = f"{path}.{name}"
        if kinds is None:
            yield BindingRow(binding, None, (), "its docstring does not list its arguments")
            continue
        forms, error = [], ""
        for values in _tries(kinds):
            answer = form_of(lib, binding, values)
            if answer["status"] == "ok":
                forms.append(FormRow(tuple(values), answer["value"]))
            else:
                error = answer["error"]
        yield BindingRow(binding, tuple(kinds), tuple(forms), error)


def _tries(kinds: list[str]) -> Iterator[list[Any]]:
    """Yield sample arguments of a binding: first values for all, then variants with one argument changed."""
    first = [PROBES[kind][0] if kind in PROBES else {"class": kind} for kind in kinds]
    yield first
    for position, kind in enumerate(kinds):
        if kind in PROBES:
            yield [*first[:position], PROBES[kind][1], *first[position + 1 :]]


def form_of(lib: types.ModuleType, path: str, arguments: list[Any]) -> Table:
    """Return the pipeline with only this pass, as `value`: `any(tritongpu-pipeline{num-stages=3})`."""
    # Up to 3.2 no pass manager prints its pipeline. A reproducer does, and is written before the passes run:
    # so it is valid even if the pass then crashes on the empty module, which is not what it expects.
    with tempfile.TemporaryDirectory() as folder:
        answer = in_child(lambda: _form(lib, path, arguments, folder))
        if answer["status"] != "ok":
            with contextlib.suppress(OSError), open(f"{folder}/out.mlir", encoding="utf-8") as file:
                match = re.search(r'pipeline: "(.*)"', file.read())
                if match:
                    return {"status": "ok", "value": match[1]}
    return answer


def _form(lib: types.ModuleType, path: str, arguments: list[Any], folder: str) -> str:
    context = context_of(lib)
    manager = lib.ir.pass_manager(context)
    add(lib, manager, path, arguments)
    if hasattr(manager, "get_pipeline_str"):  # since 3.3
        return str(manager.get_pipeline_str())
    write(f"{folder}/empty.mlir", "module {\n}\n")
    os.environ["TRITON_REPRODUCER_PATH"] = f"{folder}/out.mlir"
    manager.run(lib.ir.parse_mlir_module(f"{folder}/empty.mlir", context))
    raise UnusableError("the reproducer tells")


class EnoughError(BaseException):
    """The end of a rehearsal, after the last pass manager of MLIR."""


def rehearse(request: RehearseRequest) -> Iterator[RehearsedRow]:
    """Yield the backend's calls per stage, in order, with the forms of their passes."""
    # First, and in a child: it imports Triton, and no thread that an import starts may run in the process
    # that forks the other children.
    answer = in_child(lambda: _rehearse(request))
    if answer["status"] != "ok":
        raise UnusableError(answer["error"])
    lib = load(library())
    known: Table = {}
    for row in answer["value"]:
        calls = []
        for call in row["calls"]:
            key = json.dumps([call["binding"], call["arguments"]])
            if key not in known:
                known[key] = form_of(lib, call["binding"], call["arguments"])
            path, number = call["at"]
            form = known[key].get("value", "")
            calls.append(CallRow(call["binding"], tuple(call["arguments"]), (path, number), form))
        yield RehearsedRow(row["stage"], tuple(calls), row["error"])


def _rehearse(request: RehearseRequest) -> list[Table]:
    """Return the calls of the stages; pass managers do not run."""
    # So this is fast, and the calls depend on target and options only. A stage that reads the output of its
    # passes ends early, with the calls up to there.
    for name in request.stand_ins:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = types.ModuleType(name)
    from triton._C import libtriton as lib
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    calls: list[Table] = []
    for module, path, name in list(bindings_of(lib)):
        _watch(module, path, name, calls)
    lib.ir.pass_manager.run = lambda *_: None
    # After its last MLIR pass, the stage `llir` translates to LLVM's IR. A module that no pass has lowered
    # cannot go on from there.
    lib.llvm.context = _enough
    target = GPUTarget(*request.target)
    backend = make_backend(target)
    known = set(getattr(backend.parse_options({}), "__dataclass_fields__", ()))
    options = backend.parse_options({key: value for key, value in request.options.items() if key in known})
    context = lib.ir.context()
    lib.ir.load_dialects(context)
    backend.load_dialects(context)
    stages: Table = {}
    backend.add_stages(stages, options, *_language(backend))
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/empty.mlir", KERNEL)
        module = lib.ir.parse_mlir_module(request.input or f"{folder}/empty.mlir", context)
    module.context = context
    metadata = {"target": target, **vars(options)}
    rows = []
    for name in ("ttir", "ttgir", "llir"):
        before, error = len(calls), ""
        try:
            if name in stages:
                stages[name](module, metadata)
        except EnoughError:  # all passes of MLIR were requested
            pass
        except Exception as failure:  # noqa: BLE001 - the calls that were made count
            error = f"{type(failure).__name__}: {failure}"
        rows.append({"stage": name, "calls": calls[before:], "error": error})
    return rows


def _language(backend: Backend) -> list[Any]:
    """Return the last argument of `add_stages`, if the backend takes one (since 3.4)."""
    if len(inspect.signature(backend.add_stages).parameters) < 3:  # noqa: PLR2004 - stages, options, language
        return []
    from triton.backends.compiler import Language

    return [Language.TRITON]


def _enough(*_: Any) -> None:
    raise EnoughError


def _watch(module: types.ModuleType, path: str, name: str, calls: list[Table]) -> None:
    real = getattr(module, name)

    def watched(manager: PassManager, *arguments: Any) -> Any:
        caller = sys._getframe(1)  # noqa: SLF001 - the line of the pipeline
        at = [caller.f_code.co_filename, caller.f_lineno]
        calls.append({"binding": f"{path}.{name}", "arguments": plain(arguments), "at": at})
        return real(manager, *arguments)

    setattr(module, name, watched)


def plain(arguments: Iterable[Any]) -> list[Any]:
    """Return arguments of a binding as JSON values."""
    return [
        value if isinstance(value, (bool, int, str)) else {"class": type(value).__name__}
        for value in arguments
    ]


def print_layouts(request_text: str) -> int:
    """Convert layouts to linear ones: print a line of JSON for each type, with its bases or an error."""
    interrupt_with_parent()
    request = request_of(LayoutRequest, request_text)
    if not converts_layouts():
        what = "it cannot convert to linear layouts; releases from 3.6.0 on can"
        print(refusal_text(WorkerRefusal("unusable", what)))
        return EXIT_REFUSED
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        for number, text in enumerate(request.types):
            file = os.path.join(folder, f"{number}.mlir")
            with open(file, "w", encoding="utf-8") as module:
                module.write(LAYOUT_MODULE % text)
            answer = in_child(functools.partial(linear_layout, text, file), log, request.timeout)
            value = answer.get("value") or {"error": failure(answer["error"], log)}
            print(text_of(LayoutRow(text, **value)))
    return 0


def converts_layouts() -> bool:
    """Report whether this Triton converts layouts; import the modules that this takes."""
    # Gluon's bindings convert; `to_linear_layout` came with 3.6.
    import triton

    try:
        import triton.experimental.gluon.language  # noqa: F401 - once, and not for each type
        from triton._C.libtriton import gluon_ir
    except ImportError:
        return False
    return hasattr(gluon_ir.GluonOpBuilder, "to_linear_layout")


def linear_layout(text: str, file: str) -> Table:
    """Return the bases, shape and padding of the layout of a tensor or memory type."""
    import triton._C.libtriton as lib

    context = context_of(lib)
    module = lib.ir.parse_mlir_module(file, context)
    module.context = context
    value = module.get_function("f").args(0)
    builder = lib.gluon_ir.GluonOpBuilder(context)
    shape = [int(size) for size in SIZES.search(text)[1].split("x")[:-1]]  # type: ignore[index]
    if text.startswith("tensor"):
        layout = builder.get_gluon_layout_from_tensor(value)
    else:
        layout = builder.get_gluon_layout_from_memdesc(value)
    if hasattr(layout, "interval_padding_pairs"):  # not linear by its padding only
        return answer_of(layout, layout.shape)
    shape = shape[-rank_of(layout, len(shape)) :]  # the buffers of a pipeline come first
    return answer_of(builder.to_linear_layout(layout._to_ir(builder), shape), shape)  # noqa: SLF001 - as Gluon does


def rank_of(layout: Layout, most: int) -> int:
    """Return the number of dimensions of a layout."""
    for field in ("rank", "order", "block"):
        value = getattr(layout, field, None)
        if value is not None:
            return value if isinstance(value, int) else len(value)
    rows = getattr(layout, "offset_bases", None)
    return len(rows[0]) if rows else most


def answer_of(layout: Layout, shape: list[int]) -> Table:
    """Return the fields of one of Gluon's linear layouts."""
    # The fields differ by class (registers, shared memory, tensor memory), and by release: the bases of
    # blocks are `block_bases` or `cga_layout`.
    names = {"reg_bases": "register", "lane_bases": "lane", "warp_bases": "warp", "offset_bases": "offset"}
    names.update(rows="row", cols="column", block_bases="block", cga_layout="block")
    bases = {name: getattr(layout, field) for field, name in names.items() if hasattr(layout, field)}
    padding = getattr(layout, "interval_padding_pairs", [])
    return {"bases": bases, "shape": shape, "padding": padding}


def failure(error: str, log: str) -> str:
    """Return the error with the compiler's output."""
    printed = re.findall(
        r"^(?:loc\(.*\): )?(.*(?:error|Assertion|ERROR).*)$", read_tail(log, SHOWN), re.MULTILINE
    )
    return "\n".join([error, *printed[:3]])
