"""What setup.py would download from NVIDIA, as packages of a registry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.triton import recipe
from tritonsmith.build.triton.recipe import Component
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Copy, Plan, UnpackPackage
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts.checkout import TritonCheckout

SPACE = made.workspace()
BACKEND = Path("/home/dev/triton/third_party/nvidia/backend")


def parts(checkout: TritonCheckout, *, proton: bool = True) -> dict[str, Component]:
    return {part.name: part for part in recipe.components(checkout, SPACE, proton=proton)}


def wanting(**versions: str) -> TritonCheckout:
    named = tuple((name.replace("_", "-"), version) for name, version in versions.items())
    return replace(made.checkout("3.7"), nvidia=named)


# Facts document 1.5: what each version's cmake/nvidia-toolchain-version.{txt,json}, or its setup.py, names.
@pytest.mark.parametrize(
    ("version", "component", "requirement"),
    [
        ("2.1", "ptxas", "nvidia-cuda-nvcc-cu12==12.1.105"),
        ("2.2", "ptxas", "nvidia-cuda-nvcc-cu12==12.3.52"),
        ("3.1", "ptxas", "nvidia-cuda-nvcc-cu12==12.4.99"),
        ("3.1", "cudacrt", "nvidia-cuda-nvcc-cu12==12.4.99"),
        ("3.1", "cudart", "nvidia-cuda-runtime-cu12==12.4.99"),
        ("3.1", "cupti", "nvidia-cuda-cupti-cu12==12.4.99"),
        ("3.3", "ptxas", "nvidia-cuda-nvcc-cu12==12.4.99"),
        ("3.3", "ptxas-blackwell", "nvidia-cuda-nvcc-cu12==12.8.61"),
        ("3.3", "cudart", "nvidia-cuda-runtime-cu12==12.8.57"),
        ("3.5", "ptxas", "nvidia-cuda-nvcc-cu12==12.8.93"),
        ("3.6", "ptxas-blackwell", "nvidia-cuda-nvcc-cu12==12.9.86"),
        ("3.7", "ptxas", "nvidia-cuda-nvcc-cu12==12.9.86"),
        ("3.7", "ptxas-blackwell", "nvidia-cuda-nvcc==13.1.80"),
        ("3.7", "cudacrt", "nvidia-cuda-crt==13.1.80"),
        ("3.7", "cudart", "nvidia-cuda-runtime==13.1.80"),
        ("3.7", "cupti-lib-blackwell", "nvidia-cuda-cupti==13.0.85"),
        ("main", "ptxas-blackwell", "nvidia-cuda-nvcc==13.3.33"),
        ("main", "cupti-lib", "nvidia-cuda-cupti-cu12==12.8.90"),
        ("main", "cupti-lib-blackwell", "nvidia-cuda-cupti==13.3.35"),
    ],
)
def test_wanted_version_to_package(version: str, component: str, requirement: str) -> None:
    assert parts(made.checkout(version))[component].requirement == requirement


@pytest.mark.parametrize("version", sorted(made.stored()))
def test_every_wanted_version_has_a_package(version: str) -> None:
    checkout = made.checkout(version)
    names = {"cupti": "cupti-lib", "cupti-blackwell": "cupti-lib-blackwell"}
    wanted = {names.get(name, name) for name, _ in checkout.nvidia}
    assert wanted == parts(checkout).keys() - {"cupti"}


@pytest.mark.parametrize("tool", ["cuobjdump", "nvdisasm"])
@pytest.mark.parametrize(
    ("version", "taken"),
    [("12.4.99", "13.2.51"), ("13.1.80", "13.2.51"), ("13.2.51", "13.2.51"), ("13.3.73", "13.3.73")],
)
def test_disassemblers_go_up_to_the_first_that_the_registry_has(tool: str, version: str, taken: str) -> None:
    part = parts(wanting(**{tool: version}))[tool]
    assert part.requirement == f"nvidia-cuda-{tool}=={taken}"
    assert part.source == SPACE.toolchain / f"nvidia-cuda-{tool}-{taken}" / "nvidia" / "cu13" / "bin" / tool


def test_packages_since_13_name_the_major_version_in_their_path() -> None:
    part = parts(wanting(ptxas="14.0.1"))["ptxas"]
    assert part.source == SPACE.toolchain / "nvidia-cuda-nvcc-14.0.1" / "nvidia" / "cu14" / "bin" / "ptxas"


def test_where_the_files_belong() -> None:
    seen = {name: (part.dest, part.tree) for name, part in parts(made.checkout("3.7")).items()}
    assert seen == {
        "ptxas": (BACKEND / "bin" / "ptxas", False),
        "ptxas-blackwell": (BACKEND / "bin" / "ptxas-blackwell", False),
        "cuobjdump": (BACKEND / "bin" / "cuobjdump", False),
        "nvdisasm": (BACKEND / "bin" / "nvdisasm", False),
        "cudacrt": (BACKEND / "include", True),
        "cudart": (BACKEND / "include", True),
        "cupti": (BACKEND / "include", True),
        "cupti-lib": (BACKEND / "lib" / "cupti", True),
        "cupti-lib-blackwell": (BACKEND / "lib" / "cupti-blackwell", True),
    }


def test_cupti_is_for_the_profiler_only() -> None:
    checkout = made.checkout("3.7")
    assert parts(checkout).keys() - parts(checkout, proton=False).keys() == {
        "cupti",
        "cupti-lib",
        "cupti-lib-blackwell",
    }


def test_json_of_the_version_that_the_checkout_names() -> None:
    for version, named in (("2.1", ""), ("3.7", "3.11.3"), ("3.7", "3.12.0")):
        checkout = replace(made.checkout(version), json_version=named)
        prefix = SPACE.toolchain / f"nlohmann-json-{named or '3.11.3'}" / "nlohmann_json"
        assert recipe.json_prefix(checkout, SPACE) == prefix


def steps_of(system: made.System, arch: str = "x86_64", env: str = "dev") -> list[UnpackPackage | Copy]:
    python, host = SPACE.env(env).python, made.machine(system, arch=arch)
    plan = recipe.components_plan(made.checkout("3.7"), SPACE, host, python, proton=False)
    return [step for step in plan.steps if isinstance(step, (UnpackPackage, Copy))]


def packages(system: made.System, arch: str = "x86_64", env: str = "dev") -> list[UnpackPackage]:
    return [step for step in steps_of(system, arch, env) if isinstance(step, UnpackPackage)]


def test_a_package_is_unpacked_aside_and_gets_its_name_when_it_is_whole() -> None:
    step = packages("linux")[0]
    target = SPACE.toolchain / "nvidia-cuda-nvcc-cu12-12.9.86"
    (pip,) = step.commands
    assert pip[-3:] == ("--target", f"{target}.partial", "nvidia-cuda-nvcc-cu12==12.9.86")
    assert {"--no-deps", "--only-binary=:all:"} <= set(pip)
    assert step.dest == target


def test_each_package_is_unpacked_once() -> None:
    names = [step.requirement for step in packages("linux")]
    assert len(names) == len(set(names)) == 7


def test_a_package_that_one_environment_unpacked_is_there_for_the_next() -> None:
    one, other = packages("linux", env="dev"), packages("linux", env="debug")
    assert [step.commands for step in one] != [step.commands for step in other]
    assert [step.stamp for step in one] == [step.stamp for step in other]
    assert packages("linux", "aarch64")[0].stamp != one[0].stamp


@pytest.mark.parametrize(
    ("arch", "platform"), [("arm64", "manylinux2014_aarch64"), ("x86_64", "manylinux2014_x86_64")]
)
def test_macos_takes_the_linux_packages_as_upstream_does(arch: str, platform: str) -> None:
    for step in packages("macos", arch):
        assert (platform in step.commands[0]) is step.requirement.startswith("nvidia-")
    assert "--platform" not in " ".join(line for step in packages("linux") for line in step.shell())


def test_files_are_copied_last() -> None:
    copies = [isinstance(step, Copy) for step in steps_of("linux")]
    assert copies == sorted(copies)
    assert sum(copies) == 6


def test_files_that_nobody_touched_are_not_compared_again(tmp_path: Path) -> None:
    space, checkout = Workspace(tmp_path / "home"), replace(made.checkout("3.7"), root=tmp_path / "triton")
    for part in recipe.components(checkout, space, proton=False):
        file = part.source / "one.h" if part.tree else part.source
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("ours")

    def copies() -> tuple[Copy, ...]:
        plan = recipe.components_plan(
            checkout, space, made.machine("linux"), Path("/venv/bin/python"), proton=False
        )
        return tuple(step for step in plan.steps if isinstance(step, Copy))

    def left() -> int:
        return sum(step.stamp is None or not step.stamp.holds() for step in copies())

    def run() -> None:
        Runner(tmp_path / "log", PhaseProgress(live=False, silent=True)).run(Plan("copies", copies()))

    run()
    run()  # the copies made other time stamps
    assert left() == 0
    ptxas = next(step.dest for step in copies() if not step.tree)
    ptxas.write_text("pip's")
    assert left() == 1
    run()
    assert ptxas.read_text() == "ours"
    ptxas.unlink()
    assert left() == 1
