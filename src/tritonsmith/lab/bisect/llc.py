"""The llc of a commit of LLVM: how it is built, and compiles in which LLVM alone differs.

There is one build tree, which moves from commit to commit; neither MLIR nor Triton is built. The user's clone
is only read: sources lie in a clone of the tool's own, which borrows the user's objects. A compile takes the
llir of one Triton, an llc, and then that Triton's assembler.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake
from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.prepared_build import PreparedBuild
from tritonsmith.build.triton import commands
from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler import tritons
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.envs import receipts, session, workspace
from tritonsmith.core.envs.schema import LlvmSettings, Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, Run, Step, digest, files, locks
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.build import borrowed_clone
from tritonsmith.lab.bisect.candidates import TritonTests
from tritonsmith.lab.bisect.cost import LlvmState
from tritonsmith.lab.bisect.kernels import CompilesOf, KernelTests, Manifests
from tritonsmith.lab.blame import components
from tritonsmith.lab.blame import llc as of_llc
from tritonsmith.lab.blame.pipeline import BlameSide, MixedPipeline
from tritonsmith.lab.model import Observation

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
            session.opened(_TASK, self.env.name) as running,
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
        parts = components.of(point.backend, point.stages)
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
