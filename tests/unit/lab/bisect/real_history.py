"""The shape of upstream's history from 3.0 to 3.9, without its text: `history.txt`.

    python -m tests.unit.lab.bisect.real_history CLONE

writes it again. A line is a commit: LLVM pin and native tree as numbers, by their first appearance; areas by
their first letters; native files that changed, and how many of them are headers.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tests.support import REPOSITORY
from tritonsmith.facts.triton_history import Area, TritonCommit

FILE = Path(__file__).with_name("history.txt")
_AREAS: dict[str, Area] = {"c": "common", "n": "nvidia", "a": "amd"}


@cache
def plan() -> ModuleType:
    """The benchmark that simulates searches."""
    path = REPOSITORY / "benchmarks" / "bisect_plan.py"
    spec = spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    made = sys.modules[path.stem] = module_from_spec(spec)  # its data classes look for it there
    spec.loader.exec_module(made)
    return made


@cache
def gaps() -> dict[str, tuple[TritonCommit, ...]]:
    """The commits between the branch points of neighbouring releases."""
    found: dict[str, tuple[TritonCommit, ...]] = {}
    for text in FILE.read_text(encoding="ascii").split("# ")[1:]:
        name, *lines = text.splitlines()
        found[name] = tuple(_commits(lines))
    return found


def _commits(lines: list[str]) -> list[TritonCommit]:
    made: list[TritonCommit] = []
    for number, line in enumerate(lines):
        pin, native, areas, sources, headers = line.split()
        before = made[-1] if made else None
        named = f"{int(pin):040x}"
        made.append(
            TritonCommit(
                commit=f"{number:040x}",
                parents=(before.commit,) if before else (),
                date="",
                subject="",
                pin=named,
                bump=before is not None and before.pin != named,
                native=native,
                areas=frozenset(_AREAS[letter] for letter in areas.strip("-")),
                sources=int(sources),
                headers=int(headers),
            )
        )
    return made


def main(clone: Path) -> None:
    """Write the file."""
    pins: dict[str, int] = {}
    trees: dict[str, int] = {}
    lines = []
    for name, commits in plan().gaps(clone):
        lines.append(f"# {name}")
        for one in commits:
            areas = "".join(sorted(area[0] for area in one.areas)) or "-"
            pin, tree = pins.setdefault(one.pin, len(pins)), trees.setdefault(one.native, len(trees))
            lines.append(f"{pin} {tree} {areas} {one.sources} {one.headers}")
    FILE.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
