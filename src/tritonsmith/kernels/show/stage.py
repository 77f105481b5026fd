"""`kernel.show`: one stage of one point, whole or one function of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.text import Text

from tritonsmith import untrusted
from tritonsmith.errors import FactError, UsageError, did_you_mean
from tritonsmith.kernels.compile.manifest import Manifest, Point
from tritonsmith.kernels.show import source_lines

MLIR = ("source", "ttir", "glir", "ttgir")
BINARY = {"cubin": "sass", "hsaco": "gcnasm"}
_COMMENTS = {"llir": ";", "amdgcn": ";", "gcnasm": ";"}
# Of Pygments.
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
_STYLES = (  # of MLIR, which Pygments has no lexer for; the later wins
    (r"\b[a-z_]\w*\.[\w.]+", "bold"),
    (r"%[\w#]+", "cyan"),
    (r"[@#^!][\w.]+", "magenta"),
    (r"\b(?:tensor|memref|vector|i\d+|f\d+|bf16|index)\b", "green"),
    (r'"(?:[^"\\]|\\.)*"', "yellow"),
    (r"loc\(.*\)$", "dim"),
    (r"^\s*//.*", "dim"),
)


def choose(manifest: Manifest, wanted: str) -> Point:
    """The point with this id, or the only one.

    Raises:
        UsageError: there is no such point, or none is named and there are several.
    """
    found = [point for point in manifest.points if not wanted or wanted in (point.id, point.target)]
    if len(found) == 1:
        return found[0]
    ids = [point.id for point in manifest.points]
    if wanted:
        raise UsageError(f"no point {wanted!r}", where=manifest.folder, hints=did_you_mean(wanted, ids))
    hints = [f"choose one: --point {one}" for one in ids[:10]]
    raise UsageError(f"this folder has {len(ids)} points", hints=hints)


def text(manifest: Manifest, point: Point, stage: str) -> str:
    """The text of a stage.

    Raises:
        FactError: the point has none, because it failed or because its target has no such stage.
        UsageError: the stage is binary.
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
    try:
        return untrusted.read_text(path, untrusted.OURS)
    except OSError as error:
        raise FactError("cannot read this stage", where=path, why=error.strerror) from error


def function(whole: str, stage: str, name: str) -> str:
    """One function of a stage.

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
    """A stage, or one of its functions, with the lines of Python that it comes from as comments."""
    mixed = source_lines.interleaved(whole, stage, _COMMENTS.get(stage, "//"))
    return function(mixed, stage, name) if name else mixed


def _end(lines: Sequence[str], begin: int, stage: str) -> int:
    ending = _ENDS.get(stage)
    if ending:
        after = range(begin + 1, len(lines))
        return next((number for number in after if ending.match(lines[number])), len(lines))
    depth, opened = 0, False
    for number, line in enumerate(_bare(lines[begin:]), begin):
        depth += line.count("{") - line.count("}")
        opened = opened or "{" in line
        if opened and depth <= 0:
            return number + 1
    return len(lines)


def _bare(lines: Sequence[str]) -> Iterator[str]:
    """Lines without comments and strings, and without braces that close where they open: attributes."""
    for line in lines:
        plain = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
        plain = re.sub(r"//.*|^\s*;.*", "", plain)
        while (less := re.sub(r"\{[^{}]*\}", "", plain)) != plain:
            plain = less
        yield plain


def highlighted(content: str, stage: str) -> Text:
    """The text in colours."""
    if stage in MLIR:
        made = Text(content)
        for pattern, style in _STYLES:
            made.highlight_regex(re.compile(pattern, re.MULTILINE), style)
        return made
    from rich.syntax import Syntax  # noqa: PLC0415 - Pygments takes its time, and a pipe needs none

    syntax = Syntax(content, _LEXERS[stage], theme="ansi_dark", background_color="default", tab_size=8)
    return syntax.highlight(content)
