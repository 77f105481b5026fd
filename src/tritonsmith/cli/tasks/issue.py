"""`passes.isolate` and `issue.new`: the failing pass alone, and the issue to post upstream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import (
    DRY_RUN,
    DUMPED_KERNEL,
    FOLDER,
    JSON,
    OUT,
    PYTHON,
    REDUCE_TIMEOUT,
    TOOL_SOURCE,
    ReplayerOptions,
)
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.compiler.dump.index import DumpIndex
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.manifest import Manifest
    from tritonsmith.compiler.replay.replayer import Replayer
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.core.envs.workspace import Workspace
    from tritonsmith.core.errors import SmithError
    from tritonsmith.lab.isolate.failing_pass import Isolated
    from tritonsmith.lab.reduce.reduce_ir import Reduced


@task(tables=True, name="isolate")
def isolate(
    context: Any,
    by: ReplayerOptions,
    tests: ExperimentOptions,
    folder: Path = FOLDER,
    kernel: str = DUMPED_KERNEL,
    out: Path | None = again(OUT, "DIR-isolated"),
    reduce_: bool = flag("also reduce the input: reduced.mlir", default=False),
    timeout: float | None = REDUCE_TIMEOUT,
    pattern: str = flag("instead: find the first pass or stage whose output has this text", ""),
    regex: bool = flag("--pattern is a regular expression", default=False),
    when: str = flag("instead: check limits of the compiled kernel: spills>0; or wrong", ""),
    source: Path | None = TOOL_SOURCE,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Reproduce a failing pass alone, in a folder to attach to an issue."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.compiler.replay import replayer
    from tritonsmith.compiler.request import options_of
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.isolate import failing_pass
    from tritonsmith.lab.isolate import issue_folder as files
    from tritonsmith.lab.isolate.failing_pass import as_json, summary
    from tritonsmith.lab.reduce import oracles, reduce_ir
    from tritonsmith.lab.reduce import reduce_ir as reduce_report

    dump = index.read(folder)
    dumped = index.choose_kernel(dump, kernel)
    space = workspace.default()
    if pattern or when:
        _check(pattern, when, tests, wrong="--out" if out else "--reduce" if reduce_ else "")
        if pattern:
            _first_with(dump, dumped.name, pattern, space, by, tests, regex=regex, json=json)
        else:
            _limited(dump, dumped.name, when, space, by, json=json)
        return
    chosen = replayer.choose(
        dump, space, env=by.env, python=by.python, triton_opt=by.triton_opt, source=source
    )
    journal = failing_pass.folder_of(dump, dumped, chosen, space)
    if tests.show_status(journal, failing_pass.WORDS, json=json):
        return
    # The two searches have other names of changes, so each gets its own of `--skip`.
    of_isolation, of_candidates = tests.rules_by_part if reduce_ else (tests.rules, tests.rules)
    isolated, notes = failing_pass.isolate(
        dump, dumped, chosen, space, options_of(by.option), of_isolation, silent=json
    )
    to = out or dump.folder.with_name(f"{dump.folder.name}-isolated")
    facts = files.about(isolated, chosen)
    files.plan(isolated, None, facts, to)  # whether the folder will do, before anything takes time
    reduced = None
    if reduce_:
        limit = timeout or reduce_ir.ReduceOptions.timeout
        reducer = oracles.find_reducer(isolated.way.opt)
        options = reduce_ir.ReduceOptions(limit, reducer=reducer, silent=json, rules=of_candidates)
        reduced = reduce_ir.reduce(isolated.text, isolated.way, space, options, reduce_report.progress())
    plan = files.plan(isolated, reduced, facts, to)
    if dry_run:
        output.plan(plan)
        return
    space.run(plan, "passes.isolate", quiet=True)
    if json:
        output.json(as_json(isolated, reduced, to), indent=None)
    else:
        _print(isolated, reduced, to)
    tests.write_page(notes, "isolate", summary(isolated).splitlines(), failing_pass.WORDS)
    # After the folder is written: another failure may still be worth a report.
    if not isolated.same:
        raise _different(isolated, chosen, to)


@task(tables=True, name="issue.new")
def new(
    context: Any,
    results: Path = word("folder or --json of another command, or KERNEL.reduced.py"),
    with_: tuple[str, ...] = flag("more about the same bug (repeatable)", (), value="RESULTS"),
    for_: str = flag("whose issue: triton, llvm, pytorch or ptxas", "", unset="the blamed one"),
    python: Path | None = again(PYTHON, "the results'"),
    not_run: bool = flag("do not run the commands that the issue names", default=False),
    timeout: int | None = flag("time limit in seconds of one run", None, unset="120", least=1),
    out: Path | None = again(OUT, "RESULTS-issue"),
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Write the issue about a bug, ready to post upstream; it is not posted."""
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.ui import console
    from tritonsmith.lab import issue as issues
    from tritonsmith.lab import issue_sources

    space = workspace.default()
    sources = [results, *map(Path, with_)]
    place = results.absolute()
    to = out or place.with_name(f"{place.stem if place.suffix else place.name}-issue")
    evidence = issue_sources.collect(sources, _recorded_compile, space)
    issues.require_new(to)  # before anything takes time
    issue = issues.write(evidence, for_, python, space, run=not (not_run or dry_run), timeout=timeout or 120)
    plan = issues.plan(issue, to)
    if dry_run:
        output.plan(plan)
        return
    space.claim()
    space.run(plan, "issue.new", quiet=True)
    if json:
        output.json(issues.as_json(issue, to))
        return
    console.out().print(issues.table(issue) if issue.scripts else issue.title, markup=False)
    output.lines(issues.lines(issue, to))
    console.write(issue.command(to))


def _recorded_compile(text: str) -> CompileRequest | None:
    """Return the compile that recorded arguments of `kernel.compile` ask for; None if they are others."""
    import shlex

    from invoke.exceptions import ParseError

    from tritonsmith.cli.tasks.kernel import compile_
    from tritonsmith.cli.tasks.option_fields import from_argv
    from tritonsmith.core.errors import SmithError

    # They are text in a file: their flags are parsed as those of a command line, and nothing is run by it.
    try:
        arguments = from_argv(compile_, shlex.split(text))
        request: CompileRequest = arguments["what"].request(arguments["kernel"])
    except (ParseError, SmithError, ValueError, KeyError):
        return None
    return request


def _check(pattern: str, when: str, tests: ExperimentOptions, *, wrong: str) -> None:
    """Check the flags given with `--pattern` or `--when`; `wrong` is a flag that needs an output folder.

    Raises:
        UsageError: they contradict each other.
    """
    from tritonsmith.core.errors import UsageError

    if pattern and when:
        raise UsageError("--pattern and --when contradict each other")
    mode = "--pattern" if pattern else "--when"
    if wrong:
        raise UsageError(
            f"{wrong} cannot be used with {mode}",
            why=f"{mode} only names a pass, and writes no folder",
            hints=[f"omit {wrong}"],
        )
    if when and tests != ExperimentOptions():
        what = "--confirm, --skip, --status and --page are for a search, and --when is a single test"
        raise UsageError(what, hints=["omit them"])


def _print(isolated: Isolated, reduced: Reduced | None, folder: Path) -> None:
    from tritonsmith.core.ui import console
    from tritonsmith.lab.isolate.failing_pass import summary
    from tritonsmith.lab.reduce import reduce_ir as reduce_report

    output.notes(isolated.notes)
    # A failure that differs from the dump's is an error, which has the summary.
    if isolated.same:
        console.out().print(summary(isolated), markup=False)
    if reduced:
        console.out().print(reduce_report.sizes(reduced))
        console.out().print(reduce_report.summary(reduced), markup=False)
    if isolated.same:
        console.write(folder)


def _different(isolated: Isolated, tool: Replayer, folder: Path) -> SmithError:
    """Return the error for a failure that differs from the dump's, which was not reproduced."""
    from tritonsmith.core.errors import SmithError
    from tritonsmith.lab.isolate.failing_pass import summary

    version = isolated.passes.index.triton
    return SmithError(
        summary(isolated),
        where=folder,
        why="the folder holds the failure of this run; the dump's may have another cause",
        hints=[
            f"use the Triton that wrote the dump: {version or 'its version is unknown'}",
            f"record the dump again, if {tool.opt or tool.python} was built since then",
        ],
    )


def _first_with(
    dump: DumpIndex,
    kernel: str,
    text: str,
    space: Workspace,
    by: ReplayerOptions,
    tests: ExperimentOptions,
    *,
    regex: bool,
    json: bool,
) -> None:
    """Find the first pass, or a later stage, whose output contains a text."""
    from tritonsmith.core.errors import SmithError, UndecidedError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.isolate import first_pass_with

    pattern = first_pass_with.compiled_pattern(text, regex=regex)
    folder = first_pass_with.folder_of(dump, kernel, pattern, space)
    if tests.show_status(folder, first_pass_with.WORDS, json=json):
        return
    answer, notes = first_pass_with.run(
        dump,
        kernel,
        pattern,
        # Called only if no pass has the text: a compile takes longer than a search in all of them.
        lambda: _compiled(dump, space, by),
        _compile_inputs(dump, space, by),
        space,
        tests.rules,
        silent=json,
    )
    sentence = first_pass_with.sentence(answer, text)
    if json:
        output.json(first_pass_with.as_json(answer, text), indent=None)
    elif answer and not answer.unsearched:
        console.out().print(sentence, markup=False)
    tests.write_page(notes, "isolate", [sentence], first_pass_with.WORDS)
    if answer and answer.unsearched:
        raise UndecidedError(sentence, where=dump.folder, hints=["search them, too: omit --skip"])
    if answer is None and not json:
        raise SmithError(sentence, where=dump.folder)


def _limited(
    dump: DumpIndex, kernel: str, when: str, space: Workspace, by: ReplayerOptions, *, json: bool
) -> None:
    """Check limits of the compiled kernel, or, with `wrong`, find the first pass that changes its result."""
    from tritonsmith.core.ui import console
    from tritonsmith.lab.isolate import first_pass_with

    if when == "wrong":
        _wrong(dump, kernel, space, by, json=json)
        return
    manifest = _compiled(dump, space, by)
    terms = first_pass_with.limit(when, manifest)
    step = first_pass_with.binary_step(manifest)
    if json:
        rows = [{"term": term, "value": value, "holds": holds} for term, value, holds in terms]
        output.json({"schema": 1, "step": step, "terms": rows}, indent=None)
        return
    for term, value, holds in terms:
        text = f"true, the value is {value}: {step}" if holds else f"false, the value is {value}"
        console.out().print(f"{term}: {text}", markup=False)


def _wrong(dump: DumpIndex, kernel: str, space: Workspace, by: ReplayerOptions, *, json: bool) -> None:
    """Find the first pass that changes the kernel's result."""
    from tritonsmith.check import when_wrong
    from tritonsmith.compiler.dump import index
    from tritonsmith.compiler.replay import replayer
    from tritonsmith.core.errors import SmithError

    with when_wrong.as_undecided():
        when_wrong.require_packages()
    from tritonsmith.check import check
    from tritonsmith.check.answer import answer_lines, as_json, open_end, verdict

    with when_wrong.as_undecided():
        chosen = replayer.choose(dump, space, env=by.env, python=by.python, triton_opt=None)
        python = replayer.require_python(chosen)
        answer = check.check(dump, index.choose_kernel(dump, kernel), python, space, silent=json)
    if json:
        output.json(as_json(answer), indent=None)
    else:
        output.lines(answer_lines(answer))
    # Unlike for `passes.check`, a culprit is what was searched for, as with `--pattern`: it is no error.
    if answer.culprit:
        return
    if answer.open:
        raise open_end(answer)
    raise SmithError(verdict(answer), where=dump.folder)


def _compiled(dump: DumpIndex, space: Workspace, by: ReplayerOptions) -> Manifest:
    """Compile the kernel of a dump to the end, with the flags of the dump.

    Raises:
        FactError: as `_compile`.
    """
    from tritonsmith.compiler import run
    from tritonsmith.core.plan import digest

    request, where = _compile(dump, space, by)
    to = space.root / "passes" / "isolate" / digest(dump.command, str(where.python))
    return run.compile_all(request, where, to, silent=True)


def _compile_inputs(dump: DumpIndex, space: Workspace, by: ReplayerOptions) -> object:
    """Return everything that the compile of `_compiled` depends on."""
    from tritonsmith.core.errors import SmithError
    from tritonsmith.lab import journal

    try:
        request, where = _compile(dump, space, by)
    except SmithError:
        # Without such a compile, the texts of the passes are searched all the same.
        return by.env, str(by.python)
    return journal.compiled(request, where)


def _compile(dump: DumpIndex, space: Workspace, by: ReplayerOptions) -> tuple[CompileRequest, Interpreter]:
    """Return the compile of the kernel of a dump, with the flags of the dump.

    Raises:
        FactError: the dump is not from a single kernel's compile, or was not made here.
    """
    import shlex

    from invoke.exceptions import ParseError

    from tritonsmith.cli.tasks.kernel import compile_
    from tritonsmith.cli.tasks.option_fields import from_argv
    from tritonsmith.compiler.dump import index
    from tritonsmith.compiler.interpreter import choose_interpreter
    from tritonsmith.core.errors import FactError, UsageError

    # Its command names files and an interpreter, which a stranger's dump must not make us run.
    index.require_own(dump, space)
    try:
        arguments = from_argv(compile_, shlex.split(dump.command))
    except (ParseError, UsageError, ValueError):
        arguments = {}
    if not arguments.get("kernel") or len(dump.kernels) != 1:
        raise FactError(
            "the dump does not show it, and the stages after the passes need a dump of one kernel",
            where=dump.folder,
            why=f"the dump comes from: {dump.command}",
            hints=["invoke passes.dump FILE:KERNEL --signature ... --target ... writes such a dump"],
        )
    # The command of a dump is text in its index: its flags are parsed as those of a command line, and nothing
    # is run by it.
    request = arguments["what"].request(arguments["kernel"])
    python = "" if by.env else str(by.python or dump.python)
    # The dump's own interpreter unless a flag names another: the stages after the passes must be of the same
    # Triton.
    return request, choose_interpreter(by.env or "wheel", python, jobs=1)
