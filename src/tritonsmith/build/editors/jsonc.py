"""Merge settings into JSON with comments, as VS Code reads it, without changing what the user wrote.

Only new text is inserted. Two entries of a list of objects are the same if their `name`, `label` or `id` is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_SKIPPED = re.compile(r"(?:\s+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_INDENT = "  "
_DEEPEST = 100
_IDENTITIES = ("name", "label", "id")


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
        wanted: the value to merge.
    """

    path: str
    value: Any
    wanted: Any


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
    wanted: Mapping[str, Any],
    *,
    united: Collection[str] = (),
    kept: Collection[str] = (),
    force: bool = False,
) -> tuple[str, tuple[SettingConflict, ...]]:
    """Merge settings into a text; conflicting settings are left alone unless `force`.

    Args:
        text: content of the file; empty for a new one.
        wanted: settings to merge.
        united: keys of lists of words that are extended; other lists are replaced as values.
        kept: keys whose values in the file are valid too, such as its version.
        force: replace values that differ.

    Raises:
        ValueError: the text is not JSON with comments, or is not an object.
    """
    if not text.strip():
        return json.dumps(wanted, indent=_INDENT) + "\n", ()
    node = parse(text)
    if not isinstance(node.value, dict):
        raise ValueError("line 1: not an object")  # noqa: TRY004 - the text is wrong, not the caller
    wanted = {key: value for key, value in wanted.items() if key not in kept or key not in node.members}
    edits: list[_Edit] = []
    conflicts: list[SettingConflict] = []
    for change in _merged(text, node, wanted, (), united):
        if isinstance(change, _Edit):
            edits.append(change)
        elif force:
            edits.append(
                _Edit(change[1].start, change[1].end, _written(change[0].wanted, _indent(text, change[1])))
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
    text: str, node: JsonNode, wanted: Any, path: tuple[str, ...], united: Collection[str]
) -> Iterator[_Edit | tuple[SettingConflict, JsonNode]]:
    if isinstance(wanted, Mapping) and isinstance(node.value, dict):
        new = []
        for key, value in wanted.items():
            if key in node.members:
                yield from _merged(text, node.members[key], value, (*path, key), united)
            else:
                new.append((f"{json.dumps(key)}: ", value))
        yield from _appended(text, node, new)
    elif isinstance(wanted, list) and isinstance(node.value, list) and _grows(path, wanted, united):
        named = {_identity(item.value): item for item in node.items}
        new = []
        for value in wanted:
            known = named.get(_identity(value))
            if known is None:
                new.append(("", value))
            elif isinstance(value, Mapping):
                yield from _merged(text, known, value, (*path, _identity(value)), united)
        yield from _appended(text, node, new)
    elif node.value != wanted:
        yield SettingConflict("/".join(path), node.value, wanted), node


def _grows(path: tuple[str, ...], wanted: list[Any], united: Collection[str]) -> bool:
    objects = all(isinstance(item, Mapping) and _identity(item) for item in wanted)
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
    if depth > _DEEPEST:
        raise _unexpected(text, at)
    if text[at : at + 1] in ("{", "["):
        return _container(text, at, depth)
    match = _STRING.match(text, at) or _SCALAR.match(text, at)
    if match is None:
        raise _unexpected(text, at)
    try:
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
