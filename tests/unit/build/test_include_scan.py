"""What sources of a checkout include, followed as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build.precompiled_headers import IncludeScan, ReachedHeaders, sources

FILES = {
    "include/triton/a.h": '#include "triton/b.h"\n#include "mlir/IR/Types.h"\n',
    "include/triton/b.h": '#pragma once\n#  include <vector>\n#include "triton/a.h"\n// #include "not.h"\n',
    "lib/X/Shared.h": '#include "triton/b.h"\n',
    "lib/X/deep/Pass.cpp": '#include "Shared.h"\n#include "triton/Passes.h.inc"\n',
    "lib/X/Plain.cpp": '#include "../../../outside.h"\n#include <triton/a.h>\n',
    "lib/unittest/Test.cpp": "",
    "lib/notes.txt": '#include "mlir/IR/Types.h"\n',
    "third_party/nvidia/bindings.cc": "",
    "third_party/nvidia/lib/Op.cpp": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small checkout beside a file that is not its own."""
    root = tmp_path / "triton"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (tmp_path / "outside.h").write_text('#include "mlir/IR/Value.h"\n', encoding="utf-8")
    return root


def test_headers_are_followed_in_circles_and_from_the_folder_above(root: Path) -> None:
    scan = IncludeScan(root, (root / "include",))
    own = frozenset({Path("include/triton/a.h"), Path("include/triton/b.h"), Path("lib/X/Shared.h")})
    others = frozenset({"vector", "mlir/IR/Types.h", "triton/Passes.h.inc"})
    assert scan.reached(root / "lib/X/deep/Pass.cpp") == ReachedHeaders(own, others)


def test_a_file_outside_of_the_checkout_is_not_its_own_and_not_read(root: Path) -> None:
    seen = IncludeScan(root, (root / "include",)).reached(root / "lib/X/Plain.cpp")
    assert "../../../outside.h" in seen.others
    assert "mlir/IR/Value.h" not in seen.others


def test_a_source_belongs_to_the_group_of_the_longest_folder(root: Path) -> None:
    groups = {"compiler": ["lib", "third_party/nvidia/lib", "bin"], "python": ["third_party/nvidia"]}
    assert sources(root, groups) == {
        "compiler": (
            root / "lib/X/Plain.cpp",
            root / "lib/X/deep/Pass.cpp",
            root / "third_party/nvidia/lib/Op.cpp",
        ),
        "python": (root / "third_party/nvidia/bindings.cc",),
    }
