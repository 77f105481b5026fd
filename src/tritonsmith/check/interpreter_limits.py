"""Known differences between Triton's interpreter and the IR, which prove no error in either.

Read in python/triton/runtime/interpreter.py of 3.0 to 3.9: bf16 is a 16-bit integer there, and all
operations but conversions take it as one; conversions of fp8 treat infinity and NaN in their own way; the
maximum of older releases keeps NaN, which `arith.maxnumf` drops.

"""

from __future__ import annotations

import math

from xdsl.dialects import builtin
from xdsl.ir import Operation

from tritonsmith.check.compare import Difference
from tritonsmith.check.memory import Contents
from tritonsmith.check.module import name_of
from tritonsmith.check.triton import is_ordered

_COMPUTED = ("arith.", "math.", "tt.dot", "tt.clampf", "tt.precise_", "tt.atomic_rmw")
_KEPT = {"arith.constant", "arith.select", "arith.bitcast", "arith.extf", "arith.truncf"}
_LACKS = {
    "tt.extern_elementwise": "functions of libdevice",
    "tt.elementwise_inline_asm": "inline assembly",
    "tt.descriptor_reduce": "atomic operations by descriptors",
}
_TO_INTEGER = {"arith.fptosi", "arith.fptoui"}
_DROPS_NAN = {"arith.maxnumf", "arith.minnumf"}


def excuse(function: Operation, difference: Difference, contents: Contents) -> str:
    """Return why a difference need not be an error; empty if no known limit explains it.

    Args:
        function: the kernel in the first text; the functions of its module are searched, too.
        difference: the first element that differs.
        contents: the contents of memory in that run.
    """
    every = list((function.parent_op() or function).walk())
    if any(_computes(operation) for operation in every):
        return "the interpreter computes bf16 by its bits"
    if any(name_of(operation) == "tt.dot" and _types(operation).endswith("f16") for operation in every):
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
    if any(name_of(operation) == "tt.fp_to_fp" and "f8E" in _types(operation) for operation in every):
        return "the interpreter converts infinity and NaN of fp8 its own way"
    return ""


def missing(function: Operation) -> str:
    """Return what the kernel uses and the interpreter lacks, such as `functions of libdevice`; or empty."""
    names = {name_of(operation) for operation in (function.parent_op() or function).walk()}
    return next((feature for name, feature in _LACKS.items() if name in names), "")


def _computes(operation: Operation) -> bool:
    """Return whether an operation computes with bf16."""
    name = name_of(operation)
    return name.startswith(_COMPUTED) and name not in _KEPT and "bf16" in _types(operation)


def _types(operation: Operation) -> str:
    values = (*operation.operands, *operation.results)
    types = (
        value.type.element_type if isinstance(value.type, builtin.TensorType) else value.type
        for value in values
    )
    return " ".join(map(str, types))
