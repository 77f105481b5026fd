"""The commits of a release branch since its branch point on main, and their counterparts on main."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tritonsmith.core.errors import FactError
from tritonsmith.facts import git_history

if TYPE_CHECKING:
    from git import Repo

How = Literal["names it", "same pull request", "same change", ""]

_FIELD, _RECORD = "\x1f", "\x1e"  # these never occur in messages
_FORMAT = f"--format=%H{_FIELD}%aI{_FIELD}%s{_FIELD}%b{_RECORD}"


@dataclass(frozen=True)
class Pick:
    """A commit of a release branch.

    Attributes:
        commit: 40 hex digits.
        date: author date, ISO 8601.
        subject: first line of its message.
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
        main: name in the clone of the branch that it was cut from.
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


def find(name: str, source: Path) -> Picks:
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
