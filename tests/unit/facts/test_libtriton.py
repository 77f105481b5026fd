from __future__ import annotations

import platform
import struct
import sys
from pathlib import Path

import pytest

from tests.unit.facts import elf
from tritonsmith.facts import libtriton
from tritonsmith.facts.elf import machine_of
from tritonsmith.facts.libtriton import Libtriton

COMMIT = "1f126a6dea50d185c0781743a667390037ae88bd"


@pytest.mark.parametrize(
    ("llvm", "version", "commit"),
    [
        (f"23.0.0git {COMMIT}", "23.0.0git", COMMIT),
        ("18.0.0git", "18.0.0git", ""),
        ("19.1.7", "19.1.7", ""),
        ("22.1.0-rc2", "22.1.0-rc2", ""),
        (f"23.0.0git {COMMIT[:12]}", "", ""),
        ("nothing of the kind", "", ""),
        (COMMIT, "", ""),
    ],
)
def test_the_llvm_in_a_library(tmp_path: Path, llvm: str, version: str, commit: str) -> None:
    found = libtriton.read(elf.libtriton(tmp_path / "libtriton.so", llvm))
    assert (found.llvm_version, found.llvm_commit) == (version, commit)
    assert (found.machine, found.tag, found.debug_info, found.asserts) == ("x86_64", "", False, False)


def test_a_version_with_a_commit_is_taken_before_one_without(tmp_path: Path) -> None:
    """Another library's version may lie beside it."""
    data = f"\x0012.0.1\x0023.0.0git {COMMIT}\x0013.0.0\0".encode()
    assert libtriton.read(elf.write(tmp_path / "libtriton.so", {".data": data})).llvm_commit == COMMIT


def test_how_it_was_built(tmp_path: Path) -> None:
    comment = b"Linker: LLD 21.1.8\0clang version 21.1.8 (Red Hat)\0\0Linker: LLD 21.1.8\0"
    sections = {".comment": comment, ".debug_info": b"x", ".dynstr": b"\0a\0__assert_fail\0"}
    found = libtriton.read(
        elf.write(tmp_path / "libtriton.cpython-312-x86_64-linux-gnu.so", sections, elf.AARCH64)
    )
    assert found.compilers == ("Linker: LLD 21.1.8", "clang version 21.1.8 (Red Hat)")
    assert (found.machine, found.tag, found.debug_info, found.asserts) == (
        "aarch64",
        "cpython-312",
        True,
        True,
    )


@pytest.mark.parametrize("tag", ["cpython-314t", "cpython-314", "cpython-39", "abi3"])
def test_the_tag_of_a_name(tmp_path: Path, tag: str) -> None:
    path = elf.write(tmp_path / f"libtriton.{tag}-x86_64-linux-gnu.so", {})
    assert libtriton.read(path).tag == tag


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n", b"\xcf\xfa\xed\xfe" + b"\0" * 100, b"\x7fELF\x01\x01" + b"\0" * 80]
)
def test_what_is_no_such_library(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "libtriton.abi3.so"
    path.write_bytes(content)
    assert libtriton.read(path) == Libtriton(path, tag="abi3")
    assert machine_of(path) == ""


def test_a_library_that_was_cut_off(tmp_path: Path) -> None:
    """The section headers come last."""
    path = elf.libtriton(tmp_path / "libtriton.so", f"23.0.0git {COMMIT}")
    path.write_bytes(path.read_bytes()[:-100])
    found = libtriton.read(path)
    assert (found.machine, found.llvm_commit) == ("x86_64", "")


@pytest.mark.parametrize(
    ("place", "form", "value"),
    [
        (0x28, "<Q", 2**63),  # where the section headers begin
        (0x3A, "<H", 0),  # bytes of one
        (0x3A, "<H", 1),
        (0x3C, "<H", 65_535),  # how many
        (0x3E, "<H", 60_000),  # which one has the names
        (0x3E, "<H", 0),
    ],
)
def test_a_damaged_header(tmp_path: Path, place: int, form: str, value: int) -> None:
    path = elf.libtriton(tmp_path / "libtriton.so", f"23.0.0git {COMMIT}")
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, place, value)
    path.write_bytes(content)
    assert libtriton.read(path).machine == "x86_64"


@pytest.mark.slow
def test_sections_that_lie_beyond_the_file_or_fill_it(tmp_path: Path) -> None:
    for offset, size in ((2**64 - 1, 1), (1, 2**64 - 1), (1, 2**31)):
        path = elf.write(tmp_path / "libtriton.so", {".data": b"x", ".comment": b"x"})
        content = bytearray(path.read_bytes())
        (start,) = struct.unpack_from("<Q", content, 0x28)
        (count,) = struct.unpack_from("<H", content, 0x3C)
        for number in range(count - 1):  # the last one has the names
            struct.pack_into("<QQ", content, start + number * 64 + 24, offset, size)
        path.write_bytes(content)
        with path.open("ab") as file:
            file.truncate(2**31 + 2)  # sparse
        assert libtriton.read(path).llvm_version == ""


@pytest.mark.skipif(sys.platform == "darwin", reason="Mach-O")
def test_a_real_program() -> None:
    program = Path(sys.executable).resolve()
    found = libtriton.read(program)
    assert found.machine == platform.machine()
    assert found.llvm_version == ""  # its `.comment`, with the compilers, may be stripped


def test_which_files_are_meant(tmp_path: Path) -> None:
    for name in (
        "libtriton.so",
        "libtriton.cpython-311-x86_64-linux-gnu.so",
        "libtriton_amd_codegen.so",
        "libproton.so",
    ):
        elf.libtriton(tmp_path / "_C" / name, "19.1.7")
    names = [path.name for path in libtriton.find(tmp_path)]
    assert names == ["libtriton.cpython-311-x86_64-linux-gnu.so", "libtriton.so"]
    assert libtriton.find(tmp_path / "gone") == ()
