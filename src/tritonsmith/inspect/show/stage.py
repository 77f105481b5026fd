"""Show one stage of one point, whole or one function of it: `kernel.show`."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Sequence

from rich.text import Text

from tritonsmith.compiler import targets
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.inspect.show import source_lines

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
_STYLES = (  # of MLIR, which Pygments has no lexer for; the later wins
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
for _ in range(16):  # of brackets in brackets: loc(callsite("a"("f.py":1:2) at "b"("f.py":3:4)))
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


def choose(manifest: Manifest, wanted: str) -> Point:
    """Select the point with this id or target (`cuda:90`, `h100`); without either, the only one.

    Raises:
        UsageError: there is no such point, or several fit.
    """
    target = _target(wanted)
    fitting = [
        point for point in manifest.points if not wanted or wanted == point.id or point.target == target
    ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        ids = [point.id for point in manifest.points]
        raise UsageError(f"no point {wanted!r}", where=manifest.folder, hints=did_you_mean(wanted, ids))
    hints = [f"choose one: --point {point.id}" for point in fitting[:10]]
    several = f"{len(fitting)} points" + (f" of target {wanted!r}" if wanted else "")
    raise UsageError(f"this folder has {several}", hints=hints)


def _target(text: str) -> str:
    try:
        return str(targets.parse(text))
    except UsageError:  # an id
        return ""


def text(manifest: Manifest, point: Point, stage: str) -> str:
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
    mixed = source_lines.interleaved(whole, stage, _COMMENTS.get(stage, "//"))
    return function(mixed, stage, name) if name else mixed


def link(content: str, stage: str, target: str) -> str:
    """Return a URL that opens a text in Compiler Explorer, without the debug locations.

    Args:
        content: the stage, or one of its functions.
        stage: its name.
        target: of the point: `cuda:90:32`.

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
