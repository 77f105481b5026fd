"""What differs between Triton versions and systems, asserted one cliff at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tests.unit.build.made import System
from tritonsmith.build.cmake import CACHE_FILE
from tritonsmith.build.llvm import source
from tritonsmith.build.triton import recipe
from tritonsmith.build.triton.install import environment as install_environment
from tritonsmith.build.triton.install import pip_build_dir, plan
from tritonsmith.build.triton.source import request_for
from tritonsmith.core.envs.settings import LlvmSettings
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import Copy
from tritonsmith.facts import checkout
from tritonsmith.facts.tools import Tool

LINES = ("2.1", "2.2", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "main")


def since(first: str) -> list[tuple[str, bool]]:
    """Each version, and whether it is `first` or later."""
    return [(version, LINES.index(version) >= LINES.index(first)) for version in LINES]


def variables(version: str, system: System = "linux") -> dict[str, str]:
    return recipe.cache_variables(made.inputs(version, system))


def llvm_variables(version: str, system: System = "linux", **changes: str) -> dict[str, str]:
    settings = made.settings(LlvmSettings(**changes))  # type: ignore[arg-type]
    wanted = request_for(settings, made.checkout(version))
    return source.cache_variables(wanted, made.means(system))


@pytest.mark.parametrize("version", LINES)
def test_no_linker_flags_on_macos(version: str) -> None:
    on_linux, on_mac = variables(version), variables(version, "macos")
    assert on_linux["CMAKE_SHARED_LINKER_FLAGS"] == "-fuse-ld=lld -Wl,--gdb-index"
    assert not [name for name in on_mac if "LINKER_FLAGS" in name]
    assert llvm_variables(version)["LLVM_USE_LINKER"] == "lld"
    assert "LLVM_USE_LINKER" not in llvm_variables(version, "macos")
    assert dict(install_environment(made.inputs(version)))["TRITON_BUILD_WITH_CLANG_LLD"] == "ON"
    assert dict(install_environment(made.inputs(version, "macos")))["TRITON_BUILD_WITH_CLANG_LLD"] is None


@pytest.mark.parametrize("version", LINES)
def test_no_split_dwarf_on_macos(version: str) -> None:
    assert "-gsplit-dwarf" in variables(version)["CMAKE_CXX_FLAGS"].split()
    assert "-gsplit-dwarf" not in variables(version, "macos")["CMAKE_CXX_FLAGS"]
    assert llvm_variables(version)["LLVM_USE_SPLIT_DWARF"] == "ON"
    assert llvm_variables(version, "macos")["LLVM_USE_SPLIT_DWARF"] == "OFF"


RELATIVE = "-Xclang -fdebug-compilation-dir=."  # so that ccache has it for other folders too


@pytest.mark.parametrize("build_type", ["Release", "MinSizeRel", "TritonBuildWithO1"])
def test_no_split_dwarf_without_symbols(build_type: str) -> None:
    flags = recipe.flags(made.inputs(chosen=made.settings(build_type=build_type)))
    assert flags == " ".join((*checkout.relaxed_warnings(), RELATIVE))


@pytest.mark.parametrize(("version", "there"), since("3.7"))
def test_options_that_came_with_3_7(version: str, there: bool) -> None:
    names = {"TRITON_OFFLINE_BUILD", "TRITON_CACHE_PATH", "JSON_SYSPATH", "TRITON_PTXAS_PATH"}
    assert names & variables(version).keys() == (names if there else set())


@pytest.mark.parametrize(("version", "gone"), since("3.3"))
def test_pybind11_headers_by_variable_up_to_3_2(version: str, gone: bool) -> None:
    names = {"PYBIND11_INCLUDE_DIR", "PYTHON_INCLUDE_DIRS"}
    assert names & variables(version).keys() == (set() if gone else names)


@pytest.mark.parametrize(("version", "there"), since("main"))
def test_nanobind_instead_of_pybind11_on_main(version: str, there: bool) -> None:
    made_for = variables(version)
    assert ("nanobind_DIR" in made_for, "pybind11_DIR" in made_for) == (there, not there)
    wanted = recipe.requirements(made.checkout(version))
    assert any(name.startswith("nanobind==") for name in wanted) is there
    assert any(name.startswith("pybind11") for name in wanted) is not there


@pytest.mark.parametrize(("version", "there"), since("3.3"))
def test_link_jobs_by_job_pool_before_3_3(version: str, there: bool) -> None:
    made_for = variables(version)
    assert ("TRITON_PARALLEL_LINK_JOBS" in made_for) is there
    assert ("CMAKE_JOB_POOLS" in made_for) is not there
    if not there:
        assert made_for["CMAKE_JOB_POOLS"] == f"link={made.inputs(version).jobs.link}"
        assert made_for["CMAKE_JOB_POOL_LINK"] == "link"


@pytest.mark.parametrize("version", LINES)
def test_llvm_projects(version: str) -> None:
    at = LINES.index(version)
    wanted = "mlir"
    if at >= LINES.index("3.5"):
        wanted = "mlir;lld"
    if at >= LINES.index("3.7"):
        wanted = "mlir;lld;clang"
    assert llvm_variables(version)["LLVM_ENABLE_PROJECTS"] == wanted


@pytest.mark.parametrize(("version", "at_root"), since("3.4"))
def test_what_pip_installs_and_where_it_builds(version: str, at_root: bool) -> None:
    facts = made.inputs(version)
    folder = facts.checkout.root if at_root else facts.checkout.root / "python"
    assert pip_build_dir(facts.checkout, facts.python) == folder / "build" / "cmake.linux-x86_64-cpython-3.11"
    for occupied in (False, True):
        (line,) = plan(facts, occupied=occupied).steps[-1].shell()
        assert line.endswith(f" --editable {folder})")
        assert "--no-build-isolation" in line


def test_a_build_folder_of_pips_own_is_left_alone() -> None:
    facts = made.inputs("3.5")
    place = pip_build_dir(facts.checkout, facts.python)
    free, occupied = (
        [line for step in plan(facts, occupied=flag).steps for line in step.shell()] for flag in (False, True)
    )
    assert f"ln -sfn {facts.env.build} {place}" in free
    assert not [line for line in occupied if str(place) in line]


def test_2_1_has_its_ptxas_in_the_package() -> None:
    copies = [step for step in recipe.plan(made.inputs("2.1")).steps if isinstance(step, Copy)]
    copies = [step for step in copies if step.phase == recipe.PHASE_COMPONENTS]
    assert [step.dest for step in copies] == [
        Path("/home/dev/triton/python/triton/third_party/cuda/bin/ptxas")
    ]
    assert copies[0].source.match("nvidia-cuda-nvcc-cu12-12.1.105/nvidia/cuda_nvcc/bin/ptxas")


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_2_x_has_cuda_h_in_git_and_nothing_is_copied_over_it(version: str) -> None:
    copies = [step for step in recipe.plan(made.inputs(version)).steps if isinstance(step, Copy)]
    assert copies
    assert not [step for step in copies if step.tree]


@pytest.mark.parametrize(("version", "there"), since("3.2"))
def test_3_1_does_not_download_cupti_behind_the_plan(version: str, there: bool) -> None:
    environment = dict(install_environment(made.inputs(version)))
    assert ("TRITON_CUPTI_PATH" in environment) is not there  # later ones have TRITON_OFFLINE_BUILD
    assert environment["TRITON_OFFLINE_BUILD"] == "ON"


@pytest.mark.parametrize(
    ("build_type", "variable"),
    [
        ("Debug", "DEBUG"),
        ("RelWithDebInfo", "REL_WITH_DEB_INFO"),
        ("TritonRelBuildWithAsserts", "TRITON_REL_BUILD_WITH_ASSERTS"),
        ("TritonBuildWithO1", "TRITON_BUILD_WITH_O1"),
        ("Release", None),
    ],
)
def test_setup_py_hears_one_build_type(build_type: str, variable: str | None) -> None:
    environment = dict(install_environment(made.inputs(chosen=made.settings(build_type=build_type))))
    names = ["DEBUG", "REL_WITH_DEB_INFO", "TRITON_REL_BUILD_WITH_ASSERTS", "TRITON_BUILD_WITH_O1"]
    assert {name: environment[name] for name in names} == {
        name: "ON" if name == variable else None for name in names
    }


def test_setup_py_gets_the_very_cache_that_build_triton_wrote() -> None:
    facts = made.inputs("3.5", "macos")
    appended = dict(install_environment(facts))["TRITON_APPEND_CMAKE_ARGS"]
    assert appended == f"-C '{facts.env.build / CACHE_FILE}'"


@pytest.mark.parametrize("name", ["clang++-19", "g++"])
def test_upstreams_clang_switch_is_only_used_for_programs_of_these_names(name: str) -> None:
    found = made.compilers(cxx=Tool("clang++", Path("/usr/bin") / name, "19.1.7"))
    environment = dict(install_environment(made.inputs(compilers=found)))
    assert environment["TRITON_BUILD_WITH_CLANG_LLD"] is None


def test_plugin_folders_are_absolute_for_cmake_and_setup_py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = made.inputs("3.5", chosen=made.settings(plugin_dirs=("mine", "/opt/other")))
    wanted = f"{tmp_path / 'mine'};/opt/other"
    assert recipe.cache_variables(facts)["TRITON_PLUGIN_DIRS"] == wanted
    assert dict(install_environment(facts))["TRITON_PLUGIN_DIRS"] == wanted
    assert "TRITON_PLUGIN_DIRS" not in variables("3.5")


def test_settings_override_what_the_recipe_says() -> None:
    chosen = made.settings(cmake_args=("-DTRITON_BUILD_UT:BOOL=ON", "-DCMAKE_CXX_FLAGS=-a=b"), werror=True)
    made_for = recipe.cache_variables(made.inputs("3.5", chosen=chosen))
    assert made_for["TRITON_BUILD_UT"] == "ON"
    assert made_for["CMAKE_CXX_FLAGS"] == "-a=b"
    # `werror` takes the relaxed warnings out.
    assert made_for["CMAKE_C_FLAGS"] == f"-gsplit-dwarf -ggnu-pubnames {RELATIVE}"


def test_the_build_type_has_a_flag_of_its_own() -> None:
    """What follows from it, such as split DWARF and the receipt, would stay as the setting says."""
    chosen = made.settings(build_type="Debug", cmake_args=("-DCMAKE_BUILD_TYPE:STRING=Release",))
    with pytest.raises(UsageError, match="contradicts the build type Debug") as caught:
        recipe.cache_variables(made.inputs("3.5", chosen=chosen))
    assert "use --build-type Release" in str(caught.value)
    same = made.settings(build_type="Debug", cmake_args=("-DCMAKE_BUILD_TYPE=Debug",))
    assert recipe.cache_variables(made.inputs("3.5", chosen=same))["CMAKE_BUILD_TYPE"] == "Debug"


@pytest.mark.parametrize("sanitizer", ["address", "undefined", "thread"])
def test_sanitizer_flags_come_on_top(sanitizer: str) -> None:
    made_for = recipe.cache_variables(made.inputs("3.5", chosen=made.settings(sanitizer=sanitizer)))
    flag = f"-fsanitize={sanitizer}"
    assert made_for["CMAKE_CXX_FLAGS"].endswith(f"{RELATIVE} {flag} -fno-omit-frame-pointer")
    for kind in ("EXE", "MODULE", "SHARED"):
        assert made_for[f"CMAKE_{kind}_LINKER_FLAGS"] == f"-fuse-ld=lld -Wl,--gdb-index {flag}"


def test_proton_brings_its_own_headers() -> None:
    with_it = recipe.cache_variables(made.inputs("3.5", chosen=made.settings(proton=True)))
    without = variables("3.5")
    assert with_it["TRITON_BUILD_PROTON"] == "ON"
    assert without["TRITON_BUILD_PROTON"] == "OFF"
    assert with_it["CUPTI_INCLUDE_DIR"] == "/home/dev/triton/third_party/nvidia/backend/include"
    assert {"JSON_INCLUDE_DIR", "ROCTRACER_INCLUDE_DIR"} <= with_it.keys() - without.keys()


def test_llvm_build_types_and_debug_info() -> None:
    release = llvm_variables("3.5", build_type="Release", debug_info="none")
    assert (release["LLVM_USE_SPLIT_DWARF"], "TRITONSMITH_OPTIONS_rest" in release) == ("OFF", False)
    lines = llvm_variables("3.5", debug_info="lines")
    assert (lines["LLVM_USE_SPLIT_DWARF"], lines["TRITONSMITH_OPTIONS_rest"]) == ("OFF", "-g1")
    split = llvm_variables("3.5", debug_info="split")
    assert (split["LLVM_USE_SPLIT_DWARF"], "TRITONSMITH_OPTIONS_rest" in split) == ("ON", False)
    # What comes before the build type's `-g` would have no effect.
    kinds = ("full", "lines", "none")
    assert not any("CMAKE_CXX_FLAGS" in llvm_variables("3.5", debug_info=kind) for kind in kinds)
    jobs = llvm_variables("3.5")
    assert (jobs["LLVM_PARALLEL_COMPILE_JOBS"], jobs["LLVM_PARALLEL_LINK_JOBS"]) == ("16", "5")


def test_a_checkout_that_knows_no_options_gets_none() -> None:
    bare = replace(made.checkout("3.5"), options=frozenset())
    given = recipe.cache_variables(made.inputs(checkout=bare)).keys() & checkout.cmake_options()
    assert given == {"LLVM_SYSPATH"}  # the LLVM's place is said under every name that some era reads
