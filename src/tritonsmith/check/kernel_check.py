"""Check a kernel with one Triton: dump it, then check the dump."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tritonsmith.check import check
from tritonsmith.check.answer import CheckAnswer
from tritonsmith.check.interpreter import TritonInterpreter, parameters
from tritonsmith.check.predicate import single
from tritonsmith.compiler.dump import run
from tritonsmith.compiler.dump.index import DumpIndex, choose_kernel
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import UndecidedError


def check_kernel(
    asked: CompileRequest,
    where: Interpreter,
    out: Path | None = None,
    seeds: int | None = None,
    *,
    silent: bool = False,
    through_llvm: bool = False,
    interpreted: bool = False,
    stop: Callable[[], bool] = lambda: False,
    timeout: int | None = None,
) -> tuple[DumpIndex, CheckAnswer]:
    """Dump a kernel, and check the dump.

    Args:
        asked: the compile request.
        where: the interpreter with the Triton to use.
        out: folder of the dump; one in the workspace if None.
        seeds: how many inputs; None for the usual number.
        silent: show no progress.
        through_llvm: run the IR in LLVM's dialect as well.
        interpreted: compare the first text with TRITON_INTERPRET=1.
        stop: returns whether to give up; polled.
        timeout: seconds that the check may take; None for the usual limit.

    Raises:
        UsageError: the request has several targets or variants.
        SmithError: the kernel does not compile, or its IR cannot be run.
    """
    prepared = run.of_kernel(single(asked), where, Choices(), out)
    index, compiled = run.dump_kernel(prepared, silent=silent)
    failed = next((point for point in compiled.points if point.status != "ok"), None)
    if failed and not index.dumps:  # in the front end: no pass ran
        raise UndecidedError("the kernel does not compile", where=asked.file, why=failed.error)
    run.check(index)
    kernel = choose_kernel(index, index.kernels[0].name)
    against = TritonInterpreter(prepared.compile, where, silent=silent) if interpreted else None
    answer = check.check(
        index,
        kernel,
        where.python,
        where.space,
        seeds,
        silent=silent,
        through_llvm=through_llvm,
        against=against,
        names=tuple(name for name, _ in parameters(prepared.compile)),
        stop=stop,
        timeout=timeout,
    )
    return index, answer
