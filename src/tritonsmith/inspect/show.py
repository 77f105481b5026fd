"""Show one stage of one point, whole or one function of it: `kernel.show`.

`origins` maps each line of a stage to the Python line that its debug locations name.
"""

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.compiler import from_cache, targets
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.text import version_key
from tritonsmith.facts import known_issues as issues
from tritonsmith.facts.known_issues import CompiledText, IssueFacts, IssueMatch
from tritonsmith.ir import gpu_binary
from tritonsmith.wheels import ptxas

_MLIR_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_MLIR_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_MLIR_NAME = re.compile(r"#loc\d*")
_MLIR_USE = re.compile(r"\bloc\((#loc\d*|\".*\":\d+:\d+)\)\s*\{?\s*$")
_DEBUG_NODE = re.compile(r"^(!\d+) = (?:distinct )?!DI(\w+)\((.*)\)\s*$")
_LLVM_USE = re.compile(r"!dbg (!\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_SASS = re.compile(r'^\s*//## File "(.*?)", line (\d+)')
_OBJDUMP = re.compile(r"^; (/.*):(\d+)\b")
_INLINE = re.compile(r"^\s*(?://|;+) ?(?:(begin inline asm|#ASMSTART)|(?:end inline asm|#ASMEND))")
_ESCAPE = re.compile(rb"\\(?:([0-3][0-7]{2})|([0-9A-F]{2})|(.))", re.DOTALL)
_RECORDED = (13,)  # the first CUDA whose ptxas records its version in a cubin
_DEEPEST = 50  # aliases of aliases; a broken file may have a ring of them


@dataclass(frozen=True)
class SourceLine:
    """A line of a Python file.

    Attributes:
        file: the file's path, unescaped.
        number: the line's number, from 1.
    """

    file: str
    number: int


def origins(text: str, stage: str) -> list[SourceLine | None]:
    """Return the Python line behind each line of a stage; None if unknown."""
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
        text: the text of the stage.
        stage: the stage's name.
        comment: the mark that begins a comment in its language.
    """
    sources: dict[str, list[str]] = {}
    before: SourceLine | None = None
    result = []
    for line, origin in zip(text.splitlines(), origins(text, stage), strict=True):
        if origin and origin != before:
            content = _source_text(origin, sources)
            indent = line[: len(line) - len(line.lstrip())]
            result.append(f"{indent}{comment} {Path(origin.file).name}:{origin.number}: {content}")
            before = origin
        result.append(line)
    return "\n".join(result) + "\n"


def unescaped(name: str) -> str:
    r"""Return the real name of a file: for é, MLIR and LLVM write \\C3\\A9, assembly \\303\\251."""
    # Bytes, not text: one character may be several escapes, and a path need not be UTF-8.
    return os.fsdecode(_ESCAPE.sub(_byte, os.fsencode(name)))


def _byte(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, itself = match.groups()
    if itself:
        return bytes(itself)
    return bytes([int(octal, 8) if octal else int(hexadecimal, 16)])


def _source_text(line: SourceLine, sources: dict[str, list[str]]) -> str:
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
    nodes = {match[1]: (match[2], match[3]) for line in lines if (match := _DEBUG_NODE.match(line))}
    for line in lines:
        match = _LLVM_USE.search(line)
        kind, fields = nodes.get(match[1], ("", "")) if match else ("", "")
        # LLVM uses line 0 for code that belongs to no line, such as merged instructions.
        number = re.search(r"\bline: (\d+)", fields)
        if kind not in ("Location", "Subprogram") or not number or number[1] == "0":
            yield None
            continue
        file = _llvm_file(fields, nodes)
        yield SourceLine(file, int(number[1])) if file else None


def _llvm_file(fields: str, nodes: dict[str, tuple[str, str]]) -> str:
    for _ in range(_DEEPEST):
        # A location names only its scope: the scopes lead to a function or a file.
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
            known = match[1] in files and match[2] != "0"  # line 0: code of no line
            now = SourceLine(files[match[1]], int(match[2])) if known else None
            yield None
        else:
            # Directives, comments, PTX's labels ($L__BB0_1) and closing braces are no code.
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


# `source` is the ttir before any pass, `glir` Gluon's; both are MLIR.
MLIR = ("source", "ttir", "glir", "ttgir")
BINARY = {"cubin": "sass", "hsaco": "gcnasm"}
_COMMENTS = {"llir": ";", "amdgcn": ";", "gcnasm": ";"}
# Names of Pygments' lexers.
_LEXERS = {"llir": "llvm", "ptx": "ptx", "sass": "sass", "amdgcn": "amdgpu", "gcnasm": "amdgpu"}
_HEADS = {
    "llir": re.compile(r'^define\b[^@]*@"?(?P<name>[\w.$]+)"?\('),
    "ptx": re.compile(
        r"^\s*(?:\.(?:visible|weak|extern)\s+)*\.(?:entry|func)\s+(?:\(.*?\)\s*)?(?P<name>[\w$]+)"
    ),
    "amdgcn": re.compile(r"^(?P<name>[A-Za-z_][\w.$]*):"),
    "sass": re.compile(r"^//-+ \.text\.(?P<name>\S+)"),
    "gcnasm": re.compile(r"^[0-9a-f]+ <(?P<name>[^>+]+)>:"),
} | dict.fromkeys(MLIR, re.compile(r"^\s*tt\.func\b[^@]*@\"?(?P<name>[\w.$]+)"))
_ENDS = {
    "amdgcn": re.compile(r"^\.Lfunc_end"),
    "sass": re.compile(r"^//-+ "),
    "gcnasm": re.compile(r"^(?:[0-9a-f]+ <[^>+]+>:|Disassembly of)"),
}
# Pygments has no lexer for MLIR. A later pattern wins over an earlier one.
_STYLES = (
    (r"\b[a-z_]\w*\.[\w.]+", "bold"),
    (r"%[\w#]+", "cyan"),
    (r"[@#^!][\w.]+", "magenta"),
    (r"\b(?:tensor|memref|vector|i\d+|f\d+|bf16|index)\b", "green"),
    (r'"(?:[^"\\]|\\.)*"', "yellow"),
    (r"loc\(.*\)$", "dim"),
    (r"^\s*//.*", "dim"),
)
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_IN_LOCATION = rf"(?:[^()\"]|{_QUOTED})"
# Brackets in brackets, 16 deep: loc(callsite("a"("f.py":1:2) at "b"("f.py":3:4))). Python's regular
# expressions have no recursion, so the pattern is put into itself.
for _ in range(16):
    _IN_LOCATION = rf"(?:[^()\"]|{_QUOTED}|\({_IN_LOCATION}*\))"
_MLIR_LOCATION = re.compile(
    rf"^#(?:loc|di_)\w* = .*\n|(?<![ \t])[ \t]*\bloc\({_IN_LOCATION}*\)", re.MULTILINE
)
_PTX_LOCATION = re.compile(
    r"^[ \t]*\.(?:loc|file)\b.*\n|^[ \t]*\.section\s+\.debug_\w+\s*\{[^{}]*\}\n?", re.MULTILINE
)
_PTX_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)
_LLVM_RECORD = re.compile(
    r"^[ \t]*(?:#dbg_\w+\(|(?:tail )?call void @llvm\.dbg\.|declare void @llvm\.dbg\.|!llvm\.dbg\.cu\b).*\n",
    re.MULTILINE,
)
_LLVM_NODE = re.compile(r"^(!\d+) = (.*)\n", re.MULTILINE)


def choose(manifest: Manifest, which: str) -> Point:
    """Select the point with this id or target (`cuda:90`, `h100`); if empty, the only one.

    Raises:
        UsageError: there is no such point, or several fit.
    """
    target = _target(which)
    fitting = [point for point in manifest.points if not which or which == point.id or point.target == target]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        ids = [point.id for point in manifest.points]
        raise UsageError(f"no point {which!r}", where=manifest.folder, hints=did_you_mean(which, ids))
    hints = [f"choose one: --point {point.id}" for point in fitting[:10]]
    several = f"{len(fitting)} points" + (f" of target {which!r}" if which else "")
    raise UsageError(f"this folder has {several}", hints=hints)


def _target(text: str) -> str:
    try:
        return str(targets.parse(text))
    except UsageError:  # an id
        return ""


def known_issues(manifest: Manifest, point: Point) -> Iterator[IssueMatch]:
    """Yield the known issues that a compile has, by its versions and the text of its stages.

    Raises:
        FactError: a stage cannot be read.
    """
    values = {**point.metadata, **point.options, **point.hints, **point.constexprs}
    files = {stage: path for stage in point.stages if (path := manifest.path(point, stage))}
    return issues_of_files(manifest.triton, targets.parse(point.target), manifest.kernel, values, files)


def issues_of_files(
    triton: str, target: Target, kernel: str, values: Mapping[str, Any], files: Mapping[str, Path]
) -> Iterator[IssueMatch]:
    """Yield the known issues of a compile.

    Args:
        triton: version of Triton.
        target: the target.
        kernel: name of the function.
        values: its constants, hints and options.
        files: its stages.

    Raises:
        FactError: a stage cannot be read.
    """
    nvidia, arch = target.backend == "cuda", str(target.arch)
    needs_ptxas = nvidia and "cubin" in files and issues.depends_on_ptxas(kernel)
    version = _ptxas(triton, arch, files["cubin"]) if needs_ptxas else ""
    facts = IssueFacts(triton, f"sm_{arch}" if nvidia else arch, version)
    read = cached(lambda stage: _read(files[stage]))
    return issues.in_compile(facts, CompiledText(kernel, values, tuple(files), read))


def issues_of_cache(triton: str, cache: Path) -> Iterator[IssueMatch]:
    """Yield the known issues of the entries of a cache, whose metadata do not have a kernel's constants.

    Args:
        triton: version of the Triton that compiled them.
        cache: the cache.
    """
    for path in sorted(cache.rglob("*.json")):
        # What a program left there may be anything, and a file of another kind is no entry.
        with suppress(OSError, ValueError, SmithError):
            table = untrusted.read_json(path)
            if isinstance(table, dict) and (target := from_cache.target_of(table)):
                files = {file.suffix[1:]: file for file in path.parent.glob(f"{path.stem}.*") if file != path}
                yield from issues_of_files(triton, target, str(table.get("name")), table, files)


def _ptxas(triton: str, arch: str, cubin: Path) -> str:
    """Return the version of the ptxas that wrote a cubin; empty if it is unknown."""
    if recorded := gpu_binary.assembler(gpu_binary.load(cubin)):
        return recorded
    # One of CUDA 12 records nothing, so it is that of the wheel unless a variable named another.
    name = str(ptxas.row_for(triton, f"{arch[:-1]}.{arch[-1]}")["name"])
    shipped = issues.shipped_ptxas(triton, name)
    return shipped if version_key(shipped)[:1] < _RECORDED else ""


def as_json(manifest: Manifest, point: Point, stage: str, text: str) -> dict[str, Any]:
    """Return a text of a stage as JSON data, with what it is of."""
    about = {"kernel": manifest.kernel, "point": point.id, "target": str(point.target), "stage": stage}
    return {"schema": 1, **about, "folder": str(manifest.folder), "text": text}


def stage_text(manifest: Manifest, point: Point, stage: str) -> str:
    """Return the text of a stage.

    Raises:
        FactError: the point failed, or the file cannot be read.
        UsageError: the point has no such stage, or the stage is binary.
    """
    path = manifest.path(point, stage)
    if path is None:
        if point.status != "ok":
            raise FactError(
                f"{point.id} did not compile: {point.status}", where=manifest.folder, why=point.error
            )
        raise UsageError(f"{point.id} has no stage {stage!r}", hints=did_you_mean(stage, point.stages))
    if stage in BINARY:
        raise UsageError(
            f"{stage} is a binary stage",
            where=path,
            hints=[f"to show its disassembly: --stage {BINARY[stage]}"],
        )
    return _read(path)


def _read(path: Path) -> str:
    try:
        return untrusted.read_text(path, untrusted.OURS)
    except OSError as error:
        raise FactError("cannot read this stage", where=path, why=error.strerror) from error


def function(whole: str, stage: str, name: str) -> str:
    """Return one function of a stage.

    Raises:
        UsageError: it has no such function.
    """
    lines = whole.splitlines()
    heads = {
        match["name"]: number for number, line in enumerate(lines) if (match := _HEADS[stage].match(line))
    }
    if name not in heads:
        raise UsageError(f"the {stage} has no function {name!r}", hints=did_you_mean(name, heads))
    begin = heads[name]
    return "\n".join(lines[begin : _end(lines, begin, stage)]) + "\n"


def with_source(whole: str, stage: str, name: str = "") -> str:
    """Return a stage, or one of its functions, with the Python lines that it comes from as comments."""
    # First the comments, then the function: aliases of locations are outside of it.
    mixed = interleaved(whole, stage, _COMMENTS.get(stage, "//"))
    return function(mixed, stage, name) if name else mixed


def link(content: str, stage: str, target: str) -> str:
    """Return a URL that opens a text in Compiler Explorer, without the debug locations.

    Args:
        content: the stage, or one of its functions.
        stage: the stage's name.
        target: the point's target: `cuda:90:32`.

    Raises:
        UsageError: Compiler Explorer has no language for the stage.
        FactError: the text is too long for a URL.
    """
    site = configs.load("compiler-explorer")
    languages = site["language"]
    if stage not in languages:
        raise UsageError(
            f"Compiler Explorer has no language for the stage {stage!r}",
            hints=[f"stages that it can show: {', '.join(languages)}"],
        )
    language = languages[stage]
    compilers = []
    if "compiler" in language:
        arch = f"{language['arch']}{_arch(content, target)}"
        options = " ".join(filter(None, (language.get("options"), arch)))
        compilers.append({"id": language["compiler"], "options": options})
    source = without_locations(content, stage)
    session = {"id": 1, "language": language["id"], "source": source, "compilers": compilers}
    # The site reads its state from the URL itself, so nothing is uploaded before the user opens it.
    state = json.dumps({"sessions": [session]}, separators=(",", ":")).encode()
    url: str = site["url"] + base64.urlsafe_b64encode(zlib.compress(state, 9)).decode()
    if len(url) > site["longest"]:
        raise FactError(
            f"this {stage} is too long for a link",
            why=f"the URL would have {len(url)} characters; the site takes {site['longest']}",
            hints=["only one function: --function NAME", "paste the text into https://godbolt.org yourself"],
        )
    return url


def without_locations(content: str, stage: str) -> str:
    """Remove debug locations, which name the user's files; the meaning is unchanged."""
    if stage in MLIR:
        return _MLIR_LOCATION.sub("", content)
    if stage == "ptx":
        return _PTX_LOCATION.sub("", content)
    return _without_debug_info(content) if stage == "llir" else content


def _without_debug_info(llir: str) -> str:
    """Remove debug records from LLVM IR, and the metadata that only they need."""
    text = re.sub(r",?\s!dbg !\d+", "", _LLVM_RECORD.sub("", llir))
    # !DI nodes hold names and paths of the user's. Lists of such nodes, and lists of those lists, would
    # name nodes that are gone, which LLVM does not parse.
    lists: dict[str, list[str]] = {}  # the nodes that name a node
    gone: set[str] = set()
    more = []
    for node, body in _LLVM_NODE.findall(text):
        if re.match(r"(?:distinct )?!DI\w+\(", body):
            more.append(node)
        for other in re.findall(r"!\d+\b", body):
            lists.setdefault(other, []).append(node)
    while more:  # nodes that refer to removed nodes go, too
        if (node := more.pop()) not in gone:
            gone.add(node)
            more += lists.get(node, ())
    return _LLVM_NODE.sub(lambda match: "" if match[1] in gone else match[0], text)


def _arch(content: str, target: str) -> str:
    """Return the GPU as a compiler names it: `sm_90a`, `gfx942`."""
    if match := _PTX_TARGET.search(content):
        return match[1]
    backend, _, rest = target.partition(":")
    name = rest.partition(":")[0]
    return f"sm_{name}" if backend == "cuda" else name


def _end(lines: Sequence[str], begin: int, stage: str) -> int:
    ending = _ENDS.get(stage)
    if ending:
        after = range(begin + 1, len(lines))
        return next((number for number in after if ending.match(lines[number])), len(lines))
    # Neither MLIR, LLVM IR nor PTX marks the end of a function otherwise than by its brace.
    depth, opened = 0, False
    for number, line in enumerate(_bare(lines[begin:]), begin):
        depth += line.count("{") - line.count("}")
        opened = opened or "{" in line
        if opened and depth <= 0:
            return number + 1
    return len(lines)


def _bare(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines without comments, strings, and braces that close on the same line: attributes."""
    for line in lines:
        plain = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
        plain = re.sub(r"//.*|^\s*;.*", "", plain)
        while (less := re.sub(r"\{[^{}]*\}", "", plain)) != plain:
            plain = less
        yield plain


def highlighted(content: str, stage: str) -> Text:
    """Return the text with colours."""
    if stage in MLIR:
        coloured = Text(content)
        for pattern, style in _STYLES:
            coloured.highlight_regex(re.compile(pattern, re.MULTILINE), style)
        return coloured
    from rich.syntax import Syntax  # noqa: PLC0415 - Pygments takes its time, and a pipe needs none

    syntax = Syntax(content, _LEXERS[stage], theme="ansi_dark", background_color="default", tab_size=8)
    return syntax.highlight(content)
