"""What Triton's interpreter is known to compute otherwise than the IR has it: no proof of an error in either.

Read in python/triton/runtime/interpreter.py of 3.0 to 3.9: bf16 is an integer of 16 bits there, and all
operations but conversions take it as such; conversions of fp8 treat infinity and NaN their own way; the
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
    """Why a difference need not be an error; empty if nothing is known that explains it.

    Args:
        function: the kernel in the first text; the functions that it calls are looked at, too.
        difference: the first element.
        contents: of memory.
    """
    every = list((function.parent_op() or function).walk())
    if any(_computes(one) for one in every):
        return "the interpreter computes bf16 by its bits"
    if any(name_of(one) == "tt.dot" and _types(one).endswith("f16") for one in every):
        return "the sum of a dot in fp16 is rounded in another order"
    if contents not in (Contents.PLAIN, Contents.PRECISE) and any(
        name_of(one) in _TO_INTEGER for one in every
    ):
        return "infinity, NaN and what is too large have no integer"
    return _of_nan(every, difference) if contents is Contents.EDGES else ""


def _of_nan(every: list[Operation], difference: Difference) -> str:
    """The same, of infinities and NaN."""
    names = {name_of(one) for one in every}
    if isinstance(difference.after, float) and math.isnan(difference.after) and names & _DROPS_NAN:
        return "the interpreter keeps NaN in a maximum or minimum"
    if any(map(is_ordered, every)):
        return "the interpreter reduces NaN in another order"
    if any(name_of(one) == "tt.fp_to_fp" and "f8E" in _types(one) for one in every):
        return "the interpreter converts infinity and NaN of fp8 its own way"
    return ""


def missing(function: Operation) -> str:
    """What a kernel uses and the interpreter lacks: `function of libdevice`; empty if nothing is known."""
    names = {name_of(one) for one in (function.parent_op() or function).walk()}
    return next((said for name, said in _LACKS.items() if name in names), "")


def _computes(operation: Operation) -> bool:
    """Whether it computes with bf16."""
    name = name_of(operation)
    return name.startswith(_COMPUTED) and name not in _KEPT and "bf16" in _types(operation)


def _types(operation: Operation) -> str:
    values = (*operation.operands, *operation.results)
    of = (one.type.element_type if isinstance(one.type, builtin.TensorType) else one.type for one in values)
    return " ".join(map(str, of))
