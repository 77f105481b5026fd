"""`compare --from A --to B`: what another Triton would break, before it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import CompileOptions, listed_kernels
from tritonsmith.cli.tasks.option_fields import OutFile, again, flag, word
from tritonsmith.cli.tasks.options import (
    CORPUS,
    DRY_RUN,
    FAIL_ON,
    JOBS,
    JSON,
    OUT_FILE,
    SCHEDULER,
    TIMEOUT,
    TODAY,
    TOMORROW,
)
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.lab.rehearse.assessment import Assessment
    from tritonsmith.lab.rehearse.rehearsal import RehearsalResult, UpgradeRehearsal


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
    from tritonsmith.lab.rehearse import assessment, rehearsal, report

    limits = assessment.limits(fail_on)
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
    answer = assessment.check(result.comparison, limits, result.flaky)
    report.write_page(upgrade, result, limits, answer, place)
    if json:
        output.json(report.as_json(upgrade, result, limits, answer))
    try:
        _print(upgrade, result, answer, place, json=json)
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


def _print(
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
