"""Changes in a CMake call since its last run, as recorded in the initial-cache file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tritonsmith.build.cmake import CACHE_FILE
from tritonsmith.core import untrusted
from tritonsmith.core.plan import Plan, Write
from tritonsmith.core.ui import word_diff

_SET = re.compile(r"^set\((\w+) \[(=*)\[(.*?)\]\2\] CACHE STRING \"\" FORCE\)$", re.MULTILINE | re.DOTALL)
_ABOUT = re.compile(r"^# (\w[\w ]*): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class CMakeChange:
    """A changed CMake variable, `LLVM` or `compiler`; None if it had no value before, or has none after."""

    name: str
    before: str | None
    after: str | None

    @property
    def in_words(self) -> str:
        """The change in words: `CMAKE_BUILD_TYPE: Debug -> Release`; of long lists only what differs."""
        if self.before is None:
            return f"{self.name}: new, {self.after}"
        if self.after is None:
            return f"{self.name}: removed, was {self.before}"
        return f"{self.name}: {word_diff.in_words(_parts(self.before), _parts(self.after))}"


def values(text: str) -> dict[str, str]:
    """Return the names and values of an initial-cache file: the facts in its comments, then its variables."""
    about = {match[1]: match[2] for match in _ABOUT.finditer(text) if match[1] != "Written by tritonsmith"}
    about.pop("To configure by hand, in this folder", None)
    return about | variables(text)


def variables(text: str) -> dict[str, str]:
    """Return the names and values of the variables alone."""
    return {match[1]: match[3] for match in _SET.finditer(text)}


def changes(before: str, after: str) -> tuple[CMakeChange, ...]:
    """Return the differences between two initial-cache files."""
    old, new = values(before), values(after)
    names = dict.fromkeys((*new, *old))
    return tuple(
        CMakeChange(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)
    )


def pending(plan: Plan) -> Iterator[CMakeChange]:
    """Yield the changes since the recorded call, for each configure step of a plan that will run.

    Yields nothing if there was no call yet, or if only the tool's own files or CMake changed.
    """
    for step in plan.steps:
        if not isinstance(step, Write) or step.path.name != CACHE_FILE:
            continue
        if step.stamp and not step.stamp.holds() and step.path.is_file():
            yield from changes(untrusted.read_text(step.path), step.text)


def notes(found: Iterable[CMakeChange]) -> Iterator[str]:
    """Yield a sentence for each change, for `build-triton`."""
    return (f"CMake runs again: {change.in_words}" for change in found)


def _parts(value: str) -> list[str]:
    """Split a value: a CMake list, flags, or a sentence about an LLVM."""
    for separator in (", ", ";"):
        if separator in value:
            return value.split(separator)
    return value.split(" ")
