"""JSON of strangers: how deeply it may be nested, however few or many brackets its text has."""

from __future__ import annotations

import json

import pytest

from tritonsmith.core import untrusted
from tritonsmith.core.untrusted import DEPTH, UnreadableError, json_of


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("beside", [0, 1000])
def test_depth_is_bounded(beside: int, *, encoded: bool) -> None:
    def text(depth: int) -> str | bytes:
        content = f"[{'[1], ' * beside}{'[' * (depth - 1)}1{']' * (depth - 1)}]"
        return content.encode() if encoded else content

    assert json_of(text(DEPTH)) == json.loads(text(DEPTH))
    with pytest.raises(UnreadableError, match="too deeply"):
        json_of(text(DEPTH + 1))


def test_brackets_in_texts_are_not_nesting() -> None:
    assert json_of(json.dumps({"log": "[{" * 100})) == {"log": "[{" * 100}


def test_a_text_with_few_brackets_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "_shallow", None)
    assert json_of('{"a": [1, 2]}') == {"a": [1, 2]}
