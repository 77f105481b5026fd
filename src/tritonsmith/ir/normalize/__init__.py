"""The normal form of a stage's text: equivalent compiles have equal text, line by line.

Removed: locations, debug information, comments, addresses, encodings, blank lines. Renamed: SSA values,
virtual registers, blocks and labels (after their definitions, see `renaming`), layouts, attribute groups and
metadata (after their content). Kept: order, types, versions, machine registers, names of functions.

A text is one module, or a part of it. Nothing here raises, whatever the input is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tritonsmith.ir.normalize import assembly, ir
from tritonsmith.ir.normalize.renaming import MARK, NormalForm

# By stage; and by language, for dumps between passes, which have no stage.
_READERS: Mapping[str, Callable[[str], NormalForm]] = {
    **dict.fromkeys(("mlir", "source", "ttir", "glir", "ttgir"), ir.mlir),
    **dict.fromkeys(("llvm", "llir"), ir.llvm),
    "ptx": assembly.ptx,
    "sass": assembly.sass,
    "amdgcn": assembly.amdgcn,
    "gcnasm": assembly.gcnasm,
}


def text(text: str, stage: str) -> str:
    """Return a text in normal form.

    Args:
        text: the text of a stage.
        stage: `ttir`, `ptx` ...; or `mlir`, `llvm`. A text of any other stage is returned unchanged.
    """
    if stage not in _READERS:
        return text
    return "".join(f"{line}\n" for line in form(text, stage).lines())


def form(text: str, stage: str) -> NormalForm:
    """Return the normal form, with the names separate from the lines."""
    if stage in _READERS:
        return _READERS[stage](text)
    # A text without a reader has no names: its lines are compared as they are.
    plain = [line.replace(MARK, " ") for line in text.splitlines()]
    return NormalForm(plain, [()] * len(plain), [()] * len(plain))
