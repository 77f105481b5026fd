"""`pins`: show which Triton and which LLVM belong to which PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag, split
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, JSON, PYTHON, PYTORCH
from tritonsmith.cli.tasks.output import task
from tritonsmith.core import untrusted
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, UndecidedError, UsageError
from tritonsmith.core.ui import console
from tritonsmith.doctor.pins import install, read_upstream, releases_with, report
from tritonsmith.doctor.pins import releases_with as pins_picks
from tritonsmith.facts import checkout, pytorch_pins


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
    of_clone = bool(triton or picks)
    _one_question(
        {
            "--live": live,
            "--installed": installed,
            "--triton": bool(triton),
            "--picks": bool(picks),
            "--package": bool(package),
            "--nightlies": bool(nightlies),
        }
    )
    for name, used, wants, there in (
        (
            "--pytorch",
            pytorch,
            "--live, or no other question",
            not (installed or of_clone or package or nightlies),
        ),
        ("--at", at, "--nightlies", bool(nightlies)),
        ("--nightlies", nightlies, "--at", bool(at)),
        ("--repository", repository, "--live", live),
        ("--ref", ref, "--live", live),
        ("--update", update, "--live", live),
        ("--dry-run", dry_run, "--live", live),
        ("--env", env, "--installed", installed),
        ("--python", python, "--installed", installed),
        ("--source", source, "--triton, --picks or --live", live or of_clone or bool(nightlies)),
    ):
        if used and not there:
            raise UsageError(f"{name} requires {wants}", hints=["help on the flags: invoke --help pins"])
    _no_contradiction(json=json, dry_run=dry_run, update=update, ref=ref, env=env, python=python)
    if update:
        _update(pytorch, repository, source, json=json, dry_run=dry_run)
    elif live:
        _live(pytorch, repository, ref, source, json=json, dry_run=dry_run)
    elif installed:
        _installed(env, python, json=json)
    elif nightlies:
        _nightlies(nightlies, at, _clone(source), json=json)
    elif of_clone:
        _of_clone(triton, picks, _some_clone(source), json=json)
    else:
        _table(pytorch, package, json=json)


def _one_question(flags: dict[str, bool]) -> None:
    asked = [name for name, given in flags.items() if given]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} contradict each other", hints=["use one at a time"])


def _no_contradiction(
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
    for line in lines:
        console.out().print(console.typed(line), markup=False)


def _table(pytorch: str, package: str, *, json: bool) -> None:
    if package:
        found = pytorch_pins.find_package(package)
        if json:
            console.out().print_json(data=report.packages_json(found))
        else:
            console.out().print(report.packages(found))
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


def _live(pytorch: str, repository: str, ref: str, source: Path | None, *, json: bool, dry_run: bool) -> None:
    version = _version(pytorch) if pytorch else ""
    wanted = ref or (f"v{version}" if version else "main")
    where, space = repository or read_upstream.default_repository(), workspace.default()
    if dry_run:
        output.plan(read_upstream.fetch(where, wanted, space))
        return
    reading = read_upstream.read(where, wanted, space, _clone(source))
    if json:
        console.out().print_json(data=report.live_json(reading))
        return
    named = version or wanted.removeprefix("v")
    row = next((row for row in pytorch_pins.releases() if row.version == named), None)
    _print(report.live(reading, row))


def _update(pytorch: str, repository: str, source: Path | None, *, json: bool, dry_run: bool) -> None:
    file = read_upstream.target()
    where, space = repository or read_upstream.default_repository(), workspace.default()
    versions = split(pytorch) or tuple(row.version for row in pytorch_pins.releases())
    versions = tuple(_version(version) for version in versions)
    if dry_run and read_upstream.is_url(where):
        for version in versions:
            output.plan(read_upstream.fetch(where, f"v{version}", space))
        console.note(f"the changes to {file} depend on the downloaded files")
        return
    found, missing = read_upstream.readings(versions, where, space, _clone(source))
    revision = read_upstream.revise_all(untrusted.read_bytes(file).decode(), found)
    plan = read_upstream.plan(file, revision)
    output.warnings(f"the repository has no pins at v{version}" for version in missing)
    if dry_run:
        output.plan(plan)
        return
    read_upstream.execute(plan, space)
    if json:
        console.out().print_json(data=report.update_json(file, revision.changes, missing))
        return
    _print(revision.changes)
    _print(
        [f"{file}: {f'{len(revision.changes)} pins changed' if revision.changes else 'nothing to change'}"]
    )


def _installed(env: str, python: Path | None, *, json: bool) -> None:
    if python:
        path = python
    else:
        folder = workspace.default().env(settings.load(env or "dev").name)
        path = folder.python
        if not path.exists():
            raise FactError(
                f"environment {folder.name!r} has no virtual environment yet",
                where=folder.venv,
                hints=["give a Python with torch: --python PATH", "or another environment: --env NAME"],
            )
    found = install.read(path)
    if json:
        console.out().print_json(data=report.installed_json(found))
    else:
        _print(report.installed(found))


def _of_clone(triton: str, branch: str, clone: Path, *, json: bool) -> None:
    if triton:
        _holders(triton, clone, json=json)
    else:
        _picks(branch, clone, json=json)


def _holders(commit: str, clone: Path, *, json: bool) -> None:
    found = releases_with.find(commit, clone)
    if json:
        console.out().print_json(data=report.holders_json(found))
    else:
        _print(report.holders(found))
        console.out().print(report.holdings(found))
        _print(report.open_questions(found))
    if doubts := sorted({one.standing.why for one in found.holdings if one.standing.doubt}):
        hints = ["compare them: git show COMMIT"]
        raise UndecidedError("this history does not settle every pin", why="\n".join(doubts), hints=hints)


def _nightlies(url: str, commit: str, clone: Path | None, *, json: bool) -> None:
    from tritonsmith.lab.bisect import history  # not for the table

    found = history.standings(history.read(url), commit, clone)
    first = history.first(found)
    if json:
        rows = [
            {
                "nightly": one.wheel.label,
                **{key: value for key, value in asdict(one).items() if key != "wheel"},
            }
            | {"commit": one.wheel.commit, "url": one.wheel.url}
            for one in found
        ]
        output.json({"schema": 1, "first": first.wheel.label if first else None, "nightlies": rows})
    else:
        console.out().print(history.table(found))
        if first:
            console.out().print(f"first that has {commit}: {first.wheel.label}", markup=False)
            console.out().print(f"  {first.wheel.url}", markup=False)
    if not first and any(one.standing is history.NightlyStanding.UNKNOWN for one in found):
        hints = ["give a clone: --source PATH"] if clone is None else ["git fetch --all, in the clone"]
        raise UndecidedError(f"no nightly is known to have {commit}", hints=hints)


def _picks(branch: str, clone: Path, *, json: bool) -> None:
    found = pins_picks.find_picks(branch, clone)
    if json:
        console.out().print_json(data=report.picks_json(found))
        return
    _print(report.picked(found))
    console.out().print(report.picks(found))


def _some_clone(source: Path | None) -> Path:
    if found := _clone(source):
        return found
    hints = ["run this in a clone, or give one: --source PATH"]
    raise FactError("no clone of Triton found", where=Path.cwd(), hints=hints)


def _version(text: str) -> str:
    """Return a release that is in the table, or newer than the table."""
    plain = text.removeprefix("v")
    if re.fullmatch(r"\d+\.\d+\.\d+", plain):
        return plain
    match = pytorch_pins.find(text)
    if match.note:
        console.note(match.note)
    return match.release.version


def _clone(source: Path | None) -> Path | None:
    """Return the clone of Triton that a flag names, or that contains the current folder."""
    if source:
        return source
    around = checkout.enclosing(Path.cwd())
    return around if around is not None and (around / ".git").exists() else None
