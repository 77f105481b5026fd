"""Tests of Tritons by the kernels that they compile: several Tritons in one pool, and one question.

The llc of a commit of LLVM: how it is built, and compiles in which LLVM alone differs.

There is one build tree, which moves from commit to commit; neither MLIR nor Triton is built. The user's clone
is only read: sources lie in a clone of the tool's own, which borrows the user's objects. A compile takes the
llir of one Triton, an llc, and then that Triton's assembler.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tritonsmith.build import cmake
from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.build.triton import commands
from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler import tritons
from tritonsmith.compiler.manifest import Manifest, Point, Stage, folder_name
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.envs.settings import LlvmSettings, Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Step, digest, files, locks
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab import questions
from tritonsmith.lab.batch import run
from tritonsmith.lab.batch.run import CompileJob
from tritonsmith.lab.bisect.candidates import Observations, TritonTests, borrowed_clone, one_by_one
from tritonsmith.lab.bisect.search import LlvmState
from tritonsmith.lab.blame import llc as of_llc
from tritonsmith.lab.blame import verdict
from tritonsmith.lab.blame.pipeline import BlameSide, MixedPipeline
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.terms import Term

Manifests = tuple[Manifest, ...]


def kernel_folder(out: Path, triton: Triton, kernel: ComparedKernel) -> Path:
    """Return the folder with one Triton's compiles of one kernel."""
    return out / folder_name(triton.label) / kernel.name


class UntestableError(FactError):
    """This Triton cannot compile these kernels at all; another one may."""


class CompilesOf(Protocol):
    """Compiles of the same kernels by many compilers: `KernelCompiles`, `llc.LlcCompiles`."""

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Do at once what can be done at once for several Tritons."""

    def of(self, triton: Triton) -> Manifests:
        """The compiles by one of them.

        Raises:
            UntestableError: it cannot be had, or refuses the kernels' files.
        """


@dataclass(frozen=True)
class KernelCompiles:
    """Compiles of the same kernels by many Tritons.

    Attributes:
        kernels: what is compiled.
        out: folder of all of them.
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes; None for as many as cores and memory allow.
        timeout: seconds for one point; None for the usual.
        silent: show no progress.
        again: compile anew at each request, for what differs from run to run.
    """

    kernels: tuple[ComparedKernel, ...]
    out: Path
    scheduler: str = ""
    count: int | None = None
    timeout: int | None = None
    silent: bool = False
    again: bool = False
    _known: dict[str, Manifests] = field(default_factory=dict, compare=False)

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Compile by several Tritons in one pool; what goes wrong is told when one of them is asked for."""
        jobs = {triton.label: self._jobs(triton) for triton in tritons}
        needed = {label: compiles for label, compiles in jobs.items() if compiles}
        try:
            every = iter(self._run([job for compiles in needed.values() for job in compiles]))
        except (FactError, UsageError):
            # One Triton that refuses the kernels fails the whole pool. Each is then compiled alone, by `of`,
            # and only that one is a skip.
            return
        self._known.update(
            {label: tuple(next(every) for _ in compiles) for label, compiles in needed.items()}
        )

    def of(self, triton: Triton) -> Manifests:
        """The compiles by one Triton.

        Raises:
            UntestableError: this Triton cannot be had for this Python, or refuses the kernels' files.
            SmithError: something else is in the way.
        """
        if triton.label not in self._known:
            jobs = self._jobs(triton)
            if not jobs:
                raise UntestableError(f"no kernel of the list is for Triton {triton.triton}")
            try:
                self._known[triton.label] = tuple(self._run(jobs))
            except (FactError, UsageError) as error:
                why = error.why.splitlines()[-1] if error.why else ""  # of a traceback, its message
                raise UntestableError(": ".join(filter(None, (error.what, why)))) from error
        return self._known.pop(triton.label) if self.again else self._known[triton.label]

    def _jobs(self, triton: Triton) -> tuple[CompileJob, ...]:
        return tuple(
            CompileJob(kernel.asked, triton, kernel_folder(self.out, triton, kernel))
            for kernel in self.kernels
            if not triton.triton or kernel.versions.contains(triton.triton, prereleases=True)
        )

    def _run(self, jobs: Sequence[CompileJob]) -> list[Manifest]:
        if self.again:  # a result that is there would be found again by its folder
            space = workspace.default()
            step = Remove(tuple(job.out for job in jobs), space.root, phase="compile again")
            space.run(Plan("compile again", (step,)), "bisect", quiet=True)
        return run.compile_all(
            jobs, self.scheduler, count=self.count, timeout=self.timeout, resume=True, silent=self.silent
        )


@dataclass(frozen=True)
class KernelTests:
    """Tests of Tritons by a question about their compiles.

    Attributes:
        compiles: of the kernels.
        question: of `lab.questions.compiles`; it gets the compiles by the end, then those of the Triton.
        end: names the Triton that others are compared with, which may have to be built: the good one for
            signed terms, the bad one for a failure; None for a question about single compiles.
    """

    compiles: CompilesOf
    question: Callable[[Manifests, Manifests], Observation]
    end: Callable[[], Triton] | None = None

    def outcomes(self, tritons: Sequence[Triton]) -> Observations:
        """Compile by all of them in one pool, then look at each."""
        if len(tritons) > 1:
            self.compiles.prepare(tritons)
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Compile, and ask."""
        try:
            compiles = self.compiles.of(triton)
            return self.question(self.compiles.of(self.end()) if self.end else compiles, compiles)
        except UntestableError as error:
            return Observation(Verdict.SKIP, why=error.what)


def broken_limit(compiles: CompilesOf, terms: tuple[Term, ...], good: Callable[[], Triton]) -> KernelTests:
    """Return tests that are bad where any compile breaks any term; signed terms are about the good end."""
    signed = any(term.change for term in terms)
    return KernelTests(compiles, partial(questions.limit, terms), good if signed else None)


def same_failure(compiles: CompilesOf, bad: Callable[[], Triton]) -> KernelTests:
    """Return tests that are bad where a kernel fails as it does at the bad end."""
    return KernelTests(compiles, questions.same_failure, bad)


@dataclass(frozen=True)
class WrongResultTests:
    """Bad where any kernel is changed by a pass; a kernel that cannot be checked to the end is a skip.

    Attributes:
        kernels: what is checked, each for all of its targets.
        out: folder of the dumps.
        timeout: seconds for one compile; None for the usual.
        silent: show no progress.
    """

    kernels: tuple[ComparedKernel, ...]
    out: Path
    timeout: int | None = None
    silent: bool = False

    def outcomes(self, tritons: Sequence[Triton]) -> Observations:
        """One after another."""
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Dump, and run the IR after each pass."""
        from tritonsmith.lab.questions import wrong  # noqa: PLC0415 - xDSL, of an extra that may be missing

        began, why = time.monotonic(), "" if self.kernels else "no kernel"
        for kernel, target in ((row, target) for row in self.kernels for target in row.asked.targets):
            folder = self.out / folder_name(triton.label) / folder_name(f"{kernel.name}-{target}")
            try:
                where = tritons.place_of(triton, 1, self.timeout)
                request = replace(tritons.applied(kernel.asked, triton), targets=(target,))
            except InterruptedRunError:
                raise
            except SmithError as error:
                why = error.line
                continue
            observation = wrong(request, where, folder, silent=self.silent)
            if observation.verdict is Verdict.BAD:
                return replace(observation, seconds=time.monotonic() - began, notes=(), cause="")
            why = observation.why or why
        seconds = time.monotonic() - began
        if why:
            return Observation(Verdict.SKIP, why=why, seconds=seconds)
        return Observation(Verdict.GOOD, "no pass changes the result", seconds=seconds)


_TASK = "setup-mlir"  # what builds of LLVM are to receipts and logs
_SHORT = 12  # digits of a commit
_BINARY = {"cuda": "cubin", "hip": "hsaco"}


LlcTest = Callable[[Triton], Observation]


@dataclass(frozen=True)
class LlcBuilds:
    """Builds the llc of commits of one clone.

    Attributes:
        clone: the user's.
        settings: of the environment whose compiler, linker, cache and jobs are used.
        space: the workspace, in which everything goes.
        targets: the code generators: `NVPTX`.
        programs: that are built: the llc, and whatever else is tested with it.
    """

    clone: Path
    settings: Settings
    space: Workspace
    targets: tuple[str, ...]
    programs: tuple[str, ...] = ("llc",)

    @property
    def source(self) -> Path:
        """The clone of the tool's own, at the commit that was built last."""
        return self.space.sources / f"bisect-llvm-{digest(str(self.clone))[:8]}"

    @property
    def env(self) -> EnvDir:
        """The folder of receipts, logs and the build tree."""
        return self.space.env(f"{self.source.name}-{'-'.join(self.targets)}")

    @property
    def tree(self) -> Path:
        """The build tree."""
        return self.env.path / "llvm"

    def llvm_state(self, _pin: str) -> LlvmState:
        """There is no other LLVM to wait for."""
        return "ready"

    def last(self, _pin: str) -> str:
        """The commit that was built last; empty if none was, or not all of the programs."""
        receipt = receipts.read(self.env.receipt(_TASK)) or {}
        return str(receipt.get("commit", "")) if {*self.programs} <= {*receipt.get("programs", ())} else ""

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        """The receipt of the last build, if it was of this commit."""
        return receipts.read(self.env.receipt(_TASK)) if self.last("") == commit.commit else None

    def make(self, commit: TritonCommit) -> Triton:
        """Build the llc of a commit; it is there until the next one is built, and named as an interpreter is.

        Raises:
            SmithError: it cannot be built; a StepError is the commit's own.
        """
        self.space.claim()
        with (
            locks.hold(self.source.with_suffix(".lock"), purpose="bisect"),
            receipts.open_session(_TASK, self.env.name) as running,
        ):
            running.run_unseen(
                (*borrowed_clone(self.clone, self.source, self.space), *self._move(commit.commit))
            )
            receipt = {"commit": commit.commit, "targets": self.targets, "programs": self.programs}
            commands.execute(PreparedBuild(Plan("an llc", self._build()), (), receipt), running)
        return Triton(f"llc {commit.commit[:_SHORT]}", python=str(self.tree / "bin" / "llc"))

    def _move(self, commit: str) -> tuple[Step, ...]:
        folders = (
            folder for folder in configs.load("triton-eras")["llvm-source"]["folders"] if folder != "mlir"
        )
        calls = (("sparse-checkout", "set", *folders), ("checkout", "--quiet", "--force", "--detach", commit))
        phase = llvm_source.PHASE_SOURCES
        return tuple(Run(("git", *call), cwd=self.source, phase=phase) for call in calls)

    def _build(self) -> tuple[Step, ...]:
        llvm = LlvmSettings(**configs.load("bisect")["llvm"]["settings"], targets=self.targets)
        settings = replace(
            self.settings, llvm=replace(llvm, precompiled_headers=self.settings.llvm.precompiled_headers)
        )
        means = setup_mlir.build_tools(settings)
        request = LlvmRequest(None, frozenset(), "", settings.llvm)
        variables = llvm_source.cache_variables(request, means) | configs.load("bisect")["llvm"]["cmake"]
        phase = llvm_source.PHASE_CONFIGURE
        return (
            MakeDir(self.tree, phase=phase),
            *cmake.configure(
                self.source / "llvm", self.tree, variables, means.tools, phase=phase, root=self.space.root
            ),
            cmake.build_targets(
                self.tree,
                means.tools,
                targets=self.programs,
                jobs=means.jobs.compile,
                phase=llvm_source.PHASE_BUILD,
            ),
        )


@dataclass(frozen=True)
class LlcCompiles:
    """Compiles by an llc, beside those by Tritons.

    Attributes:
        tritons: compiles by Tritons.
        whose: the Triton whose llir is taken, and whose assembler.
        llc: it, as its builds name it.
        out: folder of all that is made; each file is written again by the next llc.
        optimizes: whether the llir is taken before LLVM's O3, and that is run by the opt beside the llc.
    """

    tritons: CompilesOf
    whose: Triton
    llc: Triton
    out: Path
    optimizes: bool = False

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Nothing: one llc is tested after another."""

    def of(self, triton: Triton) -> Manifests:
        """The compiles by the llc, or by a Triton."""
        every = self.tritons.of(self.whose if triton == self.llc else triton)
        return tuple(map(self._compiled, every)) if triton == self.llc else every

    def _compiled(self, made: Manifest) -> Manifest:
        folder = self.out / made.folder.name
        points = tuple(self._point(made, point, folder) for point in made.points)
        compiled = replace(made, folder=folder, points=points)
        files.write_atomically(folder / manifests.FILE, compiled.render())
        return compiled

    def _point(self, made: Manifest, point: Point, folder: Path) -> Point:
        files.make_folder(folder / point.id)
        try:
            stages = self._stages(made, point, folder)
        except FactError as error:
            error_text = ": ".join(filter(None, ("error", error.what, error.why)))
            return replace(point, status="failed", stages={}, error=error_text, log=error.why or "")
        # What the Triton's own LLVM said of this compile, a failure or remarks, is not what this one does.
        return replace(point, status="ok", stages=stages, error="", log="", remarks=None)

    def _stages(self, made: Manifest, point: Point, folder: Path) -> dict[str, Stage]:
        """The text and the binary that the llc's code becomes.

        Raises:
            FactError: a step cannot take what the step before made.
        """
        llc = of_llc.of(Path(self.llc.python))
        place = tritons.place_of(self.whose, 1)
        side = BlameSide(self.whose.label, place.python, made, point, place.variables)
        parts = verdict.of(point.backend, point.stages)
        # No mixture of two Tritons: both sides are the same one, and only its llc is another.
        pipeline = MixedPipeline(
            {"A": side, "B": side}, parts, point.options, folder / "work", workspace.default(), silent=True
        )
        text = pipeline.stages[-1]
        out = folder / point.id / side.file(text).name
        files.make_folder(pipeline.work)
        pipeline.by_llc("A", llc, out, pipeline.unoptimized("A") if self.optimizes else None)
        binary = _BINARY[point.backend]
        assembled = pipeline.step("A", text, out, binary)[0]
        return {name: _stage(path, folder) for name, path in ((text, out), (binary, assembled))}


def _stage(path: Path, folder: Path) -> Stage:
    content = path.read_bytes()
    return Stage(str(path.relative_to(folder)), len(content), hashlib.sha256(content).hexdigest())


def tests(
    of_tritons: TritonTests, sides: Mapping[str, Triton], out: Path, *, optimizes: bool
) -> dict[str, LlcTest]:
    """For each side of a step, the test of an llc by its llir; none for what has no llir: commands and tests.

    Args:
        of_tritons: the tests of the bisect.
        sides: name to Triton.
        out: folder for what is made.
        optimizes: whether LLVM's O3 is tested with the llc, by the opt beside it.
    """
    if not isinstance(of_tritons, KernelTests):
        return {}
    kernel = of_tritons

    def of(name: str, whose: Triton) -> LlcTest:
        def test(llc: Triton) -> Observation:
            compiles = LlcCompiles(kernel.compiles, whose, llc, out / name, optimizes)
            return replace(kernel, compiles=compiles).test(llc)

        return test

    return {name: of(name, whose) for name, whose in sides.items()}
