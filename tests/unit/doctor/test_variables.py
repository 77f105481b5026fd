from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.doctor.conftest import leave, only
from tests.unit.facts import fakes
from tritonsmith.doctor import run, variables
from tritonsmith.doctor.check import Check, DoctorContext, Finding
from tritonsmith.doctor.variables import contradictory
from tritonsmith.facts import checkout
from tritonsmith.facts.python_env import PythonEnv


@pytest.fixture(autouse=True)
def installed(subject: DoctorContext) -> None:
    """Triton 3.9.0 is installed, and there is no checkout."""
    install(subject, "3.9.0")


def install(subject: DoctorContext, version: str) -> None:
    subject.checkout = None
    subject.packages = PythonEnv(
        executable=subject.cwd / "python",
        version="3.11.7",
        include=subject.cwd,
        headers=True,
        purelib=subject.cwd / "site-packages",
        platform="linux-x86_64",
        dists=(("triton", version),),
        triton_owners=("triton",),
    )


def look(check: Check, subject: DoctorContext, version: str = "3.9.0", **environ: str) -> list[Finding]:
    """What a check finds in this environment."""
    install(subject, version)
    subject.environ = {"HOME": str(subject.cwd), "PATH": "/usr/bin", **environ}
    return list(check(subject))


def statuses(found: list[Finding]) -> list[str]:
    return [one.status for one in found]


def test_a_plain_environment_is_fine(subject: DoctorContext) -> None:
    seen = [found.status for check in run.checks_of(variables) for found in check(subject)]
    assert set(seen) == {"ok", "not applicable"}


def test_ids_and_titles() -> None:
    ids = [check.id for check in run.checks_of(variables)]
    assert len(set(ids)) == len(ids) == 9
    assert all(name.startswith("variables.") for name in ids)
    assert not any(check.deep for check in run.checks_of(variables))


# --- known


def test_what_is_read_is_listed_shortened(subject: DoctorContext) -> None:
    (found,) = look(
        variables.known, subject, TRITON_CACHE_DIR="/cache/" + "x" * 80, MLIR_ENABLE_DUMP="my kernel"
    )
    assert found.status == "ok"
    assert found.seen.startswith(
        "Triton 3.9.0 reads MLIR_ENABLE_DUMP='my kernel', TRITON_CACHE_DIR=/cache/xxx"
    )
    assert found.seen.endswith("x...")
    assert len(found.seen) < 120


@pytest.mark.parametrize(
    ("version", "name", "seen", "remedy"),
    [
        ("3.2.0", "MLIR_DUMP_PATH", "only Triton since 3.3 reads it, this is Triton 3.2.0", "redirection"),
        ("3.9.0", "MLIR_ENABLE_REMARK", "only Triton in 3.2 reads it", "MLIR_ENABLE_DIAGNOSTICS=remarks"),
        ("3.9.0", "USE_TTGIR_LOC", "only Triton 3.0 to 3.1 reads it", "USE_IR_LOC=ttgir"),
        ("3.9.0", "TRITON_PLUGIN_VERSION_CHECK", "Triton 3.9.0 does not read it", "unset it"),
        (
            "3.9.0",
            "TRITON_PLUGIN_PATHS",
            "in Triton 3.9.0 only triton-opt, triton-lsp and triton-reduce read it, not Python",
            "libtriton.passes.plugin.extend_with(PATH)",
        ),
        ("3.6.0", "TRITON_USE_ASSERT_ENABLED_LLVM", "Triton 3.6.0 does not read it", "unset it"),
        (
            "3.3.1",
            "TRITON_PTXAS_BLACKWELL_PATH",
            "only Triton since 3.6 reads it",
            "env 'TRITON_PTXAS-BLACKWELL_PATH=",
        ),
    ],
)
def test_of_another_version(subject: DoctorContext, version: str, name: str, seen: str, remedy: str) -> None:
    (found,) = look(variables.known, subject, version, **{name: "1"})
    assert found.status == "warning"
    assert seen in found.seen
    assert remedy in found.remedy
    assert found.commands == (f"unset {name}",)


def test_the_trap_of_3_3(subject: DoctorContext) -> None:
    """A name with a hyphen comes from `env`, not from a shell."""
    (found,) = look(variables.known, subject, "3.3.1", **{"TRITON_PTXAS-BLACKWELL_PATH": "/x"})
    assert found.status == "ok"
    (found,) = look(variables.known, subject, "3.7.0", **{"TRITON_PTXAS-BLACKWELL_PATH": "/x"})
    assert found.status == "warning"
    assert "TRITON_PTXAS_BLACKWELL_PATH" in found.remedy


def test_the_newest_where_nothing_says_which(subject: DoctorContext) -> None:
    subject.packages = None
    subject.environ = {"TRITON_STABLE_ABI": "1", "TRITON_PASS_PLUGIN_PATH": "x"}
    assert statuses(list(variables.known(subject))) == ["warning", "ok"]
    assert "this is Triton 3.9 (the newest known)" in next(iter(variables.known(subject))).seen


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MLIR_ENABLE_DUMPS", "MLIR_ENABLE_DUMP"),
        ("TIRTON_HOME", "TRITON_HOME"),
        ("MLIR_DUMP_ENABLE", "MLIR_ENABLE_DUMP"),
    ],
)
def test_a_misspelling(subject: DoctorContext, written: str, meant: str) -> None:
    (found,) = look(variables.known, subject, **{written: "1"})
    assert found.status == "warning"
    assert f"did you mean {meant}?" in found.seen
    assert found.commands == (f'export {meant}="${written}"; unset {written}',)


def test_a_cmake_option_is_no_variable(subject: DoctorContext) -> None:
    (found,) = look(variables.known, subject, TRITON_CODEGEN_BACKENDS="nvidia")
    assert found.status == "warning"
    assert "-DTRITON_CODEGEN_BACKENDS=" in found.commands[0]


def test_unknown_and_foreign(subject: DoctorContext) -> None:
    unknown, foreign = look(
        variables.known, subject, TRITON_QUITE_ELSE="1", LLVM_PROFILE_FILE="x", MLIR_DIR="y"
    )
    assert (unknown.status, foreign.status) == ("note", "ok")
    assert foreign.seen == (
        "used by other software: LLVM_PROFILE_FILE (LLVM's profile runtime), MLIR_DIR (CMake's find_package)"
    )


def test_llvm_variables_that_no_setup_py_reads(subject: DoctorContext) -> None:
    alone = look(variables.known, subject, LLVM_INCLUDE_DIRS="/x/include", LLVM_LIBRARY_DIR="/x/lib")
    assert statuses(alone) == ["warning", "warning"]
    assert all("LLVM_SYSPATH=PREFIX" in found.remedy for found in alone)
    assert statuses(look(variables.paths, subject, LLVM_INCLUDE_DIRS="/no/such/folder")) == ["ok"]
    all_three = {"LLVM_SYSPATH": "/x", "LLVM_INCLUDE_DIRS": "/x/include", "LLVM_LIBRARY_DIR": "/x/lib"}
    assert statuses(look(variables.known, subject, **all_three)) == ["ok"]


def test_a_checkout_knows_better_than_its_number(subject: DoctorContext, tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path / "triton", "3.8")
    (root / "python" / "build_helpers.py").write_text('"TRITON_STABLE_ABI"; "TRITON_OF_TOMORROW"\n')
    environ = {"TRITON_STABLE_ABI": "1", "TRITON_OF_TOMORROW": "1", "MLIR_ENABLE_REMARK": "1"}
    subject.environ, subject.checkout = environ, checkout.read(root)
    wrong, read = variables.known(subject)
    assert "MLIR_ENABLE_REMARK" in wrong.seen
    assert read.seen == "Triton 3.8.0 reads TRITON_OF_TOMORROW=1, TRITON_STABLE_ABI=1"


# --- empty


@pytest.mark.parametrize(
    ("version", "name", "does"),
    [
        ("2.1.0", "LLVM_SYSPATH", "is taken for the path"),
        ("3.6.0", "LLVM_SYSPATH", "suppresses the download"),
        ("3.6.0", "TRITON_PTXAS_PATH", "suppresses the download"),
        ("3.9.0", "TRITON_HOME", "into the current folder"),
        ("3.9.0", "TRITON_CACHE_DIR", "every compile stops"),
        ("3.9.0", "AMDGCN_USE_BUFFER_OPS", "counts as off"),
    ],
)
def test_empty_where_that_changes_something(
    subject: DoctorContext, version: str, name: str, does: str
) -> None:
    (found,) = look(variables.empty, subject, version, **{name: "", "MLIR_ENABLE_DUMP": ""})
    assert found.status == "warning"
    assert does in found.seen
    assert found.commands == (f"unset {name}",)


def test_empty_on_purpose(subject: DoctorContext) -> None:
    (found,) = look(variables.empty, subject, "3.7.0", LLVM_SYSPATH="")
    assert (found.status, found.seen) == (
        "ok",
        "LLVM_SYSPATH is empty, which resets what CMake's cache remembers",
    )
    assert statuses(look(variables.empty, subject, "3.3.0", TRITON_CACHE_DIR="", DEBUG="")) == ["ok"]


# --- values


@pytest.mark.parametrize(
    ("version", "environ", "status"),
    [
        ("3.9.0", {"MLIR_ENABLE_TIMING": "yes"}, "warning"),  # C++
        ("3.9.0", {"TRITON_ALWAYS_COMPILE": "yes"}, "ok"),  # knobs.py
        ("3.3.0", {"TRITON_ALWAYS_COMPILE": "true"}, "warning"),
        ("3.9.0", {"TRITON_OFFLINE_BUILD": "yes"}, "ok"),  # setup.py
        ("3.9.0", {"TRITON_OFFLINE_BUILD": "please"}, "warning"),
        ("3.9.0", {"TRITON_KERNEL_DUMP": "/some/folder"}, "warning"),
        ("3.9.0", {"TRITON_KERNEL_DUMP": "0"}, "ok"),
        ("3.9.0", {"MLIR_ENABLE_DUMP": "my_kernel", "DEBUG": "app:*"}, "ok"),
        ("3.9.0", {"MAX_JOBS": "8"}, "ok"),
        ("3.9.0", {"TRITON_REDIS_PORT": "redis"}, "warning"),
    ],
)
def test_values(subject: DoctorContext, version: str, environ: dict[str, str], status: str) -> None:
    (found,) = look(variables.values, subject, version, **environ)
    assert found.status == status


def test_a_value_s_remedy_says_what_is_taken(subject: DoctorContext) -> None:
    (found,) = look(variables.values, subject, MLIR_ENABLE_TIMING="enabled")
    assert found.seen == "MLIR_ENABLE_TIMING=enabled: Triton 3.9.0 accepts only 1, on, true as true"
    assert found.commands == ("export MLIR_ENABLE_TIMING=1",)


# --- paths


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "ptxas"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_paths_that_are_there(subject: DoctorContext, program: Path) -> None:
    folder = str(program.parent)
    fine = {
        "TRITON_PTXAS_PATH": str(program),
        "TRITON_LIBCUDA_PATH": folder,
        "LLVM_SYSPATH": folder,
        "TRITON_PLUGIN_DIRS": f"{folder};{folder}",
        "TRITON_PLUGIN_PATHS": f"{program}:{program}",
        "TRITON_DUMP_DIR": f"{folder}/made/later",
    }
    assert statuses(look(variables.paths, subject, "3.8.0", **fine)) == ["ok"]  # 3.9 reads no plugins


def test_paths_that_are_not(subject: DoctorContext, program: Path) -> None:
    program.chmod(0o644)
    folder, gone = program.parent, program.parent / "gone"
    wrong = {
        "TRITON_PTXAS_PATH": str(program),
        "TRITON_CUOBJDUMP_PATH": str(gone),
        "TRITON_NVDISASM_PATH": str(folder),
        "TRITON_LIBCUDA_PATH": str(program),
        "TRITON_PLUGIN_DIRS": f"{folder};{gone}",
        "LLVM_SYSPATH": "llvm/build",
    }
    found = {one.seen.split()[0]: one.seen for one in look(variables.paths, subject, **wrong)}
    assert set(found) == set(wrong)
    assert "not executable" in found["TRITON_PTXAS_PATH"]
    assert "no such file" in found["TRITON_CUOBJDUMP_PATH"]
    assert "not a file" in found["TRITON_NVDISASM_PATH"]
    assert "not a folder" in found["TRITON_LIBCUDA_PATH"]
    assert found["TRITON_PLUGIN_DIRS"] == f"TRITON_PLUGIN_DIRS names {gone}: no such folder"
    assert "relative" in found["LLVM_SYSPATH"]


# --- contradictory


def test_nothing_contradicts_itself(subject: DoctorContext) -> None:
    assert only(contradictory, subject).status == "ok"


def test_several_build_types(subject: DoctorContext) -> None:
    asked = {"REL_WITH_DEB_INFO": "1", "DEBUG": "1", "TRITON_BUILD_WITH_O1": "0"}
    (found,) = look(contradictory, subject, **asked)
    assert found.seen == "DEBUG=1, REL_WITH_DEB_INFO=1: several build types"
    assert found.affects.endswith("the first wins, build type Debug")
    assert found.commands == ("unset REL_WITH_DEB_INFO",)
    assert statuses(look(contradictory, subject, DEBUG="1", REL_WITH_DEB_INFO="0")) == ["ok"]


def test_offline_without_dependencies(subject: DoctorContext) -> None:
    (found,) = look(contradictory, subject, TRITON_OFFLINE_BUILD="1", LLVM_SYSPATH="/x")
    assert found.seen == "TRITON_OFFLINE_BUILD without JSON_SYSPATH"
    whole = {"TRITON_OFFLINE_BUILD": "1", "LLVM_SYSPATH": "/x", "JSON_SYSPATH": "/y"}
    assert statuses(look(contradictory, subject, **whole)) == ["ok"]


def test_one_build_folder_for_two_worktrees(subject: DoctorContext, tmp_path: Path) -> None:
    build = tmp_path / "build"
    fakes.cmake_cache(build, f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path / 'other'}")
    subject.environ = {"TRITON_BUILD_DIR": str(build)}
    subject.checkout = checkout.read(fakes.checkout(tmp_path / "triton", "3.5"))
    found = only(contradictory, subject)
    assert found.status == "warning"
    assert f"was configured for {tmp_path / 'other'}" in found.seen
    fakes.cmake_cache(build, f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path / 'triton'}")
    assert only(contradictory, subject).status == "ok"


@pytest.mark.parametrize(
    ("assertions", "build_type", "status"),
    [
        ("ON", "Debug", "ok"),
        ("OFF", "Debug", "warning"),
        ("ON", "Release", "warning"),
        ("ON", "TritonRelBuildWithAsserts", "ok"),
    ],
)
def test_llvm_debug_needs_assertions(
    subject: DoctorContext, tmp_path: Path, assertions: str, build_type: str, status: str
) -> None:
    prefix = fakes.llvm(tmp_path / "llvm", assertions=assertions)
    leave(subject, "setup-mlir", prefix=prefix)
    leave(subject, "build-triton", source="", build_type=build_type)
    (found,) = look(contradictory, subject, TRITON_LLVM_DEBUG_ONLY="regalloc")
    assert found.status == status


def test_override_without_anything_to_take(subject: DoctorContext, tmp_path: Path) -> None:
    (found,) = look(contradictory, subject, TRITON_KERNEL_OVERRIDE="1")
    assert found.where == str(subject.cwd / ".triton" / "override")
    kernel = tmp_path / "mine" / "HASH"
    kernel.mkdir(parents=True)
    taken = {"TRITON_KERNEL_OVERRIDE": "1", "TRITON_OVERRIDE_DIR": str(kernel.parent)}
    assert statuses(look(contradictory, subject, **taken)) == ["ok"]


def test_the_interpreter_dumps_nothing(subject: DoctorContext) -> None:
    (found,) = look(contradictory, subject, TRITON_INTERPRET="1", MLIR_ENABLE_DUMP="1")
    assert found.affects == "nothing is compiled, so nothing is dumped"
    assert statuses(look(contradictory, subject, TRITON_INTERPRET="0", MLIR_ENABLE_DUMP="1")) == ["ok"]


def test_what_does_nothing_alone(subject: DoctorContext) -> None:
    (found,) = look(contradictory, subject, TRITON_DUMP_DIR="/x")
    assert (found.status, found.seen) == (
        "note",
        "TRITON_DUMP_DIR=/x does nothing without TRITON_KERNEL_DUMP",
    )
    both = {"TRITON_DUMP_DIR": "/x", "TRITON_KERNEL_DUMP": "1"}
    assert statuses(look(contradictory, subject, **both)) == ["ok"]


# --- cached away


@pytest.fixture
def warm(subject: DoctorContext) -> Path:
    """A cache with a kernel in it."""
    folder = subject.cwd / ".triton" / "cache"
    (folder / ("A" * 52)).mkdir(parents=True)
    return folder


def test_a_dump_and_a_warm_cache(subject: DoctorContext, warm: Path) -> None:
    (found,) = look(variables.cached_away, subject, MLIR_ENABLE_DUMP="1", TRITON_REPRODUCER_PATH="/x")
    assert (found.status, found.where) == ("warning", str(warm))
    assert "TRITON_REPRODUCER_PATH: no output for a kernel that is in the cache" in found.affects
    assert "MLIR_ENABLE_DUMP: output on the first run, none on the second" in found.affects
    assert found.commands == ("export TRITON_ALWAYS_COMPILE=1",)
    (old,) = look(variables.cached_away, subject, "2.1.0", MLIR_ENABLE_DUMP="1")
    assert old.commands == ('export TRITON_CACHE_DIR="$(mktemp -d)"',)


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("environ", "status"),
    [
        ({"TRITON_ALWAYS_COMPILE": "1"}, "ok"),
        ({"TRITON_ALWAYS_COMPILE": "0"}, "warning"),
        ({"TRITON_CACHE_DIR": "/nowhere/yet"}, "ok"),
        ({"TRITON_HOME": "/nowhere/yet"}, "ok"),
        ({"MLIR_ENABLE_DUMP": "0"}, "not applicable"),
    ],
)
def test_what_brings_a_dump_back(subject: DoctorContext, environ: dict[str, str], status: str) -> None:
    (found,) = look(variables.cached_away, subject, **{"MLIR_ENABLE_DUMP": "1"} | environ)
    assert found.status == status


# --- debug, left on


@pytest.mark.parametrize(
    ("value", "status"),
    [("1", "warning"), ("yes", "warning"), ("0", "ok"), ("app:*", "ok"), (None, "not applicable")],
)
def test_debug(subject: DoctorContext, value: str | None, status: str) -> None:
    (found,) = look(variables.debug, subject, **({} if value is None else {"DEBUG": value}))
    assert found.status == status


def test_left_on(subject: DoctorContext) -> None:
    found = look(variables.left_on, subject, TRITON_INTERPRET="1", DISABLE_LLVM_OPT="disable-lsr")
    assert statuses(found) == ["note", "note"]
    assert {one.seen for one in found} == {"TRITON_INTERPRET=1", "DISABLE_LLVM_OPT=disable-lsr"}
    assert all(one.affects for one in found)
    assert statuses(look(variables.left_on, subject, TRITON_INTERPRET="0", DISABLE_LLVM_OPT="0")) == ["ok"]


# --- sticky


@pytest.fixture
def pip_cache(subject: DoctorContext, tmp_path: Path) -> Path:
    """What pip's build of a checkout of 3.8 remembers: an LLVM, and that Proton was off."""
    root = fakes.checkout(tmp_path / "triton", "3.8")
    subject.checkout = checkout.read(root)
    subject.environ = {}
    return fakes.cmake_cache(
        root / "build" / "cmake.linux-x86_64-cpython-3.11",
        "LLVM_SYSPATH:PATH=/opt/llvm",
        "TRITON_BUILD_PROTON:BOOL=OFF",
        "TRITON_BUILD_WITH_CCACHE:BOOL=ON",
        "TRITON_OFFLINE_BUILD:BOOL=0",
        "TRITON_PTXAS_PATH:FILEPATH=",
    )


def test_what_sticks(subject: DoctorContext, pip_cache: Path) -> None:
    proton, llvm = variables.sticky(subject)
    assert (proton.status, proton.where) == ("warning", str(pip_cache))
    assert proton.commands == ("export TRITON_BUILD_PROTON=ON",)
    assert llvm.seen == "LLVM_SYSPATH is not set now, but was: /opt/llvm"
    assert llvm.commands == ("export LLVM_SYSPATH=",)


@pytest.mark.usefixtures("pip_cache")
def test_what_is_set_again(subject: DoctorContext) -> None:
    subject.environ = {"LLVM_SYSPATH": "", "TRITON_BUILD_PROTON": "ON"}
    assert only(variables.sticky, subject).status == "ok"


def test_a_folder_that_build_triton_configured(
    subject: DoctorContext, pip_cache: Path, tmp_path: Path
) -> None:
    """It is told everything each time; pip's folder is then a link to it."""
    folder = pip_cache.parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert only(variables.sticky, subject).status == "not applicable"


def test_a_folder_that_triton_build_dir_names(
    subject: DoctorContext, pip_cache: Path, tmp_path: Path
) -> None:
    pip_cache.parent.rename(tmp_path / "elsewhere")
    subject.environ = {"TRITON_BUILD_DIR": str(tmp_path / "elsewhere")}
    assert len(variables.sticky(subject)) == 2


def test_nothing_sticks_before_3_3(subject: DoctorContext, tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path / "triton", "3.1")
    subject.checkout = checkout.read(root)
    fakes.cmake_cache(root / "python" / "build" / "cmake.linux-x86_64-cpython-3.11", "LLVM_SYSPATH:PATH=/opt")
    assert only(variables.sticky, subject).status == "not applicable"
