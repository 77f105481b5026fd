"""configs/gpus.toml against upstream's commits."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tritonsmith.core import configs
from tritonsmith.core.text import version_key
from tritonsmith.facts.variables import covers

from .test_eras import LINES, LINES_IN_ORDER

Tree = Callable[[str], Path]
each_line = pytest.mark.parametrize("line", LINES_IN_ORDER)
since_3_0 = pytest.mark.parametrize("line", [line for line in LINES_IN_ORDER if version_key(line) >= (3, 0)])

_COMPILER = "third_party/nvidia/backend/compiler.py"
_SAMPLES = (
    *("gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950", "gfx1010"),
    *("gfx1030", "gfx1100", "gfx1103", "gfx1151", "gfx1200", "gfx1201", "gfx1250"),
)


@each_line
def test_the_oldest_compute_capability(line: str, tree: Tree) -> None:
    readme = (tree(LINES[line]) / "README.md").read_text(encoding="utf-8")
    said = re.search(r"Compute Capability (\d\.\d)\+", readme)
    rows = [row for row in configs.load("gpus")["nvidia"]["oldest"] if covers(line, row["since"])]
    if line != "2.0":  # whose README does not say
        assert said
        assert rows[-1]["capability"] == said[1]


@since_3_0
def test_which_ptxas_runs(line: str, tree: Tree) -> None:
    """At the commit that stands for 3.9, Hopper still runs the first: #11854 came a month later."""
    root = tree(LINES[line])
    rows = [
        row
        for row in configs.load("gpus")["nvidia"]["ptxas"]
        if covers(line, row["since"], row.get("until", ""))
    ]
    compiler = (root / _COMPILER).read_text(encoding="utf-8")
    assert ("blackwell" in compiler) is (len(rows) == 2)
    if len(rows) == 2:
        assert re.search(r"blackwell\W+if arch >= 100 ", compiler)
        assert rows[1]["capability"] == ("9.0" if line == "3.9" else "10.0")


@since_3_0
def test_which_releases_of_cuda_are_translated(line: str, tree: Tree) -> None:
    compiler = (tree(LINES[line]) / _COMPILER).read_text(encoding="utf-8")
    rows = configs.load("gpus")["nvidia"]["newest-cuda"]
    limited = [row for row in rows if covers(line, "0", row["until"])]
    assert bool(limited) is ("major >= 13" not in compiler)


@since_3_0
def test_amd_s_architectures(line: str, tree: Tree) -> None:
    rows = configs.load("gpus")["amd"]["family"]
    patterns = [
        pattern for row in rows if covers(line, row["since"], row.get("until", "")) for pattern in row["arch"]
    ]
    table = {name for name in _SAMPLES if any(fnmatchcase(name, pattern) for pattern in patterns)}
    amd = tree(LINES[line]) / "third_party/amd/lib"
    text = "".join(path.read_text(encoding="utf-8") for path in amd.rglob("Target*.cpp"))
    assert {name for name in _SAMPLES if _known(name, text)} == table


def _known(name: str, text: str) -> bool:
    """Whether a tree has a family for it: by LLVM's enumerators up to 3.7, by its numbers from 3.8 on."""
    if "GK_GFX" in text:
        number = int(name[3:], 16)
        ranges = re.findall(r"kind >= llvm::AMDGPU::GK_GFX(\w+) && kind <= llvm::AMDGPU::GK_GFX(\w+)", text)
        inside = any(int(low, 16) <= number <= int(high, 16) for low, high in ranges)
        return inside or bool(re.search(rf"(?:case|==) llvm::AMDGPU::GK_{name.upper()}\b", text))
    major, minor, patch = int(name[3:-2]), int(name[-2], 16), int(name[-1], 16)
    if major == 9:
        return f"minor == {minor} && patch == {patch})" in text
    whole = re.search(rf"if \(major == {major}\)\s+return", text)
    return bool(whole) or f"major == {major} && minor == {minor})" in text
