"""Answer from a clone's history which PyTorch has a Triton commit, and what a release branch has picked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tritonsmith.core.errors import FactError
from tritonsmith.facts import git_history, pytorch_pins
from tritonsmith.facts.pytorch_pins import Pin

if TYPE_CHECKING:
    from git import Repo


Relation = Literal["at", "after", "before", "cherry-picked", "reverted", "apart", "undecided"]
_HOLDS: dict[Relation, bool | None] = {
    "at": True,
    "after": True,
    "cherry-picked": True,
    "reverted": False,
    "before": False,
    "apart": False,
    "undecided": None,
}
_PULL_REQUEST = re.compile(r"(?:#|\S*/pull/)?(\d{1,6})")  # too few digits for a hash
_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)")
_FIELD, _RECORD = "\x1f", "\x1e"  # these never occur in messages
_HOUR = 3600  # seconds of tolerance between two clocks


@dataclass(frozen=True)
class Standing:
    """The position of a pin relative to the commit.

    Attributes:
        relation: the pin is the commit, comes after or before it, has it cherry-picked, had it and reverted
            it, lies on another branch that does not have it, or is undecided.
        why: the reason, where it is not obvious.
        doubt: the clone has the pin, but its history is not conclusive.
    """

    relation: Relation
    why: str = ""
    doubt: bool = False

    @property
    def holds(self) -> bool | None:
        """Report whether the pin has the commit; None if undecided."""
        return _HOLDS[self.relation]


@dataclass(frozen=True)
class Holding:
    """One pin of one release.

    Attributes:
        release: the version of PyTorch.
        where: `cuda`, `rocm`, `xpu` for its pin files, `wheel` for the published wheel.
        pin: the commit of Triton; empty if unknown.
        standing: the pin's position.
    """

    release: str
    where: str
    pin: str
    standing: Standing


@dataclass(frozen=True)
class Holders:
    """The pins of all releases, compared with a commit.

    Attributes:
        commit: the commit of Triton, 40 digits.
        subject: the first line of its message.
        committed: its date, ISO 8601.
        holdings: every pin of every release.
    """

    commit: str
    subject: str
    committed: str
    holdings: tuple[Holding, ...]


def find_releases(name: str, source: Path) -> Holders:
    """Check every pin of the table for a commit in a clone of Triton with its history.

    Args:
        name: a hash, tag or branch; a pull request (`#4589`, its number or URL), or a release (`3.6.0`).
        source: the clone.

    Raises:
        FactError: there is no clone, it is shallow, or it lacks that commit.
    """
    with git_history.opened(source) as clone:
        git_history.refuse_shallow(clone, source)
        main = git_history.first_branch(clone, *git_history.MAINS)[1]
        commit = _commit(name, clone, main)
        if not commit:
            raise _lacking(name, source)
        rows = [
            (release, where, pin)
            for release in pytorch_pins.releases()
            for where, pin in release.own_pins.items()
            if pin is not None and not pin.same_file
        ]
        named = {name for _, _, pin in rows for name in (pin.commit, *pin.candidates) if name}
        comparison = _Comparison(clone, commit, main, named)
        holdings = tuple(
            Holding(release.version, where, pin.commit, comparison.standing(pin))
            for release, where, pin in rows
        )
        entry = clone.commit(commit)
        return Holders(commit, str(entry.summary), entry.committed_datetime.isoformat(), holdings)


def _commit(name: str, clone: Repo, main: str) -> str:
    """Return the commit of a hash, tag, branch, pull request or release; empty if the clone lacks it."""
    if match := _RELEASE.fullmatch(name):
        return git_history.release_commit(match[1], clone)
    if match := _PULL_REQUEST.fullmatch(name):
        where = (main,) if main else ("--all",)
        merged = clone.git.log(
            # GitHub's squash merge ends the subject with `(#NUMBER)`. `--grep` also matches lines of the
            # body, for example those of a cherry-pick: `own_number` reads the subject only.
            "--no-show-signature",
            "-E",
            f"--grep=\\(#{match[1]}\\)$",
            "--format=%H %s",
            *where,
        )
        lines = (line.split(" ", 1) for line in str(merged).splitlines())
        return next((commit for commit, subject in lines if git_history.own_number(subject) == match[1]), "")
    return git_history.resolve(clone, name)


def _lacking(name: str, source: Path) -> FactError:
    what, fetch = "commit", "git fetch origin, or git fetch origin COMMIT with all 40 digits"
    if _RELEASE.fullmatch(name):
        what, fetch = "release", "git fetch origin --tags, with the branches release/*"
    elif _PULL_REQUEST.fullmatch(name):
        what, fetch = "pull request", "git fetch origin main; one that is not merged has no commit there"
    hints = [f"fetch it: {fetch}", "use another clone: --source PATH"]
    return FactError(f"this clone has no {what} {name!r}", where=source, hints=hints)


class _Comparison:
    """A commit, main and every pin as one graph, with a cache of results, as releases share pins."""

    def __init__(self, clone: Repo, commit: str, main: str, pins: Iterable[str]) -> None:
        # The history is read once, as one graph: a question to git for each of 100 pins would take minutes.
        tips = {commit, *filter(None, (main,)), *pins}
        self._clone = clone
        self._commit = commit
        self._graph = _graph(clone, tips)
        self._main = self._ancestors(main) if main else set()
        self._own: dict[str, str] = {}
        for ancestor in self._main:
            self._own.setdefault(git_history.own_number(self._graph[ancestor].subject), ancestor)
        self._older = self._ancestors(commit)
        self._known: dict[str, Standing] = {}
        self._bodies = _bodies(clone, tips)
        # A copy of a commit cannot be among its own ancestors.
        later = sorted(self._graph.keys() - self._older, key=lambda name: (self._graph[name].committed, name))
        self._picks = tuple(candidate for candidate in later if self._is_pick(candidate))
        same, self._reverse = _same_changes(clone, commit, tips)
        self._same = tuple(candidate for candidate in later if candidate in same)
        self._undoing = {
            candidate: targets
            for candidate in self._graph
            if (targets := self._targets(candidate)) != (frozenset(), frozenset())
        }

        self._reverts = [
            candidate for candidate in self._graph if candidate in self._undoing or candidate in self._reverse
        ]

    def standing(self, pin: Pin) -> Standing:
        """Return the standing of a pin; an unknown pin stays undecided, whatever its candidates are."""
        if pin.commit:
            return self._of(pin.commit)
        if not pin.candidates:
            return Standing("undecided", "the pin is unknown")
        each = {self._of(candidate).holds for candidate in pin.candidates}
        summary = "its unconfirmed candidates do not agree"
        if each in ({True}, {False}):
            summary = f"{'every' if True in each else 'no'} unconfirmed candidate has the commit"
        return Standing("undecided", f"the pin is unknown; {summary}")

    def _of(self, pin: str) -> Standing:
        if pin not in self._known:
            self._known[pin] = self._look(pin)
        return self._known[pin]

    def _look(self, pin: str) -> Standing:
        if pin == self._commit:
            return Standing("at")
        if pin not in self._graph:
            return Standing("undecided", "this clone lacks the pin")
        # The pin is an ancestor of the commit, so it cannot contain the commit nor a copy of it.
        if pin in self._older:
            return Standing("before")
        held = self._ancestors(pin)
        copies = [copy for copy in (self._commit, *self._picks, *self._same) if copy in held]
        if copies:
            return self._in_effect(tuple(dict.fromkeys(copies)), held)
        # No copy is known by message or by changes; what both histories share cannot be one, either.
        return self._apart(held - self._older)

    def _in_effect(self, copies: tuple[str, ...], held: set[str]) -> Standing:
        """Decide whether any copy of the commit is not reverted."""
        reverts = {copy: self._reverted_by(copy, held) for copy in copies}
        if not reverts[copies[0]] and copies[0] == self._commit:
            return Standing("after")
        if unreverted := next((copy for copy in reversed(copies) if not reverts[copy]), ""):
            how = "by its message" if unreverted in self._picks else "by its changes"
            return Standing("cherry-picked", f"as {unreverted[:10]}, {how}")
        for revert in reverts.values():
            if revert not in self._reverse and not _is_sure_revert(subject := self._graph[revert].subject):
                return Standing("undecided", f"{revert[:10]} may revert it: {subject}", doubt=True)
        # The last revert is the one with the most history behind it: dates are the author's clock.
        last = max(reverts.values(), key=lambda name: len(self._ancestors(name)))
        if again := self._namesake(held - self._ancestors(last), copies):
            why = f"{again[:10]} has its title, after {last[:10]} reverted it"
            return Standing("undecided", why, doubt=True)
        return Standing("reverted", f"by {last[:10]}")

    def _namesake(self, later: set[str], copies: tuple[str, ...]) -> str:
        """Return another commit with the title of the requested one; empty if there is none."""
        title = git_history.message_title(self._graph[self._commit].subject)
        others = sorted(later - {*copies})
        return next(
            (other for other in others if git_history.message_title(self._graph[other].subject) == title), ""
        )

    def _ancestors(self, commit: str) -> set[str]:
        """Return the commit and its ancestors."""
        visited: set[str] = set()
        todo = [commit]
        while todo:
            current = todo.pop()
            if current not in visited:
                visited.add(current)
                todo += self._graph[current].parents
        return visited

    def _is_pick(self, commit: str) -> bool:
        """Report whether the messages say that a commit has the change of the requested one."""
        original, possible = (
            git_history.picked_commits(self._bodies.get(name, "")) for name in (self._commit, commit)
        )
        if any(self._commit.startswith(name) for name in possible) or any(
            commit.startswith(name) for name in original
        ):
            return True
        subjects = (self._graph[name].subject for name in (self._commit, commit))
        mine, other = (git_history.reverts(subject) for subject in subjects)
        return mine == other and not self._carries(commit).isdisjoint(self._carries(self._commit))

    def _carries(self, commit: str) -> set[str]:
        """Return the pull requests whose change a commit has, by its subject."""
        subject = self._graph[commit].subject
        own = git_history.own_number(subject)
        others = set(git_history.pull_numbers(subject)) - {own}
        if commit in self._main and not git_history.lands_again(subject):
            return {own} - {""}
        if own in self._own and commit not in self._main:  # from main unchanged, or from another repository
            return (
                {own} if git_history.message_title(self._graph[self._own[own]].subject) in subject else others
            )
        for number in others & self._own.keys():  # the commit does not contain what these merely mention
            others -= set(git_history.pull_numbers(self._graph[self._own[number]].subject)) - {number}
        return ({own} | others) - {""}

    def _apart(self, others: set[str]) -> Standing:
        """Return `apart`, unless one of the other commits may be a reworded and edited copy."""
        requested = self._graph[self._commit]
        strangers = [
            other
            for other in others
            # A copy cannot have been committed before the original was written; an
            # hour, because clocks differ.
            if self._graph[other].committed >= requested.written - _HOUR and self._is_stranger(other)
        ]
        files = _files(self._clone, {self._commit, *strangers})
        mine = files.get(self._commit, set())
        shared = {other: len(mine & files.get(other, set())) for other in strangers}
        likely = max(strangers, key=lambda name: (shared[name], name), default="")
        if not likely or not shared[likely]:
            return Standing("apart", "on another branch")
        subject = self._graph[likely].subject
        why = f"{likely[:10]} changes the same files and names no commit of main: {subject}"
        return Standing("undecided", why, doubt=True)

    def _is_stranger(self, commit: str) -> bool:
        """Report whether a commit is not on main, and its message names none that is."""
        if commit in self._main or len(self._graph[commit].parents) > 1:
            return False
        return not (self._carries(commit) & self._own.keys() or self._bodies.get(commit))

    def _reverted_by(self, commit: str, held: set[str]) -> str:
        """Return a commit that reverts another one and is not reverted itself; empty if there is none."""
        carried = self._carries(commit)
        copy = commit == self._commit or commit in self._same
        for revert in self._reverts:
            # A revert on main says nothing about a release branch that never picked it.
            if revert not in held or revert == commit:
                continue
            commits, pulls = self._undoing.get(revert, (frozenset(), frozenset()))
            named = carried & pulls or any(commit.startswith(name) for name in commits)
            if (
                (named or (copy and revert in self._reverse))
                # A revert that does not follow the commit reverts an earlier landing
                # of the same pull request.
                and commit in self._ancestors(revert)
                # Ends, because each step leads to a commit that has the last one among its ancestors.
                and not self._reverted_by(revert, held)
            ):
                return revert
        return ""

    def _targets(self, commit: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the commits, and the pull requests, that a commit reverts."""
        subject = self._graph[commit].subject
        commits, pulls = git_history.reverted_commits(self._bodies.get(commit, ""))
        often, named = git_history.reverts(subject), git_history.pull_numbers(subject)
        if not often:
            return commits, pulls
        quoted = named[:-1] or named
        # A revert of a revert concerns the last one that it quotes.
        if often > 1:
            quoted = quoted[-1:]
        mains = {number: self._own[number] for number in quoted if number in self._own}
        picked = {
            number
            for number, original in mains.items()
            if git_history.reverts(self._graph[original].subject) >= often  # a pick of that revert
        }
        return commits, pulls | frozenset(quoted) - picked


@dataclass(frozen=True)
class _Commit:
    parents: tuple[str, ...]
    written: int  # author time in seconds, which cherry-picking keeps
    committed: int
    subject: str


def _graph(clone: Repo, tips: Iterable[str]) -> dict[str, _Commit]:
    """Return the commits of the clone that are reachable from those tips."""
    form = f"--format=%H{_FIELD}%P{_FIELD}%at{_FIELD}%ct{_FIELD}%s"
    # A clone lacks some pins, as those of forks: they stay undecided instead of ending the whole question.
    # With log.showSignature in the user's settings, git would print signatures between the records.
    log = clone.git.log("--ignore-missing", "--no-show-signature", form, *tips)
    rows = (line.split(_FIELD, 4) for line in str(log).split("\n") if line)
    return {
        commit: _Commit(tuple(parents.split()), int(written), int(committed), subject)
        for commit, parents, written, committed, subject in rows
    }


def _bodies(clone: Repo, tips: Iterable[str]) -> dict[str, str]:
    """Return the message bodies that name picked or reverted commits."""
    grep = (f"--grep={text}" for text in git_history.REFERENCES)
    log = clone.git.log(
        "--ignore-missing", "--no-show-signature", *grep, f"--format=%H{_FIELD}%b{_RECORD}", *tips
    )
    rows = (record.lstrip("\n").split(_FIELD, 1) for record in str(log).split(_RECORD) if record.strip())
    return dict(rows)


def _files(clone: Repo, commits: Iterable[str]) -> dict[str, set[str]]:
    """Return the files that each commit changes."""
    # `--no-walk`: these commits only, not their ancestors.
    options = "--no-show-signature", "--no-walk", "--no-renames", "--name-only", f"--format={_RECORD}%H"
    log = str(clone.git.log(*options, *commits))
    rows = (record.split("\n") for record in log.split(_RECORD) if record)
    return {commit: changed for commit, *files in rows if (changed := set(filter(None, files)))}


def _is_sure_revert(subject: str) -> bool:
    """Report whether a subject reverts all of a commit; a body also mentions partial reverts."""
    reverting = git_history.reverts(subject) or git_history.lands_again(subject)
    return bool(reverting) and "partial" not in subject.lower()


def undecided(holders: Holders) -> tuple[Holding, ...]:
    """Return the pins that are undecided."""
    return tuple(holding for holding in holders.holdings if holding.standing.holds is None)


# `-R` swaps the path prefixes, which would make it a different change.
_DIFF = ("-p", "--root", "--no-prefix", "--no-renames", "--no-ext-diff", "--no-textconv")


def _same_changes(
    repository: Repo, commit: str, tips: Iterable[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the commits below some tips, and not below a commit's parents, with its change or its reverse.

    Two changes are the same if git gives them one patch id: the same lines, context included, of the same
    files, at any position. Merges and empty commits have no change.

    Args:
        repository: the repository with the commit.
        commit: the commit, 40 digits; not part of the result.
        tips: commits; those missing in the repository are ignored.
    """
    files = str(repository.git.diff_tree("-r", "--root", "--no-commit-id", "--name-only", "-z", commit))
    names = [name for name in files.split("\0") if name]
    if not names:
        return frozenset(), frozenset()
    # A copy can only be outside of what the commit itself stands on, which leaves out most of the history.
    parents = (f"^{parent}" for parent in str(repository.git.rev_parse(f"{commit}^@")).split())
    span = ("--ignore-missing", "--full-history", "--no-merges", *sorted(tips), *parents, "--", *names)
    others = repository.git.rev_list(*span, as_process=True)
    # Piped from process to process: the diffs of years of commits are not held in memory.
    known = _patch_ids(
        repository, repository.git.diff_tree("--stdin", *_DIFF, istream=others.stdout, as_process=True)
    )
    own, back = (
        set(_patch_ids(repository, repository.git.diff_tree(*way, *_DIFF, commit, as_process=True)).values())
        for way in ((), ("-R",))
    )
    same, reverse = (
        frozenset(other for other, id_ in known.items() if other != commit and id_ in ids)
        for ids in (own, back)
    )
    return same, reverse


def _patch_ids(repository: Repo, diffs: object) -> dict[str, str]:
    """Map each commit to the patch id of its change."""
    output = repository.git.patch_id("--stable", istream=diffs.stdout)  # type: ignore[attr-defined]
    return {commit: id_ for id_, commit in (line.split() for line in str(output).splitlines())}


How = Literal["names it", "same pull request", "same change", ""]
_FORMAT = f"--format=%H{_FIELD}%aI{_FIELD}%s{_FIELD}%b{_RECORD}"


@dataclass(frozen=True)
class Pick:
    """A commit of a release branch.

    Attributes:
        commit: the commit, 40 hex digits.
        date: the author's date, ISO 8601.
        subject: the first line of its message.
        original: the picked commit of main; empty if it is unknown, or if there is none.
        how: the evidence for it; `same change` alone shows only that main has such a commit.
    """

    commit: str
    date: str
    subject: str
    original: str = ""
    how: How = ""


@dataclass(frozen=True)
class Picks:
    """The commits of a release branch.

    Attributes:
        branch: its name in the clone.
        tip: its last commit.
        main: the name in the clone of the branch that it was cut from.
        point: the last common commit.
        picks: its commits since then, oldest first.
    """

    branch: str
    tip: str
    main: str
    point: str
    picks: tuple[Pick, ...]

    @property
    def only_here(self) -> tuple[Pick, ...]:
        """The commits without a known counterpart on main."""
        return tuple(pick for pick in self.picks if not pick.how)


def find_picks(name: str, source: Path) -> Picks:
    """List the commits of a branch since it was cut.

    Args:
        name: a branch, or a tag or commit on it: `release/3.8.x`, `3.8.x`, `v3.8.1`.
        source: clone of Triton, with main.

    Raises:
        FactError: there is no clone, it is shallow, or it lacks the branch or main.
    """
    with git_history.opened(source) as clone:
        git_history.refuse_shallow(clone, source)
        names = name, f"upstream/{name}", *git_history.branch_names(name)
        branch, tip = git_history.first_branch(clone, *names)
        if not tip:
            hints = ["git fetch --all --tags", "use another clone: --source PATH"]
            raise FactError(f"this clone has no branch, tag or commit {name!r}", where=source, hints=hints)
        # In the clone of a fork, origin/main may be months old: MAINS has upstream/main first.
        main, head = git_history.first_branch(clone, *git_history.MAINS)
        bases = clone.merge_base(tip, head) if head else ()
        if not bases:
            what = f"{branch} and {main} have no common history" if head else "this clone has no main"
            raise FactError(what, where=source, hints=["git fetch origin main"])
        point = str(bases[0])
        return Picks(branch, tip, main, point, tuple(_picks(clone, point, tip, head)))


def _picks(clone: Repo, point: str, tip: str, main: str) -> list[Pick]:
    on_main = _log(clone, f"{point}..{main}")
    by_pull = _by_pull(on_main)
    # `git cherry` compares patch ids, and marks with - what main has, too. It does not say as which
    # commit.
    cherry = (line.split(maxsplit=1) for line in clone.git.cherry(main, tip, point).splitlines())
    same = {commit for sign, commit in cherry if sign == "-"}
    hashes = [commit for commit, *_ in on_main]

    def original(commit: str, subject: str, body: str) -> tuple[str, How]:
        for text in git_history.picked_commits(body):
            if candidate_match := next((candidate for candidate in hashes if candidate.startswith(text)), ""):
                return candidate_match, "names it"
        keys = ((number, git_history.reverts(subject)) for number in git_history.pull_numbers(subject))
        known = next((by_pull[key] for key in keys if key in by_pull), "")
        if commit in same:
            return known, "same change"
        return known, "same pull request" if known else ""

    return [
        Pick(commit, date, subject, *original(commit, subject, body))
        for commit, date, subject, body in _log(clone, "--first-parent", "--reverse", f"{point}..{tip}")
    ]


def _by_pull(commits: list[list[str]]) -> dict[tuple[str, int], str]:
    """Return the commits by pull request number and number of reverts; mentions count as a fallback."""
    commit_of: dict[tuple[str, int], str] = {}
    for commit, _, subject, _ in commits:
        for number in git_history.pull_numbers(subject):
            commit_of.setdefault((number, git_history.reverts(subject)), commit)
    own = ((commit, subject, git_history.pull_numbers(subject)) for commit, _, subject, _ in commits)
    commit_of |= {
        (numbers[-1], git_history.reverts(subject)): commit for commit, subject, numbers in own if numbers
    }
    return commit_of


def _log(clone: Repo, *span: str) -> list[list[str]]:
    """Return commit, date, subject and body of each commit."""
    output = str(clone.git.log("--no-show-signature", _FORMAT, *span))
    return [record.lstrip("\n").split(_FIELD, 3) for record in output.split(_RECORD) if record.strip()]
