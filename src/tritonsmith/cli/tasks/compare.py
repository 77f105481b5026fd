"""`compare`: compare kernels of two compilers, options or targets.

`compare --triton A,B`: compare the resources of kernels over targets and versions of Triton.

`compare --from A --to B`: what another Triton would break, before it is installed.

`corpus.*`: the kernels that must keep compiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import (
    CompileOptions,
    KernelOptions,
    compared_kernels,
    listed_kernels,
    parse_stages,
)
from tritonsmith.cli.tasks.option_fields import CommaLists, OutFile, again, flag, word
from tritonsmith.cli.tasks.options import (
    COMPILED_KERNEL,
    CORPUS,
    CSV,
    DRY_RUN,
    FAIL_ON,
    JOBS,
    JSON,
    KERNELS_FILE,
    OUT,
    OUT_FILE,
    PLOT,
    SCHEDULER,
    TIMEOUT,
    TODAY,
    TOMORROW,
    WHEEL_ENV,
)
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.lab.compare.matching import Comparison
    from tritonsmith.lab.compare.thresholds import Threshold

if TYPE_CHECKING:
    from collections.abc import Callable

    from tritonsmith.lab.corpus import Corpus, CorpusUpdate


if TYPE_CHECKING:
    from tritonsmith.compiler.kernels.kernel_list import ListedKernel
    from tritonsmith.compiler.tritons import Triton
    from tritonsmith.lab.study.study import StudyCell

if TYPE_CHECKING:
    from tritonsmith.lab.rehearse.rehearsal import Assessment, RehearsalResult, UpgradeRehearsal


@task(tables=True, name="compare")
def compare_(
    context: Any,
    what: CompileOptions,
    tests: ExperimentOptions,
    side_a: str = word("version, environment, interpreter, target, NAME=VALUE, or folder"),
    side_b: str = word("the other side, given in the same way"),
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
    from tritonsmith.cli.tasks import output
    from tritonsmith.compiler import tritons
    from tritonsmith.core.errors import UsageError
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.compare import thresholds, two_sides

    limits = thresholds.parse(fail_on)
    names = parse_stages(stage)
    first, second = tritons.parse(side_a), tritons.parse(side_b)
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
    with two_sides.held(sides):
        comparison, journal = two_sides.execute(sides, limits, options, tests.rules)
        try:
            _print_comparison(comparison, limits, out, diff=diff, stages=names, json=json)
        finally:  # also where the result is an error
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
    from tritonsmith.core.errors import FactError, SmithError, UndecidedError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.compare import report, thresholds

    judgement = thresholds.check(comparison, limits)
    violations, unchecked = judgement.violations, None
    try:
        thresholds.require(judgement, comparison)
    except FactError as error:  # raised below, after the tables
        violations, unchecked = (), error
    content = dumps(report.as_json(comparison, limits, violations), indent=2)
    for text in comparison.notes:
        console.note(text)
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
    sure = [
        row
        for row in violations
        if row.reading.unknown or (row.folders[1], row.target) not in comparison.flaky
    ]
    if comparison.flaky and not sure and (limits or violations):
        hints = ["the notes above name them", "--confirm 5 compiles each five times"]
        raise UndecidedError("not sure: compiles of B come out otherwise when they are repeated", hints=hints)
    if violations:
        raise SmithError(
            report.verdict(limits, violations),
            why="\n".join(report.lines(violations)),
            hints=["--diff shows the differences of the stages", "--json has all values and messages"],
        )
    if limits and not json:
        console.out().print(report.verdict(limits, violations), markup=False)


def _print_tables(comparison: Comparison, stages: tuple[str, ...], *, diff: bool) -> None:
    from tritonsmith.core.ui import console
    from tritonsmith.lab.compare import report

    out = console.out()
    for line in report.head(comparison):
        out.print(line, markup=False)
    for block in report.blocks(comparison):
        out.print(block)
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
    triton: CommaLists = flag("versions, environments, interpreters: 3.2.0,3.6.0,debug (repeatable)", ()),
    source: str = flag("clone to read kernels from, at each version's commit; or CLONE@REF", ""),
    out: Path | None = OUT,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    csv: bool = CSV,
    plot: Path | None = PLOT,
    site: Path | None = flag("folder for a static page of all results", None),
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile kernels with many Triton versions and compare resources."""
    from tritonsmith.compiler import targets
    from tritonsmith.compiler.manifest import folder_name
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect import resources as resources_plot
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.study import report as study_page
    from tritonsmith.lab.study import study as use_case

    if json and csv:
        raise UsageError("--json and --csv contradict each other", hints=["omit one of them"])
    if plot:
        resources_plot.check_plot(plot)
        if not plot.parent.is_dir():  # or an hour of compiling ends without it
            raise UsageError("--plot: the folder does not exist", where=plot.parent)
    if site:
        study_page.check(site)
    tritons = _sides(triton)
    entries, path = _entries(kernels, what)
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
    options = BatchOptions(scheduler, jobs, timeout, resume=True, silent=json or csv)
    cells, journal, doubts = use_case.execute(prepared, options, tests.rules)
    for doubt in doubts:
        console.warn(doubt)
    if site:
        console.note(f"the site is {study_page.write_page(cells, site)}")
    try:
        _print_study(cells, folder, plot, json=json, csv=csv)
    finally:  # also where compiles failed, which is an error
        tests.write_page(journal, "study", [journal.answer], use_case.WORDS)


def _entries(kernel: str, what: KernelOptions) -> tuple[list[ListedKernel], Path]:
    """Return the kernels of a study, one or those of a kernels file, and the file."""
    from dataclasses import replace

    from tritonsmith.compiler.kernels import kernels_file
    from tritonsmith.compiler.kernels.kernel_list import ListedKernel
    from tritonsmith.core.errors import UsageError
    from tritonsmith.lab.compare import two_sides

    if listed := kernels_file.named(kernel):
        path, name = listed
        entries = list(listed_kernels(path, name))
        output.notes(kernels_file.own_targets(entries, what.target))
        if what.signature and len(entries) > 1:
            hints = ["omit it", f"choose one: {path}:{entries[0].name}"]
            raise UsageError(
                "--signature applies to one kernel, but a TOML file lists many", where=path, hints=hints
            )
    else:
        (compared,) = two_sides.one(what.request(kernel))
        path, name = compared.asked.file, compared.asked.kernel
        entries = [ListedKernel(str(path), str(path), name, name)]
    options, signature = what.of_backend(), what.signature
    return [
        replace(entry, options={**entry.options, **options}, signature=signature or entry.signature)
        for entry in entries
    ], path


def _sides(words: Iterable[str]) -> list[Triton]:
    """Return the Tritons of a study, which takes no other kind of side."""
    from tritonsmith.compiler import tritons
    from tritonsmith.core.errors import UsageError

    sides = [tritons.parse(word) for word in tritons.joined(words)]
    if not sides:
        raise UsageError("no Triton is given", hints=["--triton 3.2.0,3.6.0"])
    for side in sides:
        if not (side.env or side.version or side.python):
            hints = ["a version, an environment or an interpreter: --triton 3.2.0,debug"]
            raise UsageError(f"--triton cannot be {side.label!r}", hints=hints)
    return sides


def _print_study(
    cells: Sequence[StudyCell], folder: Path, picture: Path | None, *, json: bool, csv: bool
) -> None:
    from tritonsmith.core.errors import SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.study import report
    from tritonsmith.lab.study import report as study_plot
    from tritonsmith.lab.study.study import outcome

    if json:
        output.json(report.as_json(cells))
    elif csv:
        console.write(report.as_csv(cells), end="")
    else:
        for table in report.tables_of(cells):
            console.out().print(table)
        for text in report.warnings(cells):
            console.warn(text)
        console.out().print(f"{folder}", markup=False)
    failed = list(report.failures(cells))
    if picture:
        try:
            study_plot.write_plot(cells, picture)
            console.note(f"the plot is in {picture}")
        except SmithError as error:
            if not failed:
                raise
            console.warn(error.what)  # the reason comes below
    if failed:
        hints = ["the manifest in a kernel's folder has the full message"]
        raise SmithError(outcome(cells), where=folder, why="\n".join(failed), hints=hints)


@task(tables=True)
def rehearse(
    context: Any,
    what: CompileOptions,
    tests: ExperimentOptions,
    kernels: str = word("kernels file, or FILE:NAME; the corpus if omitted", ""),
    corpus: Path | None = CORPUS,
    from_: str = TODAY,
    to: str = TOMORROW,
    fail_on: str | None = FAIL_ON,
    out: OutFile | None = again(OUT_FILE, "in the workspace"),
    source: Path | None = flag("checkout with the kernels' files, which the list names", None, value="DIR"),
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile a corpus with two Tritons and report regressions."""
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.compare import thresholds
    from tritonsmith.lab.rehearse import rehearsal, report
    from tritonsmith.lab.rehearse.rehearsal import check, rehearsal_limits

    limits = rehearsal_limits(fail_on)
    sides = rehearsal.parse_side(from_, "--from"), rehearsal.parse_side(to, "--to")
    file, name = _listed(kernels, corpus)
    if source and not source.is_dir():
        raise UsageError("--source is not a folder", where=source, hints=["give a checkout of Triton"])
    entries = listed_kernels(file, name)
    upgrade = rehearsal.prepare(entries, file, what.flags(), *sides, base=source or file.parent)
    if tests.show_status(upgrade.folder, thresholds.WORDS, json=json, key=upgrade.key(limits)):
        return
    if dry_run:
        output.plan(upgrade.plan())
        return
    place = workspace.default().root / "rehearsals" / f"{upgrade.name}.html"
    place = out.path(place.name) if out else place
    report.check_page(place)
    options = BatchOptions(scheduler, jobs, timeout, env="", resume=True, silent=json)
    result, journal = rehearsal.execute(upgrade, limits, options, tests.rules)
    answer = check(result.comparison, limits, result.flaky)
    report.write_page(upgrade, result, limits, answer, place)
    if json:
        output.json(report.as_json(upgrade, result, limits, answer))
    try:
        _print_rehearsal(upgrade, result, answer, place, json=json)
    finally:  # a finding is an error, and has a page all the same
        tests.write_page(journal, "rehearse", [journal.answer], thresholds.WORDS)


def _listed(kernels: str, corpus: Path | None) -> tuple[Path, str]:
    """Return the kernels file, and the name of one of its kernels."""
    from tritonsmith.compiler.kernels import kernels_file
    from tritonsmith.core.errors import UsageError
    from tritonsmith.lab import corpus as of_corpus

    if not kernels:
        here = of_corpus.named(corpus)
        if not here.file.is_file():
            raise of_corpus.empty(here)
        return here.file, ""
    if corpus:
        raise UsageError("a kernels file and --corpus contradict each other", hints=["omit one of them"])
    if (named := kernels_file.named(kernels)) is None:
        hints = ["invoke compare captured.toml --from 3.6.0 --to 3.9.0"]
        raise UsageError(f"{kernels!r} is not a kernels file", hints=hints)
    return named


def _print_rehearsal(
    upgrade: UpgradeRehearsal, result: RehearsalResult, answer: Assessment, place: Path, *, json: bool
) -> None:
    from tritonsmith.core.errors import FactError, SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.rehearse import report

    if not json:
        for block in report.blocks(result, answer):
            console.out().print(block)
        for line in report.commands(upgrade, answer.findings):
            console.out().print(console.typed(line), markup=False)
    console.note(f"the page is {place}")
    if answer.findings:
        raise SmithError(answer.words, hints=["the page and --json have all values and messages"])
    if answer.unchecked:
        raise FactError(answer.words, hints=["a check of nothing does not pass: omit it from --fail-on"])
    if answer.doubts:
        console.warn(answer.words)
    elif not json:
        console.out().print(answer.words, markup=False)


@task()
def add(
    context: Any,
    kernels: Path = KERNELS_FILE,
    corpus: Path | None = CORPUS,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Add the kernels of a list to the corpus, with copies of their sources."""
    from tritonsmith.core.errors import SmithError
    from tritonsmith.lab import corpus as use_case

    def update(here: Corpus) -> CorpusUpdate:
        return use_case.add(here, kernels)

    changed = _change("corpus.add", corpus, update, json=json, dry_run=dry_run)
    if refused := [change for change in changed.changes if change.state == "not added"]:
        why = "\n".join(f"{change.name}: {change.why}" for change in refused)
        what = f"{len(refused)} of {len(changed.changes)} kernels were not added"
        raise SmithError(what, where=kernels, why=why)


@task()
def remove(
    context: Any,
    kernel: str = word("name of a kernel in the corpus, or a glob: 'matmul*'"),
    corpus: Path | None = CORPUS,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Remove kernels from the corpus, and sources that no other one needs."""
    from tritonsmith.lab import corpus as use_case

    def update(here: Corpus) -> CorpusUpdate:
        return use_case.remove(here, [kernel])

    _change("corpus.remove", corpus, update, json=json, dry_run=dry_run)


@task(tables=True, name="list")
def listing(context: Any, corpus: Path | None = CORPUS, json: bool = JSON) -> None:
    """List the kernels of the corpus."""
    from tritonsmith.core.ui import console
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
    from tritonsmith.core.ui import console
    from tritonsmith.lab import corpus as use_case

    here = use_case.named(folder)
    if dry_run:
        planned = update(here)
        output.plan(planned.plan)
        return planned
    with here.held(task_name):
        changed = update(here)
        workspace.default().run(changed.plan, task_name, quiet=True)
    output.notes(changed.notes)
    if json:
        output.json(use_case.changes_as_json(here, changed.changes))
        return changed
    for line in use_case.summary(changed.changes):
        console.out().print(line, markup=False)
    console.out().print(str(here.folder), markup=False)
    return changed
