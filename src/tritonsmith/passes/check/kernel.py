"""A kernel in Triton's IR: the functions of a module."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from tritonsmith.errors import SmithError
from tritonsmith.passes.check import asynchronous
from tritonsmith.passes.check.in_flight import Order
from tritonsmith.passes.check.module import attribute, name_of, parse, text


@dataclass(frozen=True)
class TritonKernel:
    """A module that was parsed.

    Attributes:
        functions: by name.
        main: the kernel's.
        orders: in which it runs for its waits to be checked; none if nothing is asynchronous.
        parts: how many there are, if warps are specialized; or 0.
    """

    functions: dict[str, Operation]
    main: str
    orders: tuple[Order, ...]
    parts: int

    @property
    def function(self) -> Operation:
        """The kernel."""
        return self.functions[self.main]


def parsed(raw: str) -> TritonKernel | None:
    """The functions of a module, and the kernel; None if there is no function of Triton's.

    Raises:
        SmithError: it has no kernel, or more than one.
        UnsupportedIrError: it cannot be read.
    """
    module = parse(raw)
    functions = {}
    for operation in module.walk():
        if name_of(operation) == "tt.func":
            functions[text(attribute(operation, "sym_name")).strip('"')] = operation
    shown = [
        name
        for name, one in functions.items()
        if text(attribute(one, "sym_visibility")).strip('"') == "public"
    ]
    if not functions:
        return None
    if len(shown) != 1:
        raise SmithError("the module has no kernel, or more than one", why=", ".join(functions))
    others = [len(one.regions) for one in module.walk() if name_of(one) == "ttg.warp_specialize.partitions"]
    parts = max(others, default=-1) + 1
    return TritonKernel(functions, shown[0], asynchronous.orders(module), parts)
