"""Normalize assembly: no addresses, encodings, comments and source lines; and count instructions by class.

Branches go to labels. Registers of machine code are unchanged: their allocation is part of the comparison.
Those of PTX are named after their first definition.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from tritonsmith.core import configs
from tritonsmith.ir.normalize.renaming import MARK, NormalForm, assembly, indented, named

_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
_NAME = re.compile(rf"({_STRING}|\.L(?:_x_|BB)?(?:\d++(?:_\d++)?+|_[0-9a-f]{{4}}(?:\.\d++)?+)(?![\w$]))")
_LABEL = re.compile(r"(\.L)[\w.]+:$")
_PADDING = 8  # instructions that do nothing, in a row: more fill up a line of the instruction cache

_SASS = re.compile(rf"/\*[^*\n]*\*/|//.*|({_STRING})")
_SASS_ADDRESS = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/", re.MULTILINE)
_SASS_TARGET = re.compile(r"(\b(?:BRA|BSSY|CALL|JMP|RET|WARPSYNC|BRX)\b[^;\n]{0,99}?)\b0x([0-9a-f]+)(?=\s*;)")

_AMD_COMMENT = re.compile(rf"//.*|;.*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|({_STRING})")
_AMD_DROPPED = re.compile(
    r"^\s*(?:\.(?:loc|file|cfi_\w+|ident)\b.*|\.L(?:tmp|func_begin|debug\w*?|info_string|cu_begin|sec_end)\d*:.*)$",
    re.MULTILINE,
)
_AMD_DEBUG = re.compile(
    r"^\s*\.section\s+\.debug.*(?:\n|\Z)(?:(?!\s*\.(?:section|text|amdgpu_metadata)\b).*(?:\n|\Z))*+",
    re.MULTILINE,
)
_OBJDUMP_HEAD = re.compile(r"^.*:[ \t]+file format ", re.MULTILINE)
_OBJDUMP_SYMBOL = re.compile(r"^([0-9a-f]+) <([^>\n]*)>:", re.MULTILINE)
_OBJDUMP_ADDRESS = re.compile(r"// ([0-9A-F]{6,}):")
_OBJDUMP_TARGET = re.compile(
    r"^(\s*s_\w*(?:branch|call)\w*[^/\n]{0,99}?)\s[^\s/]{1,99}(\s*// [0-9A-F]+:[^<\n]*)<([^>\n]+)>\s*$",
    re.MULTILINE,
)


def sass(text: str) -> NormalForm:
    """Return the normal form of the output of nvdisasm or cuobjdump."""
    text = _with_labels_sass(text.replace(MARK, " "))
    return _machine_form(_SASS.sub(lambda match: match[1] or " ", text))


def amdgcn(text: str) -> NormalForm:
    """Return the normal form of assembly from LLVM's AMD backend."""
    text = _AMD_DEBUG.sub("", text.replace(MARK, " "))
    text = _AMD_COMMENT.sub(lambda match: match[1] or " ", text)
    return _machine_form(_AMD_DROPPED.sub("", text))


def gcnasm(text: str) -> NormalForm:
    """Return the normal form of llvm-objdump's output for AMD."""
    text = _OBJDUMP_HEAD.sub("file format ", text.replace(MARK, " "))
    text = _OBJDUMP_SYMBOL.sub(r"<\2>:", _with_labels_gcn(text))
    return _machine_form(_AMD_COMMENT.sub(lambda match: match[1] or " ", text))


def _machine_form(text: str) -> NormalForm:
    # A long row of instructions that do nothing pads the end of the code; how long it is depends on the
    # code's size, which is not the change that a reader looks for.
    kept: list[str] = []
    idle = 0
    for line in filter(None, (indented(line, by="    ") for line in text.split("\n"))):
        idle = idle + 1 if kept and line == kept[-1] and "nop" in line.lower() else 0
        kept.append(line)
        if idle >= _PADDING:
            del kept[-1]
    return named(assembly(kept, _NAME, _LABEL), {}, lambda _: ".L")


def _with_labels_sass(text: str) -> str:
    """Replace branch addresses by labels, in cuobjdump's format for one function."""
    # nvdisasm prints labels itself. An address would change with every instruction above it.
    targets = {match[2].lstrip("0") for match in _SASS_TARGET.finditer(text)}
    if not targets:
        return text
    placed = {match[1].lstrip("0") for match in _SASS_ADDRESS.finditer(text)} & targets
    text = _SASS_TARGET.sub(
        lambda match: f"{match[1]}.L_x_{int(match[2], 16)}" if match[2].lstrip("0") in placed else match[0],
        text,
    )
    return _SASS_ADDRESS.sub(
        lambda match: (
            f".L_x_{int(match[1], 16)}:\n{match[0]}" if match[1].lstrip("0") in placed else match[0]
        ),
        text,
    )


def _with_labels_gcn(text: str) -> str:
    """Replace `s_branch 54 // 1924: BF820036 <kernel+0x100>` by a branch to a label before its target."""
    # llvm-objdump prints a target as a symbol and an offset from it; labels have to be made from both.
    symbols = {match[2]: int(match[1], 16) for match in _OBJDUMP_SYMBOL.finditer(text)}

    def target(match: re.Match[str]) -> int | None:
        symbol, _, offset = match[3].partition("+0x")
        try:
            return symbols[symbol] + int(offset or "0", 16)
        except (KeyError, ValueError):
            return None

    targets = {target(match) for match in _OBJDUMP_TARGET.finditer(text)} - {None}
    if not targets:
        return text
    text = _OBJDUMP_TARGET.sub(
        lambda match: match[0] if target(match) is None else f"{match[1]} .L{target(match)}{match[2]}", text
    )
    lines = []
    for line in text.split("\n"):
        address = _OBJDUMP_ADDRESS.search(line)
        if address and (place := int(address[1], 16)) in targets:
            lines.append(f".L{place}:")
        lines.append(line)
    return "\n".join(lines)


# LLVM's register names; %tid.x, %ctaid.x, %SP and registers of inline assembly keep their names.
_PTX_NAME = re.compile(
    rf"({_STRING}|%(?:p|rs|rd|rq|r|fd|f|hh|h|b)(?:\d++|_[0-9a-f]{{4}}(?:\.\d++)?+)(?![\w$])"
    r"|\$L__BB(?:\d++_\d++|_[0-9a-f]{4}(?:\.\d++)?+)(?![\w$]))"
)
_PTX_DROPPED = re.compile(
    rf"//.*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|^\s*(?:\.loc\b.*|\.file\b.*|\$L__(?:tmp|func_begin|func_end)\d+:)|({_STRING})",
    re.MULTILINE,
)
_PTX_SECTION = re.compile(r"^\s*\.section[ \t]+\.debug\w*\s*\{[^}]*(?:\}|\Z)", re.MULTILINE)
_PTX_COUNT = re.compile(r"(\.reg\s+\.\w+\s+%\w+)<\d+>")
_PTX_BEGINS = re.compile(r"(?:\.(?:visible|weak|extern)\s+)*\.(?:entry|func)\b")
_PTX_LABEL = re.compile(r"(\$L__BB)\w+(?:\.\d+)?:")


def ptx(text: str) -> NormalForm:
    """Return the normal form of PTX."""
    # Not by `ptx.tokenize`: only registers, labels and strings matter here, and one pattern for them takes
    # fewer steps than a token per word. The numbers of declared registers are dropped: PTX has as many as it
    # has results, and ptxas allocates them.
    text = _PTX_DROPPED.sub(lambda match: match[1] or " ", text.replace(MARK, " "))
    text = _PTX_COUNT.sub(r"\1<>", _PTX_SECTION.sub("", text))
    kept = filter(None, (indented(line, by="    ") for line in text.split("\n")))
    return named(assembly(kept, _PTX_NAME, _PTX_LABEL, _PTX_BEGINS), {}, _ptx_stem)


def _ptx_stem(name: str) -> str:
    """Return the stem of a name: `%rd` of `%rd12`, `$L__BB` of `$L__BB0_3`."""
    return "$L__BB" if name[0] == "$" else name.partition("_")[0].rstrip("0123456789")


TOTAL, OTHER = "all", "other"

_MNEMONICS = {
    "sass": re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE),
    # `buffer_load_dword v3, off` reads scratch memory: it has no address operand.
    "amd": re.compile(r"^\t([a-z]\w+(?: [\w\[\]:]+, off(?=,))?)", re.MULTILINE),
}


def count(text: str, language: str) -> dict[str, int]:
    """Count classes in a disassembly (`sass` or `amd`), in the order of configs/; `all` comes first."""
    mnemonics = Counter(_MNEMONICS[language].findall(text))
    counts: Counter[str] = Counter()
    for mnemonic, number in mnemonics.items():
        counts[class_of(mnemonic, language)] += number
    order = {name: place for place, name in enumerate(names(language))}
    kept = sorted(counts.items(), key=lambda item: order[item[0]])
    return {TOTAL: mnemonics.total(), **dict(kept)}


@cache
def class_of(mnemonic: str, language: str) -> str:
    """Return the class of a mnemonic: `global load 128` for `LDG.E.128`; `other` if it is in none."""
    for name, pattern, wide in _classes(language):
        if pattern.fullmatch(mnemonic):
            return f"{name} {_width(mnemonic, language)}" if wide else name
    return OTHER


@cache
def names(language: str) -> tuple[str, ...]:
    """Return every class, those with a width once per width."""
    widths = sorted({bits for _, bits in configs.load("kernel-resources")["widths"][language]})
    classes: list[str] = []
    for name, _, wide in _classes(language):
        classes += [f"{name} {bits}" for bits in widths] if wide else [name]
    return (*classes, OTHER)


def _width(mnemonic: str, language: str) -> int:
    widths = configs.load("kernel-resources")["widths"][language]
    return next(int(bits) for pattern, bits in widths if re.search(pattern, mnemonic))


@cache
def _classes(language: str) -> tuple[tuple[str, re.Pattern[str], bool], ...]:
    rows = configs.load("kernel-resources")[language]
    return tuple((row["class"], re.compile(row["names"]), row.get("width", False)) for row in rows)
