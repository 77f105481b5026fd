"""Oracles that report how a text fails: a worker with libtriton, a build's `triton-opt`, or any command."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tritonsmith.compiler import call
from tritonsmith.compiler.replay.bindings import Call
from tritonsmith.core import process
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import files
from tritonsmith.ir import strip_locations
from tritonsmith.lab import failure
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import ChildRow, ReadyRow, ReduceRequest
from tritonsmith.worker.passes import MARK

_SIGNALLED = 128  # a shell's exit code for a signal
_NO_OPTION = re.compile(
    r"(?:<Pass-Options-Parser>: |MLIR Textual PassPipeline Parser:[\d:]+ error: )([^\n]*)"
)
_NO_PASS = re.compile(r"'([^']*)' does not refer to a registered pass")
_QUIET = {"LLVM_DISABLE_SYMBOLIZATION": "1"}  # a stack trace by llvm-symbolizer takes seconds
_ENVIRON = {
    **_QUIET,
    "TRITON_ENABLE_PYTHON_STACKTRACE": "1",  # since 3.2 libtriton prints one when it crashes
    "TRITON_REPRODUCER_PATH": None,
    "MLIR_ENABLE_DUMP": None,
    "MLIR_DISABLE_MULTITHREADING": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class OracleAnswer:
    """The outcome for a text.

    Attributes:
        failure: of the passes; None if they passed, or did not begin.
        began: whether they did: what does not parse fails before.
        log: what was printed, from the first pass on where that is known.
    """

    failure: Failure | None
    began: bool
    log: str


class Oracle(Protocol):
    """Runs passes on texts, one at a time, each for a limited number of seconds.

    An oracle keeps its files in a folder of its own, which must exist.
    """

    def ask(self, text: str) -> OracleAnswer:
        """Test a text, and return how it fails."""

    def printed(self, text: str) -> str | None:  # noqa: ARG002 - not all can print
        """The text as the compiler prints it, without locations; None if it cannot."""
        return None

    def close(self) -> None:
        """Stop what runs, if something does."""
        return  # a body without it is abstract to the type checker


class BindingsOracle(Oracle):
    """A Python with libtriton that stays, and runs each text in a child, by one binding for each pass.

    Raises:
        FactError: the interpreter has no Triton.
    """

    def __init__(self, python: Path, calls: Sequence[Call], folder: Path, limit: float) -> None:
        self._input, self._log, self._out = (folder / name for name in ("in.mlir", "log", "out.mlir"))
        self._calls, self.limit = tuple(each.request() for each in calls), limit
        self._dialogue = call.Conversation(python, "reduce", folder=folder, change=_ENVIRON)
        try:
            self._dialogue.hear(ReadyRow)
        except call.UnansweredError as error:
            self._dialogue.close()
            raise FactError("cannot run any pass", where=python, why=error.why) from error

    def ask(self, text: str) -> OracleAnswer:
        """Test a text, and return how it fails."""
        answer, log = self._run(text, passes=True)
        before, mark, rest = log.partition(MARK)
        if answer.status == "ok" or not mark:
            return OracleAnswer(None, bool(mark), rest or before or answer.error)
        died = re.search(r"the compiler died: (\w+)", answer.error)
        code = re.search(r"exit code (\d+)", answer.error)
        said = f"{rest.rstrip()}\n{answer.error}\n".lstrip()
        found = failure.of(
            said,
            crashed=died[1] if died else "",
            timeout=answer.status == "timeout",
            code=int(code[1]) if code else 1,
        )
        return OracleAnswer(found, True, said)

    def printed(self, text: str) -> str | None:
        """The text as the compiler prints it, without locations."""
        answer, _ = self._run(text, passes=False)
        if answer.status != "ok":
            return None
        return _without(self._out.read_text(encoding="utf-8"))

    def close(self) -> None:
        """Stop the worker."""
        self._dialogue.close()

    def _run(self, text: str, *, passes: bool, generic: bool = False) -> tuple[ChildRow, str]:
        files.write(self._input, text)
        request = ReduceRequest(
            input=str(self._input),
            calls=self._calls if passes else (),
            log=str(self._log),
            out="" if passes and not generic else str(self._out),
            generic=generic,
            timeout=self.limit,
        )
        self._dialogue.say(text_of(request))
        answer = self._dialogue.hear(ChildRow)
        return answer, self._log.read_text(encoding="utf-8", errors="replace")


class OptOracle(Oracle):
    """`triton-opt`, or another program that takes `--pass-pipeline=builtin.module(cse)`."""

    def __init__(self, opt: Path, pipeline: str, folder: Path, limit: float) -> None:
        self._opt, self._pipeline, self.limit = opt, pipeline, limit
        self._input, self._out = folder / "in.mlir", folder / "out.mlir"

    def ask(self, text: str) -> OracleAnswer:
        """Test a text, and return how it fails."""
        answer = self._run(text, f"--pass-pipeline={self._pipeline}")
        if answer is None:
            return OracleAnswer(failure.of("", timeout=True), True, "")
        if match := _NO_PASS.search(answer.err):
            raise _no_pass(match[1], self._opt)
        if match := _NO_OPTION.search(answer.err):
            what = "this program cannot run the passes with these options"
            hints = ["use the program of the same Triton", f"{self._opt.name} --help lists the options"]
            raise UsageError(what, where=self._opt, why=match[1], hints=hints)
        if answer.code == 0:
            return OracleAnswer(None, True, answer.err)
        number = -answer.code if answer.code < 0 else max(answer.code - _SIGNALLED, 0)
        crashed = signal.Signals(number).name if number in {one.value for one in signal.Signals} else ""
        found = failure.of(answer.err, crashed=crashed, code=answer.code)
        if found.kind in ("error", "failure"):  # the parser's own, perhaps
            parsed = self._run(text)
            if parsed is None or parsed.code:
                return OracleAnswer(None, False, answer.err)
        return OracleAnswer(found, True, f"{answer.err}\n")

    def printed(self, text: str) -> str | None:
        """The text as the compiler prints it, without locations."""
        answer = self._run(text)
        return _without(self._out.read_text(encoding="utf-8")) if answer and answer.code == 0 else None

    def _run(self, text: str, *more: str) -> process.CommandOutput | None:
        files.write(self._input, text)
        argv = (str(self._opt), str(self._input), *more, "--mlir-disable-threading", "-o", str(self._out))
        return process.query(argv, change={**_QUIET, "MLIR_ENABLE_DUMP": None}, timeout=self.limit)


class CommandOracle(Oracle):
    """Any command: exit code 0 says that the text is still interesting.

    In its arguments `{}` stands for the file, which comes last if nothing does.
    """

    def __init__(self, argv: Sequence[str], folder: Path, limit: float, name: str = "in.mlir") -> None:
        self._input, self.limit = folder / name, limit
        with_file = list(argv) if any("{}" in word for word in argv) else [*argv, "{}"]
        self._argv = [word.replace("{}", str(self._input)) for word in with_file]

    def ask(self, text: str) -> OracleAnswer:
        """Test a text, and return how it fails."""
        files.write(self._input, text)
        answer = process.query(self._argv, timeout=self.limit)
        if answer is None:
            why = f"the command did not end within {self.limit:.0f} s, or does not exist"
            return OracleAnswer(None, True, why)
        said = f"{answer.out}\n{answer.err}\nexit code {answer.code}\n".lstrip()
        return OracleAnswer(Failure("command", "") if answer.code == 0 else None, True, said)


class OraclePool:
    """Several oracles of one kind, one for each thread that asks for a failure."""

    def __init__(self, members: Sequence[Oracle], wanted: Failure) -> None:
        self._free, self._wanted = list(members), wanted
        self._members, self._lock = tuple(members), threading.Semaphore(len(members))

    def test(self, text: str) -> Observation:
        """Ask one of them whether a text fails in that way."""
        with self._lock:
            member = self._free.pop()
            try:
                failed = member.ask(text).failure
            finally:
                self._free.append(member)
        if failed == self._wanted:
            return Observation(Verdict.BAD, failure=failed)
        return Observation(Verdict.OTHER if failed else Verdict.GOOD, failure=failed)

    def close(self) -> None:
        """Stop them all."""
        for one in self._members:
            one.close()


def _without(text: str) -> str:
    return strip_locations.without("mlir", text.encode()).decode().strip() + "\n"


def _no_pass(name: str, opt: Path) -> UsageError:
    listing = process.query((str(opt), "--help"))
    known = re.findall(r"^ {4,8}--([a-z][\w-]+) ", listing.out if listing else "", re.MULTILINE)
    near = did_you_mean(name, known)
    return UsageError(f"no pass {name!r}", where=opt, hints=near[:1])
