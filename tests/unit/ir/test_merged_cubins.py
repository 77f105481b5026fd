"""Cubins in one file; that nvdisasm prints the same for it is tested with the program itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core.errors import FactError
from tritonsmith.facts import elf
from tritonsmith.ir import merged_cubins

_RECORDED = Path(__file__).parents[1] / "compiler" / "resources" / "recorded"
HEAD = "\t.target\tsm_90a\n\n"
RULE = "-" * 26


def cubin(arch: int) -> bytes:
    return (_RECORDED / f"vector_add.sm_{arch}.cubin").read_bytes()


@pytest.mark.parametrize("arch", [80, 90])
def test_each_cubin_has_its_own_code(arch: int) -> None:
    cubins = [cubin(arch)] * 3
    names = merged_cubins.prefixes(cubins)
    merged = merged_cubins.merge(cubins, names)
    (alone,) = (row for row in elf.sections(cubin(arch)) if row.name.startswith(".text."))
    code = cubin(arch)[alone.offset : alone.offset + alone.size]
    found = {row.name: merged[row.offset : row.offset + row.size] for row in elf.sections(merged)}
    assert {name: found[f".text.{name}vector_add"] for name in names} == dict.fromkeys(names, code)


def test_only_cubins_for_one_gpu_are_merged() -> None:
    assert merged_cubins.group(cubin(80)) == merged_cubins.group(cubin(80))
    assert merged_cubins.group(cubin(80)) != merged_cubins.group(cubin(90))


def test_a_prefix_is_in_no_cubin() -> None:
    (name,) = merged_cubins.prefixes([b"tritonsmith_0_.add"])
    assert name not in "tritonsmith_0_.add"


@pytest.mark.parametrize("size", [10, 100, 3000])
def test_a_damaged_cubin_is_refused(size: int) -> None:
    with pytest.raises(FactError, match="damaged"):
        merged_cubins.group(cubin(90)[:size])
    with pytest.raises(FactError, match="cannot be merged"):
        merged_cubins.merge([cubin(90), cubin(90)[:size]], ["a_", "b_"])


def section(name: str, *lines: str) -> str:
    return "\n".join([f"//{RULE[:21]} {name:<25} {RULE}", *lines, "", "", ""])


def test_a_part_has_its_own_names_and_labels() -> None:
    text = HEAD + section(".text.a_add", "a_add:", ".L_x_1:", "BRA `(.L_x_1)", ".L_x_7:")
    text += section(".text.b_long_name_of_a_kernel", ".L_x_2:", ".L_x_8:")
    text += section("SYMBOLS", "", "\t.type\t\tb_printf,@function").replace("SYMBOLS" + " " * 18, "SYMBOLS")
    first, second = merged_cubins.split(text, ["a_", "b_"])
    lines = ["add:", ".L_x_0:", "BRA `(.L_x_0)", ".L_x_1:"]
    assert first == (HEAD + section(".text.add", *lines)).rstrip() + "\n"
    assert f"//{RULE[:21]} SYMBOLS {RULE}\n\n\t.type\t\tprintf,@function\n" in second
    assert ".L_x_0:\n.L_x_1:" in second


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + section(".text.a_add") + section(".text.c_add"), "of no kernel"),
        (HEAD + section(".text.a_add"), "nothing about"),
        ("", "nothing about"),
    ],
)
def test_a_text_that_is_not_of_these_is_refused(text: str, why: str) -> None:
    with pytest.raises(FactError, match=why):
        merged_cubins.split(text, ["a_", "b_"])
