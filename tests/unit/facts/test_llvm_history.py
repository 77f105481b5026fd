"""The commits of a small LLVM: which are counted, and which may change llc; a partial one fetches nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.repositories import Made
from tritonsmith.core.errors import FactError
from tritonsmith.facts import llvm_history
from tritonsmith.facts.llvm_history import LlvmHistory

pytestmark = pytest.mark.unit

NVPTX = "llvm/lib/Target/NVPTX/NVPTXISelLowering.cpp"
CHANGES = {
    "docs": "llvm/docs/LangRef.rst",
    "x86": "llvm/lib/Target/X86/X86ISelLowering.cpp",
    "nvptx": NVPTX,
    "clang": "clang/lib/Sema/Sema.cpp",
    "scheduler": "llvm/include/llvm/CodeGen/MachineScheduler.h",
    "gvn": "llvm/lib/Transforms/Scalar/GVN.cpp",
    "tablegen": "llvm/utils/TableGen/DAGISelEmitter.cpp",
    "test": "llvm/test/CodeGen/NVPTX/add.ll",
    "cse": "mlir/lib/Transforms/CSE.cpp",
    "intrinsics": "llvm/include/llvm/IR/IntrinsicsNVVM.td",
}


@pytest.fixture
def llvm(make: Callable[[str], Made]) -> tuple[Made, dict[str, str]]:
    """A repository with a commit for each of these files, and their names."""
    made = make("llvm")
    hashes = {made.commit("first", {"llvm/CMakeLists.txt": "1"}): "first"}
    for name, path in CHANGES.items():
        hashes[made.commit(name, {path: "1"})] = name
    return made, hashes


def read(made: Made, old: str = "HEAD~10", new: str = "HEAD", target: str = "NVPTX") -> LlvmHistory:
    first, last = (made.git("rev-parse", end) for end in (old, new))
    return llvm_history.read(made.path, first, last, (target,))


def test_what_llc_is_built_from_is_a_candidate_and_its_code_generator_is_near(
    llvm: tuple[Made, dict[str, str]],
) -> None:
    made, names = llvm
    found = read(made)
    assert [names[one.commit] for one in found.commits] == ["first", *CHANGES]
    candidates = ["first", "nvptx", "scheduler", "gvn", "tablegen", "intrinsics"]
    assert [names[one.commit] for one in found.candidates] == candidates
    assert [names[one.commit] for one in found.near] == ["nvptx", "scheduler", "intrinsics"]
    assert [one.headers for one in found.candidates[1:]] == [0, 1, 0, 0, 1]


def test_another_code_generator_has_other_candidates(llvm: tuple[Made, dict[str, str]]) -> None:
    made, names = llvm
    amd = [names[one.commit] for one in read(made, target="AMDGPU").candidates]
    assert amd == ["first", "scheduler", "gvn", "tablegen", "intrinsics"]


@pytest.mark.slow
def test_the_commits_of_a_pass_are_found_by_the_names_of_its_files(llvm: tuple[Made, dict[str, str]]) -> None:
    made, names = llvm
    found, head = read(made), made.git("rev-parse", "HEAD")
    for name, file in (("GVNPass", CHANGES["gvn"]), ("cse", CHANGES["cse"])):
        assert llvm_history.files_of(made.path, head, name) == (file,)
        assert [names[one.commit] for one in found.touching((file,))] == [name.removesuffix("Pass").lower()]
    assert llvm_history.files_of(made.path, head, "tritongpu-coalesce") == ()


def test_a_clone_without_contents_lists_the_same_and_fetches_nothing(
    llvm: tuple[Made, dict[str, str]], make: Callable[[str], Made], tmp_path: Path
) -> None:
    made, _ = llvm
    partial = tmp_path / "partial"
    url = made.path.as_uri()
    make("caller").git("clone", "--quiet", "--bare", "--filter=blob:none", url, str(partial))
    old, new = made.git("rev-parse", "HEAD~10"), made.git("rev-parse", "HEAD")
    made.path.rename(tmp_path / "gone")  # so that a fetch would fail
    assert llvm_history.is_partial(partial)
    assert not llvm_history.is_partial(tmp_path / "gone")
    found = llvm_history.read(partial, old, new, ("NVPTX",))
    assert len(found.near) == len(("nvptx", "scheduler", "intrinsics"))
    assert llvm_history.files_of(partial, new, "GVNPass") == (CHANGES["gvn"],)


def test_a_commit_that_the_clone_lacks_is_named_with_the_command_that_brings_it(
    llvm: tuple[Made, dict[str, str]],
) -> None:
    made, _ = llvm
    with pytest.raises(FactError, match="has no bbbbbbbbbbbb") as caught:
        llvm_history.read(made.path, made.git("rev-parse", "HEAD"), "b" * 40, ("NVPTX",))
    assert any(
        "fetch https://github.com/llvm/llvm-project " + "b" * 40 in hint for hint in caught.value.hints
    )


def test_a_pin_that_moved_back_is_refused(llvm: tuple[Made, dict[str, str]]) -> None:
    made, _ = llvm
    with pytest.raises(FactError, match="is not an ancestor of"):
        read(made, "HEAD", "HEAD~1")
