"""Parse the lines by which MLIR, LLVM and Triton announce IR on standard error, and find the end of that IR.

The printed IR has no end mark: the next banner follows, or a program's own output, or a crash.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tritonsmith.core import configs

When = Literal["before", "after", "failed"]

MARK = b"Dump "  # in every banner, and in hardly any other line: a search for it comes before the patterns
# `bytes.find` compares the last byte of so short a text first, a blank, and takes twice as long.
MARKED = re.compile(re.escape(MARK))
LONGEST = 1 << 15  # bytes of a banner's line

# mlir/lib/Pass/IRPrinting.cpp: `Name: pipeline{options}` since LLVM 22, `Name (argument)` before. The
# operation is named only where whole modules are printed.
_MLIR = re.compile(
    rb"// -----// IR Dump (Before|After) (.*?)(?: \('([^']*)' operation(?:: @(.*))?\))? //----- //\r?\n?"
)
_SPELLED = re.compile(r"(?P<name>[^:]+?)(?P<failed> Failed)?: (?P<pipeline>.*)", re.DOTALL)
_NAMED = re.compile(r"(?P<name>.+?)(?P<failed> Failed)?(?: \((?P<pipeline>[^()]*)\))?", re.DOTALL)
# Triton's own passes print this between their steps (SoftwarePipeliner.cpp, WarpSpecialization.cpp).
_INSIDE = re.compile(rb"// -----// (\S+) internal IR Dump After: ([^\r\n]+)\r?\n?")
# A `;` comes from LLVM's StandardInstrumentations.cpp, a `#` from its MachineFunctionPrinterPass.cpp.
_LLVM = re.compile(rb"([;#] )?\*\*\* IR Dump (Before|After) (.+?) \*\*\*:?\r?\n?")
_LOOP = re.compile(r"loop (?:.*) in function (.+)", re.DOTALL)
_LEGACY = re.compile(r"(.+?) \(([^()]+)\)", re.DOTALL)
# Printed by compiler.py of a backend, for assembly.
_ASSEMBLY = re.compile(rb"// -----// (NVPTX|AMDGCN) Dump //----- //\r?\n?")


@dataclass(frozen=True, slots=True)
class Banner:
    """A parsed banner.

    Attributes:
        kind: the suffix of a file that holds such IR: `mlir`, `ll`, `mir`, `ptx`, `amdgcn`.
        name: the name of the pass.
        argument: its name on a command line; empty if the banner has none.
        pipeline: the same with its options.
        operation: the operation that the pass ran on; empty if the banner does not name it.
        symbol: the operation's name, if it has one.
        when: whether the IR is from before the pass, from after it, or from its failure.
        inside: whether the pass itself printed it while it ran.
    """

    kind: str
    name: str
    argument: str = ""
    pipeline: str = ""
    operation: str = ""
    symbol: str = ""
    when: When = "after"
    inside: bool = False


# A pipeline prints the same banner for each function, and two for most passes.
@lru_cache(4096)
def parse(line: bytes) -> tuple[int, Banner] | None:
    """Parse the banner at the end of a line, and return its offset and the banner."""
    # A program's own output may stand before it on the line, as that goes to the same place without a
    # newline.
    if match := _MLIR.search(line):
        return match.start(), _mlir(match)
    if match := _INSIDE.search(line):
        who, step = (_text(group) for group in match.groups())
        banner = Banner("mlir", f"{who}: {step}", operation="builtin.module", inside=True)
        return match.start(), banner
    if (match := _LLVM.search(line)) and match.end() == len(line):
        return match.start(), _llvm(match)
    if match := _ASSEMBLY.search(line):
        kind = {"NVPTX": "ptx", "AMDGCN": "amdgcn"}[_text(match[1])]
        return match.start(), Banner(kind, kind)
    return None


def _mlir(match: re.Match[bytes]) -> Banner:
    head, operation, symbol = _text(match[2]), _text(match[3] or b""), _text(match[4] or b"")
    parts = _SPELLED.fullmatch(head) or _NAMED.fullmatch(head)
    if parts is None:  # a pass may have an empty name
        return Banner("mlir", head, "", "", operation, symbol, "before")
    pipeline = parts["pipeline"] or ""
    when: When = "before" if match[1] == b"Before" else "failed" if parts["failed"] else "after"
    argument = pipeline.partition("{")[0]
    name, argument, pipeline = map(sys.intern, (parts["name"], argument, pipeline))
    return Banner("mlir", name, argument, pipeline, operation, symbol.strip('"'), when)


def _llvm(match: re.Match[bytes]) -> Banner:
    head = _text(match[3])
    kind = "mir" if match[1] == b"# " else "ll"
    when: When = "before" if match[2] == b"Before" else "after"
    name, on, target = map(sys.intern, head.partition(" on "))
    # The new pass manager names what the pass ran on: `on [module]`, `on (f, g)` for a call graph's
    # component, `on loop %3 in function f`. The old one, which still runs code generation, may have an
    # argument instead.
    if on and match[1] == b"; ":
        if loop := _LOOP.fullmatch(target):
            return Banner(kind, name, "", "", "loop", loop[1], when)
        if target == "[module]":
            return Banner(kind, name, "", "", "module", "", when)
        scc = target.startswith("(")
        return Banner(kind, name, "", "", "scc" if scc else "function", target.strip("()"), when)
    legacy = _LEGACY.fullmatch(head)
    name, argument = map(sys.intern, (legacy[1], legacy[2]) if legacy else (head, ""))
    return Banner(kind, name, argument, argument, "machine-function" if kind == "mir" else "", "", when)


def _text(raw: bytes) -> str:
    # With surrogates, so that the banner can be written again byte by byte. Interned, as the banners of each
    # kernel name the same passes.
    return sys.intern(raw.decode("utf-8", "surrogateescape"))


# Possessive quantifiers: a dump may have a gigabyte, and backtracking over it would be quadratic.
_ALIASES = re.compile(rb"(?:#[^\n]*(?:\n|\Z))*+\n{0,2}")
_TOP = re.compile(
    rb"(?:(?:[;@%!$^]|declare |attributes #|source_filename |target |module asm |uselistorder)"
    rb"[^\n]*(?:\n|\Z)|\n)*+"
)
_BLOCKS = re.compile(rb"(?:(?:[ \t;]|[-\w.$\"]+:)[^\n]*(?:\n|\Z)|\n)*+(?:Printing <null> Function\n)?")
_PTX = re.compile(rb"(?:[\t .$%{}()/@][^\n]*(?:\n|\Z)|\n)*+")
_AMDGCN = re.compile(rb"(?:(?:[\t .;\"]|[-\w.$@]+:|---\n|\.\.\.\n)[^\n]*(?:\n|\Z)|\n)*+")
_CLOSE = re.compile(rb"\n}")  # twice as fast as `bytes.find`
_FOREIGN = re.compile(rb"[A-Z=]")
_LOOPS = (b"\n; Preheader:", b"; Preheader:", b"\nPrinting <null>", b"; Loop:", b"\n; Loop:")
_LAST = b"\n# End machine code for function "


def end(kind: str, data: bytes) -> int | None:
    """Return the end of the IR at the start of `data`, with the blank lines that the printer puts after it.

    Args:
        kind: as `Banner.kind`.
        data: the text up to the next banner.

    Returns:
        An offset; None if the IR is cut off.
    """
    if kind == "mlir":
        return _mlir_end(data)
    # Machine IR is the only one with an end mark.
    if kind == "mir":
        at = data.find(_LAST)
        if at < 0:
            return None
        stop = _line_end(data, at + 1)
        return stop + data.startswith(b"\n", stop)
    if kind == "ll":
        return _llvm_end(data)
    return _matched(_PTX if kind == "ptx" else _AMDGCN, data)


def ends_at(kind: str, data: bytes, at: int) -> bool:
    """Return whether IR that ended at an offset in another text surely ends there in this one.

    Args:
        kind: as `Banner.kind`.
        data: the text up to the next banner, which begins with the whole IR of the other one.
        at: the offset.
    """
    if at == len(data):
        return True
    # A capital or `=` begins no line of a module behind its functions; but a label of a loop, or of assembly.
    known = kind in ("mlir", "ll", "mir") and not data.startswith(_LOOPS)
    return known and data[at - 1 : at] == b"\n" and _FOREIGN.match(data, at) is not None


def crash_offset(data: bytes) -> int:
    """Return the offset of the compiler's error message in IR that is cut off; the end if there is none."""
    mark = marks().search(data)
    return data.rfind(b"\n", 0, mark.start()) + 1 if mark else len(data)


@lru_cache(1)
def marks() -> re.Pattern[bytes]:
    """Return a pattern of the messages of a compiler that crashes or gives up."""
    return re.compile("|".join(configs.load("ir-dump")["marks"]["crash"]).encode())


@lru_cache(1)
def log() -> re.Pattern[bytes]:
    """Return a pattern of the lines that LLVM logs between its dumps."""
    return re.compile(
        rb"(?m:^)(?:" + "|".join(configs.load("ir-dump")["marks"]["log"]).encode() + rb")[^\n]*\n"
    )


def _mlir_end(data: bytes) -> int | None:
    """Return the end of an operation with its aliases; None if it is cut off."""
    # Everything in an operation except its first line and `}` is indented; aliases stand before and after it.
    head = _ALIASES.match(data)
    begin = head.end() if head else 0
    stop = _line_end(data, begin)
    if not data[begin:stop].rstrip().endswith(b"{"):  # a declaration
        whole = stop > begin and data.endswith(b"\n", begin, stop)
        return _after_aliases(data, stop) if whole else None
    close = _CLOSE.search(data, stop - 1)
    return _after_aliases(data, _line_end(data, close.start() + 1)) if close else None


def _after_aliases(data: bytes, at: int) -> int:
    return _matched(_ALIASES, data, at)


def _llvm_end(data: bytes) -> int | None:
    # LLVM prints a loop as its blocks, without the function around them.
    if data.startswith(_LOOPS):
        return _matched(_BLOCKS, data)
    at = 0
    while True:
        at = _matched(_TOP, data, at)
        if not data.startswith(b"define ", at):
            return at
        close = _CLOSE.search(data, at)
        if close is None:
            return None
        at = _line_end(data, close.start() + 1)


def _matched(pattern: re.Pattern[bytes], data: bytes, at: int = 0) -> int:
    match = pattern.match(data, at)
    return match.end() if match else at


def _line_end(data: bytes, at: int) -> int:
    stop = data.find(b"\n", at)
    return len(data) if stop < 0 else stop + 1
