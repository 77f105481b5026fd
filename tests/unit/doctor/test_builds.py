from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.doctor.conftest import COMMIT, built, leave, only, venv
from tests.unit.facts import elf, fakes
from tests.unit.facts.fakes import git
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.settings import LlvmSettings, Settings
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import InterruptedRunError, StepError
from tritonsmith.core.plan import Link, Plan, Step, locks
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.doctor import builds
from tritonsmith.doctor import run as doctor_run
from tritonsmith.doctor.check import Check, DoctorContext
from tritonsmith.doctor.run import checks_of

HEADER = "include/llvm/Support/VCSRevision.h"
NAME = "compile_commands.json"


@pytest.fixture
def root(subject: DoctorContext) -> Path:
    """A checkout of 3.5, in which one stands."""
    subject.cwd = fakes.checkout(subject.cwd / "my triton", "3.5")
    return subject.cwd


def mend(subject: DoctorContext, plan: Plan) -> None:
    Runner(subject.space.root / "log", PhaseProgress(live=False, silent=True)).run(plan)


@pytest.mark.parametrize("check", checks_of(builds), ids=lambda check: check.id)
def test_nothing_built_is_nothing_to_say(subject: DoctorContext, check: Check) -> None:
    assert only(check, subject).status == "not applicable"


# --- how the last build ended


def run(subject: DoctorContext, steps: tuple[Step, ...]) -> None:
    subject.space.claim()
    mend(subject, Plan("receipt", steps))


def begun(subject: DoctorContext) -> tuple[EnvDir, str, Mapping[str, object], Path]:
    content = {"source": "/home/dev/my triton", "build_type": "Debug", "backends": ["nvidia"], "settings": {}}
    return subject.env, "build-triton", content, Path("/logs/build.log")


def test_a_build_that_failed_is_told_with_its_first_error(subject: DoctorContext) -> None:
    why = "no lld [could-not-find-lld]\nCMake Error at CMakeLists.txt:8"
    error = StepError("configure Triton failed (exit code 1)", where="CMakeLists.txt:8", why=why)
    run(subject, receipts.unfinished_steps(*begun(subject), error))
    found = only(builds.last, subject)
    assert (found.status, found.where) == ("error", "/logs/build.log")
    assert (
        "configure Triton failed (exit code 1); CMakeLists.txt:8: no lld [could-not-find-lld]" in found.seen
    )
    assert "CMake Error at CMakeLists.txt:8" in found.seen
    (command,) = found.commands
    rest = "--source '/home/dev/my triton' --build-type Debug --backends nvidia"
    assert command == f"invoke build-triton --env dev {rest}"


@pytest.mark.parametrize(
    ("error", "how"),
    [(None, "was killed before it finished"), (InterruptedRunError("stopped"), "was stopped by ^C")],
)
def test_a_build_that_was_stopped(
    subject: DoctorContext, error: InterruptedRunError | None, how: str
) -> None:
    about = begun(subject)
    run(subject, receipts.unfinished_steps(*about, error))
    found = only(builds.last, subject)
    assert found.status == "warning"
    assert found.seen.endswith(how)


def test_a_build_that_runs_now_has_not_failed(subject: DoctorContext) -> None:
    run(subject, receipts.unfinished_steps(*begun(subject)))
    with locks.hold(subject.env.lock, purpose="build-triton --env dev"):
        found = only(builds.last, subject)
        assert found.status == "not applicable"
        assert f"process {os.getpid()} runs `build-triton --env dev`" in found.seen
    holder = subject.env.lock.with_name(f"{subject.env.lock.name}.holder")
    gone = subprocess.run(
        (sys.executable, "-c", "import os; print(os.getpid())"), capture_output=True, check=True
    )
    holder.write_text(json.dumps({"pid": int(gone.stdout), "purpose": "x", "since": ""}), encoding="utf-8")
    assert only(builds.last, subject).status == "warning"  # killed, and its name left behind


def test_a_build_that_succeeded(subject: DoctorContext, root: Path) -> None:
    run(subject, receipts.unfinished_steps(*begun(subject)))
    run(subject, receipts.ended_steps(subject.env))
    built(subject, root)
    assert only(builds.last, subject).status == "ok"


# --- the LLVM that was set up


@pytest.mark.parametrize(
    ("was", "now", "status"),
    [
        (COMMIT, COMMIT, "ok"),
        (COMMIT[:12], COMMIT, "ok"),
        ("", "", "ok"),
        ("", COMMIT, "ok"),
        ("f" * 40, COMMIT, "warning"),
        (COMMIT, "", "warning"),
    ],
)
def test_the_llvm_that_was_set_up(subject: DoctorContext, was: str, now: str, status: str) -> None:
    prefix = fakes.llvm(subject.space.root / "llvm", files=(HEADER,))
    (prefix / HEADER).write_text(f'#define LLVM_REVISION "{now}"\n')
    leave(subject, "setup-mlir", prefix=prefix, commit=was, provider="source")
    found = only(builds.llvm, subject)
    assert (found.status, found.where) == (status, str(prefix))
    if status == "ok":
        assert found.seen == "LLVM 19.1.7 (RelWithDebInfo), from source"
    else:
        assert found.seen == f"set up at {was[:12]}, now at {now[:12] or 'an unknown commit'}"
        assert found.commands == ("invoke setup-mlir --env dev",)


def test_an_llvm_that_is_gone(subject: DoctorContext) -> None:
    leave(subject, "setup-mlir", prefix=subject.cwd / "gone", commit=COMMIT)
    found = only(builds.llvm, subject)
    assert (found.status, found.where) == ("error", str(subject.cwd / "gone"))
    assert found.seen == "the LLVM no longer exists: lib/cmake/llvm/LLVMConfig.cmake is missing"
    assert found.affects == "Triton cannot be built"


def test_a_receipt_of_an_llvm_that_says_little(subject: DoctorContext) -> None:
    leave(subject, "setup-mlir")
    assert only(builds.llvm, subject).status == "not applicable"
    leave(subject, "setup-mlir", prefix=fakes.llvm(subject.cwd / "llvm", build_type=""))
    assert only(builds.llvm, subject).seen == "LLVM 19.1.7 (build type unknown), from --llvm-dir"


def test_an_llvm_that_only_the_build_was_given(subject: DoctorContext) -> None:
    """By `build-triton --llvm-dir`, without a setup-mlir."""
    prefix = fakes.llvm(subject.cwd / "llvm")
    leave(subject, "build-triton", llvm=prefix)
    assert only(builds.llvm, subject).seen == "LLVM 19.1.7 (RelWithDebInfo), from --llvm-dir"
    leave(subject, "build-triton", llvm=subject.cwd / "gone")
    assert only(builds.llvm, subject).status == "error"


# --- the Triton that was built


@pytest.mark.parametrize(
    ("changes", "status", "seen"),
    [
        ({}, "ok", "Triton 3.5.0 (Debug)"),
        ({"commit": "a" * 40}, "warning", "was built at aaaaaaaaaaaa, the checkout is at"),
        ({"commit": ""}, "warning", "was built at an unknown commit, the checkout is at"),
        ({"pin": "b" * 40}, "warning", "was built for LLVM bbbbbbbbbbbb, the checkout pins 10dc3a8e916d"),
        ({"pin": ""}, "warning", "was built for LLVM an unknown commit, the checkout pins"),
    ],
)
def test_triton_against_its_sources(
    subject: DoctorContext, root: Path, changes: dict[str, str], status: str, seen: str
) -> None:
    require("git")
    built(subject, root, **{"commit": fakes.commit(root)} | changes)
    found = only(builds.triton, subject)
    assert (found.status, found.where) == (status, str(root))
    assert seen in found.seen
    if status == "warning":
        assert found.commands == (f"invoke build-triton --env dev --source '{root}'",)


def test_a_checkout_that_moved_on_after_the_build(subject: DoctorContext, root: Path) -> None:
    require("git")
    built(subject, root, commit=fakes.commit(root))
    assert only(builds.triton, subject).status == "ok"
    git(root, "commit", "--quiet", "--allow-empty", "--message", "more")
    found = only(builds.triton, replace(subject))
    assert found.status == "warning"
    assert git(root, "rev-parse", "HEAD")[:12] in found.seen


def test_sources_that_are_not_those_one_stands_in(subject: DoctorContext, root: Path) -> None:
    other = fakes.checkout(root.parent / "other", "3.3")
    (other / "cmake" / "llvm-hash.txt").write_text(COMMIT)
    built(subject, other, version="3.3.0", pin=COMMIT)
    found = only(builds.triton, subject)
    assert (found.status, found.where) == ("ok", str(other))


@pytest.mark.parametrize("how", ["gone", "no checkout", "marks of a merge"])
def test_sources_that_are_gone(subject: DoctorContext, root: Path, how: str) -> None:
    built(subject, root)
    match how:
        case "gone":
            root.rename(root.parent / "away")
            subject.cwd = root.parent
        case "no checkout":
            (root / "setup.py").unlink()
        case _:
            (root / "pyproject.toml").write_text("<<<<<<< HEAD\n")
    found = only(builds.triton, subject)
    assert (found.status, found.where) == ("error", str(root))
    assert found.seen.startswith("the sources cannot be read: ")
    assert found.affects == "Triton cannot be rebuilt"


def test_a_receipt_of_a_build_that_says_little(subject: DoctorContext, root: Path) -> None:
    leave(subject, "build-triton", version="3.5.0")
    assert only(builds.triton, subject).status == "not applicable"
    leave(subject, "build-triton", source=root, pin=fakes.HASH)
    assert only(builds.triton, subject).seen == "Triton 3.5.0 (build type unknown)"


# --- CMake's cache


def test_a_cache_whose_folders_are_there(subject: DoctorContext, root: Path) -> None:
    file = fakes.cmake_cache(subject.env.build, f"CMAKE_HOME_DIRECTORY:INTERNAL={root}")
    found = only(builds.cmake_paths, subject)
    assert (found.status, found.seen, found.where) == ("ok", "all exist, in 1 caches", str(file))


def test_a_cache_of_pips_isolated_environment(subject: DoctorContext, root: Path) -> None:
    file = fakes.cmake_cache(
        root / "build" / "cmake.linux-x86_64-cpython-3.11",
        f"CMAKE_HOME_DIRECTORY:INTERNAL={root}",
        "CMAKE_MAKE_PROGRAM:UNINITIALIZED=/tmp/pip-build-env-7x/overlay/bin/ninja",
        "CMAKE_COMMAND:INTERNAL=/tmp/pip-build-env-7x/overlay/bin/cmake",
    )
    found = only(builds.cmake_paths, subject)
    assert (found.status, found.where) == ("error", str(file))
    gone = "/tmp/pip-build-env-7x/overlay/bin/ninja"  # noqa: S108
    assert found.seen == f"CMAKE_MAKE_PROGRAM is {gone}, which no longer exists, and 1 more"
    assert "--no-build-isolation (triton#5076)" in found.remedy


def test_a_compiler_that_was_uninstalled(subject: DoctorContext) -> None:
    file = fakes.cmake_cache(subject.env.build, "CMAKE_CXX_COMPILER:STRING=/usr/lib/llvm-7/bin/clang++")
    found = only(builds.cmake_paths, subject)
    assert found.status == "error"
    assert found.seen == "CMAKE_CXX_COMPILER is /usr/lib/llvm-7/bin/clang++, which no longer exists"
    assert found.commands == ("invoke build-triton --reconfigure",)
    mend(subject, doctor_run.fix_plan((found,)))
    assert not file.exists()
    assert file.with_name("CMakeCache.txt.stale").is_file()
    assert only(builds.cmake_paths, subject).status == "not applicable"


def test_one_folder_under_two_names_is_one_cache(subject: DoctorContext, root: Path) -> None:
    fakes.cmake_cache(subject.env.build, "CMAKE_CXX_COMPILER:STRING=/gone")
    (root / "build").mkdir()
    (root / "build" / "cmake.linux-x86_64-cpython-3.11").symlink_to(subject.env.build)
    (root / "build" / "cmake.linux-x86_64-cpython-3.9").symlink_to(root / "gone")
    assert only(builds.cmake_paths, subject).where.startswith(str(subject.env.build))


def test_each_cache_is_told_apart(subject: DoctorContext) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.3")
    for folder in (subject.env.build, subject.cwd / "python" / "build" / "cmake.linux-x86_64-cpython-3.9"):
        fakes.cmake_cache(folder, "CMAKE_CXX_COMPILER:STRING=/gone")
    found = builds.cmake_paths(subject)
    assert [one.status for one in found] == ["error", "error"]
    assert len(doctor_run.fix_plan(found).steps) == 2


# --- the LLVM in CMake's cache


def configured(subject: DoctorContext, *entries: str) -> Path:
    """The env's LLVM, and a cache with these entries."""
    prefix = fakes.llvm(subject.cwd / "llvm")
    leave(subject, "setup-mlir", prefix=prefix)
    fakes.cmake_cache(subject.env.build, *(entry.format(prefix=prefix) for entry in entries))
    return prefix


@pytest.mark.parametrize(
    "entry",
    [
        "LLVM_DIR:PATH={prefix}/lib/cmake/llvm",
        "LLVM_SYSPATH:UNINITIALIZED={prefix}",
        "LLVM_SYSPATH:PATH={prefix}/",
        "LLD_DIR:PATH=LLD_DIR-NOTFOUND",
        "LLVM_SYSPATH:PATH=",
        "CMAKE_BUILD_TYPE:STRING=Debug",
    ],
)
def test_a_cache_with_the_llvm_that_is_wanted(subject: DoctorContext, entry: str) -> None:
    prefix = configured(subject, entry)
    found = only(builds.cmake_llvm, subject)
    assert (found.status, found.seen) == ("ok", f"the one in {prefix}")


@pytest.mark.parametrize("name", ["LLVM_DIR", "MLIR_DIR", "LLD_DIR", "LLVM_SYSPATH"])
def test_a_cache_with_another_llvm(subject: DoctorContext, name: str) -> None:
    other = fakes.llvm(subject.cwd / "llvm-old") / "lib" / "cmake" / "llvm"
    prefix = configured(subject, f"{name}:PATH={other}", "LLVM_DIR:PATH={prefix}/lib/cmake/llvm")
    found = only(builds.cmake_llvm, subject)
    assert found.status == "error"
    assert found.seen == f"{name} is {other}; expected the LLVM in {prefix}"
    assert found.commands == ("invoke build-triton --reconfigure",)
    mend(subject, doctor_run.fix_plan((found,)))
    assert only(builds.cmake_llvm, subject).status == "not applicable"


def test_two_findings_about_one_cache_are_mended_by_one_step(subject: DoctorContext) -> None:
    configured(subject, "LLVM_DIR:PATH=/gone/lib/cmake/llvm")
    found = (*builds.cmake_paths(subject), *builds.cmake_llvm(subject))
    assert [one.status for one in found] == ["error", "error"]
    assert len(doctor_run.fix_plan(found).steps) == 1


@pytest.mark.parametrize("linked", ["prefix", "inside"])
def test_links_lead_to_the_same_llvm(subject: DoctorContext, linked: str) -> None:
    prefix = configured(subject, "LLVM_DIR:PATH={prefix}/lib/cmake/llvm")
    if linked == "prefix":
        link = subject.cwd / "link"
        link.symlink_to(prefix)
        subject.settings = Settings("dev", llvm=LlvmSettings(dir=str(link)))
    else:
        away = subject.cwd / "elsewhere"
        (prefix / "lib" / "cmake" / "llvm").rename(away)
        (prefix / "lib" / "cmake" / "llvm").symlink_to(away)
    assert only(builds.cmake_llvm, subject).status == "ok"


def test_a_cache_where_no_llvm_is_wanted(subject: DoctorContext) -> None:
    fakes.cmake_cache(subject.env.build, "LLVM_DIR:PATH=/gone")
    assert only(builds.cmake_llvm, subject).seen == "no LLVM is set up"


# --- libtriton.so


def library(root: Path, name: str = "libtriton.so") -> Path:
    path = root / "python" / "triton" / "_C" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_checkout_without_a_library(subject: DoctorContext, root: Path) -> None:
    found = only(builds.libtriton, subject)
    assert (found.status, found.seen) == (
        "not applicable",
        f"no libtriton.so in {root / 'python' / 'triton' / '_C'}",
    )


def test_the_library_that_the_env_built(subject: DoctorContext, root: Path) -> None:
    path = library(root)
    library(root, "libtriton_amd_codegen.so")
    built(subject, root)
    fakes.cmake_cache(subject.env.build, "CMAKE_BUILD_TYPE:STRING=Debug")
    venv(subject.env.venv)
    python = subject.packages
    assert python is not None
    built(subject, root, python=python.version)
    found = only(builds.libtriton, subject)
    assert (found.status, found.seen, found.where) == ("ok", "Debug, by environment 'dev'", str(path))


def test_more_than_one_library(subject: DoctorContext, root: Path) -> None:
    library(root)
    library(root, "libtriton.cpython-39-x86_64-linux-gnu.so")
    found = only(builds.libtriton, subject)
    assert (found.status, found.where) == ("error", str(root / "python" / "triton" / "_C"))
    assert found.seen == "2 of them: libtriton.cpython-39-x86_64-linux-gnu.so, libtriton.so"
    assert "triton#4995" in found.affects


def test_a_library_that_nobody_here_built(subject: DoctorContext, root: Path) -> None:
    path = library(root)
    found = only(builds.libtriton, subject)
    assert (found.status, found.where) == ("note", str(path))
    assert found.commands == (f"invoke install-triton --env dev --source '{root}'",)
    built(subject, root.parent / "another")
    assert only(builds.libtriton, subject).seen == "not built in environment 'dev'"


def test_a_library_that_another_environment_built_last(subject: DoctorContext, root: Path) -> None:
    library(root)
    built(subject, root, finished="2026-01-01T10:00:00+00:00")
    later = datetime.now(UTC).isoformat(timespec="seconds")
    built(subject, root, env="release", finished=later)
    found = only(builds.libtriton, subject)
    assert (found.status, found.seen) == ("warning", "environment 'release' was the last to build it")
    leave(subject, "install-triton", source=root, finished="2999-01-01T00:00:00+00:00")
    assert only(builds.libtriton, subject).status == "ok"


def test_what_others_built_elsewhere_does_not_count(subject: DoctorContext, root: Path) -> None:
    library(root)
    built(subject, root)
    built(subject, root.parent / "elsewhere", env="release", finished="2999-01-01T00:00:00+00:00")
    leave(subject, "build-triton", "broken").write_text("{")
    assert only(builds.libtriton, subject).status == "ok"


def test_a_library_that_is_newer_than_any_build_here(subject: DoctorContext, root: Path) -> None:
    path = library(root)
    built(subject, root)
    os.utime(path, (time.time() + 30,) * 2)
    assert only(builds.libtriton, subject).status == "ok"
    os.utime(path, (time.time() + 300,) * 2)
    found = only(builds.libtriton, subject)
    assert found.status == "warning"
    assert "something else built it" in found.seen


def test_a_library_of_another_python(subject: DoctorContext, root: Path) -> None:
    library(root)
    venv(subject.env.venv)
    assert subject.packages is not None
    built(subject, root, python="3.1.7")
    found = only(builds.libtriton, subject)
    assert found.status == "error"
    assert found.seen == f"built for Python 3.1.7, the environment has {subject.packages.version}"


def test_a_library_of_another_build_type(subject: DoctorContext, root: Path) -> None:
    library(root)
    built(subject, root)
    fakes.cmake_cache(subject.env.build, "CMAKE_BUILD_TYPE:STRING=Release")
    found = only(builds.libtriton, subject)
    assert (found.status, found.seen) == ("warning", "configured as Release, built as Debug")


@pytest.mark.parametrize(("meant", "status"), [("f" * 40, "warning"), (COMMIT, "ok"), ("", "ok")])
def test_a_library_of_another_llvm(subject: DoctorContext, root: Path, meant: str, status: str) -> None:
    elf.libtriton(library(root), f"23.0.0git {COMMIT}")
    built(subject, root, llvm_commit=meant)
    found = only(builds.libtriton, subject)
    assert found.status == status
    if status == "warning":
        assert found.seen == f"it contains LLVM {COMMIT[:12]}, the last build used {'f' * 12}"


@pytest.mark.parametrize("finished", [None, "yesterday", 7])
def test_a_receipt_that_does_not_say_when(subject: DoctorContext, root: Path, finished: object) -> None:
    library(root)
    venv(subject.env.venv)
    leave(subject, "build-triton", source=root, finished=finished, python=None, build_type=None)
    fakes.cmake_cache(subject.env.build, "CMAKE_BUILD_TYPE:STRING=Release")
    found = only(builds.libtriton, subject)
    assert (found.status, found.seen) == ("ok", "build type unknown, by environment 'dev'")


# --- backend links


@pytest.mark.parametrize("place", ["backends/nvidia", "language/extra/cuda", "tools/extra/cuda", "profiler"])
def test_links_of_backends(subject: DoctorContext, root: Path, place: str) -> None:
    link = root / "python" / "triton" / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(root / "third_party" / "nvidia" / "backend")
    found = only(builds.backends, subject)
    assert (found.status, found.seen) == ("ok", "1 links, none dangling")
    link.unlink()
    link.symlink_to("/gone/third_party/nvidia")
    found = only(builds.backends, subject)
    assert (found.status, found.where) == ("error", str(link))
    assert found.seen == f"{link.name} points to /gone/third_party/nvidia, which no longer exists"
    assert "triton#5570" in found.affects


def test_each_dangling_link_is_named(subject: DoctorContext, root: Path) -> None:
    folder = root / "python" / "triton" / "backends"
    (folder / "amd").mkdir(parents=True)  # copied by a build of a wheel
    for name in ("nvidia", "xpu"):
        (folder / name).symlink_to(f"/gone/{name}")
    found = builds.backends(subject)
    assert [one.where for one in found] == [str(folder / name) for name in ("nvidia", "xpu")]
    assert [one.status for one in found] == ["error", "note"]  # `xpu` is no backend of this environment
    assert found[1].commands == (f"rm '{folder / 'xpu'}'",)


# --- compile_commands.json


def test_the_database(subject: DoctorContext, root: Path) -> None:
    assert "`invoke link-compile-commands` creates it" in only(builds.database, subject).seen
    merged = subject.env.path / NAME
    merged.parent.mkdir(parents=True)
    merged.write_text("[]")
    (root / NAME).symlink_to(merged)
    found = only(builds.database, subject)
    assert (found.status, found.seen) == ("ok", f"a link to {merged}")


def test_a_database_that_is_gone(subject: DoctorContext, root: Path) -> None:
    (root / NAME).symlink_to(root / "build" / NAME)
    found = only(builds.database, subject)
    assert (found.status, found.where, found.fix) == ("warning", str(root / NAME), ())
    assert found.seen == f"a link to {root / 'build' / NAME}, which no longer exists"
    merged = subject.env.path / NAME
    merged.parent.mkdir(parents=True)
    merged.write_text("[]")
    found = only(builds.database, subject)
    assert found.fix == (Link(root / NAME, merged, phase="compile commands"),)
    mend(subject, doctor_run.fix_plan((found,)))
    assert only(builds.database, subject).status == "ok"


def test_a_link_in_a_circle(subject: DoctorContext, root: Path) -> None:
    (root / NAME).symlink_to(root / NAME)
    assert only(builds.database, subject).status == "warning"


@pytest.mark.parametrize(
    ("kind", "status", "does"), [("file", "note", "would fail on it"), ("folder", "error", "would delete it")]
)
def test_what_setup_py_stumbles_over(
    subject: DoctorContext, root: Path, kind: str, status: str, does: str
) -> None:
    (root / NAME).touch() if kind == "file" else (root / NAME).mkdir()
    found = only(builds.database, subject)
    assert (found.status, found.seen, found.fix) == (status, f"a {kind}, not a link", ())
    assert found.affects.endswith(does)
    assert found.commands == ("invoke link-compile-commands --env dev",)
