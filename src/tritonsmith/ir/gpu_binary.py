"""Read the kernel of a GPU binary, an ELF file: a cubin of NVIDIA, or a code object of AMD."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.facts import elf
from tritonsmith.facts.elf import DamagedElfError, SectionHeader

MACHINES = {190: "cuda", 224: "hip"}  # EM_CUDA, EM_AMDGPU: llvm/BinaryFormat/ELF.h
_NOBITS = 8  # a section that takes no room in the file
_NOTE = struct.Struct("<III")
_METADATA = 32  # NT_AMDGPU_METADATA

# The attributes of a cubin's kernel are in `.nv.info`, whose layout is the same from compute capability 7.0
# on. NVIDIA does not document it; `cuobjdump -elf` prints each attribute with its name (EIATTR_REGCOUNT ...).
_HEAD = struct.Struct("<BBH")  # format, attribute, value or size
_SIZED = 4  # EIFMT_SVAL: as many bytes follow as the value says
_FORMATS = range(1, _SIZED + 1)
_MAX_THREADS, _REQUIRED_THREADS = 0x05, 0x10
_FRAME, _REGISTERS, _BARRIERS = 0x11, 0x2F, 0x4C
_BARRIER_SHIFT, _BARRIER_MASK = 20, 0x7F  # in the flags of `.text`, before there was an attribute

# 16 bytes for each instruction: the opcode in bits 0 to 11, the width of an access in bits 73 to 75.
_INSTRUCTION = struct.Struct("<QQ")
_STORE_LOCAL, _LOAD_LOCAL = 0x387, 0x983  # STL, LDL
_OPCODE, _WIDTH, _WIDTH_SHIFT = 0xFFF, 0x7, 73 - 64
_BYTES = (1, 1, 2, 2, 4, 8, 16, 16)  # U8, S8, U16, S16, 32, 64, 128, U.128

_TOOL_SECTION, _TOOL = ".note.nv.tkinfo", re.compile(rb"release [\d.]+, V(\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class Section:
    """A section of an ELF file.

    Attributes:
        name: its name: `.text.matmul`.
        flags: its flags, as in the file.
        size: its size in bytes, even if it takes no room in the file.
        data: its content; empty if it takes no room.
    """

    name: str
    flags: int
    size: int
    data: bytes


@dataclass(frozen=True)
class Elf:
    """An ELF file.

    Attributes:
        backend: `cuda` or `hip`.
        sections: its sections by name; if a name repeats, the first one.
    """

    backend: str
    sections: dict[str, Section]


def load(path: Path) -> Elf:
    """Read a file.

    Raises:
        FactError: it cannot be read, or is not a GPU binary.
    """
    try:
        return parse(untrusted.read_bytes(path, untrusted.OURS))
    except OSError as error:
        raise FactError("cannot read this binary", where=path, why=error.strerror) from error


def parse(content: bytes) -> Elf:
    """Parse the sections of a cubin or a code object.

    Raises:
        FactError: it is neither, or is truncated.
    """
    if not content.startswith(elf.MAGIC):
        raise _wrong("it does not start with the ELF magic number")
    try:
        number = elf.machine_number(content)
        backend = MACHINES.get(number)
        if backend is None:
            raise _wrong(f"it is for a different architecture (e_machine {number})")
        headers = elf.sections(content)
    except DamagedElfError as error:
        raise _wrong(f"truncated: {error}") from error
    sections: dict[str, Section] = {}
    for header in headers:
        section = Section(header.name, header.flags, header.size, _data(content, header))
        sections.setdefault(header.name, section)
    return Elf(backend, sections)


def notes(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield owner, type and content of each note of a section.

    Raises:
        FactError: a note is truncated.
    """
    at = 0
    while at < len(data):
        try:
            owner_size, size, kind = _NOTE.unpack_from(data, at)
        except struct.error as error:
            raise _wrong(f"truncated note: {error}") from error
        owner_at = at + _NOTE.size
        # Owner and content are padded to four bytes. The ELF standard asks for eight in 64-bit files, but
        # LLVM and the GNU tools write four.
        content_at = owner_at + _aligned(owner_size)
        at = content_at + _aligned(size)
        if content_at + size > len(data):
            raise _wrong("a note is longer than its section")
        owner = data[owner_at : owner_at + owner_size].rstrip(b"\0").decode("utf-8", errors="replace")
        yield owner, kind, data[content_at : content_at + size]


def _data(content: bytes, header: SectionHeader) -> bytes:
    if header.kind in (0, _NOBITS):
        return b""
    end = header.offset + header.size
    if end > len(content):
        raise _wrong("a section extends past the end of the file")
    return content[header.offset : end]


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def _wrong(why: str) -> FactError:
    return FactError(
        "this file is neither a cubin nor a code object",
        why=why,
        hints=["compile the kernel again: invoke kernel.compile"],
    )


@dataclass(frozen=True)
class Cubin:
    """The kernel of a cubin.

    Attributes:
        kernel: the name of the function.
        registers: 32-bit registers per thread.
        frame: bytes of stack per thread.
        threads: the threads of a block, at most; 0 if the kernel sets no bound.
        barriers: named barriers per block.
        shared: bytes of static shared memory; from 9.0 on including the driver's reservation.
        constant: bytes of constant bank 0: parameters of the launch and of the kernel.
        code: bytes of machine code.
        local_stores: bytes written by the code's stores to local memory, each store counted once.
        local_loads: the same for loads.
    """

    kernel: str
    registers: int
    frame: int
    threads: int
    barriers: int
    shared: int
    constant: int
    code: int
    local_stores: int
    local_loads: int


def read_cubin(elf: Elf) -> Cubin:
    """Read the kernel of a file; Triton's files have one.

    Raises:
        FactError: it is of another vendor, has no kernel, or lacks an attribute.
    """
    infos = [name for name in elf.sections if name.startswith(".nv.info.")]
    if elf.backend != "cuda" or len(infos) != 1:
        raise FactError(
            f"expected one CUDA kernel in this file, found {len(infos)}",
            hints=["give a cubin written by Triton"],
        )
    kernel = infos[0].removeprefix(".nv.info.")
    text = elf.sections.get(f".text.{kernel}")
    if text is None:
        raise FactError(f"this cubin has no code for its kernel {kernel}")
    # `.nv.info` has what concerns a symbol of the file, as the driver needs it at the load; `.nv.info.NAME`
    # has what concerns the launch of one kernel.
    whole = dict(_attributes(elf.sections[".nv.info"].data)) if ".nv.info" in elf.sections else {}
    own = dict(_attributes(elf.sections[infos[0]].data))
    stores, loads = _local(text.data)
    in_flags = text.flags >> _BARRIER_SHIFT & _BARRIER_MASK
    return Cubin(
        kernel=kernel,
        registers=_of_symbol(whole, _REGISTERS, kernel),
        frame=_of_symbol(whole, _FRAME, kernel),
        threads=_threads(own),
        barriers=own[_BARRIERS][0] if _BARRIERS in own else in_flags,
        shared=_size(elf, f".nv.shared.{kernel}"),
        constant=_size(elf, f".nv.constant0.{kernel}"),
        code=text.size,
        local_stores=stores,
        local_loads=loads,
    )


def assembler(elf: Elf) -> str:
    """Return the version of the ptxas that wrote a cubin: `13.4.59`; empty if it is not recorded."""
    # ptxas records itself since CUDA 13: "Cuda compilation tools, release 13.4, V13.4.59".
    section = elf.sections.get(_TOOL_SECTION)
    match = _TOOL.search(section.data) if section else None
    return match[1].decode() if match else ""


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each attribute; if a number repeats, the last one counts."""
    at = 0
    while at + _HEAD.size <= len(data):
        kind, number, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if kind not in _FORMATS:
            raise FactError("cannot read the attributes of this cubin", why=f"unknown format {kind}")
        if kind == _SIZED:
            yield number, data[at : at + size]
            at += size
        else:
            # A value of up to two bytes is in the last half of the head itself.
            yield number, data[at - 2 : at]


def _of_symbol(attributes: dict[int, bytes], number: int, kernel: str) -> int:
    """Return a value that follows the index of its symbol."""
    try:
        _, value = struct.unpack("<II", attributes[number])
    except (KeyError, struct.error) as error:
        raise FactError(
            f"this cubin does not record the resources of {kernel}", why=f"attribute {number:#x}"
        ) from error
    return int(value)


def _threads(attributes: dict[int, bytes]) -> int:
    # `.reqntid`, which newer Tritons write, fixes the block; `.maxntid` of older ones only bounds it.
    content = attributes.get(_REQUIRED_THREADS, attributes.get(_MAX_THREADS, b""))
    try:
        x, y, z = struct.unpack("<III", content)
    except struct.error:
        return 0
    return int(x * y * z)


def _size(elf: Elf, name: str) -> int:
    return elf.sections[name].size if name in elf.sections else 0


def _local(code: bytes) -> tuple[int, int]:
    """Return the bytes of stores to local memory, and of loads."""
    # ptxas reports spills only in a log, which a cubin does not keep. The code still shows them, together
    # with the kernel's other uses of local memory.
    stores = loads = 0
    for low, high in _INSTRUCTION.iter_unpack(code[: len(code) // _INSTRUCTION.size * _INSTRUCTION.size]):
        opcode = low & _OPCODE
        if opcode == _STORE_LOCAL:
            stores += _BYTES[high >> _WIDTH_SHIFT & _WIDTH]
        elif opcode == _LOAD_LOCAL:
            loads += _BYTES[high >> _WIDTH_SHIFT & _WIDTH]
    return stores, loads


@dataclass(frozen=True)
class CodeObject:
    """The kernel of a code object.

    Attributes:
        kernel: the name of the function.
        sgprs: scalar registers per wave.
        vgprs: vector registers per lane; with the AGPRs if they share a register file (gfx90a and later).
        agprs: accumulation registers per lane.
        scratch: bytes per lane.
        lds: bytes of local data share that the code object fixes; Triton's comes with the launch.
        sgpr_spills: spilled scalar registers.
        vgpr_spills: spilled vector registers.
        wave: lanes of a wave.
        threads: the threads of a work-group, at most.
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


def read_code_object(elf: Elf) -> CodeObject:
    """Read the kernel of a file; Triton's files have one.

    Raises:
        FactError: it is of another vendor, or its metadata is missing or malformed.
    """
    if elf.backend != "hip" or ".note" not in elf.sections:
        raise FactError(
            "this file has no metadata of an AMD kernel", hints=["give an hsaco written by Triton"]
        )
    for owner, kind, content in notes(elf.sections[".note"].data):
        if owner == "AMDGPU" and kind == _METADATA:
            return _code_object(_unpacked(content), elf)
    raise FactError(
        "this code object has no metadata note", hints=["code object version 3 or later is required"]
    )


def _unpacked(content: bytes) -> Any:
    try:
        return msgpack.unpackb(content, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise FactError("cannot read the metadata of this code object", why=str(error) or None) from error


def _code_object(table: Any, elf: Elf) -> CodeObject:
    try:
        # The names are those of "Code Object V3 Metadata" in LLVM's AMDGPUUsage. Anybody may have written the
        # file, so any of these values may have another type.
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
