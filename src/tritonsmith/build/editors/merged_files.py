"""Merge the tool's settings into files of a checkout, and keep these files out of git's view.

JSON with comments, as VS Code reads it, gets only new text inserted, so nothing that the user wrote changes.
Two entries of a list of objects are the same if their `name`, `label` or `id` is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Patch, Step, Write, digest
from tritonsmith.core.plan.steps.files import check_unlinked
from tritonsmith.facts import git

_SKIPPED = re.compile(r"(?:\s+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_INDENT = "  "
_DEEPEST = 100
_IDENTITIES = ("name", "label", "id")
_PHASE = "editor"
_EXCLUDE = "info/exclude"


@dataclass(frozen=True)
class JsonNode:
    """A value and its place in the text.

    Attributes:
        value: the value, with everything in it.
        start: offset of its text.
        end: offset after its text.
        members: members of an object, by key.
        items: items of a list.
    """

    value: Any
    start: int
    end: int
    members: dict[str, JsonNode] = field(default_factory=dict)
    items: tuple[JsonNode, ...] = ()

    @property
    def last(self) -> JsonNode | None:
        """The last value in it."""
        inside = (*self.members.values(), *self.items)
        return max(inside, key=lambda node: node.end, default=None)


@dataclass(frozen=True)
class SettingConflict:
    """A setting that has another value.

    Attributes:
        path: `configurations/triton-opt (gdb)/program`.
        value: the user's value.
        ours: the value to merge.
    """

    path: str
    value: Any
    ours: Any


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def parse(text: str) -> JsonNode:
    """Parse JSON with comments and trailing commas.

    Raises:
        ValueError: the text is something else; the message has the line.
    """
    # Editors on Windows write a byte order mark.
    node = _value(text, _skip(text, len(text) - len(text.removeprefix("\ufeff"))), 0)
    rest = _skip(text, node.end)
    if rest < len(text):
        raise _unexpected(text, rest)
    return node


def line_end(text: str) -> str:
    """Return the line ending of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def merge(
    text: str,
    ours: Mapping[str, Any],
    *,
    united: Collection[str] = (),
    kept: Collection[str] = (),
    force: bool = False,
) -> tuple[str, tuple[SettingConflict, ...]]:
    """Merge settings into a text; conflicting settings are left alone unless `force`.

    Args:
        text: content of the file; empty for a new one.
        ours: settings to merge.
        united: keys of lists of words that are extended; other lists are replaced as values.
        kept: keys whose values in the file are valid too, such as its version.
        force: replace values that differ.

    Raises:
        ValueError: the text is not JSON with comments, or is not an object.
    """
    if not text.strip():
        return json.dumps(ours, indent=_INDENT) + "\n", ()
    # Our own parser, as the offset of each value is needed, which json.loads does not give, and comments have
    # to survive.
    node = parse(text)
    if not isinstance(node.value, dict):
        raise ValueError("line 1: not an object")  # noqa: TRY004 - the text is wrong, not the caller
    ours = {key: value for key, value in ours.items() if key not in kept or key not in node.members}
    edits: list[_Edit] = []
    conflicts: list[SettingConflict] = []
    for change in _merged(text, node, ours, (), united):
        if isinstance(change, _Edit):
            edits.append(change)
        elif force:
            edits.append(
                _Edit(change[1].start, change[1].end, _written(change[0].ours, _indent(text, change[1])))
            )
        else:
            conflicts.append(change[0])
    done, pieces, end = 0, [], line_end(text)
    # The sort is stable: of two edits at one offset, the comma stays the first.
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += [text[done : edit.start], edit.text.replace("\n", end)]
        done = edit.end
    return "".join((*pieces, text[done:])), tuple(conflicts)


def _merged(
    text: str, node: JsonNode, ours: Any, path: tuple[str, ...], united: Collection[str]
) -> Iterator[_Edit | tuple[SettingConflict, JsonNode]]:
    if isinstance(ours, Mapping) and isinstance(node.value, dict):
        new = []
        for key, value in ours.items():
            if key in node.members:
                yield from _merged(text, node.members[key], value, (*path, key), united)
            else:
                new.append((f"{json.dumps(key)}: ", value))
        yield from _appended(text, node, new)
    elif isinstance(ours, list) and isinstance(node.value, list) and _is_extended(path, ours, united):
        named = {_identity(item.value): item for item in node.items}
        new = []
        for value in ours:
            known = named.get(_identity(value))
            if known is None:
                new.append(("", value))
            elif isinstance(value, Mapping):
                yield from _merged(text, known, value, (*path, _identity(value)), united)
        yield from _appended(text, node, new)
    # The user's value wins, and the difference is reported: a setting may have been changed for a reason that
    # is not in the file.
    elif node.value != ours:
        yield SettingConflict("/".join(path), node.value, ours), node


def _is_extended(path: tuple[str, ...], ours: list[Any], united: Collection[str]) -> bool:
    # A list of words is a value as a whole, such as the arguments of a program: it must not grow.
    objects = all(isinstance(item, Mapping) and _identity(item) for item in ours)
    return objects or bool(path and path[-1] in united)


def _identity(value: Any) -> str:
    """Return the key by which two entries of a list are the same."""
    if isinstance(value, Mapping):
        return next((f"{value[key]}" for key in _IDENTITIES if key in value), "")
    return json.dumps(value)


def _appended(text: str, node: JsonNode, new: list[tuple[str, Any]]) -> Iterator[_Edit]:
    """Append values to an object or a list, after the comments at its end."""
    if not new:
        return
    last, close = node.last, node.end - 1
    outer = _indent(text, node)
    inner = _indent(text, last) if last and _begins_line(text, last) else outer + _INDENT
    # The comma goes right after the last value: after a line comment it would be a part of the comment.
    if last and text[_skip(text, last.end)] != ",":
        yield _Edit(last.end, last.end, ",")
    # Behind the comments at the end of the list: they belong to what stands before them.
    behind = len(text[:close].rstrip())
    lines = ",".join(f"\n{inner}{key}{_written(value, inner)}" for key, value in new)
    yield _Edit(behind, behind, lines + ("" if "\n" in text[behind:close] else f"\n{outer}"))


def _written(value: Any, indent: str) -> str:
    return json.dumps(value, indent=_INDENT).replace("\n", f"\n{indent}")


def _indent(text: str, node: JsonNode) -> str:
    """Return the indentation of the line on which a value begins."""
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    return line[: len(line) - len(line.lstrip())]


def _begins_line(text: str, node: JsonNode) -> bool:
    """Report whether a value, with its key, begins its line."""
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start].strip()
    return not line or _STRING.match(line) is not None


def _value(text: str, at: int, depth: int) -> JsonNode:
    # A file of brackets would exhaust the stack.
    if depth > _DEEPEST:
        raise _unexpected(text, at)
    if text[at : at + 1] in ("{", "["):
        return _container(text, at, depth)
    match = _STRING.match(text, at) or _SCALAR.match(text, at)
    if match is None:
        raise _unexpected(text, at)
    try:
        # VS Code accepts raw tabs in strings, which strict JSON forbids.
        value = json.loads(match[0], strict=False)
    except ValueError:
        raise _unexpected(text, at) from None
    return JsonNode(value, at, match.end())


def _container(text: str, start: int, depth: int) -> JsonNode:
    """Parse an object or a list."""
    close = {"{": "}", "[": "]"}[text[start]]
    members: dict[str, JsonNode] = {}
    items: list[JsonNode] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != close:
        if close == "}":
            match = _STRING.match(text, at)
            colon = _skip(text, match.end()) if match else at
            if match is None or text[colon : colon + 1] != ":":
                raise _unexpected(text, colon)
            node = _value(text, _skip(text, colon + 1), depth + 1)
            members[json.loads(match[0], strict=False)] = node
        else:
            node = _value(text, at, depth + 1)
            items.append(node)
        at = _skip(text, node.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise _unexpected(text, at)
    value = (
        {key: child.value for key, child in members.items()}
        if close == "}"
        else [child.value for child in items]
    )
    return JsonNode(value, start, at + 1, members, tuple(items))


def _skip(text: str, at: int) -> int:
    """Return the offset after blanks and comments."""
    match = _SKIPPED.match(text, at)
    return match.end() if match else at


def _unexpected(text: str, at: int) -> ValueError:
    line = text.count("\n", 0, at) + 1
    return ValueError(f"line {line}: unexpected {text[at : at + 10].strip()!r}")


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
    root: Path, name: str, ours: Mapping[str, Any], united: tuple[str, ...] = (), *, force: bool
) -> MergedFile:
    """Merge settings into a file of JSON with comments.

    Args:
        root: the checkout.
        name: path of the file in it.
        ours: settings to merge.
        united: keys of lists of words that are extended.
        force: replace values that differ.

    Raises:
        FactError: the file is not JSON with comments.
        OwnershipError: the file is a link.
    """
    before = read(root, name)
    try:
        after, conflicts = merge(before or "", ours, united=united, kept=("version",), force=force)
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
    end = line_end(old)
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
            # A patch, which is refused if the user has saved the file since it was read.
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
    # Not in `.gitignore`, which belongs to the project and would show up as a change.
    path = excluded(root)
    if path is None:
        return ()
    before = untrusted.exact_text(path) if path.exists() else ""
    end = line_end(before)
    known = {line.rstrip("\r") for line in before.split("\n")}
    # The slash anchors the pattern: without it a file of that name would be hidden in each folder.
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
