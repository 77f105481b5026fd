"""`--against interpreter`: compare the first text with TRITON_INTERPRET=1, program by program.

The first text is the front end's translation of the kernel's source; the interpreter runs the source itself,
operation by operation, on the same memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation

from tritonsmith.check.answer import Difference, InterpretedRuns, compare_memory
from tritonsmith.check.llvm.threads import ByteMemory
from tritonsmith.check.memory import WHOLE, Contents, GlobalMemory, TensorDescriptor
from tritonsmith.check.module import UnsupportedIrError, name_of
from tritonsmith.check.runs import CheckInputs, ReferenceRuns
from tritonsmith.check.triton import is_ordered
from tritonsmith.compiler import call
from tritonsmith.compiler.interpreter import Interpreter, worker_variables
from tritonsmith.compiler.request import CompilePoint
from tritonsmith.compiler.run import PreparedCompile, file_request
from tritonsmith.compiler.signature import CONSTEXPR
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import digest
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.worker.messages import InterpretedProgram, InterpretedRow, InterpretRequest

_TASK = "passes.check"
_INPUT = 2.0  # numbers in memory are smaller: a sum of them that is near 0 is not exact in any order
_COMPUTED = ("arith.", "math.", "tt.dot", "tt.clampf", "tt.precise_", "tt.atomic_rmw")
_KEPT = {"arith.constant", "arith.select", "arith.bitcast", "arith.extf", "arith.truncf"}
_LACKS = {
    "tt.extern_elementwise": "functions of libdevice",
    "tt.elementwise_inline_asm": "inline assembly",
    "tt.descriptor_reduce": "atomic operations by descriptors",
}
_TO_INTEGER = {"arith.fptosi", "arith.fptoui"}
_DROPS_NAN = {"arith.maxnumf", "arith.minnumf"}


@dataclass(frozen=True)
class TritonInterpreter:
    """Triton's interpreter for one kernel.

    Attributes:
        compiled: the compile whose first text is compared.
        where: its Triton.
        silent: whether to show no progress.
    """

    compiled: PreparedCompile
    where: Interpreter
    silent: bool = False

    def compare(self, reference: ReferenceRuns) -> InterpretedRuns:
        """Run every program of the reference in the interpreter, and compare what both wrote."""
        try:
            return self._compare(reference)
        except UnsupportedIrError as error:
            return InterpretedRuns("unknown", str(error))
        except FactError as error:
            return InterpretedRuns("unknown", ": ".join(filter(None, (error.what, error.why))))

    def _compare(self, reference: ReferenceRuns) -> InterpretedRuns:
        if why := reference.racing(""):
            return InterpretedRuns("unknown", why)
        images = {
            inputs: ByteMemory.of(memory, ())
            for inputs, memory in reference.memories.items()
            # NumPy's arithmetic with large integers is its own, and bounds test the compiler's code.
            if inputs.contents not in WHOLE and not inputs.sizes
        }
        grid = configs.load("passes-check")["inputs"]["grid"]
        arguments = {key: [argument.value for argument in every] for key, every in reference.given.items()}
        runs = tuple(
            InterpretedProgram(
                memory=tuple(_runs_of(*image.unwritten())),
                program=tuple(inputs.program),
                grid=tuple(grid),
                arguments=tuple(map(_plain, self._taken(arguments[inputs.arguments]))),
            )
            for inputs, image in images.items()
        )
        apart, rows = 0.0, self._run(runs)
        # The interpreter's process stops at the first program that fails: there may be fewer rows than runs.
        for inputs, row in zip(images, rows, strict=False):
            if row.status != "ok":
                return _failed(row.error, missing_operations(_function(reference)))
            image, memory = images[inputs], reference.memories[inputs]
            for start, content in row.written:
                raw = np.frombuffer(bytes.fromhex(content), np.uint8)
                image.store(start + np.arange(raw.size), raw[:, None])
            theirs = image.result(len(arguments[inputs.arguments]))
            most, difference = compare_memory(memory, theirs, memory.least, memory.slack)
            apart = max(apart, most)
            if difference or row.outside:
                return self._differs(reference, inputs, apart, difference, theirs)
        if len(rows) < len(images):
            return InterpretedRuns(
                "unknown", f"the interpreter ended after {len(rows)} of {len(images)} runs"
            )
        # Under these inputs nothing was compared, so "equal" would claim too much.
        if reference.left_out:
            count = reference.left_out
            why = f"under {count} inputs the first text does not end, or assumes what does not hold"
            return InterpretedRuns("unknown", why)
        return InterpretedRuns("close" if apart else "equal", "", apart)

    def _differs(
        self,
        reference: ReferenceRuns,
        inputs: CheckInputs,
        apart: float,
        difference: Difference | None,
        theirs: GlobalMemory,
    ) -> InterpretedRuns:
        """Report a difference; undecided where the interpreter is known to compute something else."""
        if difference:
            memory = reference.memories[inputs]
            least, whole = max(_INPUT, memory.least), not memory.least and memory.slack == 1
            if compare_memory(memory, theirs, least, memory.slack, whole=whole)[1] is None:
                return InterpretedRuns(
                    "unknown", "only small numbers differ, as they do where a sum has another order"
                )
            if why := excuse(_function(reference), difference, memory.contents):
                return InterpretedRuns("unknown", why)
        names = [argument.name for argument in reference.given[inputs.arguments]]
        behind = difference.argument if difference else None
        name = names[behind] if behind is not None and behind < len(names) else ""
        return InterpretedRuns(
            "differs", "", apart, inputs.seed, inputs.program, inputs.contents, difference, name
        )

    def _taken(self, values: list[Any]) -> list[Any]:
        """Return the arguments that the source has: no constants, and no sizes and strides of descriptors.

        Raises:
            UnsupportedIrError: they do not match the signature.
        """
        if not (kinds := [kind for _, kind in parameters(self.compiled.points)]):
            raise UnsupportedIrError("IR has no source that could be interpreted")
        taken, rest = [], list(values)
        for kind in kinds[: len(values)]:
            if kind.startswith("("):
                raise UnsupportedIrError("a tuple as a parameter")
            taken += rest[:1]
            # Some releases pass the sizes and strides behind each descriptor, and the source has no
            # parameters for them.
            own = [*taken[-1].shape, *taken[-1].strides] if kind.startswith("tensordesc<") else []
            del rest[: 1 + len(own) if list(map(_plain, rest[1 : 1 + len(own)])) == own else 1]
        if rest or len(taken) != len(kinds):
            raise UnsupportedIrError("the first text has other parameters than the signature")
        return taken

    def _run(self, runs: tuple[InterpretedProgram, ...]) -> list[InterpretedRow]:
        compiled, where = self.compiled, self.where
        own = digest(str(compiled.request.file), compiled.kernel)[:16]
        work = where.space.root / "passes" / "check" / f"{own}-{os.getpid()}"  # others may check it, too
        results = work / "interpreted.jsonl"
        request = InterpretRequest(
            **vars(file_request(compiled.request.file, compiled.kernel, compiled.points[:1], where)),
            results=str(results),
            numpy=str(Path(np.__file__).parent.parent),
            limit=configs.load("passes-check")["inputs"]["timeout"],
            runs=runs,
        )
        env = (*worker_variables(where), ("TRITON_INTERPRET", "1"))
        # Most of the request is memory in hexadecimal, which indentation would make larger still.
        file = work / "interpret.json"
        steps = call.steps(where.python, request, file, env=env, phase="interpreter", indent=None)
        quiet = self.silent
        try:
            with call.in_scratch(
                steps, results, InterpretedRow, where.space, task=_TASK, quiet=quiet
            ) as rows:
                return rows
        except call.UnansweredError as error:
            if not error.refusal:
                raise
            raise FactError(error.refusal.what, why=error.refusal.why or None) from error
        except CommandFailedError as failure:
            raise FactError("the interpreter's process ended", why=f"exit code {failure.code}") from failure


def parameters(points: Sequence[CompilePoint]) -> Iterator[tuple[str, str]]:
    """Yield the names and types of a kernel's non-constant parameters; none for IR, which has no source."""
    if (bound := points[0].bound) is None:
        return
    fixed = {*bound.constexprs, *(name for name, hint in bound.hints.items() if hint == 1)}
    for name, kind in bound.signature.items():
        if kind != CONSTEXPR and name not in fixed:
            yield name, kind


def _function(reference: ReferenceRuns) -> Operation:
    """Return the kernel in the first text."""
    assert reference.kernel  # noqa: S101 - there are runs of it
    return reference.kernel.function


def _runs_of(at: np.ndarray[Any, Any], data: np.ndarray[Any, Any]) -> Iterator[tuple[int, str]]:
    """Yield each run of consecutive bytes: its first address, and the bytes in hexadecimal."""
    # Most of what is read is contiguous, and the request would name each byte's address otherwise.
    ends = np.flatnonzero(np.diff(at) != 1) + 1
    for part, content in zip(np.split(at, ends), np.split(data, ends), strict=True):
        if part.size:
            yield int(part[0]), content.tobytes().hex()


def _plain(value: Any) -> Any:
    """Return an argument as JSON: the bits of a number, or a descriptor."""
    if isinstance(value, TensorDescriptor):
        return {"base": value.base, "shape": value.shape, "strides": value.strides, "block": value.block}
    # JSON has neither NaN nor a bfloat16, so a number goes by its bits.
    raw = np.ascontiguousarray(value).reshape(1)
    return int(raw.view(np.uint8 if raw.dtype == np.bool_ else f"u{raw.dtype.itemsize}")[0])


def _failed(message: str, missing: str) -> InterpretedRuns:
    """Describe what the interpreter lacks, or its own error, with the known remedy."""
    hints = [
        entry["try"] for entry in configs.load("passes-check")["interpreter"] if entry["says"] in message
    ]
    # A traceback has its message in the last line.
    why = (message.strip() or "it fails without a message").splitlines()[-1][:200]
    if missing and not hints:
        why = f"the interpreter has no {missing}: {why}"
    return InterpretedRuns("unknown", why, hints=tuple(hints))


def excuse(function: Operation, difference: Difference, contents: Contents) -> str:
    """Return why a difference need not be an error; empty if no known limit of the interpreter explains it.

    Args:
        function: the kernel in the first text; the functions of its module are searched, too.
        difference: the first element that differs.
        contents: the contents of memory in that run.
    """
    # Read in python/triton/runtime/interpreter.py of 3.0 to 3.9: bf16 is a 16-bit integer there, and all
    # operations but conversions take it as one; conversions of fp8 treat infinity and NaN in their own way;
    # the maximum of older releases keeps NaN, which `arith.maxnumf` drops.
    every = list((function.parent_op() or function).walk())
    if any(_computes(operation) for operation in every):
        return "the interpreter computes bf16 by its bits"
    if any(name_of(operation) == "tt.dot" and _types_of(operation).endswith("f16") for operation in every):
        return "the sum of a dot in fp16 is rounded in another order"
    if contents not in (Contents.PLAIN, Contents.PRECISE) and any(
        name_of(operation) in _TO_INTEGER for operation in every
    ):
        return "infinity, NaN and what is too large have no integer"
    return _of_nan(every, difference) if contents is Contents.EDGES else ""


def _of_nan(every: list[Operation], difference: Difference) -> str:
    """Return the same for infinities and NaN."""
    names = {name_of(operation) for operation in every}
    if isinstance(difference.after, float) and math.isnan(difference.after) and names & _DROPS_NAN:
        return "the interpreter keeps NaN in a maximum or minimum"
    if any(map(is_ordered, every)):
        return "the interpreter reduces NaN in another order"
    if any(name_of(operation) == "tt.fp_to_fp" and "f8E" in _types_of(operation) for operation in every):
        return "the interpreter converts infinity and NaN of fp8 its own way"
    return ""


def missing_operations(function: Operation) -> str:
    """Return what the kernel uses and the interpreter lacks, such as `functions of libdevice`; or empty."""
    names = {name_of(operation) for operation in (function.parent_op() or function).walk()}
    return next((feature for name, feature in _LACKS.items() if name in names), "")


def _computes(operation: Operation) -> bool:
    """Return whether an operation computes with bf16."""
    name = name_of(operation)
    return name.startswith(_COMPUTED) and name not in _KEPT and "bf16" in _types_of(operation)


def _types_of(operation: Operation) -> str:
    values = (*operation.operands, *operation.results)
    types = (
        value.type.element_type if isinstance(value.type, builtin.TensorType) else value.type
        for value in values
    )
    return " ".join(map(str, types))
