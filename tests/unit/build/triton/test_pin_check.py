from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tests.unit.facts import fakes
from tritonsmith.build.triton import pin_check
from tritonsmith.core.errors import FactError
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.checkout import LlvmPin
from tritonsmith.facts.llvm_tree import LlvmTree

OLD = "1" * 40
RECEIPT = {"pin": OLD, "commit": OLD}


def never() -> list[Path]:
    raise AssertionError("nobody needs to look")


def whole(prefix: Path, commit: str) -> Path:
    files = ("bin/mlir-tblgen", "lib/cmake/mlir/MLIRConfig.cmake", "lib/libLLVMSupport.a", "lib/libMLIRIR.a")
    header = "include/llvm/Support/VCSRevision.h"
    fakes.llvm(prefix, files=(*files, header))
    (prefix / header).write_text(f'#define LLVM_REVISION "{commit}"\n')
    return prefix


def old() -> LlvmTree:
    return made.llvm(Path("/llvm/old"), OLD)


@pytest.mark.parametrize(
    ("pin", "commit", "receipt"),
    [
        (OLD, OLD, RECEIPT),  # nothing moved
        (made.PIN, made.PIN, RECEIPT),  # it is at the new pin: rebuilt at the same path
        (made.PIN, "", {"pin": OLD, "commit": ""}),  # a distribution's, taken knowingly
        (made.PIN, made.OTHER, {"pin": OLD, "commit": made.OTHER}),  # with --any-commit
        (None, OLD, RECEIPT),
    ],
)
def test_the_llvm_of_setup_mlir_stays(pin: str | None, commit: str, receipt: dict[str, str]) -> None:
    tree = made.llvm(commit=commit)
    assert pin_check.right_llvm(tree, made.request(pin), receipt, never, "dev") is tree


def test_another_at_the_new_pin_is_taken(tmp_path: Path) -> None:
    unusable = [tmp_path / "gone", whole(tmp_path / "other", made.OTHER), fakes.llvm(tmp_path / "half")]
    right = whole(tmp_path / "right", made.PIN)
    taken = pin_check.right_llvm(old(), made.request(), RECEIPT, lambda: [*unusable, right], "dev")
    assert (taken.prefix, taken.commit) == (right, made.PIN)


def test_without_one_it_says_what_to_run() -> None:
    with pytest.raises(FactError, match=f"pin changed from {OLD[:12]} to {made.PIN[:12]}") as caught:
        pin_check.right_llvm(old(), made.request(), RECEIPT, list, "dev")
    assert caught.value.hints[0].startswith("run `invoke setup-mlir --env dev`")
    assert caught.value.hints[1].endswith("--llvm-dir /llvm/old")


def test_what_is_told() -> None:
    last = {"pin": OLD, "llvm": "/llvm/old"}
    assert list(pin_check.notes(None, made.request(), old())) == []
    assert list(pin_check.notes({"pin": made.PIN, "llvm": "/llvm/old"}, made.request(), old())) == []
    new = made.llvm(Path("/llvm/new"), made.PIN)
    assert list(pin_check.notes(last, made.request(), new)) == [
        f"the checkout's LLVM pin changed from {OLD[:12]} to {made.request().describe_pin()}",
        "the LLVM changed: /llvm/old -> /llvm/new",
    ]


@pytest.mark.parametrize(
    ("receipt", "told"),
    [
        ({"kind": "prebuilt", "pin": made.PIN, "pin_build": 1}, True),
        ({"kind": "prebuilt", "pin": made.PIN, "pin_build": 2}, False),
        ({"kind": "prebuilt", "pin": made.PIN}, False),  # before numbers were kept
        ({"kind": "built", "pin": made.PIN, "pin_build": 1}, False),
        ({"kind": "prebuilt", "pin": OLD, "pin_build": 1}, False),  # another commit is told as such
        (None, False),
    ],
)
def test_an_archive_that_was_built_again(receipt: dict[str, object] | None, told: bool) -> None:
    """`62b7cf96` has build 1, and build 2 since 2104a207c0: the same hash is not the same archive."""
    pin = LlvmPin(made.PIN, "cmake/llvm-info.json", build=2)
    request = replace(made.request(), pin=pin)
    said = list(pin_check.newer_archive(receipt, request, "dev"))
    assert bool(said) is told
    assert all("names build 2, here is build 1" in words for words in said)


def test_an_llvm_in_words_tells_it_from_another_at_the_same_path(tmp_path: Path) -> None:
    def words() -> str:
        return llvm_tree.read(tmp_path).in_words

    fakes.llvm(tmp_path)
    first = words()
    assert first.startswith("19.1.7, commit unknown, RelWithDebInfo, assertions OFF, RTTI ON, ")
    assert words() == first
    checks = tmp_path / "include/llvm/Config/abi-breaking.h"
    checks.parent.mkdir(parents=True)
    checks.write_text("#define LLVM_ENABLE_ABI_BREAKING_CHECKS 1\n")
    second = words()
    config = tmp_path / "lib/cmake/llvm/LLVMConfig.cmake"
    config.write_text(config.read_text() + "set(LLVM_ENABLE_DUMP ON)\n")
    assert len({first, second, words()}) == 3
