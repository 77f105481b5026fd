"""Run a program under a profiler, and lint the kernels that took the time: `kernel.profile`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.compiler import call, from_cache, run, user_program
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import MakeDir, Plan, Remove
from tritonsmith.core.plan.steps.base import AttachedRun
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import triton_cache
from tritonsmith.facts.triton_cache import Root
from tritonsmith.inspect import profilers
from tritonsmith.inspect.lint import run as lint_run
from tritonsmith.inspect.lint.run import LintResult
from tritonsmith.inspect.profilers import ProfiledKernel, Profiler, interpreter_of
from tritonsmith.inspect.show import SourceLine
from tritonsmith.worker.messages import ProfiledRow, ProfileRequest

TASK = "kernel.profile"
_NAME = 60  # characters of the name of a kernel that is none of Triton's: C++ templates are long
_SOURCE = 30  # characters of a line of Python, at least
_STALLS = 2  # reasons that a row shows


@dataclass(frozen=True)
class PreparedProfile:
    """A program that is ready to be measured.

    Attributes:
        before: the steps that prepare the scratch folder.
        step: the program, under the vendor's tool or alone.
        after: the steps that clear up.
        work: the scratch folder.
        profiler: the profiler.
        python: the interpreter with the program's Triton; None if unknown.
        kernels: the names of the kernels to measure, with commas; empty for all.
    """

    before: Plan
    step: AttachedRun
    after: Plan
    work: Path
    profiler: Profiler
    python: Path | None
    kernels: str

    @property
    def plan(self) -> Plan:
        """The whole plan, in order."""
        return self.before + Plan("profile", (self.step,)) + self.after


@dataclass(frozen=True)
class KernelProfile:
    """The result of a profile.

    Attributes:
        kernels: the kernels, the longest time first.
        session: the way in which Proton was started; empty for another tool.
        findings: the findings of `kernel.lint` in the Triton kernels that are shown.
        notes: the limits of the measurement.
        code: the program's exit code, as a shell would report it.
    """

    kernels: tuple[ProfiledKernel, ...]
    session: Mapping[str, Any]
    findings: LintResult
    notes: tuple[str, ...]
    code: int


def prepare(
    argv: Sequence[str],
    profiler: Profiler,
    python: Path | None,
    space: Workspace,
    *,
    kernels: str = "",
    times: bool = False,
    quiet: bool = False,
) -> PreparedProfile:
    """Make the plan.

    Args:
        argv: the program; flags alone are flags of Python itself, as in `-m pytest`.
        profiler: the profiler.
        python: replaces `python`; None to use PATH as it is.
        space: the workspace.
        kernels: names of the kernels to measure, with commas; empty for all.
        times: no samples, only the time of each kernel.
        quiet: the program's standard output goes to standard error, too.

    Raises:
        SmithError: there is no such program.
    """
    # A folder per process of ours, since two profiles may run at once.
    work = space.root / "kernels" / ".profile" / str(os.getpid())
    results = work / "results"
    request = ProfileRequest(str(results), tuple(profiler.sessions(times=times)))
    step, site = user_program.watched_step(argv, python, request, work, command(TASK))
    if profiler.name == "ncu" and profiler.program:
        tool = profilers.nsight_argv(profiler.program, results / "report", kernels)
        step = replace(step, argv=(*tool, *step.argv))
    elif profiler.program:
        step = replace(step, argv=(*profilers.rocprof_argv(profiler.program, results), *step.argv))
    step = replace(step, both=quiet)
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(results, phase="prepare"),
        *site,
    )
    clear = (Remove((work,), space.root, phase="clear"),)
    used = interpreter_of(argv, python)
    return PreparedProfile(
        Plan("profile", before), step, Plan("clear up", clear), work, profiler, used, kernels
    )


def execute(prepared: PreparedProfile, space: Workspace, *, silent: bool = False) -> KernelProfile:
    """Run the program with its output on the terminal, and read the measurements.

    Raises:
        SmithError: nothing was measured: the error says why.
    """
    space.claim()
    log = space.log(TASK)
    space.run(prepared.before, TASK, quiet=True, log=log)
    try:
        # A program that fails is no error here: what it launched before was measured, and its exit code is
        # passed on.
        code = user_program.run_step(prepared.step, space, TASK, log)
        session, refused = _started(prepared)
        kernels = profilers.by_time(_read(prepared))
        # Proton and rocprofv3 measure everything; only ncu, which is slow, is told the names.
        names = set(filter(None, prepared.kernels.split(",")))
        kernels = [kernel for kernel in kernels if not names or kernel.name in names]
        if not kernels:
            raise _nothing_measured(prepared, refused, code)
        shown = kernels[: configs.load("profilers")["shown"]["kernels"]]
        findings, notes = _findings(
            prepared, [kernel.name for kernel in shown if kernel.lines], silent=silent
        )
        return KernelProfile(tuple(kernels), session, findings, (*_limits(prepared, refused), *notes), code)
    finally:
        space.run(prepared.after, TASK, quiet=True, log=log)


def _started(prepared: PreparedProfile) -> tuple[Mapping[str, Any], list[str]]:
    """Return the Proton session that was started, and the refusals before it."""
    # Each process of the program notes what it tried. All of them run on the same GPUs, so they are refused
    # for the same reasons, and each reason counts once.
    rows = call.noted(prepared.work / "results", ProfiledRow, "*.json")
    refused = list(dict.fromkeys(text for row in rows for text in row.refused))
    return next((vars(row.session) for row in rows if row.session), {}), refused


def _read(prepared: PreparedProfile) -> list[ProfiledKernel]:
    results, profiler = prepared.work / "results", prepared.profiler
    if profiler.name == "ncu" and profiler.program:
        report = results / f"report{profilers.NSIGHT_SUFFIX}"
        return profilers.read_nsight(profiler.program, report) if report.is_file() else []
    if profiler.program:
        return profilers.read_rocprof(sorted(results.rglob(f"*{profilers.ROCPROF_SUFFIX}")))
    return profilers.read_proton(sorted(results.glob(f"*{profilers.PROTON_SUFFIX}")))


def _limits(prepared: PreparedProfile, refused: Sequence[str]) -> Iterator[str]:
    """Yield notes on the limits of the figures."""
    if prepared.profiler.name == "ncu":
        launches = configs.load("profilers")["ncu"]["launches"]
        yield f"ncu measured the first {launches} launches at most, and each several times"
    yield from (f"not by {refusal}" for refusal in refused)


def _nothing_measured(prepared: PreparedProfile, refused: Sequence[str], code: int) -> SmithError:
    output = "\n".join((untrusted.text_if_any(prepared.step.errors), *refused))
    rows = configs.load("profilers")["refusal"]
    hints = [row["hint"] for row in rows if any(word in output for word in row["said"])]
    what = "the program launched no kernel that was measured"
    if prepared.kernels:
        what += f", of {prepared.kernels}"
    hints = hints or ["check that it imports Triton and launches kernels", "--by names another profiler"]
    why = "\n".join([*refused, *([f"the program's exit code is {code}"] if code else [])])
    return SmithError(what, why=why or None, hints=hints)


def _findings(
    prepared: PreparedProfile, kernels: Sequence[str], *, silent: bool
) -> tuple[LintResult, list[str]]:
    """Lint the kernels that the program compiled."""
    # Rules need all stages and their locations, which a cache entry need not have: each compile is
    # repeated. The cache is one of this run, so it holds what the program used and nothing else.
    nothing, notes = LintResult(0, (), (), {}), list[str]()
    if not kernels or prepared.python is None:
        return nothing, notes
    cache = prepared.work / configs.load("capture")["caches"]["TRITON_CACHE_DIR"]
    entries = [
        entry for entry in triton_cache.scan(Root("named", cache, TASK)).entries if entry.kind == "kernel"
    ]
    # An autotuned kernel has hundreds of compiles, and to repeat them all would take longer than the profile
    # did.
    most = configs.load("profilers")["shown"]["compiles"]
    requests = []
    for name in kernels:
        of_it = [entry for entry in entries if entry.kernel == name]
        if len(of_it) > most:
            notes.append(f"{name}: findings are those of {most} of its {len(of_it)} compiles")
        requests += [from_cache.request_of_entry(entry.path, (), {}) for entry in of_it[:most]]
    if not requests:
        return nothing, notes
    try:
        where = choose_interpreter("wheel", str(prepared.python))
        done = [
            run.execute_all([request], where, prepared.work / "out" / str(number), silent=silent)[0]
            for number, request in enumerate(requests)
        ]
        return lint_run.lint([result.manifest for result in done]), notes
    except FactError as error:  # the measurements, which may have taken minutes, are not lost
        return nothing, [*notes, f"no findings: {error.what}: {error.why or error.where}"]


def blocks(profile: KernelProfile) -> Iterator[Grid | Text]:
    """Yield the kernels by time, their sampled lines, an explanation of the stall reasons, and findings."""
    shown = configs.load("profilers")["shown"]
    whole = sum(kernel.nanoseconds for kernel in profile.kernels)
    yield tables.plain(
        "kernels, by time on the GPU",
        ["kernel", "calls", "ms", "%", "samples"],
        [
            [
                tables.clipped(kernel.name, _NAME),
                str(kernel.calls),
                f"{kernel.nanoseconds / 1e6:.3f}",
                _percent(kernel.nanoseconds, whole),
                str(kernel.samples or ""),
            ]
            for kernel in profile.kernels[: shown["kernels"]]
        ],
        right=["calls", "ms", "%", "samples"],
    )
    if (left := len(profile.kernels) - shown["kernels"]) > 0:
        yield Text(f"and {left} more")
    shown_reasons: Counter[str] = Counter()
    for kernel in profile.kernels[: shown["kernels"]]:
        if kernel.lines:
            yield _lines(kernel, _codes_by_line(profile), shown["lines"], shown_reasons)
    about = {row["name"]: row["about"] for row in configs.load("profilers")["stall"]}
    if shown_reasons:
        yield Text("\n".join(f"  {name}: {about[name]}" for name in about if name in shown_reasons))
    if profile.findings.findings:
        yield from lint_run.blocks(profile.findings)


def as_json(profile: KernelProfile, profiler: str) -> dict[str, Any]:
    """Return the profile as JSON data."""
    codes = _codes_by_line(profile)
    return {
        "schema": 1,
        "profiler": profiler,
        "session": dict(profile.session),
        "exit_code": profile.code,
        "kernels": [
            {
                "kernel": kernel.name,
                "calls": kernel.calls,
                "nanoseconds": kernel.nanoseconds,
                "samples": kernel.samples,
                "lines": [
                    {
                        "file": line.file,
                        "line": line.number,
                        "samples": samples,
                        "stalls": dict(kernel.stalls[line].most_common()),
                        "findings": codes.get((kernel.name, line), []),
                    }
                    for line, samples in kernel.lines.most_common()
                ],
            }
            for kernel in profile.kernels
        ],
        "findings": lint_run.as_json(profile.findings),
        "notes": list(profile.notes),
    }


def _lines(kernel: ProfiledKernel, codes: Mapping[Any, list[str]], most: int, reasons: Counter[str]) -> Grid:
    """Return a table of a kernel's lines with the most samples; add the shown stalls to `reasons`."""
    total, rows = kernel.samples, []
    for line, samples in kernel.lines.most_common(most):
        stalls = kernel.stalls[line].most_common(_STALLS)
        # Shares of the stalls, not of the samples: in some samples the warp issued an instruction.
        known = sum(kernel.stalls[line].values())
        stalled = ", ".join(f"{name} {_percent(number, known)}" for name, number in stalls if number)
        reasons.update(name for name, number in stalls if number)
        place = f"{Path(line.file).name}:{line.number}"
        rows.append(
            [
                place,
                _percent(samples, total),
                stalled,
                " ".join(codes.get((kernel.name, line), [])),
                _text(line),
            ]
        )
    return tables.plain(
        f"lines of {kernel.name}: {total} samples",
        ["line", "%", "stalled, % of its stalls", "finding", "source"],
        rows,
        right=["%"],
        cut={"source": _SOURCE},
        spare=["source"],
    )


def _codes_by_line(profile: KernelProfile) -> dict[tuple[str, SourceLine], list[str]]:
    """Return the codes of findings, by kernel and line."""
    codes: dict[tuple[str, SourceLine], list[str]] = {}
    for finding in profile.findings.findings:
        # A rule may have several findings on a line, and a kernel several compiles: a cell names each rule
        # once.
        if finding.origin and finding.rule.code not in codes.setdefault((finding.kernel, finding.origin), []):
            codes[finding.kernel, finding.origin].append(finding.rule.code)
    return codes


def _text(line: SourceLine) -> str:
    lines = untrusted.text_if_any(Path(line.file)).splitlines()
    return lines[line.number - 1].strip() if 0 < line.number <= len(lines) else ""


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""
