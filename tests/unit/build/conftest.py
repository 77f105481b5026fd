"""Golden files: plans as shell scripts; `TRITONSMITH_UPDATE_GOLDEN=1` in the environment rewrites them.

A phase that another golden file has, word for word, is one line: `# NAME: as in FILE`.
"""

from __future__ import annotations

import difflib
import os
from typing import Protocol

import pytest

from tests.unit.build.made import GOLDEN

UPDATE = "TRITONSMITH_UPDATE_GOLDEN"


class Golden(Protocol):
    """What the fixture `golden` is."""

    def __call__(self, name: str, text: str, *like: str) -> None:
        """Compare `text`, less the phases that the golden files `like` have, with the golden file `name`."""


@pytest.fixture
def golden() -> Golden:
    """Compare a text with `golden/NAME`; a difference fails with a unified diff."""

    def compare(name: str, text: str, *like: str) -> None:
        path = GOLDEN / name
        for other in like:
            text = _folded(text, other) if other != name else text
        if os.environ.get(UPDATE) == "1":
            path.write_text(text, encoding="utf-8")
            return
        expected = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), f"golden/{name}", "this plan", lineterm="", n=2
            )
            hint = f"if that is what was meant: {UPDATE}=1 pytest tests/unit/build"
            pytest.fail("\n".join((*lines, hint)), pytrace=False)

    return compare


def _folded(text: str, like: str) -> str:
    known = (GOLDEN / like).read_text(encoding="utf-8").rstrip("\n").split("\n\n")[1:]
    head, *phases = text.rstrip("\n").split("\n\n")
    folded = (f"{phase.splitlines()[0]}: as in {like}" if phase in known else phase for phase in phases)
    return "\n\n".join((head, *folded)) + "\n"
