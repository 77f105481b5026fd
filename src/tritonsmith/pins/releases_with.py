"""Which PyTorch releases have a Triton commit, by the history of a clone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tritonsmith.errors import FactError
from tritonsmith.facts import git_history, pytorch_pins
from tritonsmith.facts.pytorch_pins import Pin

if TYPE_CHECKING:
    from git import Repo

Relation = Literal["at", "after", "before", "cherry-picked", "apart", "undecided"]
_HOLDS: dict[Relation, bool | None] = {
    "at": True,
    "after": True,
    "cherry-picked": True,
    "before": False,
    "apart": False,
    "undecided": None,
}
_PULL_REQUEST = re.compile(r"\(#(\d+)\)\s*$")
_FIELD = "\x1f"  # no message has it


@dataclass(frozen=True)
class Standing:
    """The position of a pin relative to the commit.

    Attributes:
        relation: the pin is the commit, comes after or before it, has it cherry-picked, lies on another
            branch that does not have it, or is undecided.
        why: the reason, where it is not obvious.
    """

    relation: Relation
    why: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the pin has the commit; None if undecided."""
        return _HOLDS[self.relation]


@dataclass(frozen=True)
class Holding:
    """One pin of one release.

    Attributes:
        release: of PyTorch.
        where: `cuda`, `rocm`, `xpu` for its pin files, `wheel` for the published wheel.
        pin: commit of Triton; empty if unknown.
        standing: the pin's position.
    """

    release: str
    where: str
    pin: str
    standing: Standing


@dataclass(frozen=True)
class Holders:
    """The answer.

    Attributes:
        commit: of Triton, 40 digits.
        subject: first line of its message.
        committed: its date, ISO 8601.
        holdings: every pin of every release.
    """

    commit: str
    subject: str
    committed: str
    holdings: tuple[Holding, ...]


def find(name: str, source: Path) -> Holders:
    """Check every pin of the table for a commit (hash, tag or branch) in a clone of Triton with its history.

    Raises:
        FactError: no clone, a shallow one, or one without that commit.
    """
    with git_history.opened(source) as clone:
        if git_history.is_shallow(clone):
            raise FactError(
                "this clone is shallow, so its history is incomplete",
                where=source,
                hints=["fetch the rest: git fetch --unshallow", "or use another clone: --source PATH"],
            )
        commit = git_history.resolve(clone, name)
        if not commit:
            raise FactError(
                f"this clone has no commit {name!r}",
                where=source,
                hints=[
                    "fetch it: git fetch origin, or git fetch origin COMMIT with all 40 digits",
                    "use another clone: --source PATH",
                ],
            )
        rows = [
            (release, where, pin)
            for release in pytorch_pins.releases()
            for where, pin in release.own_pins.items()
            if pin is not None and not pin.same_file
        ]
        named = {name for _, _, pin in rows for name in (pin.commit, *pin.candidates) if name}
        asked = _Asked(clone, commit, named)
        holdings = tuple(
            Holding(release.version, where, pin.commit, asked.standing(pin)) for release, where, pin in rows
        )
        found = clone.commit(commit)
        return Holders(commit, str(found.summary), found.committed_datetime.isoformat(), holdings)


class _Asked:
    """A commit, the history of every pin as one graph, and a cache of results: releases share pins."""

    def __init__(self, clone: Repo, commit: str, pins: Iterable[str]) -> None:
        self._commit = commit
        self._graph = _graph(clone, {commit, *pins})
        self._older = self._ancestors(commit)
        self._known: dict[str, Standing] = {}
        grep = f"--grep=cherry picked from commit {commit}"
        self._picked_by_hash = set(str(clone.git.rev_list("--all", grep)).split())
        match = _PULL_REQUEST.search(self._graph[commit].subject)
        self._pull_request = re.compile(rf"#{match[1]}\b") if match else None

    def standing(self, pin: Pin) -> Standing:
        """Position of a pin; an unknown pin stays undecided, whatever its candidates are."""
        if pin.commit:
            return self._of(pin.commit)
        if not pin.candidates:
            return Standing("undecided", "the pin is unknown")
        each = {self._of(candidate).holds for candidate in pin.candidates}
        said = "its unconfirmed candidates do not agree"
        if each in ({True}, {False}):
            said = f"{'every' if True in each else 'no'} unconfirmed candidate has the commit"
        return Standing("undecided", f"the pin is unknown; {said}")

    def _of(self, pin: str) -> Standing:
        if pin not in self._known:
            self._known[pin] = self._look(pin)
        return self._known[pin]

    def _look(self, pin: str) -> Standing:
        if pin == self._commit:
            return Standing("at")
        if pin not in self._graph:
            return Standing("undecided", "this clone lacks the pin")
        if pin in self._older:
            return Standing("before")
        held = self._ancestors(pin)
        if self._commit in held:
            return Standing("after")
        if picked := next(filter(self._names_it, held - self._older), ""):
            return Standing("cherry-picked", f"as {picked[:10]}, by its message")
        return Standing("apart", "on another branch")

    def _ancestors(self, commit: str) -> set[str]:
        """The commit and everything before it."""
        seen: set[str] = set()
        todo = [commit]
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += self._graph[one].parents
        return seen

    def _names_it(self, commit: str) -> bool:
        """Whether a commit's message marks it as a cherry-pick of the requested one."""
        if commit in self._picked_by_hash:
            return True
        if self._pull_request is None:
            return False
        subject, asked = self._graph[commit].subject, self._graph[self._commit].subject
        reverts = ("revert" in subject.lower()) != ("revert" in asked.lower())
        return not reverts and self._pull_request.search(subject) is not None


@dataclass(frozen=True)
class _Commit:
    parents: tuple[str, ...]
    subject: str


def _graph(clone: Repo, tips: Iterable[str]) -> dict[str, _Commit]:
    """Every commit below those tips that the clone has."""
    log = clone.git.log("--ignore-missing", "--no-show-signature", f"--format=%H{_FIELD}%P{_FIELD}%s", *tips)
    rows = (line.split(_FIELD, 2) for line in str(log).split("\n") if line)
    return {commit: _Commit(tuple(parents.split()), subject) for commit, parents, subject in rows}


def undecided(found: Holders) -> tuple[Holding, ...]:
    """The pins that are undecided."""
    return tuple(one for one in found.holdings if one.standing.holds is None)
