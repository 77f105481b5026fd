"""Compares a newly compiled library with the one that it replaces, before it gets its name.

Its build.ninja calls this:
`python -m tritonsmith.build.debug_library.compare LLVM OLD.a NEW.a`
"""

from __future__ import annotations

import sys
from pathlib import Path

from tritonsmith.build.debug_library import abi_check, archive
from tritonsmith.core.errors import EXIT_FAILURE, FactError
from tritonsmith.facts import llvm_tree


def main(argv: list[str]) -> int:
    """Compare the two archives; the exit code is 0 if they agree."""
    llvm, old, new = map(Path, argv)
    tree = llvm_tree.read(llvm)
    rows = abi_check.after(archive.read(old, tree), archive.read(new, tree))
    try:
        abi_check.enforce(
            rows,
            "the new objects cannot replace the LLVM's own; nothing was linked",
            new,
            ["are these the sources of this LLVM? A distribution's patches are part of them"],
        )
    except FactError as error:
        print(f"error: {error}")
        return EXIT_FAILURE
    print("; ".join(f"{row.what}: {row.llvm or row.here}" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
