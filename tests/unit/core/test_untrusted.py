"""JSON of strangers, which may be nested deeply or have many brackets; and Python, parsed in threads."""

from __future__ import annotations

import ast
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


class _Finalized:
    """Garbage whose collection runs Python, as a weak reference's callback may."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(50))


def test_threads_parse_python_at_once() -> None:
    text, before = Path(untrusted.__file__).read_text(encoding="utf-8"), sys.getswitchinterval()

    def parse() -> int:
        for _ in range(30):
            for _ in range(20):
                _Finalized()
            tree = untrusted.python_tree(text)
        return len(tree.body)

    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(3) as threads:
            counts = {future.result() for future in [threads.submit(parse) for _ in range(3)]}
    finally:
        sys.setswitchinterval(before)
    assert counts == {len(ast.parse(text).body)}
