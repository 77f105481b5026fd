"""Small cubins and code objects, made byte by byte: what no compiler gives on demand."""

from __future__ import annotations

import struct
from typing import Any

import msgpack

CUDA, AMDGPU = 190, 224
PROGBITS, NOTE, NOBITS = 1, 7, 8
KERNEL = "kern"
Part = tuple[str, int, int, bytes | int]  # name, type, flags, content or the size of what has none


def elf(machine: int, parts: list[Part]) -> bytes:
    """A file with these sections."""
    names = b"\0"
    body = b""
    rows = [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, kind, flags, content in [*parts, (".shstrtab", 3, 0, b"")]:
        at = len(names)
        names += name.encode() + b"\0"
        data = names if name == ".shstrtab" else b"" if isinstance(content, int) else content
        size = content if isinstance(content, int) else len(data)
        rows.append(struct.pack("<IIQQQQIIQQ", at, kind, flags, 0, 64 + len(body), size, 0, 0, 1, 0))
        body += data
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        2,
        machine,
        1,
        0,
        0,
        64 + len(body),
        0,
        64,
        0,
        0,
        64,
        len(rows),
        len(rows) - 1,
    )
    return head + body + b"".join(rows)


def sized(number: int, *values: int) -> bytes:
    """An attribute of `.nv.info` with words behind it."""
    return struct.pack("<BBH", 4, number, 4 * len(values)) + struct.pack(f"<{len(values)}I", *values)


def access(opcode: int, width: int) -> bytes:
    """An instruction: 0x387 is STL, 0x983 LDL; a width of 4 is 32 bits, 5 is 64."""
    return struct.pack("<QQ", opcode, width << 9)


def cubin(
    *,
    registers: int = 40,
    frame: int = 0,
    code: bytes = b"\0" * 16,
    flags: int = 0x6,
    own: bytes = b"",
    threads: int = 128,
    shared: int = 0,
) -> bytes:
    """A cubin of one kernel."""
    info = sized(0x2F, 1, registers) + sized(0x11, 1, frame)
    mine = sized(0x10, threads, 1, 1) + own
    parts: list[Part] = [
        (".nv.info", 0x70000000, 0, info),
        (f".nv.info.{KERNEL}", 0x70000000, 0, mine),
        (f".text.{KERNEL}", PROGBITS, flags, code),
        (f".nv.constant0.{KERNEL}", PROGBITS, 2, b"\0" * 380),
        (f".nv.shared.{KERNEL}", NOBITS, 3, shared),
    ]
    return elf(CUDA, parts)


def note(owner: bytes, kind: int, content: bytes) -> bytes:
    """An entry of a note section."""
    head = struct.pack("<III", len(owner) + 1, len(content), kind)
    return head + _padded(owner + b"\0") + _padded(content)


def code_object(table: Any = None, **changes: Any) -> bytes:
    """A code object of one kernel; `changes` are of its metadata, with `_` for a leading `.`."""
    kernel = {
        ".name": KERNEL,
        ".sgpr_count": 20,
        ".vgpr_count": 64,
        ".agpr_count": 16,
        ".private_segment_fixed_size": 0,
        ".group_segment_fixed_size": 0,
        ".sgpr_spill_count": 1,
        ".vgpr_spill_count": 2,
        ".wavefront_size": 64,
        ".max_flat_workgroup_size": 256,
    }
    kernel |= {f".{name}": value for name, value in changes.items()}
    content = msgpack.packb({"amdhsa.kernels": [kernel]} if table is None else table)
    parts: list[Part] = [
        (".note", NOTE, 2, note(b"AMDGPU", 32, content)),
        (".text", PROGBITS, 6, b"\0" * 64),
    ]
    return elf(AMDGPU, parts)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)
