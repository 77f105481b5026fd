"""`--when wrong`: does a pass change what a kernel computes? Answered by running its IR, without a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tritonsmith.check import report
from tritonsmith.check.kernel_check import check_kernel
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.lab.model import Observation, Verdict


def wrong(
    asked: CompileRequest,
    where: Interpreter,
    folder: Path,
    *,
    silent: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Observation:
    """Report a kernel as BAD where a pass changes its result; that pass is the cause.

    A kernel that cannot be checked to the end is a skip.

    Args:
        asked: the compile, for one target.
        where: who compiles.
        folder: of the dump.
        silent: show no progress.
        stop: returns whether to give up; polled.
    """
    began = time.monotonic()
    try:
        _, answer = check_kernel(asked, where, folder, silent=silent, stop=stop)
    except InterruptedRunError:
        raise
    except SmithError as error:
        why = ": ".join(filter(None, (error.what, (error.why or "").partition("\n")[0])))
        return Observation(Verdict.SKIP, why=why, seconds=time.monotonic() - began)
    sentence, seconds = report.verdict(answer), time.monotonic() - began
    if answer.culprit:
        notes = tuple(line.strip() for line in report.lines(answer) if line.strip() != sentence)
        return Observation(Verdict.BAD, sentence, seconds=seconds, notes=notes, cause=sentence)
    if answer.open:
        return Observation(Verdict.SKIP, why=sentence, seconds=seconds)
    return Observation(Verdict.GOOD, sentence, seconds=seconds)
