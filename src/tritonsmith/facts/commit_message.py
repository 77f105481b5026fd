"""Parse the references in a Triton commit's message: pull requests, picks and reverts."""

from __future__ import annotations

import re

_OWN = re.compile(r"\(#(\d+)\)\s*$")
_NUMBER = re.compile(r"#(\d+)")
_REVERT = re.compile(r"\brevert", re.IGNORECASE)
_AGAIN = re.compile(r"\bre-?(?:land|apply|introduc)", re.IGNORECASE)
_PICKED = re.compile(r"cherry.picked from commit ([0-9a-f]{7,40})")
_REVERTED = re.compile(r"\breverts\s+(?:commit\s+([0-9a-f]{7,40})|(?:[\w.-]+/[\w.-]+)?#(\d+))", re.IGNORECASE)

TELLS = ("cherry.picked from commit", "[Rr]everts ")  # for `git log --grep`: bodies that say anything here


def own(subject: str) -> str:
    """Return the pull request that a subject ends with; empty if there is none."""
    match = _OWN.search(subject)
    return match[1] if match else ""


def title(subject: str) -> str:
    """Return a subject without the pull request that it ends with."""
    return _OWN.sub("", subject).strip()


def numbers(subject: str) -> tuple[str, ...]:
    """Return every pull request that a subject names."""
    return tuple(_NUMBER.findall(subject))


def reverts(subject: str) -> int:
    """Return how often a subject says revert: twice for the revert of a revert."""
    return len(_REVERT.findall(subject))


def lands_again(subject: str) -> bool:
    """Return whether a subject says that it lands a change once more."""
    return _AGAIN.search(subject) is not None


def picked(body: str) -> tuple[str, ...]:
    """Return the commits that it was picked from, as `git cherry-pick -x` writes them."""
    return tuple(_PICKED.findall(body))


def reverted(body: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the commits, and the pull requests, that a body says it reverts."""
    references = _REVERTED.findall(body)
    return frozenset(commit for commit, _ in references if commit), frozenset(
        number for _, number in references if number
    )
