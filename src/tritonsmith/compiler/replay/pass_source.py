"""Find a pass in a checkout: its tablegen definition, the C++ file that implements it, its DEBUG_TYPE.

The argument leads to the definition (`def TritonGPUCoalesce : Pass<"tritongpu-coalesce"`). The file is the
one that requests this pass from tablegen (`GEN_PASS_DEF_TRITONGPUCOALESCE`), or derives from its base class,
or defines the function that the definition names as its constructor.
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
        found_by: the way in which that file was found.
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
    """Return every DEBUG_TYPE of a checkout."""
    return tuple(native.debug_types(SourceFiles(root, _FOLDERS)))


def find(argument: str, root: Path) -> PassSource | None:
    """Find a pass; None if the checkout lacks its definition or its file."""
    tree = SourceFiles(root, _FOLDERS)
    definition = next(
        (
            definition
            for definition in td_text.read(tree)
            if definition.kind == "pass" and definition.name == argument
        ),
        None,
    )
    implementation = (
        native.implementation(tree, definition.record, definition.constructor) if definition else None
    )
    if implementation is None:
        return None
    return PassSource(
        argument,
        root / implementation.file,
        implementation.found_by,
        implementation.debug_type,
        implementation.line or None,
        root,
    )
