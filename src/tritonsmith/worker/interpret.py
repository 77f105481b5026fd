"""Run programs of a kernel in Triton's interpreter (TRITON_INTERPRET=1), on the memory of a request.

The interpreter is Triton's own, runtime/interpreter.py, in the steps of its GridExecutor. Only its access to
memory is replaced: addresses are those of the request, not of this process. It needs NumPy, and no torch.

Provide global memory for Triton's interpreter: bytes at addresses that no process has.

Run a script as Python would, then check its values for `triage --check`.

The verdict is a file: a script may end with any exit code, and may end before it has values.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .border import EXIT_REFUSED, RequestRefusedError, decoded, read_request, refusal_text, text_of
from .compile_point import complete
from .file_context import prepare
from .load import LoadedKernel, load_checked
from .messages import (
    CheckedRow,
    CheckRequest,
    InterpretedProgram,
    InterpretedRow,
    InterpretRequest,
    PointRequest,
)
from .passes import write
from .processes import in_child, interrupt_with_parent

if TYPE_CHECKING:
    from .border import Table
    from .foreign import JsonValue

if TYPE_CHECKING:
    from .border import Table


if TYPE_CHECKING:
    from .foreign import DType, TritonValue


def run_programs(request_path: str) -> int:
    """Run every program of a request, each in its own process; write results to the request's file."""
    interrupt_with_parent()
    request = read_request(InterpretRequest, request_path)
    answer = in_child(partial(_run_all, request), timeout=request.limit * (len(request.runs) + 1))
    if answer["status"] == "ok":
        lines, refused = answer["value"]
    else:  # the file ended the process that loads it
        lines, refused = (
            [text_of(InterpretedRow(answer["status"], answer["error"], answer["seconds"]))],
            False,
        )
    write(request.results, "".join(f"{line}\n" for line in lines))
    return EXIT_REFUSED if refused else 0


def _run_all(request: InterpretRequest) -> tuple[list[str], bool]:
    """Load the kernel, whose file may do anything, and run it until a program fails; return lines.

    The second value is true if the request is refused.
    """
    lines: list[str] = []
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends this process
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

    # needs NumPy

    memory = InterpretedMemory(program.memory)
    interpreter._interpreter = MemoryModule(interpreter._interpreter, memory)  # noqa: SLF001
    kernel = loaded.fn
    function = kernel.rewrite() if hasattr(kernel, "rewrite") else kernel.fn  # 3.1 and later rewrite its AST
    interpreter._patch_lang(function)  # noqa: SLF001
    interpreter.interpreter_builder.grid_dim = program.grid
    interpreter.interpreter_builder.grid_idx = program.program
    function(**_arguments(point, loaded, iter(program.arguments)))
    return {"written": list(memory.written()), "outside": memory.outside}


def _arguments(point: PointRequest, loaded: LoadedKernel, given: Iterator[Any]) -> Table:
    """Return the arguments by name: constants as a launch has them, others as the signature types them."""
    from triton.runtime import interpreter

    constants = {name: decoded(value) for name, value in complete(loaded, point).items()}
    constants.update({name: 1 for name, hint in point.hints.items() if hint == 1})
    marked = {name for name, one in loaded.fn.fn.__annotations__.items() if "constexpr" in str(one)}
    found: Table = {}
    for name, kind in point.signature.items():
        if name not in constants:
            found[name] = _typed(kind, next(given))
        elif name in marked:
            found[name] = constants[name]
        else:  # a number is a tensor for the interpreter, as for a launch
            found[name] = interpreter._implicit_cvt(constants[name])  # noqa: SLF001
    return found


def _typed(kind: str, value: JsonValue) -> Any:
    """Return a value of a type of the signature: bits of a number, an address, or a descriptor."""
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

    def __init__(self, address: int, kind: str) -> None:
        self._address, self.dtype = address, _ElementType(kind)

    def data_ptr(self) -> int:
        return self._address


def _descriptor(kind: str, value: Table) -> Any:
    """Return a descriptor of `tensordesc<fp16[128,64]>`."""
    from triton.runtime import interpreter
    from triton.tools.tensor_descriptor import TensorDescriptor

    base = _DescribedTensor(value["base"], kind[len("tensordesc<") :].partition("[")[0])
    made = TensorDescriptor(base, value["shape"], value["strides"], value["block"])
    return interpreter._implicit_cvt(made)  # noqa: SLF001


Array = Any  # of NumPy, which has no types in the Pythons that run this


class InterpretedMemory:
    """A memory of bytes at addresses.

    Attributes:
        outside: number of bytes that were read without being in the request or written; they are 0.
    """

    def __init__(self, runs: Iterable[tuple[int, str]]) -> None:
        """Fill the memory from runs of bytes: the first address, and the bytes in hexadecimal."""
        self.outside = 0
        parts = [(start, np.frombuffer(bytes.fromhex(digits), np.uint8)) for start, digits in runs]
        self._at = np.concatenate([[0], *(start + np.arange(part.size) for start, part in parts)]).astype(
            np.int64
        )
        self._data = np.concatenate([np.zeros(1, np.uint8), *(part for _, part in parts)])
        order = np.argsort(self._at)
        self._at, self._data = self._at[order], self._data[order]
        self._written = np.zeros(self._at.size, bool)

    def load(self, pointers: Array, dtype: DType) -> Array:
        """Return the elements at addresses, in one row."""
        dtype = np.dtype(dtype)
        at = pointers.astype(np.int64).reshape(-1, 1) + np.arange(dtype.itemsize)
        place = np.minimum(np.searchsorted(self._at, at), self._at.size - 1)
        there = self._at[place] == at
        self.outside += int(at.size - np.count_nonzero(there))
        return (
            np.ascontiguousarray(np.where(there, self._data[place], 0).astype(np.uint8))
            .view(dtype)
            .reshape(-1)
        )

    def store(self, pointers: Array, values: Array) -> None:
        """Write elements; of several to one address, the last one stays."""
        values = np.ascontiguousarray(values).reshape(-1)
        at = pointers.astype(np.int64).reshape(-1, 1) + np.arange(values.dtype.itemsize)
        place = np.minimum(np.searchsorted(self._at, at), self._at.size - 1)
        fresh = np.unique(at[self._at[place] != at])
        if fresh.size:
            order = np.argsort(every := np.concatenate((self._at, fresh)), kind="stable")
            self._at = every[order]
            self._data = np.concatenate((self._data, np.zeros(fresh.size, np.uint8)))[order]
            self._written = np.concatenate((self._written, np.zeros(fresh.size, bool)))[order]
            place = np.searchsorted(self._at, at)
        self._data[place] = values.view(np.uint8).reshape(at.shape)
        self._written[place] = True

    def written(self) -> Iterator[tuple[int, str]]:
        """Yield runs of the written bytes."""
        at, data = self._at[self._written], self._data[self._written]
        ends = np.flatnonzero(np.diff(at) != 1) + 1
        for part, content in zip(np.split(at, ends), np.split(data, ends)):
            if part.size:
                yield int(part[0]), content.tobytes().hex()


class MemoryModule:
    """A replacement for `triton._C.libtriton.interpreter`: only its functions that access memory differ."""

    def __init__(self, rest: object, memory: InterpretedMemory) -> None:
        self._rest, self._memory = rest, memory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)

    def load(self, pointers: Array, mask: Array, other: Array, dtype: DType) -> Array:
        """Return elements where the mask is true, others elsewhere."""
        pointers, mask, other = np.broadcast_arrays(pointers, np.asarray(mask, bool), other)
        elements = np.array(other, dtype=dtype)
        elements[mask] = self._memory.load(pointers[mask], dtype)
        return elements

    def store(self, pointers: Array, values: Array, mask: Array) -> None:
        """Write elements where the mask is true."""
        pointers, values, mask = np.broadcast_arrays(pointers, values, np.asarray(mask, bool))
        self._memory.store(pointers[mask], values[mask])

    def atomic_rmw(
        self, operation: TritonValue, pointers: Array, values: Array, mask: Array, _order: object
    ) -> Array:
        """Update one element after another; return the old values."""
        if operation.name == "FADD" and values.dtype.kind != "f":  # bf16 is an integer here
            raise ValueError("the interpreter has no atomic addition of this type")
        shape = np.shape(pointers)
        at, new, chosen = (
            np.broadcast_to(operand, shape).reshape(-1) for operand in (pointers, values, mask)
        )
        before = np.zeros(at.shape, new.dtype)
        for lanes in _lanes(at, np.flatnonzero(chosen)):
            before[lanes] = self._memory.load(at[lanes], new.dtype)
            with np.errstate(all="ignore"):
                after = _OPERATIONS[operation.name](before[lanes], new[lanes]).astype(new.dtype)
            self._memory.store(at[lanes], after)
        return before.reshape(shape)

    def atomic_cas(self, pointers: Array, expected: Array, values: Array, _order: object) -> Array:
        """Compare and swap one element after another, bit by bit; return the old values."""
        shape = np.shape(pointers)
        # Floats are compared by their bits: NaN equals itself, and -0.0 is not 0.0.
        at, old, new = (
            np.broadcast_to(operand, shape).reshape(-1) for operand in (pointers, expected, values)
        )
        before = np.zeros(at.shape, new.dtype)
        for lanes in _lanes(at, np.arange(at.size)):
            before[lanes] = self._memory.load(at[lanes], new.dtype)
            swapped = lanes[_bits(before[lanes]) == _bits(old[lanes])]
            self._memory.store(at[swapped], new[swapped])
        return before.reshape(shape)


def _lanes(at: Array, chosen: Array) -> list[Array]:
    """Return groups of elements that can act at once: all, or single ones if two share an address."""
    if np.unique(at[chosen]).size == chosen.size:
        return [chosen]
    return [np.asarray([lane]) for lane in chosen]


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.itemsize}")


def _unsigned(act: Callable[..., Any]) -> Any:
    return lambda one, other: act(one.view(f"u{one.itemsize}"), other.view(f"u{other.itemsize}")).view(
        one.dtype
    )


_OPERATIONS = {  # RMWOp, python/src/interpreter.cc
    "ADD": np.add, "FADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "UMIN": _unsigned(np.minimum),
    "UMAX": _unsigned(np.maximum), "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
    "XCHG": lambda _, value: value,
}  # fmt: skip


CLOSE = {"rtol": 1e-5, "atol": 1e-8}  # as torch.allclose; torch's comparison chooses them by the dtypes


def run_script(request_path: str, script: str, *arguments: str) -> int:
    """Run a script, write whether the check holds, and return the script's exit code."""
    request = read_request(CheckRequest, request_path)
    place = os.path.abspath(script)
    with open(place, "rb") as file:
        code = compile(file.read(), place, "exec")
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(place))
    module = types.ModuleType("__main__")
    module.__file__ = place
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - what Python does with a script
    except SystemExit as end:
        if end.code:
            print(end.code, file=sys.stderr)
            return end.code if isinstance(end.code, int) else 1
    row = judge(request, module.__dict__)
    print(f"check: {row.status}: {row.text}")
    with open(request.result, "w", encoding="utf-8") as results:
        results.write(text_of(row) + "\n")
    return 0


def judge(request: CheckRequest, names: Table) -> CheckedRow:
    """Return whether the check holds; `names` are those of the script's top level."""
    try:
        left = _value(request.left, names)
        if request.right:
            _compare(left, _value(request.right, names), request)
            return CheckedRow("holds", "they are close")
        truth = left is None or (left.all() if hasattr(left, "all") else left)
        return CheckedRow("holds" if truth else "differs", "None" if left is None else str(bool(truth)))
    except AssertionError as error:
        return CheckedRow("differs", _line(error))
    except Exception as error:  # noqa: BLE001 - a name that is not there, shapes that no comparison takes
        traceback.print_exc()
        return CheckedRow("error", f"{type(error).__name__}: {_line(error)}")


def _value(text: str, names: Table) -> Any:
    """Evaluate an expression; a function of the script is called."""
    found = eval(text, names)  # noqa: S307 - what the user wrote beside the script
    return found() if callable(found) else found


def _compare(left: object, right: object, request: CheckRequest) -> None:
    given = {name: getattr(request, name) for name in CLOSE if getattr(request, name) is not None}
    tolerances = {**dict.fromkeys(CLOSE, 0.0), **given} if given else {}
    torch, numpy = (sys.modules.get(name) for name in ("torch", "numpy"))
    if torch and hasattr(torch, "testing"):
        same = {"check_device": False, "check_dtype": False, "check_stride": False}
        torch.testing.assert_close(left, right, **same, **tolerances)
    elif numpy:
        numpy.testing.assert_allclose(left, right, **(tolerances or CLOSE), equal_nan=False)
    elif left != right:
        raise AssertionError(f"{left!r} is not {right!r}, and neither torch nor numpy compares them")


def _line(error: BaseException) -> str:
    return "; ".join(filter(None, map(str.strip, str(error).splitlines())))
