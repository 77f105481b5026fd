"""Parse a kernel in LLVM's dialect, and run it with one block of threads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation

from tritonsmith.check.llvm.machine import LockstepRun
from tritonsmith.check.llvm.memory import ByteMemory, SharedMemory
from tritonsmith.check.llvm.types import llvm_type
from tritonsmith.check.memory import GlobalMemory, base
from tritonsmith.check.module import (
    UnsupportedIrError,
    attribute,
    element_type,
    integer,
    name_of,
    parse,
    text,
    without_locations,
)
from tritonsmith.core.errors import SmithError

_ALIAS = re.compile(r"^#di_\w* = .*\n?", re.MULTILINE)  # debug information, which xDSL does not read


@dataclass(frozen=True)
class LoweredKernel:
    """A module in LLVM's dialect, without Triton's functions.

    Attributes:
        module: the parsed module.
        functions: its functions by name.
        main: the name of the kernel.
    """

    module: Operation
    functions: dict[str, Operation]
    main: str

    def run(
        self,
        given: tuple[Any, ...],
        reference: GlobalMemory,
        program: tuple[int, int, int],
        grid: tuple[int, int, int],
        limit: int,
        seen: Any = None,
        *,
        rounds: bool = False,
    ) -> GlobalMemory:
        """Run a block of threads on the reference's arguments; return its writes as the reference's elements.

        Raises:
            UnsupportedIrError: the kernel has an operation, a type or an access that is not known.
        """
        function = self.functions[self.main]
        parameters = function.regions[0].blocks[0].args
        scratch = parameters[len(given) :]
        if any(not isinstance(argument, np.ndarray) for argument in given) or any(
            llvm_type(str(parameter.type)).space != 1 for parameter in scratch
        ):
            raise UnsupportedIrError("parameters that are not those of Triton's IR")
        if reference.racing:  # which thread is the last one is not defined
            raise UnsupportedIrError("elements that one operation of the reference writes twice")
        memory = ByteMemory.of(reference, self._pointees())
        warp, warps = integer(self.module, "ttg.threads-per-warp"), integer(self.module, "ttg.num-warps")
        if not warp or not warps or integer(self.module, "ttg.num-ctas", 1) != 1:
            raise UnsupportedIrError("a cluster of blocks, or an unknown number of threads")
        if integer(self.module, "ttg.total-num-warps", warps) != warps:
            raise UnsupportedIrError("warp specialization")
        shared = SharedMemory(integer(self.module, "ttg.shared"))
        run = LockstepRun(self.functions, memory, shared, program, grid, warp * warps, warp, limit)
        run.seen, run.rounds = seen, rounds
        more = tuple(np.asarray(np.int64(base(number))) for number in range(len(given), len(parameters)))
        run.start(self.main, (*given, *more))
        return memory.result(len(given))

    def _pointees(self) -> tuple[np.dtype[Any] | None, ...]:
        """Return the dtype that each parameter points to; None where the attributes do not say."""
        hints = attribute(self.functions[self.main], "arg_attrs")
        dtypes: list[np.dtype[Any] | None] = []
        for hint in hints.data if isinstance(hints, builtin.ArrayAttr) else ():
            spelling = str(hint.data.get("tt.pointee_type", ""))
            try:
                dtypes.append(element_type(spelling))
            except UnsupportedIrError:
                dtypes.append(None)
        return tuple(dtypes)


def lowered(raw: str) -> LoweredKernel | None:
    """Parse a module in generic form; None if it has no functions of LLVM's dialect.

    Raises:
        FactError: xDSL cannot parse it.
        SmithError: the module has no kernel, or more than one.
    """
    module = parse(_ALIAS.sub("", without_locations(raw)))
    functions = {
        text(attribute(function, "sym_name")).strip('"'): function
        for function in module.walk()
        if name_of(function) in ("llvm.func", "tt.func")
    }
    shown = [
        name
        for name, function in functions.items()
        if function.regions[0].blocks and "internal" not in str(attribute(function, "linkage"))
    ]
    if not functions:
        return None
    if len(shown) != 1:
        raise SmithError("the module has no kernel, or more than one", why=", ".join(functions))
    return LoweredKernel(module, functions, shown[0])
