"""Names, C types and files of variants; the hashes are those that upstream's tools/compile.py made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.inspect import c_types
from tritonsmith.inspect import export_c as emit
from tritonsmith.inspect.c_types import Variant

BINARY = bytes(range(20))
ADD = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "scale": "fp32", "n": "i32", "BLOCK": "constexpr"}
HINTS = {"x": 16, "y": 16, "out": 16, "n": 16}

Make = Callable[..., Variant]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A variant of what is compiled."""

    def made(
        signature: Mapping[str, str] = ADD,
        hints: Mapping[str, int] = HINTS,
        constexprs: Mapping[str, Any] | None = None,
        *,
        triton: str = "3.9.0",
        target: str = "cuda:90:32",
        out_name: str = "",
        options: Mapping[str, Any] | None = None,
        stages: Mapping[str, Stage] | None = None,
        status: Any = "ok",
        kernel: str = "add",
        **metadata: Any,
    ) -> Variant:
        binary = "hsaco" if target.startswith("hip") else "cubin"
        (tmp_path / "k").write_bytes(BINARY)
        point = Point(
            id="p",
            target=target,
            signature=signature,
            constexprs={"BLOCK": 1024} if constexprs is None else constexprs,
            hints=hints,
            options=options or {},
            status=status,
            seconds=0.0,
            stages={binary: Stage("k", len(BINARY), "0" * 64)} if stages is None else stages,
            metadata={"name": "add", "num_warps": 4, "num_stages": 3, "shared": 0, **metadata},
            error="it is broken" if status != "ok" else "",
        )
        found = Manifest(tmp_path, kernel, "/k.py", "", triton, "/none", "3.11", "", (point,))
        return c_types.variant(found, point, out_name)

    return made


@pytest.mark.parametrize(
    ("triton", "name"),
    [
        ("3.0.0", "add_a72f825f_0d1d2d34d"),
        ("3.2.0+git1234567", "add_a72f825f_0d1d2d34d"),
        ("3.3.0", "add_a72f825f_0d1d2d34d5"),
        ("3.6.0", "add_a72f825f_0d1d2d34d5"),
        ("3.7.0", "add_a72f825f_0d1d2d4d"),
        ("3.10.0", "add_a72f825f_0d1d2d4d"),
    ],
)
def test_the_name_is_that_of_the_version(make: Make, triton: str, name: str) -> None:
    made = make(triton=triton)
    assert made.name == name
    assert made.stem == name.replace("add_", "add.", 1)
    assert made.algorithm == "add_1024_warps4xstages3"


def test_names_follow_what_was_asked_for_and_the_launch_what_was_made(make: Make) -> None:
    made = make(options={"num_warps": 4, "num_stages": 3}, num_warps=8, num_stages=1)
    assert made.name == "add_a72f825f_0d1d2d4d"
    assert ", 8 * 32, 1, 1, " in emit.variant_source(made, ("1", "1", "1"))


@pytest.mark.parametrize(
    ("triton", "scale", "flag"),
    [("3.0.0", "float", "int32_t"), ("3.4.0", "double", "int32_t"), ("3.5.0", "double", "int8_t")],
)
def test_c_types_of_the_version(make: Make, triton: str, scale: str, flag: str) -> None:
    made = make({"p": "*fp8e5", "s": "fp32", "b": "i1"}, {}, {}, triton=triton)
    assert [one.c_type for one in made.arguments] == ["CUdeviceptr", scale, flag]
    assert make({"p": "*i8"}, {}, {}, target="hip:gfx942:64").arguments[0].c_type == "hipDeviceptr_t"


def test_what_is_one_is_no_parameter_of_the_kernel(make: Make) -> None:
    old = make({"p": "*i8", "n": "i64"}, {"n": 1}, {}, triton="3.2.0")
    new = make({"p": "*i8", "n": "i64"}, {"n": 1}, {})
    assert [one.name for one in new.passed] == ["p"]
    assert [one.c_type for one in old.arguments] == ["CUdeviceptr", "int64_t"]
    assert [one.c_type for one in new.arguments] == ["CUdeviceptr", "int32_t"]
    assert (old.algo, new.algo) == ("_warps4xstages3", "1_warps4xstages3")
    assert new.suffix == "1c"


@pytest.mark.parametrize(
    ("triton", "metadata", "names"),
    [
        ("3.2.0", {}, ()),
        ("3.2.0", {"global_scratch_size": 0}, ("global_scratch",)),
        ("3.4.0", {}, ("global_scratch",)),
        ("3.4.0", {"profile_scratch_size": 0}, ("global_scratch", "profile_scratch")),
        ("3.6.0", {}, ("global_scratch", "profile_scratch")),
    ],
)
def test_scratch_pointers_of_the_version(
    make: Make, triton: str, metadata: dict[str, int], names: tuple[str, ...]
) -> None:
    made = make(triton=triton, **metadata)
    assert made.scratch == names
    pointers = ", ".join(["&n", *(f"&{name}" for name in names)])
    assert f"{pointers} }};" in emit.variant_source(made, ("1", "1", "1"))


def test_constants_that_are_no_part_of_a_name(make: Make) -> None:
    made = make(constexprs={"BLOCK": -0.5})
    assert made.algo == "m0p5_warps4xstages3"
    assert make(constexprs={"BLOCK": {"dtype": "float16"}}).algo == "tlpfloat16_warps4xstages3"


def test_names_that_c_keeps_for_itself(make: Make) -> None:
    made = make({"stream": "*i8", "int": "i32", "größe": "i32"}, {}, {})
    assert [one.c_name for one in made.arguments] == ["stream_", "int_", "arg2"]
    assert c_types.render_grid("int * größe + int32_t", made) == "int_ * arg2 + int32_t"


def test_a_comment_cannot_be_ended_by_what_it_tells(make: Make) -> None:
    text = emit.variant_source(make(constexprs={"BLOCK": "*/ evil"}), ("1", "1", "1"))
    assert text.index("*/") > text.index("num_stages=3")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"status": "failed"}, "did not compile"),
        ({"stages": {}}, "has no cubin"),
        ({"target": "xpu:1:16"}, "no C launcher"),
        ({"global_scratch_size": 128}, "needs scratch memory"),
        ({"num_ctas": 2}, "in clusters"),
        ({"launch_cooperative_grid": True}, "cooperative"),
        ({"signature": {"t": "(i32,i32)"}, "constexprs": {}, "hints": {}}, "equivalent in C"),
        (
            {"signature": {"t": "tensordesc<fp16[64,64]>"}, "constexprs": {}, "hints": {}},
            "no equivalent in C",
        ),
        ({"signature": {"t": "fp8e5"}, "constexprs": {}, "hints": {}}, "equivalent in C"),
    ],
)
def test_what_cannot_be_launched_from_c(make: Make, change: dict[str, Any], text: str) -> None:
    with pytest.raises(SmithError, match=text):
        make(**change)


def test_a_binary_that_is_gone(make: Make, tmp_path: Path) -> None:
    made = make()
    (tmp_path / "k").unlink()
    with pytest.raises(FactError, match="cannot read this binary"):
        emit.variant_source(made, ("1", "1", "1"))


def test_the_binary_lies_in_the_source(make: Make) -> None:
    text = emit.variant_source(make(), ("n", "1", "1"))
    data = text.split("_cubin[20] = { ")[1].split(" };")[0]
    assert bytes(int(word, 16) for word in data.split(", ")) == BINARY


@pytest.mark.parametrize(("shared", "told"), [(49152, False), (49153, True)])
def test_much_shared_memory_is_asked_for(make: Make, shared: int, told: bool) -> None:
    text = emit.variant_source(make(shared=shared), ("1", "1", "1"))
    assert (f"MAX_DYNAMIC_SHARED_SIZE_BYTES, {shared})" in text) == told
    amd = emit.variant_source(make(shared=shared, target="hip:gfx942:64"), ("1", "1", "1"))
    assert "MAX_DYNAMIC" not in amd


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(n+1023)/1024,1,1", ("(n+1023)/1024", "1", "1")),
        ("n", ("n", "1", "1")),
        ("n, (unsigned)0x10 ", ("n", "(unsigned)0x10", "1")),
    ],
)
def test_a_grid(text: str, parts: tuple[str, str, str]) -> None:
    assert c_types.parse_grid(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1,1,1,1",
        "n//2",
        "(n",
        "n)(",
        "n,,1",
        "n;",
        "n=1",
        "n /*",
        "f(n){",
        "1.5",
        "n /* */",
        'n"',
        "n#",
        "é",
    ],
)
def test_no_grid(text: str) -> None:
    with pytest.raises(UsageError):
        c_types.parse_grid(text)


def test_a_grid_of_a_variant(make: Make) -> None:
    assert c_types.render_grid("(n+BLOCK-1)/BLOCK", make()) == "(n+1024-1)/1024"
    assert c_types.render_grid("n+0xBL", make({"n": "i32"}, {"n": 1}, {})) == "1+0xBL"
    with pytest.raises(UsageError, match="names 'm'"):
        c_types.render_grid("m", make())
    with pytest.raises(UsageError, match="not an integer"):
        c_types.render_grid("BLOCK", make(constexprs={"BLOCK": 1.5}))


@pytest.mark.parametrize("name", ["a-b", "a b", "1a", "größe", "a.b", "int", "errno"])
def test_names_that_functions_cannot_have(name: str) -> None:
    with pytest.raises(UsageError, match="--out-name"):
        c_types.check_name(name)


def test_a_kernel_that_is_called_like_a_word_of_c(make: Make) -> None:
    with pytest.raises(UsageError, match="name double is reserved in C"):
        make(kernel="double")
    assert make(kernel="double", out_name="twice").algorithm.startswith("twice_")


def test_the_block_is_as_wide_as_the_compiler_made_it(make: Make) -> None:
    """AMD's backend goes by the GPU, whatever size of a wave the target has."""
    made = emit.variant_source(make(target="hip:gfx1201:32", warp_size=64), ("1", "1", "1"))
    assert "4 * 64, 1, 1" in made


def test_what_knows_most_is_tried_first(make: Make) -> None:
    loose, tight = make(hints={}), make()
    text = emit.dispatcher_source([loose, tight])
    assert text.index(f"return {tight.name}(") < text.index("if (1)") < text.index(f"return {loose.name}(")
    assert list(emit.algorithms([loose, tight])) == ["add_1024_warps4xstages3"]


def test_variants_that_no_dispatcher_can_choose_among(make: Make) -> None:
    emit.check_variants([make(), make(hints={}), make(constexprs={"BLOCK": 512})])
    with pytest.raises(UsageError, match="the same name"):
        emit.check_variants([make(), make()])
    half = make({**ADD, "x": "*fp16"})
    with pytest.raises(UsageError, match="cannot be told apart"):
        emit.check_variants([make(), half])
    with pytest.raises(UsageError, match="different arguments"):
        emit.check_variants([make(), make({**ADD, "n": "i64"})])
    with pytest.raises(UsageError, match="different constants"):
        emit.check_variants([make(constexprs={"BLOCK": "a.b"}), make(constexprs={"BLOCK": "apb"}, hints={})])
