"""Compiles in which LLVM alone differs: the llir of one Triton by an llc, then that Triton's assembler."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler import tritons
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.lab.bisect.predicate.kernel_compiles import (
    CompilesOf,
    FailurePredicate,
    LimitPredicate,
    Manifests,
)
from tritonsmith.lab.bisect.predicate.protocol import ConfirmedPredicate, Predicate
from tritonsmith.lab.blame import components
from tritonsmith.lab.blame import llc as of_llc
from tritonsmith.lab.blame.pipeline import BlameSide, MixedPipeline
from tritonsmith.lab.model import Observation

_BINARY = {"cuda": "cubin", "hip": "hsaco"}


LlcTest = Callable[[Triton], Observation]


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
        found = replace(made, folder=folder, points=points)
        files.write_atomically(folder / manifests.FILE, found.render())
        return found

    def _point(self, made: Manifest, point: Point, folder: Path) -> Point:
        files.make_folder(folder / point.id)
        try:
            stages = self._stages(made, point, folder)
        except FactError as error:
            said = ": ".join(filter(None, ("error", error.what, error.why)))
            return replace(point, status="failed", stages={}, error=said, log=error.why or "")
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
    predicate: Predicate, sides: Mapping[str, Triton], out: Path, *, optimizes: bool
) -> dict[str, LlcTest]:
    """For each side of a step, the test of an llc by its llir; none for what has no llir: commands and tests.

    Args:
        predicate: of the bisect.
        sides: name to Triton.
        out: folder for what is made.
        optimizes: whether LLVM's O3 is tested with the llc, by the opt beside it.
    """
    inner = predicate.inner if isinstance(predicate, ConfirmedPredicate) else predicate
    if not isinstance(inner, (LimitPredicate, FailurePredicate)):
        return {}
    found = inner

    def of(name: str, whose: Triton) -> LlcTest:
        def test(llc: Triton) -> Observation:
            compiles = LlcCompiles(found.compiles, whose, llc, out / name, optimizes)
            return replace(found, compiles=compiles).test(llc)

        return test

    return {name: of(name, whose) for name, whose in sides.items()}
