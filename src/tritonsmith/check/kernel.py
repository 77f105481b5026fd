"""A kernel in Triton's IR: the functions of a module."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

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
    """A module that was parsed.

    Attributes:
        functions: by name.
        main: the kernel's.
        orders: in which it runs for its waits to be checked; none if nothing is asynchronous.
        parts: how many there are, if warps are specialized; or 0.
        tf32: whether a dot of fp32 may be one of tf32.
        mixed: whether some dots of fp32 may be ones of tf32, and others may not.
        ordered: whether a reduction has several values, as argmax: over NaN, its order counts.
        narrow: whether it sums in fp16 or bf16: each order rounds in its own way.
        compares: whether it only moves and compares floats: large ones are as good as others.
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

    @property
    def function(self) -> Operation:
        """The kernel."""
        return self.functions[self.main]


def parsed(raw: str) -> TritonKernel | None:
    """The functions of a module, and the kernel; None if LLVM's dialect has begun.

    Raises:
        FactError: it cannot be read.
        UnsupportedIrError: it has not one kernel, or has modules in it, or two functions of one name.
    """
    module = parse(raw)
    functions: dict[str, Operation] = {}
    names = {name_of(one) for one in module.ops}
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
        for name, one in functions.items()
        if text(attribute(one, "sym_visibility")).strip('"') == "public"
    ]
    if not functions and any(one.regions[0].blocks for one in module.ops if name_of(one) == "llvm.func"):
        return None
    if len(shown) != 1 or not functions[shown[0]].regions[0].blocks:
        raise UnsupportedIrError(f"{len(shown) or 'no'} kernels in the module")
    others = [len(one.regions) for one in module.walk() if name_of(one) == "ttg.warp_specialize.partitions"]
    parts = max(others, default=-1) + 1
    every = list(module.walk())
    dots = [is_tf32(one) for one in every if has_precision(one)]
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
            name_of(one).endswith(_COMPUTING) or name_of(one).startswith("math.") for one in every
        ),
    )
