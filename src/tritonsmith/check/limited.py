"""Run checks in a process of their own, with limits of memory and time: an IR file may be untrusted."""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Self

from tritonsmith.check.answer import CheckedPass, CheckResult, Culprit, Difference, ResultChange
from tritonsmith.check.memory import Contents
from tritonsmith.check.pair import compare_versions
from tritonsmith.check.versions import PairRequest, PairResult
from tritonsmith.compiler.dump.run import WarmDumps
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, SmithError, UndecidedError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.fork_server import ForkServer

_CALL = f"{__name__}:main"
_BEGUN, _ROW, _ANSWER, _ERROR = "begun", "row", "answer", "error"
# An error is raised again as the first of these that it is: subclasses come before their base.
_KINDS = {kind.__name__: kind for kind in (UndecidedError, FactError, SmithError)}
_PAGE = 4096
_SHOWN = 400  # letters of the last line that the process prints
# NumPy's matrix products start a thread for each core, and the threads wait for each other in a busy loop: on
# busy cores that takes a hundred times as long as the product of two tiles. The server forks, so it must have
# no threads anyway.
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


@dataclass
class LimitedChecks:
    """Checks in child processes, one after another. Use it as a context manager, or close it.

    Attributes:
        timeout: seconds that one check may take; None for the usual limit.
        stop: returns whether to give up; polled while a check runs.
    """

    timeout: int | None = None
    stop: Callable[[], bool] = lambda: False
    # Importing xDSL and NumPy takes longer than most checks: each check is a fork of a process that has.
    _server: ForkServer = field(default_factory=lambda: ForkServer(_CALL, environ=_ONE_THREAD))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Start the process that each check is a fork of."""
        self._server.start()

    def close(self) -> None:
        """End the processes."""
        self._server.close()

    def check(self, request: DumpCheckRequest) -> CheckResult:
        """Check the texts of a dump.

        Args:
            request: the kernel.

        Raises:
            FactError: the dump cannot be checked.
            UndecidedError: no text can be run, or none within the limits, or the check was stopped.
        """
        # The process prints a line for each text that it begins and that it has run. So a check that comes to
        # a limit still has the rows before it, and the text that was too much is known.
        rows: list[CheckedPass] = []
        begun: list[CheckedPass] = []

        def hear(kind: str, row: Any) -> None:
            if kind == _ROW:
                rows.append(_row(row))
            elif kind == _BEGUN:
                begun.append(_row(row))

        answer, why = self._run({"check": asdict(request)}, hear)
        if answer is not None:
            return _answer(answer)
        if not any(row.status == "reference" for row in rows):
            raise UndecidedError("nothing of this kernel can be run", where=request.folder, why=why)
        # A text that was begun and has no row is the one that was too much.
        last = begun[len(rows)] if len(begun) > len(rows) else rows[-1]
        open_end = CheckedPass(last.number, last.name, "unknown", why, others=last.others)
        rows = [*rows, open_end] if len(begun) > len(rows) else [*rows[:-1], open_end]
        return CheckResult(request.name, request.target, tuple(rows), None, 0, 0, 0, "", ())

    def changed(self, before: str, after: str) -> tuple[str, str]:
        """Return the change of result from one text to the next, or empty, and a line for the log."""
        answer, why = self._run({"changed": [before, after]}, lambda *_: None)
        return ("", why) if answer is None else (answer[0], answer[1])

    def compare(self, request: PairRequest) -> PairResult:
        """Compare two versions of a kernel; a limit is a reason why the answer is unknown."""
        answer, why = self._run({"pair": asdict(request)}, lambda *_: None)
        return PairResult("unknown", why) if answer is None else PairResult.read(answer)

    def _run(self, request: Mapping[str, Any], hear: Callable[[str, Any], None]) -> tuple[Any, str]:
        """Return a process's answer; None and the reason where it came to a limit.

        Raises:
            SmithError: the error that the check raised.
        """
        table = configs.load("passes-check")["limits"]
        limits = {"timeout": self.timeout or table["timeout"], "memory": table["memory"]}
        messages: dict[str, Any] = {}
        last = ""

        def on_line(line: str) -> None:
            nonlocal last
            kind, _, payload = line.partition(" ")
            if kind in (_ANSWER, _ERROR):
                messages[kind] = json.loads(payload)
            elif kind in (_BEGUN, _ROW):
                hear(kind, json.loads(payload))
            elif line.strip():
                last = line.strip()

        def waiting() -> None:
            if self.stop():
                raise UndecidedError("the check was stopped, or takes too long")

        with files.scratch("check") as folder:
            path = folder / "request.json"
            files.write(path, json.dumps({**request, "limits": limits}))
            code = self._server.run(("passes.check", str(path)), on_line, waiting)
        if _ERROR in messages:
            failure = messages[_ERROR]
            raise _KINDS[failure["kind"]](failure["what"], where=failure["where"], why=failure["why"])
        if _ANSWER in messages:
            return messages[_ANSWER], ""
        return None, _ended(code, limits, last)


@dataclass(frozen=True)
class DumpCheckRequest:
    """A check of a kernel of a dump, by another process that reads the dump again.

    Attributes:
        folder: the dump's folder.
        kernel: the kernel's number in the dump.
        name: its name.
        target: its target.
        texts: the generic form of its texts, by digest.
        seeds: how many inputs; None for the usual number.
        through_llvm: run the texts in LLVM's dialect as well.
        names: names of the kernel's parameters, which older releases do not print.
        until: the pass after whose last run the check ends; empty for all.
    """

    folder: str
    kernel: int
    name: str
    target: str
    texts: dict[str, str]
    seeds: int | None
    through_llvm: bool
    names: tuple[str, ...]
    until: str


@dataclass
class WarmChecks:
    """Processes that stay for the checks of one kernel after the other, each step in a fork. Close it.

    Attributes:
        dumps: dumps a kernel, and prints its IR in generic form.
        checks: runs the IR.
    """

    dumps: WarmDumps
    checks: LimitedChecks = field(default_factory=LimitedChecks)
    # Of the thread that checks: the processes end by another one.
    turn: Lock = field(default_factory=Lock)

    def begin(self, request: CompileRequest) -> None:
        """Start both processes; see `WarmCompiler.begin`."""
        self.dumps.compiler.begin(request)
        self.checks.begin()

    def close(self) -> None:
        """End the processes, once a check that runs has given up."""
        # A compile does not poll whether it is to stop: it ends with its process.
        self.dumps.compiler.close()
        with self.turn:
            self.checks.close()


def _request(row: Mapping[str, Any]) -> DumpCheckRequest:
    return DumpCheckRequest(**{**row, "names": tuple(row["names"])})


def _ended(code: int, limits: Mapping[str, int], last: str) -> str:
    """Return why a process has ended without an answer.

    Raises:
        SmithError: the cause was not a limit.
    """
    if code == -signal.SIGALRM:
        return f"the check takes longer than {limits['timeout']} s (--timeout)"
    # Where there is no memory left, the kernel kills the process, and C++ code aborts or crashes.
    if code in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV):
        name, most = signal.Signals(-code).name, f"{limits['memory']} MiB of memory"
        return f"the process of the check died by {name}: it may take no more than {most}"
    raise SmithError("the process of the check has failed", why=f"exit code {code}: {last[:_SHOWN]}")


def main() -> None:
    """Run a check in the child process: `sys.argv` names the request."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    from tritonsmith.check import check  # noqa: PLC0415 - they import this module

    # `no_memory` names the limit, which the parent may have set.
    configs.load("passes-check")["limits"].update(request["limits"])
    _limit(**request["limits"])
    try:
        if "changed" in request:
            _say(_ANSWER, check.changed_result(*request["changed"]))
        elif "pair" in request:
            _say(_ANSWER, asdict(compare_versions(PairRequest.read(request["pair"]))))
        else:
            _say(_ANSWER, asdict(check.in_process(_request(request["check"]), _begun, _done)))
    except SmithError as error:
        kind = next(name for name, cls in _KINDS.items() if isinstance(error, cls))
        where = str(error.where) if error.where else None
        _say(_ERROR, {"kind": kind, "what": error.what, "where": where, "why": error.why})
    except MemoryError:
        _say(_ERROR, {"kind": "UndecidedError", "what": "nothing of this kernel can be run", "where": None,
                      "why": no_memory()})  # fmt: skip


def no_memory() -> str:
    """Return the sentence for a text that needs more memory than a check may take."""
    most = configs.load("passes-check")["limits"]["memory"]
    return f"it needs more than the {most} MiB of memory that a check may take"


def _limit(timeout: int, memory: int) -> None:
    """Limit this process: a short text may describe an enormous computation."""
    # By default SIGALRM kills, even in the middle of a long call of NumPy, where a Python handler would wait.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(timeout)
    with suppress(ValueError, OSError):  # macOS refuses a limit of memory
        # On top of what is mapped already: libraries of NumPy map a gigabyte, and use little of it.
        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * _PAGE
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = taken + (memory << 20)
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def _begun(row: CheckedPass) -> None:
    _say(_BEGUN, asdict(row))


def _done(row: CheckedPass) -> None:
    _say(_ROW, asdict(row))


def _say(kind: str, value: Any) -> None:
    print(kind, json.dumps(value), flush=True)


def _row(row: Mapping[str, Any]) -> CheckedPass:
    return CheckedPass(**{**row, "others": tuple(row["others"])})


def _answer(content: Mapping[str, Any]) -> CheckResult:
    passes = tuple(map(_row, content["passes"]))
    culprit = _culprit(content["culprit"]) if content["culprit"] else None
    return CheckResult(**{**content, "passes": passes, "culprit": culprit, "gaps": tuple(content["gaps"])})


def _culprit(content: Mapping[str, Any]) -> Culprit:
    difference = content["difference"]
    typed = {
        "checked": _row(content["checked"]),
        "change": ResultChange(content["change"]),
        "difference": Difference(**difference) if difference else None,
        "program": tuple(content["program"]),
        "contents": Contents(content["contents"]),
        "suspects": tuple(content["suspects"]),
    }
    return Culprit(**{**content, **typed})
