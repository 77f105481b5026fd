"""A small Triton without assertions under triage: what builds with assertions and with ASan say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import LLVM, Smith, capture, git, plant, ready
from tests.support import require

pytestmark = pytest.mark.slow

KERNELS = """
import triton


@triton.jit
def breaks_a_rule(x):
    return


@triton.jit
def is_too_long(x):
    return
"""
ENV = '[triton]\nsource = "{source}"\nbuild-type = "{build}"\nsanitizer = "{sanitizer}"\nbackends = ["amd"]\n'


def install(smith: Smith, name: str, source: Path, build: str, sanitizer: str = "") -> None:
    """Build and install an environment of an env file beside the kernels."""
    text = ENV.format(source=source, build=build, sanitizer=sanitizer)
    (smith.cwd / f"{name}.toml").write_text(text, encoding="utf-8")
    smith("build-triton", "--env", f"./{name}.toml", "--llvm-dir", LLVM)
    smith("install-triton", "--env", f"./{name}.toml")


@pytest.fixture(scope="module")
def tested(built: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """Beside two kernels, and an environment `tested` of the same commit as `dev`, without assertions."""
    folder = tmp_path_factory.mktemp("two kernels")
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    capture("git", "clone", "--quiet", built.cwd, folder / "same")
    names = ("tested", "checked")
    ready(Smith(built.root, cwd=folder / "same", shared=built.home), tmp_path_factory, *names)
    smith = built.beside(folder)
    install(smith, "tested", folder / "same", "Release")
    return smith


def judged(smith: Smith, kernel: str) -> dict[str, Any]:
    """What was tried, by name."""
    words = (f"kernels.py:{kernel}", "--signature", "*fp32", "--target", "gfx942", "--env", "./tested.toml")
    found = json.loads(smith("triage", "--json", *words, code=5).out)
    return {row["variant"]: row for row in found["tried"]} | {"": found}


def test_without_such_a_build_it_says_how_to_make_one(tested: Smith) -> None:
    row = judged(tested, "breaks_a_rule")["an ASan build"]
    assert row["symptom"] == "not tested"
    assert row["why"].startswith("needs a build with AddressSanitizer; invoke setup-mlir --env asan; ")


def test_a_failed_assertion(tested: Smith, built: Smith) -> None:
    built("install-triton")
    row = judged(tested, "breaks_a_rule")["an assertions build"]
    commit = git(built.cwd, "rev-parse", "HEAD")[:10]
    assert row["symptom"] == "another failure"
    assert "main.c:" in row["figures"]
    assert '!broken && "kernels keep the rules"' in row["figures"]
    assert row["figures"].endswith(f"by env dev of {commit}, as the one under test")
    reasons = judged(tested, "breaks_a_rule")[""]["reasons"]
    assert f"an assertions build says: {row['figures']}" in reasons
    silent = judged(tested, "is_too_long")["an assertions build"]
    assert silent["symptom"] == "shows"
    assert silent["figures"].startswith("it reports nothing, by env dev of ")


def test_an_error_that_asan_finds(tested: Smith) -> None:
    if not list((LLVM / "lib" / "clang").glob("*/lib/*/*asan*.so")):
        require("libclang-rt-19-dev")
    other = plant("mini_triton", tested.cwd / "other", {"README.md": "another commit"})
    install(tested, "checked", other, "RelWithDebInfo", "address")
    row = judged(tested, "is_too_long")["an ASan build"]
    assert row["symptom"] == "another failure"
    assert row["figures"].startswith("heap-buffer-overflow: READ of size 1 in verify main.c:")
    assert f"by env checked of {git(other, 'rev-parse', 'HEAD')[:10]}, not " in row["figures"]
    assert judged(tested, "breaks_a_rule")["an ASan build"]["figures"].startswith(
        "it reports nothing, by env"
    )


def test_a_script_by_the_build_with_assertions(tested: Smith, built: Smith) -> None:
    built("install-triton")
    script = "from triton._C import libtriton; assert libtriton.verify('breaks_a_rule')"
    found = json.loads(
        tested("triage", "--json", "--env", "./tested.toml", "--", "python", "-c", script, code=None).out
    )
    row = {one["variant"]: one for one in found["tried"]}["an assertions build"]
    assert row["symptom"] == "another failure"
    assert "kernels keep the rules" in row["figures"]
