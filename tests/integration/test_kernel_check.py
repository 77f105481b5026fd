"""Two versions of a kernel, compiled by the newest wheel and compared."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.integration.harness import Smith, git
from tests.unit.check.refactored import KERNELS, PLANTED, SIGNATURES, family

SUBTRACT = ("--signature", SIGNATURES["subtract"])


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    folder = tmp_path_factory.mktemp("kernel-check")
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    return with_wheel.beside(folder)


def test_a_refactoring_is_the_same(smith: Smith) -> None:
    done = smith(
        "kernel.check", "kernels.py:subtract", "--against", "kernels.py:subtract_in_a_loop", *SUBTRACT
    )
    assert "subtract and subtract_in_a_loop are the same bit by bit" in done.out
    assert "elements written: OUT" in done.out


def test_a_bug_is_a_verdict(smith: Smith) -> None:
    planted = ("kernels.py:subtract", "--against", "kernels.py:subtract_one_more", *SUBTRACT)
    done = smith("kernel.check", *planted, "--json", code=1)
    told = json.loads(done.out)
    assert told["outcome"] == "different"
    assert told["compared"][0]["witness"]["element"]["before"] is None


def test_a_race_is_undecided_and_has_its_line(smith: Smith) -> None:
    line = 1 + KERNELS.splitlines().index("    tl.store(OUT + at // 2, x, mask=at < n)")
    kernel = ("kernels.py:halves", "--signature", SIGNATURES["halves"])
    done = smith("kernel.check", *kernel, "--against", "kernels.py:halves_of_the_last", code=5)
    assert "OUT[0] of halves depends on which thread comes last" in done.out
    assert f"kernels.py:{line})" in done.out
    checked = smith("passes.check", *kernel, "--target", "sm_90", "--seeds", "1", "--json", code=5)
    told = json.loads(checked.out)
    assert told["outcome"] == "undecided"
    assert told["reasons"] == [told["racing"]]
    assert told["racing"].startswith("OUT[0] depends on which thread comes last (")
    assert told["racing"].endswith(f"kernels.py:{line})")


def test_what_cannot_be_compared_is_undecided(smith: Smith) -> None:
    flags = ("--signature-b", SIGNATURES["norm"])
    done = smith(
        "kernel.check", "kernels.py:subtract", "--against", "kernels.py:norm", *SUBTRACT, *flags, code=5
    )
    assert "points to" in done.out or "undecided" in done.out


@pytest.mark.slow
def test_configs_are_compared_with_the_first(smith: Smith) -> None:
    signature = SIGNATURES["norm"].removesuffix(",BLOCK=64")
    sweep = ("--sweep", "BLOCK=64,128,256", "--signature", signature, "--grid", "3")
    done = smith("kernel.check", "kernels.py:norm", *sweep)
    assert done.out.count("the same within the tolerance") == 2
    assert "against BLOCK=64" in done.out


@pytest.mark.slow
def test_another_config_and_another_commit(smith: Smith) -> None:
    other = smith("kernel.check", "kernels.py:subtract", "--against", "BLOCK=32", *SUBTRACT)
    assert "are the same bit by bit" in other.out
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "kernels.py"), ("commit", "-qm", "one")):
        subprocess.run((*git, *words), cwd=smith.cwd, check=True)
    file = smith.cwd / "kernels.py"
    file.write_text(KERNELS.replace("x - y", "x + y", 1), encoding="utf-8")
    versions = ("kernels.py@HEAD:subtract", "--against", "kernels.py:subtract")
    assert (
        "subtract@HEAD and subtract are different" in smith("kernel.check", *versions, *SUBTRACT, code=1).out
    )
    file.write_text(KERNELS, encoding="utf-8")


HELPER = """import triton


@triton.jit
def twice(x):
    return x * 2
"""
CALLER = """import triton
import triton.language as tl
from helper import twice


@triton.jit
def scaled(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, twice(tl.load(x_ptr + at, mask=at < n)), mask=at < n)
"""
LIST = '[[kernel]]\nfile = "k.py"\nsignature = "*fp32:16,i32:16,BLOCK=256"\ntargets = ["h100"]\n'


@pytest.mark.slow
def test_a_change_that_no_longer_compiles_fails_and_has_its_line(
    with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    for name, text in (("helper.py", HELPER), ("k.py", CALLER), ("kernels.toml", LIST)):
        (folder / name).write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    smith = with_wheel.beside(folder)
    for name, old, new, line in (
        ("k.py", "at = tl", "at = (tl", "k.py:8: scaled: k does not compile, and k@"),
        ("helper.py", "x * 2", "x * (", "helper.py:6: scaled: cannot run this file: SyntaxError"),
        ("helper.py", "x * 2", "x * gone", "to ttir: NameError('gone is not defined')"),
        ("kernels.toml", "i32:16", "fp33", "the signature gives n the type 'fp33'"),
    ):
        edited = folder / name
        edited.write_text(edited.read_text().replace(old, new))
        if name == "kernels.toml":
            (folder / "k.py").write_text(CALLER.replace("twice(", "1 + twice("))
        done = smith("kernel.check", "--changed", code=1)
        assert line in done.out
        assert "\nbroken: " in done.out
        git(folder, "checkout", "--quiet", ".")
    git(folder, "mv", "k.py", "moved.py")
    (folder / "moved.py").write_text(CALLER.replace("at < n)), mask", "at < n) * 1.0), mask"))
    (folder / "kernels.toml").write_text(LIST.replace("k.py", "moved.py"))
    assert "\nsame: 1 kernel changed since" in smith("kernel.check", "--changed").out
    git(folder, "rm", "--quiet", "--cached", "--force", "moved.py")
    # Git knows nothing of it, so it is new.
    assert "\nnothing was compared: 1 kernel changed since" in smith("kernel.check", "--changed").out


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for names in PLANTED.values() for name in names])
def test_each_planted_bug_is_found_in_its_source(smith: Smith, name: str) -> None:
    kernel = ("kernels.py:" + family(name), "--against", f"kernels.py:{name}")
    smith("kernel.check", *kernel, "--signature", SIGNATURES[family(name)], code=1)
