"""The operations that the docs say are not known, and some that are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tritonsmith.passes.check import evaluate  # noqa: F401 - it registers the operations
from tritonsmith.passes.check.registry import OPERATIONS

pytestmark = pytest.mark.unit

_PAGE = Path(__file__).parents[4] / "docs" / "passes-check.md"


def test_what_the_docs_call_unknown_is_unknown() -> None:
    page = _PAGE.read_text(encoding="utf-8").partition("Not known, of 3.9.0:")[2].partition("## ")[0]
    named = [
        f"{dialect}.{name}"
        for dialect, names in re.findall(r"^- `(\w+)`: ((?:.*\n(?!-))*.*)", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    ]
    assert len(named) > 20
    assert not [name for name in named if name in OPERATIONS]
    for name in ("tt.load", "ttg.local_load", "ttng.tc_gen5_mma"):
        assert name in OPERATIONS
