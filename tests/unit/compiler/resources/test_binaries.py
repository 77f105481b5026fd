"""What cubins and code objects say, real ones and wrong ones."""

from __future__ import annotations

import struct
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.compiler.resources import elf_maker
from tritonsmith.core.errors import FactError
from tritonsmith.ir import gpu_binary
from tritonsmith.ir.gpu_binary import CodeObject, Cubin

RECORDED = Path(__file__).parent / "recorded"  # a vector add by Triton 3.4 and, for AMD, 3.9
STORE, LOAD = 0x387, 0x983


@pytest.mark.parametrize(
    ("arch", "registers", "constant", "code"), [("sm_80", 28, 392, 1408), ("sm_90", 30, 568, 1536)]
)
def test_a_cubin(arch: str, registers: int, constant: int, code: int) -> None:
    """The figures are those of `cuobjdump --dump-resource-usage`."""
    found = gpu_binary.read_cubin(gpu_binary.load(RECORDED / f"vector_add.{arch}.cubin"))
    assert found == Cubin("vector_add", registers, 0, 128, 0, 0, constant, code, 0, 0)


def test_a_code_object() -> None:
    """The figures are those of `llvm-readobj --notes`."""
    found = gpu_binary.read_code_object(gpu_binary.load(RECORDED / "vector_add.gfx90a.hsaco"))
    expected = CodeObject(
        kernel="vector_add",
        sgprs=21,
        vgprs=12,
        agprs=0,
        scratch=0,
        lds=0,
        sgpr_spills=0,
        vgpr_spills=0,
        wave=64,
        threads=256,
        code=1792,
    )
    assert found == expected


def test_accesses_to_local_memory_count_with_their_width() -> None:
    code = b"".join(
        elf_maker.access(opcode | 0x7000, width)  # bits above the opcode are the predicate's
        for opcode, width in [(STORE, 4), (STORE, 5), (STORE, 6), (LOAD, 0), (LOAD, 2), (LOAD, 5), (0x388, 4)]
    )
    found = gpu_binary.read_cubin(gpu_binary.parse(elf_maker.cubin(code=code, frame=64)))
    assert (found.local_stores, found.local_loads, found.frame) == (4 + 8 + 16, 1 + 2 + 8, 64)


def test_barriers_are_an_attribute_or_in_the_flags_of_the_code() -> None:
    attribute = struct.pack("<BBBB", 2, 0x4C, 3, 0)
    flags = 0x6 | 2 << 20
    assert gpu_binary.read_cubin(gpu_binary.parse(elf_maker.cubin(flags=flags))).barriers == 2
    assert gpu_binary.read_cubin(gpu_binary.parse(elf_maker.cubin(own=attribute))).barriers == 3


def test_metadata_without_the_counts_of_spills() -> None:
    """Code objects before version 3 lack them; what is not there is nothing."""
    found = gpu_binary.read_code_object(gpu_binary.parse(elf_maker.code_object(agpr_count="many")))
    assert (found.agprs, found.sgpr_spills, found.vgpr_spills) == (0, 1, 2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not start with the ELF magic number"),
        (b"\x7fELF\x02\x01", "truncated"),
        (elf_maker.elf(62, []), "different architecture"),
        (elf_maker.cubin()[:-1], "truncated"),
        (elf_maker.elf(elf_maker.CUDA, []), "expected one CUDA kernel in this file, found 0"),
        (elf_maker.elf(elf_maker.CUDA, [(".nv.info.k", 1, 0, b"")]), "no code for its kernel k"),
        (elf_maker.cubin(own=b"\x09\x00\x00\x00"), "unknown format 9"),
        (elf_maker.elf(elf_maker.AMDGPU, []), "no metadata of an AMD kernel"),
        (
            elf_maker.elf(elf_maker.AMDGPU, [(".note", 7, 0, elf_maker.note(b"GNU", 3, b""))]),
            "no metadata note",
        ),
        (elf_maker.elf(elf_maker.AMDGPU, [(".note", 7, 0, b"\x01\0\0\0")]), "truncated note"),
        (
            elf_maker.elf(elf_maker.AMDGPU, [(".note", 7, 0, struct.pack("<III", 4, 99, 32))]),
            "longer than its section",
        ),
        (elf_maker.code_object(table=[]), "is malformed"),
        (elf_maker.code_object(table={"amdhsa.kernels": []}), "is malformed"),
        (elf_maker.code_object(vgpr_count=None), "'.vgpr_count'"),
    ],
)
def test_what_is_wrong_is_said(content: bytes, words: str) -> None:
    with pytest.raises(FactError) as caught:
        _read(content)
    assert words in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="cannot read this binary") as caught:
        gpu_binary.load(tmp_path / "gone.cubin")
    assert "gone.cubin" in str(caught.value)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, database=None)
@given(st.data())
def test_no_bytes_crash_the_readers(data: st.DataObject) -> None:
    """Real files with bytes changed, and with their ends cut off."""
    name = data.draw(st.sampled_from(sorted(path.name for path in RECORDED.iterdir())))
    content = bytearray((RECORDED / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(1, len(content))) :]
    _reads_or_tells(bytes(content))


@settings(max_examples=300, deadline=None, database=None)
@given(st.binary(max_size=400), st.booleans())
def test_no_section_crashes_the_readers(content: bytes, amd: bool) -> None:
    if amd:
        note = elf_maker.note(b"AMDGPU", 32, content)
        _reads_or_tells(elf_maker.elf(elf_maker.AMDGPU, [(".note", 7, 0, note)]))
        _reads_or_tells(elf_maker.elf(elf_maker.AMDGPU, [(".note", 7, 0, content)]))
    else:
        _reads_or_tells(elf_maker.cubin(own=content, code=content))


@pytest.mark.slow
@settings(max_examples=200, deadline=None, database=None)
@given(
    st.recursive(
        st.none() | st.integers(0, 2**32) | st.text(max_size=4) | st.binary(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    )
)
def test_no_metadata_crashes_the_reader(table: object) -> None:
    _reads_or_tells(elf_maker.code_object(table=table if table is not None else 0))
    kernels = {"amdhsa.kernels": [table]}
    _reads_or_tells(elf_maker.code_object(table=kernels))
    assert msgpack.packb(kernels)


def _read(content: bytes) -> object:
    found = gpu_binary.parse(content)
    return gpu_binary.read_cubin(found) if found.backend == "cuda" else gpu_binary.read_code_object(found)


def _reads_or_tells(content: bytes) -> None:
    try:
        _read(content)
    except FactError as error:
        assert error.what  # noqa: PT017 - either is right
