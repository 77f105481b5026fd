"""Texts of new files: templates that contain `@NAMES@`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import UsageError

_FOLDER = Path(__file__).parent / "templates"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LONGEST = 60  # characters of a name, from which names of files and classes are derived


def render(name: str, values: dict[str, str]) -> str:
    """Return a template's text with the values filled in.

    Args:
        name: its path relative to the folder of templates.
        values: text for each `@NAME@`.

    Raises:
        KeyError: the template uses a name without a value, which is a bug.
    """
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text)


def checked(name: str) -> str:
    """Check the name of a pass, as in `hoist-loads`, and return it.

    Raises:
        UsageError: the name is not valid for classes and files.
    """
    if _NAME.fullmatch(name) and len(name) <= _LONGEST:
        return name
    raise UsageError(
        f"not a valid name of a pass: {name[:_LONGEST]!r}",
        why=f"small letters, digits and single dashes, a letter first, at most {_LONGEST} characters",
        hints=["for example: hoist-loads, which becomes HoistLoads.cpp and add_hoist_loads"],
    )


def in_camel_case(name: str) -> str:
    """Convert to camel case: `HoistLoads` for `hoist-loads`."""
    return "".join(word.capitalize() for word in name.split("-"))


def in_snake_case(name: str) -> str:
    """Convert to snake case: `hoist_loads` for `hoist-loads`."""
    return name.replace("-", "_")


def refuse_to_overwrite(texts: Mapping[Path, str]) -> None:
    """Refuse to overwrite files that an interrupted run left, or that have been edited.

    Raises:
        UsageError: a file exists with another text.
    """
    for path, text in texts.items():
        if path.exists() and (not path.is_file() or untrusted.read_text(path) != text):
            hints = ["give the pass another name", "or go on there: this file has been changed since"]
            raise UsageError("a file of this pass is there already", where=path, hints=hints)
