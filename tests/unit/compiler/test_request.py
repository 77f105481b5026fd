from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.check import when_wrong
from tritonsmith.compiler import interpreter, request, targets
from tritonsmith.compiler.request import CompileRequest, Config, Surgery
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.worker.messages import SurgeryRequest


@pytest.mark.parametrize(
    ("text", "file", "kernel"),
    [
        ("/a/k.py:k", "/a/k.py", "k"),
        ("/a/k.py:make.k", "/a/k.py", "make.k"),
        ("/a/k.py", "/a/k.py", ""),
        ("/a:b/k.py", "/a:b/k.py", ""),
        ("/a:k.py", "/a:k.py", ""),
    ],
)
def test_a_file_and_a_kernel(text: str, file: str, kernel: str) -> None:
    assert request.kernel_of(text) == (Path(file), kernel)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("package.module:kernel", ("package.module", "kernel")),
        ("package:make.k", ("package", "make.k")),
        ("k.py:kernel", ("", "")),
        ("folder/k:kernel", ("", "")),
        ("package.module", ("", "")),
    ],
)
def test_a_module_and_a_kernel(text: str, found: tuple[str, str]) -> None:
    assert request.module_of(text) == found


def test_what_is_there_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("package").mkdir()
    Path("script").touch()
    assert request.module_of("package:kernel") == ("package", "kernel")
    assert request.module_of("script:kernel") == ("", "")


def test_a_module_is_found_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine" / "ops").mkdir(parents=True)
    for name in ("mine/__init__.py", "mine/ops/__init__.py", "mine/ops/k.py"):
        (tmp_path / name).write_text("raise SystemExit('it was run')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    python = Path(sys.executable)
    assert interpreter.module_file("mine.ops.k", python) == tmp_path / "mine" / "ops" / "k.py"
    assert interpreter.module_file("mine.ops", python) == tmp_path / "mine" / "ops" / "__init__.py"
    for name, missing in (("mine.nosuch.k", "mine.nosuch"), ("nosuch_at_all.k", "nosuch_at_all")):
        with pytest.raises(FactError, match=f"no module {missing}"):
            interpreter.module_file(name, python)
    with pytest.raises(FactError, match="not written in Python"):
        interpreter.module_file("time", python)


def test_a_package_is_suggested_only_if_it_is_known_to_be_meant() -> None:
    assert "pip install flash-attn" in interpreter.provided("flash_attn")[0]
    assert not any("pip install" in hint for hint in interpreter.provided("mypkg"))
    assert any("PYTHONPATH=/folder/that/has/mypkg" in hint for hint in interpreter.provided("mypkg"))


KERNEL = KernelSource("add", (KernelParameter("x"), KernelParameter("BLOCK", constexpr=True)))
BOTH = targets.parse_all(["h100", "mi300x"])


def wanted(signature: str = "*fp32,64", **more: object) -> CompileRequest:
    return CompileRequest(Path("/k.py"), "add", signature, BOTH, **more)  # type: ignore[arg-type]


def test_a_point_for_each_target() -> None:
    one, other = request.expand_points(wanted(options={"maxnreg": 32}), KERNEL)
    assert (one.id, other.id) == ("cuda-90-32", "hip-gfx942-64")
    assert one.bound is not None
    assert one.bound.constexprs == {"BLOCK": 64}
    assert one.options == {"maxnreg": 32}


def test_sweeps_multiply_parameters_and_options() -> None:
    sweeps, autotune = request.sweeps_of(["BLOCK=64,128", "num_warps=4,8"])
    assert not autotune
    found = request.expand_points(wanted("*fp32", sweeps=sweeps), KERNEL)
    assert len(found) == 8
    assert found[1].id == "cuda-90-32,BLOCK=64,num_warps=8"
    assert found[1].options == {"num_warps": 8}
    assert found[1].bound is not None
    assert found[1].bound.constexprs == {"BLOCK": 64}


def test_a_type_can_be_swept_too() -> None:
    sweeps, _ = request.sweeps_of(["x=*fp16:16,*bf16:16,tensordesc<fp16[64,64]>"])
    found = request.expand_points(wanted("BLOCK=1", sweeps=sweeps), KERNEL)
    kinds = [one.bound.signature["x"] for one in found[:3] if one.bound]
    assert kinds == ["*fp16", "*bf16", "tensordesc<fp16[64,64]>"]
    assert len({one.id for one in found}) == 6
    assert not any(set("*/<>:") & set(one.id) for one in found)


def test_configs_are_told_apart_by_what_differs() -> None:
    configs = [Config({"BLOCK": size}, {"num_warps": 4, "num_stages": 3}) for size in (32, 64)]
    found = request.expand_points(wanted("*fp32"), KERNEL, configs)
    assert [one.id for one in found[:2]] == ["cuda-90-32,BLOCK=32", "cuda-90-32,BLOCK=64"]
    assert found[0].options == {"num_warps": 4, "num_stages": 3}


def test_one_point_of_many_can_be_requested_alone() -> None:
    sweeps, _ = request.sweeps_of(["num_warps=4,8"])
    recorded: tuple[dict[str, Any], ...] = ({"BLOCK": 32, "maxnreg": 64}, {"BLOCK": 64, "maxnreg": 64})
    whole = replace(wanted("*fp32", sweeps=sweeps), configs=recorded, autotune=True)
    every = request.expand_points(whole, KERNEL)
    assert len(every) == 8
    for point in every:
        alone = request.narrow(whole, KERNEL, point.id)
        assert alone is not None
        (again,) = request.expand_points(alone, KERNEL)
        # Its id is shorter, as there is nothing left to tell it from.
        assert replace(again, id=point.id) == point
        assert when_wrong.require_single(alone) == alone
    assert request.narrow(whole, KERNEL, "cuda-90-32,BLOCK=128,num_warps=4") is None
    with pytest.raises(UsageError, match="one variant"):
        when_wrong.require_single(replace(whole, targets=whole.targets[:1]))


def test_long_names_are_cut_and_stay_different() -> None:
    sweeps, _ = request.sweeps_of([f"BLOCK={'a' * 200},{'a' * 200}b"])
    found = request.expand_points(wanted("*fp32", sweeps=sweeps), KERNEL)
    assert len({one.id for one in found}) == 4
    assert max(len(one.id) for one in found) <= 120


def test_ir_has_options_only() -> None:
    (one, _) = request.expand_points(CompileRequest(Path("/k.ttir"), "add", "", BOTH), None)
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
        request.expand_points(wanted("*fp32", options={"num_warps": 8}), KERNEL, configs)
    sweeps, _ = request.sweeps_of(["num_warps=8"])
    (one, _) = request.expand_points(wanted("*fp32", sweeps=sweeps), KERNEL, configs)
    assert one.options == {"num_warps": 8}


def test_many_points_in_a_few_lines() -> None:
    sizes = ",".join(str(size) for size in range(1, 21))
    sweeps, _ = request.sweeps_of([f"BLOCK={sizes}", "num_warps=4,8"])
    found = request.expand_points(wanted("*fp32", sweeps=sweeps, options={"maxnreg": 32}), KERNEL)
    lines = list(request.summarize_points(found))
    assert lines[:3] == [
        "target: 2 values: cuda:90:32, hip:gfx942:64",
        "BLOCK: 20 values: 1, 2, 3, 4, 5, 6, 7, 8, ...",
        "num_warps: 2 values: 4, 8",
    ]
    assert lines[3:-1] == [one.id for one in found[:8]]
    assert lines[-1] == "... and 72 more"


ASKED = CompileRequest(Path("/k.ttir"), "k", "", targets.parse_all(["cuda:90", "hip:gfx942"]))


def test_a_name_is_all_runs_and_a_number_is_one() -> None:
    made = Surgery(skip=("cse", "canonicalize#2"), stop="add_cse#1", llvm=("disable-lsr",), ptxas=("-O1",))
    assert made.request() == SurgeryRequest(
        skip=(("cse", 0), ("canonicalize", 2)),
        stop=(("add_cse", 1),),
        repeat=(),
        llvm=("disable-lsr",),
        ptxas=("-O1",),
    )


@pytest.mark.parametrize("name", ["", "#2", "cse#0", "cse#", "cse #1", "a;b"])
def test_what_is_no_pass_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="--skip-pass cannot be"):
        Surgery(skip=(name,))


def test_what_is_no_option_of_llvm_is_refused() -> None:
    with pytest.raises(UsageError, match="--set-llvm cannot be 'a b'"):
        Surgery(llvm=("a b",))


def test_each_variant_is_a_point_of_each_target() -> None:
    cuts = (Surgery(skip=("cse#1",)), Surgery(skip=("cse#2",)))
    found = request.expand_points(replace(ASKED, variants=cuts), None)
    assert [(str(one.target), one.surgery) for one in found] == [
        (str(target), cut) for target in ASKED.targets for cut in cuts
    ]
    assert len({one.id for one in found}) == len(found)


def test_one_surgery_is_for_all_points_and_in_the_command() -> None:
    asked = replace(ASKED, surgery=Surgery(skip=("cse#1",), ptxas=("-O1",)))
    assert {one.surgery for one in request.expand_points(asked, None)} == {asked.surgery}
    assert "--skip-pass 'cse#1' --ptxas-option=-O1" in asked.flags()
