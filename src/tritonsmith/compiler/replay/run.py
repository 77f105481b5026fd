"""`passes.replay`: run passes of a dump, each alone on its input, and compare with the dump."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from tritonsmith.compiler import call
from tritonsmith.compiler.dump.index import DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import bindings, pass_chain
from tritonsmith.compiler.replay.bindings import Binding, Call, Rehearsal, TracedCall
from tritonsmith.compiler.replay.pass_chain import PassLink
from tritonsmith.compiler.replay.replayer import Debug, Replayer
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import Copy, MakeDir, Plan, Run, Step, digest, files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.text import duration
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import installed_tritons
from tritonsmith.ir import normalize
from tritonsmith.worker.messages import ReplayedRow, ReplayJobRequest, ReplayRequest

_RESULTS = "results.jsonl"
_SIGNALLED = 128  # a shell adds the signal to it for an exit code


@dataclass(frozen=True)
class KernelPasses:
    """A kernel's passes, and facts about how they can be run.

    Attributes:
        index: the dump.
        kernel: the kernel in it.
        links: its passes, in order.
        rehearsal: the calls that the backend would make for them.
        notes: messages for the user.
    """

    index: DumpIndex
    kernel: DumpedKernel
    links: tuple[PassLink, ...]
    rehearsal: Rehearsal
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedReplay:
    """A replay that is ready to run.

    Attributes:
        kernel_passes: the kernel's passes.
        tool: the replayer.
        jobs: the jobs, in order.
        debug: additional debug output.
        plan: the steps.
        work: folder of the results.
    """

    kernel_passes: KernelPasses
    tool: Replayer
    jobs: tuple[ReplayJob, ...]
    debug: Debug
    plan: Plan
    work: Path


@dataclass(frozen=True)
class ReplayResult:
    """The outcome of a job.

    Attributes:
        job: the job.
        verdict: comparison of the result with the dump.
        why: the compiler's error, or the reason why nothing was run.
        seconds: wall time; None if nothing was run.
    """

    job: ReplayJob
    verdict: ReplayStatus
    why: str
    seconds: float | None


def look(
    index: DumpIndex, kernel: DumpedKernel, tool: Replayer, space: Workspace, options: Mapping[str, Any]
) -> KernelPasses:
    """Find a kernel's passes; `options` are those of the compile that the IR does not name.

    Raises:
        FactError: a file of the dump is gone.
    """
    for dump in index.of(kernel.name):
        if not index.path(dump).is_file():
            # It raises, with hints. Now, since a replay would find out after minutes.
            index.content(dump, edited=True)
    rehearsal, notes = bindings.NOTHING, []
    if tool.python:
        try:
            rehearsal = bindings.rehearse(tool.python, space, index, kernel, options)
        # Banners of LLVM 22 and later have all options, and then the dump itself tells enough.
        except FactError as error:
            notes.append(f"cannot determine what the backend would run: {error.why or error.what}")
        own = installed_tritons.of_python(tool.python)
        if not tool.opt and own and index.triton and own.version != index.triton:
            notes.append(f"the dump is by Triton {index.triton}, but Triton {own.version} replays it")
    links = pass_chain.of(index.of(kernel.name), rehearsal.own)
    return KernelPasses(index, kernel, links, rehearsal, tuple(notes))


def prepare(
    kernel_passes: KernelPasses,
    groups: Sequence[Sequence[PassLink]],
    tool: Replayer,
    space: Workspace,
    debug: Debug,
) -> PreparedReplay:
    """Choose how the job of each group of passes is run, and make the plan.

    Raises:
        FactError: the interpreter has no Triton.
    """
    about = digest(str(kernel_passes.index.folder.absolute()), kernel_passes.kernel.name, str(tool))
    # One folder for one dump, kernel and replayer: a second replay overwrites the first, and fills no disk.
    work = space.root / "passes" / "replay" / about
    has_options = tells_options(kernel_passes.links)
    calls = kernel_passes.rehearsal.calls
    known = () if tool.opt or tool.python is None else bindings.known_bindings(tool.python, space)
    jobs = []
    for group in groups:
        job = empty(kernel_passes.index, group, work)
        if job.why:
            jobs.append(job)
        elif tool.opt:
            pipeline, notes = pipeline_of(group, calls, has_options=has_options)
            argv = by_opt(job, tool.opt, pipeline, debug.flags())
            jobs.append(replace(job, argv=argv, notes=notes))
        else:
            job_calls, why, notes = by_bindings(group, known, calls, has_options=has_options)
            jobs.append(replace(job, calls=job_calls, why=why, notes=notes))
    steps = (MakeDir(work, phase="replay"), *_steps(jobs, tool, work, debug))
    return PreparedReplay(kernel_passes, tool, tuple(jobs), debug, Plan("replay", steps), work)


def _steps(planned: Sequence[ReplayJob], tool: Replayer, work: Path, debug: Debug) -> Iterator[Step]:
    todo = [job for job in planned if not job.why]
    if tool.opt:
        yield from (_opt_step(job, work, debug) for job in todo)
        return
    assert tool.python  # noqa: S101 - a replayer is a triton-opt, or an interpreter
    jobs = tuple(
        ReplayJobRequest(
            job.number,
            str(job.input),
            tuple(each.request() for each in job.calls),
            str(job.out),
            str(job.log),
        )
        for job in todo
    )
    timeout = configs.load("passes-replay")["limits"]["pass"]
    request = ReplayRequest(str(work / _RESULTS), timeout, jobs)
    # Under the user's own TRITON_REPRODUCER_PATH, each pass manager would write a reproducer there.
    change = (("TRITON_INTERPRET", None), ("TRITON_REPRODUCER_PATH", None), *debug.environ())
    yield from call.steps(tool.python, request, work / "request.json", env=change, phase="replay")


def _opt_step(job: ReplayJob, work: Path, debug: Debug) -> Run:
    argv = job.argv
    # The debug output is the result here, so it goes to the job's log and not through the progress display.
    if debug:
        argv = ("sh", "-c", 'exec "$@" > "$0" 2>&1', str(job.log), *argv)
    return Run(argv, cwd=work, phase="replay")


def execute(prepared: PreparedReplay, space: Workspace) -> tuple[ReplayResult, ...]:
    """Run a plan of `prepare`, and compare.

    Raises:
        SmithError: the worker did nothing.
        InterruptedRunError: ^C.
    """
    space.claim()
    files.make_folder(prepared.work)
    # Results of an earlier replay would pass for this one's.
    for job in prepared.jobs:
        files.remove((job.out, job.log))
    return tuple((_by_opt if prepared.tool.opt else _by_bindings)(prepared, space))


def _by_opt(prepared: PreparedReplay, space: Workspace) -> Iterator[ReplayResult]:
    """Run one program per job, in sequence; a failure is an outcome."""
    log = space.log("passes.replay")
    for job in prepared.jobs:
        if job.why:
            yield ReplayResult(job, "inside", job.why, None)
            continue
        plan = Plan(job.title, (_opt_step(job, prepared.work, prepared.debug),))
        began = time.monotonic()
        try:
            space.run(plan, "passes.replay", quiet=True, log=log)
        except CommandFailedError as failure:
            # Through `sh`, a signal comes as 128 and its number.
            died = failure.code < 0 or failure.code > _SIGNALLED
            why = _error_line(failure.output) or f"exit code {failure.code}"
            yield ReplayResult(job, "crashed" if died else "failed", why, time.monotonic() - began)
        else:
            yield _ran(job, time.monotonic() - began)


def _by_bindings(prepared: PreparedReplay, space: Workspace) -> Iterator[ReplayResult]:
    """Run all jobs in one worker."""
    results: dict[int, ReplayedRow] = {}
    if any(not job.why for job in prepared.jobs):
        alone = len(prepared.jobs) == 1
        file = prepared.work / _RESULTS
        try:
            rows = call.run(prepared.plan, file, ReplayedRow, space, task="passes.replay", quiet=alone)
        except call.UnansweredError as error:
            where = prepared.tool.python
            raise FactError("cannot replay any pass", where=where, why=error.why) from error
        results = {row.number: row for row in rows}
    for job in prepared.jobs:
        if job.why:
            yield ReplayResult(job, "inside" if job.inside else "no binding", job.why, None)
            continue
        # The worker writes a row even for a pass that crashes: only its own death leaves none.
        if job.number not in results:
            raise SmithError("the worker wrote no result", where=job.log)
        row = results[job.number]
        if row.status == "ok":
            yield _ran(job, row.seconds)
        else:
            log = job.log.read_text(encoding="utf-8", errors="replace").splitlines()
            yield ReplayResult(
                job, cast("ReplayStatus", row.status), _error_line(log) or row.error, row.seconds
            )


def _ran(job: ReplayJob, seconds: float) -> ReplayResult:
    """Return the outcome of a job that ended without an error."""
    if not job.out.is_file():
        why = "the program succeeded but wrote no IR: is it a triton-opt?"
        return ReplayResult(job, "failed", why, seconds)
    return ReplayResult(job, compare_with_dump(job.out, job.after), "", seconds)


def _error_line(lines: Sequence[str]) -> str:
    """Return the first line that names an error; empty if there is none."""
    # libtriton throws `RuntimeError: PassManager::run failed` last of all, which names no cause.
    signs = ("error:", "Assertion", "ERROR", "does not refer to", "LLVM ERROR")
    errors = [line.strip() for line in lines if any(sign in line for sign in signs)]
    return errors[0] if errors else ""


def keep(result: Path, out: Path) -> Path:
    """Copy the result to the path that the user chose, and return that path."""
    plan = Plan("keep", (Copy(result, out, phase="keep"),))
    workspace.default().run(plan, "passes.replay", quiet=True)
    return out


# exact: equal byte by byte. same: equal except for locations and names of values. alone: the dump ends here.
ReplayStatus = Literal[
    "exact", "same", "differs", "alone", "no binding", "inside", "failed", "crashed", "timeout"
]
RAN: tuple[ReplayStatus, ...] = ("exact", "same", "differs", "alone")


def compare_with_dump(result: Path, after: Path | None) -> ReplayStatus:
    """Compare the file of a result with that of the next dump, if there is one."""
    if after is None:
        return "alone"
    mine, theirs = (path.read_text(encoding="utf-8", errors="replace").strip() for path in (result, after))
    if mine == theirs:
        return "exact"
    # Only now: most passes replay exactly, and normalizing is far slower than comparing.
    return "same" if normalize.text(mine, "mlir") == normalize.text(theirs, "mlir") else "differs"


_LONGEST = 100

WORDS = {
    "exact": "the result equals the next dump byte by byte",
    "same": "the result equals the next dump except for locations and value names",
    "differs": "the result differs from the next dump",
    "alone": "the dump ends here: nothing to compare with",
}


def outcome_table(outcomes: Sequence[ReplayResult], prepared: PreparedReplay) -> Grid:
    """Return a table with one row per job."""
    rows = []
    for outcome in outcomes:
        took = "" if outcome.seconds is None else duration(outcome.seconds)
        name, why = outcome.job.links[0].dump.argument, tables.clipped(outcome.why, _LONGEST)
        rows.append([str(outcome.job.number), name, outcome.verdict, took, why])
    kernel, by = prepared.kernel_passes.kernel, prepared.tool.opt or prepared.tool.python
    title = f"{kernel.name} {kernel.target}, by {by}"
    return tables.plain(title, ["", "pass", "replay", "time", "why"], rows, right=["", "time"], keys=2)


def summary(outcomes: Sequence[ReplayResult]) -> str:
    """Count the passes that replay exactly and those that can be compared, and list the rest."""
    count = Counter(outcome.verdict for outcome in outcomes)
    # A pass inside another has no call of its own, so its result is part of the outer one's and would count
    # twice.
    counted = [outcome for outcome in outcomes if outcome.verdict != "inside" and outcome.job.after]
    good = count["exact"] + count["same"]
    last = len(outcomes) - len(counted) - count["inside"]
    text = f"{good} of {len(counted)} passes replay exactly"
    text += f" ({count['same']} of them except for locations and value names)" if count["same"] else ""
    bad: tuple[ReplayStatus, ...] = ("differs", "no binding", "failed", "crashed", "timeout")
    rest = [f"{count[name]} {name}" for name in bad if count[name]]
    rest += [f"{count['inside']} more run inside another pass"] if count["inside"] else []
    rest += [f"{last} more with no dump after it"] if last else []
    return "; ".join([text, *rest])


def sentence(outcome: ReplayResult) -> str:
    """Describe the outcome of a single job in words."""
    return f"{outcome.job.title}: {WORDS[outcome.verdict]}"


def suspects(prepared: PreparedReplay) -> list[str]:
    """Return possible reasons why a replay differs, as hints."""
    hints = []
    if prepared.tool.source:
        edited = "the pass was perhaps edited since the dump was recorded: then this is what the edit changes"
        hints.append(f"{edited}; {command('passes.dump')} records a new one")
    if not tells_options(prepared.kernel_passes.links):
        hints.append(
            "this dump does not contain pass options: give those of its compile, --option num_stages=4"
        )
    if prepared.kernel_passes.index.triton:
        hints.append(f"use the Triton that wrote the dump: {prepared.kernel_passes.index.triton}")
    return hints


def as_json(outcomes: Sequence[ReplayResult], prepared: PreparedReplay) -> dict[str, Any]:
    """Return the outcomes as JSON data."""
    return {
        "schema": 1,
        "kernel": prepared.kernel_passes.kernel.name,
        "target": prepared.kernel_passes.kernel.target,
        "by": str(prepared.tool.opt or prepared.tool.python),
        "summary": summary(outcomes),
        "passes": [
            {
                "numbers": [link.dump.number for link in outcome.job.links],
                "passes": [link.dump.argument for link in outcome.job.links],
                "verdict": outcome.verdict,
                "why": outcome.why,
                "seconds": outcome.seconds,
                "input": str(outcome.job.input),
                "output": str(outcome.job.out) if outcome.verdict in RAN else None,
                "next": str(outcome.job.after) if outcome.job.after else None,
                "calls": [asdict(call) for call in outcome.job.calls],
                "command": list(outcome.job.argv),
                "notes": list(outcome.job.notes),
            }
            for outcome in outcomes
        ],
    }


# As Triton prints its dumps: with locations, and without the elements of large constants.
_AS_DUMPED = ("--mlir-print-debuginfo", "--mlir-elide-elementsattrs-if-larger=16")


@dataclass(frozen=True)
class ReplayJob:
    """One or more passes, run on the input of the first.

    Attributes:
        links: the passes, in order.
        input: file with the IR before the first.
        after: file with the IR that the dump has after the last; None if it has none.
        out: file for the resulting IR.
        log: file for the compiler's messages.
        calls: bindings, one for each pass.
        argv: the command instead, if `triton-opt` runs them.
        why: reason why nothing can be run; empty if something can.
        notes: messages for the user.
    """

    links: tuple[PassLink, ...]
    input: Path
    after: Path | None
    out: Path
    log: Path
    calls: tuple[Call, ...] = ()
    argv: tuple[str, ...] = ()
    why: str = ""
    notes: tuple[str, ...] = ()

    @property
    def inside(self) -> bool:
        """True if another pass runs any of its passes."""
        return any(link.inside for link in self.links)

    @property
    def number(self) -> int:
        """The number of its first pass."""
        return self.links[0].dump.number

    @property
    def title(self) -> str:
        """A short description: the number and name of its pass, or of the first and last."""
        first, last = self.links[0].dump, self.links[-1].dump
        head = f"{first.number} {first.argument}"
        return head if first is last else f"{head} to {last.number} {last.argument}"


def empty(index: DumpIndex, links: Sequence[PassLink], out: Path) -> ReplayJob:
    """Return a job without a command or calls; `why` is set if its passes run inside another pass."""
    first = links[0].dump
    inside = next((link.inside for link in links if link.inside), "")
    name = f"{first.number:03d}-{first.argument}"
    after = links[-1].after
    return ReplayJob(
        tuple(links),
        index.path(first).absolute(),
        index.path(after).absolute() if after else None,
        out / f"{name}.mlir",
        out / f"{name}.log",
        why=f"runs as part of {inside}" if inside else "",
    )


def tells_options(links: Sequence[PassLink]) -> bool:
    """Report whether this compiler's banners contain pass options, as those of LLVM 22 and later do."""
    # Of all passes, at least one has options: a dump without any brace is by an older compiler.
    return any("{" in link.dump.pipeline for link in links)


def by_bindings(
    links: Sequence[PassLink],
    known: Sequence[Binding],
    rehearsed: Mapping[int, TracedCall],
    *,
    has_options: bool,
) -> tuple[tuple[Call, ...], str, tuple[str, ...]]:
    """Return the calls of bindings that run some passes.

    Args:
        links: the passes.
        known: all bindings.
        rehearsed: by number of the dump.
        has_options: the banners contain options.

    Returns:
        The calls; the reason why there are none; notes.
    """
    calls: list[Call] = []
    notes = []
    for dump in (link.dump for link in links):
        # A dump that has the options is the truth; the rehearsal is by the Triton that replays, perhaps
        # another one.
        mine = rehearsed.get(dump.number)
        form = pass_chain.parse_form(dump.pipeline) if has_options else None
        call = bindings.resolve(known, dump.argument, form, mine.call if mine else None)
        if isinstance(call, str):
            return (), call, ()
        if form is None and mine is None:
            notes.append(f"{dump.argument}: with the default options of {call.binding}")
        calls.append(call)
    return tuple(calls), "", tuple(notes)


def pipeline_of(
    links: Sequence[PassLink], rehearsed: Mapping[int, TracedCall], *, has_options: bool
) -> tuple[str, tuple[str, ...]]:
    """Return a pipeline of some passes for `--pass-pipeline`, and notes on changes to their printed forms."""
    parts, notes = [], []
    for dump in (link.dump for link in links):
        mine = rehearsed.get(dump.number)
        printed = dump.pipeline if has_options else mine.printed if mine else dump.argument
        if not has_options and not mine:
            notes.append(
                f"{dump.argument}: the dump does not contain its options, so the pass runs with its defaults"
            )
        text, changes = pass_chain.parsable_form(printed, dump.operation)
        parts.append(text)
        notes += changes
    return f"{pass_chain.MODULE}({','.join(parts)})", tuple(dict.fromkeys(notes))


def by_opt(job: ReplayJob, opt: Path, passes: str, debug: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command of `triton-opt` that runs a pipeline for a job, with flags for debug output."""
    argv = [str(opt), str(job.input), f"--pass-pipeline={passes}", *_AS_DUMPED]
    # Debug output of several threads would be interleaved line by line.
    if debug:
        argv += [*debug, "--mlir-disable-threading"]
    return (*argv, "-o", str(job.out))
