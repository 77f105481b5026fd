"""Run the IR after each pass on the same inputs, and name the first pass that changes the result."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tritonsmith import worker
from tritonsmith.check import blame
from tritonsmith.check.answer import KNOWN, CheckAnswer, CheckedPass, Culprit, InterpretedRuns
from tritonsmith.check.blame import ValueRecorder
from tritonsmith.check.evaluate import AccessError, EndlessError
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.in_flight import FreedError, Order
from tritonsmith.check.inputs import Argument
from tritonsmith.check.interpreter import TritonInterpreter
from tritonsmith.check.kernel import TritonKernel, parsed
from tritonsmith.check.limited import LimitedChecks, no_memory
from tritonsmith.check.llvm.kernel import LoweredKernel, lowered
from tritonsmith.check.memory import Contents
from tritonsmith.check.module import UnsupportedIrError, name_of, without_locations
from tritonsmith.check.runs import ChangedRun, CheckInputs, ReferenceRuns
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UndecidedError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Write, digest

_STAGES = re.compile(r"\bnum[-_]stages=(\d{1,2})\b")
_LLVM = re.compile(r'^\s*(?:"llvm\.func"\(|llvm\.func\b)', re.MULTILINE)


def check(
    index: DumpIndex,
    kernel: DumpedKernel,
    python: Path,
    space: Workspace,
    seeds: int | None = None,
    *,
    silent: bool = False,
    through_llvm: bool = False,
    against: TritonInterpreter | None = None,
    names: tuple[str, ...] = (),
    stop: Callable[[], bool] = lambda: False,
    timeout: int | None = None,
) -> CheckAnswer:
    """Check a kernel of a dump, in a process of its own.

    Args:
        index: the dump.
        kernel: of it.
        python: an interpreter with the Triton that printed it.
        space: the workspace.
        seeds: how many inputs; None for the usual number.
        silent: show no progress.
        through_llvm: run the texts in LLVM's dialect as well.
        against: compare the first text with this.
        names: of the kernel's parameters, which older releases do not print.
        stop: whether to give up, asked again and again.
        timeout: seconds that it may take; None for the usual limit.

    Raises:
        FactError: the dump has no Triton IR.
        UndecidedError: nothing of it can be run, or it was stopped.
    """
    dumps = _of_modules(index, kernel)
    if not dumps:
        raise FactError(
            "the dump has no module of Triton's IR", where=index.folder, hints=[command("passes.dump")]
        )
    texts = _generic(index, dumps, python, space, silent=silent)
    request = {
        "folder": str(index.folder.absolute()),
        "kernel": index.kernels.index(kernel),
        "name": kernel.name,
        "target": kernel.target,
        "texts": texts,
        "seeds": seeds,
        "through_llvm": through_llvm,
        "names": names,
    }
    with LimitedChecks(timeout, stop) as checks:
        answer = checks.check(request)
    made = _made(index, kernel, texts, seeds, names, through_llvm=through_llvm)
    if answer.checked == 1 and not answer.culprit and not answer.open:
        raise UndecidedError("no pass of this kernel could be compared", where=index.folder)
    if not (answer.culprit or kernel.failed or made.ended):
        answer = replace(answer, passes=(*answer.passes, missing(index, kernel, dumps[-1])))
    return replace(answer, interpreted=_interpreted(answer, made, against)) if against else answer


def in_process(
    request: Mapping[str, Any], begun: Callable[[CheckedPass], None], done: Callable[[CheckedPass], None]
) -> CheckAnswer:
    """Check a kernel of a dump in this process.

    Args:
        request: folder of the dump, number of the kernel, generic form of its texts by digest, seeds, which
            may be None, whether LLVM's dialect is run, and names of the parameters.
        begun: called with each text, as it is not known yet.
        done: called with each text that was run.
    """
    index = indexes.read(Path(request["folder"]))
    kernel = index.kernels[request["kernel"]]
    names, llvm = tuple(request["names"]), request["through_llvm"]
    made = _made(index, kernel, request["texts"], request["seeds"], names, through_llvm=llvm)
    return made.run(begun, done)


def changed_result(before: str, after: str) -> tuple[str, str]:
    """Compare what two texts in generic form compute.

    Returns:
        The first change, empty if there is none or it cannot be known; and a line for the log.
    """
    seeds = configs.load("passes-check")["inputs"]["seeds"]
    runs = ReferenceRuns(inputs_of(seeds))
    try:
        first, second = (parsed(without_locations(text)) for text in (before, after))
        if first is None or second is None:
            return "", "this is no IR of Triton's dialects"
        runs.refer(first)
        compared = runs.compare(second)
    except UnsupportedIrError as error:
        return "", f"the IR cannot be run: {error}"
    except SmithError as error:
        return "", f"the IR cannot be run: {error.why or error.what}"
    if compared.found is None:
        return "", "the passes do not change the result"
    change = str(compared.found.change)
    return change, f"wrong: {change}"


def _made(
    index: DumpIndex,
    kernel: DumpedKernel,
    texts: dict[str, str],
    seeds: int | None,
    names: tuple[str, ...],
    *,
    through_llvm: bool,
) -> PassCheck:
    count = seeds or configs.load("passes-check")["inputs"]["seeds"]
    more = () if seeds else tuple(more_inputs(count))
    dumps = _of_modules(index, kernel)
    return PassCheck(
        index, kernel, dumps, texts, inputs_of(count), more, through_llvm=through_llvm, names=names
    )


def _interpreted(answer: CheckAnswer, made: PassCheck, against: TritonInterpreter) -> InterpretedRuns:
    first = answer.passes[0]
    if first.status != "reference":
        return InterpretedRuns("unknown", f"the first text cannot be run: {first.why}")
    made.refer()  # once more: it has ended within the limits
    return against.compare(made.reference)


def inputs_of(seeds: int) -> list[CheckInputs]:
    """The inputs of a check: for every seed the programs that its sizes are for.

    Of several seeds the last one has edge cases in memory, but for its last program: a dot over NaN is NaN,
    whatever it is of. The first program of the second seed runs with large numbers, with fractions and with
    integers of all sizes, too; that of the first one, whose sizes are less than a block, with numbers above
    or below 0 alone.
    """
    programs = configs.load("passes-check")["inputs"]["programs"]
    found: list[CheckInputs] = []
    for seed in range(seeds):
        *others, last = (CheckInputs(seed, (x, y, z)) for x, y, z in programs[seed % 3])
        contents = Contents.EDGES if 0 < seed == seeds - 1 else Contents.PLAIN
        found += [*(replace(one, contents=contents) for one in others), last]
    if seeds == 1:
        return found
    more = (Contents.LARGE, Contents.PRECISE, Contents.INTEGERS)
    found += [CheckInputs(1, (0, 0, 0), one) for one in more]
    cut = (Contents.ABOVE, Contents.BELOW, Contents.INTEGERS_ABOVE, Contents.INTEGERS_BELOW)
    return found + [CheckInputs(0, (0, 0, 0), one) for one in cut]


def more_inputs(seeds: int) -> list[CheckInputs]:
    """Further seeds of a check of so many, for a kernel whose runs are short."""
    table = configs.load("passes-check")["inputs"]
    return [
        CheckInputs(seed, (x, y, z))
        for seed in range(seeds, table["cheap-seeds"])
        for x, y, z in table["programs"][seed % 3]
    ]


def _of_modules(index: DumpIndex, kernel: DumpedKernel) -> list[Dump]:
    """The dumps of whole modules, before each pass; their digests are those of the files as they are now."""
    return [
        replace(one, sha256=hashlib.sha256(index.content(one)).hexdigest())
        for one in index.of(kernel.name)
        if one.language == "mlir" and one.operation == "builtin.module" and one.when == "before" and one.whole
    ]


def missing(index: DumpIndex, kernel: DumpedKernel, last: Dump) -> CheckedPass:
    """What the passes left after the last text, which is before LLVM's dialect."""
    rest = [one for one in index.of(kernel.name) if one.number > last.number and one.language == "mlir"]
    why = "the dump ends before LLVM's dialect"
    if rest:
        about = f"of {rest[0].operation}, {rest[0].when} a pass" if rest[0].whole else "not whole"
        why += f": the text that follows is {about}"
    return CheckedPass(last.number + 1, last.label, "unknown", why)


def _stages(dumps: list[Dump]) -> int:
    """Of the pipelined loops, as the options of passes have them; 0 if none says."""
    return max((int(one) for dump in dumps for one in _STAGES.findall(dump.pipeline)), default=0)


def given_to(index: DumpIndex, kernel: DumpedKernel, checked: CheckedPass) -> Dump:
    """The dump that a pass was given which left this one; its `pipeline` is that pass."""
    dumps = _of_modules(index, kernel)
    place = next(number for number, one in enumerate(dumps) if one.number == checked.number)
    return dumps[place - 1]


def _generic(
    index: DumpIndex, dumps: list[Dump], python: Path, space: Workspace, *, silent: bool
) -> dict[str, str]:
    """The generic form of each distinct file, by its digest; without those that cannot be printed."""
    distinct = {one.sha256: one for one in dumps}
    own = digest(str(python), *sorted(distinct))[:16]
    work = space.root / "passes" / "check" / f"{own}-{os.getpid()}"  # others may check it, too
    request, results = work / "request.json", work / "results.jsonl"
    jobs = [
        {"input": str(index.path(one).absolute()), "out": str(work / f"{name[:16]}.mlir")}
        for name, one in distinct.items()
    ]
    content = {
        "jobs": jobs,
        "results": str(results),
        "timeout": configs.load("passes-check")["inputs"]["timeout"],
        "memory": configs.load("passes-check")["inputs"]["memory"] << 20,
    }
    argv = (str(python), str(worker.FOLDER), "generic", str(request))
    gone = Remove((work,), space.root, phase="generic form")
    steps = (
        gone,
        MakeDir(work, phase="generic form"),
        Write(request, json.dumps(content, indent=2) + "\n", phase="generic form"),
        Run(argv, cwd=work, env=(("TRITON_INTERPRET", None),), phase="generic form"),
    )
    space.claim()
    try:
        space.run(Plan("generic form", steps), "passes.check", quiet=silent)
        rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
        if rows and "refused" in rows[-1]:
            raise FactError("cannot print the IR in generic form", where=python, why=rows[-1]["refused"])
        return {
            name: said
            for row, name, job in zip(rows, distinct, jobs, strict=True)
            if row["status"] == "ok" and (said := _printed(Path(job["out"])))
        }
    finally:
        space.run(Plan("generic form", (gone,)), "passes.check", quiet=True)


def _printed(file: Path) -> str:
    """A text in generic form; empty if it is too large to be one that Triton makes."""
    try:
        return untrusted.read_text(file)
    except OSError:
        return ""


class PassCheck:
    """A check of one kernel, from the generic form of its dumps, by their digests.

    Attributes:
        reference: the runs of the first text that could be run.
    """

    def __init__(
        self,
        index: DumpIndex,
        kernel: DumpedKernel,
        dumps: list[Dump],
        texts: dict[str, str],
        wanted: list[CheckInputs],
        more: Sequence[CheckInputs] = (),
        *,
        through_llvm: bool = False,
        names: tuple[str, ...] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._index, self._kernel, self._dumps, self._texts = index, kernel, dumps, texts
        self._through_llvm = through_llvm
        self._gaps: tuple[str, ...] = ()
        self._culprit: Culprit | None = None
        self._before = self._key = self._waits = ""
        self._last = CheckedPass(0, "", "unknown")  # of the text that is the key
        self.reference = ReferenceRuns(wanted, names, _stages(dumps), stop, more)

    def refer(self) -> None:
        """Run the first text alone, for its runs."""
        kernel = parsed(without_locations(self._texts[self._dumps[0].sha256]))
        assert kernel is not None  # noqa: S101 - it was run before
        self.reference.refer(kernel)

    def run(
        self,
        begun: Callable[[CheckedPass], None] = lambda _: None,
        done: Callable[[CheckedPass], None] = lambda _: None,
    ) -> CheckAnswer:
        """Run each text that is new until one differs, and report what is begun and done."""
        rows: list[CheckedPass] = []
        for place, dump in enumerate(self._dumps):
            name = self._dumps[place - 1].label if place else ""
            begun(CheckedPass(dump.number, name, "unknown", others=self._others(place, name)))
            rows.append(self._row(place, rows))
            done(rows[-1])
            if rows[-1].status in ("lowered", "differs"):
                break
        return self._answer(rows)

    def _row(self, place: int, rows: list[CheckedPass]) -> CheckedPass:
        """What becomes of one text."""
        dump, name = self._dumps[place], self._dumps[place - 1].label if place else ""
        raw = self._texts.get(dump.sha256, "")
        say = partial(CheckedPass, dump.number, name, others=self._others(place, name))
        if not raw:
            if not self._through_llvm and self._is_lowered(place):  # 3.4 cannot read all that it printed
                return say("lowered")
            return say("unknown", "this Triton cannot print it")
        plain = without_locations(raw)
        if plain == self._key:  # where that could not be run, this cannot either
            status = "unknown" if self._last.status == "unknown" else "same text"
            return say(status, self._last.why, waits=self._last.waits)
        try:
            row = self._compared(place, plain, say, rows)
            self._before = raw
        except (UnsupportedIrError, FactError, RecursionError, MemoryError) as error:
            row = say("unknown", _why(error))
            if all(one.status != "reference" for one in rows):  # a part of its runs may be there
                self.reference.forget()
        self._key, self._last = plain, row
        return row

    def _compared(
        self, place: int, plain: str, say: Callable[..., CheckedPass], rows: list[CheckedPass]
    ) -> CheckedPass:
        """Run a text; the first that can be is the reference."""
        kernel, runs, raw = self._kernel_in(plain), self.reference, self._texts[self._dumps[place].sha256]
        if kernel is None or (isinstance(kernel, LoweredKernel) and not runs.memories):
            if not self._is_lowered(place):
                raise UnsupportedIrError("LLVM's dialect, and Triton's in a later text")
            return say("lowered")
        if not runs.memories:
            assert isinstance(kernel, TritonKernel)  # noqa: S101 - the line above
            row = say("reference", waits=runs.refer(kernel).waits)
            mixed = ("which dots of fp32 are of tf32, as some of them are",) if kernel.mixed else ()
            self._gaps = (*mixed, *runs.reached.gaps(kernel.functions, raw))
            return row
        made = runs.compare(kernel)
        if made.found:
            row = say("differs")
            suspects = _suspects([*rows, row], made.found)
            self._culprit = self._blamed(suspects, row, made.found, self._before, raw)
            return row
        if isinstance(kernel, TritonKernel):
            self._waits = made.waits  # LLVM's texts are not asked for theirs
        return say("close" if made.apart else "equal", apart=made.apart, waits=self._waits)

    def _answer(self, rows: list[CheckedPass]) -> CheckAnswer:
        runs, culprit = self.reference, self._culprit
        if self._kernel.failed and not culprit and rows[-1].status != "lowered":
            number = self._dumps[-1].number + 1  # what it would have left
            rows.append(CheckedPass(number, self._kernel.failed, "unknown", "the pass fails"))
        if not runs.memories:
            whys = sorted({row.why for row in rows if row.why})
            raise UndecidedError(
                "nothing of this kernel can be run", where=self._index.folder, why="; ".join(whys)[:400]
            )
        return CheckAnswer(
            self._kernel.name,
            self._kernel.target,
            tuple(rows),
            culprit,
            sum(one.written.at.size for one in runs.memories.values()),
            len(runs.memories),
            runs.left_out,
            sum(one.racing for one in runs.memories.values()),
            self._gaps,
        )

    def _others(self, place: int, name: str) -> tuple[str, ...]:
        """Passes since the text before whose own text is of a function, or is not whole."""
        first, last = (self._dumps[one].number for one in (place - 1, place)) if place else (0, 0)
        between = (one for one in self._index.of(self._kernel.name) if first < one.number < last)
        found = (one.label for one in between if one.language == "mlir" and not one.inside)
        return tuple(dict.fromkeys(label for label in found if label != name))

    @property
    def ended(self) -> bool:
        """Whether the last text is beyond Triton's dialects."""
        return self._is_lowered(len(self._dumps) - 1)

    def _is_lowered(self, place: int) -> bool:
        """Whether a text, printed or not, has left Triton's dialects, and no later one comes back to them."""
        if not _LLVM.search(self._text(self._dumps[place])):
            return False
        return not any("tt.func" in self._text(one) for one in self._dumps[place:])

    def _text(self, dump: Dump) -> str:
        """In generic form, or else as it is in the dump."""
        return self._texts.get(dump.sha256) or self._index.text(dump)

    def _kernel_in(self, raw: str) -> TritonKernel | LoweredKernel | None:
        """A kernel; None where LLVM's dialect begins and is not asked for."""
        return lowered(raw) if self._through_llvm and '"tt.func"(' not in raw else parsed(raw)

    def _blamed(
        self, suspects: tuple[str, ...], row: CheckedPass, found: ChangedRun, before: str, after: str
    ) -> Culprit:
        """Run both sides again, and look at each value."""
        inputs, difference = found.inputs, found.difference
        old, new = ValueRecorder(), ValueRecorder()
        kernels = [one for one in map(self._kernel_in, map(without_locations, (before, after))) if one]
        with suppress(
            EndlessError, FreedError, AssumedError, AccessError
        ):  # that is the finding; there are values up to then
            for kernel, seen, timed in zip(kernels, (old, new), (False, True), strict=True):
                order, slow = (found.order, found.slow) if timed else (Order.AT_ONCE, None)
                self.reference.run(kernel, inputs, seen, order, slow)
        given = self.reference.given[inputs.arguments]
        one_level = len({isinstance(kernel, LoweredKernel) for kernel in kernels}) == 1
        operation = found.by or (blame.first_new(old, new) if one_level else None)
        behind = difference.argument if difference else None
        return Culprit(
            row,
            found.change,
            difference,
            inputs.seed,
            inputs.program,
            inputs.contents,
            _scalars(given),
            given[behind].name if behind is not None else "",
            name_of(operation) if operation else "",
            blame.line_of(after, operation) if operation else "",
            suspects,
            found.place,
        )


def _why(error: Exception) -> str:
    """Why a text could not be run."""
    if isinstance(error, FactError):
        return error.why or error.what
    if isinstance(error, RecursionError):  # of an IR that somebody made up
        return "it nests too deeply"
    if isinstance(error, MemoryError):
        return no_memory()
    return str(error)


def _suspects(rows: list[CheckedPass], found: ChangedRun) -> tuple[str, ...]:
    """The passes since the last text that is known to be right in this, the one that differs included."""
    right = [one.sure if found.order is not Order.AT_ONCE else one.status in KNOWN for one in rows]
    last = max((number for number, one in enumerate(right) if one), default=0)
    return tuple(dict.fromkeys(name for one in rows[last + 1 :] for name in (one.name, *one.others)))


def _scalars(given: tuple[Argument, ...]) -> dict[str, Any]:
    """Those that are numbers and small enough to be no address."""
    return {
        one.name or f"#{number}": one.value.item()
        for number, one in enumerate(given)
        if hasattr(one.value, "item") and not (one.value.dtype.kind == "i" and int(one.value) >= 1 << 39)
    }
