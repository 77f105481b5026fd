"""A kernel in LLVM's dialect: its text parsed, and run by one block of threads."""

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
    """A module without functions of Triton's.

    Attributes:
        module: it.
        functions: by name.
        main: the kernel.
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
        """Run a block of threads on the arguments of the reference; what it wrote, as elements of that.

        Raises:
            UnsupportedIrError: the kernel has what is not known.
        """
        function = self.functions[self.main]
        parameters = function.regions[0].blocks[0].args
        scratch = parameters[len(given) :]
        if any(not isinstance(one, np.ndarray) for one in given) or any(
            llvm_type(str(one.type)).space != 1 for one in scratch
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
        """What each parameter points to, as far as the attributes say."""
        hints = attribute(self.functions[self.main], "arg_attrs")
        found: list[np.dtype[Any] | None] = []
        for one in hints.data if isinstance(hints, builtin.ArrayAttr) else ():
            said = str(one.data.get("tt.pointee_type", ""))
            try:
                found.append(element_type(said))
            except UnsupportedIrError:
                found.append(None)
        return tuple(found)


def lowered(raw: str) -> LoweredKernel | None:
    """A module in generic form; None if it has no functions of LLVM's dialect.

    Raises:
        FactError: xDSL does not read it.
        SmithError: it has no kernel, or more than one.
    """
    module = parse(_ALIAS.sub("", without_locations(raw)))
    functions = {
        text(attribute(one, "sym_name")).strip('"'): one
        for one in module.walk()
        if name_of(one) in ("llvm.func", "tt.func")
    }
    shown = [
        name
        for name, one in functions.items()
        if one.regions[0].blocks and "internal" not in str(attribute(one, "linkage"))
    ]
    if not functions:
        return None
    if len(shown) != 1:
        raise SmithError("the module has no kernel, or more than one", why=", ".join(functions))
    return LoweredKernel(module, functions, shown[0])
