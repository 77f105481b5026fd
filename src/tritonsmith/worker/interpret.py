"""Run programs of a kernel in Triton's interpreter (TRITON_INTERPRET=1), on the memory of a request.

The interpreter is Triton's own, runtime/interpreter.py, in the steps of its GridExecutor. Only its access to
memory is replaced: addresses are those of the request, not of this process. It needs NumPy, and no torch.
"""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .border import EXIT_REFUSED, RequestRefusedError, decoded, read_request, refusal_text, text_of
from .compile_point import complete
from .file_context import prepare
from .load import LoadedKernel, load_checked
from .messages import InterpretedProgram, InterpretedRow, InterpretRequest, PointRequest
from .passes import write
from .processes import in_child, interrupt_with_parent

if TYPE_CHECKING:
    from .border import Table
    from .foreign import JsonValue


def run_programs(request_path: str) -> int:
    """Run every program of a request, each in its own process; write results to the request's file."""
    interrupt_with_parent()
    request = read_request(InterpretRequest, request_path)
    answer = in_child(partial(_run_all, request), timeout=request.limit * (len(request.runs) + 1))
    if answer["status"] == "ok":
        lines, refused = answer["value"]
    else:  # the file ended the process that loads it
        row = InterpretedRow(answer["status"], answer["error"], answer["seconds"])
        lines, refused = [text_of(row)], False
    write(request.results, "".join(f"{line}\n" for line in lines))
    return EXIT_REFUSED if refused else 0


def _run_all(request: InterpretRequest) -> tuple[list[str], bool]:
    """Load the kernel, whose file may do anything, and run it until a program fails; return lines.

    The second value is true if the request is refused.
    """
    lines: list[str] = []
    # The default action of the alarm ends this process, whatever the file catches; the parent makes a row of
    # it.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request.limit)
    try:
        _find_numpy(request.numpy)
        loaded = load_checked(request, prepare(request))
    except RequestRefusedError as error:
        return [refusal_text(error.refusal)], True
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert loaded is not None  # noqa: S101 - a kernel, no IR
    for program in request.runs:
        answer = in_child(partial(_run, request.points[0], loaded, program), timeout=request.limit)
        value = answer.get("value", {})
        lines.append(
            text_of(InterpretedRow(answer["status"], answer.get("error", ""), answer["seconds"], **value))
        )
        if answer["status"] != "ok":  # the next one would fail as well, perhaps after the same time
            break
    return lines, False


def _find_numpy(folder: str) -> None:
    """Import NumPy; if this interpreter has none, import it from a folder, if it fits."""
    # The folder is the tool's own, whose Python may have another version: then the C code of NumPy does not
    # load.
    try:
        importlib.import_module("numpy")
    except ImportError:
        sys.path.append(folder)
        try:
            importlib.import_module("numpy")
        except ImportError as error:
            what = "TRITON_INTERPRET=1 needs NumPy, which this interpreter lacks"
            raise RequestRefusedError("import", what, why=str(error), module="numpy") from None


def _run(point: PointRequest, loaded: LoadedKernel, program: InterpretedProgram) -> Table:
    """Run one program; return its written bytes, and the number of bytes read outside of the memory."""
    from triton.runtime import interpreter

    from .interpreted_memory import InterpretedMemory, MemoryModule  # needs NumPy

    memory = InterpretedMemory(program.memory)
    interpreter._interpreter = MemoryModule(interpreter._interpreter, memory)  # noqa: SLF001
    # As GridExecutor does. Since 3.1 the interpreter rewrites the kernel's AST first.
    kernel = loaded.fn
    function = kernel.rewrite() if hasattr(kernel, "rewrite") else kernel.fn
    interpreter._patch_lang(function)  # noqa: SLF001
    interpreter.interpreter_builder.grid_dim = program.grid
    interpreter.interpreter_builder.grid_idx = program.program
    function(**_arguments(point, loaded, iter(program.arguments)))
    return {"written": list(memory.written()), "outside": memory.outside}


def _arguments(point: PointRequest, loaded: LoadedKernel, values: Iterator[Any]) -> Table:
    """Return the arguments by name: constants as a launch has them, others as the signature types them."""
    from triton.runtime import interpreter

    constants = {name: decoded(value) for name, value in complete(loaded, point).items()}
    constants.update({name: 1 for name, hint in point.hints.items() if hint == 1})
    annotations = loaded.fn.fn.__annotations__
    marked = {name for name, annotation in annotations.items() if "constexpr" in str(annotation)}
    arguments: Table = {}
    for name, kind in point.signature.items():
        if name not in constants:
            arguments[name] = _typed(kind, next(values))
        elif name in marked:
            arguments[name] = constants[name]
        else:  # the interpreter makes a tensor of a number that is no constexpr, as a launch does
            arguments[name] = interpreter._implicit_cvt(constants[name])  # noqa: SLF001
    return arguments


def _typed(kind: str, value: JsonValue) -> Any:
    """Return a value with a type of the signature, from a number's bits, an address, or a descriptor."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    if kind.startswith("tensordesc<"):
        return _descriptor(kind, value)
    if kind.startswith("("):
        raise RequestRefusedError("value", "a tuple as a parameter")
    of = _element(kind)
    dtype = np.dtype(interpreter._get_np_dtype(of))  # noqa: SLF001
    data = np.array([value], f"u{dtype.itemsize}").view(dtype)
    return tl.tensor(interpreter.TensorHandle(data, of), of)


def _element(kind: str) -> Any:
    """Return the type of `fp16`, `i32`, `*fp16`, or `*kfp16`, a read-only pointer."""
    import triton.language as tl

    if kind[0] == "*":
        return tl.pointer_type(_element(kind[1:].lstrip("k")))
    if kind == "u1":
        return tl.int1
    # A signature spells integers `i32`, a dtype `int32`; of other types both have the same name.
    spelled = {"i": "int", "u": "uint"}.get(kind[0]) if kind[1:].isdigit() else None
    return tl.dtype(spelled + kind[1:] if spelled else kind)


class _ElementType:
    """An element type for the base of a descriptor: its name is a word that Triton knows."""

    def __init__(self, kind: str) -> None:
        of = _element(kind)
        self.name, self.itemsize, self.is_floating_point = kind, of.primitive_bitwidth // 8, of.is_floating()

    def __str__(self) -> str:
        return self.name


class _DescribedTensor:
    """The base of a descriptor: an address and a type, as of a tensor."""

    # TensorDescriptor asks its base for nothing else, and a tensor would need torch.

    def __init__(self, address: int, kind: str) -> None:
        self._address, self.dtype = address, _ElementType(kind)

    def data_ptr(self) -> int:
        return self._address


def _descriptor(kind: str, value: Table) -> Any:
    """Return a descriptor of `tensordesc<fp16[128,64]>`."""
    from triton.runtime import interpreter
    from triton.tools.tensor_descriptor import TensorDescriptor

    base = _DescribedTensor(value["base"], kind[len("tensordesc<") :].partition("[")[0])
    descriptor = TensorDescriptor(base, value["shape"], value["strides"], value["block"])
    return interpreter._implicit_cvt(descriptor)  # noqa: SLF001
