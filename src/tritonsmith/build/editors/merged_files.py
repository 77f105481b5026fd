"""Steps that merge files into a checkout, and keep these files out of git's view."""

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
from tritonsmith.core.plan.steps.patch import check_unlinked
from tritonsmith.facts import git

_PHASE = "editor"
_EXCLUDE = "info/exclude"


@dataclass(frozen=True)
class MergedFile:
    """A file of an editor.

    Attributes:
        name: in the checkout.
        before: its text; None if it is new.
        after: its new text.
        conflicts: settings that have other values and keep them.
    """

    name: str
    before: str | None
    after: str
    conflicts: tuple[SettingConflict, ...] = ()

    @property
    def change(self) -> str:
        """What happens to it, in a word."""
        return "new" if self.before is None else "same" if self.before == self.after else "changed"


def read(root: Path, name: str) -> str | None:
    """The text of a file of the checkout, with all of its bytes; None if it is not there.

    Raises:
        OwnershipError: it is a link.
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
        name: of the file in it.
        wanted: settings.
        united: lists of words that become longer.
        force: replace other values.

    Raises:
        FactError: the file is something else.
        OwnershipError: it is a link.
    """
    before = read(root, name)
    try:
        after, conflicts = jsonc.merge(before or "", wanted, united=united, kept=("version",), force=force)
    except ValueError as error:
        hints = ["correct it, or move it away: then a new one is written"]
        raise FactError(
            "cannot merge into this file: it is no JSON with comments",
            where=root / name,
            why=str(error),
            hints=hints,
        ) from error
    return MergedFile(name, before, after, conflicts)


def block(root: Path, name: str, text: str, comment: str, *, alone: bool = False, force: bool) -> MergedFile:
    """Put lines of the tool's own into a file, between two lines that say so, behind those of the user.

    The first of the two has a sum of what is between them: who changed that keeps it, unless forced.

    Args:
        root: the checkout.
        name: of the file in it.
        text: the lines.
        comment: how a comment begins there.
        alone: nothing else can be in the file.
        force: replace what was changed; of a file that has these lines alone, all of it.

    Raises:
        OwnershipError: it is a link.
    """
    before = read(root, name)
    old = before or ""
    end = jsonc.line_end(old)
    made = f"{comment} tritonsmith {digest(text)}\n{text}{comment} tritonsmith ends\n".replace("\n", end)
    mark = re.escape(f"{comment} tritonsmith ")
    match = re.search(rf"^{mark}([0-9a-f]{{16}})\r?\n(.*?)^{mark}ends\r?\n", old, re.MULTILINE | re.DOTALL)
    changed = alone and bool(old.strip())
    if match:
        changed = digest(match[2].replace("\r\n", "\n")) != match[1]
    if changed and not force:
        return MergedFile(name, before, old, (SettingConflict("its text", "as it is", "another one"),))
    if match:
        return MergedFile(name, before, old[: match.start()] + made + old[match.end() :])
    start = "" if alone else old if not old or old.endswith("\n") else f"{old}{end}"
    return MergedFile(name, before, start + made)


def steps(root: Path, files: tuple[MergedFile, ...]) -> tuple[Step, ...]:
    """Steps that write what is new in these files, and hide the files from git."""
    made: list[Step] = []
    for one in files:
        if one.before is None:
            made.append(Write(root / one.name, one.after, phase=_PHASE))
        elif one.before != one.after:
            made.append(Patch(root, one.name, one.before, one.after, phase=_PHASE))
    return (*made, *_hidden(root, files))


def excluded(root: Path) -> Path | None:
    """The file of names that git passes over here, which is no part of any commit; None outside git."""
    folder, common = git.git_folder(root), git.common_folder(root)
    if folder is None or common is None:
        return None
    theirs = folder != common and untrusted.real(folder).parent != common / "worktrees"  # git makes no such
    return None if theirs else common / _EXCLUDE


def _hidden(root: Path, files: tuple[MergedFile, ...]) -> tuple[Step, ...]:
    path = excluded(root)
    if path is None:
        return ()
    before = untrusted.exact_text(path) if path.exists() else ""
    end = jsonc.line_end(before)
    known = {line.rstrip("\r") for line in before.split("\n")}
    new = [f"/{one.name}{end}" for one in files if f"/{one.name}" not in known]
    if not new:
        return ()
    common = path.parents[1]
    check_unlinked(common, _EXCLUDE)
    start = before if not before or before.endswith("\n") else f"{before}{end}"
    after = start + "".join(new)
    if path.exists():
        return (Patch(common, _EXCLUDE, before, after, phase=_PHASE),)
    return (Write(path, after, phase=_PHASE),)
