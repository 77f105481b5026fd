"""The culprit moves the LLVM pin: the commits of LLVM between both pins, and the first bad one among them.

LLVM's code generator is searched alone: llc on the llir that a side of the step was compiled to. Where that
does not show it, LLVM's O3 is searched with it: opt and llc on the llir before O3. Either is sound only where
the old pin is good and the new pin is bad on the same llir.

There is one build tree, which moves from commit to commit; neither MLIR nor Triton is built. The user's clone
is only read: sources lie in a clone of the tool's own, which borrows the user's objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake
from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.build.triton import commands
from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler import tritons
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.envs.settings import LlvmSettings, Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, Run, Step, digest, files, locks
from tritonsmith.facts import llvm_history
from tritonsmith.facts.llvm_history import LlvmHistory
from tritonsmith.facts.llvm_tree import LlvmRequest
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab import experiment
from tritonsmith.lab.bisect import candidates
from tritonsmith.lab.bisect import session as sessions
from tritonsmith.lab.bisect.candidates import TritonTests, borrowed_clone
from tritonsmith.lab.bisect.kernels import CompilesOf, KernelTests, Manifests
from tritonsmith.lab.bisect.search import BisectRange, CommitCosts, LlvmState, first_bad
from tritonsmith.lab.bisect.session import BisectSession
from tritonsmith.lab.blame import llc as llcs
from tritonsmith.lab.blame import pipeline
from tritonsmith.lab.blame.pipeline import BlameSide, MixedPipeline
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import Journal, Observation, Verdict

LLC, OPT = "llc", "opt and llc"  # what is tested of LLVM
_AND = " and "
_SHORT = 12  # digits of a commit
_TASK = "setup-mlir"  # what builds of LLVM are to receipts and logs
_BINARY = {"cuda": "cubin", "hip": "hsaco"}

LlcTest = Callable[[Triton], Observation]


@dataclass(frozen=True)
class LlvmRange:
    """The commits between the pins before and after a bump.

    Attributes:
        old: the pin before it.
        new: the pin that it names.
        targets: the code generators: `NVPTX`.
        history: of a clone; None if there is none that has both pins.
        by_pass: the pass at which the compiles diverge, and its files; none if it is not one of LLVM or MLIR.
        note: why there is no history, and what to give.
    """

    old: str
    new: str
    targets: tuple[str, ...]
    history: LlvmHistory | None = None
    by_pass: tuple[str, tuple[str, ...]] = ("", ())
    note: str = ""

    @property
    def url(self) -> str:
        """The comparison of both on GitHub."""
        return f"{_page()}/compare/{self.old}...{self.new}"

    def lines(self) -> Iterator[str]:
        """Yield the findings, a sentence each."""
        yield f"LLVM between the pins: {self.url}"
        if self.history is None:
            yield self.note
            return
        near, name, files = self.history.near, *self.by_pass
        count = len(self.history.commits) - 1
        targets = " and ".join(self.targets)
        yield f"LLVM: {count} commits, {len(near)} of them in the code generator for {targets}"
        shown = near
        # The pass in which the compiles part is where to look first; without one, the code generator is.
        if files:
            shown = self.history.touching(files)
            yield f"LLVM: {len(shown)} of them in the pass {name}, {_folder(files)}"
        yield from _named(shown or near)

    def as_json(self) -> dict[str, Any]:
        """Return all that is known of the range."""
        history = self.history
        return {
            "old": self.old,
            "new": self.new,
            "compare": self.url,
            "targets": list(self.targets),
            "commits": len(history.commits) - 1 if history else None,
            "near": [_as_json(commit) for commit in history.near] if history else None,
            "pass": self.by_pass[0] or None,
            "touching_pass": [_as_json(commit) for commit in history.touching(self.by_pass[1])]
            if history
            else None,
            "note": self.note or None,
        }


def range_of(
    commits: Sequence[TritonCommit], culprit: TritonCommit, vendor: str, clone: Path | None, by_pass: str = ""
) -> LlvmRange | None:
    """Return the range of a culprit; None if that does not move a pin from one commit of LLVM to another.

    Args:
        commits: the range of Triton in which the culprit was found.
        culprit: the commit of Triton.
        vendor: `nvidia` or `amd`; empty for both.
        clone: of LLVM; None if none was given.
        by_pass: the pass in which the compiles part; empty if that is none of LLVM's or MLIR's.
    """
    before = next((commit for commit, after in pairwise(commits) if after == culprit), None)
    if not culprit.bump or before is None or not before.pin or not culprit.pin:
        return None
    targets = configs.load("bisect")["llvm"]["targets"]
    generators = (targets[vendor],) if vendor else tuple(targets.values())
    pins = LlvmRange(before.pin, culprit.pin, generators)
    if clone is None:
        more = command("bisect --resume", llvm_source="CLONE")
        return replace(pins, note=f"{more} with a clone of LLVM narrows them down and tests them")
    try:
        history = llvm_history.read(clone, pins.old, pins.new, pins.targets)
    except FactError as error:
        why = ": ".join(filter(None, (error.what, error.why)))
        return replace(pins, note="; ".join((f"LLVM's commits are not listed: {why}", *error.hints)))
    files = llvm_history.files_of(clone, pins.new, by_pass) if by_pass else ()
    return replace(pins, history=history, by_pass=(by_pass, files))


@dataclass(frozen=True)
class LlcCandidate:
    """A commit of LLVM whose programs are tested.

    Attributes:
        by: the programs, `llc` or `opt and llc`.
        side: of the step of Triton, whose llir they compile: `good` or `bad`.
        commit: of LLVM.
    """

    by: str
    side: str
    commit: TritonCommit

    @property
    def name(self) -> str:
        """See `experiment.Change`."""
        return f"{self.by} {self.side} {self.commit.commit}"


@dataclass
class LlvmBisect:
    """A search for the first commit of LLVM whose programs show the symptom.

    Attributes:
        range: the commits.
        builds: of llc, and of opt where it is needed.
        tests: by what is tested, `llc` or `opt and llc`, and by side of the step whose llir is taken. The
            first by which the ends differ is searched.
        session: of the search over Triton, below which this one has its journal.
        tell: gets a line for each outcome.
        by: the programs that were searched with, or tried last.
        side: the side whose llir shows it; empty if neither does.
        suspects: commits of which one is the culprit, the last one known to be bad.
        journal: of the tests.
    """

    range: LlvmRange
    builds: LlcBuilds
    tests: Mapping[str, Mapping[str, LlcTest]]
    session: BisectSession
    tell: Callable[[str], None] = field(default=print)
    by: str = ""
    side: str = ""
    suspects: tuple[TritonCommit, ...] = ()
    journal: Journal = field(default_factory=Journal)

    def run(self) -> tuple[str, ...]:
        """Search, and return the findings, each a sentence."""
        history = self.range.history
        if history is None:
            return ()
        if not any(self.tests.values()):
            return ("LLVM: its commits are not tested: a command or a test provides no llir for llc",)
        if len(history.candidates) == 1:
            return ("LLVM: no commit between the pins changes the sources of llc, so the llir must differ",)
        # The clone that borrows its objects has no remote from which git could fetch what they lack.
        if llvm_history.is_partial(self.builds.clone):
            return ("LLVM: llc cannot be built from a partial clone: use a full clone of LLVM to continue",)
        pins = f"{self.range.old[:_SHORT]}-{self.range.new[:_SHORT]}"
        self.journal = sessions.llvm_journal(self.session, pins)
        return experiment.run(self.search(history.candidates), self.test, self.journal, self._note)

    def search(self, commits: Sequence[TritonCommit]) -> Search[LlcCandidate, tuple[str, ...]]:
        """Ask for both ends on the llir of both sides, then for commits between them on one that shows it."""
        findings: list[str] = []
        answered = True
        for by in self.tests:
            self.by, observations = by, dict[str, Observation]()
            # By both sides at once, as the next commit replaces the llc of this one.
            for commit in (commits[0], commits[-1]):
                rows = [LlcCandidate(by, side, commit) for side in self.tests[by]]
                observations |= zip((row.name for row in rows), (yield rows), strict=True)
            ends = {
                side: [observations[LlcCandidate(by, side, commits[at]).name] for at in (0, -1)]
                for side in self.tests[by]
            }
            # Only where the old pin is good and the new one bad on the same llir is LLVM the cause: see the
            # module.
            shows = [Verdict.GOOD, Verdict.BAD]
            self.side = next(
                (side for side, both in ends.items() if [end.verdict for end in both] == shows), ""
            )
            if self.side:
                return *findings, *(yield from self._narrowed(commits, observations))
            answered = all(end.verdict is not Verdict.SKIP for both in ends.values() for end in both)
            findings += _not_alone(by, ends, tested=answered)
            if by == LLC and not answered:  # what llc does not read, opt does not either
                return tuple(findings)
        before = "LLVM's O3, and at Triton's own pass in it" if answered else "the llir"
        return *findings, f"so look at what comes before {before}: invoke blame says which component it is"

    def test(self, rows: Sequence[LlcCandidate]) -> Iterator[Observation]:
        """Build the programs of each commit, once for all its rows, and test them."""
        # `groupby` joins neighbours only; `search` asks for the rows of one commit together.
        for _, group in groupby(rows, key=lambda row: row.commit.commit):
            same = list(group)
            programs = candidates.built(same[0].commit, self._builds(same[0].by))
            for row in same:
                if isinstance(programs, Observation):
                    yield programs
                    continue
                outcome = self.tests[row.by][row.side](programs.triton)
                metrics = {**outcome.metrics, **programs.metrics}
                yield replace(outcome, seconds=outcome.seconds + programs.seconds, metrics=metrics)

    def as_json(self) -> dict[str, Any]:
        """Return the outcomes and the suspects."""
        return {
            "by": self.by if self.side else None,
            "llir_of": self.side or None,
            "suspects": [_as_json(commit) for commit in self.suspects],
            "decided": len(self.suspects) == 1,
            "tested": [
                {
                    "commit": commit,
                    "by": by,
                    "llir_of": side,
                    "verdict": outcome.verdict,
                    "figures": outcome.figures,
                    "why": outcome.why,
                    "seconds": outcome.seconds,
                }
                for by in self.tests
                for side in self.tests[by]
                for commit, outcome in self._tested(by, side).items()
            ],
        }

    def _narrowed(
        self, commits: Sequence[TritonCommit], observations: dict[str, Observation]
    ) -> Search[LlcCandidate, tuple[str, ...]]:
        builds, rows = self._builds(self.by), [LlcCandidate(self.by, self.side, commit) for commit in commits]
        costs = CommitCosts(
            commits, builds.llvm_state, lambda commit: builds.built(commit) is not None, builds.last
        )
        known = [*self.journal.observations, *self.journal.skipped]
        # One at a time: there is a single build tree.
        state = yield from first_bad(BisectRange(rows, costs, known, observations=observations))
        self.suspects = tuple(commits[index] for index in state.culprits)
        good, bad = commits[state.good], commits[state.bad]
        tested = self._tested(self.by, self.side)
        figures = [tested[commit.commit].figures for commit in (good, bad) if commit.commit in tested]
        how = f"{len(tested)} of {len(commits)} tested, by {self.by} on the llir of the {self.side} side"
        what = (
            "first bad commit"
            if len(self.suspects) == 1
            else f"one of {len(self.suspects)} commits, since others were skipped"
        )
        findings = [
            f"LLVM: {what}: {bad.commit[:_SHORT]} {bad.subject}, {bad.date[:10]}: {_link(bad)}",
            f"LLVM: {' -> '.join(figures)}; {how}",
        ]
        for commit in self.suspects[:-1]:
            why = tested[commit.commit].why if commit.commit in tested else "not tested"
            findings.append(
                f"LLVM: another suspect: {commit.commit[:_SHORT]} {commit.subject}: skipped: {why}"
            )
        if state.contradictions:
            again = commits[state.contradictions[0]].commit[:_SHORT]
            findings.append(f"LLVM: good again at {again}: it changed more than once")
        return tuple(findings)

    def _tested(self, by: str, side: str) -> dict[str, Observation]:
        """Return the outcome of each commit that a test has."""
        begin = f"{by} {side} "
        outcomes = sessions.tested(self.journal)
        return {name.removeprefix(begin): row for name, row in outcomes.items() if name.startswith(begin)}

    def _builds(self, by: str) -> LlcBuilds:
        # `by` names the programs that are tested, so it says which have to be built.
        return replace(self.builds, programs=tuple(by.split(_AND)))

    def _note(self, name: str, outcome: Observation) -> None:
        commit = name.rpartition(" ")[2]
        self.tell(f"LLVM {commit[:_SHORT]}: {outcome.verdict}: {outcome.evidence} ({outcome.seconds:.0f} s)")


def _not_alone(by: str, seen: Mapping[str, Sequence[Observation]], *, tested: bool) -> Iterator[str]:
    """Describe both ends where neither llir shows the symptom."""
    what = "LLVM's O3 and code generator do not" if _AND in by else "LLVM's code generator alone does not"
    # An end that was not tested proves nothing about LLVM.
    lead = f"{what} show it" if tested else f"LLVM's commits are not searched with {by}"
    yield f"{lead}: the {by} of both pins on the same llir, old and new:"
    for side, ends in seen.items():
        old, new = (f"{end.verdict}: {end.figures or end.why}" for end in ends)
        yield f"LLVM: llir of the {side} side: {old}; {new}"


def _named(commits: Sequence[TritonCommit]) -> Iterator[str]:
    most = configs.load("bisect")["llvm"]["listed"]
    for commit in commits[:most]:
        yield f"LLVM: {commit.commit[:_SHORT]} {commit.subject}, {commit.date[:10]}"
    if len(commits) > most:
        yield f"LLVM: and {len(commits) - most} more: --json names them"


def _as_json(commit: TritonCommit) -> dict[str, Any]:
    return {"commit": commit.commit, "subject": commit.subject, "date": commit.date, "pull": commit.pull}


def _link(commit: TritonCommit) -> str:
    return f"{_page()}/pull/{commit.pull}" if commit.pull else f"{_page()}/commit/{commit.commit}"


def _folder(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files such as {files[0]}"


def _page() -> str:
    return str(configs.load("bisect")["llvm"]["page"])


@dataclass(frozen=True)
class LlcBuilds:
    """Builds the llc of commits of one clone.

    Attributes:
        clone: the user's.
        settings: of the environment whose compiler, linker, cache and jobs are used.
        space: the workspace, in which everything goes.
        targets: the code generators: `NVPTX`.
        programs: the programs to build: llc, and opt if it is tested with it.
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
        # The targets are part of the name: a tree that is configured for others compiles most of LLVM again.
        return self.space.env(f"{self.source.name}-{'-'.join(self.targets)}")

    @property
    def tree(self) -> Path:
        """The build tree."""
        return self.env.path / "llvm"

    def llvm_state(self, _pin: str) -> LlvmState:
        """Return the state of an LLVM that has to be built first, of which an llc has none."""
        return "ready"

    def last(self, _pin: str) -> str:
        """Return the commit that was built last; empty if none was, or not all of the programs."""
        # A tree with llc alone still has to build opt, so a receipt counts for the programs that it names.
        receipt = receipts.read(self.env.receipt(_TASK)) or {}
        return str(receipt.get("commit", "")) if {*self.programs} <= {*receipt.get("programs", ())} else ""

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        """Return the receipt of the last build, if it was of this commit."""
        return receipts.read(self.env.receipt(_TASK)) if self.last("") == commit.commit else None

    def make(self, commit: TritonCommit) -> Triton:
        """Build the llc of a commit; it is there until the next one is built, and named as an interpreter is.

        Raises:
            SmithError: it cannot be built; a StepError is the commit's own.
        """
        self.space.claim()
        with (
            # Every bisect with this clone of LLVM moves the same tree.
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
        # A sparse checkout: a whole one of LLVM has over 100 000 files, and each commit moves it.
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
        # The same tools as a build of LLVM for Triton, so that the compiler cache serves both.
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
    """Compiles by an llc, in which LLVM alone differs: the llir and the assembler are those of one Triton.

    Attributes:
        tritons: compiles by Tritons.
        whose: the Triton whose llir is taken, and whose assembler.
        llc: the llc, as its builds name it.
        out: folder of all files; the next llc writes each of them again.
        optimizes: whether the llir is taken before LLVM's O3, and that is run by the opt beside the llc.
    """

    tritons: CompilesOf
    whose: Triton
    llc: Triton
    out: Path
    optimizes: bool = False

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Do nothing: one llc is tested after another."""

    def of(self, triton: Triton) -> Manifests:
        """Return the compiles by the llc, or by a Triton."""
        # An end that others are compared with is a Triton, and is compiled as such.
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
        """Return the text and the binary that the llc's code becomes.

        Raises:
            FactError: a step rejects the output of the step before.
        """
        # `LlcBuilds.make` puts the llc where other Tritons have their interpreter.
        llc = llcs.of(Path(self.llc.python))
        place = tritons.place_of(self.whose, 1)
        side = BlameSide(self.whose.label, place.python, made, point, place.variables)
        parts = pipeline.components_of(point.backend, point.stages)
        # No mixture of two Tritons: both sides are the same one, and only its llc is another.
        mixed = MixedPipeline(
            {"A": side, "B": side}, parts, point.options, folder / "work", workspace.default(), silent=True
        )
        text = mixed.stages[-1]
        out = folder / point.id / side.file(text).name
        files.make_folder(mixed.work)
        mixed.by_llc("A", llc, out, mixed.unoptimized("A") if self.optimizes else None)
        binary = _BINARY[point.backend]
        assembled = mixed.step("A", text, out, binary)[0]
        return {name: _stage(path, folder) for name, path in ((text, out), (binary, assembled))}


def _stage(path: Path, folder: Path) -> Stage:
    content = path.read_bytes()
    return Stage(str(path.relative_to(folder)), len(content), hashlib.sha256(content).hexdigest())


def llc_tests(
    of_tritons: TritonTests, sides: Mapping[str, Triton], out: Path, *, optimizes: bool
) -> dict[str, LlcTest]:
    """Return the test of an llc for each side of a step; none for commands and tests, which have no llir.

    Args:
        of_tritons: the tests of the bisect.
        sides: name to Triton.
        out: folder for the compiles.
        optimizes: whether LLVM's O3 is tested with the llc, by the opt beside it.
    """
    if not isinstance(of_tritons, KernelTests):
        return {}

    def test(name: str, whose: Triton, llc: Triton) -> Observation:
        compiles = LlcCompiles(of_tritons.compiles, whose, llc, out / name, optimizes)
        # The question of the bisect itself, about other compiles: another question could have another
        # culprit.
        return replace(of_tritons, compiles=compiles).test(llc)

    return {name: partial(test, name, whose) for name, whose in sides.items()}
