"""Errors in words."""

from __future__ import annotations

import pytest

from tritonsmith.core.errors import SmithError


@pytest.mark.parametrize(
    ("why", "line"),
    [(None, "it failed"), ("", "it failed"), ("no disk", "it failed: no disk"), ("\na\nb", "it failed: a")],
)
def test_an_error_in_one_line(why: str | None, line: str) -> None:
    assert SmithError("it failed", where="/there", why=why, hints=["wait"]).line == line
