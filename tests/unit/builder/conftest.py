"""Golden files: plans as shell scripts; `TRITONSMITH_UPDATE_GOLDEN=1` in the environment rewrites them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable

import pytest

from tests.unit.builder.made import GOLDEN

UPDATE = "TRITONSMITH_UPDATE_GOLDEN"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with `golden/NAME`; a difference fails with a unified diff."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
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
