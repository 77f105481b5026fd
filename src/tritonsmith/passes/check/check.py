"""Run the IR after each pass on the same inputs, and name the first pass that changes the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from xdsl.ir import Operation

from tritonsmith import configs, worker
from tritonsmith.command_line import command
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError, SmithError
from tritonsmith.passes.check import blame
from tritonsmith.passes.check.blame import ValueRecorder
from tritonsmith.passes.check.compare import Difference, compare
from tritonsmith.passes.check.evaluate import EndlessError, EvaluatedProgram
from tritonsmith.passes.check.inputs import Argument, arguments, taken_apart
from tritonsmith.passes.check.llvm.kernel import LoweredKernel, lowered
from tritonsmith.passes.check.llvm.memory import RecordingMemory
from tritonsmith.passes.check.memory import GlobalMemory
from tritonsmith.passes.check.module import (
    UnsupportedIrError,
    attribute,
    name_of,
    parse,
    text,
    without_locations,
)
from tritonsmith.passes.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.plan import MakeDir, Plan, Run, Write, digest

_KNOWN = ("same text", "equal", "close", "reference")


@dataclass(frozen=True)
class CheckedPass:
    """What a pass left, run.

    Attributes:
        number: of the dump that the pass was given.
        name: of the pass, as a command line has it; empty for what the first pass is given.
        status: `reference`, `same text`, `equal`, `close`, `differs`, `unknown`, or `lowered` from where on
            there is no Triton IR any more.
        why: the operation that is not known.
        apart: the largest relative difference of those that are close.
    """

    number: int
    name: str
    status: str
    why: str = ""
    apart: float = 0.0


@dataclass(frozen=True)
class Culprit:
    """The first pass that changes the result.

    Attributes:
        checked: the pass.
        difference: the first element that differs.
        seed: of the inputs.
        program: that wrote it.
        arguments: of the kernel, by name, those that are no pointers.
        store: name of the argument that it lies behind.
        operation: first operation after the pass whose value is new; empty if there is none.
        line: FILE:LINE of that.
        suspects: passes of which one it is: more than one where the text between them could not be run.
    """

    checked: CheckedPass
    difference: Difference
    seed: int
    program: tuple[int, int, int]
    arguments: dict[str, Any]
    store: str
    operation: str
    line: str
    suspects: tuple[str, ...]


@dataclass(frozen=True)
class CheckAnswer:
    """The result.

    Attributes:
        kernel: name.
        passes: in order.
        culprit: None if no pass changed the result.
        elements: that the runs of the reference wrote.
        runs: inputs under which the kernel was run: seed and program.
        left_out: inputs under which it does not end, or writes nothing.
        racing: elements that one operation wrote more than once, with different values.
    """

    kernel: str
    passes: tuple[CheckedPass, ...]
    culprit: Culprit | None
    elements: int
    runs: int
    left_out: int
    racing: int

    @property
    def checked(self) -> int:
        """How many passes were compared."""
        return sum(one.status in _KNOWN for one in self.passes)

    @property
    def open(self) -> tuple[CheckedPass, ...]:
        """Texts before the reference, which were compared with nothing, and at the end, that were not run."""
        ran = [number for number, one in enumerate(self.passes) if one.status in _KNOWN]
        ends = (*self.passes[: ran[0]], *self.passes[ran[-1] + 1 :]) if ran else self.passes
        return tuple(one for one in ends if one.status == "unknown")


@dataclass(frozen=True)
class CheckInputs:
    """Inputs of a run.

    Attributes:
        seed: of the arguments and of what is in memory.
        program: ids of the program that runs.
    """

    seed: int
    program: tuple[int, int, int]


@dataclass(frozen=True)
class _Kernel:
    """A module that was parsed."""

    functions: dict[str, Operation]
    main: str

    @property
    def function(self) -> Operation:
        return self.functions[self.main]


def check(
    index: DumpIndex,
    kernel: DumpedKernel,
    python: Path,
    space: Workspace,
    seeds: int | None = None,
    *,
    silent: bool = False,
    through_llvm: bool = False,
) -> CheckAnswer:
    """Check a kernel of a dump.

    Args:
        index: the dump.
        kernel: of it.
        python: an interpreter with the Triton that printed it.
        space: the workspace.
        seeds: how many inputs; None for the usual number.
        silent: show no progress.
        through_llvm: run the texts in LLVM's dialect as well.

    Raises:
        FactError: the dump has no Triton IR, or the reference cannot be run.
    """
    dumps = _of_modules(index, kernel)
    if not dumps:
        raise FactError(
            "the dump has no module of Triton's IR", where=index.folder, hints=[command("passes.dump")]
        )
    texts = dict(_generic(index, dumps, python, space, silent=silent))
    count = seeds or configs.load("passes-check")["inputs"]["seeds"]
    found = PassCheck(index, kernel, dumps, texts, count, inputs_of(count), through_llvm=through_llvm)
    return found.run()


def inputs_of(seeds: int) -> list[CheckInputs]:
    """The inputs of a check: every program for every seed."""
    programs = configs.load("passes-check")["inputs"]["programs"]
    return [CheckInputs(seed, (one[0], one[1], one[2])) for seed in range(seeds) for one in programs]


def _of_modules(index: DumpIndex, kernel: DumpedKernel) -> list[Dump]:
    """The dumps of whole modules, before each pass; their digests are those of the files as they are now."""
    return [
        replace(one, sha256=hashlib.sha256(index.content(one)).hexdigest())
        for one in index.of(kernel.name)
        if one.language == "mlir" and one.operation == "builtin.module" and one.when == "before" and one.whole
    ]


def _generic(
    index: DumpIndex, dumps: list[Dump], python: Path, space: Workspace, *, silent: bool
) -> Iterator[tuple[str, str]]:
    """The generic form of each distinct file, by its digest; without those that cannot be printed."""
    distinct = {one.sha256: one for one in dumps}
    work = space.root / "passes" / "check" / digest(str(python), *sorted(distinct))[:16]
    request, results = work / "request.json", work / "results.jsonl"
    jobs = [
        {"input": str(index.path(one).absolute()), "out": str(work / f"{name[:16]}.mlir")}
        for name, one in distinct.items()
    ]
    content = {
        "jobs": jobs,
        "results": str(results),
        "timeout": configs.load("passes-check")["inputs"]["timeout"],
    }
    argv = (str(python), str(worker.FOLDER), "generic", str(request))
    steps = (
        MakeDir(work, phase="generic form"),
        Write(request, json.dumps(content, indent=2) + "\n", phase="generic form"),
        Run(argv, cwd=work, env=(("TRITON_INTERPRET", None),), phase="generic form"),
    )
    space.claim()
    space.run(Plan("generic form", steps), "passes.check", quiet=silent)
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    if rows and "refused" in rows[-1]:
        raise FactError("cannot print the IR in generic form", where=python, why=rows[-1]["refused"])
    for row, name, job in zip(rows, distinct, jobs, strict=True):
        if row["status"] == "ok":
            yield name, Path(job["out"]).read_text(encoding="utf-8")


class PassCheck:
    """A check of one kernel, from the generic form of its dumps, by their digests."""

    def __init__(
        self,
        index: DumpIndex,
        kernel: DumpedKernel,
        dumps: list[Dump],
        texts: dict[str, str],
        seeds: int,
        wanted: list[CheckInputs],
        *,
        through_llvm: bool = False,
    ) -> None:
        self._index, self._kernel, self._dumps, self._texts = index, kernel, dumps, texts
        self._seeds, self._wanted, self._through_llvm = seeds, wanted, through_llvm
        self._memories: dict[CheckInputs, GlobalMemory] = {}
        self._given: dict[int, tuple[Argument, ...]] = {}  # by seed, as the first text that is run has them

    def run(self) -> CheckAnswer:
        """Run each text that is new, until one differs."""
        rows: list[CheckedPass] = []
        culprit: Culprit | None = None
        before, key = "", ""
        for dump, made_by in zip(self._dumps, ["", *(one.label for one in self._dumps)], strict=False):
            raw = self._texts.get(dump.sha256, "")
            plain = without_locations(raw)
            say = partial(CheckedPass, dump.number, made_by)
            if not raw:
                rows.append(say("unknown", "this Triton cannot print it"))
                continue
            if plain == key:  # where that could not be run, this cannot either
                last = rows[-1]
                rows.append(say("unknown", last.why) if last.status == "unknown" else say("same text"))
                continue
            try:
                kernel = self._kernel_in(raw)
                if kernel is None or (isinstance(kernel, LoweredKernel) and not self._memories):
                    rows.append(say("lowered"))
                    break
                if not self._memories:
                    self._refer(kernel)
                    rows.append(say("reference"))
                else:
                    apart, found = self._compare(kernel)
                    if found:
                        row = say("differs")
                        rows.append(row)
                        culprit = self._blamed(_suspects(rows), row, found, before, raw)
                        break
                    rows.append(say("close" if apart else "equal", apart=apart))
                before = raw
            except (UnsupportedIrError, FactError) as error:
                why = str(error) if isinstance(error, UnsupportedIrError) else error.why or error.what
                rows.append(say("unknown", why))
            key = plain
        if not self._memories:
            whys = sorted({row.why for row in rows if row.why})
            raise FactError(
                "nothing of this kernel can be run", where=self._index.folder, why="; ".join(whys)[:400]
            )
        return CheckAnswer(
            self._kernel.name,
            tuple(rows),
            culprit,
            sum(one.written.at.size for one in self._memories.values()),
            len(self._memories),
            len(self._wanted) - len(self._memories),
            sum(one.racing for one in self._memories.values()),
        )

    def _kernel_in(self, raw: str) -> _Kernel | LoweredKernel | None:
        """A kernel; None where LLVM's dialect begins and is not asked for."""
        return lowered(raw) if self._through_llvm and '"tt.func"(' not in raw else _parsed(raw)

    def _refer(self, kernel: _Kernel | LoweredKernel) -> None:
        """Run the first text; inputs under which it does not end or writes nothing are left out."""
        for inputs in self._wanted:
            try:
                memory = self._ran(kernel, inputs)
            except EndlessError:
                continue
            if memory.written.at.size:
                self._memories[inputs] = memory
        if not self._memories:
            raise UnsupportedIrError("it writes nothing, or does not end, under all inputs")

    def _compare(
        self, kernel: _Kernel | LoweredKernel
    ) -> tuple[float, tuple[CheckInputs, Difference] | None]:
        most = 0.0
        for inputs, memory in self._memories.items():
            try:
                mine = self._ran(kernel, inputs)
            except EndlessError as error:
                raise UnsupportedIrError(str(error)) from error
            apart, found = compare(memory, mine)
            if found:
                return most, (inputs, found)
            most = max(most, apart)
        return most, None

    def _ran(
        self, kernel: _Kernel | LoweredKernel, inputs: CheckInputs, seen: ValueRecorder | None = None
    ) -> GlobalMemory:
        table = configs.load("passes-check")["inputs"]
        if isinstance(kernel, LoweredKernel):
            given = tuple(one.value for one in self._given[inputs.seed])
            reference, grid = self._memories[inputs], tuple(table["grid"])
            return kernel.run(given, reference, inputs.program, grid, table["llvm-steps"], seen)
        kind = RecordingMemory if self._through_llvm else GlobalMemory
        memory = kind(inputs.seed + 1, edges=inputs.seed > 0 and inputs.seed == self._seeds - 1)
        run = EvaluatedProgram(
            kernel.functions,
            memory,
            inputs.program,
            (table["grid"][0], table["grid"][1], table["grid"][2]),
            table["steps"],
        )
        run.seen = seen
        if inputs.seed not in self._given:
            self._given[inputs.seed] = arguments(kernel.function, inputs.seed)
        given = tuple(one.value for one in self._given[inputs.seed])
        run.call(kernel.main, taken_apart(given, len(kernel.function.regions[0].blocks[0].args)))
        return memory

    def _blamed(
        self,
        suspects: tuple[str, ...],
        row: CheckedPass,
        found: tuple[CheckInputs, Difference],
        before: str,
        after: str,
    ) -> Culprit:
        """Run both sides again, and look at each value."""
        inputs, difference = found
        old, new = ValueRecorder(), ValueRecorder()
        kernels = [one for one in map(self._kernel_in, (before, after)) if one]
        for kernel, seen in zip(kernels, (old, new), strict=True):
            self._ran(kernel, inputs, seen)
        given = self._given[inputs.seed]
        one_level = len({isinstance(kernel, LoweredKernel) for kernel in kernels}) == 1
        operation = blame.first_new(old, new) if one_level else None
        return Culprit(
            row,
            difference,
            inputs.seed,
            inputs.program,
            _scalars(given),
            given[difference.argument].name if difference.argument is not None else "",
            name_of(operation) if operation else "",
            blame.line_of(after, operation) if operation else "",
            suspects,
        )


def _suspects(rows: list[CheckedPass]) -> tuple[str, ...]:
    """The passes since the last text that is known to be right, the one that differs included."""
    last = max(number for number, one in enumerate(rows) if one.status in _KNOWN)
    return tuple(one.name for one in rows[last + 1 :])


def _scalars(given: tuple[Argument, ...]) -> dict[str, Any]:
    """Those that are numbers and small enough to be no address."""
    return {
        one.name or f"#{number}": one.value.item()
        for number, one in enumerate(given)
        if hasattr(one.value, "item") and not (one.value.dtype.kind == "i" and int(one.value) >= 1 << 39)
    }


def _parsed(raw: str) -> _Kernel | None:
    """The functions of a module, and the kernel; None if there is no function of Triton's."""
    functions = {}
    for operation in parse(raw).walk():
        if name_of(operation) == "tt.func":
            functions[text(attribute(operation, "sym_name")).strip('"')] = operation
    shown = [
        name
        for name, one in functions.items()
        if text(attribute(one, "sym_visibility")).strip('"') == "public"
    ]
    if not functions:
        return None
    if len(shown) != 1:
        raise SmithError("the module has no kernel, or more than one", why=", ".join(functions))
    return _Kernel(functions, shown[0])
