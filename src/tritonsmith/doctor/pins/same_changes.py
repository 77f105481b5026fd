"""Commits that make the same change as another one, or its reverse, whatever their messages are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git import Repo

# `-R` swaps the path prefixes, which would make it a different change.
_DIFF = ("-p", "--root", "--no-prefix", "--no-renames", "--no-ext-diff", "--no-textconv")


def find(repository: Repo, commit: str, tips: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the commits below some tips, and not below a commit's parents, with its change or its reverse.

    Two changes are the same if git gives them one patch id: the same lines, context included, of the same
    files, at any position. Merges and empty commits have no change.

    Args:
        repository: repository with the commit.
        commit: 40 digits; not part of the result.
        tips: commits; those missing in the repository are ignored.
    """
    files = str(repository.git.diff_tree("-r", "--root", "--no-commit-id", "--name-only", "-z", commit))
    names = [name for name in files.split("\0") if name]
    if not names:
        return frozenset(), frozenset()
    parents = (f"^{parent}" for parent in str(repository.git.rev_parse(f"{commit}^@")).split())
    span = ("--ignore-missing", "--full-history", "--no-merges", *sorted(tips), *parents, "--", *names)
    others = repository.git.rev_list(*span, as_process=True)
    known = _ids(
        repository, repository.git.diff_tree("--stdin", *_DIFF, istream=others.stdout, as_process=True)
    )
    own, back = (
        set(_ids(repository, repository.git.diff_tree(*way, *_DIFF, commit, as_process=True)).values())
        for way in ((), ("-R",))
    )
    same, reverse = (
        frozenset(other for other, id_ in known.items() if other != commit and id_ in ids)
        for ids in (own, back)
    )
    return same, reverse


def _ids(repository: Repo, diffs: object) -> dict[str, str]:
    """Map each commit to the patch id of its change."""
    output = repository.git.patch_id("--stable", istream=diffs.stdout)  # type: ignore[attr-defined]
    return {commit: id_ for id_, commit in (line.split() for line in str(output).splitlines())}
