"""The history between two ends: releases, nightly wheels, and commits of main or of a release branch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from packaging import tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import (
    DownloadError,
    FactError,
    InterruptedRunError,
    LockedError,
    SmithError,
    UsageError,
)
from tritonsmith.core.plan import download
from tritonsmith.core.text import version_key
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import checkout, git, git_history, triton_history
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.wheels import venv

NAMES = ("triton", "pytorch-triton", "triton-nightly")  # of one package, by who builds it and when
_GIT = re.compile(r"(?:^|\.)(?:git)?(?P<commit>[0-9a-f]{7,40})$")
_LIMIT = 64 << 20  # bytes of an index
_UNSAFE = re.compile(r"[^\w.]+")
_SHORT = 12  # digits of a commit


def releases_between(good: str, bad: str) -> tuple[str, ...]:
    """Return the releases on the package index from the good end to the bad one, both included.

    Raises:
        UsageError: the good end is the same as the bad one.
    """
    first, last = sorted((version_key(good), version_key(bad)))
    if first == last:
        raise UsageError(f"--good and --bad are the same release, {good}")
    # The ends are added, as the table may be older than a release that pip can install.
    every = {wheel for row in checkout.triton_releases() for wheel in row.wheels} | {good, bad}
    between = sorted((version for version in every if first <= version_key(version) <= last), key=version_key)
    return tuple(between if version_key(good) == first else reversed(between))


@dataclass(frozen=True)
class CommitRange:
    """A part of history, from one commit to a later one.

    Attributes:
        first: 40 hex digits.
        last: 40 hex digits.
        good: the relation of `first` to the good end, in words; empty if it is that end.
        bad: the relation of `last` to the bad end.
        fix: whether it is the other way round: `first` is bad and `last` good, on the branch of the good end.
    """

    first: str
    last: str
    good: str = ""
    bad: str = ""
    fix: bool = False

    @property
    def picked(self) -> bool:
        """Report whether the range ends with the bad release, on the branch of that release."""
        return not self.fix and self.bad.startswith("release")


def commit_range(good: str, bad: str, clone: Path, outcomes: Mapping[str, Observation]) -> CommitRange:
    """Return the range to search, as far as the outcomes determine it.

    It is main, between the points where both releases were cut; if the newer point turns out to be good, what
    was picked into the newer branch; if the older one is bad, the fix that only the good end has.

    Args:
        good: a release or a commit.
        bad: a later one.
        clone: Triton's history.
        outcomes: by commit.

    Raises:
        FactError: the clone lacks a commit.
    """
    one_line = "." in good and "." in bad and git_history.release_line(good) == git_history.release_line(bad)
    # Two releases of one branch (3.6.0, 3.6.1) have only picks between them.
    if one_line:
        return _from_base(clone, _own(good, clone), _own(bad, clone), f"release {good}", f"release {bad}")
    # Each release has a branch of its own, so what two of them have in common is main, between the points
    # where they were cut.
    first, good_is = _on_main(good, clone)
    last, bad_is = _on_main(bad, clone)
    main = _from_base(clone, first, last, good_is, bad_is)
    outcome = outcomes.get(main.last)
    not_on_main = main.first == main.last or (outcome is not None and outcome.verdict is Verdict.GOOD)
    if "." in bad and not_on_main and (own := commit_of(bad, clone)) and own != main.last:
        return _from_base(clone, main.last, own, bad_is, f"release {bad}")
    before = outcomes.get(main.first)
    if before is not None and before.verdict is Verdict.BAD:
        return _fix(good, clone, main)
    return main


def _fix(good: str, clone: Path, main: CommitRange) -> CommitRange:
    """Return the range from a bad start to the good end, whose branch has a fix; `main` if it has none."""
    own = commit_of(good, clone) if "." in good else triton_history.branch_point(clone, good, good)
    if not own or own == main.first:
        return main
    return CommitRange(main.first, own, f"release {good}" if "." in good else "", main.good, fix=True)


def _on_main(name: str, clone: Path) -> tuple[str, str]:
    if "." in name:
        return branch_point(name, clone), f"{name} branched there"
    return name, ""


def _own(release: str, clone: Path) -> str:
    if commit := commit_of(release, clone):
        return commit
    hints = ["git fetch --all --tags"]
    what = f"the clone has neither a tag nor a branch of release {release}"
    raise FactError(what, where=clone, hints=hints)


def _from_base(clone: Path, first: str, last: str, good: str, bad: str) -> CommitRange:
    """Return the range from a commit, or from where its history and that of a later one diverge."""
    base = triton_history.branch_point(clone, first, last)
    if not base:
        raise FactError(f"{first} and {last} have no common history", where=clone)
    # `first` may be abbreviated, and `base` is not.
    if not base.startswith(first):
        good = f"where {good or first[:12]} and the bad end diverge"
    return CommitRange(base, triton_history.branch_point(clone, last, last), good, bad)


def branch_point(release: str, clone: Path | None) -> str:
    """Return the last commit of main in a release: of a clone that has the branch, or else of the table."""
    if clone:
        # A clone of single branches may have the tag of a release alone.
        for branch in (*git_history.branch_names(release), f"v{release}"):
            for main in git_history.MAINS:
                try:
                    if commit := triton_history.branch_point(clone, branch, main):
                        return commit
                except FactError:  # this clone has no such name, as one of a fork or of a single branch
                    continue
    return checkout.triton_release(release).branch_point


def commit_of(release: str, clone: Path) -> str:
    """Return the commit of a release: its tag, or the end of its branch; empty if unknown."""
    with git_history.opened(clone) as repository:
        return git_history.release_commit(release, repository)


def about_step(good: str, bad: str, clone: Path | None) -> Iterator[str]:
    """Describe the way between two releases: commits of main between the branch points, and picks."""
    before, after = checkout.triton_release(good), checkout.triton_release(bad)
    old, new = before.version, after.version
    if old == new:
        yield f"{good} and {bad} are on release/{old}.x: the culprit is a commit cherry-picked into it"
        return
    points = [branch_point(version, clone)[:12] for version in (good, bad)]
    if points[0] == points[1]:
        yield f"both are cut from {points[0]}: a commit of release/{new}.x, or a fix that {old}.x has"
        return
    yield f"main between the branch points: {points[0]}..{points[1]} (release/{old}.x, release/{new}.x)"
    yield f"or commits cherry-picked into release/{new}.x, or a fix that only {old}.x has"
    if before.llvm and after.llvm and before.llvm != after.llvm:
        compared = f"{configs.load('bisect')['llvm']['page']}/compare/{before.llvm}...{after.llvm}"
        more = (
            ""
            if clone
            else "; --source CLONE finds the bump, and --llvm-source CLONE then finds LLVM's commit"
        )
        yield f"LLVM moved as well: {compared}{more}"


def about_fix(bad: str, good: str, clone: Path | None) -> Iterator[str]:
    """Describe the commits of main and the picks between the last bad release and the one that fixes it."""
    old, new = checkout.triton_release(bad).version, checkout.triton_release(good).version
    points = [branch_point(version, clone)[:12] for version in (bad, good)]
    if points[0] == points[1]:
        yield f"both are cut from {points[0]}: a commit of release/{new}.x"
        return
    yield f"main between the branch points: {points[0]}..{points[1]} (release/{old}.x, release/{new}.x)"
    yield f"or a commit cherry-picked into release/{new}.x"


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += (value for name, value in attrs if tag == "a" and name == "href" and value)


def read_nightlies(url: str) -> tuple[Triton, ...]:
    """Return the nightlies of an index that this machine can install, the best wheel of each version.

    Each has the interpreter of its environment, made or not, and as many digits of its commit as its name.

    Args:
        url: of an index with a page for each project (PEP 503), of such a page, or of one with links.

    Raises:
        UsageError: no URL, or the page has no nightly of Triton.
        DownloadError: it cannot be read.
    """
    if urlsplit(url).scheme not in ("http", "https", "file"):
        raise UsageError(
            f"--nightlies is not a URL: {url}", hints=["--nightlies https://..., an index or a page"]
        )
    # Without a slash `urljoin` would replace the last part of the URL instead of adding to it.
    page = url if url.endswith((".html", ".htm", "/")) else f"{url}/"
    try:
        where = urljoin(page, "triton/")
        links = _links(where) or _links(page)
    except DownloadError:  # a page of links, which has no folder of a project below it
        links = _links(page)
    # Wheels go into the environment's Python, and this tool may run in another one.
    minor = venv.base_interpreter(settings.load("wheel").python.interpreter).minor
    python = tuple(int(part) for part in minor.split("."))
    # Both functions yield tags from the most specific to the least (packaging.tags), so a smaller number fits
    # better.
    rank = {
        tag: number for number, tag in enumerate((*tags.cpython_tags(python), *tags.compatible_tags(python)))
    }
    best: dict[str, tuple[int, Triton]] = {}
    for link in links:
        for fit, wheel in _wheel(link, rank):
            if wheel.label not in best or fit < best[wheel.label][0]:
                best[wheel.label] = (fit, wheel)
    if not best:
        what = f"no nightly of Triton for Python {minor}"
        raise UsageError(what, where=page, why=f"{len(links)} links", hints=[f"names: {', '.join(NAMES)}"])
    return tuple(wheel for _, wheel in best.values())


def by_history(wheels: Iterable[Triton], commits: Sequence[str]) -> tuple[Triton, ...]:
    """Return the nightlies of commits, in their order, with whole hashes; the first is the good end's."""
    built_from: dict[str, Triton] = {}
    for wheel in wheels:
        # A wheel names 8 digits or so; the clone knows which commit that is.
        whole = (commit for commit in commits[1:] if wheel.commit and commit.startswith(wheel.commit))
        commit = next(whole, "")
        if commit and commit not in built_from:
            built_from[commit] = replace(wheel, commit=commit)
    return tuple(built_from[commit] for commit in commits if commit in built_from)


def by_date(wheels: Iterable[Triton], good: str, bad: str) -> tuple[Triton, ...]:
    """Return the nightlies towards a release after `good`, up to `bad`, by the dates in their versions."""
    # `3.5.0+gitabcdef12` has no date, and PEP 440 sorts it by the digits of its hash, which is no order
    # (triton#10218): only `3.6.0.dev20251012+gitabcdef12` can be placed without a clone.
    between = (
        (version.dev, wheel.label, wheel)
        for wheel in wheels
        if (version := Version(wheel.label)).dev
        and Version(good) < Version(version.base_version) <= Version(bad)
    )
    return tuple(wheel for _, _, wheel in sorted(between, key=lambda row: row[:2]))


def install_nightly(triton: Triton) -> str:
    """Install a nightly if needed; return the reason if that fails. Other Tritons are left as they are.

    Raises:
        InterruptedRunError: ^C.
        LockedError: another process uses its environment.
    """
    if not triton.url:
        return ""
    env, base = _env(triton.label), venv.base_interpreter(settings.load("wheel").python.interpreter)
    try:
        with receipts.open_session("up", env.name) as running:
            running.run(venv.plan(env, base, (triton.url,)))
    except (InterruptedRunError, LockedError):  # which say nothing of the nightly
        raise
    except SmithError as error:
        return error.line
    return ""


def _env(version: str) -> EnvDir:
    return workspace.default().env(f"nightly-{_UNSAFE.sub('-', version)}")


def _links(page: str) -> list[str]:
    parser = _Links()
    parser.feed(download.text(page, _LIMIT))
    return [urljoin(page, link) for link in parser.links if ".whl" in link]


def _wheel(link: str, rank: dict[tags.Tag, int]) -> Iterator[tuple[int, Triton]]:
    """Yield the wheel behind a link, and how well it fits; nothing if it is no nightly, or does not fit."""
    try:
        # A link spells the `+` of a local version as `%2B`.
        name, version, _, its_tags = parse_wheel_filename(unquote(Path(urlsplit(link).path).name))
    except InvalidWheelFilename:
        return
    commit = _GIT.search(version.local or "")
    fits = [rank[tag] for tag in its_tags if tag in rank]
    if name in NAMES and fits and (commit or version.dev):
        python, digits = str(_env(str(version)).python), commit["commit"] if commit else ""
        yield min(fits), Triton(str(version), python=python, commit=digits, url=link)


class NightlyStanding(StrEnum):
    """The relation of a nightly to a commit."""

    BUILT_FROM = "built from it"
    HAS = "has it"
    LACKS = "lacks it"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class NightlyCommit:
    """A nightly, and its relation to a commit.

    Attributes:
        wheel: of the index.
        standing: the relation.
        why: the reason where the relation is unknown.
        time: of its commit in seconds since 1970, by the clone; 0 if unknown.
    """

    wheel: Triton
    standing: NightlyStanding
    why: str = ""
    time: int = 0


def standings(wheels: Sequence[Triton], commit: str, clone: Path | None) -> tuple[NightlyCommit, ...]:
    """Return how each nightly relates to a commit, oldest first: by a clone, or else by names.

    Args:
        wheels: of an index.
        commit: hash, of which some digits do; with a clone a tag or a branch, too.
        clone: whose history tells which commits a nightly has; None for names only.

    Raises:
        FactError: the clone has no such commit.
    """
    if clone is None:
        rows = [_by_name(wheel, commit) for wheel in wheels]
    else:
        with git_history.opened(clone) as repository:
            whole = git_history.resolve(repository, commit)
            if not whole:
                raise FactError(f"no commit {commit}", where=clone, hints=["git fetch --all --tags"])
            commits = [
                git_history.resolve(repository, wheel.commit) if wheel.commit else "" for wheel in wheels
            ]
        pairs = zip(wheels, commits, strict=True)
        rows = [_by_history(wheel, built, whole, clone) for wheel, built in pairs]
    # The time of the commit comes first, if a clone knows it, as the hash in a version has no order.
    return tuple(sorted(rows, key=lambda row: (row.time, Version(row.wheel.label).dev or 0, row.wheel.label)))


def first_with(rows: Sequence[NightlyCommit]) -> NightlyCommit | None:
    """Return the oldest nightly that has the commit; None if none is known to have it."""
    return next(
        (row for row in rows if row.standing in (NightlyStanding.BUILT_FROM, NightlyStanding.HAS)), None
    )


def standings_as_json(rows: Sequence[NightlyCommit]) -> dict[str, Any]:
    """Return the documented form of `pins --nightlies --json`."""
    earliest = first_with(rows)
    nightlies = [
        {
            "nightly": row.wheel.label,
            **{key: value for key, value in asdict(row).items() if key != "wheel"},
            "commit": row.wheel.commit,
            "url": row.wheel.url,
        }
        for row in rows
    ]
    return {"schema": 1, "first": earliest.wheel.label if earliest else None, "nightlies": nightlies}


def nightlies_table(nightlies: Sequence[NightlyCommit]) -> Grid:
    """Return the table of `standings`."""
    rows = [(row.wheel.label, row.wheel.commit[:_SHORT] or "?", row.standing, row.why) for row in nightlies]
    return tables.plain("nightlies, oldest first", ["nightly", "commit", "standing", "why"], rows)


def _by_name(wheel: Triton, commit: str) -> NightlyCommit:
    if not wheel.commit:
        return NightlyCommit(wheel, NightlyStanding.UNKNOWN, "its file name contains no commit")
    if wheel.commit.startswith(commit) or commit.startswith(wheel.commit):
        return NightlyCommit(wheel, NightlyStanding.BUILT_FROM)
    return NightlyCommit(wheel, NightlyStanding.UNKNOWN, "only a clone has its commit")


def _by_history(wheel: Triton, built: str, commit: str, clone: Path) -> NightlyCommit:
    if not built:
        return NightlyCommit(
            wheel, NightlyStanding.UNKNOWN, "the clone lacks its commit" if wheel.commit else "no commit"
        )
    shown = git.look(clone, "show", "--no-patch", "--format=%ct", built)
    time = int(shown.out) if shown and shown.code == 0 else 0
    if built == commit:
        return NightlyCommit(wheel, NightlyStanding.BUILT_FROM, time=time)
    answer = git.look(clone, "merge-base", "--is-ancestor", commit, built)
    # 0 is yes and 1 is no; anything else is an error (git-merge-base(1)).
    if answer is None or answer.code > 1:
        return NightlyCommit(wheel, NightlyStanding.UNKNOWN, "git cannot tell", time)
    return NightlyCommit(wheel, NightlyStanding.LACKS if answer.code else NightlyStanding.HAS, time=time)
