"""An LLVM that is not the pin: what it breaks is compiled first; a build that failed is gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Smith, commit, plant, require_llvm

DIALECT = Path("lib/Dialect/Triton/IR/Dialect.cpp")
PROGRAM = Path("bin/triton-opt.cpp")
PIN = Path("cmake/llvm-hash.txt")
BROKEN = """
struct Broken : mlir::OpBuilder::Listener {
  int notifyOperationInserted(mlir::Operation *, mlir::OpBuilder::InsertPoint) override;
};
"""


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """Mini-Triton after a bump of its pin, which adapted two files, one to an API that this LLVM has not."""
    require_llvm()
    root = tmp_path_factory.mktemp("near the pin")
    checkout = plant("mini_triton", root / "my checkout")
    for name, more in ((PIN, ""), (DIALECT, BROKEN), (PROGRAM, f"// {'longer ' * 200}\n")):
        text = (checkout / name).read_text(encoding="utf-8")
        (checkout / name).write_text("f" * 40 + "\n" if name == PIN else text + more, encoding="utf-8")
    commit(checkout, "Update LLVM")
    smith = Smith(root, cwd=checkout)
    smith("setup-mlir", "--provider", "system", "--llvm-dir", LLVM)
    return smith


@pytest.fixture(scope="module")
def refused(moved: Smith) -> str:
    """What the build said."""
    one_at_a_time = ("build-triton", "--debug", "--jobs", "1")
    script = moved(*one_at_a_time, "--dry-run").out
    assert '-k 0 "$@"' in script
    first, second = (script.index(f"for source in '{moved.cwd / name}'; do") for name in (DIALECT, PROGRAM))
    assert first < second
    return moved(*one_at_a_time, code=1).error


def test_what_fails_is_told_before_the_build_begins(moved: Smith, refused: str) -> None:
    assert "1 of the 1 files compiled first failed; the rest of the build was not started" in refused
    assert f"where: {moved.cwd / DIALECT}" in refused
    assert "[llvm-near-pin]" in refused
    assert "uncertain" not in refused  # the overridden function is declared in LLVM's headers
    assert f"in {LLVM}, commit not recorded" in refused
    assert f"{'f' * 40} (cmake/llvm-hash.txt)" in refused
    assert "--force" in refused
    log = moved.log("build-triton")
    assert "## build Triton: ninja" not in log
    assert not list(moved.build().rglob("triton-opt.cpp.o"))


@pytest.mark.slow
def test_force_goes_on_and_fails_in_the_build(moved: Smith, refused: str) -> None:
    assert refused
    error = moved("build-triton", "--debug", "--force", code=1).error
    assert "build Triton failed" in error
    assert "[llvm-near-pin]" in error


def test_the_doctor_tells_where_the_last_build_failed(moved: Smith, refused: str) -> None:
    assert refused
    found = json.loads(moved("doctor", "--json", "--only", "builds.last", code=1).out)["findings"]
    (finding,) = found
    assert finding["status"] == "error"
    assert f"{moved.cwd / DIALECT}:" in finding["seen"]
    assert "(Debug)" in finding["seen"]
    assert Path(finding["where"]).is_file()


@pytest.mark.slow
def test_an_install_goes_on_with_the_build_that_failed(moved: Smith, refused: str) -> None:
    """The next build type in the same folder would compile everything anew."""
    assert refused
    done = moved("install-triton", "--dry-run")
    assert "set(CMAKE_BUILD_TYPE [[Debug]]" in done.out
    assert "continuing the build-triton that did not finish: Debug" in done.out
    configured = moved.build() / "tritonsmith-cache.cmake"
    before = configured.stat().st_mtime_ns
    source = moved.cwd / DIALECT
    broken = source.read_text(encoding="utf-8")
    source.write_text(broken.removesuffix(BROKEN), encoding="utf-8")
    try:
        moved("install-triton")
    finally:
        source.write_text(broken, encoding="utf-8")
    assert configured.stat().st_mtime_ns == before
    assert "## configure Triton: cmake" not in moved.log("install-triton")
    (finding,) = json.loads(moved("doctor", "--json", "--only", "builds.last").out)["findings"]
    assert finding["status"] == "ok"
    assert "set(CMAKE_BUILD_TYPE [[Debug]]" in moved("install-triton", "--dry-run").out
