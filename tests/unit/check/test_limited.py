"""Limits of memory and time: what an IR file costs is bounded, whatever it says."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.unit.check.texts import ADD, LOOP, checked, indexed
from tritonsmith.check import limited
from tritonsmith.check.answer import CheckedPass
from tritonsmith.check.evaluate import EvaluatedProgram
from tritonsmith.check.limited import DumpCheckRequest, LimitedChecks
from tritonsmith.check.memory import GlobalMemory, base
from tritonsmith.check.module import UnsupportedIrError, name_of, parse
from tritonsmith.check.program import EndlessError
from tritonsmith.compiler.dump.index import FILE
from tritonsmith.core import configs
from tritonsmith.core.errors import UndecidedError

pytestmark = pytest.mark.unit

LARGE = '%b{} = "arith.constant"() <{{value = dense<1> : tensor<4194304xi64>}}> : () -> tensor<4194304xi64>\n'
# One that takes minutes to parse, and one whose values need more than 100 MiB.
SLOW = ADD.replace("    %pid =", "".join(LARGE.format(number) for number in range(2000)) + "    %pid =")
SUM = '%s = "arith.addi"(%b0, %b0) : (tensor<4194304xi64>, tensor<4194304xi64>) -> tensor<4194304xi64>\n'
WIDE = ADD.replace("    %pid =", LARGE.format(0) + SUM * 1 + "    %pid =")


def request(folder: Path, *texts: str) -> DumpCheckRequest:
    """What a check of these texts is asked with, as files of a dump."""
    index = indexed(texts, folder)
    for dump, text in zip(index.dumps, texts, strict=True):
        (folder / dump.path).write_text(text, encoding="utf-8")
    (folder / FILE).write_text(index.render(), encoding="utf-8")
    return DumpCheckRequest(
        str(folder),
        kernel=0,
        name="k",
        target="cuda:90",
        texts={dump.sha256: text for dump, text in zip(index.dumps, texts, strict=True)},
        seeds=3,
        through_llvm=False,
        names=(),
        until="",
    )


def process_of(checks: LimitedChecks) -> int:
    """The process that forks for each check."""
    assert checks._server._process
    return checks._server._process.pid


@pytest.mark.slow
def test_another_process_answers_as_this_one_does(tmp_path: Path) -> None:
    wrong = ADD.replace('"arith.mulf"', '"arith.divf"')
    with LimitedChecks() as checks:
        answer = checks.check(request(tmp_path, ADD, ADD.replace("%sum", "%other"), wrong))
        assert asdict(answer) == asdict(checked(ADD, ADD.replace("%sum", "%other"), wrong))
        assert checks.changed(ADD, wrong) == ("result", "wrong: result")
        with pytest.raises(UndecidedError, match="nothing of this kernel can be run") as caught:
            checks.check(request(tmp_path, ADD.replace('"arith.mulf"', '"tt.strange"')))
    assert "tt.strange" in (caught.value.why or "")


@pytest.mark.slow
def test_a_check_ends_when_its_time_is_over(tmp_path: Path) -> None:
    with LimitedChecks(timeout=1) as checks, pytest.raises(UndecidedError) as caught:
        checks.check(request(tmp_path, SLOW, ADD))
    assert caught.value.why == "the check takes longer than 1 s (--timeout)"


@pytest.mark.slow
def test_what_was_checked_until_the_time_is_over_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm of the limit comes while the third text is read, however fast this machine is."""
    rows: list[CheckedPass] = []
    real = limited._row

    def row_of(content: Mapping[str, Any]) -> CheckedPass:
        rows.append(real(content))
        return rows[-1]

    def stop() -> bool:
        if len(rows) == 5:  # two texts were begun and have ended, and the third was begun
            (child,) = psutil.Process(process_of(checks)).children()
            child.send_signal(signal.SIGALRM)
        return False

    monkeypatch.setattr(limited, "_row", row_of)
    with LimitedChecks(timeout=600, stop=stop) as checks:
        answer = checks.check(request(tmp_path, ADD, ADD.replace("%sum", "%other"), SLOW))
    assert [one.status for one in answer.passes] == ["reference", "equal", "unknown"]
    assert answer.reasons == ["the check takes longer than 600 s (--timeout)"]
    assert answer.culprit is None


@pytest.mark.slow
def test_a_text_that_needs_much_memory_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(configs.load("passes-check")["limits"], "memory", 40)
    with LimitedChecks() as checks:
        answer = checks.check(request(tmp_path, ADD, WIDE))
    assert [one.status for one in answer.passes] == ["reference", "unknown"]
    assert answer.reasons == ["it needs more than the 40 MiB of memory that a check may take"]


def test_a_check_that_is_stopped_is_no_answer(tmp_path: Path) -> None:
    with LimitedChecks(stop=lambda: True) as checks, pytest.raises(UndecidedError, match="was stopped"):
        checks.check(request(tmp_path, ADD, SLOW))


@pytest.mark.parametrize("shape", ["1000000000", "65536x65536", "9" * 5000])
def test_a_constant_of_many_elements_is_refused_before_it_is_written_out(shape: str) -> None:
    large = LARGE.format(0).replace("4194304", shape)
    with pytest.raises(UnsupportedIrError, match="of more than 4194304 elements"):
        parse(ADD.replace("    %pid =", large + "    %pid ="))


def test_a_value_that_nothing_needs_any_more_is_given_back() -> None:
    many = 'X = "arith.addi"(%at, %at) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>\n'
    lines = "".join(many.replace("X", f"%v{number}") for number in range(100))
    module = parse(ADD.replace("    %ns =", lines + "    %ns ="))
    functions = {"add": next(one for one in module.walk() if name_of(one) == "tt.func")}
    run = EvaluatedProgram(functions, GlobalMemory(1), (0, 0, 0), (1, 1, 1), 1000)
    kept: list[int] = []
    run.recorder = lambda *_: kept.append(len(run._values))
    run.launch("add", (*(np.asarray(np.int64(base(number))) for number in range(3)), np.asarray(np.int32(7))))
    assert len(kept) > 100
    assert max(kept) < 15


def test_a_loop_that_is_too_long_is_not_begun() -> None:
    """A bound that is the largest integer: 200000 turns would take long."""
    module = parse(LOOP)
    functions = {"loop": next(one for one in module.walk() if name_of(one) == "tt.func")}
    run = EvaluatedProgram(functions, GlobalMemory(1), (0, 0, 0), (1, 1, 1), 200_000)
    ran: list[str] = []
    run.recorder = lambda operation, _: ran.append(name_of(operation))
    given = (*(np.asarray(np.int64(base(number))) for number in range(2)), np.asarray(np.int32(2**31 - 1)))
    with pytest.raises(EndlessError):
        run.launch("loop", given)
    assert len(ran) < 20
