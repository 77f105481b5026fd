"""Oracles, which run passes on a text and report how it fails: by libtriton, `triton-opt`, or any command.

A `PassRunner` holds the passes and the program that runs them, and makes oracles. For `reduce --when wrong`,
the failure is that the passes change what the functions of a file compute.
"""

from __future__ import annotations

import re
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tritonsmith.compiler import call
from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.replay.bindings import Binding, Call
from tritonsmith.compiler.replay.pass_chain import PipelineForm
from tritonsmith.core import process
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import MakeDir, Plan, Run, Write, files
from tritonsmith.ir import ir_text
from tritonsmith.lab import failure
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.reduce.shrink import PendingTest
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import ChildRow, ReadyRow, ReduceRequest
from tritonsmith.worker.passes import MARK

_SIGNALLED = 128  # a shell's exit code for a signal
# The textual pipeline and a pass with options report an unknown option in different words.
_NO_OPTION = re.compile(
    r"(?:<Pass-Options-Parser>: |MLIR Textual PassPipeline Parser:[\d:]+ error: )([^\n]*)"
)
_NO_PASS = re.compile(r"'([^']*)' does not refer to a registered pass")
_QUIET = {"LLVM_DISABLE_SYMBOLIZATION": "1"}  # a stack trace by llvm-symbolizer takes seconds
_ENVIRON = {
    **_QUIET,
    "TRITON_ENABLE_PYTHON_STACKTRACE": "1",  # since 3.2 libtriton prints one when it crashes
    # A user's own would write a file, or megabytes of IR, for each of thousands of candidates.
    "TRITON_REPRODUCER_PATH": None,
    "MLIR_ENABLE_DUMP": None,
    "MLIR_DISABLE_MULTITHREADING": "1",  # several oracles run at once, and the order of messages matters
    "PYTHONDONTWRITEBYTECODE": "1",
}
_NAME = "tritongpu-pipeline{num-stages=3}"


@dataclass(frozen=True)
class OracleResult:
    """The result of running the passes on a text.

    Attributes:
        failure: of the passes; None if they passed, or did not begin.
        began: whether they did: a text that does not parse fails before.
        log: the output, from the first pass on where that is known.
    """

    # An error of the parser is no failure: almost every wrong edit has one, and would pass for the symptom.
    failure: Failure | None
    began: bool
    log: str


class Oracle(Protocol):
    """Runs passes on texts, one at a time, each for a limited number of seconds.

    Each keeps its files in a folder of its own, which must exist.
    """

    def ask(self, text: str) -> OracleResult:
        """Run the passes on a text."""

    def printed(self, text: str) -> str | None:  # noqa: ARG002 - not all can print
        """Return the text as the compiler prints it, without locations; None if it cannot."""
        return None

    def close(self) -> None:
        """Stop the process that runs, if there is one."""
        return  # a body without it is abstract to the type checker


class BindingsOracle(Oracle):
    """A Python with libtriton that stays alive, and runs each text in a child, by one binding for each pass.

    Raises:
        FactError: the interpreter has no Triton.
    """

    def __init__(self, python: Path, calls: Sequence[Call], folder: Path, limit: float) -> None:
        self._input, self._log, self._out = (folder / name for name in ("in.mlir", "log", "out.mlir"))
        self._calls, self.limit = tuple(each.request() for each in calls), limit
        # Importing Triton takes seconds, so it is done once; a child may crash, so each text has its own.
        self._dialogue = call.Conversation(python, "reduce", folder=folder, change=_ENVIRON)
        try:
            self._dialogue.hear(ReadyRow)
        except call.UnansweredError as error:
            self._dialogue.close()
            raise FactError("cannot run any pass", where=python, why=error.why) from error

    def ask(self, text: str) -> OracleResult:
        """Test a text, and return how it fails."""
        answer, log = self._run(text, passes=True)
        # The worker prints the mark when the file is parsed and the passes begin.
        before, mark, rest = log.partition(MARK)
        if answer.status == "ok" or not mark:
            return OracleResult(None, bool(mark), rest or before or answer.error)
        died = re.search(r"the compiler died: (\w+)", answer.error)
        code = re.search(r"exit code (\d+)", answer.error)
        printed = f"{rest.rstrip()}\n{answer.error}\n".lstrip()
        failed = failure.of(
            printed,
            crashed=died[1] if died else "",
            timeout=answer.status == "timeout",
            code=int(code[1]) if code else 1,
        )
        return OracleResult(failed, True, printed)

    def printed(self, text: str) -> str | None:
        """Return the text as the compiler prints it, without locations."""
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
            # Only a text that is read again is printed: thousands of candidates are only asked how they fail.
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

    def ask(self, text: str) -> OracleResult:
        """Test a text, and return how it fails."""
        answer = self._run(text, f"--pass-pipeline={self._pipeline}")
        if answer is None:
            return OracleResult(failure.of("", timeout=True), True, "")
        # This comes before the exit code: a mistake in the command line would pass for the failure of every
        # text.
        if match := _NO_PASS.search(answer.err):
            raise _no_pass(match[1], self._opt)
        if match := _NO_OPTION.search(answer.err):
            what = "this program cannot run the passes with these options"
            hints = ["use the program of the same Triton", f"{self._opt.name} --help lists the options"]
            raise UsageError(what, where=self._opt, why=match[1], hints=hints)
        if answer.code == 0:
            return OracleResult(None, True, answer.err)
        # A script in its place reports a signal as a shell does: 128 and its number.
        number = -answer.code if answer.code < 0 else max(answer.code - _SIGNALLED, 0)
        known = {each.value: each.name for each in signal.Signals}
        crashed = known.get(number, "")
        failed = failure.of(answer.err, crashed=crashed, code=answer.code)
        # `triton-opt` says with the same exit code that a pass failed and that the file does not parse.
        if failed.kind in ("error", "failure"):
            parsed = self._run(text)
            if parsed is None or parsed.code:
                return OracleResult(None, False, answer.err)
        return OracleResult(failed, True, f"{answer.err}\n")

    def printed(self, text: str) -> str | None:
        """Return the text as the compiler prints it, without locations."""
        answer = self._run(text)
        return _without(self._out.read_text(encoding="utf-8")) if answer and answer.code == 0 else None

    def _run(self, text: str, *more: str) -> process.CommandOutput | None:
        files.write(self._input, text)
        argv = (str(self._opt), str(self._input), *more, "--mlir-disable-threading", "-o", str(self._out))
        return process.query(argv, change={**_QUIET, "MLIR_ENABLE_DUMP": None}, timeout=self.limit)


class CommandOracle(Oracle):
    """Any command: exit code 0 says that the text is still interesting.

    In its arguments `{}` stands for the file, which is the last argument if no `{}` is there.
    """

    def __init__(self, argv: Sequence[str], folder: Path, limit: float, name: str = "in.mlir") -> None:
        self._input, self.limit = folder / name, limit
        with_file = list(argv) if any("{}" in word for word in argv) else [*argv, "{}"]
        self._argv = [word.replace("{}", str(self._input)) for word in with_file]

    def ask(self, text: str) -> OracleResult:
        """Test a text, and return how it fails."""
        files.write(self._input, text)
        answer = process.query(self._argv, timeout=self.limit)
        if answer is None:
            # The text is not interesting, as the command has not said that it is.
            why = f"the command did not end within {self.limit:.0f} s, or does not exist"
            return OracleResult(None, True, why)
        printed = f"{answer.out}\n{answer.err}\nexit code {answer.code}\n".lstrip()
        # One kind of failure without a text: what the command looks for is its own affair.
        return OracleResult(Failure("command", "") if answer.code == 0 else None, True, printed)


class OraclePool:
    """Several oracles of one kind, one for each thread that searches for a failure."""

    def __init__(self, members: Sequence[Oracle], sought: Failure) -> None:
        self._free, self._sought = list(members), sought
        self._members, self._lock = tuple(members), threading.Semaphore(len(members))

    def test(self, text: str, _: PendingTest) -> Observation:
        """Test by an oracle that is free whether a text fails in that way."""
        with self._lock:  # as many threads as members: so one is free, but which is not known before
            member = self._free.pop()
            try:
                failed = member.ask(text).failure
            finally:
                self._free.append(member)
        if failed == self._sought:
            return Observation(Verdict.BAD, failure=failed)
        return Observation(Verdict.OTHER if failed else Verdict.GOOD, failure=failed)

    def close(self) -> None:
        """Stop all oracles."""
        for member in self._members:
            member.close()


def _without(text: str) -> str:
    return ir_text.without_locations("mlir", text.encode()).decode().strip() + "\n"


def _no_pass(name: str, opt: Path) -> UsageError:
    listing = process.query((str(opt), "--help"))
    # Passes stand at the left of the help, and their options further to the right.
    known = re.findall(r"^ {4,8}--([a-z][\w-]+) ", listing.out if listing else "", re.MULTILINE)
    near = did_you_mean(name, known)
    return UsageError(f"no pass {name!r}", where=opt, hints=near[:1])


@dataclass(frozen=True)
class PassRunner:
    """Passes, and the program that runs them: one of `python`, `opt` and `command`.

    Attributes:
        pipeline: `builtin.module(tritongpu-coalesce)`; empty for a command.
        python: an interpreter with libtriton.
        calls: the bindings that it calls, one for each pass.
        opt: `triton-opt`.
        command: any other program with arguments; `{}` is the file.
    """

    pipeline: str = ""
    python: Path | None = None
    calls: tuple[Call, ...] = ()
    opt: Path | None = None
    command: tuple[str, ...] = ()

    def oracle(self, folder: Path, limit: float, name: str = "in.mlir") -> Oracle:
        """Return an oracle that runs these passes; the file that a command reads has this name.

        Raises:
            FactError: the interpreter has no Triton.
        """
        if self.command:
            return CommandOracle(self.command, folder, limit, name)
        if self.opt:
            return OptOracle(self.opt, self.pipeline, folder, limit)
        assert self.python is not None  # noqa: S101 - one of the three
        return BindingsOracle(self.python, self.calls, folder, limit)

    @property
    def who(self) -> str:
        """The program that runs them."""
        return self.command[0] if self.command else str(self.opt or self.python)


def forms(text: str) -> tuple[PipelineForm, ...]:
    """Return the passes of a pipeline: `builtin.module(a,b{c=d})` or `a,b{c=d}`.

    Raises:
        UsageError: it names no pass.
    """
    inner = text.strip()
    # Only around everything: `any(a),any(b)` are two nests, and each stays with its passes.
    while inner.startswith((f"{pass_chain.MODULE}(", "any(")) and len(pass_chain.split_form(inner, ",")) == 1:
        inner = inner.partition("(")[2].removesuffix(")").strip()
    parsed = tuple(pass_chain.parse_form(part) for part in pass_chain.split_form(inner, ","))
    if not parsed or not all(form.argument for form in parsed):
        raise UsageError(
            f"--pass cannot be {text!r}", hints=[f"give one or more passes: --pass '{_NAME},cse'"]
        )
    return parsed


def spelled(text: str) -> str:
    """Return a pipeline as `--pass-pipeline` takes it."""
    parts = []
    for form in forms(text):
        inside = form.render()
        # The nest begins with the outermost operation, so the text grows from the inside.
        for operation in reversed(
            [operation_name for operation_name in form.nest if operation_name != pass_chain.MODULE]
        ):
            inside = f"{operation}({inside})"
        parts.append(inside)
    return f"{pass_chain.MODULE}({','.join(parts)})"


def calls(text: str, known: Sequence[Binding], python: Path) -> tuple[Call, ...]:
    """Return bindings for the passes of a pipeline; options that it does not name are the binding's.

    Raises:
        FactError: no binding adds one of them.
        UsageError: an option is missing or unknown.
    """
    return tuple(_call(form, known, python) for form in forms(text))


def _call(form: PipelineForm, known: Sequence[Binding], python: Path) -> Call:
    same = [binding for binding in known if binding.argument == form.argument]
    if not same:
        names = {binding.argument for binding in known if binding.argument}
        raise FactError(
            f"no binding of this Triton adds {form.argument}",
            where=python,
            hints=[
                "triton-opt of a build has every pass: --triton-opt PATH",
                *did_you_mean(form.argument, names),
            ],
        )
    reasons = []
    # A pass may have several bindings, each with its own arguments; the first that fits is called.
    for binding in same:
        pass_call = binding.call(_completed(form, binding))
        if isinstance(pass_call, Call):
            return pass_call
        reasons.append(pass_call)
    shown = sorted({name for binding in same for name in binding.shown().values()})
    words = " ".join(f"{name}=..." for name in shown)
    raise UsageError(
        f"{form.argument} cannot be run with these options",
        why="; ".join(reasons),
        hints=[f"give its options: --pass '{form.argument}{{{words}}}'"] if shown else [],
    )


def _completed(form: PipelineForm, binding: Binding) -> PipelineForm:
    """Add the options that the binding sets by itself, apart from those that are its arguments."""
    arguments = set(binding.shown().values())
    base = {name: value for name, value in binding.tries[0][1].options if name not in arguments}
    return PipelineForm(form.argument, tuple({**base, **dict(form.options)}.items()), form.nest)


class WrongPassRunner(PassRunner):
    """Passes of a libtriton that do not fail, and change what a kernel computes."""

    def oracle(self, folder: Path, limit: float, name: str = "in.mlir") -> WrongPassOracle:  # noqa: ARG002
        """Return an oracle that runs the IR before and after these passes."""
        assert self.python is not None  # noqa: S101 - only bindings print the generic form
        return WrongPassOracle(self.python, self.calls, folder, limit)


class WrongPassOracle(BindingsOracle):
    """Reports how the passes change a result; which element they change may differ from text to text."""

    def __init__(self, python: Path, calls: Sequence[Call], folder: Path, limit: float) -> None:
        super().__init__(python, calls, folder, limit)
        from tritonsmith.check.limited import LimitedChecks  # noqa: PLC0415 - of an extra that may be missing

        self._checks = LimitedChecks(max(round(limit), 1))

    def ask(self, text: str) -> OracleResult:
        """Run a text before and after the passes; no failure if either cannot be run."""
        before, log = self._generic(text, passes=False)
        if before is None:
            return OracleResult(None, began=False, log=log)
        after, log = self._generic(text, passes=True)
        # Passes that fail are another bug than a wrong result.
        if after is None:
            return OracleResult(None, began=True, log=log)
        change, log = self._checks.changed(before, after)
        return OracleResult(Failure("wrong", change) if change else None, began=True, log=log)

    def close(self) -> None:
        """Stop both workers."""
        self._checks.close()
        super().close()

    def _generic(self, text: str, *, passes: bool) -> tuple[str | None, str]:
        answer, log = self._run(text, passes=passes, generic=True)
        if answer.status != "ok":
            return None, f"{log.rstrip()}\n{answer.error}\n".lstrip()
        return self._out.read_text(encoding="utf-8"), log


def find_reducer(opt: Path | None) -> Path | None:
    """Return the reducer beside a `triton-opt` or `mlir-opt`; None if there is none."""
    # A `triton-opt` on PATH may be a link to where it was built, and the reducer is only there.
    beside = [opt.resolve().with_name(name) for name in ("triton-reduce", "mlir-reduce")] if opt else []
    return next((path for path in beside if path.is_file()), None)


def reducer_plan(
    reducer: Path, way: PassRunner, wanted: Failure, source: str, folder: Path, seconds: float
) -> Plan:
    """Plan the steps that write `reduced.mlir` into a folder; the reducer is stopped after some seconds."""
    words = [sys.executable, "-m", "tritonsmith.lab.reduce.oracles"]
    words += [str(way.opt), way.pipeline, wanted.kind, wanted.text]
    script = f'#!/bin/sh\n# Exit code 1: the file fails in the same way.\nexec {shlex.join(words)} "$@"\n'
    argv = (
        "timeout",  # the reducer has no limit of its own
        f"{seconds:.0f}",
        str(reducer),
        str(folder / "given.mlir"),
        f"-reduction-tree=traversal-mode=0 test={folder / 'interesting.sh'}",
        "-o",
        str(folder / "reduced.mlir"),
    )
    return Plan(
        reducer.name,
        (
            MakeDir(folder, phase=reducer.name),
            Write(folder / "given.mlir", source, phase=reducer.name),
            Write(folder / "interesting.sh", script, phase=reducer.name),
            Run(("chmod", "755", str(folder / "interesting.sh")), cwd=folder, phase=reducer.name),
            Run(argv, cwd=folder, phase=reducer.name),
        ),
    )


def main(opt: str, pipeline: str, kind: str, text: str, file: str) -> int:
    """Return the exit code for MLIR's reducer: 1 if a file fails in the same way, 0 if it does not.

    The reducer's script runs this module, with the path of each candidate as the last argument.
    """
    with files.scratch() as folder:
        answer = OptOracle(Path(opt), pipeline, folder, limit=60).ask(Path(file).read_text(encoding="utf-8"))
    failed = answer.failure
    # Its exit codes are the reverse of a shell's: 1 is interesting, 0 is not (mlir/lib/Reducer/Tester.cpp).
    return int(failed is not None and (failed.kind, failed.text) == (kind, text))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
