"""`blame`: which component changed a kernel: Triton's passes, LLVM, or ptxas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import KernelOptions
from tritonsmith.cli.tasks.option_fields import CommaLists, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, JOBS, JSON, TIMEOUT, TODAY, TOMORROW
from tritonsmith.cli.tasks.task import task


@task(tables=True)
def blame(
    context: Any,
    what: KernelOptions,
    tests: ExperimentOptions,
    kernel: str = word("FILE[:KERNEL], or one kernel of a list: kernels.toml:NAME"),
    from_: str = TODAY,
    to: str = TOMORROW,
    metric: CommaLists = flag("explain this only: registers, spills or code (repeatable)", ()),
    ptxas_versions: CommaLists = flag("ptxas to try: 12.4,12.9,13.0 (repeatable)", ()),
    llc: CommaLists = flag("llc of another LLVM to try, beside those at hand (repeatable)", ()),
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Show which component changed a kernel: a Triton pass, LLVM or ptxas."""
    from tritonsmith.core.errors import FactError, UsageError, did_you_mean
    from tritonsmith.core.ui import console
    from tritonsmith.lab import metrics
    from tritonsmith.lab.blame import blame as use_case
    from tritonsmith.lab.blame import report
    from tritonsmith.lab.blame.mixtures import WORDS
    from tritonsmith.lab.rehearse import rehearsal

    for name in metric:
        if name not in metrics.summary():
            raise UsageError(f"--metric cannot be {name!r}", hints=did_you_mean(name, metrics.summary()))
    sides = rehearsal.parse_side(from_, "--from"), rehearsal.parse_side(to, "--to")
    request = use_case.prepare(
        what.request(kernel),
        *sides,
        metrics=metric,
        ptxas_versions=ptxas_versions,
        more_llcs=[Path(program).expanduser().absolute() for program in llc],
    )
    if tests.show_status(request.journal, WORDS, json=json):
        return
    if dry_run:
        output.plan(use_case.plan(request), rest="the mixtures of both, which follow from what comes out")
        return
    answers, journal = use_case.execute(request, tests.rules, count=jobs, timeout=timeout, silent=json)
    sentences = [
        (f"{answer.point}: {report.sentence(answer, verdict)}", verdict.decided)
        for answer in answers
        for verdict in answer.verdicts
    ]
    if json:
        output.json(report.as_json(request, answers))
    for answer in answers:
        for block in () if json else report.blocks(request, answer):
            console.out().print(block)
        output.notes(dict.fromkeys((*answer.notes, *report.failures(answer))))
    tests.write_page(journal, "blame", [text for text, _ in sentences] or [report.NOTHING], WORDS)
    if unsure := [text for text, decided in sentences if not decided]:
        hints = ["--json has every figure and message", f"all texts are in {request.out}"]
        raise FactError(
            "not decided: no component explains the change alone", why="\n".join(unsure), hints=hints
        )
