from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.doctor.conftest import COMMIT, leave, only
from tests.unit.facts import fakes
from tests.unit.facts.fakes import git
from tritonsmith.core import configs
from tritonsmith.core.envs.settings import LlvmSettings, Settings, TritonSettings
from tritonsmith.doctor import sources
from tritonsmith.doctor.check import DoctorContext

HEADER = "include/llvm/Support/VCSRevision.h"
WHOLE = (
    HEADER,
    "lib/cmake/mlir/MLIRConfig.cmake",
    "lib/cmake/lld/LLDConfig.cmake",
    "lib/libLLVMSupport.a",
    "lib/libMLIRIR.a",
    "bin/FileCheck",
    "bin/clang++",
    "bin/mlir-tblgen",
)


@pytest.fixture
def root(subject: DoctorContext) -> Path:
    """A checkout of 3.5 under git, in which one stands."""
    require("git")
    subject.cwd = fakes.checkout(subject.cwd / "my triton", "3.5")
    fakes.commit(subject.cwd)
    return subject.cwd


def with_llvm(
    subject: DoctorContext, commit: str = fakes.HASH, files: tuple[str, ...] = WHOLE, assertions: str = "ON"
) -> Path:
    """An LLVM of that commit, set up for the env."""
    prefix = fakes.llvm(subject.space.root / "llvm", assertions=assertions, files=files)
    if commit:
        (prefix / HEADER).write_text(f'#define LLVM_REVISION "{commit}"\n')
    leave(subject, "setup-mlir", prefix=prefix, commit=commit)
    return prefix


def test_without_a_checkout(subject: DoctorContext) -> None:
    for check in (sources.checkout, sources.pins, sources.several_pins):
        assert only(check, subject).seen == "no Triton checkout found"
    assert only(sources.branches, subject).status == "not applicable"


# --- the checkout


def test_the_checkout(subject: DoctorContext, root: Path) -> None:
    found = only(sources.checkout, subject)
    commit = git(root, "rev-parse", "HEAD")
    assert (found.status, found.where) == ("ok", str(root))
    assert found.seen == f"Triton 3.5.0 (builds like 3.5), commit {commit[:12]}"


def test_a_changed_checkout_that_has_moved(subject: DoctorContext, root: Path) -> None:
    clone = root.parent / "clone"
    git(root, "clone", "--quiet", str(root), str(clone))
    for where, message in ((root, "theirs"), (root, "theirs too"), (clone, "mine")):
        git(where, "commit", "--quiet", "--allow-empty", "--message", message)
    git(clone, "fetch", "--quiet")
    (clone / "setup.py").write_text((clone / "setup.py").read_text() + "# mine\n")
    found = only(sources.checkout, replace(subject, cwd=clone))
    assert found.seen.endswith(", changed, 1 ahead and 2 behind its upstream")


def test_a_checkout_from_an_archive(subject: DoctorContext) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "2.1")
    assert only(sources.checkout, subject).seen == "Triton 2.1.0 (builds like 2.1), not under git"


def test_a_checkout_that_cannot_be_read(subject: DoctorContext, root: Path) -> None:
    (root / "setup.py").write_text("")
    (root / "python" / "triton" / "__init__.py").unlink()
    found = only(sources.checkout, subject)
    assert (found.status, found.seen) == ("error", "cannot determine the version of this checkout")
    assert (found.where, found.affects, found.remedy) == (str(root / "setup.py"), "", "")
    subject = replace(subject, settings=Settings("dev", triton=TritonSettings(source=str(root / "cmake"))))
    found = only(sources.checkout, subject)
    assert "it has no setup.py" in found.affects
    assert "--source PATH" in found.remedy


# --- pins


@pytest.mark.usefixtures("root")
def test_the_pin_before_there_is_an_llvm(subject: DoctorContext) -> None:
    found = only(sources.pins, subject)
    assert (found.status, found.commands) == ("note", ("invoke setup-mlir --env dev",))
    assert found.seen == f"cmake/llvm-hash.txt pins {fakes.HASH[:12]}; no LLVM is set up"


@pytest.mark.usefixtures("root")
def test_no_llvm_is_set_up_for_an_environment_of_a_wheel(subject: DoctorContext) -> None:
    subject = replace(subject, settings=Settings("wheel", triton=TritonSettings(wheel="newest")))
    assert only(sources.pins, subject).commands == ("invoke setup-mlir",)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("commit", "status", "seen"),
    [
        (fakes.HASH, "ok", ""),
        (fakes.HASH[:12], "ok", ""),
        (COMMIT, "warning", "; LLVM 19.1.7 is 0123456789ab"),
        ("", "warning", "; LLVM 19.1.7 is of an unknown commit"),
    ],
)
def test_the_llvm_against_the_pin(subject: DoctorContext, commit: str, status: str, seen: str) -> None:
    prefix = with_llvm(subject, commit)
    found = only(sources.pins, subject)
    assert (found.status, found.where) == (status, str(prefix))
    assert found.seen == f"cmake/llvm-hash.txt pins {fakes.HASH[:12]}{seen}"
    assert ("triton#9776" in found.affects) is (status == "warning")


def test_an_llvm_whose_sources_moved_after_it_was_built(subject: DoctorContext, root: Path) -> None:
    project = root.parent / "llvm-project"
    project.mkdir()
    git(project, "init", "--quiet")
    git(project, "commit", "--quiet", "--allow-empty", "--message", "the pin")
    (root / "cmake" / "llvm-hash.txt").write_text(git(project, "rev-parse", "HEAD"))
    prefix = with_llvm(subject, "")
    fakes.cmake_cache(prefix, f"CMAKE_HOME_DIRECTORY:INTERNAL={project}/llvm")
    assert only(sources.pins, subject).status == "ok"
    git(project, "commit", "--quiet", "--allow-empty", "--message", "another")
    assert only(sources.pins, replace(subject)).status == "warning"


def test_every_pin_is_told(subject: DoctorContext) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.8")
    core, amd = sources.pins(subject)
    assert (core.status, amd.status) == ("note", "note")
    assert amd.seen == f"cmake/amd-llvm-info.json pins {'f' * 12} for the backend amd"
    assert "triton#11485" in amd.affects


def test_a_pin_of_the_fork(subject: DoctorContext, root: Path) -> None:
    table = configs.load("triton-eras")["llvm-source"]
    (root / "cmake" / "llvm-hash.txt").write_text(table["fork-pins"][0])
    assert f", a commit of {table['repositories'][-1]}; no LLVM" in only(sources.pins, subject).seen


def test_a_checkout_without_a_pin(subject: DoctorContext, root: Path) -> None:
    (root / "cmake" / "llvm-hash.txt").unlink()
    found = only(sources.pins, subject)
    assert (found.status, found.seen, found.where) == ("warning", "no pin found", str(root))


# --- branches


def test_no_branch_is_named_like_a_commit(subject: DoctorContext, root: Path) -> None:
    head = git(root, "rev-parse", "HEAD")
    for name in ("feature/deadbeef", "beef", head[:9], "0123456789abcdefg", "20251121"):
        git(root, "branch", name)
    found = only(sources.branches, subject)
    assert (found.status, found.seen) == ("ok", f"none in {root}")


@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_that_is_named_like_a_commit(subject: DoctorContext, root: Path, packed: bool) -> None:
    head = git(root, "rev-parse", "HEAD")
    git(root, "branch", fakes.HASH)
    if packed:
        git(root, "pack-refs", "--all")
    found = only(sources.branches, subject)
    assert (found.status, found.where) == ("error", str(root))
    assert found.seen == f"the branch {fakes.HASH[:12]} is at {head[:12]}"
    assert "triton#5521" in found.affects
    assert found.commands == (
        f"git -C '{root}' branch -m {fakes.HASH} was-{fakes.HASH[:8]}",
        f"git -C '{root}' checkout --detach {fakes.HASH}",
    )


def test_a_branch_that_is_named_like_the_short_form_of_a_commit(subject: DoctorContext, root: Path) -> None:
    first = git(root, "rev-parse", "--short=9", "HEAD")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "two")
    git(root, "branch", first)  # `git checkout -b HASH`, where `git checkout HASH` was meant
    assert only(sources.branches, subject).seen.startswith(f"the branch {first} is at ")


def test_branches_of_the_llvm_that_is_in_use(subject: DoctorContext) -> None:
    require("git")
    project, named = subject.cwd / "llvm-project", subject.cwd / "another"
    for folder in (project, named):
        folder.mkdir()
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "one")
        git(folder, "branch", COMMIT)
    prefix = with_llvm(subject)
    fakes.cmake_cache(prefix, f"CMAKE_HOME_DIRECTORY:INTERNAL={project}/llvm")
    subject.settings = Settings("dev", llvm=LlvmSettings(source=str(named)))
    found = sources.branches(subject)
    assert [(one.status, one.where) for one in found] == [("error", str(named)), ("error", str(project))]


def test_a_misleading_branch_is_seen_from_every_worktree(subject: DoctorContext, root: Path) -> None:
    git(root, "branch", COMMIT)
    git(root, "worktree", "add", "--quiet", "--detach", str(root.parent / "two"))
    assert only(sources.branches, replace(subject, cwd=root.parent / "two")).status == "error"


def test_the_remedy_mends_it(subject: DoctorContext, root: Path) -> None:
    git(root, "branch", COMMIT)
    rename, _ = only(sources.branches, subject).commands
    git(root, *rename.replace(f"git -C '{root}' ", "").split())
    assert only(sources.branches, replace(subject)).status == "ok"


# --- what the LLVM has


def test_without_an_llvm(subject: DoctorContext) -> None:
    assert only(sources.llvm, subject).seen == "no LLVM is set up"


@pytest.mark.usefixtures("root")
def test_an_llvm_that_has_all(subject: DoctorContext) -> None:
    prefix = with_llvm(subject)
    found = only(sources.llvm, subject)
    assert (found.status, found.where) == ("ok", str(prefix))
    assert found.seen == (
        "LLVM 19.1.7, RelWithDebInfo, assertions on, RTTI on, static, targets AMDGPU NVPTX and 1 more, "
        "with FileCheck clang++ lld mlir"
    )


@pytest.mark.usefixtures("root")
def test_an_llvm_without_assertions(subject: DoctorContext) -> None:
    with_llvm(subject, assertions="OFF")
    found = only(sources.llvm, subject)
    assert found.status == "note"
    assert "assertions off" in found.seen
    assert "-debug-only" in found.affects


@pytest.mark.parametrize(
    ("era", "lacks", "words"),
    [
        ("3.5", "lib/cmake/lld/LLDConfig.cmake", "lld's CMake package"),
        ("3.5", "lib/cmake/mlir/MLIRConfig.cmake", "MLIR's CMake package"),
        ("3.5", "bin/FileCheck", "FileCheck (bin/FileCheck)"),
        ("3.5", "bin/mlir-tblgen", "mlir-tblgen"),
        ("3.5", "lib/libMLIRIR.a", "static component libraries"),
        ("3.8", "bin/clang++", "clang++ (bin/clang++)"),
        ("3.3", "bin/clang++", ""),
        ("3.3", "lib/cmake/lld/LLDConfig.cmake", ""),
    ],
)
def test_an_llvm_that_lacks_something(subject: DoctorContext, era: str, lacks: str, words: str) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "triton", era)
    prefix = with_llvm(subject, files=tuple(name for name in WHOLE if name != lacks))
    found = only(sources.llvm, subject)
    assert found.where == str(prefix)
    if words:
        assert found.status == "error"
        assert found.seen.startswith(f"LLVM 19.1.7 lacks {words}")
        assert found.commands == ("invoke setup-mlir --env dev --provider source",)
    else:
        assert found.status == "ok"


@pytest.mark.usefixtures("root")
def test_an_llvm_that_lacks_much_is_one_finding_for_each(subject: DoctorContext) -> None:
    with_llvm(subject, files=(HEADER,))
    found = sources.llvm(subject)
    assert [one.status for one in found] == ["error"] * 5
    assert {one.check for one in found} == {"sources.llvm"}


@pytest.mark.usefixtures("root")
def test_an_llvm_without_the_code_generators(subject: DoctorContext) -> None:
    prefix = with_llvm(subject)
    shutil.rmtree(prefix)
    fakes.llvm(prefix, targets="X86", files=WHOLE)
    assert [one.seen for one in sources.llvm(subject)] == [
        "LLVM 19.1.7 lacks code generator AMDGPU",
        "LLVM 19.1.7 lacks code generator NVPTX",
    ]


def test_an_llvm_that_is_one_shared_library(subject: DoctorContext) -> None:
    prefix = with_llvm(subject)
    config = prefix / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake"
    config.write_text(config.read_text() + "set(LLVM_LINK_LLVM_DYLIB ON)\n")
    found = only(sources.llvm, subject)  # without a checkout, whatever it has will do
    assert "MLIR links the shared libLLVM" in found.seen


def test_an_llvm_that_is_named_and_not_there(subject: DoctorContext) -> None:
    subject.environ = {"LLVM_SYSPATH": "build/llvm"}
    found = only(sources.llvm, subject)
    assert (found.status, found.where) == ("error", str(subject.cwd / "build" / "llvm"))
    assert "triton#4463" in found.affects
    leave(subject, "setup-mlir", prefix=subject.cwd / "gone")
    assert only(sources.llvm, subject).seen == "the LLVM that was set up no longer exists (see builds.llvm)"


# --- several pins on one slot


@pytest.fixture
def two(root: Path) -> Path:
    """Another worktree of the checkout, with another pin."""
    two = root.parent / "two"
    git(root, "worktree", "add", "--quiet", "-b", "two", str(two))
    (two / "cmake" / "llvm-hash.txt").write_text(COMMIT)
    return two


def test_two_pins_on_one_slot(subject: DoctorContext, root: Path, two: Path, home: Path) -> None:
    assert only(sources.several_pins, subject).status == "ok"  # nobody has built by pip
    slot = home / ".triton" / "llvm"
    slot.mkdir(parents=True)
    found = only(sources.several_pins, replace(subject))
    assert (found.status, found.where) == ("warning", str(slot))
    assert found.seen == f"{root} pins {fakes.HASH[:12]}; {two} pins {COMMIT[:12]}"
    assert "triton#10540" in found.affects
    assert found.commands == (f"export TRITON_HOME='{root}/.triton-home'",)


def test_the_slot_lies_where_triton_home_says(subject: DoctorContext, two: Path, tmp_path: Path) -> None:
    (tmp_path / "shared" / ".triton" / "llvm").mkdir(parents=True)
    subject.cwd, subject.environ = two, {"TRITON_HOME": str(tmp_path / "shared")}
    assert only(sources.several_pins, subject).status == "warning"
    subject.environ = {"TRITON_HOME": str(tmp_path / "own")}
    assert only(sources.several_pins, subject).status == "ok"
    subject.environ = {"TRITON_HOME": ""}
    assert only(sources.several_pins, subject).status == "ok"


@pytest.mark.parametrize("how", ["same pin", "deleted", "half a merge"])
def test_worktrees_that_do_not_disturb(
    subject: DoctorContext, root: Path, two: Path, home: Path, how: str
) -> None:
    (home / ".triton" / "llvm").mkdir(parents=True)
    pin = two / "cmake" / "llvm-hash.txt"
    match how:
        case "same pin":
            pin.write_text(fakes.HASH)
        case "deleted":
            shutil.rmtree(two)
        case _:
            pin.with_name("llvm-info.json").write_text("<<<<<<< HEAD\n")
    found = only(sources.several_pins, subject)
    assert (found.status, found.where) == ("ok", str(root))
