"""A new pass, in checkouts of several times; tests/real has upstream's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.build.new_pass.planted import CHAINED, REGISTERED, WRAPPED, plant
from tests.unit.cli.tasks.conftest import Smith
from tests.unit.cli.tasks.conftest import smith as smith  # noqa: PLC0414 - a fixture
from tests.unit.repositories import Maker
from tritonsmith.build import new_pass
from tritonsmith.build import worktree_add as records
from tritonsmith.build.new_pass import NewPass
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError


def added(one: NewPass) -> dict[str, list[str]]:
    """New lines of the files that are changed; a test of its own that nothing is lost."""
    found = {}
    for name, before, after in one.changed:
        old, new = before.split("\n"), after.split("\n")
        rest = iter(new)
        assert all(line in rest for line in old), name
        start = next(at for at, line in enumerate(new) if at >= len(old) or line != old[at])
        found[name] = [line.strip() for line in new[start : start + len(new) - len(old)] if line.strip()]
    return found


def test_a_pass_that_tablegen_declares(tmp_path: Path) -> None:
    one = new_pass.design_pass(plant(tmp_path, WRAPPED), "hoist-loads", "ttgpu")
    assert (one.argument, one.binding) == ("tritongpu-hoist-loads", "passes.ttgpuir.add_hoist_loads")
    new = added(one)
    td = new.pop("include/triton/Dialect/TritonGPU/Transforms/Passes.td")
    assert td[0] == 'def TritonGPUHoistLoads : Pass<"tritongpu-hoist-loads", "mlir::ModuleOp"> {'
    assert not any("constructor" in line for line in td)
    assert new == {
        "lib/Dialect/TritonGPU/Transforms/CMakeLists.txt": ["HoistLoads.cpp"],
        "python/src/passes.cc": [
            'ADD_PASS_WRAPPER_0("add_hoist_loads",',
            "mlir::triton::gpu::createTritonGPUHoistLoads);",
        ],
    }
    files = dict(one.written)
    cpp = files["lib/Dialect/TritonGPU/Transforms/HoistLoads.cpp"]
    assert "namespace mlir::triton::gpu {" in cpp
    assert "#define GEN_PASS_DEF_TRITONGPUHOISTLOADS" in cpp
    assert "create" not in cpp
    assert "// RUN: triton-opt %s -tritongpu-hoist-loads | FileCheck %s" in files[one.test]
    assert "@" not in cpp
    after = {name: text for name, _, text in one.changed}
    lines = after["lib/Dialect/TritonGPU/Transforms/CMakeLists.txt"].split("\n")
    assert lines[4:6] == ["  HoistLoads.cpp", "  Utility.cpp"]


def test_a_pass_of_2_1(tmp_path: Path) -> None:
    one = new_pass.design_pass(plant(tmp_path, CHAINED), "x", "ttgpu")
    assert one.binding == "pm.add_x_pass"
    new = added(one)
    td = new["include/triton/Dialect/TritonGPU/Transforms/Passes.td"]
    assert 'let constructor = "mlir::createTritonGPUXPass()";' in td
    assert new["include/triton/Dialect/TritonGPU/Transforms/Passes.h"] == [
        "std::unique_ptr<Pass> createTritonGPUXPass();"
    ]
    assert new["python/src/triton.cc"] == [
        '.def("add_x_pass",',
        "[](mlir::PassManager &self) {",
        "self.addPass(mlir::createTritonGPUXPass());",
        "})",
    ]
    cpp = dict(one.written)["lib/Dialect/TritonGPU/Transforms/X.cpp"]
    assert "std::unique_ptr<::mlir::Pass> createTritonGPUXPass() {" in cpp


def test_a_pass_that_triton_opt_registers_by_itself(tmp_path: Path) -> None:
    one = new_pass.design_pass(plant(tmp_path, REGISTERED), "x", "amd")
    assert (one.binding, one.test) == ("amd.passes.ttgpuir.add_x", "test/TritonGPU/x.mlir")
    new = added(one)
    assert new["bin/RegisterTritonDialects.h"] == ["mlir::registerTritonAMDGPUX();"]
    assert new["third_party/amd/python/triton_amd.cc"] == [
        'm.def("add_x", [](mlir::PassManager &pm) {',
        "pm.addPass(mlir::createTritonAMDGPUXPass());",
        "});",
    ]
    assert "namespace mlir {" in dict(one.written)["third_party/amd/lib/TritonAMDGPUTransforms/X.cpp"]


@pytest.mark.parametrize("name", ["", "X", "1x", "x_y", "x--y", "x-", "../x", "x" * 61, "x\n"])
def test_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not a valid name"):
        new_pass.design_pass(plant(tmp_path, WRAPPED), name, "ttgpu")


@pytest.mark.parametrize("name", ["coalesce", "again", "tested"])
def test_a_name_that_is_taken(tmp_path: Path, name: str) -> None:
    more = {"lib/Dialect/TritonGPU/Transforms/Again.cpp": "", "test/TritonGPU/tested.mlir": ""}
    with pytest.raises(UsageError, match=f"a pass '{name}' already exists"):
        new_pass.design_pass(plant(tmp_path, {**WRAPPED, **more}), name, "ttgpu")


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("include/triton/Dialect/TritonGPU/Transforms/Passes.h", "", "the declaration of a pass"),
        ("include/triton/Dialect/TritonGPU/Transforms/Passes.td", "", "defines no passes"),
        ("lib/Dialect/TritonGPU/Transforms/CMakeLists.txt", "", "names no C\\+\\+ sources"),
        ("lib/Dialect/TritonGPU/Transforms/CMakeLists.txt", "  A.cpp\r\n", "CR LF"),
        ("python/src/passes.cc", "", "bound to Python"),
        ("bin/RegisterTritonDialects.h", "", "does not register"),
    ],
)
def test_a_checkout_that_is_not_as_expected(tmp_path: Path, file: str, text: str, says: str) -> None:
    root = plant(tmp_path, WRAPPED)
    (root / file).write_bytes(text.encode())
    with pytest.raises(FactError, match=says):
        new_pass.design_pass(root, "x", "ttgpu")


def test_families(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'ttgpu'"):
        new_pass.design_pass(tmp_path, "x", "ttgpuir")
    with pytest.raises(FactError, match="it has: ttgpu"):
        new_pass.design_pass(plant(tmp_path, WRAPPED), "x", "amd")


def test_a_file_that_leads_elsewhere(tmp_path: Path) -> None:
    root = plant(tmp_path / "triton", WRAPPED)
    cmake = root / "lib/Dialect/TritonGPU/Transforms/CMakeLists.txt"
    cmake.rename(tmp_path / "elsewhere.txt")
    cmake.symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(FactError, match="a link to"):
        new_pass.design_pass(root, "x", "ttgpu")


def test_the_task_writes_into_a_worktree(make: Maker, smith: Smith) -> None:
    clone = make("triton")
    clone.commit("first", {**REGISTERED})
    words = ("pass.new", "x", "--family", "amd", "--source", str(clone.path))
    planned = smith(*words, "--dry-run")
    assert planned.code == 0
    assert "+  mlir::registerTritonAMDGPUX();" in planned.out
    assert not (clone.path.parent / "triton-pass-x").exists()
    answer = smith(*words)
    assert answer.code == 0, answer.err
    assert "amd.passes.ttgpuir.add_x(pm)" in answer.out
    assert "invoke build-triton --env pass-x" in answer.out
    where = records.find(workspace.default(), "pass-x").folder
    assert "registerTritonAMDGPUX" in (where / "bin/RegisterTritonDialects.h").read_text()
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("branch", "--list", "pass-x")
    assert smith(*words).code == 0  # nothing has changed since
    cpp = where / "third_party/amd/lib/TritonAMDGPUTransforms/X.cpp"
    cpp.write_text("mine")
    refused = smith(*words)
    assert (refused.code, "already exists" in refused.err) == (2, True)
    assert cpp.read_text() == "mine"


def test_the_task_writes_into_the_checkout(make: Maker, smith: Smith) -> None:
    clone = make("triton")
    clone.commit("first", {**REGISTERED})
    words = ("pass.new", "x", "--family", "amd", "--source", str(clone.path), "--here")
    tool = clone.path / "bin" / "RegisterTritonDialects.h"
    text = tool.read_text()
    tool.write_text(f"{text}// mine\n")
    refused = smith(*words)
    assert (refused.code, "uncommitted changes" in refused.err) == (1, True)
    assert tool.read_text() == f"{text}// mine\n"
    tool.write_text(text)
    assert smith(*words).code == 0
    assert "registerTritonAMDGPUX" in tool.read_text()
    assert (clone.path / "test" / "TritonGPU" / "x.mlir").is_file()
    assert smith(*words).code == 2


def test_a_folder_that_is_not_under_git(tmp_path: Path, smith: Smith) -> None:
    root = plant(tmp_path, REGISTERED)
    answer = smith("pass.new", "x", "--family", "amd", "--source", str(root), "--here")
    assert (answer.code, "not in a git repository" in answer.err) == (1, True)
    assert not (root / "test" / "TritonGPU" / "x.mlir").exists()
