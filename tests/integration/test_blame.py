"""Who changed a kernel: a real Triton against an older one, and against itself with a planted culprit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import DEAD, LLVM, Smith, oldest_triton
from tests.support import require
from tritonsmith.compiler import up
from tritonsmith.compiler.manifest import Point
from tritonsmith.core.errors import FactError
from tritonsmith.lab.blame import llc

EXAMPLE = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32"
KERNEL = ("matmul.py:tiled_matmul", "--signature", SIGNATURE)
OLD = oldest_triton("3.4")
NO_INDEX = {"PIP_INDEX_URL": f"{DEAD}/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": "/dev/null"}
LLC = LLVM / "bin" / "llc"
COMPILER = "backends/nvidia/compiler.py"


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a kernel, with the newest wheel in the environment `wheel`."""
    root = tmp_path_factory.mktemp("who did it")
    shutil.copy(EXAMPLE, root / "matmul.py")
    return with_wheel.beside(root)


@pytest.fixture
def changed(smith: Smith, tmp_path: Path) -> Callable[[str, str], str]:
    """A copy of the wheel's environment in which a text of its NVIDIA backend is another."""

    def make(old: str, new: str) -> str:
        venv = smith.env("wheel") / "venv"
        copy = tmp_path / "changed"
        shutil.copytree(venv, copy, symlinks=True, copy_function=os.link)
        [file] = copy.glob(f"lib/python3*/site-packages/triton/{COMPILER}")
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1
        file.unlink()  # it is the wheel's, too
        file.write_text(text.replace(old, new), encoding="utf-8")
        return str(copy / "bin" / "python")

    return make


def blamed(smith: Smith, a: str, b: str, *more: str, code: int | None = 0) -> dict[str, Any]:
    """The only point of `blame --json`."""
    done = smith("blame", *KERNEL, "--from", a, "--to", b, *more, "--json", code=code)
    [point] = json.loads(done.out)["points"]
    found: dict[str, Any] = point
    return found


@pytest.mark.slow
def test_the_flags_of_ptxas(smith: Smith, changed: Callable[[str, str], str]) -> None:
    python = changed("reg_alloc = ['--regAllocOptLevel=2']", "reg_alloc = ['--opt-level=0']")
    point = blamed(smith, "wheel", python, "--target", "h100", "--metric", "code")
    [verdict] = point["verdicts"]
    assert verdict["culprits"] == [["flags"]]
    assert verdict["b"] > verdict["a"]
    assert "flags of ptxas: --regAllocOptLevel=2 -> --opt-level=0" in point["notes"]


@pytest.mark.slow
def test_a_pass_of_triton(smith: Smith, changed: Callable[[str, str], str]) -> None:
    python = changed("passes.ttgpuir.add_coalesce(pm)", "pass")
    point = blamed(smith, "wheel", python, "--target", "h100", "--metric", "code")
    assert {name for one in point["verdicts"] for [name] in one["culprits"]} == {"ttgir"}
    rows = {(row["text"], row["by"]): row.get("figures") for row in point["axes"]}
    assert rows["ttir of wheel", python] == point["ends"][1]
    assert rows["ttgir of wheel", python] == point["ends"][0]


@pytest.mark.slow
def test_the_same_has_nothing_to_blame(smith: Smith) -> None:
    python = str(smith.env("wheel") / "venv" / "bin" / "python")
    done = smith("blame", *KERNEL, "--from", "wheel", "--to", python, "--target", "mi300x", "--wide")
    assert "no change in registers, spills and code: nothing to blame" in done.out


@pytest.mark.slow
def test_another_ptxas_on_one_side_is_all_that_changes(smith: Smith) -> None:
    sides = ("--from", "wheel", "--to", "wheel,ptxas=12.9", "--target", "h100")
    assert "--ptxas 12.9.86" in smith("blame", *KERNEL, *sides, "--dry-run").out
    done = smith("blame", *KERNEL, *sides, "--json", code=None)
    [point] = json.loads(done.out)["points"]
    assert all(one["culprits"] == [["ptxas"]] for one in point["verdicts"])
    [note] = [one for one in point["notes"] if one.startswith("ptxas ")]
    assert note.endswith(" -> 12.9.86")
    for one in point["changed"]:
        ends = point["replayed"] if "ptxas" in one["components"] else reversed(point["replayed"])
        assert [one["in_b"]["figures"], one["in_a"]["figures"]] == [*ends]


def test_the_llcs_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(str(LLC))
    tree = tmp_path / "llvm"
    for name, text in (
        ("lib/cmake/llvm/LLVMConfig.cmake", "set(LLVM_PACKAGE_VERSION 19.1.7)\n"),
        ("include/llvm/Support/VCSRevision.h", f'#define LLVM_REVISION "{"0123456789" * 4}"\n'),
    ):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(text)
    (tree / "bin").mkdir()
    (tree / "bin" / "llc").symlink_to(LLC)
    monkeypatch.setenv("PATH", str(LLC.parent))
    assert [one.label for one in llc.at_hand()] == ["llc 19.1.7"]
    assert [one.label for one in llc.at_hand([], [tree, tree, tmp_path])] == ["llc 19.1.7 (012345678901)"]
    twice = llc.at_hand([LLC, script_for(LLC, tmp_path / "other")])
    assert {one.label for one in twice} == {f"llc 19.1.7 ({LLC})", f"llc 19.1.7 ({tmp_path / 'other'})"}
    with pytest.raises(FactError, match="this is not llc"):
        llc.of(LLC.with_name("opt"))


def script_for(program: Path, script: Path) -> Path:
    """A script that runs a program."""
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    return script


def test_a_gpu_that_an_llvm_does_not_know_is_refused(tmp_path: Path) -> None:
    require(str(LLC))
    llir, like, out = tmp_path / "k.llir", tmp_path / "k.ptx", tmp_path / "out.ptx"
    llir.write_text("define void @k() {\n  ret void\n}\n")
    point = Point("cuda-90-32", "cuda:90:32", {}, {}, {}, {}, "ok", 1.0)

    def made_for(target: str) -> str:
        like.write_text(f".version 8.7\n.target {target}\n")
        llc.assembly(llc.of(LLC), llir, like, out, point, "3.9.0")
        return out.read_text()

    assert ".target sm_90a\n" in made_for("sm_90a")
    with pytest.raises(FactError, match=r"llc 19\.1\.7 does not know sm_999a"):
        made_for("sm_999a")


@pytest.mark.slow
def test_two_releases_whatever_the_answer_is(smith: Smith, tmp_path: Path) -> None:
    require(str(LLC))
    other = str(script_for(LLC, tmp_path / "llc of another LLVM"))
    asked = (*KERNEL, "--from", OLD, "--to", "wheel", "--target", "h100", "--llc", other)
    done = smith("blame", *asked, "--json", code=None)
    [point] = json.loads(done.out)["points"]
    assert done.code == (0 if all(one["decided"] for one in point["verdicts"]) else 1)
    for one in point["verdicts"]:
        assert ("not decided" in one["words"]) is not one["decided"]
    versions = [
        row["by"] for row in point["axes"] if row["axis"] == "ptxas" and row["text"] == f"ptx of {OLD}"
    ]
    assert versions[0] == "ptxas 12.8.93"
    assert len(versions) > 3
    same = {row["text"]: row["figures"] for row in point["axes"] if row["by"] == versions[0]}
    assert same[f"ptx of {OLD}"] == point["ends"][0]
    assert [one for one in point["notes"] if one.startswith("ptxas 12.8.93 -> 1")]
    [_, newer] = [row for row in point["axes"] if row["by"] == "llc 19.1.7"]  # 3.4.0 asks for what it lacks
    assert newer["figures"]["registers"] > 0
    assert "llc 19.1.7 does not accept this llir; in the spelling before LLVM 20 it can" in point["notes"]


@pytest.mark.slow
def test_an_older_backend_of_amd_links_by_the_linker_of_this_machine(smith: Smith) -> None:
    require(str(LLVM / "bin" / "ld.lld"))
    point = blamed(smith, OLD, "wheel", "--target", "mi300x", code=None)
    by_triton = [row for row in point["axes"] if row["axis"] == "Triton" and row["by"] == OLD]
    assert by_triton
    assert any(row["figures"] for row in by_triton if row["text"].startswith(f"llir of {OLD}"))


@pytest.mark.slow
def test_another_ptxas_for_a_compile(smith: Smith) -> None:
    told = json.loads(smith("toolchain.ptxas", "12.9", "--json").out)
    assert told["version"] == "12.9.86"
    assert told["path"] in smith("toolchain.ptxas", "12.9").out
    smith("kernel.compile", *KERNEL, "--target", "h100", "--ptxas", "12.9", "--out", "compiled")
    [ptx] = (smith.cwd / "compiled").glob("*/*.ptx")
    assert ".version 8.8\n" in ptx.read_text(encoding="utf-8")
    assert "--ptxas 12.9.86" in json.loads((smith.cwd / "compiled" / "manifest.json").read_text())["command"]


def test_what_cannot_be(smith: Smith, tmp_path: Path) -> None:
    away = Smith(smith.cwd, cwd=smith.cwd, more=NO_INDEX, shared=smith.home)
    assert (
        "cannot be 'occupancy'"
        in smith("blame", *KERNEL, "--from", "wheel", "--to", OLD, "--metric", "occupancy", code=2).error
    )
    assert "same Triton" in smith("blame", *KERNEL, "--from", OLD, "--to", OLD, code=2).error
    assert "--to is missing" in smith("blame", *KERNEL, "--from", OLD, code=2).error
    assert "the package index lists no versions" in away("toolchain.ptxas", "99.1", code=1).error
    script = tmp_path / "llc"
    script.write_text("#!/bin/sh\necho no\n")
    script.chmod(0o755)
    error = smith("blame", *KERNEL, "--from", OLD, "--to", "wheel", "--llc", str(script), code=1).error
    assert "this is not llc" in error
    plan = smith(
        "blame", *KERNEL, "--from", OLD, "--to", "wheel", "--ptxas-versions", "13.0", "--dry-run"
    ).out
    assert "nvidia-cuda-nvcc==13.0.88" in plan or "ptxas" not in plan
    assert plan.count("kernel.compile") >= 2
