from __future__ import annotations

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.inspect.export_ptx import rewrite
from tritonsmith.inspect.export_ptx.rewrite import CUDA, LLVM, Block


def block(text: str, dialect: rewrite.Dialect = CUDA, *, at: int = 0) -> Block:
    module = samples.module(text)
    function = [one for one in module.functions if one.body is not None][at]
    return rewrite.rewrite(function, rewrite.surroundings_of(function, module, "sample.ptx"), dialect)


def lines(body: str, **more: str) -> list[str]:
    """What becomes of a body, without its braces and the declarations of the sample's registers."""
    return list(block(samples.kernel(body, **more)).lines[5:-1])


def test_the_whole_of_a_kernel() -> None:
    assert block(samples.REDUCE).lines == (
        "{",
        ".reg .pred %%smith_p<4>;",
        ".reg .b16 %%smith_rs<2>;",
        ".reg .b32 %%smith_r<211>, %%smith_SPL;",
        ".reg .b64 %%smith_rd<9>;",
        "mov.b64 %%smith_rd1, %0;",
        "mov.b32 %%smith_r2, %1;",
        "cvt.s16.s8 %%smith_rs1, %2;",
        "mov.b64 %%smith_rd2, %3;",
        "{ .reg .b64 %%smith_part;",
        "shr.u64 %%smith_part, %0, 32;",
        "cvt.u32.u64 %%smith_r3, %%smith_part;",
        "}",
        "mov.u32 %%smith_r21, %%tid.x;",
        "mov.b32 %%smith_r210, %4;",
        "cvt.u64.u32 %%smith_rd8, %4;",
        "add.u64 %%smith_rd8, %%smith_rd8, 16;",
        "@%%smith_p1 bra smith_l0_%=;",
        "smith_l1_%=:",
        "{",
        ".reg .pred smith_v_complete;",
        ".reg .b32 %%smith_r<3>;",
        "smith_l2_%=:",
        "mbarrier.try_wait.parity.shared::cta.b64 smith_v_complete, [%%smith_r210], %%smith_r2;",
        "@!smith_v_complete bra.uni smith_l2_%=;",
        "}",
        "st.shared.v4.b32 [%4+32], {%%smith_r21, %%smith_r2, 0f3F800000, %%smith_r3};",
        "bar.sync 0;",
        '.pragma "nounroll";',
        "@%%smith_p2 bra smith_l1_%=;",
        "smith_l0_%=:",
        "}",
    )


def test_operands_have_the_letters_of_their_widths() -> None:
    module = samples.module(samples.REDUCE)
    given = rewrite.surroundings_of(module.functions[0], module, "sample.ptx").operands
    assert [(one.kind, one.letter, one.bits) for one in given] == [
        ("param", "l", 64),
        ("param", "r", 32),
        ("param", "h", 16),
        ("param", "d", 64),
        ("shared", "r", 32),
    ]


@pytest.mark.parametrize(
    ("kind", "letter", "load", "becomes"),
    [
        ("u64", "l", "ld.param.b64 %rd1", "mov.b64 %%smith_rd1, %0;"),
        ("f64", "d", "ld.param.b64 %rd1", "mov.b64 %%smith_rd1, %0;"),
        ("u32", "r", "ld.param.u32 %r1", "mov.b32 %%smith_r1, %0;"),
        ("f32", "f", "ld.param.b32 %r1", "mov.b32 %%smith_r1, %0;"),
        ("u16", "h", "ld.param.b16 %rs1", "mov.b16 %%smith_rs1, %0;"),
        ("u16", "h", "ld.param.s16 %r1", "cvt.s32.s16 %%smith_r1, %0;"),
        ("u8", "h", "ld.param.b8 %rs1", "cvt.u16.u8 %%smith_rs1, %0;"),
        ("u8", "h", "ld.param.s8 %r1", "cvt.s32.s8 %%smith_r1, %0;"),
        ("u64", "l", "ld.param.u32 %r1", "cvt.u32.u64 %%smith_r1, %0;"),
        ("u32", "r", "ld.param.u8 %rs1", "cvt.u16.u8 %%smith_rs1, %0;"),
    ],
)
def test_a_load_of_a_parameter_is_a_move(kind: str, letter: str, load: str, becomes: str) -> None:
    text = samples.kernel(f"{load}, [k_param_0]; ret;", params=f".param .{kind} k_param_0")
    module = samples.module(text)
    given = rewrite.surroundings_of(module.functions[0], module, "sample.ptx").operands
    assert [one.letter for one in given] == [letter]
    assert lines(f"{load}, [k_param_0]; ret;", params=f".param .{kind} k_param_0") == [becomes]


def test_a_guard_stays_on_each_line_of_a_move() -> None:
    assert lines("@!%p1 mov.b64 %rd1, smem+8; ret;", before=".extern .shared .align 16 .b8 smem[];") == [
        "@!%%smith_p1 cvt.u64.u32 %%smith_rd1, %0;",
        "@!%%smith_p1 add.u64 %%smith_rd1, %%smith_rd1, 8;",
    ]


def test_a_register_is_not_the_beginning_of_another_one() -> None:
    """`%r2<5>` declares %r20 to %r24; %r2 and %r25 are of nobody."""
    found = block(samples.kernel(".reg .b64 %x2<5>; mov.b64 %x24, 1; mov.b64 %x25, 1; mov.b64 %x2, 1; ret;"))
    assert [one.why for one in found.refused] == [
        "%x25 is not declared in it",
        "%x2 is not declared in it",
    ]
    assert "mov.b64 %%smith_x24, 1;" in found.lines


SCOPE = "{ .reg .pred p; again: @p bra again; }"


@pytest.mark.parametrize(
    ("body", "block_of_it"),
    [
        # Special registers keep their names.
        (
            "mov.u32 %r1, %laneid; mov.u32 %r2, %envreg31; mov.u64 %rd1, %clock64; ret;",
            ["mov.u32 %%smith_r1, %%laneid;", "mov.u32 %%smith_r2, %%envreg31;",
             "mov.u64 %%smith_rd1, %%clock64;"],
        ),
        # Labels of the same name in two scopes are two.
        (
            f"{SCOPE} {SCOPE} ret;",
            ["{", ".reg .pred smith_v_p;", "smith_l1_%=:", "@smith_v_p bra smith_l1_%=;", "}",
             "{", ".reg .pred smith_v_p;", "smith_l2_%=:", "@smith_v_p bra smith_l2_%=;", "}"],
        ),
        # A scope may jump out of itself.
        (
            "{ bra done; } mov.b32 %r1, 1; done: ret;",
            ["{", "bra smith_l1_%=;", "}", "mov.b32 %%smith_r1, 1;", "smith_l1_%=:"],
        ),
        # A table of jumps.
        (
            "$L_t: .branchtargets $L_a, $L_b; brx.idx %r1, $L_t; $L_a: trap; $L_b: ret;",
            ["smith_l1_%=:", ".branchtargets smith_l2_%=, smith_l3_%=;", "brx.idx %%smith_r1, smith_l1_%=;",
             "smith_l2_%=:", "trap;", "smith_l3_%=:"],
        ),
        # A return in the middle jumps to the end.
        (
            "ret; mov.b32 %r1, 1; ret;",
            ["bra smith_l0_%=;", "mov.b32 %%smith_r1, 1;", "smith_l0_%=:"],
        ),
    ],
)  # fmt: skip
def test_registers_and_labels_of_a_block(body: str, block_of_it: list[str]) -> None:
    assert lines(body) == block_of_it


def test_memory_of_a_fixed_size_moves_into_the_block() -> None:
    found = lines(
        ".local .align 8 .b8 __local_depot0[24]; mov.b32 %r1, table; mov.b64 %rd1, __local_depot0; ret;",
        before=".shared .align 4 .b8 table[64];",
    )
    assert ".local .align 8 .b8 smith_v___local_depot0[24];" in found
    assert "mov.b32 %%smith_r1, smith_v_table;" in found
    assert "mov.b64 %%smith_rd1, smith_v___local_depot0;" in found


def test_a_constant_of_the_module_is_an_operand() -> None:
    module = samples.module(
        samples.kernel(
            "mov.b64 %rd1, table; ld.global.b32 %r1, [table+4]; ret;",
            before=".global .b8 other[2] = {1}; .global .align 4 .b32 table[3] = {0x10, 0f3F800000};",
        )
    )
    (given,) = rewrite.surroundings_of(module.functions[0], module, "sample.ptx").operands
    assert given.variable is not None
    assert (given.letter, given.variable.values, given.variable.length) == ("l", (16, 0x3F800000), 3)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("mov.b64 %rd1, k_param_0; ret;", "it takes an address that an operand does not have"),
        ("ld.param.b64 %rd1, [k_param_0+4]; ret;", "it reads past the 64 bits"),
        ("ld.param.v2.b32 {%r1, %r2}, [k_param_0]; ret;", "only a single value"),
        ("st.shared.b32 [nobody], %r1; ret;", "nobody is not declared in it"),
        ("bra nowhere;", "nowhere is not declared in it"),
    ],
)
def test_what_has_no_meaning_outside_its_module_is_refused(body: str, why: str) -> None:
    (found,) = block(samples.kernel(body)).refused
    assert why in found.why
    assert found.text == body.partition(";")[0]


def test_for_llvm_the_dollar_is_doubled_and_the_percent_sign_is_not() -> None:
    found = block(samples.FUNCTION, LLVM, at=1).lines
    assert found[4:] == (
        "mov.b32 %smith_r1, $1;",
        "mov.b64 %smith_fd1, $2;",
        "setp.gt.f64 %smith_p1, %smith_fd1, 0d3FF0000000000000;",
        "@%smith_p1 bra smith_l1_${:uid};",
        "add.s32 %smith_r1, %smith_r1, 1;",
        "smith_l1_${:uid}:",
        "mov.b32 $0, %smith_r1;",
        "}",
    )
    named = block(samples.kernel(".reg .b32 a$b; mov.b32 a$b, 1; ret;"), LLVM).lines
    assert "mov.b32 smith_v_a$$b, 1;" in named
