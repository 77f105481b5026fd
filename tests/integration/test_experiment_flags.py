"""Each experiment with each of the flags that all have: --confirm, --skip, --status, --page and --json."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith
from tests.integration.test_experiments_killed import IR, KERNEL
from tests.integration.test_passes_reduce import CRASHING, FAILING, MATMUL, SIGNATURE

# A script that is wrong until LLVM does not optimise, and right when it is interpreted.
SCRIPT = """
import os
if not (os.environ.get("DISABLE_LLVM_OPT") or os.environ.get("TRITON_INTERPRET")):
    raise SystemExit("wrong")
"""
ADD = """\
import triton
import triton.language as tl

@triton.jit
def add(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) + 1)
"""
ADD_TYPES = ("--signature", "*fp32,*fp32,N=128", "--target", "sm_80")
QUESTION = ("--", "grep", "-q", "WANTED", "{}")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool with files that need no Triton."""
    root = tmp_path_factory.mktemp("plain")
    (root / "script.py").write_text(SCRIPT)
    (root / "f.ttgir").write_text(IR)
    (root / "k.py").write_text(KERNEL)
    return Smith(root / "home", cwd=root)


@pytest.fixture(scope="module")
def wheel(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool with the newest wheel, a kernel, and a dump of a compile that crashed."""
    root = tmp_path_factory.mktemp("with a wheel")
    smith = with_wheel.beside(root)
    (root / "add.py").write_text(ADD)
    smith("passes.dump", MATMUL, *SIGNATURE, *CRASHING, "--out", root / "crashed", code=1)
    return smith


def check(smith: Smith, before: tuple[str, ...], after: tuple[str, ...], skipped: str, code: int = 0) -> Any:
    """Run a command with each flag.

    Args:
        smith: the tool.
        before: words before `--`.
        after: `--` and the words after it.
        skipped: a change.
        code: of the run.

    Returns:
        Its JSON.
    """
    assert "there is no run to show" in smith(*before, "--status", *after).err
    page = smith.cwd / "all tests.html"
    flags = ("--confirm", "2", "--skip", skipped, "--page", page, "--json")
    done = smith(*before, *flags, *after, code=code)
    assert f"--skip {skipped!r}: nothing was tested" not in done.err
    html = page.read_text(encoding="utf-8")
    page.unlink()
    assert "<table" in html
    assert "<script" not in html
    assert f"skipped by hand: {skipped}" in unescape(html)
    return json.loads(done.out)


def status(smith: Smith, *words: str | Path) -> Any:
    """What `--status --json` says."""
    return json.loads(smith(*words).out)


@pytest.mark.slow
def test_triage(plain: Smith) -> None:
    words = ("triage", "--python", sys.executable)
    after = ("--", "python", "script.py")
    answer = check(plain, words, after, "LLVM not optimizing", code=5)
    rows = {row["variant"]: row for row in answer["tried"]}
    assert rows["LLVM not optimizing"]["why"] == "skipped by hand"
    known = status(plain, *words, "--status", "--json", *after)
    assert known["ended"]
    assert known["skipped"] == ["LLVM not optimizing"]
    tests = [test["change"] for test in known["tests"]]
    assert tests.count("ptxas not optimizing") == 2


@pytest.mark.parametrize(
    ("words", "text"), [(("reduce", "f.ttgir"), "test.c"), (("reduce", "k.py:kernel"), "tl.exp")]
)
def test_reduce(plain: Smith, words: tuple[str, ...], text: str) -> None:
    after = tuple(word.replace("WANTED", text) for word in QUESTION)
    words = (*words, "--jobs", "1", "--out", "small.txt")
    plain(*words, "--page", "first.html", *after)
    html = (plain.cwd / "first.html").read_text(encoding="utf-8")
    candidates = dict.fromkeys(re.findall(r"\b[0-9a-f]{16}\b", html))
    assert len(candidates) > 5
    assert check(plain, words, after, next(iter(candidates)))["done"]


@pytest.mark.slow
def test_knockout_of_a_kernel(wheel: Smith) -> None:
    words = ("knockout", "add.py:add", *ADD_TYPES, "--jobs", "2")
    skipped = "cuda-80-32 without canonicalize#1"
    answer = check(wheel, words, (), skipped)
    [kernel] = answer["kernels"]
    effects = {f"{row['name']}#{row['number']}": row["verdict"] for row in kernel["passes"]}
    assert effects.pop("canonicalize#1") == "not tested"
    assert "not tested" not in effects.values()


@pytest.mark.slow
def test_reduce_of_a_dump(wheel: Smith) -> None:
    words = ("reduce", "crashed", "--jobs", "1", "--out", "small.mlir")
    assert "there is no run to show" in wheel(*words, "--status").err
    number = json.loads(wheel("passes.isolate", "crashed", "--out", "alone", "--json").out)["numbers"][0]
    done = wheel(*words, "--skip", f"{number} {FAILING}", "--page", "reduced.html")
    assert "nothing is tested under this name" not in done.err
    assert "<table" in (wheel.cwd / "reduced.html").read_text(encoding="utf-8")
    assert (wheel.cwd / "small.mlir").stat().st_size


@pytest.mark.slow
def test_isolate(wheel: Smith) -> None:
    words = ("passes.isolate", "crashed", "--out", "issue")
    whole = json.loads(wheel(*words, "--json").out)
    [number] = whole["numbers"]
    answer = check(wheel, words, (), f"{number} {FAILING}")
    assert answer["numbers"] == [number]
    assert not answer["stripped"], "without locations it was not run"
    words = ("passes.isolate", "crashed", "--pattern", "#blocked")
    assert "there is no run to show" in wheel(*words, "--status").err
    answer = json.loads(wheel(*words, "--confirm", "2", "--json", "--page", "text.html").out)
    assert answer["found"]
    assert "occurs" in (wheel.cwd / "text.html").read_text(encoding="utf-8")
    assert (
        "a single test"
        in wheel("passes.isolate", "crashed", "--when", "wrong", "--confirm", "2", code=2).error
    )


@pytest.mark.slow
def test_blame(wheel: Smith) -> None:
    python = str(wheel.env("wheel") / "venv" / "bin" / "python")
    words = ("blame", "add.py:add", *ADD_TYPES, "--from", "wheel", "--to", python)
    [point] = check(wheel, words, (), "cuda-80-32: ptxas of B in A")["points"]
    flips = {tuple(row["components"]): row for row in point["changed"]}
    assert flips["ptxas",]["in_a"] == {"error": "skipped by hand"}
    assert flips["ptxas",]["in_b"]["figures"] == point["replayed"][1]
