"""`pins` and `env-triton`: the Triton and LLVM that belong to a PyTorch, shown and installed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, split
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, ENV, JSON, PYTHON, PYTORCH, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.errors import SmithError, UndecidedError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.core.ui import console
from tritonsmith.doctor.pins import install, read_upstream, releases_with, report
from tritonsmith.facts import machine, pytorch_pins
from tritonsmith.wheels import purge, venv


@task(tables=True)
def pins(
    context: Context,
    pytorch: str = PYTORCH,
    live: bool = flag("read PyTorch's own pin files instead of the table", default=False),
    repository: str = flag("with --live: URL or path of PyTorch", "", unset="upstream"),
    ref: str = flag("with --live: tag, branch or commit", "", unset="--pytorch's, or main"),
    update: bool = flag("with --live: update the table from the releases' tags", default=False),
    installed: bool = flag("read an environment's torch and Triton, or its Triton alone", default=False),
    env: str = again(ANY_ENV, "dev"),
    python: Path | None = PYTHON,
    triton: str = flag("commit, #pull or release of Triton: show the PyTorch releases with it", ""),
    package: str = flag("package that requires a torch: vllm, sglang==0.5.9", ""),
    picks: str = flag("release branch of Triton: list its commits since it was cut", ""),
    nightlies: str = flag("URL of an index of nightly wheels: show which contain --at", ""),
    at: str = flag("with --nightlies: commit of Triton", ""),
    source: Path | None = flag("clone for --triton, --picks and --live", None, unset="the current one"),
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Show which Triton and which LLVM belong to which PyTorch."""
    needs_clone = bool(triton or picks)
    # One command answers seven questions, each by its own flag.
    _require_one_question(
        {
            "--live": live,
            "--installed": installed,
            "--triton": bool(triton),
            "--picks": bool(picks),
            "--package": bool(package),
            "--nightlies": bool(nightlies),
        }
    )
    # Ignored, such a flag would be taken for one that the answer respects.
    for name, value, required, is_there in (
        (
            "--pytorch",
            pytorch,
            "--live, or no other question",
            not (installed or needs_clone or package or nightlies),
        ),
        ("--at", at, "--nightlies", bool(nightlies)),
        ("--nightlies", nightlies, "--at", bool(at)),
        ("--repository", repository, "--live", live),
        ("--ref", ref, "--live", live),
        ("--update", update, "--live", live),
        ("--dry-run", dry_run, "--live", live),
        ("--env", env, "--installed", installed),
        ("--python", python, "--installed", installed),
        ("--source", source, "--triton, --picks or --live", live or needs_clone or bool(nightlies)),
    ):
        if value and not is_there:
            raise UsageError(f"{name} requires {required}", hints=["help on the flags: invoke --help pins"])
    _refuse_contradictions(json=json, dry_run=dry_run, update=update, ref=ref, env=env, python=python)
    if update:
        _update(pytorch, repository, source, json=json, dry_run=dry_run)
    elif live:
        _print_live(pytorch, repository, ref, source, json=json, dry_run=dry_run)
    elif installed:
        _print_installed(env, python, json=json)
    elif nightlies:
        _print_nightlies(nightlies, at, read_upstream.clone_of(source), json=json)
    elif triton:
        _print_holders(triton, read_upstream.require_clone(source), json=json)
    elif picks:
        _print_picks(picks, read_upstream.require_clone(source), json=json)
    else:
        _print_table(pytorch, package, json=json)


def _require_one_question(flags: dict[str, bool]) -> None:
    questions = [name for name, is_given in flags.items() if is_given]
    if len(questions) > 1:
        raise UsageError(f"{' and '.join(questions)} contradict each other", hints=["use one at a time"])


def _refuse_contradictions(
    *, json: bool, dry_run: bool, update: bool, ref: str, env: str, python: Path | None
) -> None:
    if json and dry_run:
        raise UsageError("--json and --dry-run contradict each other", hints=["omit one of them"])
    if update and ref:
        raise UsageError(
            "--update reads each release's own tag, and takes no --ref",
            hints=["omit --ref; --pytorch 2.9.1 selects the release"],
        )
    if env and python:
        raise UsageError("--env and --python contradict each other", hints=["omit one of them"])


def _print(lines: Iterable[str]) -> None:
    output.lines(map(console.typed, lines))


def _print_table(pytorch: str, package: str, *, json: bool) -> None:
    """Print the table, or its rows about one package or one release."""
    if package:
        releases = pytorch_pins.find_package(package)
        if json:
            console.out().print_json(data=report.packages_json(releases))
        else:
            console.out().print(report.packages(releases))
        return
    if pytorch:
        match = pytorch_pins.find(pytorch)
        if json:
            console.out().print_json(data=report.release_json(match.release, match.note))
            return
        if match.note:
            console.note(match.note)
        _print(report.detail(match.release))
        return
    rows = pytorch_pins.releases()
    if json:
        console.out().print_json(data=report.table_json(rows))
        return
    console.out().print(report.table(rows))
    _print(report.remarks(rows))
    _print([""])
    console.out().print(report.names())
    _print(["", *report.indexes()])


def _print_live(
    pytorch: str, repository: str, ref: str, source: Path | None, *, json: bool, dry_run: bool
) -> None:
    """Print the pins in PyTorch's own files at a tag, branch or commit."""
    version = _version(pytorch) if pytorch else ""
    # PyTorch tags its releases v2.9.1.
    wanted_ref = ref or (f"v{version}" if version else "main")
    where, space = repository or read_upstream.default_repository(), workspace.default()
    if dry_run:
        output.plan(read_upstream.plan_fetch(where, wanted_ref, space))
        return
    reading = read_upstream.read(where, wanted_ref, space, read_upstream.clone_of(source))
    if json:
        console.out().print_json(data=report.live_json(reading))
        return
    name = version or wanted_ref.removeprefix("v")
    # To show where the files now differ from the table.
    row = next((row for row in pytorch_pins.releases() if row.version == name), None)
    _print(report.live(reading, row))


def _update(pytorch: str, repository: str, source: Path | None, *, json: bool, dry_run: bool) -> None:
    """Update the table from the tags of the releases."""
    file = read_upstream.table_file()
    where, space = repository or read_upstream.default_repository(), workspace.default()
    versions = split(pytorch) or tuple(row.version for row in pytorch_pins.releases())
    versions = tuple(_version(version) for version in versions)
    # The pins of a clone on this disk can be read in a dry run; those of a URL would have to be fetched.
    if dry_run and read_upstream.is_url(where):
        for version in versions:
            output.plan(read_upstream.plan_fetch(where, f"v{version}", space))
        console.note(f"the changes to {file} depend on the downloaded files")
        return
    clone = read_upstream.clone_of(source)
    plan, changes, missing = read_upstream.prepare_update(versions, where, space, clone)
    output.warnings(f"the repository has no pins at v{version}" for version in missing)
    if dry_run:
        output.plan(plan)
        return
    read_upstream.execute(plan, space)
    if json:
        console.out().print_json(data=report.update_json(file, changes, missing))
        return
    _print(changes)
    _print([f"{file}: {f'{len(changes)} pins changed' if changes else 'nothing to change'}"])


def _print_installed(env: str, python: Path | None, *, json: bool) -> None:
    """Print whether the torch and the Triton of an interpreter belong together."""
    installed = install.read_installed(python or install.python_of(env or "dev"))
    if json:
        console.out().print_json(data=report.installed_json(installed))
    else:
        _print(report.installed(installed))


def _print_holders(commit: str, clone: Path, *, json: bool) -> None:
    """Print the PyTorch releases whose Triton has a commit."""
    holders = releases_with.find_releases(commit, clone)
    if json:
        console.out().print_json(data=report.holders_json(holders))
    else:
        _print(report.holders(holders))
        console.out().print(report.holdings(holders))
        _print(report.open_questions(holders))
    # A script that asks whether a release has a fix must not take a doubt for an answer.
    if doubts := sorted({row.standing.why for row in holders.holdings if row.standing.doubt}):
        hints = ["compare them: git show COMMIT"]
        raise UndecidedError("this history does not settle every pin", why="\n".join(doubts), hints=hints)


def _print_nightlies(url: str, commit: str, clone: Path | None, *, json: bool) -> None:
    """Print which nightlies of an index have a commit."""
    from tritonsmith.lab.bisect import history  # not for the table

    rows = history.standings(history.read_nightlies(url), commit, clone)
    first = history.first_with(rows)
    if json:
        output.json(history.standings_as_json(rows))
    else:
        console.out().print(history.nightlies_table(rows))
        if first:
            console.out().print(f"first nightly with {commit}: {first.wheel.label}", markup=False)
            console.out().print(f"  {first.wheel.url}", markup=False)
    # Without a clone only names can be compared, and a nightly that was built from a later commit may have
    # it, too.
    if not first and any(row.standing is history.NightlyStanding.UNKNOWN for row in rows):
        hints = ["give a clone: --source PATH"] if clone is None else ["git fetch --all, in the clone"]
        raise UndecidedError(f"no nightly is known to have {commit}", hints=hints)


def _print_picks(branch: str, clone: Path, *, json: bool) -> None:
    """Print the commits of a release branch since it was cut."""
    picks = releases_with.find_picks(branch, clone)
    if json:
        console.out().print_json(data=report.picks_json(picks))
        return
    _print(report.picked(picks))
    console.out().print(report.picks(picks))


def _version(text: str) -> str:
    """Return the version of a release, and print the note about it."""
    version, note = read_upstream.version_of(text)
    if note:
        console.note(note)
    return version


@task(tables=True, name="env-triton")
def env_triton(
    context: Context,
    pytorch: str = again(PYTORCH, "the installed one"),
    env: str = ENV,
    channel: str = flag("build of PyTorch: cuda, rocm or xpu", "cuda"),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Install the Triton that a PyTorch requires, or name its commit."""
    if channel not in pytorch_pins.CHANNELS:
        raise UsageError(
            f"--channel cannot be {channel!r}", hints=did_you_mean(channel, pytorch_pins.CHANNELS)
        )
    chosen = settings.load(env)
    folder = workspace.default().env(chosen.name)
    match = install.release_of(pytorch, folder)
    if match.note:
        console.note(match.note)
    base = venv.base_interpreter(chosen.python.interpreter)
    now = install.current(folder, base)
    # pip replaces another `triton` itself, but not `pytorch-triton` or `triton-nightly`: their files would
    # stay in the same folder.
    others = set(now.triton_owners) - {"triton"} if now else set()
    before = purge.survey(now).plan if now and others else Plan("nothing to purge")
    prepared = install.prepare(match.release, channel, folder, base, machine.read(), now, before)
    if dry_run:
        output.plan(prepared.plan)
        return
    if not prepared.plan.steps:
        console.out().print(prepared.plan.title, markup=False)
        return
    output.notes(f"replaces {name}" for name in prepared.replaces)
    # A fresh environment asks nothing: there is nothing to lose.
    question = f"Replace with {prepared.requirement} in {folder.venv}?"
    if prepared.replaces and not output.agreed(question, yes=yes):
        raise SmithError("nothing was replaced", hints=["--dry-run shows what would happen"])
    with receipts.open_session("env-triton", chosen.name) as running:
        install.execute(prepared, match.release, running)
    output.done(
        f"{prepared.requirement}, as PyTorch {match.release.version} requires, in {folder.venv}", running
    )
