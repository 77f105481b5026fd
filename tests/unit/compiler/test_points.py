from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.compiler import points, request, targets
from tritonsmith.compiler.points import Config
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.core.errors import UsageError

KERNEL = KernelSource("add", (KernelParameter("x"), KernelParameter("BLOCK", constexpr=True)))
BOTH = targets.parse_all(["h100", "mi300x"])


def wanted(signature: str = "*fp32,64", **more: object) -> CompileRequest:
    return CompileRequest(Path("/k.py"), "add", signature, BOTH, **more)  # type: ignore[arg-type]


def test_a_point_for_each_target() -> None:
    one, other = points.expand(wanted(options={"maxnreg": 32}), KERNEL)
    assert (one.id, other.id) == ("cuda-90-32", "hip-gfx942-64")
    assert one.bound is not None
    assert one.bound.constexprs == {"BLOCK": 64}
    assert one.options == {"maxnreg": 32}


def test_sweeps_multiply_parameters_and_options() -> None:
    sweeps, autotune = request.sweeps_of(["BLOCK=64,128", "num_warps=4,8"])
    assert not autotune
    found = points.expand(wanted("*fp32", sweeps=sweeps), KERNEL)
    assert len(found) == 8
    assert found[1].id == "cuda-90-32,BLOCK=64,num_warps=8"
    assert found[1].options == {"num_warps": 8}
    assert found[1].bound is not None
    assert found[1].bound.constexprs == {"BLOCK": 64}


def test_a_type_can_be_swept_too() -> None:
    sweeps, _ = request.sweeps_of(["x=*fp16:16,*bf16:16,tensordesc<fp16[64,64]>"])
    found = points.expand(wanted("BLOCK=1", sweeps=sweeps), KERNEL)
    kinds = [one.bound.signature["x"] for one in found[:3] if one.bound]
    assert kinds == ["*fp16", "*bf16", "tensordesc<fp16[64,64]>"]
    assert len({one.id for one in found}) == 6
    assert not any(set("*/<>:") & set(one.id) for one in found)


def test_configs_are_told_apart_by_what_differs() -> None:
    configs = [Config({"BLOCK": size}, {"num_warps": 4, "num_stages": 3}) for size in (32, 64)]
    found = points.expand(wanted("*fp32"), KERNEL, configs)
    assert [one.id for one in found[:2]] == ["cuda-90-32,BLOCK=32", "cuda-90-32,BLOCK=64"]
    assert found[0].options == {"num_warps": 4, "num_stages": 3}


def test_long_names_are_cut_and_stay_different() -> None:
    sweeps, _ = request.sweeps_of([f"BLOCK={'a' * 200},{'a' * 200}b"])
    found = points.expand(wanted("*fp32", sweeps=sweeps), KERNEL)
    assert len({one.id for one in found}) == 4
    assert max(len(one.id) for one in found) <= 120


def test_ir_has_options_only() -> None:
    (one, _) = points.expand(CompileRequest(Path("/k.ttir"), "add", "", BOTH), None)
    assert one.bound is None


@pytest.mark.parametrize(
    ("text", "file", "kernel"),
    [
        ("/a/k.py:add", "/a/k.py", "add"),
        ("/a/k.py", "/a/k.py", ""),
        ("/a:b/k.py", "/a:b/k.py", ""),
        ("/a:b/k.py:k", "/a:b/k.py", "k"),
    ],
)
def test_file_and_kernel(text: str, file: str, kernel: str) -> None:
    assert request.kernel_of(text) == (Path(file), kernel)


def test_the_flags_ask_for_the_same_again() -> None:
    sweeps, _ = request.sweeps_of(["BLOCK=64,128"])
    flags = wanted(options={"ptx_options": "-v"}, sweeps=sweeps, autotune=True, stages=("ptx",)).flags()
    assert flags == (
        "/k.py:add --signature '*fp32,64' --target cuda:90:32 --target hip:gfx942:64 "
        "--option ptx_options=-v --sweep BLOCK=64,128 --sweep autotune --stage ptx"
    )


@pytest.mark.parametrize("text", ["maxnreg", "=3", "maxnreg=", "a b=3"])
def test_what_is_no_option(text: str) -> None:
    with pytest.raises(UsageError, match="--option cannot be"):
        request.options_of([text])


@pytest.mark.parametrize("texts", [["BLOCK"], ["=1"], ["BLOCK="], ["A=1", "A=2"]])
def test_what_is_no_sweep(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--sweep"):
        request.sweeps_of(texts)


def test_nothing_is_no_kernel() -> None:
    with pytest.raises(UsageError, match="no kernel is given"):
        request.kernel_of("")


def test_a_file_with_a_colon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "odd:name").touch()
    assert request.kernel_of(f"{tmp_path}/odd:name") == (tmp_path / "odd:name", "")
    assert request.kernel_of(f"{tmp_path}/odd:name:k") == (tmp_path / "odd:name", "k")


def test_a_flag_does_not_give_way_to_the_configs_without_a_word() -> None:
    configs = [Config({"BLOCK": 32}, {"num_warps": 4})]
    with pytest.raises(UsageError, match=r"both a flag and the configs of @triton\.autotune set num_warps"):
        points.expand(wanted("*fp32", options={"num_warps": 8}), KERNEL, configs)
    sweeps, _ = request.sweeps_of(["num_warps=8"])
    (one, _) = points.expand(wanted("*fp32", sweeps=sweeps), KERNEL, configs)
    assert one.options == {"num_warps": 8}


def test_many_points_in_a_few_lines() -> None:
    sizes = ",".join(str(size) for size in range(1, 21))
    sweeps, _ = request.sweeps_of([f"BLOCK={sizes}", "num_warps=4,8"])
    found = points.expand(wanted("*fp32", sweeps=sweeps, options={"maxnreg": 32}), KERNEL)
    lines = list(points.summary(found))
    assert lines[:3] == [
        "target: 2 values: cuda:90:32, hip:gfx942:64",
        "BLOCK: 20 values: 1, 2, 3, 4, 5, 6, 7, 8, ...",
        "num_warps: 2 values: 4, 8",
    ]
    assert lines[3:-1] == [one.id for one in found[:8]]
    assert lines[-1] == "... and 72 more"
