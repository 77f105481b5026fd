"""Testers of candidates, which compile them or run a command, and the file of the smallest one.

The file has a comment on the symptom, the kernel, and code that compiles it without this tool.
"""

from __future__ import annotations

import ast
import math
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any, Protocol

from tritonsmith.compiler import call, request, signature, source
from tritonsmith.compiler.dump.run import WarmDumps
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompilePoint, CompileRequest
from tritonsmith.compiler.run import WarmCompiler
from tritonsmith.compiler.signature import CONSTEXPR, spell_value
from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.programs import CapturedProgram
from tritonsmith.core.text import version_key
from tritonsmith.lab.journal import UNNEEDED, Observation, Verdict
from tritonsmith.lab.reduce.shrink import PendingTest
from tritonsmith.lab.terms import Limit, Term, TextTerm
from tritonsmith.lab.triage.kernel import KernelSubject, WrongKernelSubject
from tritonsmith.lab.triage.reduce.kernel_search import KernelCandidate
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import ReadyRow, ScriptRequest, ServedRow

_SAID = 4000  # characters of a command's output
_BINARIES = ("cubin", "hsaco")
_NOTHING = Observation(Verdict.OTHER, "the kernel, its signature or the file is rejected")


class Tester(Protocol):
    """Tests one candidate at a time.

    Attributes:
        timeout: seconds of one test.
    """

    timeout: float

    def begin(self) -> None:
        """Start the processes that the first test would have to wait for, if there are any."""

    def test(self, candidate: KernelCandidate, pending: PendingTest) -> Observation:
        """Test a candidate; return `UNNEEDED` if that has ended early because nobody needs it."""

    def close(self) -> None:
        """Stop the process that runs, if there is one."""


def candidate_request(asked: CompileRequest, candidate: KernelCandidate, file: Path) -> CompileRequest:
    """Return the compile of a candidate in a file."""
    options = {name: signature.parse_value(text) for name, text in candidate.options}
    return replace(asked, file=file, signature=candidate.signature, options=options)


class CompileTester:
    """Compiles candidates by an interpreter that stays alive.

    Args:
        subject: the symptom; a test needs its baseline.
        where: the interpreter.
        folder: a folder of the tester's own.
        name: name of the file, which error messages have in them.
    """

    def __init__(self, subject: KernelSubject, where: Interpreter, folder: Path, name: str) -> None:
        files.make_folder(folder)
        self._subject, self._folder, self._file = subject, folder, folder / name
        self._compiler, self._ends = WarmCompiler(where, folder), (*last_stage(subject), "")
        self.timeout: float = where.timeout

    def begin(self) -> None:
        """Start the interpreter."""
        self._compiler.begin(self._subject.request)

    def test(self, candidate: KernelCandidate, pending: PendingTest) -> Observation:
        """Compile a candidate, and look for the symptom."""
        files.write(self._file, candidate.text)
        self._compiler.timeout = math.ceil(self.timeout)
        compile_request = candidate_request(self._subject.request, candidate, self._file)
        observation = _NOTHING
        # Most candidates lack the text of a stage, which needs no later one. With it they are compiled to the
        # end all the same: one that fails there does not show the symptom.
        for last in self._ends:
            if pending.is_unneeded():
                return UNNEEDED
            compiled = self._compiler.compile(compile_request, self._folder / "out", last)
            observation = self._subject.look(compiled) if compiled else _NOTHING
            if observation.verdict is not Verdict.BAD:
                break
            pending.likely = True
        return observation

    def close(self) -> None:
        """Stop the interpreter."""
        self._compiler.close()


def last_stage(subject: KernelSubject) -> tuple[str, ...]:
    """Return the last stage that the symptom is about; none if it may be about machine code."""
    stages = [term.stage for term in subject.terms if isinstance(term, TextTerm)]
    known = [stage for stage in _stages() if stage not in _BINARIES]
    if not stages or len(stages) < len(subject.terms) or not set(stages) <= set(known):
        return ()
    # In a surgery, a pass that no stage has come to would count as misspelt.
    return () if subject.request.surgery else (max(stages, key=known.index),)


class CheckTester:
    """Runs `passes.check` on candidates, by processes that stay alive.

    Args:
        subject: the symptom; a test needs its baseline.
        where: the interpreter.
        folder: a folder of the tester's own.
        name: name of the file.
    """

    def __init__(self, subject: WrongKernelSubject, where: Interpreter, folder: Path, name: str) -> None:
        from tritonsmith.check.limited import WarmChecks  # noqa: PLC0415 - of an extra that may be missing

        files.make_folder(folder)
        self._subject, self._folder, self._file = subject, folder, folder / name
        self._warm, self._closed = WarmChecks(WarmDumps(where, folder)), Event()
        self.timeout: float = where.timeout

    def begin(self) -> None:
        """Start the interpreter, and the process that runs IR."""
        self._warm.begin(self._subject.request)

    def test(self, candidate: KernelCandidate, pending: PendingTest) -> Observation:
        """Dump the passes of a candidate, and run the IR after each."""
        files.write(self._file, candidate.text)
        # A smaller kernel may run longer: an edit of a loop's bound or step can make it endless.
        until, unneeded = time.monotonic() + self.timeout, Event()
        self._warm.dumps.compiler.timeout = math.ceil(self.timeout)

        def stop() -> bool:
            if pending.is_unneeded():
                unneeded.set()
            return self._closed.is_set() or unneeded.is_set() or time.monotonic() > until

        request_of_candidate = candidate_request(self._subject.request, candidate, self._file)
        with self._warm.turn, files.scratch("dump-", self._folder) as out:
            observation = self._subject.check(request_of_candidate, out, stop, self._warm)
        return UNNEEDED if unneeded.is_set() else observation

    def close(self) -> None:
        """End the check that runs, and the processes."""
        self._closed.set()
        self._warm.close()


@dataclass
class CommandTester:
    """Runs a command on candidates; exit code 0 says that the file shows the symptom.

    Attributes:
        argv: program and arguments; `{}` stands for the file, which is the last argument if no `{}` is there.
        python: the interpreter whose folder is first on PATH; None for the PATH as it is.
        folder: a folder of the tester's own.
        name: name of the file.
        timeout: seconds of one test.
    """

    argv: tuple[str, ...]
    python: Path | None
    folder: Path
    name: str
    timeout: float
    _running: CapturedProgram = field(default_factory=CapturedProgram, init=False, repr=False, compare=False)

    def begin(self) -> None:
        """Do nothing, as each test starts its own process."""
        return

    def test(self, candidate: KernelCandidate, pending: PendingTest) -> Observation:
        """Run the command in the current folder, with a cache of its own."""
        program, argv, change = self.prepare(candidate)
        stopped = Event()

        def stop() -> bool:
            # Asked once more later, it may say the contrary.
            if pending.is_unneeded():
                stopped.set()
            return stopped.is_set()

        answer = self._running.run((program, *argv[1:]), change=change, timeout=self.timeout, stop=stop)
        if answer is None and (self._running.is_closed or stopped.is_set()):
            return UNNEEDED
        if answer is None:
            return Observation(Verdict.OTHER, f"no end after {self.timeout:.0f} s, or no such program")
        printed = "\n".join(filter(None, (answer.out, answer.err)))[-_SAID:]
        # As for every reducer, and unlike `git bisect run`, success means that the symptom is there.
        verdict = Verdict.BAD if answer.code == 0 else Verdict.GOOD
        # The output as the reason, which an error of the first test shows, and `TesterPool` drops.
        return Observation(verdict, f"exit code {answer.code}", printed)

    def prepare(self, candidate: KernelCandidate) -> tuple[str, tuple[str, ...], dict[str, str | None]]:
        """Write the file; return the path of the program, the command, and changes of its environment."""
        file = self.folder / self.name
        program, change = self.program()
        files.write(file, candidate.text)
        return program, with_file(self.argv, file), change

    def program(self) -> tuple[str, dict[str, str | None]]:
        """Make the folder; return the path of the program, and changes of its environment."""
        files.make_folder(self.folder)
        path = os.environ.get("PATH", "")
        change: dict[str, str | None] = {
            "PATH": os.pathsep.join((str(self.python.parent), path)) if self.python else path,
            "TRITON_CACHE_DIR": str(self.folder / "cache"),  # testers run at once
            # Python compares seconds and sizes: bytecode of the last candidate could pass for this one's.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return process.which(self.argv[0], change["PATH"]) or self.argv[0], change

    def close(self) -> None:
        """Kill the command that runs, if there is one."""
        self._running.close()


class ScriptTester:
    """Runs a command that is a Python script, in forks of an interpreter that has imported its packages.

    Args:
        cold: runs the command itself, which alone says that a file shows the symptom.
        packages: names of the packages.
    """

    # An import of Triton takes a second, one of torch three: far more than most of what follows.

    def __init__(self, cold: CommandTester, packages: Sequence[str]) -> None:
        self._cold, self._packages = cold, ",".join(packages)
        self._process: call.Conversation | None = None
        self._usable, self._heard, self._closed, self._starting = True, False, False, Lock()

    @property
    def timeout(self) -> float:
        """Seconds of one test."""
        return self._cold.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._cold.timeout = seconds

    def begin(self) -> None:
        """Start the interpreter, and do not wait until it has imported the packages."""
        with self._starting, suppress(FactError):  # `fork` tries once more
            self._start(*self._cold.program())

    def test(self, candidate: KernelCandidate, pending: PendingTest) -> Observation:
        """Run the script in a fork, and the command if that has another answer than a plain failure."""
        row = self.fork(candidate)
        if row and row.status == "timeout":  # the command would take as long once more
            return Observation(Verdict.OTHER, f"no end after {self._cold.timeout:.0f} s")
        if ruled_out := row and row.value:
            return Observation(Verdict.GOOD, f"exit code {ruled_out}")
        if self._closed or pending.is_unneeded():
            return UNNEEDED
        pending.likely = row is not None
        return self._cold.test(candidate, pending)

    def fork(self, candidate: KernelCandidate) -> ServedRow | None:
        """Run the script in a fork, and return how it ended; None if there is no process to fork."""
        program, argv, change = self._cold.prepare(candidate)
        log = self._cold.folder / "script.log"
        request = ScriptRequest(argv[1], argv[2:], str(log), self._cold.timeout)
        try:
            process = self._started(program, change)
            if process is None:
                return None
            process.say(text_of(request))
            return process.hear(ServedRow)
        # A process that is gone is not started again: whatever ended it would do so once more.
        except (FactError, call.UnansweredError):
            self._usable = False
            return None

    def _started(self, program: str, change: Mapping[str, str | None]) -> call.Conversation | None:
        with self._starting:
            process = self._start(program, change)
            if process and not self._heard:
                self._usable, self._heard = process.hear(ReadyRow).ready, True
            return process if self._usable else None

    def _start(self, program: str, change: Mapping[str, str | None]) -> call.Conversation | None:
        if self._usable and not self._closed and self._process is None:
            words, log = (ScriptRequest.COMMAND, self._packages), self._cold.folder / "worker.log"
            # Where the command runs, with its variables.
            self._process = call.Conversation(
                Path(program), *words, folder=Path.cwd(), change=change, log=log
            )
        return self._process

    def close(self) -> None:
        """Stop the interpreter, and the command that runs, if there is one."""
        # Another thread may be about to start it.
        with self._starting:
            process, self._process, self._closed = self._process, None, True
        self._cold.close()
        if process:
            process.close()


def packages_of(argv: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the packages to import before a command's script runs; none if the command is no script.

    Args:
        argv: the command: only `python SCRIPT`, without options of Python, runs one.
        text: of the file that is reduced.
    """
    if len(argv) == 1 or not argv[1].endswith(".py") or not Path(argv[0]).name.startswith("python"):
        return ()
    try:
        trees = [untrusted.python_tree(each) for each in (untrusted.read_text(Path(argv[1])), text)]
    except (OSError, ValueError, SyntaxError, RecursionError):
        return ()  # Python has its own words for it
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    tops = {name.partition(".")[0] for name in names}
    return tuple(name for name in configs.load("kernels")["scripts"]["packages"] if name in tops)


def with_file(argv: Sequence[str], file: Path | str) -> tuple[str, ...]:
    """Return a command with a file in the place of `{}`."""
    named = argv if any("{}" in word for word in argv) else (*argv, "{}")
    return tuple(word.replace("{}", str(file)) for word in named)


class TesterPool:
    """Several testers, one for each thread.

    Args:
        testers: the testers.
        timed: whether the symptom is the time of a compile, beside which nothing else may run.
    """

    def __init__(self, testers: Sequence[Tester], *, timed: bool = False) -> None:
        # A thread that finds no tester free waits in `get`.
        self._free: SimpleQueue[Tester] = SimpleQueue()
        self._all, self._timed = testers, timed
        for tester in testers:
            self._free.put(tester)

    @property
    def jobs(self) -> int:
        """The number of candidates that are tested at once."""
        return len(self._all)

    @property
    def is_parallel(self) -> bool:
        """Report whether something else may run beside the first and the last compile."""
        return self.jobs > 1 and not self._timed

    def begin(self) -> None:
        """Start the processes of all testers, if they may start while something else runs."""
        for tester in self._all if self.is_parallel else ():
            tester.begin()

    def limit(self, seconds: float) -> None:
        """Set the time limit of each test."""
        for tester in self._all:
            tester.timeout = seconds

    def test(self, candidate: KernelCandidate, pending: PendingTest) -> Observation:
        """Test a candidate by a tester that is free."""
        tester = self._free.get()
        try:
            observation = tester.test(candidate, pending)
        finally:
            self._free.put(tester)
        # Without the output of a command, which would fill the journal of thousands of tests.
        return observation if observation is UNNEEDED else replace(observation, why="")

    def close(self) -> None:
        """Stop all testers."""
        for tester in self._all:
            with suppress(OSError):  # one that cannot be stopped does not keep the others running
                tester.close()


# Lines of a file that show registers and spills. ptxas runs only for what is not in the cache.
_PTXAS = ('    os.environ["TRITON_DUMP_PTXAS_LOG"] = os.environ["TRITON_ALWAYS_COMPILE"] = "1"',)
_AMD = (
    '    code = compiled.asm["amdgcn"].splitlines()',
    '    print(*(line for line in code if "gpr_count" in line or "spill_count" in line), sep="\\n")',
)
_LOGS = "3.4"  # Triton has TRITON_DUMP_PTXAS_LOG: third_party/nvidia/backend/compiler.py
_SHOWN = ("registers", "spills")  # metrics that they show
_SINCE = "3.3"  # ASTSource takes `constexprs` and a table of attributes, triton-lang/triton#5220
_ALIGNED = 16  # the only divisibility for which Triton specializes


@dataclass(frozen=True)
class Symptom:
    """The symptom that the file shows.

    Attributes:
        triton: the version; empty if it is unknown.
        expected: the symptom in words: `fatal error: ...`, `spills 12`.
        before: number of lines of the original source.
        origin: name of the original file.
        terms: of `--when`.
        argv: the command that decides; empty for a compile.
        variables: Triton's environment variables that are set.
        wrong: whether the symptom is that a pass changes the result.
    """

    triton: str
    expected: str
    before: int
    origin: str
    terms: tuple[Term, ...] = ()
    argv: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    wrong: bool = False

    def shell(self, text: str) -> str:
        """Return a command line with these variables."""
        before = "".join(f"{name}={shlex.quote(value)} " for name, value in self.variables)
        return f"  {before}{text}"


def render(text: str, symptom: Symptom, asked: CompileRequest | None, main: str = "") -> str:
    """Return the whole file.

    Args:
        text: the source of the kernel.
        symptom: the symptom that it shows.
        asked: its compile, with the name of the file; None where a command decides.
        main: the text of `main_program`; empty if `python FILE` is not to compile it.
    """
    comment = "\n".join(_head(symptom, asked, alone=bool(main)))  # messages have several lines
    head = "\n".join(f"# {line}".rstrip() for line in comment.splitlines())
    return f"{head}\n{text.rstrip()}\n" + (f"\n\n{main}" if main else "")


def _head(symptom: Symptom, asked: CompileRequest | None, *, alone: bool) -> Iterator[str]:
    yield f"Reduced by tritonsmith from {symptom.origin}, {symptom.before} lines."
    if asked:
        targets = ", ".join(map(str, asked.targets))
        options = "".join(f", {name}={spell_value(value)}" for name, value in asked.options.items())
        yield f"Triton {symptom.triton}, {targets}{options}; no GPU is needed."
        yield f"Expected: {symptom.expected}"
        yield ""
        for text in _commands(symptom, asked):
            yield symptom.shell(text)
        if alone:
            yield symptom.shell(f"python {shlex.quote(asked.file.name)}{_after(symptom, asked)}")
    else:
        yield "Expected: exit code 0 of"
        yield ""
        yield symptom.shell(shlex.join(symptom.argv))


def _stages() -> list[str]:
    """Return the stages of Triton's own compiler."""
    stages: list[str] = configs.load("kernels")["stages"]["compiler"]
    return stages


def _after(symptom: Symptom, asked: CompileRequest) -> str:
    if _resources(symptom, asked):
        return "  # prints registers and spills"
    silent = symptom.wrong or any(isinstance(term, Limit) for term in symptom.terms)
    return "  # compiles it, and prints nothing" if silent else ""


def _resources(symptom: Symptom, asked: CompileRequest) -> tuple[str, ...]:
    """Return the lines by which a file shows registers and spills; none if its symptom is about neither."""
    # Of other metrics, such as the size of the code, neither program prints anything.
    if not any(isinstance(term, Limit) and term.metric in _SHOWN for term in symptom.terms):
        return ()
    if any(target.backend == "hip" for target in asked.targets):
        return _AMD
    return _PTXAS if version_key(symptom.triton) >= version_key(_LOGS) else ()


def _commands(symptom: Symptom, asked: CompileRequest) -> Iterator[str]:
    """Yield the commands that show it: limits in a table, texts in a stage, failures in a compile."""
    # The file goes by its name: it is attached to an issue, where a folder of this machine helps nobody.
    words = shlex.split(replace(asked, file=Path(asked.file.name)).flags())
    texts = [term for term in symptom.terms if isinstance(term, TextTerm)]
    if symptom.wrong:
        yield command("passes.check", *words)
        return
    if len(texts) < len(symptom.terms):
        yield command("kernel.compile --resources", *words)
    for stage in dict.fromkeys(term.stage for term in texts):
        yield command("kernel.show", *words, "--stage", stage)
    if not symptom.terms:
        yield command("kernel.compile", *words)


def main_program(text: str, symptom: Symptom, asked: CompileRequest | None) -> str:
    """Return code that compiles the kernel with Triton alone; empty if there is none for this Triton."""
    if not asked or not symptom.triton or version_key(symptom.triton) < version_key(_SINCE):
        return ""
    kernel = source.find(text, asked.kernel, asked.file)
    # `compiled.asm` has the stages of the compiler, and no disassembly.
    texts = [term for term in symptom.terms if isinstance(term, TextTerm) and term.stage in _stages()]
    prints = [
        f"    print({term.needle!r} {'not in' if term.lacks else 'in'} compiled.asm[{term.stage!r}])"
        for term in texts
    ]
    calls = [_call(asked.kernel, point) for point in request.expand_points(asked, kernel)] if kernel else []
    # All points or none: the one that shows the symptom may be the one that cannot be spelled.
    if not calls or not all(calls):
        return ""
    # A kernel may use Triton by its full name, or import `tl` alone.
    taken = {node.id for node in ast.walk(untrusted.parse(text)) if isinstance(node, ast.Name)}
    head = [] if {"triton"} & taken else ["    import triton"]
    resources = _resources(symptom, asked)
    lines = [
        'if __name__ == "__main__":',
        *(["    import os", ""] if resources == _PTXAS else []),
        *head,
        "    from triton.backends.compiler import GPUTarget",
        "    from triton.compiler import ASTSource",
        "",
        *(_PTXAS if resources == _PTXAS else ()),
        *(line for call in calls for line in (*call, *prints, *(_AMD if resources == _AMD else ()))),
    ]
    return "\n".join(lines) + "\n"


def _call(kernel: str, point: CompilePoint) -> list[str]:
    """Return the lines that compile a point; none where ASTSource takes its arguments in no simple form."""
    bound, target = point.bound, point.target
    # Tuples, among types, constants and names, are spelled in another way by each release.
    if bound is None or any("(" in kind for kind in bound.signature.values()):
        return []
    names = list(bound.signature)
    # Triton makes a constant of an integer that is 1, as its launcher would.
    ones = {name: 1 for name, hint in bound.hints.items() if hint == 1}
    constants = {**bound.constexprs, **ones}
    if any(isinstance(value, Mapping) for value in constants.values()) or "." in "".join(constants):
        return []
    signature = {name: CONSTEXPR if name in constants else kind for name, kind in bound.signature.items()}
    attributes: dict[Any, list[list[Any]]] = {
        (names.index(name),): [["tt.divisibility", _ALIGNED]]
        for name, hint in bound.hints.items()
        if hint == _ALIGNED
    }
    # AMD's backend makes buffer operations of accesses whose offsets fit 32 bits.
    if target.backend == "hip":
        for name in bound.ranges:
            attributes.setdefault((names.index(name),), []).append(["tt.pointer_range", 32])
    chosen = f"GPUTarget({target.backend!r}, {target.arch!r}, {target.warp_size})"
    return [
        "    compiled = triton.compile(",
        "        ASTSource(",
        f"            {kernel},",
        f"            signature={signature!r},",
        f"            constexprs={ {(names.index(name),): value for name, value in constants.items()}!r},",
        f"            attrs={attributes!r},",
        "        ),",
        f"        target={chosen},",
        *([f"        options={dict(point.options)!r},"] if point.options else []),
        "    )",
    ]
