from __future__ import annotations

from typing import Any

import pytest

from tritonsmith.compiler import signature
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.core.errors import UsageError

ADD = KernelSource(
    "add",
    (
        KernelParameter("x_ptr"),
        KernelParameter("y_ptr"),
        KernelParameter("n"),
        KernelParameter("BLOCK", constexpr=True),
    ),
)
FULL = KernelSource(
    "full",
    (
        KernelParameter("x"),
        KernelParameter("pair"),
        KernelParameter("scale", has_default=True, default=0.5),
        KernelParameter("KIND", constexpr=True, has_default=True, default="relu"),
        KernelParameter("EVEN", constexpr=True),
    ),
    heuristics=("EVEN",),
)


def bind(text: str, kernel: KernelSource = ADD, **swept: str) -> signature.BoundSignature:
    return signature.bind(text, kernel, {}, swept)


def test_upstreams_form() -> None:
    bound = bind("*fp32:16, *kfp16:16 ,i32:1, 1024")
    assert bound.signature == {"x_ptr": "*fp32", "y_ptr": "*kfp16", "n": "i32", "BLOCK": "constexpr"}
    assert bound.hints == {"x_ptr": 16, "y_ptr": 16, "n": 1}
    assert bound.constexprs == {"BLOCK": 1024}


def test_pointers_with_little_memory() -> None:
    bound = bind("*fp32:16:r32,*fp32:r32,i32,64")
    assert (bound.signature["x_ptr"], bound.signature["y_ptr"]) == ("*fp32", "*fp32")
    assert (bound.hints, bound.ranges) == ({"x_ptr": 16}, ["x_ptr", "y_ptr"])
    with pytest.raises(UsageError, match="hint of n cannot be"):
        bind("*fp32,*fp32,i32:r32,64")


def test_by_name_and_in_any_order() -> None:
    bound = bind("*fp32:16,BLOCK=64,n=i64,y_ptr=*i8")
    assert bound.signature == {"x_ptr": "*fp32", "y_ptr": "*i8", "n": "i64", "BLOCK": "constexpr"}
    assert list(bound.signature) == ["x_ptr", "y_ptr", "n", "BLOCK"]


def test_a_constant_in_the_place_of_an_argument() -> None:
    assert bind("*fp32,*fp32,4096,64").signature["n"] == "constexpr"


def test_a_sweep_wins_and_fills_what_is_missing() -> None:
    assert bind("*fp32,*fp32,i32", BLOCK="256").constexprs == {"BLOCK": 256}
    assert bind("*fp32,*fp32,i32,64", BLOCK="256").constexprs == {"BLOCK": 256}
    assert bind("*fp32,*fp32,i32,64", x_ptr="*bf16:16").signature["x_ptr"] == "*bf16"


def test_tuples_defaults_and_heuristics() -> None:
    bound = bind("tensordesc<fp16[128, 64]>,(i32,*fp32:16,(8,i64))", FULL)
    assert bound.signature == {
        "x": "tensordesc<fp16[128, 64]>",
        "pair": "(i32,*fp32,(constexpr,i64))",
        "scale": "constexpr",
        "KIND": "constexpr",
        "EVEN": "constexpr",
    }
    assert bound.constexprs == {"pair.2.0": 8, "scale": 0.5, "KIND": "relu"}
    assert bound.hints == {"pair.1": 16}


def test_a_tuple_of_one_stays_one() -> None:
    assert bind("i32,(i32,)", FULL).signature["pair"] == "(i32,)"


def test_a_layout_with_colons_has_no_hint() -> None:
    kind = "tensordesc<fp16[64,64],NVMMASharedLayout(swizzle=128, x={1: 2})>"
    bound = bind(f"x={kind},pair=i32", FULL)
    assert bound.signature["x"] == kind
    assert bound.hints == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1024", 1024),
        ("-1", -1),
        ("1e-5", 1e-5),
        ("True", True),
        ("false", False),
        ("None", None),
        ("tl.float16", {"dtype": "float16"}),
        ("relu", "relu"),
        ("'64'", "64"),
        ("(1,2)", (1, 2)),
        ("inf", float("inf")),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert bind(f"*i8,*i8,i32,{text}").constexprs["BLOCK"] == value
    assert signature.parse_value(signature.spell_value(value)) == value


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("*fp32,*fp32", "does not set n, BLOCK", "n=i32,BLOCK=64"),
        ("*fp32,*fp32,i32,64,5", "has 5 entries, and add has 4 parameters", "commas"),
        ("*float32,*fp32,i32,64", "x_ptr the type '*float32'", "Triton calls it *fp32"),
        ("*fp23,*fp32,i32,64", "x_ptr the type '*fp23'", "did you mean 'fp32'?"),
        ("*fp32:8,*fp32,i32,64", "the hint of x_ptr cannot be '8'", ":16"),
        ("*fp32:x,*fp32,i32,64", "the hint of x_ptr cannot be 'x'", ":16"),
        ("*fp32,*fp32,i32,i32", "BLOCK is a tl.constexpr", "BLOCK=64"),
        ("*fp32,*fp32,i32,BLOK=64", "no parameter 'BLOK'", "did you mean 'BLOCK'?"),
        ("*fp32,*fp32,i32,64,n=i32", "sets n twice", ""),
        ("*fp32,,i32,64", "no type or value for y_ptr", "between two commas"),
        ("", "does not set x_ptr, y_ptr, n, BLOCK", "x_ptr=*fp32:16"),
    ],
)
def test_what_makes_no_sense(text: str, what: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        bind(text)
    assert what in caught.value.what
    assert hint in "\n".join(caught.value.hints)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("*fp32,*fp32,i32,constexpr", "--signature '*fp32,*fp32,i32,BLOCK=1024'"),
        ("*fp32,*fp32,i32,tl.constexpr", "--signature '*fp32,*fp32,i32,BLOCK=1024'"),
        ("BLOCK=constexpr,x_ptr=*i8,y_ptr=*i8,n=i32", "--signature 'BLOCK=1024,x_ptr=*i8,y_ptr=*i8,n=i32'"),
        ("*fp32,*fp32,constexpr,constexpr", "--signature '*fp32,*fp32,n=1024,BLOCK=1024'"),
    ],
)
def test_constexpr_is_a_kind_and_no_value(text: str, hint: str) -> None:
    with pytest.raises(
        UsageError, match=r"constexpr is a kind of parameter, not a value: .*BLOCK need"
    ) as caught:
        bind(text)
    assert hint in "\n".join(caught.value.hints)
    assert bind(hint.partition("'")[2].rstrip("'")).constexprs["BLOCK"] == 1024


def test_constexpr_is_no_error_where_something_else_gives_the_value() -> None:
    assert bind("*fp32,*fp32,i32,constexpr", BLOCK="64").constexprs == {"BLOCK": 64}
    assert signature.bind("*i8,*i8,i32,constexpr", ADD, {"BLOCK": 32}, {}).constexprs == {"BLOCK": 32}


def test_what_an_autotuner_sets_is_not_the_signatures() -> None:
    tuned = KernelSource("add", ADD.parameters, autotuned=True)
    assert signature.bind("*i8,*i8,i32", tuned, {"BLOCK": 32}, {}).constexprs == {"BLOCK": 32}
    with pytest.raises(UsageError, match=r"the signature and the configs of @triton\.autotune set BLOCK"):
        signature.bind("*i8,*i8,i32,64", tuned, {"BLOCK": 32}, {})
    with pytest.raises(UsageError) as caught:
        signature.bind("*i8,*i8,i32", tuned, {}, {})
    assert any("--sweep autotune" in hint for hint in caught.value.hints)


def test_entries_of_some_parameters_are_left_out() -> None:
    text = "*fp32:16,*fp32,BLOCK=64,n=i32"
    assert signature.without(text, {"BLOCK", "y_ptr"}, ADD) == "x_ptr=*fp32:16,n=i32"
    assert signature.without(text, {"BLOCK", "y_ptr"}, None) == "*fp32:16,*fp32,n=i32"
