"""LLVM IR of a newer LLVM in the older spelling of the same thing, for an LLVM that refuses the newer one."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from tritonsmith.core import configs

_FLOATS, _BOUNDS = 23, 21  # the LLVMs that spell floats, and launch bounds, in another way than those before
_TOKEN = re.compile(
    r'"[^"]*"|\n|\b(half|bfloat|float|double)\b|'
    r"(?<![\w.$%@!-])([+-](?:inf|qnan)|f0x[0-9A-Fa-f]+|-?\d+\.\d+e[+-]\d+)\b"
)
_WIDTHS = {
    "half": (5, 10),
    "bfloat": (8, 7),
    "float": (8, 23),
    "double": (11, 52),
}  # of exponent and mantissa
_LETTERS = {"half": "H", "bfloat": "R"}
_FORMATS = {"half": ">e", "float": ">f", "double": ">d"}
_KERNEL = re.compile(r"^define ptx_kernel .*?(@[\w.$-]+)\(.*#(\d+)", re.MULTILINE)
_GROUP = re.compile(r"^attributes #(\d+) = \{(.*)\}$", re.MULTILINE)
_BOUND = re.compile(r'"nvvm\.(reqntid|maxntid|minctasm|maxnreg|cluster_dim|maxclusterrank)"="([\d,]+)"')
_SUFFIXES = {"reqntid": "xyz", "maxntid": "xyz", "cluster_dim": ("_x", "_y", "_z")}
_NUMBER = re.compile(r"^!(\d+) = ", re.MULTILINE)
_ANNOTATIONS = re.compile(r"^!nvvm\.annotations = !\{(.*)\}$", re.MULTILINE)


def older(llir: str) -> Iterator[tuple[int, str]]:
    """Yield the same IR for older and older LLVMs: those before the one that is named, the newest first.

    What has no older spelling stays, and is refused again.
    """
    rows = configs.load("blame")["respell"]
    text = llir
    # Each step adds to those before: LLVM 19 needs all undone that 20 to 23 brought.
    for since in sorted({_FLOATS, _BOUNDS, *(row["since"] for row in rows)}, reverse=True):
        before = text
        if since == _FLOATS:
            text = _old_floats(text)
        if since == _BOUNDS:
            text = _old_bounds(text)
        for row in rows:
            if row["since"] == since:
                text = re.sub(row["new"], row["old"], text)
        if text != before:
            yield since, text


def _old_floats(llir: str) -> str:
    """Spell constants by their bits: hexadecimal ones, infinities, decimals that older LLVMs do not round."""
    kind = ""  # the last one of the line: an instruction names its type once

    def spelled(match: re.Match[str]) -> str:
        nonlocal kind
        if match[2]:
            return _old_float(kind, match[2]) if kind else match[2]
        kind = match[1] or ("" if match[0] == "\n" else kind)
        return match[0]

    return _TOKEN.sub(spelled, llir)


def _old_float(kind: str, text: str) -> str:
    exponent, mantissa = _WIDTHS[kind]
    if text.startswith("f0x"):
        bits = int(text[3:], 16)
    elif text[1:] in {"inf", "qnan"}:
        quiet = 1 << mantissa - 1 if text[1:] == "qnan" else 0
        bits = (text[0] == "-") << exponent + mantissa | ((1 << exponent) - 1) << mantissa | quiet
    else:
        bits = _rounded(kind, float(text))
        if _value(kind, bits) == float(text):
            return text
    if kind in _LETTERS:
        return f"0x{_LETTERS[kind]}{bits:04X}"
    return _as_double(bits) if kind == "float" else f"0x{bits:016X}"


def _rounded(kind: str, value: float) -> int:
    if kind == "bfloat":  # the upper half of a float, to the nearest even one
        (wide,) = struct.unpack(">I", struct.pack(">f", value))
        return int(wide + 0x7FFF + (wide >> 16 & 1)) >> 16
    return int.from_bytes(struct.pack(_FORMATS[kind], value))


def _value(kind: str, bits: int) -> float:
    if kind == "bfloat":
        kind, bits = "float", bits << 16
    (value,) = struct.unpack(_FORMATS[kind], bits.to_bytes(struct.calcsize(_FORMATS[kind])))
    return float(value)


def _old_bounds(llir: str) -> str:
    """Add launch bounds as metadata, beside the attributes, which older LLVMs pass over in silence."""
    groups = dict(_GROUP.findall(llir))
    annotations = [
        f'!{{ptr {kernel}, !"{name}{suffix}", i32 {number}}}'
        for kernel, group in _KERNEL.findall(llir)
        for name, numbers in _BOUND.findall(groups.get(group, ""))
        for suffix, number in zip(_SUFFIXES.get(name, ("",)), numbers.split(","), strict=False)
    ]
    if not annotations:
        return llir
    first = max(map(int, _NUMBER.findall(llir)), default=-1) + 1
    there = _ANNOTATIONS.search(llir)
    nodes = [
        *filter(None, [there[1] if there else ""]),
        *(f"!{first + at}" for at in range(len(annotations))),
    ]
    text = _ANNOTATIONS.sub("", llir)
    lines = [f"!nvvm.annotations = !{{{', '.join(nodes)}}}"]
    lines += [f"!{first + at} = {node}" for at, node in enumerate(annotations)]
    return "\n".join([text, *lines, ""])


def _as_double(bits: int) -> str:
    """Spell a float as older LLVMs do: by the bits of the double of the same value."""
    exponent, mantissa = 0xFF << 23, (1 << 23) - 1
    if bits & exponent == exponent and bits & mantissa:  # a NaN: conversions may change its payload
        wide = (bits >> 31) << 63 | 0x7FF << 52 | (bits & mantissa) << 29
        return f"0x{wide:016X}"
    return f"0x{struct.pack('>d', _value('float', bits)).hex().upper()}"
