"""Where a pass is in a checkout: its definition in tablegen, the C++ file that implements it, its DEBUG_TYPE.

From the argument to the definition (`def TritonGPUCoalesce : Pass<"tritongpu-coalesce"`), from there to the
file: the one that asks tablegen for this pass (`GEN_PASS_DEF_TRITONGPUCOALESCE`), or derives from its base
class, or defines the function that the definition names as its constructor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FOLDERS = ("include", "lib", "third_party", "mlir/include", "mlir/lib")  # of Triton; of LLVM
_DEFINITION = re.compile(r'^def\s+(\w+)\s*:\s*\w*Pass\s*<\s*(?:/\*.*?\*/\s*)?"([^"]+)"', re.MULTILINE)
_CONSTRUCTOR = re.compile(r'let\s+constructor\s*=\s*"([\w:]+)\(')
_DEBUG_TYPE = re.compile(r'^#define\s+DEBUG_TYPE\s+"([^"]+)"', re.MULTILINE)
_RUN = re.compile(r"\bvoid\s+(?:\w+::)?runOnOperation\(\)[^;{]*\{")


@dataclass(frozen=True)
class PassSource:
    """A pass in its sources.

    Attributes:
        argument: `tritongpu-coalesce`.
        file: the C++ file.
        found_by: how that file was found.
        debug_type: of that file; empty if it has none.
        line: of `runOnOperation` in it; None if it is not there.
        root: the checkout.
    """

    argument: str
    file: Path
    found_by: str
    debug_type: str
    line: int | None
    root: Path

    @property
    def place(self) -> str:
        """The breakpoint: FILE:LINE, as debuggers match it, or the function's name."""
        name = self.file.relative_to(self.root).as_posix()
        return f"{name}:{self.line}" if self.line else "runOnOperation"


def debug_types(root: Path) -> tuple[str, ...]:
    """Every DEBUG_TYPE of a checkout."""
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in _files(root, ".cpp"))
    return tuple(sorted({name for text in texts for name in _DEBUG_TYPE.findall(text)}))


def find(argument: str, root: Path) -> PassSource | None:
    """Where a pass is; None if the checkout has not both its definition and its file."""
    for path in _files(root, ".td"):
        text = path.read_text(encoding="utf-8", errors="replace")
        matches = list(_DEFINITION.finditer(text))
        ends = [*(match.start() for match in matches[1:]), len(text)]
        for match, end in zip(matches, ends, strict=False):
            if match[2] == argument and (found := _implementation(root, match[1], text[match.start() : end])):
                return PassSource(argument, *found, root)
    return None


def _implementation(root: Path, name: str, body: str) -> tuple[Path, str, str, int | None] | None:
    base = re.compile(rf"\b(?:class|struct)\s+(\w+)[^;{{]*?\b{name}Base<\s*\1\s*>", re.DOTALL)
    signs = [
        (re.compile(rf"\bGEN_PASS_DEF_{name.upper()}\b"), f"GEN_PASS_DEF_{name.upper()}"),
        (base, f"a class that derives from {name}Base"),
    ]
    if constructor := _CONSTRUCTOR.search(body):
        function = constructor[1].rpartition("::")[2]
        signs.append((re.compile(rf"\b{function}\([^;{{]*\{{", re.DOTALL), f"its constructor {function}"))
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in _files(root, ".cpp")}
    for sign, words in signs:
        for path, text in texts.items():
            if match := sign.search(text):
                debug = _DEBUG_TYPE.search(text)
                derived = base.search(text)
                begin = derived.start() if derived else 0 if "constructor" in words else match.start()
                run = _RUN.search(text, begin) or _RUN.search(text)
                line = text.count("\n", 0, run.start()) + 1 if run else None
                return path, words, debug[1] if debug else "", line
    return None


def _files(root: Path, suffix: str) -> Iterator[Path]:
    for top in _FOLDERS:
        for folder, folders, names in os.walk(root / top):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(names) if name.endswith(suffix))
