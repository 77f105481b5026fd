from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core.errors import StepError
from tritonsmith.core.plan.steps import pack

PLACES = (("/w/llvm/build", ""), ("/w/llvm", "source-include"))
MARK = "@TRITONSMITH_PREFIX@"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('set(A "/w/llvm/build/lib")', f'set(A "{MARK}/lib")'),
        (
            'set(A "/w/llvm/include;/w/llvm/build/include")',
            f'set(A "{MARK}/source-include/include;{MARK}/include")',
        ),
        ("-L/w/llvm/build -I/w/llvm", f"-L{MARK} -I{MARK}/source-include"),
        ("/w/llvm/build", MARK),
        (
            "/w/llvm/builds /w/llvm-project /w/llvm.old",
            f"{MARK}/source-include/builds /w/llvm-project /w/llvm.old",
        ),
        ("/mnt/w/llvm ~/w/llvm ../w/llvm", "/mnt/w/llvm ~/w/llvm ../w/llvm"),
    ],
)
def test_places_in_a_text(text: str, expected: str) -> None:
    assert pack.with_placeholders(text.encode(), PLACES).decode() == expected


def test_a_text_in_any_encoding() -> None:
    assert (
        pack.with_placeholders(b"\xff/w/llvm\xff", PLACES) == b"\xff" + MARK.encode() + b"/source-include\xff"
    )


def test_a_place_that_looks_like_a_pattern() -> None:
    assert (
        pack.with_placeholders(rb"/w/a+b(\1)/x", ((r"/w/a+b(\1)", r"so\1"),)) == MARK.encode() + rb"/so\1/x"
    )


def test_which_files_are_texts(tmp_path: Path) -> None:
    for name, content in {"a.cmake": b"", "tool": b"\x7fELF", "script": b"#!/bin/sh\n", "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
    texts = [path.name for path in sorted(tmp_path.iterdir()) if pack.is_text(path, ["*.cmake"])]
    assert texts == ["a.cmake", "script"]


def test_settling_tells_what_it_changed(tmp_path: Path) -> None:
    (tmp_path / "a.cmake").write_text(f"{MARK}/lib")
    (tmp_path / "b.cmake").write_text("lib")
    (tmp_path / "c.bin").write_text(MARK)
    assert list(pack.fill_placeholders(tmp_path, Path("/new place"), ["*.cmake"])) == ["a.cmake"]
    assert (tmp_path / "a.cmake").read_text() == "/new place/lib"
    assert (tmp_path / "c.bin").read_text() == MARK


@pytest.mark.parametrize("char", ['"', "$", ";", "\\", "\n"])
def test_places_that_cmake_misreads(char: str) -> None:
    pack.check_prefix(Path("/a place/of (ours)"))
    with pytest.raises(StepError, match="CMake packages cannot contain"):
        pack.check_prefix(Path(f"/a{char}b"))
