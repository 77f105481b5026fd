from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.core.errors import SmithError
from tritonsmith.inspect.export_ptx import cuda
from tritonsmith.ir.ptx import tokenize

SAMPLES = (samples.REDUCE, samples.FUNCTION)


def words(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenize(text) if not token.blank]


@pytest.mark.parametrize("text", SAMPLES)
def test_the_texts_of_all_tokens_make_the_input(text: str) -> None:
    assert "".join(token.text for token in tokenize(text)) == text


def test_a_register_is_one_word() -> None:
    assert words("%r21,%r210;%tid.x") == [
        ("name", "%r21"),
        ("mark", ","),
        ("name", "%r210"),
        ("mark", ";"),
        ("name", "%tid"),
        ("dot", ".x"),
    ]


def test_modifiers() -> None:
    assert [
        text for kind, text in words("cp.async.bulk.tensor.2d.shared::cluster.L2::128B") if kind == "dot"
    ] == [
        ".async",
        ".bulk",
        ".tensor",
        ".2d",
        ".shared::cluster",
        ".L2::128B",
    ]


@pytest.mark.parametrize(
    "number", ["0", "42", "42U", "0x1fU", "0b101", "0f3F800000", "0d3FF0000000000000", "1.5", "1.5e-3"]
)
def test_numbers_are_one_word(number: str) -> None:
    assert words(number) == [("number", number)]


def test_comments_and_strings_hide_what_is_in_them() -> None:
    assert [kind for kind, _ in words('/* %r1 { */ "a;\\"b" // } ;\n ;')] == ["string", "mark"]


def test_lines_are_counted_from_one() -> None:
    found = [(token.text, token.line) for token in tokenize("a\n/*\n*/ b\n\nc") if not token.blank]
    assert found == [("a", 1), ("b", 3), ("c", 5)]


@pytest.mark.parametrize("text", ["/*/*/*", '"abc', '"a\\', "é☃\x00", "%", "$", "0f", "..", "@!", "a::b"])
def test_what_is_no_ptx_is_kept_too(text: str) -> None:
    assert "".join(token.text for token in tokenize(text)) == text


@pytest.mark.parametrize("piece", ["/*", '"\\', "0f", "1e", ".a::", "(", "{", "%", "9.", "@"])
def test_no_input_makes_it_go_back(piece: str) -> None:
    """200 000 of them would take minutes, were any rule quadratic."""
    text = piece * 100_000
    assert sum(len(token.text) for token in tokenize(text)) == len(text)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_ptx_is_inlined_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same damage in every run
    text = list(chance.choice(SAMPLES))
    for _ in range(chance.randrange(1, 20)):
        begin = chance.randrange(len(text))
        kind = chance.randrange(3)
        if kind == 0:
            del text[begin : begin + chance.randrange(1, 40)]
        elif kind == 1:
            text[begin:begin] = chance.choices('{}[]()<>,;:@!."/*%$ \n0xfreg', k=chance.randrange(1, 9))
        else:
            other = chance.randrange(len(text))
            text[begin:begin] = text[other : other + chance.randrange(80)]
    damaged = "".join(text)
    assert "".join(token.text for token in tokenize(damaged)) == damaged
    try:
        cuda.cuh(cuda.inline(samples.stored(tmp_path, damaged)))
    except SmithError as error:
        assert str(tmp_path) in str(error.where)  # noqa: PT017 - either outcome is right


@pytest.mark.slow
def test_a_long_kernel_takes_as_long_as_it_is(tmp_path: Path) -> None:
    """10 000 statements would take minutes, were anything quadratic."""
    line = "$L{0}: add.s32 %r1, %r2, {0}; @%p1 bra $L{0};\n"
    text = samples.kernel("".join(line.format(number) for number in range(5_000)) + "ret;")
    assert cuda.inline(samples.stored(tmp_path, text)).function.count("bra smith_l") == 5_000
