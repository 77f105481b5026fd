"""Parse a kernel in Triton's IR: the functions of a module."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from xdsl.ir import Block, Operation

from tritonsmith.check import asynchronous
from tritonsmith.check.in_flight import Order
from tritonsmith.check.module import UnsupportedIrError, attribute, name_of, parse, symbol, text
from tritonsmith.check.triton import has_precision, is_narrow_sum, is_ordered, is_tf32

_COMPUTING = (
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.fptosi", "arith.fptoui",
    "dot", "dot_scaled", "tt.extern_elementwise", "tt.fp_to_fp", "arith.truncf",
)  # fmt: skip


@dataclass(frozen=True)
class TritonKernel:
    """A parsed module, with the properties that decide how it is run and compared.

    Attributes:
        functions: the functions by name.
        main: the name of the kernel.
        orders: orders in which to run it so that its waits are checked; none if nothing is asynchronous.
        parts: number of partitions if warps are specialized; else 0.
        tf32: whether a dot of fp32 may be one of tf32.
        mixed: whether some dots of fp32 may be dots of tf32, and others may not.
        ordered: whether a reduction has several values, as argmax has: over NaN its order matters.
        narrow: whether it sums in fp16 or bf16, where each order rounds differently.
        compares: whether it only moves and compares floats, so that large ones serve as well as others.
        lines: the operations of each block, as `EvaluatedProgram` keeps them for its further runs.
    """

    functions: dict[str, Operation]
    main: str
    orders: tuple[Order, ...]
    parts: int
    tf32: bool
    mixed: bool
    ordered: bool
    narrow: bool
    compares: bool
    lines: dict[Block, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def function(self) -> Operation:
        """The kernel's function."""
        return self.functions[self.main]


# The first text, and those before and after the culprit, are needed again when it is blamed. Nothing changes
# a module once it is parsed.
@lru_cache(maxsize=4)
def parsed(raw: str) -> TritonKernel | None:
    """Parse the functions of a module, and find the kernel; None if LLVM's dialect has begun.

    Raises:
        FactError: xDSL cannot parse it.
        UnsupportedIrError: it has not exactly one kernel, or nested modules, or two functions of one name.
    """
    module = parse(raw)
    functions: dict[str, Operation] = {}
    names = {name_of(candidate) for candidate in module.ops}
    if "builtin.module" in names:
        raise UnsupportedIrError("a module in a module")
    for operation in module.ops:
        if name_of(operation) == "tt.func":
            name = symbol(attribute(operation, "sym_name"))
            if name in functions:
                raise UnsupportedIrError(f"two functions of the name {name}")
            functions[name] = operation
    shown = [
        name
        for name, candidate in functions.items()
        if text(attribute(candidate, "sym_visibility")).strip('"') == "public"
    ]
    # Once functions are LLVM's, tensors are gone: the check of Triton's IR ends here.
    if not functions and any(
        candidate.regions[0].blocks for candidate in module.ops if name_of(candidate) == "llvm.func"
    ):
        return None
    if len(shown) != 1 or not functions[shown[0]].regions[0].blocks:
        raise UnsupportedIrError(f"{len(shown) or 'no'} kernels in the module")
    others = [
        len(candidate.regions)
        for candidate in module.walk()
        if name_of(candidate) == "ttg.warp_specialize.partitions"
    ]
    parts = max(others, default=-1) + 1
    every = list(module.walk())
    # With dots of both kinds no rounding is right for all of them: see `mixed`.
    dots = [is_tf32(candidate) for candidate in every if has_precision(candidate)]
    return TritonKernel(
        functions,
        shown[0],
        asynchronous.orders(module),
        parts,
        tf32=any(dots),
        mixed=len(set(dots)) > 1,
        ordered=any(map(is_ordered, every)),
        narrow=any(map(is_narrow_sum, every)),
        compares=not any(
            name_of(candidate).endswith(_COMPUTING) or name_of(candidate).startswith("math.")
            for candidate in every
        ),
    )
