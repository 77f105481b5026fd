"""A program under triage: it runs with each change, and its exit code or `--check` tells whether it is right.

`knockout -- python script.py` runs the same subject without each pass in turn.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call, tritons
from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.request import Surgery
from tritonsmith.core import process, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, StepError, UsageError
from tritonsmith.core.plan import digest, files, programs
from tritonsmith.core.text import split_outside_brackets
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import gpus, tools
from tritonsmith.facts.installed_tritons import version_of
from tritonsmith.inspect import show as show_stage
from tritonsmith.lab import experiment, failure, journal, questions
from tritonsmith.lab.experiment import BASELINE, Search
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.triage import other_tools
from tritonsmith.lab.triage.kernel import lines_of
from tritonsmith.lab.triage.other_tools import OwnPtxas
from tritonsmith.lab.triage.variant import TriageChange, variant_rows
from tritonsmith.lab.triage.verdict import UNCHANGED, not_tested
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import CheckedRow, CheckRequest, OperatedRow, OperateRequest

_CLOSE = " ~ "
_TOLERANCE = re.compile(r"(rtol|atol)=(\d*\.?\d+(?:e-?\d+)?)", re.ASCII)
_FLAG = re.compile("-")
_HINTS = (
    '--check "out ~ reference": values or functions of the script\'s top level, compared as torch does',
    '--check "out ~ reference, rtol=1e-2, atol=1e-2"',
    '--check "torch.equal(out, reference)", or the name of a function that asserts',
)

_SHOWN = 100  # characters of the last line of output
_STAGES = {"cuda": "ptx", "hip": "amdgcn"}  # a file of Triton's cache that tells the backend
_TARGET = re.compile(r"^\.target sm_(\d+)(\d)", re.MULTILINE)
_PYTHON = re.compile(r"python(3(\.\d+)?)?$")
_INTERPRETED = "TRITON_INTERPRET"
# A check that raises decides nothing: it may name what the script lacks.
_CHECKED = {
    "holds": Observation(Verdict.GOOD),
    "differs": Observation(Verdict.BAD, failure=Failure("failure", "the check does not hold")),
    "error": Observation(Verdict.SKIP, why="the check cannot be evaluated"),
}


@dataclass(frozen=True)
class ResultCheck:
    """A condition on the values of a script when it has ended: `--check "out ~ reference"`.

    Attributes:
        text: the condition as the user wrote it.
        left: an expression in the script's names.
        right: the expression that it has to be close to; empty where the left one is true or false by itself.
        rtol: relative tolerance; None for torch's own, by the dtypes.
        atol: absolute tolerance; where only one of the two is not None, the other one counts as 0.
    """

    text: str
    left: str
    right: str = ""
    rtol: float | None = None
    atol: float | None = None

    def argv(self, argv: Sequence[str], folder: Path, name: str) -> tuple[tuple[str, ...], Path]:
        """Return the command with the check, and the file in which the result will be.

        Args:
            argv: `python script.py`, with flags of Python and arguments of the script.
            folder: for the request and the result.
            name: of both files.
        """
        at = script_of(argv)
        request, result = folder / f"{name}.request.json", folder / f"{name}.json"
        content = CheckRequest(self.left, self.right, self.rtol, self.atol, str(result))
        # A script that is run by its own name (`./train.py`) has no Python before it.
        python = argv[:at] or ("python",)
        return (*python, *call.script(content, request), *argv[at:]), result


def parse_check(text: str) -> ResultCheck:
    """Parse the value of `--check`.

    Raises:
        UsageError: it is not Python, or a tolerance is not a number.
    """
    left, *rest = split_outside_brackets(text, _CLOSE, quotes="\"'")
    if len(rest) > 1:
        raise UsageError(f"--check compares two expressions, not {len(rest) + 1}", hints=_HINTS)
    right, *words = split_outside_brackets(rest[0], ",", quotes="\"'") if rest else [""]
    tolerances: dict[str, float] = {}
    for word in words:
        if not (match := _TOLERANCE.fullmatch(word)):
            raise UsageError(f"--check: {word!r} is not a tolerance", hints=_HINTS)
        tolerances[match[1]] = float(match[2])
    # A typing error is reported now, and not after the minutes that the script takes.
    for expression in (left, right) if rest else (left,):
        try:
            compile(expression, "--check", "eval")
        except SyntaxError as error:
            raise UsageError(f"--check: {expression!r} is not Python", why=error.msg, hints=_HINTS) from error
    return ResultCheck(text, left, right, **tolerances)


def script_of(argv: Sequence[str], what: str = "--check") -> int:
    """Return the position of the script in a command.

    Args:
        argv: the command.
        what: the flag that needs a script.

    Raises:
        UsageError: the command is not `python script.py`.
    """
    at = next((number for number, word in enumerate(argv) if word.endswith(".py")), -1)
    if at < 0 or (at and "python" not in Path(argv[0]).name) or not all(map(_FLAG.match, argv[1:at])):
        raise UsageError(f"{what} is about a Python script", hints=["-- python script.py ARGUMENTS"])
    return at


def _check_result(result: Path) -> tuple[str, str]:
    """Return status and text of a check; empty where the script ended before it."""
    rows = call.results(result, CheckedRow)
    return (rows[0].status, rows[0].text) if rows else ("", "")


@dataclass
class CommandSubject:
    """A command; its symptom is its failure, that it does not end, or that a check does not hold.

    Attributes:
        argv: program and arguments.
        python: the interpreter that is first on its PATH; None for the caller's own PATH.
        cwd: the folder in which it runs.
        out: folder of its output, and of Triton's caches.
        timeout: seconds; 0 for none.
        check: a condition on the script's values, which then is the only symptom.
        first: the baseline, with which other runs are compared; None before it.
        folders: of the last run of each change, by its name.
    """

    argv: Sequence[str]
    python: Path | None
    cwd: Path
    out: Path
    timeout: int = 0
    check: ResultCheck | None = None
    first: Observation | None = None
    folders: dict[str, Path] = field(default_factory=dict)
    is_command: bool = field(default=True, init=False)

    @property
    def triton(self) -> str:
        """The version that PYTHONPATH leads to, or the one beside the interpreter."""
        # From its files: importing Triton takes seconds, and may be what fails.
        first = map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
        version_on_path = next(
            (version for folder in first if (version := version_of(folder / "triton"))), ""
        )
        return version_on_path or tritons.installed(self._python)

    @property
    def _python(self) -> Path:
        return self.python or Path(process.which("python") or sys.executable)

    @property
    def has_check(self) -> bool:
        """Report whether the symptom is a wrong value of the script."""
        return self.check is not None

    @property
    def backends(self) -> frozenset[str]:
        """The backends that the baseline compiled for; both if it compiled nothing."""
        return self._compiled() or frozenset(_STAGES)

    @property
    def kind(self) -> str:
        """The kind of the symptom."""
        failed = self.first.failure if self.first else None
        return "hang" if failed and failed.kind == "timeout" else "failure"

    @property
    def key(self) -> object:
        """The command, its check, the files and programs that it may read, its Triton and the GPUs."""
        read = journal.command(self.argv, self.cwd, self._path, (self.out,))
        return (read, str(self.python), self.timeout, self.check, variant_rows())

    def resume(self, known: Iterable[Observation]) -> None:
        """Take up nothing: runs are compared with the baseline alone, which was run once more."""

    @property
    def _path(self) -> str:
        path = os.environ.get("PATH", "")
        return os.pathsep.join((str(self.python.parent), path)) if self.python else path

    def baseline(self, name: str = BASELINE) -> Observation:
        """Run the command unchanged, with an empty cache."""
        if name == BASELINE:
            # It is tested once more before a journal is taken up, and must not be compared with itself.
            self.first = None
        observation = self._run(self._fresh(name), {})
        # Without a kernel in its cache, as under TRITON_INTERPRET, no change of the compiler can matter.
        if self.check and observation.verdict in (Verdict.BAD, Verdict.GOOD) and not self._compiled():
            why = f"{observation.figures}, but no kernel was compiled for a GPU"
            observation = replace(observation, verdict=Verdict.SKIP, why=why)
        if observation.verdict is Verdict.BAD:
            matches = show_stage.issues_of_cache(self.triton, self._folder(name) / "cache")
            issues = dict.fromkeys(match.issue.about_kernel for match in matches)
            observation = replace(observation, notes=(*observation.notes, *issues))
        if self.first is None:
            self.first = observation
        return observation

    def test(self, change: TriageChange) -> Observation:
        """Run the command with a change; twice where the symptom is gone."""
        if change.assembler:
            return self._assembled(change)
        if change.build:
            return self._told(change)
        return self._steady(change)

    def _told(self, change: TriageChange) -> Observation:
        """Test with a build that reports more of a fault, whose interpreter runs the script."""
        space = workspace.default()
        if not _PYTHON.match(Path(self.argv[0]).name):
            return Observation(Verdict.SKIP, why=f"{self.argv[0]} is no Python that another could replace")

        def look(watched: TriageChange, python: Path) -> Observation:
            # The same subject but for its interpreter: same symptom, and the folders that `_log` reads.
            return replace(self, argv=(str(python), *self.argv[1:]), python=python).observe(watched)

        try:
            build = other_tools.find_build(change.build, self._python, self.triton, space)
            return other_tools.test_by_build(change, build, space, look, self._log)
        except InterruptedRunError:
            raise
        except SmithError as error:
            return not_tested(error)

    def _log(self, name: str) -> str:
        """Return the output of a change's last run."""
        return untrusted.text_if_any(self._folder(name) / "log")

    def _assembled(self, change: TriageChange) -> Observation:
        """Run the command with another ptxas than that of the GPUs which the baseline compiled for."""
        texts = map(untrusted.read_text, sorted((self._folder(BASELINE) / "cache").rglob("*.ptx")))
        # The command names no GPU: what it compiled for is in the cache of the baseline.
        capabilities = frozenset(
            f"{target[1]}.{target[2]}" for text in texts for target in _TARGET.finditer(text)
        )
        own = OwnPtxas(self._python, tritons.package(self._python), capabilities, None, self.out)
        return other_tools.test_by_ptxas(change, self.triton, own, self._steady, self._log)

    def _steady(self, change: TriageChange) -> Observation:
        observation = self.observe(change)
        # A race may be gone once by chance, and a false cause is worse than no answer.
        if observation.verdict is Verdict.GOOD:
            again = self.observe(change)
            if again.verdict is not Verdict.GOOD:
                why = f"it is flaky: {observation.figures}, then {again.figures}"
                return replace(again, verdict=Verdict.SKIP, why=why)
        return observation

    def observe(self, change: TriageChange) -> Observation:
        """Run the command with a change, once."""
        if change.needs and not (change.needs == "a GPU" and gpus.read().all):
            return Observation(Verdict.SKIP, why=f"needs {change.needs}")
        if change.tool:
            return self._watched(change)
        folder = self._fresh(change.name)
        variables, results = {**change.variables}, folder / "results"
        if change.options or change.skip or change.allocator:
            variables |= self._operated(change, results)
        try:
            observation = self._run(folder, variables, launcher=change.launcher)
        except UsageError as error:
            return not_tested(error)
        finding = re.search(change.says, self._log(change.name)) if change.says else None
        # The witness speaks first: the crash that follows its message is the same fault once more.
        if finding and observation.verdict is not Verdict.GOOD:
            return replace(observation, verdict=Verdict.OTHER, figures=finding[1])
        why = self._unmet(change, observation, results)
        return replace(observation, verdict=Verdict.SKIP, why=why) if why else observation

    def _unmet(self, change: TriageChange, observation: Observation, results: Path) -> str:
        """Return the reason why a run tells nothing of a change; empty if it does."""
        if _INTERPRETED in change.variables and self._compiled(change.name):
            return "kernels are compiled all the same: Gluon's, say, are not interpreted"
        if change.says and observation.verdict is Verdict.OTHER:
            return f"{change.name} does not report it: {observation.figures}"
        # Another ptxas comes with an option, the version of PTX, and that has to arrive as well.
        pinned = change.assembler and change.options
        if (change.variables and not pinned) or not (change.options or change.skip):
            return ""
        rows = call.noted(results, OperatedRow)
        # What was not applied changes nothing, and would look like a change that does not help.
        if change.skip and not any(run["times"] != 1 for row in rows for run in row.passes):
            return "none of its kernels is compiled with this pass"
        if change.options and not any(row.changed for row in rows):
            return "no launch has another value of this option, or none is compiled by Triton's own compile"
        return ""

    def passes(self, change: TriageChange) -> Observation:
        """Count the passes of its kernels: the notes are `NAME#2` for each run, in their order."""
        folder = self._fresh(change.name)
        observation = self._run(folder, self._operated(change, folder / "results"))
        rows = call.noted(folder / "results", OperatedRow)
        # Its kernels share their passes: leaving one out leaves it out of all of them.
        names = dict.fromkeys(f"{run['pass']}#{run['number']}" for row in rows for run in row.passes)
        if not names:
            return replace(
                observation, verdict=Verdict.SKIP, why="it compiles no kernel whose passes can be counted"
            )
        return replace(observation, verdict=Verdict.GOOD, notes=tuple(names))

    def _watched(self, change: TriageChange) -> Observation:
        """Run the command under a tool of compute-sanitizer, whose report is not the symptom itself."""
        try:
            program = tools.find_sanitizer()
        except FactError as error:
            return Observation(Verdict.SKIP, why=error.what)
        folder = self._fresh(change.name)
        log = folder / "report"
        observation = self._run(folder, {}, tools.sanitizer_argv(program, change.tool, log))
        text = untrusted.text_if_any(log)
        head, lines = tools.first_sanitizer_error(text)
        finding = " ".join(filter(None, (head, tools.error_place(lines))))
        if head:
            return replace(observation, verdict=Verdict.OTHER, figures=finding)
        if not tools.sanitizer_finished(text):
            return replace(observation, verdict=Verdict.SKIP, why=f"{change.tool} did not finish")
        # Kernels run many times slower under a tool: the symptom may well look different there.
        if observation.verdict is Verdict.OTHER:
            return replace(observation, verdict=Verdict.BAD, figures="it found nothing")
        return observation

    def _fresh(self, name: str) -> Path:
        """Make a folder for one run of a change."""
        # The cache and the results of another run tell nothing of this one.
        self.folders[name] = experiment.fresh(self.out / folder_name(name))
        files.make_folder(self.folders[name])
        return self.folders[name]

    def _folder(self, name: str) -> Path:
        """Return the folder of the last run of a change, which need not be there."""
        return self.folders.get(name, self.out / folder_name(name))

    def lines(self, line: Mapping[str, str]) -> tuple[str, ...]:
        """Return FILE:LINE in what the baseline compiled."""
        cache = self._folder(BASELINE) / "cache"
        places: list[str] = []
        for path in sorted(cache.rglob(f"*.{line['stage']}")):
            places += lines_of(untrusted.read_text(path), line)
        return tuple(dict.fromkeys(places))

    def bisect(self, _other: str) -> str:
        """Return no command, as it is unknown which kernels a program compiles."""
        return ""

    def _compiled(self, name: str = BASELINE) -> frozenset[str]:
        """Return the backends that the runs of a change compiled for."""
        cache = self._folder(name) / "cache"
        return frozenset(name for name, stage in _STAGES.items() if next(cache.rglob(f"*.{stage}"), None))

    def _operated(self, change: TriageChange, results: Path) -> dict[str, str]:
        """Return variables with which each Python compiles with a change's options, or without its pass."""
        files.make_folder(results)
        request, site = results.parent / "request.json", results.parent / "site"
        # Python runs `sitecustomize` at its start, and so does each Python that the program starts itself.
        files.make_folder(site)
        surgery = Surgery(skip=(change.skip,)) if change.skip else Surgery()
        content = OperateRequest(str(results), surgery.request(), dict(change.options), change.allocator)
        files.write(request, text_of(content))
        files.write(site / "sitecustomize.py", call.site(content, request))
        known = os.environ.get("PYTHONPATH", "")
        return {"PYTHONPATH": os.pathsep.join(filter(None, (str(site), known)))}

    def _run(
        self, folder: Path, variables: Mapping[str, str], under: Sequence[str] = (), launcher: str = ""
    ) -> Observation:
        log = folder / "log"
        # The stack that faulthandler prints tells two crashes apart.
        environ = {**os.environ, "PYTHONFAULTHANDLER": "1", "PATH": self._path, **variables}
        # A cache of its own: what another change compiled would be found, and nothing compiled with this one.
        environ |= {"TRITON_CACHE_DIR": str(folder / "cache")}
        argv, result = tuple(self.argv), folder / "no check"
        if self.check:
            argv, result = self.check.argv(argv, folder, "check")
        if launcher:
            at = script_of(argv, launcher)
            argv = (*(argv[:at] or ("python",)), "-m", launcher, *argv[at:])
        program = process.which(argv[0], environ["PATH"]) or argv[0]
        began, last = time.monotonic(), ""
        with files.opened_log(log) as written:

            def heard(line: str) -> None:
                nonlocal last
                last = line.strip() or last
                print(line, file=written)

            try:
                code = programs.stream(
                    (*under, program, *argv[1:]),
                    cwd=self.cwd,
                    env=environ,
                    on_line=heard,
                    timeout=self.timeout,
                )
            except OSError as error:
                why = error.strerror or str(error)
                raise StepError(f"cannot run {argv[0]}", why=why) from error
        seconds = time.monotonic() - began
        # The exit code does not tell: a program that is stopped may end with one of its own.
        late = bool(self.timeout) and seconds >= self.timeout
        if self.check:
            status, text = _check_result(result)
            if status:
                return replace(_CHECKED[status], figures=text, seconds=seconds)
            figures = f"no end after {self.timeout} s" if late else f"exit code {code}: {last[:_SHOWN]}"
            # After a baseline with a result, an early end comes from the change; before, nothing is known.
            verdict = Verdict.OTHER if self.first else Verdict.SKIP
            return Observation(verdict, figures, "it ends before the check", seconds)
        # 125 as in `git bisect run`: the program says itself that it cannot be tested.
        if code in (0, questions.SKIP):
            return questions.succeeds(code, f"exit code {code}", seconds)
        died = signal.Signals(-code).name if code < 0 and not late else ""
        failed = failure.of(untrusted.read_text(log), crashed=died, timeout=late, code=code)
        figures = f"no end after {self.timeout} s" if late else f"exit code {code}: {last[:_SHOWN]}"
        same = self.first is None or failed == self.first.failure
        failing = failure.pass_of(untrusted.read_text(log))
        symptom = Verdict.BAD if same else Verdict.OTHER
        return Observation(symptom, figures, seconds=seconds, failure=failed, failed_in=failing)


_COUNTED = TriageChange("passes counted")
_LONGEST = 60  # characters of the figures of a run


@dataclass(frozen=True)
class ProgramKnockout:
    """The runs of a program without each of its passes.

    Attributes:
        triton: the version of Triton.
        baseline: the run with all passes.
        passes: `NAME#2` to the run without it, in their order.
    """

    triton: str
    baseline: Observation
    passes: dict[str, Observation]


def knock_out(
    subject: CommandSubject, journal: Journal, tell: Callable[[str, Observation], None]
) -> ProgramKnockout:
    """Run a program unchanged, and then without each pass that its kernels are compiled with.

    Args:
        subject: the program.
        journal: of this knockout; a run that was stopped goes on from it.
        tell: gets each new observation, as it comes.

    Raises:
        FactError: it cannot be tested as it is, or compiles no kernel.
    """

    def observed(rows: Sequence[TriageChange]) -> Iterator[Observation]:
        for row in rows:
            if row is _COUNTED:
                yield subject.passes(row)
            else:
                yield subject.baseline() if row is UNCHANGED.change else subject.observe(row)

    return experiment.run(_search(subject), observed, journal, tell)


def _search(subject: CommandSubject) -> Search[TriageChange, ProgramKnockout]:
    (baseline,) = yield [UNCHANGED.change]
    if baseline.verdict is Verdict.SKIP:
        raise FactError("the program cannot be tested as it is", why=f"{baseline.why}: {baseline.figures}")
    (counted,) = yield [_COUNTED]
    names = counted.notes
    if not names:
        hints = ["its kernels have to be compiled in this run, by Triton's own compile"]
        raise FactError("the program compiles no kernel whose passes can be counted", hints=hints)
    observations = yield [TriageChange(f"without {name}", skip=name) for name in names]
    return ProgramKnockout(subject.triton, baseline, dict(zip(names, observations, strict=True)))


def knockout_table(result: ProgramKnockout, *, check: bool) -> Grid:
    """Return a table with a line for each pass.

    Args:
        result: the runs.
        check: whether values of the program were checked, not its exit code.
    """
    rows = [
        [
            name,
            _word(observation, check=check),
            tables.clipped(observation.figures, _LONGEST),
            f"{observation.seconds:.1f} s",
        ]
        for name, observation in {"all passes": result.baseline, **result.passes}.items()
    ]
    title = f"the program with Triton {result.triton}, without each pass in turn"
    return tables.plain(title, ["pass", "without it", "", "time"], rows, right=["time"])


def knockout_as_json(result: ProgramKnockout, *, check: bool) -> dict[str, Any]:
    """Return all runs; the one with all passes has no name."""
    return {
        "schema": 1,
        "triton": result.triton,
        "passes": [
            {
                "pass": name,
                "without": _word(observation, check=check),
                "said": observation.figures,
                "why": observation.why,
                "seconds": observation.seconds,
            }
            for name, observation in {"": result.baseline, **result.passes}.items()
        ],
    }


def _word(observation: Observation, *, check: bool) -> str:
    return {
        Verdict.GOOD: "right" if check else "succeeds",
        Verdict.BAD: "wrong" if check else "fails",
        Verdict.OTHER: "fails",
    }.get(observation.verdict, f"not tested: {observation.why}")


def subject_of(
    argv: Sequence[str],
    check_text: str,
    interpreter: Callable[[], Path | None],
    timeout: int | None,
    out: Path | None,
    space: Workspace,
    place: str,
) -> CommandSubject:
    """Return the command under test, with the check of its values.

    Args:
        argv: the command.
        check_text: the check, as `--check` takes it; empty for none.
        interpreter: returns the Python that runs the command; None for the command's own.
        timeout: seconds for one run; None for the usual limit.
        out: folder of the tests; None for one in the workspace.
        space: the workspace.
        place: where that folder is in the workspace.

    Raises:
        SmithError: the check makes no sense, or there is no such Python.
    """
    checked = parse_check(check_text) if check_text else None
    if checked:
        script_of(argv)
    python = interpreter()
    # Each question has a folder of its own, so that another command does not end an experiment that was
    # stopped.
    question = digest(argv, check_text, str(python), timeout, str(Path.cwd()))[:8]
    folder = (out or space.root / f"{place}-{question}").absolute()
    return CommandSubject(tuple(argv), python, Path.cwd(), folder, timeout or 0, checked)
