"""LLVM IR of a newer LLVM in the older spelling of the same thing, for an LLVM that refuses the newer one."""

from __future__ import annotations

import re
import struct

from tritonsmith import configs

_FLOAT = re.compile(r"\bf0x([0-9A-Fa-f]{8})\b")
_DOUBLE = re.compile(r"\bf0x([0-9A-Fa-f]{16})\b")
_HALF = re.compile(r"\b(half|bfloat) f0x([0-9A-Fa-f]{4})\b")
_EXPONENT, _MANTISSA = 0x7F800000, 0x007FFFFF  # of a float
_SPECIAL = re.compile(r"\b(half|bfloat|float|double) ([+-])(qnan|inf)\b")
_LETTERS = {"half": "H", "bfloat": "R"}
_BITS = {  # of a quiet NaN and of infinity: sign and the rest; a float has those of a double
    "half": (1 << 15, {"qnan": 0x7E00, "inf": 0x7C00}),
    "bfloat": (1 << 15, {"qnan": 0x7FC0, "inf": 0x7F80}),
    "float": (1 << 63, {"qnan": 0x7FF8 << 48, "inf": 0x7FF0 << 48}),
    "double": (1 << 63, {"qnan": 0x7FF8 << 48, "inf": 0x7FF0 << 48}),
}


def older(llir: str) -> str:
    """The same IR; what has no older spelling stays, and is refused again."""
    text = _SPECIAL.sub(_as_bits, llir)
    text = _HALF.sub(lambda match: f"{match[1]} 0x{_LETTERS[match[1]]}{match[2]}", text)
    text = _DOUBLE.sub(r"0x\1", _FLOAT.sub(_as_double, text))
    for row in configs.load("blame")["respell"]:
        text = re.sub(row["new"], row["old"], text)
    return text


def _as_bits(match: re.Match[str]) -> str:
    kind = match[1]
    sign, values = _BITS[kind]
    bits = values[match[3]] | (sign if match[2] == "-" else 0)
    return f"{kind} 0x{_LETTERS[kind]}{bits:04X}" if kind in _LETTERS else f"{kind} 0x{bits:016X}"


def _as_double(match: re.Match[str]) -> str:
    """A float as older LLVMs write it: by the bits of the double of the same value."""
    bits = int(match[1], 16)
    if bits & _EXPONENT == _EXPONENT and bits & _MANTISSA:  # a NaN: conversions may change its payload
        wide = (bits >> 31) << 63 | 0x7FF << 52 | (bits & _MANTISSA) << 29
        return f"0x{wide:016X}"
    (value,) = struct.unpack(">f", struct.pack(">I", bits))
    return f"0x{struct.pack('>d', value).hex().upper()}"
