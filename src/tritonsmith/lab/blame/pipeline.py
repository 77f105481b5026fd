"""The pipeline from a kernel to its binary, each step of which either of two Tritons may run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from tritonsmith.compiler import call, interpreter
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import Value
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, Remove, digest, files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.process import query
from tritonsmith.lab import metrics
from tritonsmith.lab.blame import llc as llcs
from tritonsmith.lab.blame.llc import Llc
from tritonsmith.worker.messages import StageRequest, StageRow

Side = Literal["A", "B"]
Choice = Mapping[str, Side]  # component to whose it is

TEXTS = {"cuda": ("ttir", "ttgir", "llir", "ptx"), "hip": ("ttir", "ttgir", "llir", "amdgcn")}
# What makes the binary of the last text; for AMD that is LLVM itself.
ENDS = {"cuda": ("flags", "ptxas"), "hip": ()}
Figures = Mapping[str, Value]  # metric to value

PHASE = "blame"
Product = TypeVar("Product")
_UNKNOWN = re.compile(r"^\s*\.extern \.func[^;]*?\b(llvm\.[\w.]+)|\b(llvm\.[a-z]\w*\.[\w.]+)@", re.MULTILINE)
_SHOWN = 3  # lines of a message of ptxas
_LAUNCH = re.compile(r"^\.(?:reqntid|maxntid|minnctapersm|maxnreg|reqnctapercluster)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class BlameSide:
    """One of the two Tritons, with what it compiles the kernel to.

    Attributes:
        label: as the user named it.
        python: its interpreter.
        manifest: the folder of its compile.
        point: the compile.
        variables: environment variables that are set for it.
    """

    label: str
    python: Path
    manifest: Manifest
    point: Point
    variables: Mapping[str, str] = field(default_factory=dict)

    def file(self, stage: str) -> Path:
        """Return the file of a stage.

        Raises:
            FactError: the compile has no such stage.
        """
        path = self.manifest.path(self.point, stage)
        if path is None:
            raise FactError(f"{self.label} produces no {stage}", where=self.manifest.folder)
        return path


@dataclass
class MixedPipeline:
    """Texts and figures of any mixture of A and B; each step is done once.

    Attributes:
        sides: A and B.
        components: of the pipeline.
        options: of the backend, for every step.
        work: the folder of everything that the steps write.
        space: the workspace.
        silent: show no progress.
        notes: texts that were read in another spelling.
    """

    sides: Mapping[Side, BlameSide]
    components: tuple[BlameComponent, ...]
    options: Mapping[str, Any]
    work: Path
    space: Workspace
    silent: bool = False
    notes: dict[str, None] = field(default_factory=dict)
    _results: dict[str, Any] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """`cuda` or `hip`."""
        return self.sides["A"].point.backend

    @property
    def stages(self) -> tuple[str, ...]:
        """Return the stages that are texts."""
        return tuple(part.name for part in self.components if part.name in TEXTS[self.backend])

    def text(self, choice: Choice, stage: str) -> Path:
        """Return the file of a stage of a mixture.

        Raises:
            FactError: a step cannot take the text of the step before.
        """
        before = self.stages[: self.stages.index(stage) + 1]
        whose = {choice[name] for name in before}
        # A text that one side alone has made was compiled already, before anything was mixed.
        if len(whose) == 1:
            return self.sides[whose.pop()].file(stage)
        source = self.text(choice, before[-2])
        # Only LLVM IR has older spellings that are known to mean the same.
        if before[-2] != "llir":
            return self.step(choice[stage], before[-2], source, stage)[0]
        like = self.sides[choice["llir"]].file(stage)

        def by_triton(llir: Path) -> Path:
            # The llir names its launch bounds, so its own Triton's assembly tells what a reader has to find
            # in it.
            text = self.step(choice[stage], "llir", llir, stage)[0]
            _check(text, like)
            return text

        return self._read_by(source, by_triton)

    def by_llc(self, whose: Side, llc: Llc, out: Path, unoptimized: Path | None = None) -> list[str]:
        """Compile the llir of a side with an llc.

        Args:
            whose: the side.
            llc: the llc.
            out: the file to write.
            unoptimized: an llir to take instead, by the opt of the same LLVM first.

        Returns:
            The flags of Triton that this llc does not have.

        Raises:
            FactError: it rejects the llir.
        """
        side = self.sides[whose]
        like = side.file(self.stages[-1])

        def compiled(llir: Path) -> list[str]:
            if unoptimized:
                llir = llcs.optimized(llc, llir, out.with_suffix(".llir"), side.point, side.manifest.triton)
            lacks = llcs.assembly(llc, llir, like, out, side.point, side.manifest.triton)
            _check(out, like)
            return lacks

        return self._read_by(unoptimized or side.file("llir"), compiled)

    def unoptimized(self, whose: Side) -> Path:
        """Return the llir of a side as it is given to LLVM's O3.

        Raises:
            FactError: this Triton does not make it.
        """
        side = self.sides[whose]
        off = {**side.variables, **configs.load("blame")["opt"]["off"]}
        return self.step(whose, "ttgir", side.file("ttgir"), "llir", off)[0]

    def figures(self, choice: Choice) -> Figures:
        """Return registers, spills and code of a mixture.

        Raises:
            FactError: a step cannot take the text of the step before.
        """
        last = self.stages[-1]
        text = self.text(choice, last)
        side = self.sides[choice[last]]  # whose metadata a launch would use
        if self.backend == "cuda":
            flags, program = self.assembler(choice["flags"])[1], self.assembler(choice["ptxas"])[0]
            return self.assembled(text, program, flags, side.point)
        path = self.step(choice[last], last, text, "hsaco")[0]
        point = side.point
        return summary(measure.values(path, point.arch, point.metadata, None), "hip")

    def assembler(self, whose: Side) -> tuple[Path, tuple[str, ...]]:
        """Return the ptxas that a side runs for its own PTX, and its flags.

        Raises:
            FactError: it fails.
        """
        side = self.sides[whose]
        argv = self.step(whose, "ptx", side.file("ptx"), "cubin")[1]
        if not argv:
            raise FactError(f"{side.label} runs no ptxas", where=side.manifest.origin)
        # Triton calls `ptxas FLAGS FILE.ptx -o OUT`.
        end = next(at for at, word in enumerate(argv) if word.endswith(".ptx"))
        return Path(argv[0]), argv[1:end]

    def assembled(self, ptx: Path, program: Path, flags: Sequence[str], point: Point) -> Figures:
        """Return the figures of a PTX by a ptxas.

        Raises:
            FactError: ptxas refuses it.
        """
        # By content: several mixtures end in the same PTX, and ptxas takes seconds for it.
        key = digest("ptxas", _content(ptx), str(program), list(flags))
        out = self.work / f"{key[:12]}.cubin"
        return self._once(key, lambda: _figures_of_ptx(ptx, program, flags, out, point))

    def step(
        self, whose: Side, of: str, source: Path, stage: str, variables: Mapping[str, str] | None = None
    ) -> tuple[Path, tuple[str, ...]]:
        """Run one step by a side.

        Args:
            whose: the side.
            of: the stage of the source.
            source: its file.
            stage: the stage to make.
            variables: to set instead of those of the side.

        Returns:
            The file, and the last command line of ptxas; empty if it ran none.

        Raises:
            FactError: it fails.
        """
        side = self.sides[whose]
        # Instead of the side's own, so the caller adds those.
        if variables is not None:
            side = replace(side, variables=variables)
        key = digest("stage", whose, _content(source), stage, dict(side.variables))
        return self._once(key, lambda: self._step(side, of, source, stage, key[:12]))

    def pure(self, whose: Side) -> Choice:
        """Return the mixture in which everything is by one side."""
        return {part.name: whose for part in self.components}

    def afresh(self, work: Path) -> MixedPipeline:
        """Return the same pipeline in another folder, without results."""
        return replace(self, work=work, notes={}, _results={})

    def _read_by(self, llir: Path, reader: Callable[[Path], Product]) -> Product:
        """Return what a reader makes of an llir, in the newest spelling that it accepts.

        Raises:
            FactError: it rejects them all.
        """
        try:
            return reader(llir)
        except FactError as error:
            first = last = error
        for since, text in llcs.older(untrusted.read_text(llir, untrusted.OURS)):
            file = self.work / f"{digest(text)[:12]}.llir"
            files.write(file, text)
            try:
                result = reader(file)
            except FactError as error:
                last = error
                continue
            self.notes[f"{first.what}; in the spelling before LLVM {since} it can"] = None
            return result
        # The last: the first one is about a spelling, which the older text no longer has.
        raise last

    def _step(
        self, side: BlameSide, of: str, source: Path, stage: str, name: str
    ) -> tuple[Path, tuple[str, ...]]:
        folder = self.work / name
        out, result, log = (folder / f"{side.point.id}.{ending}" for ending in (stage, "json", "log"))
        # An AMD GPU is a name, `gfx942`, and NVIDIA's are numbers.
        backend, arch, warp = side.point.target.split(":")
        table = configs.load("kernels")
        request = StageRequest(
            target=(backend, int(arch) if arch.isdigit() else arch, int(warp)),
            options=dict(self.options),
            file=str(source),
            of=of,
            stage=stage,
            out=str(out),
            result=str(result),
            log=str(log),
            stand_ins=tuple(table["stand-ins"]["modules"]),
        )
        unset = ((name, None) for name in table["variables"]["unset"])
        linker = interpreter.locate_programs(self.space).linker  # AMD's backend up to 3.4 runs one
        phase = f"{of} to {stage} by {side.label}"
        env = (*unset, *linker, *side.variables.items())
        steps = (
            # The run before may have been killed in this step.
            Remove((folder,), self.space.root, phase=phase),
            MakeDir(folder, phase=phase),
            *call.steps(side.python, request, folder / "request.json", env=env, phase=phase),
        )
        what = f"{side.label} cannot make {stage} of this {of}"
        try:
            plan = Plan(phase, steps)
            (row,) = call.run(plan, result, StageRow, self.space, task=PHASE, quiet=self.silent)
        except CommandFailedError as failure:  # LLVM aborts where it cannot read a text
            raise FactError(
                what, where=log, why=_first_error(log) or f"exit code {failure.code}"
            ) from failure
        if row.error:
            raise FactError(what, where=log, why=row.error)
        return out, row.argv

    def _once(self, key: str, make: Callable[[], Product]) -> Product:
        if key not in self._results:
            try:
                self._results[key] = make()
            except FactError as error:  # kept, too: a refusal takes as long to find out as a result
                self._results[key] = error
        result = self._results[key]
        if isinstance(result, FactError):
            raise result
        return cast("Product", result)


def _check(compiled: Path, like: Path) -> None:
    """Check that an LLVM has understood all of an llir.

    Raises:
        FactError: it has not.
    """
    # LLVM reports neither: an intrinsic that it does not know becomes a call of an external function, and an
    # attribute that it does not know is ignored, such as the launch bounds that limit registers.
    text, expected = (untrusted.read_text(path, untrusted.OURS) for path in (compiled, like))
    if unknown := sorted(set(map("".join, _UNKNOWN.findall(text)))):
        raise FactError(f"this LLVM has no {', '.join(unknown)}", where=compiled)
    bounds, expected_bounds = (
        sorted(map(_plain, _LAUNCH.findall(assembly))) for assembly in (text, expected)
    )
    if bounds != expected_bounds:
        why = f"{' '.join(expected_bounds) or 'none'} became {' '.join(bounds) or 'none'}"
        raise FactError("this LLVM does not read the launch bounds of the llir", where=compiled, why=why)


def _plain(bound: str) -> str:
    return re.sub(r"(, 1)+$", "", bound.strip())  # the sizes that LLVM 19 adds


def _content(path: Path) -> str:
    return digest(untrusted.read_text(path, untrusted.OURS))


def _first_error(log: Path) -> str:
    """Return the first line of a log that tells of an error."""
    try:
        lines = untrusted.read_text(log, untrusted.OURS).splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in lines if "ERROR" in line or "error" in line), "")


def summary(values: Figures, backend: str) -> Figures:
    """Return registers, spills and code, of the resources of a kernel."""
    return {name: metrics.value_of(name, values, backend)[1] for name in metrics.summary()}


def _figures_of_ptx(ptx: Path, program: Path, flags: Sequence[str], out: Path, point: Point) -> Figures:
    """Run ptxas once, and measure what it makes; one of the flags is `-v`.

    Raises:
        FactError: ptxas refuses it.
    """
    timeout = configs.load("kernel-resources")["ptxas"]["timeout"]
    answer = query((str(program), *flags, str(ptx), "-o", str(out)), timeout=timeout)
    if answer is None or answer.code:
        lines = [line for line in (answer.err if answer else "").splitlines() if line.strip()]
        message = "\n".join(line.replace(f"{ptx}, ", "") for line in lines[:_SHOWN])
        why = message or "it does not run, or did not finish in time"
        raise FactError("ptxas rejects this PTX", where=program, why=why)
    values = measure.values(out, point.arch, point.metadata, ptx)
    # Not every ptxas writes the spills into the cubin, but with `-v` each prints them.
    if values["spill_store_bytes"] is None:
        report = measure.parse_report(answer.err + answer.out)
        values |= {"spill_store_bytes": report.stores, "spill_load_bytes": report.loads}
    return summary(values, "cuda")


@dataclass(frozen=True)
class BlameComponent:
    """One step of the pipeline.

    Attributes:
        name: `ttgir`, `ptxas`.
        axis: the part of the compiler that the result names: `Triton's passes`, `LLVM`, `ptxas`.
        what: in words: `ttir to ttgir`.
    """

    name: str
    axis: str
    what: str


@dataclass(frozen=True)
class ComponentGroup:
    """Components that are changed together.

    Attributes:
        parts: in the order of the pipeline.
    """

    parts: tuple[BlameComponent, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its components."""
        return tuple(part.name for part in self.parts)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of its components, each once."""
        return tuple(dict.fromkeys(part.axis for part in self.parts))

    @property
    def title(self) -> str:
        """The axis in words, and the component if it is one."""
        if len(self.parts) == 1:
            part = self.parts[0]
            return part.what if part.axis.partition(" ")[0] in part.what else f"{part.axis} ({part.what})"
        return " and ".join(self.axes)


def components_of(backend: str, texts: Iterable[str]) -> tuple[BlameComponent, ...]:
    """Return the components of a vendor's pipeline, for the stages that both compiles have."""
    here = set(texts)
    names = [*(name for name in TEXTS[backend] if name in here), *ENDS[backend]]
    table = {row["name"]: BlameComponent(**row) for row in configs.load("blame")["component"]}
    return tuple(table[name] for name in names)


def groups_of(components: Sequence[BlameComponent]) -> tuple[ComponentGroup, ...]:
    """Return the groups to exchange: each component, each axis, and all before the last axis, each once."""
    single = [(part,) for part in components]
    axes = list(dict.fromkeys(part.axis for part in components))
    whole = [tuple(part for part in components if part.axis == axis) for axis in axes]
    front = tuple(part for part in components if part.axis != axes[-1])
    # Single components first: a blame takes the first group that explains a change, and the smallest one
    # tells the most.
    return tuple(ComponentGroup(parts) for parts in dict.fromkeys([*single, *whole, front]))


def partitions(components: Sequence[BlameComponent]) -> tuple[tuple[ComponentGroup, ...], ...]:
    """Return the ways to cut the pipeline into parts, the finest first: steps, axes, all before the last."""
    every = groups_of(components)
    axes = list(dict.fromkeys(part.axis for part in components))
    single = every[: len(components)]
    whole = tuple(group for axis in axes for group in every if group.parts == _of_axis(axis, components))
    # This holds for AMD, too: `front` and the axis before the last are one group there, and the last axis is
    # a single component.
    front = every[-1]
    return tuple(dict.fromkeys((single, whole, (front, whole[-1]))))


def _of_axis(axis: str, components: Sequence[BlameComponent]) -> tuple[BlameComponent, ...]:
    return tuple(part for part in components if part.axis == axis)
