"""A command under triage: it runs with each change, and its exit code or a check of its values tells.

`knockout -- python script.py`: a program without each pass in turn, right or wrong.
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
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, StepError, UsageError
from tritonsmith.core.plan import files, programs
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import gpus, tools
from tritonsmith.facts.installed_tritons import version_of
from tritonsmith.lab import experiment, failure, journal, questions
from tritonsmith.lab.experiment import BASELINE, Search
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.triage import check, other_ptxas
from tritonsmith.lab.triage.check import ResultCheck
from tritonsmith.lab.triage.kernel import lines_of
from tritonsmith.lab.triage.other_ptxas import OwnPtxas
from tritonsmith.lab.triage.variant import TriageChange, variant_rows
from tritonsmith.lab.triage.verdict import UNCHANGED, not_tested
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import OperatedRow, OperateRequest

_SHOWN = 100  # characters of the last line
_STAGES = {"cuda": "ptx", "hip": "amdgcn"}  # a file of Triton's cache that tells the backend
_TARGET = re.compile(r"^\.target sm_(\d+)(\d)", re.MULTILINE)
_PYTHON = re.compile(r"python(3(\.\d+)?)?$")
_INTERPRETED = "TRITON_INTERPRET"
_CHECKED = {
    "holds": Observation(Verdict.GOOD),
    "differs": Observation(Verdict.BAD, failure=Failure("failure", "the check does not hold")),
    "error": Observation(Verdict.SKIP, why="the check cannot be evaluated"),
}


@dataclass
class CommandSubject:
    """A command; its symptom is its failure, that it does not end, or that a check does not hold.

    Attributes:
        argv: program and arguments.
        python: the interpreter that is first on its PATH; None for the caller's own PATH.
        cwd: where it runs.
        out: folder of what it prints, and of Triton's caches.
        timeout: seconds; 0 for none.
        check: of the script's values: then nothing else is the symptom.
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
        """Return the version that PYTHONPATH leads to, or the one beside the interpreter."""
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
        """Run it as it is, in an empty cache."""
        if name == BASELINE:
            # It is tested once more before a journal is taken up, and must not be compared with itself.
            self.first = None
        observation = self._run(self._fresh(name), {})
        if self.check and observation.verdict in (Verdict.BAD, Verdict.GOOD) and not self._compiled():
            why = f"{observation.figures}, but no kernel was compiled for a GPU"
            observation = replace(observation, verdict=Verdict.SKIP, why=why)
        if self.first is None:
            self.first = observation
        return observation

    def test(self, change: TriageChange) -> Observation:
        """Run it with a change; twice where the symptom is gone, for it may come and go."""
        if change.assembler:
            return self._assembled(change)
        if change.build:
            return self._told(change)
        return self._steady(change)

    def _told(self, change: TriageChange) -> Observation:
        """Test with a build that reports more, whose interpreter runs the script."""
        space = workspace.default()
        if not _PYTHON.match(Path(self.argv[0]).name):
            return Observation(Verdict.SKIP, why=f"{self.argv[0]} is not a Python that another can replace")

        def look(watched: TriageChange, python: Path) -> Observation:
            # The same subject but for its interpreter: same symptom, and the folders that `_log` reads.
            return replace(self, argv=(str(python), *self.argv[1:]), python=python).observe(watched)

        try:
            build = check.find(change.build, self._python, self.triton, space)
            return check.test(change, build, space, look, self._log)
        except InterruptedRunError:
            raise
        except SmithError as error:
            return not_tested(error)

    def _log(self, name: str) -> str:
        """Return the output of a change's last run."""
        return untrusted.text_if_any(self._folder(name) / "log")

    def _assembled(self, change: TriageChange) -> Observation:
        """Run it by another ptxas; its own is that of the GPUs that the baseline compiled for."""
        texts = map(untrusted.read_text, sorted((self._folder(BASELINE) / "cache").rglob("*.ptx")))
        # The command names no GPU: what it compiled for is in the cache of the baseline.
        capabilities = frozenset(
            f"{target[1]}.{target[2]}" for text in texts for target in _TARGET.finditer(text)
        )
        own = OwnPtxas(self._python, tritons.package(self._python), capabilities, None, self.out)
        return other_ptxas.test(change, self.triton, own, self._steady, self._log)

    def _steady(self, change: TriageChange) -> Observation:
        observation = self.observe(change)
        if observation.verdict is Verdict.GOOD:
            again = self.observe(change)
            if again.verdict is not Verdict.GOOD:
                why = f"it is flaky: {observation.figures}, then {again.figures}"
                return replace(again, verdict=Verdict.SKIP, why=why)
        return observation

    def observe(self, change: TriageChange) -> Observation:
        """Run it with a change, once."""
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
        """Name each run of a pass in the compiles of its kernels, in their order: `NAME#2`, as notes."""
        folder = self._fresh(change.name)
        observation = self._run(folder, self._operated(change, folder / "results"))
        rows = call.noted(folder / "results", OperatedRow)
        names = dict.fromkeys(f"{run['pass']}#{run['number']}" for row in rows for run in row.passes)
        if not names:
            return replace(
                observation, verdict=Verdict.SKIP, why="it compiles no kernel whose passes can be counted"
            )
        return replace(observation, verdict=Verdict.GOOD, notes=tuple(names))

    def _watched(self, change: TriageChange) -> Observation:
        """Run it under a tool of compute-sanitizer; what that says is another failure than the symptom."""
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
        if observation.verdict is Verdict.OTHER:
            return replace(observation, verdict=Verdict.BAD, figures="it found nothing")
        return observation

    def _fresh(self, name: str) -> Path:
        """Make a folder for one run of a change: another run's cache and results tell nothing of it."""
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
        """Return no command: it is unknown which kernels a command needs."""
        return ""

    def _compiled(self, name: str = BASELINE) -> frozenset[str]:
        """Return the backends that the runs of a change compiled for."""
        cache = self._folder(name) / "cache"
        return frozenset(name for name, stage in _STAGES.items() if next(cache.rglob(f"*.{stage}"), None))

    def _operated(self, change: TriageChange, results: Path) -> dict[str, str]:
        """Return variables with which each Python compiles with a change's options, or without its pass."""
        files.make_folder(results)
        request, site = results.parent / "request.json", results.parent / "site"
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
        environ = {**os.environ, "PYTHONFAULTHANDLER": "1", "PATH": self._path, **variables}
        # A cache of its own: what another change compiled would be found, and nothing compiled with this one.
        environ |= {"TRITON_CACHE_DIR": str(folder / "cache")}
        argv, result = tuple(self.argv), folder / "no check"
        if self.check:
            argv, result = self.check.argv(argv, folder, "check")
        if launcher:
            at = check.script_of(argv, launcher)
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
        late = bool(self.timeout) and seconds >= self.timeout
        if self.check:
            status, text = check.read(result)
            if status:
                return replace(_CHECKED[status], figures=text, seconds=seconds)
            figures = f"no end after {self.timeout} s" if late else f"exit code {code}: {last[:_SHOWN]}"
            verdict = Verdict.OTHER if self.first else Verdict.SKIP
            return Observation(verdict, figures, "it ends before the check", seconds)
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
_LONGEST = 60  # characters of what a run said


@dataclass(frozen=True)
class ProgramKnockout:
    """A program without each pass.

    Attributes:
        triton: version.
        baseline: with all passes.
        passes: `NAME#2` to what was seen without it, in their order.
    """

    triton: str
    baseline: Observation
    passes: dict[str, Observation]


def run(
    subject: CommandSubject, journal: Journal, tell: Callable[[str, Observation], None]
) -> ProgramKnockout:
    """Run it as it is, and then without each pass that its kernels are compiled with.

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


def table(result: ProgramKnockout, *, check: bool) -> Grid:
    """A line for each pass.

    Args:
        result: what was seen.
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


def as_json(result: ProgramKnockout, *, check: bool) -> dict[str, Any]:
    """All of it."""
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
