"""Steps that merge files into a checkout and keep these files out of git's view."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build.editors import jsonc
from tritonsmith.build.editors.jsonc import SettingConflict
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Patch, Step, Write, digest
from tritonsmith.core.plan.steps.files import check_unlinked
from tritonsmith.facts import git

_PHASE = "editor"
_EXCLUDE = "info/exclude"


@dataclass(frozen=True)
class MergedFile:
    """A file of an editor.

    Attributes:
        name: path in the checkout.
        before: previous text; None if the file is new.
        after: new text.
        conflicts: settings that keep their other values.
    """

    name: str
    before: str | None
    after: str
    conflicts: tuple[SettingConflict, ...] = ()

    @property
    def change(self) -> str:
        """The kind of change, in a word."""
        return "new" if self.before is None else "same" if self.before == self.after else "changed"


def read(root: Path, name: str) -> str | None:
    """Return the exact text of a file of the checkout; None if it does not exist.

    Raises:
        OwnershipError: the file is a link.
    """
    check_unlinked(root, name)
    path = root / name
    return untrusted.exact_text(path) if path.exists() else None


def settings(
    root: Path, name: str, wanted: Mapping[str, Any], united: tuple[str, ...] = (), *, force: bool
) -> MergedFile:
    """Merge settings into a file of JSON with comments.

    Args:
        root: the checkout.
        name: path of the file in it.
        wanted: settings to merge.
        united: keys of lists of words that are extended.
        force: replace values that differ.

    Raises:
        FactError: the file is not JSON with comments.
        OwnershipError: the file is a link.
    """
    before = read(root, name)
    try:
        after, conflicts = jsonc.merge(before or "", wanted, united=united, kept=("version",), force=force)
    except ValueError as error:
        hints = ["correct it, or move it away and a new one is written"]
        raise FactError(
            "cannot merge into this file: it is not JSON with comments",
            where=root / name,
            why=str(error),
            hints=hints,
        ) from error
    return MergedFile(name, before, after, conflicts)


def block(root: Path, name: str, text: str, comment: str, *, alone: bool = False, force: bool) -> MergedFile:
    """Put the tool's own lines into a file, between two marker lines, after the user's lines.

    The first marker has a checksum of the lines: if the user changed them they stay, unless forced.

    Args:
        root: the checkout.
        name: path of the file in it.
        text: the lines.
        comment: comment prefix of the file's language.
        alone: the file can hold nothing else.
        force: replace changed lines; if the lines are alone in the file, replace all of it.

    Raises:
        OwnershipError: the file is a link.
    """
    before = read(root, name)
    old = before or ""
    end = jsonc.line_end(old)
    marked = f"{comment} tritonsmith {digest(text)}\n{text}{comment} tritonsmith ends\n".replace("\n", end)
    mark = re.escape(f"{comment} tritonsmith ")
    match = re.search(rf"^{mark}([0-9a-f]{{16}})\r?\n(.*?)^{mark}ends\r?\n", old, re.MULTILINE | re.DOTALL)
    changed = alone and bool(old.strip())
    if match:
        # By the checksum in the marker and not by comparison with today's text: an older version of this
        # tool wrote other lines, which may be replaced.
        changed = digest(match[2].replace("\r\n", "\n")) != match[1]
    if changed and not force:
        return MergedFile(name, before, old, (SettingConflict("its text", "as it is", "another one"),))
    if match:
        return MergedFile(name, before, old[: match.start()] + marked + old[match.end() :])
    start = "" if alone else old if not old or old.endswith("\n") else f"{old}{end}"
    return MergedFile(name, before, start + marked)


def steps(root: Path, files: tuple[MergedFile, ...]) -> tuple[Step, ...]:
    """Return the steps that write the changes and hide the files from git."""
    writes: list[Step] = []
    for file in files:
        if file.before is None:
            writes.append(Write(root / file.name, file.after, phase=_PHASE))
        elif file.before != file.after:
            writes.append(Patch(root, file.name, file.before, file.after, phase=_PHASE))
    return (*writes, *_hidden(root, files))


def excluded(root: Path) -> Path | None:
    """Return the file of names that git ignores here without a commit; None outside git."""
    folder, common = git.git_folder(root), git.common_folder(root)
    if folder is None or common is None:
        return None
    # A worktree's folder is below the common one; git never makes a pair that is related otherwise,
    # an attacker's archive may.
    theirs = folder != common and untrusted.real(folder).parent != common / "worktrees"
    return None if theirs else common / _EXCLUDE


def _hidden(root: Path, files: tuple[MergedFile, ...]) -> tuple[Step, ...]:
    path = excluded(root)
    if path is None:
        return ()
    before = untrusted.exact_text(path) if path.exists() else ""
    end = jsonc.line_end(before)
    known = {line.rstrip("\r") for line in before.split("\n")}
    new = [f"/{file.name}{end}" for file in files if f"/{file.name}" not in known]
    if not new:
        return ()
    common = path.parents[1]
    check_unlinked(common, _EXCLUDE)
    start = before if not before or before.endswith("\n") else f"{before}{end}"
    after = start + "".join(new)
    if path.exists():
        return (Patch(common, _EXCLUDE, before, after, phase=_PHASE),)
    return (Write(path, after, phase=_PHASE),)
