"""Where a pass is in a checkout: its definition in tablegen, the C++ file that implements it, its DEBUG_TYPE.

From the argument to the definition (`def TritonGPUCoalesce : Pass<"tritongpu-coalesce"`), from there to the
file: the one that asks tablegen for this pass (`GEN_PASS_DEF_TRITONGPUCOALESCE`), or derives from its base
class, or defines the function that the definition names as its constructor.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.atlas import native, td_text
from tritonsmith.atlas.source_files import SourceFiles

_FOLDERS = ("include", "lib", "third_party", "mlir/include", "mlir/lib")  # of Triton; of LLVM


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
    return tuple(native.debug_types(SourceFiles(root, _FOLDERS)))


def find(argument: str, root: Path) -> PassSource | None:
    """Where a pass is; None if the checkout has not both its definition and its file."""
    tree = SourceFiles(root, _FOLDERS)
    one = next((one for one in td_text.read(tree) if one.kind == "pass" and one.name == argument), None)
    found = native.implementation(tree, one.record, one.constructor) if one else None
    if found is None:
        return None
    return PassSource(argument, root / found.file, found.found_by, found.debug_type, found.line or None, root)
