"""`compare` and its modes, and `farm`: two sides, many Tritons, an upgrade, a change of Triton, a corpus."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import (
    CompileOptions,
    KernelOptions,
    compared_kernels,
    entries_of,
    listed_kernels,
    parse_stages,
)
from tritonsmith.cli.tasks.option_fields import CommaLists, OutFile, again, flag, word
from tritonsmith.cli.tasks.options import (
    COMPILED_KERNEL,
    CORPUS,
    CSV,
    DRY_RUN,
    ENV,
    FAIL_ON,
    JOBS,
    JSON,
    KERNELS_FILE,
    MANY_TRITONS,
    OUT,
    OUT_FILE,
    PLOT,
    PYTHON,
    SCHEDULER,
    TIMEOUT,
    TODAY,
    TOMORROW,
    WHEEL_ENV,
    YES,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import FactError, SmithError, UndecidedError, UsageError
from tritonsmith.core.text import counted
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.bisect.sides import Sides
    from tritonsmith.lab.compare.matching import Comparison
    from tritonsmith.lab.compare.rehearsal import Assessment, UpgradeRehearsal
    from tritonsmith.lab.compare.study import StudyCell
    from tritonsmith.lab.compare.thresholds import Threshold
    from tritonsmith.lab.corpus import Corpus, CorpusUpdate

_OF_CORPUS = word("kernels file, or FILE:NAME; the corpus if omitted", "")
_BASE = flag("Triton to compare with: commit, 3.9.0, dev", None, value="TRITON")
_HEAD = flag("Triton to judge, in the same form as --base", None, value="TRITON")
_CLONE = flag("clone that has the commits", None, value="CLONE")
# Keys of a farm's JSON that have nothing to list where nothing is compiled.
_EMPTY = (
    *("limits", "groups", "findings", "regressions", "neither", "unknown", "fixed", "skipped", "assumed"),
    "kernels",
)
_CHECK = flag("also run the kernels whose ttgir changed, without a GPU", default=False)
_COMMENT = flag("write the verdict as Markdown for a pull request", None, value="FILE.md")


@task(tables=True, name="compare")
def compare_(
    context: Any,
    what: CompileOptions,
    tests: ExperimentOptions,
    side_a: str = word("version, environment, interpreter, target, NAME=VALUE, or folder"),
    side_b: str = word("the other side, in the same form"),
    kernel: str = word("FILE, FILE:KERNEL, or a kernels file; none where A and B are folders", ""),
    fail_on: str | None = FAIL_ON,
    diff: bool = flag("print the differences of the stages", default=False),
    stage: CommaLists = flag("print the differences of this stage: ttgir, ptx ... (repeatable)", ()),
    out: Path | None = OUT,
    env: str = WHEEL_ENV,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile kernels with two Tritons or option sets, and compare."""
    from tritonsmith.compiler import tritons
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.compare import thresholds, two_sides

    limits = thresholds.parse(fail_on)
    names = parse_stages(stage)
    first, second = tritons.parse(side_a), tritons.parse(side_b)
    # Folders come from earlier compiles, so there is no test to repeat, skip or show.
    if first.folder and second.folder and tests != ExperimentOptions():
        hints = ["omit --confirm, --skip, --status and --page"]
        raise UsageError("both sides are already compiled, so nothing is tested", hints=hints)
    sides = two_sides.prepare(first, second, compared_kernels(kernel, what), out)
    if tests.show_status(sides.out, thresholds.WORDS, json=json, key=two_sides.key(sides, limits)):
        return
    if dry_run:
        output.plan(two_sides.plan(sides, env))
        return
    options = BatchOptions(scheduler, jobs, timeout, env, silent=json)
    # Until the tables are printed, which read the outputs of both sides.
    with two_sides.held(sides):
        comparison, journal = two_sides.execute(sides, limits, options, tests.rules)
        try:
            _print_comparison(comparison, limits, out, diff=diff, stages=names, json=json)
        finally:  # a violation of --fail-on is an error, and has a page all the same
            tests.write_page(journal, "compare", [journal.answer], thresholds.WORDS)


def _print_comparison(
    comparison: Comparison,
    limits: tuple[Threshold, ...],
    out: Path | None,
    *,
    diff: bool,
    stages: tuple[str, ...],
    json: bool,
) -> None:
    from json import dumps

    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.compare import report, thresholds

    judgement = thresholds.check(comparison, limits)
    violations, unchecked = judgement.violations, None
    try:
        thresholds.require(judgement, comparison)
    except FactError as error:  # raised below: the tables show why nothing could be checked
        violations, unchecked = (), error
    # Made once, for the screen and for the file: a script must get the same from both.
    content = dumps(report.as_json(comparison, limits, violations), indent=2)
    output.notes(comparison.notes)
    if json:
        console.write(content)
    else:
        _print_tables(comparison, stages, diff=diff)
    if out:
        space = workspace.default()
        space.claim()
        space.run(report.files(comparison, f"{content}\n", out), "kernel.compare", quiet=True)
        console.note(f"the outputs, the diffs and {report.FILE} are in {out}")
    if unchecked:
        raise unchecked
    if failure := report.failure(comparison, limits, violations):
        raise failure
    if limits and not json:
        console.out().print(report.check_result(limits, violations), markup=False)


def _print_tables(comparison: Comparison, stages: tuple[str, ...], *, diff: bool) -> None:
    from tritonsmith.lab.compare import report

    out = console.out()
    output.lines(report.head(comparison))
    output.blocks(report.blocks(comparison))
    if not (diff or stages):
        return
    texts = [lines for _, _, lines in report.differences(comparison, stages)]
    for lines in texts:
        if out.is_terminal:
            out.print(console.coloured_diff(lines), end="")
        else:
            console.write("\n".join(lines))
    if not texts:
        console.note(f"no differences in {', '.join(stages) or 'the stages'}")


@task(tables=True)
def study(
    context: Any,
    what: KernelOptions,
    tests: ExperimentOptions,
    kernels: str = COMPILED_KERNEL,
    triton: CommaLists = MANY_TRITONS,
    source: str = flag("clone to read kernels from, at each version's commit; or CLONE@REF", ""),
    out: Path | None = OUT,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    csv: bool = CSV,
    plot: Path | None = PLOT,
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile kernels with many Triton versions and compare resources."""
    from tritonsmith.compiler import targets
    from tritonsmith.compiler.manifest import folder_name
    from tritonsmith.core.envs import workspace
    from tritonsmith.inspect import resources
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.compare import study as use_case

    if json and csv:
        raise UsageError("--json and --csv contradict each other", hints=["omit one of them"])
    # What cannot be written is found before anything compiles, which may take an hour.
    if plot:
        resources.check_plot(plot)
        if not plot.parent.is_dir():
            raise UsageError("--plot: the folder does not exist", where=plot.parent)
    tritons = use_case.parse_tritons(triton)
    entries, path = entries_of(kernels, what)
    folder = out or workspace.default().root / "studies" / folder_name(path.stem)
    prepared = use_case.prepare(
        entries,
        tritons,
        targets.parse_all(what.target) or targets.default(),
        folder,
        path.parent,
        use_case.History(source) if source else None,
    )
    if tests.show_status(folder, use_case.WORDS, json=json, key=prepared.key):
        return
    if dry_run:
        output.plan(prepared.plan())
        return
    # `resume`: a study of many Tritons takes hours, and what an earlier run compiled is used.
    options = BatchOptions(scheduler, jobs, timeout, resume=True, silent=json or csv)
    cells, journal, doubts = use_case.execute(prepared, options, tests.rules)
    for doubt in doubts:
        console.warn(doubt)
    try:
        _print_study(cells, folder, plot, json=json, csv=csv)
    finally:  # also where compiles failed, which is an error
        tests.write_page(journal, "study", [journal.answer], use_case.WORDS)


def _print_study(
    cells: Sequence[StudyCell], folder: Path, picture: Path | None, *, json: bool, csv: bool
) -> None:
    from tritonsmith.lab.compare import study as use_case

    if json:
        output.json(use_case.as_json(cells))
    elif csv:
        console.write(use_case.as_csv(cells), end="")
    else:
        output.blocks(use_case.tables_of(cells))
        for text in use_case.warnings(cells):
            console.warn(text)
        console.out().print(f"{folder}", markup=False)
    failed = list(use_case.failures(cells))
    if picture:
        try:
            use_case.write_plot(cells, picture)
            console.note(f"the plot is in {picture}")
        except SmithError as error:
            if not failed:
                raise
            # There is nothing to draw where all compiles failed. Their messages, which are raised below, say
            # why.
            console.warn(error.what)
    if failed:
        hints = ["the manifest in a kernel's folder has the full message"]
        raise SmithError(use_case.outcome(cells), where=folder, why="\n".join(failed), hints=hints)


@task(tables=True)
def rehearse(
    context: Any,
    what: CompileOptions,
    tests: ExperimentOptions,
    kernels: str = _OF_CORPUS,
    corpus: Path | None = CORPUS,
    from_: str = TODAY,
    to: str = TOMORROW,
    fail_on: str | None = FAIL_ON,
    check: bool = _CHECK,
    out: OutFile | None = again(OUT_FILE, "in the workspace"),
    source: Path | None = flag("checkout with the source files that the list names", None, value="DIR"),
    comment: Path | None = _COMMENT,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile a corpus with two Tritons and report regressions."""
    from tritonsmith.lab import corpus as corpora
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.compare import rehearsal, thresholds

    limits = rehearsal.parse_limits(fail_on)
    _require_check(needed=check)
    sides = rehearsal.parse_side(from_, "--from"), rehearsal.parse_side(to, "--to")
    file, name = corpora.kernels_file_of(kernels, corpus)
    if source and not source.is_dir():
        raise UsageError("--source is not a folder", where=source, hints=["give a checkout of Triton"])
    # The files that a list names are relative to it, unless --source gives the checkout that has them.
    entries = listed_kernels(file, name)
    upgrade = rehearsal.prepare(entries, file, what.flags(), *sides, base=source or file.parent)
    # Of thousands of kernels, the key takes as long as to read the results of some hundred.
    key = upgrade.key(limits) if tests.status else ""
    if tests.show_status(upgrade.folder, thresholds.WORDS, json=json, key=key):
        return
    if dry_run:
        output.plan(upgrade.plan())
        return
    places = _places(upgrade, out, comment)
    options = BatchOptions(scheduler, jobs, timeout, env="", resume=True, silent=json)
    _execute_rehearsal("rehearse", upgrade, limits, places, options, tests, check=check)


@task(tables=True)
def farm(
    context: Any,
    what: CompileOptions,
    tests: ExperimentOptions,
    kernels: str = _OF_CORPUS,
    corpus: Path | None = CORPUS,
    base: str | None = again(_BASE, "where it left main"),
    head: str | None = again(_HEAD, "the working tree"),
    source: Path | None = again(_CLONE, "the checkout around this folder"),
    env: str = ENV,
    fail_on: str | None = FAIL_ON,
    check: bool = _CHECK,
    out: OutFile | None = again(OUT_FILE, "in the workspace"),
    comment: Path | None = _COMMENT,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Report what a change of Triton makes worse in a corpus of kernels."""
    from tritonsmith.lab import corpus as corpora
    from tritonsmith.lab.batch import kept
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.bisect import sides as use_case
    from tritonsmith.lab.compare import rehearsal, thresholds

    limits = rehearsal.parse_limits(fail_on)
    _require_check(needed=check)
    file, name = corpora.kernels_file_of(kernels, corpus)
    entries = listed_kernels(file, name)
    # Perhaps a variable of CI that is not set: the default would be another commit than what was meant.
    for flag_, text in (("--base", base), ("--head", head)):
        if text is not None and not text.strip():
            raise UsageError(f"{flag_} is empty", hints=["omit it for its default, or name a commit"])
    sides = use_case.resolve(base or "", head or "", source, env)
    output.notes(sides.notes)
    if sides.are_same:
        _print_same(sides, None if dry_run else comment, json=json)
        return
    base_side, head_side = sides.base, sides.head
    tritons, names = (base_side.triton, head_side.triton), ("--base", "--head")
    upgrade = rehearsal.prepare(entries, file, what.flags(), *tritons, names=names)
    # Of thousands of kernels, the key takes as long as to read the results of some hundred.
    key = upgrade.key(limits) if tests.status else ""
    if tests.show_status(upgrade.folder, thresholds.WORDS, json=json, key=key):
        return
    # A side whose results are all kept is not needed, but `--confirm` compiles everything again.
    confirms = tests.rules.confirm > 1
    missing = [
        side
        # The head first: it is the one that may not build, and nobody waits for the base to learn that.
        for side, needed in ((head_side, upgrade.jobs_of_b), (base_side, upgrade.jobs_of_a))
        if confirms or not kept.are_complete(needed)
    ]
    if dry_run:
        output.plan(upgrade.plan(), about=[line for side in missing for line in side.plan])
        return
    places = _places(upgrade, out, comment)
    for side in missing:
        side.make()
    if sides.are_built_alike:
        _print_same(sides, comment, json=json)
        return
    options = BatchOptions(scheduler, jobs, timeout, env="", resume=True, silent=json)
    _execute_rehearsal("farm", upgrade, limits, places, options, tests, check=check)


def _require_check(*, needed: bool) -> None:
    from tritonsmith.check import when_wrong

    # Before anything is compiled: an extra that is missing after an hour comes too late.
    if needed:
        when_wrong.require_packages()


@task(tables=True, name="farm.site")
def site(
    context: Any,
    what: CompileOptions,
    tests: ExperimentOptions,
    kernels: str = _OF_CORPUS,
    triton: CommaLists = flag("Tritons, the oldest first: 3.6.0,3.9.0,main (repeatable)", ()),
    corpus: Path | None = CORPUS,
    source: Path | None = again(_CLONE, "the checkout around this folder"),
    env: str = ENV,
    out: Path | None = OUT,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Write a page of many kernels by many Tritons, and a badge."""
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab import corpus as corpora
    from tritonsmith.lab.batch import kept
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.bisect import sides
    from tritonsmith.lab.compare import rehearsal
    from tritonsmith.lab.compare import site as use_case
    from tritonsmith.lab.compare.study import WORDS

    file, name = corpora.kernels_file_of(kernels, corpus)
    named = sides.resolve_all(use_case.parse_tritons(triton), source, env)
    entries = listed_kernels(file, name)
    prepared = use_case.prepare(entries, file, what.flags(), [side.triton for side in named])
    if tests.show_status(prepared.folder, WORDS, json=json, key=prepared.key):
        return
    # A Triton whose results are all kept is not needed, but `--confirm` compiles everything again.
    confirms = tests.rules.confirm > 1
    # The newest first, as it is the one that may not build.
    missing = [
        side for side in reversed(named) if confirms or not kept.are_complete(prepared.jobs_of(side.triton))
    ]
    if dry_run:
        output.plan(prepared.plan(), about=[line for side in missing for line in side.plan])
        return
    folder = out or prepared.folder / "pages"
    use_case.check(folder)
    workspace.default().claim()
    for side in missing:
        side.make()
    options = BatchOptions(scheduler, jobs, timeout, env="", resume=True, silent=json)
    content, journal = use_case.execute(prepared, rehearsal.parse_limits(None), options, tests.rules)
    page = use_case.write(content, folder)
    if json:
        output.json(use_case.as_json(content, page))
    else:
        console.out().print(f"{content.title}: {content.verdict.words}", markup=False)
    console.note(f"the page is {page}")
    tests.write_page(journal, use_case.TASK, [journal.answer], WORDS)


def _print_same(sides: Sides, comment: Path | None, *, json: bool) -> None:
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.bisect import sides as use_case
    from tritonsmith.lab.compare import rehearsal_report as report

    base, head = sides.base.triton, sides.head.triton
    if comment:  # CI posts it, whatever the verdict
        report.check_comment(comment)
        workspace.default().claim()
        workspace.default().run(report.words_plan(base, head, use_case.SAME, comment), "farm", quiet=True)
    if json:
        content = {"schema": 1, "from": base.label, "to": head.label, "verdict": use_case.SAME, "sure": True}
        content |= {"summary": [use_case.SAME], "compiled": 0, "kept": 0}
        content |= {"same_binary": {"kernels": 0, "of": 0}}
        output.json({**content, "notes": list(sides.notes), **{key: [] for key in _EMPTY}})
    else:
        console.out().print(f"{base.label} -> {head.label}: {use_case.SAME}", markup=False)


def _places(upgrade: UpgradeRehearsal, out: OutFile | None, comment: Path | None) -> tuple[Path, Path | None]:
    """Return the page and the Markdown of a rehearsal, both of which can be written."""
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.compare import rehearsal_report as report

    page = workspace.default().root / "rehearsals" / f"{upgrade.name}.html"
    page = out.path(page.name) if out else page
    # Before anything compiles: a file that cannot be written after an hour of compiling comes too late.
    report.check_page(page)
    if comment:
        report.check_comment(comment)
        # CI posts the file also where the run fails: that of an earlier run would be a wrong verdict.
        words = "no verdict: the run failed, or has not ended"
        plan = report.words_plan(upgrade.a, upgrade.b, words, comment)
        workspace.default().claim()
        workspace.default().run(plan, "comment", quiet=True)
    return page, comment


def _execute_rehearsal(
    task_name: str,
    upgrade: UpgradeRehearsal,
    limits: tuple[Threshold, ...],
    places: tuple[Path, Path | None],
    options: BatchOptions,
    tests: ExperimentOptions,
    *,
    check: bool,
) -> None:
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.compare import rehearsal, thresholds
    from tritonsmith.lab.compare import rehearsal_report as report

    page, comment = places
    result, journal = rehearsal.execute(upgrade, limits, options, tests.rules, checks=check)
    answer = result.assessment or rehearsal.check(result.comparison, limits, result.flaky)
    report.write_page(upgrade, result, limits, answer, page)
    if comment:
        plan = report.comment_plan(upgrade, answer, page, comment)
        workspace.default().run(plan, task_name, quiet=True)
    # The progress is silent for the same reason: nothing but JSON is printed.
    if json := options.silent:
        output.json(report.as_json(upgrade, result, limits, answer))
    elif task_name == "rehearse":
        output.blocks(report.blocks(result, answer))
        output.lines(map(console.typed, report.commands(upgrade, answer)))
    else:  # the tables of thousands of kernels are on the page
        console.note(report.overview(result, answer))
    console.note(f"the page is {page}")
    try:
        _print_verdict(answer, json=json, strict=task_name == "farm")
    finally:  # a finding is an error, and has a page all the same
        tests.write_page(journal, task_name, [journal.answer], thresholds.WORDS)


def _print_verdict(answer: Assessment, *, json: bool, strict: bool) -> None:
    """Print the verdict, and raise the error that its exit code is of.

    Raises:
        SmithError: there are findings.
        FactError: a term was applied to nothing.
        UndecidedError: a value is not known, where that is asked for (`strict`).
    """
    # Last, below the tables: of a long run, this is what is still on the screen.
    if not json and (answer.findings or not answer.doubts):
        output.lines(answer.summary)
    if answer.findings:
        raise SmithError(answer.words, hints=["the page and --json have all values and messages"])
    # A metric that no kernel has must not pass for a limit that holds, or CI would stay green for ever.
    if answer.unchecked:
        raise FactError(answer.words, hints=["a check of nothing does not pass: omit it from --fail-on"])
    # What neither compiles got no worse. But where a value is not known, that cannot be said.
    if strict and answer.unknown:
        raise UndecidedError(answer.headline, hints=["the page and --json name the values"])
    # Not an error: points that differ from run to run are neither a regression nor a pass.
    if answer.doubts:
        console.warn(answer.summary[0])


@task()
def make(
    context: Any,
    recipe: Path | None = word("recipe (format: docs/compare.md); that of tritonsmith if omitted", None),
    package: CommaLists = flag("only this package of the recipe (repeatable)", ()),
    record: bool = flag("run the drivers, and write what they launch beside the recipe", default=False),
    env: str = again(ENV, default="torch"),
    python: Path | None = PYTHON,
    corpus: Path | None = CORPUS,
    json: bool = JSON,
) -> None:
    """Make a corpus of public kernels from packages of the registry."""
    from tritonsmith.compiler import user_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab import corpus as corpora
    from tritonsmith.lab import public_corpus

    path = (recipe or public_corpus.shipped()).absolute()
    read = public_corpus.read(path)
    packages = public_corpus.choose(read, package)
    space = workspace.default()
    space.claim()
    here = corpora.named(corpus)

    def driver_python() -> Path:
        return user_program.interpreter(env, python, space) or Path(sys.executable)

    if record:  # once, and not once per package
        driver_python()
    results = []
    with here.held("corpus.make"):
        for result in public_corpus.make(read, path, packages, here, driver_python, space, record=record):
            results.append(result)
            if not json:
                output.lines(public_corpus.lines(result))
    if json:
        output.json(public_corpus.as_json(here, results))
    else:
        console.out().print(str(here.folder), markup=False)
    if failed := [result for result in results if result.error]:
        why = "\n".join(f"{result.title}: {result.error}" for result in failed)
        hints = ["the same command tries these again"]
        hints += ["the others are in the corpus"] if len(failed) < len(results) else []
        what = f"{len(failed)} of {counted(len(results), 'driver')} added no kernels to the corpus"
        raise SmithError(what, where=path, why=why, hints=hints)


@task()
def add(
    context: Any,
    kernels: Path = KERNELS_FILE,
    corpus: Path | None = CORPUS,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Add the kernels of a list to the corpus, with copies of their sources."""
    from tritonsmith.lab import corpus as use_case

    def update(here: Corpus) -> CorpusUpdate:
        return use_case.add(here, kernels)

    changed = _change("corpus.add", corpus, update, json=json, dry_run=dry_run)
    # After the rest was added and printed: one kernel whose file is gone must not hold up a whole list.
    if refused := [change for change in changed.changes if change.state == "not added"]:
        why = "\n".join(f"{change.name}: {change.why}" for change in refused)
        what = f"{len(refused)} of {len(changed.changes)} kernels were not added"
        raise SmithError(what, where=kernels, why=why)


@task()
def remove(
    context: Any,
    kernel: str = word("name of a kernel in the corpus, or a glob: 'matmul*'"),
    corpus: Path | None = CORPUS,
    yes: bool = YES,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Remove kernels from the corpus, and sources that no other one needs."""
    from tritonsmith.lab import corpus as use_case

    names = [change.name for change in use_case.remove(use_case.named(corpus), [kernel]).changes]
    what = names[0] if len(names) == 1 else counted(len(names), "kernel")
    if not dry_run and not output.agreed(f"Remove {what} from the corpus?", yes=yes):
        raise SmithError("nothing was removed", hints=["--dry-run shows every step"])

    def update(here: Corpus) -> CorpusUpdate:
        # By their names: what a pattern fits may be more by now, and nobody agreed to lose that.
        return use_case.remove(here, names)

    _change("corpus.remove", corpus, update, json=json, dry_run=dry_run)


@task(tables=True, name="list")
def listing(context: Any, corpus: Path | None = CORPUS, json: bool = JSON) -> None:
    """List the kernels of the corpus."""
    from tritonsmith.lab import corpus as use_case

    here = use_case.named(corpus)
    kernels = here.kernels()
    if json:
        output.json(use_case.as_json(here, kernels))
    elif kernels:
        console.out().print(use_case.table(kernels))
        console.out().print(str(here.file), markup=False)
    else:
        raise use_case.empty(here)


def _change(
    task_name: str,
    folder: Path | None,
    update: Callable[[Corpus], CorpusUpdate],
    *,
    json: bool,
    dry_run: bool,
) -> CorpusUpdate:
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab import corpus as use_case

    here = use_case.named(folder)
    if dry_run:
        planned = update(here)
        output.plan(planned.plan)
        return planned
    # The update reads the corpus, so it is computed under the lock: another run may be adding kernels.
    with here.held(task_name):
        changed = update(here)
        workspace.default().run(changed.plan, task_name, quiet=True)
    output.notes(changed.notes)
    if json:
        output.json(use_case.changes_as_json(here, changed.changes))
        return changed
    output.lines(use_case.summary(changed.changes))
    console.out().print(str(here.folder), markup=False)
    return changed
