"""Map each line of a stage to its line of Python, by debug locations."""

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
        file: its path, with nothing escaped.
        number: from 1.
    """

    file: str
    number: int


def of(text: str, stage: str) -> list[SourceLine | None]:
    """For each line of a stage, the line of Python that it comes from; None if unknown."""
    lines = text.splitlines()
    if stage in ("source", "ttir", "glir", "ttgir"):
        return list(_mlir(lines))
    if stage == "llir":
        return list(_llvm(lines))
    if stage in ("ptx", "amdgcn"):
        return list(_assembly(lines))
    return list(_marked(lines))


def interleaved(text: str, stage: str, comment: str) -> str:
    """A stage with a comment wherever a different line of Python starts.

    Args:
        text: of the stage.
        stage: its name.
        comment: how a comment begins in its language.
    """
    sources: dict[str, list[str]] = {}
    before: SourceLine | None = None
    made = []
    for line, origin in zip(text.splitlines(), of(text, stage), strict=True):
        if origin and origin != before:
            content = _content(origin, sources)
            indent = line[: len(line) - len(line.lstrip())]
            made.append(f"{indent}{comment} {Path(origin.file).name}:{origin.number}: {content}")
            before = origin
        made.append(line)
    return "\n".join(made) + "\n"


def unescaped(name: str) -> str:
    r"""A file's name as the system has it: of é, MLIR and LLVM write \C3\A9, assembly \303\251."""
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
    """The innermost place: of `callsite(callee at caller)` the callee, which is named first."""
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
        found = re.search(r"\bfile: (!\d+)", fields) or re.search(r"\bscope: (!\d+)", fields)
        kind, fields = nodes.get(found[1], ("", "")) if found else ("", "")
        if kind == "File":
            name = re.search(r'filename: "(.*?)"', fields)
            folder = re.search(r'directory: "(.*?)"', fields)
            return unescaped(str(Path(folder[1] if folder else "") / (name[1] if name else "")))
        if not kind:
            return ""
    return ""


def _assembly(lines: Sequence[str]) -> Iterator[SourceLine | None]:
    """PTX lists its files below the code; AMD's assembly where it needs them.

    Inline assembly has the place of its beginning: LLVM of Triton 3.9 counts on for each of its lines.
    """
    files = {
        match[1]: unescaped(str(Path(match[2]) / match[3]) if match[3] else match[2])
        for line in lines
        if (match := _FILE.match(line))
    }
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
    """Disassemblers write the place on a line of its own."""
    now: SourceLine | None = None
    for line in lines:
        escaped = _SASS.match(line)
        match = escaped or _OBJDUMP.match(line)
        if match:
            now = SourceLine(unescaped(match[1]) if escaped else match[1], int(match[2]))
            yield None
        else:
            yield now if line[:1].isspace() and line.strip() else None
