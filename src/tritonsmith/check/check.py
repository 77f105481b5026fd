"""Run the IR after each pass on the same inputs, and name the first pass that changes the result."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tritonsmith.check import blame
from tritonsmith.check.answer import KNOWN, CheckedPass, CheckResult, Culprit, InterpretedRuns
from tritonsmith.check.blame import ValueRecorder
from tritonsmith.check.evaluate import AccessError
from tritonsmith.check.gpu import AssumedError
from tritonsmith.check.in_flight import FreedError, Order
from tritonsmith.check.inputs import Argument
from tritonsmith.check.interpreter import TritonInterpreter, parameters
from tritonsmith.check.limited import DumpCheckRequest, LimitedChecks, WarmChecks, no_memory
from tritonsmith.check.llvm.machine import LoweredKernel, lowered
from tritonsmith.check.llvm.threads import RaceError
from tritonsmith.check.memory import Contents
from tritonsmith.check.module import UnsupportedIrError, behaviour, name_of, without_locations
from tritonsmith.check.program import EndlessError
from tritonsmith.check.runs import ChangedRun, CheckInputs, ReferenceRuns, TritonKernel, parsed
from tritonsmith.check.when_wrong import require_single
from tritonsmith.compiler import call
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump import run
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex, choose_kernel
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.replay import replayer
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.run import points_in_text
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UndecidedError
from tritonsmith.core.plan import digest
from tritonsmith.worker.messages import GenericJobRequest, GenericRequest

_STAGES = re.compile(r"\bnum[-_]stages=(\d{1,2})\b")
_LLVM = re.compile(r'^\s*(?:"llvm\.func"\(|llvm\.func\b)', re.MULTILINE)


def check_kernel(
    request: CompileRequest,
    where: Interpreter,
    out: Path | None = None,
    seeds: int | None = None,
    *,
    silent: bool = False,
    through_llvm: bool = False,
    interpreted: bool = False,
    stop: Callable[[], bool] = lambda: False,
    timeout: int | None = None,
    warm: WarmChecks | None = None,
    until: str = "",
) -> tuple[DumpIndex, CheckResult]:
    """Dump a kernel, and check the dump.

    Args:
        request: the compile request.
        where: the interpreter with the Triton to use.
        out: folder of the dump; one in the workspace if None.
        seeds: how many inputs; None for the usual number.
        silent: show no progress.
        through_llvm: run the IR in LLVM's dialect as well.
        interpreted: compare the first text with TRITON_INTERPRET=1.
        stop: returns whether to give up; polled.
        timeout: seconds that the check may take; None for the usual limit.
        warm: the processes that dump and check, into an empty folder; None for new ones.
        until: the pass after whose last run the check ends; empty for all.

    Raises:
        UsageError: the request has several targets or variants.
        SmithError: the kernel does not compile, or its IR cannot be run.
    """
    require_single(request)
    against: TritonInterpreter | None = None
    if warm and out:
        index, compiled = warm.dumps.dump(request, out)
        points = points_in_text(request)[1]
    else:
        prepared = run.of_kernel(request, where, Choices(), out)
        index, compiled = run.dump_kernel(prepared, silent=silent)
        points = prepared.compile.points
        against = TritonInterpreter(prepared.compile, where, silent=silent) if interpreted else None
    failed = next((point for point in compiled.points if point.status != "ok"), None)
    if failed and not index.dumps:  # in the front end: no pass ran
        raise UndecidedError("the kernel does not compile", where=request.file, why=failed.error)
    run.check(index)
    kernel = choose_kernel(index, index.kernels[0].name)
    answer = check(
        index,
        kernel,
        where.python,
        where.space,
        seeds,
        silent=silent,
        through_llvm=through_llvm,
        against=against,
        names=tuple(name for name, _ in parameters(points)),
        stop=stop,
        timeout=timeout,
        warm=warm,
        until=until,
    )
    return index, answer


def check_dump(
    folder: Path,
    kernel: str,
    seeds: int | None = None,
    *,
    env: str = "",
    interpreter: Path | None = None,
    silent: bool = False,
    through_llvm: bool = False,
    timeout: int | None = None,
) -> tuple[DumpIndex, CheckResult]:
    """Check a kernel of a dump with an interpreter that prints its generic form.

    Args:
        folder: folder of the dump.
        kernel: name of the kernel, if the dump has several.
        seeds: how many inputs; None for the usual number.
        env: environment with the Triton to use; empty for the dump's.
        interpreter: the interpreter with the Triton to use; None for the environment's or the dump's.
        silent: show no progress.
        through_llvm: run the texts in LLVM's dialect as well.
        timeout: seconds that the check may take; None for the usual limit.

    Raises:
        SmithError: there is no such dump or interpreter, or the IR cannot be run.
    """
    index, space = indexes.read(folder), workspace.default()
    dumped = choose_kernel(index, kernel)
    chosen = replayer.choose(index, space, env=env, python=interpreter, triton_opt=None)
    python = replayer.require_python(chosen)
    answer = check(
        index, dumped, python, space, seeds, silent=silent, through_llvm=through_llvm, timeout=timeout
    )
    return index, answer


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
    warm: WarmChecks | None = None,
    until: str = "",
) -> CheckResult:
    """Check a kernel of a dump, in a process of its own.

    Args:
        index: the dump.
        kernel: the kernel, one of that dump.
        python: an interpreter with the Triton that printed it.
        space: the workspace.
        seeds: how many inputs; None for the usual number.
        silent: show no progress.
        through_llvm: run the texts in LLVM's dialect as well.
        against: the interpreter to compare the first text with; None for no comparison.
        names: names of the kernel's parameters, which older releases do not print.
        stop: returns whether to give up; polled.
        timeout: seconds that it may take; None for the usual limit.
        warm: the processes that print and run the IR; None for new ones.
        until: the pass after whose last run the check ends; empty for all.

    Raises:
        FactError: the dump has no Triton IR.
        UndecidedError: no text can be run, or the check was stopped.
    """
    dumps = _of_modules(index, kernel)
    if not dumps:
        raise FactError(
            "the dump has no module of Triton's IR", where=index.folder, hints=[command("passes.dump")]
        )
    # After Triton's dialects nothing is run, and these texts are the longest.
    printed = dumps if through_llvm else before_llvm(index, dumps)
    printed = printed[: count_until(dumps, until)]
    texts = _generic(index, printed, python, space, silent=silent, warm=warm)
    request = DumpCheckRequest(
        str(index.folder.absolute()),
        index.kernels.index(kernel),
        kernel.name,
        kernel.target,
        texts,
        seeds,
        through_llvm,
        names,
        until,
    )
    with nullcontext(warm.checks) if warm else LimitedChecks() as checks:
        checks.timeout, checks.stop = timeout, stop
        answer = checks.check(request)
    pass_check = _pass_check(index, request)
    # The reference alone proves nothing, and must not read as "no pass changes the result".
    if answer.checked == 1 and not answer.culprit and not answer.open:
        raise UndecidedError("no pass of this kernel could be compared", where=index.folder)
    if not (answer.culprit or kernel.failed or pass_check.ended):
        answer = replace(answer, passes=(*answer.passes, missing_texts(index, kernel, dumps[-1])))
    return replace(answer, interpreted=_interpreted(answer, pass_check, against)) if against else answer


def in_process(
    request: DumpCheckRequest, begun: Callable[[CheckedPass], None], done: Callable[[CheckedPass], None]
) -> CheckResult:
    """Check a kernel of a dump in this process.

    Args:
        request: the kernel.
        begun: called with each text before it is run, with the status `unknown`.
        done: called with each text that was run.
    """
    return _pass_check(indexes.read(Path(request.folder)), request).run(begun, done)


def changed_result(before: str, after: str) -> tuple[str, str]:
    """Compare what two texts in generic form compute.

    Returns:
        The first change, empty if there is none or it cannot be determined; and a line for the log.
    """
    seeds = configs.load("passes-check")["inputs"]["seeds"]
    runs = ReferenceRuns(inputs_of(seeds))
    try:
        first, second = (parsed(without_locations(text)) for text in (before, after))
        if first is None or second is None:
            return "", "this is not IR of Triton's dialects"
        runs.refer(first)
        compared = runs.compare(second)
    except UnsupportedIrError as error:
        return "", f"the IR cannot be run: {error}"
    except SmithError as error:
        return "", f"the IR cannot be run: {error.why or error.what}"
    if compared.changed is None and (why := runs.racing(before)):
        return "", why
    if compared.changed is None:
        return "", "the passes do not change the result"
    change = str(compared.changed.change)
    return change, f"wrong: {change}"


def _pass_check(index: DumpIndex, request: DumpCheckRequest) -> PassCheck:
    kernel, seeds = index.kernels[request.kernel], request.seeds
    count = seeds or configs.load("passes-check")["inputs"]["seeds"]
    more = () if seeds else tuple(more_inputs(count))
    dumps = _of_modules(index, kernel)
    return PassCheck(
        index,
        kernel,
        dumps,
        request.texts,
        inputs_of(count),
        more,
        through_llvm=request.through_llvm,
        names=request.names,
        until=request.until,
    )


def _interpreted(answer: CheckResult, pass_check: PassCheck, against: TritonInterpreter) -> InterpretedRuns:
    first = answer.passes[0]
    if first.status != "reference":
        return InterpretedRuns("unknown", f"the first text cannot be run: {first.why}")
    pass_check.refer()  # once more: it has ended within the limits
    return against.compare(pass_check.reference)


def inputs_of(seeds: int) -> list[CheckInputs]:
    """Return the inputs of a check: for every seed the programs that its sizes are meant for."""
    programs = configs.load("passes-check")["inputs"]["programs"]
    inputs: list[CheckInputs] = []
    for seed in range(seeds):
        # The programs belong to the extent that a seed stands for (`inputs.Extent`): those that such sizes
        # give work.
        *others, last = (CheckInputs(seed, (x, y, z)) for x, y, z in programs[seed % 3])
        # The last program has no edge cases: a dot over NaN is NaN whatever the other operand is.
        contents = Contents.EDGES if 0 < seed == seeds - 1 else Contents.PLAIN
        inputs += [*(replace(item, contents=contents) for item in others), last]
    if seeds == 1:  # the user wants a quick answer
        return inputs
    # These contents need no other sizes, so one program has to do: that of the second seed, whose sizes are
    # several blocks, or of the first, where masked elements stand beside numbers of only one sign.
    varied = (Contents.LARGE, Contents.PRECISE, Contents.INTEGERS)
    inputs += [CheckInputs(1, (0, 0, 0), kind) for kind in varied]
    cut = (Contents.ABOVE, Contents.BELOW, Contents.INTEGERS_ABOVE, Contents.INTEGERS_BELOW)
    return inputs + [CheckInputs(0, (0, 0, 0), kind) for kind in cut]


def more_inputs(seeds: int) -> list[CheckInputs]:
    """Return further seeds beyond these, for a kernel whose runs are short."""
    table = configs.load("passes-check")["inputs"]
    return [
        CheckInputs(seed, (x, y, z))
        for seed in range(seeds, table["cheap-seeds"])
        for x, y, z in table["programs"][seed % 3]
    ]


def _of_modules(index: DumpIndex, kernel: DumpedKernel) -> list[Dump]:
    """Return the dumps of whole modules before each pass, with digests of the files as they are now."""
    return [
        # The digests of the index may be older than the files, and the generic form of a text is found by its
        # digest.
        replace(dump, sha256=hashlib.sha256(index.content(dump, edited=True)).hexdigest())
        for dump in index.of(kernel.name)
        if dump.language == "mlir"
        and dump.operation == "builtin.module"
        and dump.when == "before"
        and dump.whole
    ]


def count_until(dumps: Sequence[Dump], name: str) -> int:
    """Return how many texts there are up to the last one that a pass left; all if it left none."""
    # A text is printed before the next pass: so the one after the pass's own is what it left.
    places = [place for place, dump in enumerate(dumps) if name and dump.label == name]
    return min(places[-1] + 2, len(dumps)) if places else len(dumps)


def missing_texts(index: DumpIndex, kernel: DumpedKernel, last: Dump) -> CheckedPass:
    """Describe the texts that passes left after the last module and before LLVM's dialect, as one row."""
    rest = [dump for dump in index.of(kernel.name) if dump.number > last.number and dump.language == "mlir"]
    why = "the dump ends before LLVM's dialect"
    if rest:
        about = f"of {rest[0].operation}, {rest[0].when} a pass" if rest[0].whole else "not whole"
        why += f": the text that follows is {about}"
    return CheckedPass(last.number + 1, last.label, "unknown", why)


def _stages(dumps: list[Dump]) -> int:
    """Return the number of stages of pipelined loops that the passes' options name; 0 if none does."""
    return max((int(digits) for dump in dumps for digits in _STAGES.findall(dump.pipeline)), default=0)


def dump_before(index: DumpIndex, kernel: DumpedKernel, checked: CheckedPass) -> Dump:
    """Return the dump that a pass was given; its `pipeline` is that pass."""
    dumps = _of_modules(index, kernel)
    place = next(number for number, dump in enumerate(dumps) if dump.number == checked.number)
    return dumps[place - 1]


def before_llvm(index: DumpIndex, dumps: list[Dump]) -> list[Dump]:
    """Return the dumps without those of LLVM's dialect that no dump of Triton's follows."""
    texts = [index.text(dump, edited=True) for dump in dumps]
    last = max((place for place, text in enumerate(texts) if "tt.func" in text), default=-1)
    return [
        dump
        for place, (dump, text) in enumerate(zip(dumps, texts, strict=True))
        if place <= last or not _LLVM.search(text)
    ]


def _generic(
    index: DumpIndex,
    dumps: list[Dump],
    python: Path,
    space: Workspace,
    *,
    silent: bool,
    warm: WarmChecks | None = None,
) -> dict[str, str]:
    """Return the generic form of each distinct file, by digest; files that cannot be printed are left out."""
    # Most passes change nothing, so that far fewer texts than dumps have to be printed.
    distinct = {dump.sha256: index.path(dump).absolute() for dump in dumps}
    return generic_texts(distinct, python, space, silent=silent, warm=warm)


def generic_texts(
    named: Mapping[str, Path],
    python: Path,
    space: Workspace,
    *,
    silent: bool,
    warm: WarmChecks | None = None,
    task: str = "passes.check",
) -> dict[str, str]:
    """Return the generic form of files of IR, by any name; files that cannot be printed are left out.

    Args:
        named: the files.
        python: an interpreter with the Triton that wrote them.
        space: the workspace.
        silent: show no progress.
        warm: the processes that print IR; None for a new one.
        task: the task, for the log.

    Raises:
        FactError: that Triton cannot print any.
    """
    own = digest(str(python), *sorted(named))[:16]
    work = space.root / "passes" / "check" / f"{own}-{os.getpid()}"  # others may check it, too
    work = warm.dumps.folder if warm else work
    limits = configs.load("passes-check")["inputs"]
    paths = list(named.values())
    if warm:
        jobs = tuple(
            GenericJobRequest(str(path), str(work / f"{number}.mlir")) for number, path in enumerate(paths)
        )
        results = str(work / "generic.jsonl")
        request = GenericRequest(jobs, results, limits["timeout"], limits["memory"] << 20)
        texts = call.printed_texts(warm.dumps.compiler.print_generic(request), jobs)
    else:
        texts = call.generic_texts(paths, (python, space), work, limits, task=task, quiet=silent)
    return {name: text for name, text in zip(named, texts, strict=True) if text}


class PassCheck:
    """A check of one kernel, from the generic form of its dumps.

    Attributes:
        reference: the runs of the first text that could be run.
    """

    def __init__(
        self,
        index: DumpIndex,
        kernel: DumpedKernel,
        dumps: list[Dump],
        texts: dict[str, str],
        inputs: list[CheckInputs],
        more: Sequence[CheckInputs] = (),
        *,
        through_llvm: bool = False,
        names: tuple[str, ...] = (),
        until: str = "",
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._index, self._kernel, self._dumps, self._texts = index, kernel, dumps, texts
        self._end = count_until(dumps, until)
        self._runs_once = sum(dump.label == until for dump in dumps[: self._end - 1]) == 1
        self._through_llvm = through_llvm
        self._gaps: tuple[str, ...] = ()
        self._racing = ""
        self._culprit: Culprit | None = None
        self._before = self._key = self._waits = ""
        self._last = CheckedPass(0, "", "unknown")  # of the text that is the key
        self._outcomes: dict[str, CheckedPass] = {}  # by the behaviour of the text
        self.reference = ReferenceRuns(inputs, names, _stages(dumps), stop, more)

    def refer(self) -> None:
        """Run the first text alone, to obtain its runs."""
        kernel = parsed(without_locations(self._texts[self._dumps[0].sha256]))
        assert kernel is not None  # noqa: S101 - it was run before
        self.reference.refer(kernel)

    def run(
        self,
        begun: Callable[[CheckedPass], None] = lambda _: None,
        done: Callable[[CheckedPass], None] = lambda _: None,
    ) -> CheckResult:
        """Run each new text until one differs, and report each before and after."""
        rows: list[CheckedPass] = []
        place = 0
        while place < self._end:
            dump, name = self._dumps[place], self._dumps[place - 1].label if place else ""
            begun(CheckedPass(dump.number, name, "unknown", others=self._others(place, name)))
            rows.append(self._row(place, rows))
            done(rows[-1])
            # After a change all texts differ, and after Triton's IR none can be run.
            if rows[-1].status in ("lowered", "differs"):
                break
            place += 1
            if rows[-1].status != "reference" or not self._runs_once:
                continue
            # A search asks about one pass again and again, which mostly does no harm to what is left.
            # Then the texts before need no run: if one of them differs, another pass is to blame.
            if row := self._unchanged_end(begun):
                rows.append(row)
                done(row)
                break
            # Where the pass does harm, it is enough that the text before it is right.
            if place < self._end - 2 and (row := self._unchanged_before(rows)):
                rows.append(row)
                done(row)
                place = self._end - 1
        return self._answer(rows)

    def _unchanged_before(self, rows: list[CheckedPass]) -> CheckedPass | None:
        """Return the row of the text before the last one; None unless it computes what the reference does."""
        state = self._before, self._key, self._last, self._waits
        row = self._row(self._end - 2, rows)
        if row.status in ("equal", "close", "same text") and not row.waits:
            return row
        # All texts are run in order, to find the first that differs.
        self._before, self._key, self._last, self._waits = state
        self._culprit = None
        return None

    def _unchanged_end(self, begun: Callable[[CheckedPass], None]) -> CheckedPass | None:
        """Return the row of the last text; None unless it is certain to compute what the reference does."""
        last, name = self._dumps[self._end - 1], self._dumps[self._end - 2].label
        begun(CheckedPass(last.number, name, "unknown"))
        plain = without_locations(self._texts.get(last.sha256, ""))
        try:
            kernel = self._kernel_in(plain) if plain and plain != self._key else None
            compared = self.reference.compare(kernel) if kernel else None
        # The run in order says what is wrong with it.
        except (UnsupportedIrError, FactError, RecursionError, MemoryError):
            return None
        if not compared or compared.changed or compared.waits:
            return None
        status = "close" if compared.apart else "equal"
        return CheckedPass(last.number, name, status, apart=compared.apart)

    def _row(self, place: int, rows: list[CheckedPass]) -> CheckedPass:
        """Run the text at a place in the dump, and return its row."""
        dump, name = self._dumps[place], self._dumps[place - 1].label if place else ""
        raw = self._texts.get(dump.sha256, "")
        say = partial(CheckedPass, dump.number, name, others=self._others(place, name))
        if not raw:
            # The reader of 3.4 rejects some of what the same release prints in LLVM's dialect.
            if not self._through_llvm and self._is_lowered(place):
                return say("lowered")
            return say("unknown", "this Triton cannot print it")
        # Most passes change nothing but locations. Where the same text could not be run, this cannot either.
        plain = without_locations(raw)
        if plain == self._key:
            status = "unknown" if self._last.status == "unknown" else "same text"
            return say(status, self._last.why, waits=self._last.waits)
        try:
            row = self._compared(place, plain, say, rows)
            self._before = raw
        except (UnsupportedIrError, FactError, RecursionError, MemoryError) as error:
            row = say("unknown", _why(error))
            # A text that fails under its third inputs has left two runs, which must not become a reference.
            if all(earlier.status != "reference" for earlier in rows):
                self.reference.forget()
        self._key, self._last = plain, row
        return row

    def _compared(
        self, place: int, plain: str, say: Callable[..., CheckedPass], rows: list[CheckedPass]
    ) -> CheckedPass:
        """Run a text and compare it with the reference; the first text that runs is the reference."""
        # About half of the passes change nothing but layouts, or how they plan to.
        behaves = behaviour(plain) if '"tt.func"(' in plain else ""
        if outcome := self._outcomes.get(behaves):
            self._waits = outcome.waits
            return say(outcome.status, outcome.why, apart=outcome.apart, waits=outcome.waits)
        kernel, runs, raw = self._kernel_in(plain), self.reference, self._texts[self._dumps[place].sha256]
        # A lowered text writes bytes, which only the elements of a reference give a type: so it cannot be the
        # reference.
        if kernel is None or (isinstance(kernel, LoweredKernel) and not runs.memories):
            if not self._is_lowered(place):
                raise UnsupportedIrError("LLVM's dialect, and Triton's in a later text")
            return say("lowered")
        if not runs.memories:
            assert isinstance(kernel, TritonKernel)  # noqa: S101 - the line above
            row = say("reference", waits=runs.refer(kernel).waits)
            mixed = ("which dots of fp32 are of tf32, as some of them are",) if kernel.mixed else ()
            repeated = ("integers in memory that repeat",) if runs.ordered else ()
            self._gaps = (*mixed, *repeated, *runs.reached.gaps(kernel.functions, raw))
            self._racing = runs.racing(raw)
            return row
        comparison = runs.compare(kernel)
        if comparison.changed:
            row = say("differs")
            suspects = _suspects([*rows, row], comparison.changed)
            self._culprit = self._blamed(suspects, row, comparison.changed, self._before, raw)
            return row
        if isinstance(kernel, TritonKernel):
            # Texts in LLVM's dialect run at once only: what was known of the waits before stays.
            self._waits = comparison.waits
        why = (
            "other programs do the work of some; the whole grid's writes are the same"
            if comparison.moved
            else ""
        )
        status = "close" if comparison.apart else "equal"
        row = say(status, why, apart=comparison.apart, waits=self._waits)
        if behaves:
            self._outcomes[behaves] = row
        return row

    def _answer(self, rows: list[CheckedPass]) -> CheckResult:
        runs, culprit = self.reference, self._culprit
        if self._kernel.failed and not culprit and rows[-1].status != "lowered":
            # The pass that fails leaves no text: the row stands for the one that it would have left.
            number = self._dumps[-1].number + 1
            rows.append(CheckedPass(number, self._kernel.failed, "unknown", "the pass fails"))
        if not runs.memories:
            whys = sorted({row.why for row in rows if row.why})
            raise UndecidedError(
                "nothing of this kernel can be run", where=self._index.folder, why="; ".join(whys)[:400]
            )
        return CheckResult(
            self._kernel.name,
            self._kernel.target,
            tuple(rows),
            culprit,
            sum(memory.written.at.size for memory in runs.memories.values()),
            len(runs.memories),
            runs.left_out,
            self._racing,
            self._gaps,
        )

    def _others(self, place: int, name: str) -> tuple[str, ...]:
        """Return the passes since the previous text whose own text is of a function, or is not whole."""
        first, last = (self._dumps[index].number for index in (place - 1, place)) if place else (0, 0)
        between = (dump for dump in self._index.of(self._kernel.name) if first < dump.number < last)
        labels = (dump.label for dump in between if dump.language == "mlir" and not dump.inside)
        return tuple(dict.fromkeys(label for label in labels if label != name))

    # A dump that ends within Triton's dialects was cut off, or the rest is no text of a module.
    @property
    def ended(self) -> bool:
        """Return whether the last text is beyond Triton's dialects."""
        return self._is_lowered(len(self._dumps) - 1)

    def _is_lowered(self, place: int) -> bool:
        """Return whether a text, printed or not, has left Triton's dialects for good."""
        if not _LLVM.search(self._text(self._dumps[place])):
            return False
        return not any("tt.func" in self._text(dump) for dump in self._dumps[place:])

    def _text(self, dump: Dump) -> str:
        """Return a text in generic form, or else as it is in the dump."""
        return self._texts.get(dump.sha256) or self._index.text(dump, edited=True)

    def _kernel_in(self, raw: str) -> TritonKernel | LoweredKernel | None:
        """Parse a kernel; None where LLVM's dialect begins and is not requested."""
        return lowered(raw) if self._through_llvm and '"tt.func"(' not in raw else parsed(raw)

    def _blamed(
        self, suspects: tuple[str, ...], row: CheckedPass, changed: ChangedRun, before: str, after: str
    ) -> Culprit:
        """Run both sides again with recorded values, and name the culprit."""
        inputs, difference = changed.inputs, changed.difference
        old, new = ValueRecorder(), ValueRecorder()
        kernels = [
            kernel for kernel in map(self._kernel_in, map(without_locations, (before, after))) if kernel
        ]
        # These errors are the finding itself; the values up to that point are recorded.
        with suppress(EndlessError, FreedError, AssumedError, AccessError, RaceError):
            for kernel, recorder, timed in zip(kernels, (old, new), (False, True), strict=True):
                order, slow = (changed.order, changed.slow) if timed else (Order.AT_ONCE, None)
                self.reference.run(kernel, inputs, recorder, order, slow)
        arguments = self.reference.given[inputs.arguments]
        one_level = len({isinstance(kernel, LoweredKernel) for kernel in kernels}) == 1
        # Values of single threads have nothing in common with whole tensors: between the two levels, every
        # value is new.
        operation = changed.by or (blame.first_new(old, new) if one_level else None)
        behind = difference.argument if difference else None
        return Culprit(
            row,
            changed.change,
            difference,
            inputs.seed,
            inputs.program,
            inputs.contents,
            _scalars(arguments),
            arguments[behind].name if behind is not None else "",
            name_of(operation) if operation else "",
            blame.line_of(after, operation) if operation else "",
            suspects,
            changed.place,
        )


def _why(error: Exception) -> str:
    """Return the reason why a text could not be run."""
    if isinstance(error, FactError):
        return error.why or error.what
    if isinstance(error, RecursionError):  # of an IR that somebody made up
        return "it nests too deeply"
    if isinstance(error, MemoryError):
        return no_memory()
    return str(error)


def _suspects(rows: list[CheckedPass], changed: ChangedRun) -> tuple[str, ...]:
    """Return the passes since the last text known to be right in this order, up to the one that differs."""
    # A race can have come in with any text whose waits could not be checked, although its result is right.
    right = [row.sure if changed.order is not Order.AT_ONCE else row.status in KNOWN for row in rows]
    last = max((number for number, is_right in enumerate(right) if is_right), default=0)
    return tuple(dict.fromkeys(name for row in rows[last + 1 :] for name in (row.name, *row.others)))


def _scalars(given: tuple[Argument, ...]) -> dict[str, Any]:
    """Return the arguments that are numbers, without those large enough to be an address."""
    # Once descriptors are expanded, an address is an i64 like any other.
    return {
        argument.name or f"#{number}": argument.value.item()
        for number, argument in enumerate(given)
        if hasattr(argument.value, "item")
        and not (argument.value.dtype.kind == "i" and int(argument.value) >= 1 << 39)
    }
