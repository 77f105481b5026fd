"""Read the metadata of an AMD code object: a note in MessagePack (AMDGPUUsage of LLVM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack

from tritonsmith.core.errors import FactError
from tritonsmith.ir import elf as elves
from tritonsmith.ir.elf import Elf

_METADATA = 32  # NT_AMDGPU_METADATA


@dataclass(frozen=True)
class CodeObject:
    """The kernel of a code object.

    Attributes:
        kernel: name of the function.
        sgprs: scalar registers per wave.
        vgprs: vector registers per lane; with the AGPRs if they share a register file (gfx90a and later).
        agprs: accumulation registers per lane.
        scratch: bytes per lane.
        lds: bytes of local data share that the code object fixes; Triton's comes with the launch.
        sgpr_spills: spilled scalar registers.
        vgpr_spills: spilled vector registers.
        wave: lanes of a wave.
        threads: of a work-group, at most.
        code: bytes of machine code.
    """

    kernel: str
    sgprs: int
    vgprs: int
    agprs: int
    scratch: int
    lds: int
    sgpr_spills: int
    vgpr_spills: int
    wave: int
    threads: int
    code: int


def read(elf: Elf) -> CodeObject:
    """Read the kernel of a file; Triton's files have one.

    Raises:
        FactError: it is of another vendor, or its metadata is missing or malformed.
    """
    if elf.backend != "hip" or ".note" not in elf.sections:
        raise FactError(
            "this file has no metadata of an AMD kernel", hints=["give an hsaco written by Triton"]
        )
    for owner, kind, content in elves.notes(elf.sections[".note"].data):
        if owner == "AMDGPU" and kind == _METADATA:
            return _kernel(_unpacked(content), elf)
    raise FactError(
        "this code object has no metadata note", hints=["code object version 3 or later is required"]
    )


def _unpacked(content: bytes) -> Any:
    try:
        return msgpack.unpackb(content, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise FactError("cannot read the metadata of this code object", why=str(error) or None) from error


def _kernel(table: Any, elf: Elf) -> CodeObject:
    try:
        (kernel,) = table["amdhsa.kernels"]
        name = str(kernel[".name"])
        numbers = {key: value for key, value in kernel.items() if type(value) is int}
        text = elf.sections.get(".text")
        return CodeObject(
            kernel=name,
            sgprs=numbers[".sgpr_count"],
            vgprs=numbers[".vgpr_count"],
            agprs=numbers.get(".agpr_count", 0),
            scratch=numbers[".private_segment_fixed_size"],
            lds=numbers[".group_segment_fixed_size"],
            sgpr_spills=numbers.get(".sgpr_spill_count", 0),
            vgpr_spills=numbers.get(".vgpr_spill_count", 0),
            wave=numbers[".wavefront_size"],
            threads=numbers[".max_flat_workgroup_size"],
            code=text.size if text else 0,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise FactError("the metadata of this code object is malformed", why=why) from error
