"""Two versions of a kernel, compiled by the newest wheel and compared."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.integration.harness import Smith
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


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for names in PLANTED.values() for name in names])
def test_each_planted_bug_is_found_in_its_source(smith: Smith, name: str) -> None:
    kernel = ("kernels.py:" + family(name), "--against", f"kernels.py:{name}")
    smith("kernel.check", *kernel, "--signature", SIGNATURES[family(name)], code=1)
