"""Whether a candidate shows the symptom: a kernel that is compiled, or a command that looks at the file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Protocol

from tritonsmith.compiler import signature
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.run import WarmCompiler
from tritonsmith.core import process
from tritonsmith.core.plan import files
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.triage.kernel import KernelSubject
from tritonsmith.lab.triage.reduce.kernel_search import KernelCandidate
from tritonsmith.lab.triage.wrong_kernel import WrongKernelSubject

_SAID = 4000  # characters of what a command printed
_NOTHING = Observation(Verdict.OTHER, "the kernel, its signature or the file is rejected")


class Tester(Protocol):
    """Tests one candidate at a time."""

    def test(self, candidate: KernelCandidate) -> Observation:
        """Test a candidate."""

    def close(self) -> None:
        """Stop what runs."""


def request(asked: CompileRequest, candidate: KernelCandidate, file: Path) -> CompileRequest:
    """The compile of a candidate that lies in a file."""
    options = {name: signature.parse_value(text) for name, text in candidate.options}
    return replace(asked, file=file, signature=candidate.signature, options=options)


class CompileTester:
    """Compiles candidates by an interpreter that stays.

    Args:
        subject: the symptom, after its baseline.
        where: who compiles, with the time limit of a try.
        folder: of its own.
        name: of the file.
    """

    def __init__(self, subject: KernelSubject, where: Interpreter, folder: Path, name: str) -> None:
        files.make_folder(folder)
        self._subject, self._folder, self._file = subject, folder, folder / name
        self._compiler = WarmCompiler(where, folder)

    def test(self, candidate: KernelCandidate) -> Observation:
        """Compile it, and look for the symptom."""
        files.write(self._file, candidate.text)
        compile_request = request(self._subject.asked, candidate, self._file)
        compiled = self._compiler.compile(compile_request, self._folder / "out")
        return self._subject.look(compiled) if compiled else _NOTHING

    def close(self) -> None:
        """Stop the interpreter."""
        self._compiler.close()


@dataclass(frozen=True)
class CheckTester:
    """Asks `passes.check` of candidates, each by new processes.

    Attributes:
        subject: the symptom, after its baseline.
        folder: of its own.
        name: of the file.
        limit: seconds of one; a loop may become much longer.
    """

    subject: WrongKernelSubject
    folder: Path
    name: str
    limit: float
    _closed: Event = field(default_factory=Event)

    def test(self, candidate: KernelCandidate) -> Observation:
        """Dump and run its texts."""
        file = self.folder / self.name
        files.make_folder(self.folder)
        files.write(file, candidate.text)
        until = time.monotonic() + self.limit

        def stop() -> bool:
            return self._closed.is_set() or time.monotonic() > until

        return self.subject.check(request(self.subject.asked, candidate, file), self.folder / "dump", stop)

    def close(self) -> None:
        """End the check that runs."""
        self._closed.set()


@dataclass(frozen=True)
class CommandTester:
    """Runs a command on candidates; exit code 0 says that the file shows the symptom.

    Attributes:
        argv: program and arguments; `{}` stands for the file, which comes last if nothing does.
        python: the interpreter whose folder is first on PATH; None for the PATH as it is.
        folder: of its own.
        name: of the file.
        timeout: seconds.
    """

    argv: tuple[str, ...]
    python: Path | None
    folder: Path
    name: str
    timeout: float

    def test(self, candidate: KernelCandidate) -> Observation:
        """Run it, where this tool was called, with a cache of its own."""
        files.make_folder(self.folder)
        file = self.folder / self.name
        files.write(file, candidate.text)
        path = os.environ.get("PATH", "")
        change = {
            "PATH": os.pathsep.join((str(self.python.parent), path)) if self.python else path,
            "TRITON_CACHE_DIR": str(self.folder / "cache"),  # testers run at once
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        argv = with_file(self.argv, file)
        program = process.which(argv[0], change["PATH"]) or argv[0]
        answer = process.query((program, *argv[1:]), change=change, timeout=self.timeout)
        if answer is None:
            return Observation(Verdict.OTHER, f"no end after {self.timeout:.0f} s, or no such program")
        printed = "\n".join(filter(None, (answer.out, answer.err)))[-_SAID:]
        verdict = Verdict.BAD if answer.code == 0 else Verdict.GOOD
        return Observation(verdict, f"exit code {answer.code}", printed)

    def close(self) -> None:
        """Nothing runs between two tests."""
        return


def with_file(argv: Sequence[str], file: Path | str) -> tuple[str, ...]:
    """A command with a file in the place of `{}`."""
    named = argv if any("{}" in word for word in argv) else (*argv, "{}")
    return tuple(word.replace("{}", str(file)) for word in named)


class TesterPool:
    """Several testers, one for each thread that asks.

    Args:
        make: makes the tester of a number.
        count: of them.
    """

    def __init__(self, make: Callable[[int], Tester], count: int) -> None:
        self._free: SimpleQueue[Tester] = SimpleQueue()
        self._all = [make(number) for number in range(count)]
        for tester in self._all:
            self._free.put(tester)

    def test(self, candidate: KernelCandidate) -> Observation:
        """Test a candidate by one of them; what a command prints would fill the journal."""
        tester = self._free.get()
        try:
            return replace(tester.test(candidate), why="")
        finally:
            self._free.put(tester)

    def close(self) -> None:
        """Stop them all."""
        for tester in self._all:
            with suppress(OSError):
                tester.close()
