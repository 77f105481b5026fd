"""Map each line of a stage to its Python line, by debug locations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted

_MLIR_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_MLIR_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_MLIR_NAME = re.compile(r"#loc\d*")
_MLIR_USE = re.compile(r"\bloc\((#loc\d*|\".*\":\d+:\d+)\)\s*\{?\s*$")
_LLVM_NODE = re.compile(r"^(!\d+) = (?:distinct )?!DI(\w+)\((.*)\)\s*$")
_LLVM_USE = re.compile(r"!dbg (!\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_SASS = re.compile(r'^\s*//## File "(.*?)", line (\d+)')
_OBJDUMP = re.compile(r"^; (/.*):(\d+)\b")
_INLINE = re.compile(r"^\s*(?://|;+) ?(?:(begin inline asm|#ASMSTART)|(?:end inline asm|#ASMEND))")
_ESCAPE = re.compile(rb"\\(?:([0-3][0-7]{2})|([0-9A-F]{2})|(.))", re.DOTALL)
_DEEPEST = 50  # aliases of aliases; a broken file may have a ring of them


@dataclass(frozen=True)
class SourceLine:
    """A line of a Python file.

    Attributes:
        file: its path, unescaped.
        number: from 1.
    """

    file: str
    number: int


def of(text: str, stage: str) -> list[SourceLine | None]:
    """Return for each line of a stage the Python line that it comes from; None if unknown."""
    lines = text.splitlines()
    if stage in ("source", "ttir", "glir", "ttgir"):
        return list(_mlir(lines))
    if stage == "llir":
        return list(_llvm(lines))
    if stage in ("ptx", "amdgcn"):
        return list(_assembly(lines))
    return list(_marked(lines))


def interleaved(text: str, stage: str, comment: str) -> str:
    """Return a stage with a comment at each change of the Python line.

    Args:
        text: of the stage.
        stage: its name.
        comment: the mark that begins a comment in its language.
    """
    sources: dict[str, list[str]] = {}
    before: SourceLine | None = None
    result = []
    for line, origin in zip(text.splitlines(), of(text, stage), strict=True):
        if origin and origin != before:
            content = _content(origin, sources)
            indent = line[: len(line) - len(line.lstrip())]
            result.append(f"{indent}{comment} {Path(origin.file).name}:{origin.number}: {content}")
            before = origin
        result.append(line)
    return "\n".join(result) + "\n"


def unescaped(name: str) -> str:
    r"""Return the real name of a file: for é, MLIR and LLVM write \\C3\\A9, assembly \\303\\251."""
    return os.fsdecode(_ESCAPE.sub(_byte, os.fsencode(name)))


def _byte(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, itself = match.groups()
    if itself:
        return bytes(itself)
    return bytes([int(octal, 8) if octal else int(hexadecimal, 16)])


def _content(line: SourceLine, sources: dict[str, list[str]]) -> str:
    if line.file not in sources:
        try:
            sources[line.file] = untrusted.read_text(Path(line.file)).splitlines()
        except OSError:
            sources[line.file] = []
    lines = sources[line.file]
    return lines[line.number - 1].strip() if 0 < line.number <= len(lines) else "(file not found)"


def _mlir(lines: Sequence[str]) -> Iterator[SourceLine | None]:
    aliases = {match[1]: match[2] for line in lines if (match := _MLIR_ALIAS.match(line))}
    for line in lines:
        match = None if _MLIR_ALIAS.match(line) else _MLIR_USE.search(line)
        yield _mlir_line(match[1], aliases) if match else None


def _mlir_line(text: str, aliases: dict[str, str]) -> SourceLine | None:
    """Return the innermost place: the callee of `callsite(callee at caller)`, which is named first."""
    for _ in range(_DEEPEST):
        alias = _MLIR_NAME.search(text)
        file = _MLIR_FILE.search(text)
        if file and (alias is None or file.start() < alias.start()):
            return SourceLine(unescaped(file[1]), int(file[2]))
        if alias is None:
            return None
        text = aliases.get(alias[0], "")
    return None


def _llvm(lines: Sequence[str]) -> Iterator[SourceLine | None]:
    nodes = {match[1]: (match[2], match[3]) for line in lines if (match := _LLVM_NODE.match(line))}
    for line in lines:
        match = _LLVM_USE.search(line)
        kind, fields = nodes.get(match[1], ("", "")) if match else ("", "")
        number = re.search(r"\bline: (\d+)", fields)
        if kind not in ("Location", "Subprogram") or not number or number[1] == "0":
            yield None
            continue
        file = _llvm_file(fields, nodes)
        yield SourceLine(file, int(number[1])) if file else None


def _llvm_file(fields: str, nodes: dict[str, tuple[str, str]]) -> str:
    for _ in range(_DEEPEST):
        reference = re.search(r"\bfile: (!\d+)", fields) or re.search(r"\bscope: (!\d+)", fields)
        kind, fields = nodes.get(reference[1], ("", "")) if reference else ("", "")
        if kind == "File":
            name = re.search(r'filename: "(.*?)"', fields)
            folder = re.search(r'directory: "(.*?)"', fields)
            return unescaped(str(Path(folder[1] if folder else "") / (name[1] if name else "")))
        if not kind:
            return ""
    return ""


def _assembly(lines: Sequence[str]) -> Iterator[SourceLine | None]:
    """Yield the Python line of each line of PTX or AMD's assembly."""
    # PTX lists its files below the code, AMD's assembly where it needs them: so all are collected first.
    files = {
        match[1]: unescaped(str(Path(match[2]) / match[3]) if match[3] else match[2])
        for line in lines
        if (match := _FILE.match(line))
    }
    # Inside inline assembly, `.loc` is ignored: LLVM of Triton 3.9 increases the line number for each of its
    # lines, but all belong to the place of its beginning.
    now: SourceLine | None = None
    inline = False
    for line in lines:
        if match := _INLINE.match(line):
            inline = bool(match[1])
        match = _LOC.match(line)
        if match and inline:
            yield None
        elif match:
            known = match[1] in files and match[2] != "0"
            now = SourceLine(files[match[1]], int(match[2])) if known else None
            yield None
        else:
            code = line.strip() and not line.lstrip().startswith((".", "//", ";", "$", "}"))
            yield now if code and not line.rstrip().endswith(":") else None


def _marked(lines: Sequence[str]) -> Iterator[SourceLine | None]:
    """Yield the Python line of each line of a disassembly, where places are lines of their own."""
    now: SourceLine | None = None
    for line in lines:
        escaped = _SASS.match(line)
        match = escaped or _OBJDUMP.match(line)
        if match:
            now = SourceLine(unescaped(match[1]) if escaped else match[1], int(match[2]))
            yield None
        else:
            yield now if line[:1].isspace() and line.strip() else None
