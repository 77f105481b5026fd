"""`passes.knockout --llvm`: what each of LLVM's passes does, read off compiles that stop after it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.compare.making import point, written
from tests.unit.lab.fake_subject import FakeSubject
from tritonsmith.compiler import run, targets
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Status
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError
from tritonsmith.lab import knockout
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.knockout import Knockout
from tritonsmith.worker import libtriton

LOG = """BISECT: running pass (1) sroa on function (k)
other
BISECT: running pass (2) Loop Strength Reduction on loop
BISECT: NOT running pass (3) nothing
BISECT: running pass (3) instcombine on loop %<unnamed loop> in function k
"""
CODES = {0: "a", 1: "a", 2: "b", 3: "c", -1: "c"}  # machine code by the limit


def result(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: str = LOG,
    fails: int = 9,
    skip: tuple[str, ...] = (),
    how: Status = "failed",
) -> Knockout:
    """Of a compiler that makes these codes; it fails at one limit."""

    def compile_all(asked: CompileRequest, _where: Interpreter, out: Path, **_: Any) -> Manifest:
        limits = [int(one.llvm[0].partition("=")[2]) for one in asked.variants]
        status: dict[bool, Status] = {True: how, False: "ok"}
        points = [
            replace(point(rest=f"-{limit}", status=status[limit == fails]), log=log) for limit in limits
        ]
        made = written(out, points, texts={"ptx": ""})
        for limit, one in zip(limits, made.points, strict=True):
            if "ptx" in one.stages:
                (out / one.stages["ptx"].path).write_text(f"mov {CODES[limit]};\n", encoding="utf-8")
        return made

    monkeypatch.setattr(run, "compile_all", compile_all)
    asked = CompileRequest(tmp_path / "k.py", "k", "*fp32", targets.parse_all(("sm_90",)))
    where = Interpreter(Path(sys.executable), workspace.default(), tmp_path, jobs=1, timeout=60)
    (found,), _ = knockout.execute(asked, where, tmp_path / "out", Rules(skip=skip), llvm=True)
    return found


def effects_of(knockout: Knockout) -> list[str]:
    return [knocked.effect for knocked in knockout.passes]


def test_each_run_is_held_against_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = result(tmp_path, monkeypatch)
    assert [(one.number, one.name, one.unit, one.effect) for one in found.passes] == [
        (0, "no pass", "", "no effect"),
        (1, "sroa", "function (k)", "no effect"),
        (2, "Loop Strength Reduction", "loop", "changes the code"),
        (3, "instcombine", "loop %<unnamed loop> in function k", "changes the code"),
    ]


def test_a_limit_at_which_nothing_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = result(tmp_path, monkeypatch, fails=1)
    assert effects_of(found)[1:] == [
        "does not compile",
        "changes the code",
        "changes the code",
    ]


def test_a_limit_at_which_a_compile_times_out_is_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = result(tmp_path, monkeypatch, fails=1, how="timeout")
    assert effects_of(found) == [
        "no effect",
        "timed out",
        "not tested",
        "changes the code",
    ]


def test_a_limit_that_is_skipped_hides_what_its_run_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = result(tmp_path / "whole", monkeypatch)
    found = result(tmp_path, monkeypatch, skip=("cuda-90-32--1 to 1",))
    assert effects_of(whole) == ["no effect", "no effect", *["changes the code"] * 2]
    assert effects_of(found) == [
        "no effect",
        "not tested",
        "not tested",
        "changes the code",
    ]


@pytest.mark.parametrize("log", ["", "BISECT: running pass (2) sroa on function (k)"])
def test_a_list_that_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str) -> None:
    with pytest.raises(FactError, match="LLVM's passes cannot be counted"):
        result(tmp_path, monkeypatch, log=log)


def test_a_kernel_that_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SmithError, match="does not compile with all its passes"):
        result(tmp_path, monkeypatch, fails=-1)


@pytest.mark.parametrize(("flag", "short"), [("opt-bisect-limit=-1", True), ("disable-lsr", False)])
def test_a_log_with_dumps_keeps_the_list_alone(tmp_path: Path, flag: str, short: bool) -> None:
    log, text = tmp_path / "log", f"{LOG}# Machine code for function k\n" + "  S_ENDPGM 0\n" * 40000
    log.write_text(text, encoding="utf-8")
    libtriton.shorten(str(log), (flag,))
    listed = "".join(line for line in LOG.splitlines(keepends=True) if line.startswith("BISECT"))
    assert log.read_text(encoding="utf-8") == (listed if short else text)
    log.write_text(LOG, encoding="utf-8")
    libtriton.shorten(str(log), (flag,))
    assert log.read_text(encoding="utf-8") == LOG


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True, False], ids=["workspace", "--out"])
def test_what_was_compiled_before_a_kill_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    """But for the compile with all passes, which has to be as it was."""
    monkeypatch.setattr(knockout, "_PORTION", 1)
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    (tmp_path / "k.py").write_text("import triton\n@triton.jit\ndef k(a): pass\n", encoding="utf-8")
    whole = result(tmp_path, monkeypatch)
    fake, mortal = run.compile_all, FakeSubject(int, killed=KeyboardInterrupt)

    def killed(asked: CompileRequest, *argv: Any, **more: Any) -> Manifest:
        for one in asked.variants:
            mortal.ask(one.llvm[0].partition("=")[2])
        return fake(asked, *argv, **more)

    monkeypatch.setattr(run, "compile_all", killed)
    asked = CompileRequest(tmp_path / "k.py", "k", "*fp32", targets.parse_all(("sm_90",)))
    where = Interpreter(Path(sys.executable), workspace.default(), tmp_path, jobs=1, timeout=60)
    out = None if inside else tmp_path / "mine"
    for compiles in (0, 2, 3):
        mortal.lives = len(mortal.tested) + compiles
        # The baseline is compiled before the loop, whose error tells that the next run goes on.
        with pytest.raises((KeyboardInterrupt, InterruptedRunError)):
            knockout.execute(asked, where, out, llvm=True)
    mortal.lives = -1
    (found,), _ = knockout.execute(asked, where, out, llvm=True)
    assert mortal.tested == ["-1", "0", "-1", "1", "2", "-1", "3"]
    assert [(one.name, one.effect, one.row.values) for one in found.passes] == [
        (one.name, one.effect, one.row.values) for one in whole.passes
    ]
    knockout.execute(asked, where, out, llvm=True)
    assert mortal.tested[7:] == ["-1", "0", "1", "2", "3"], "what has ended begins anew"
