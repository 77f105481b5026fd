"""Merging into JSON with comments: what is there stays, byte for byte, and a second merge changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tritonsmith.build.editors import merged_files

WANTED: dict[str, Any] = {
    "path": "/b/clangd",
    "nested": {"x": 1, "y": {"z": [1, 2]}},
    "configurations": [{"name": "ours", "args": ["a"]}, {"name": "mine", "program": "/p"}],
    "recommendations": ["a.b", "c.d"],
}
TEXTS = {
    "nothing": "",
    "blanks": " \n",
    "empty": "{}",
    "one line": '{"mine": 1}',
    "comments": '// top\n{\n\t// in it\n\t"mine": "a // no comment", // behind\n\t/* last */\n}\n// end\n',
    "trailing commas": '{\n    "configurations": [\n        {"name": "mine",}, // keep\n    ],\n}',
    "lists": '{"recommendations": ["c.d", /* why */ "e.f"], "configurations": []}',
    "windows": '\ufeff{\r\n  "mine": {"name": "x"}\r\n}\r\n',
    "escapes": '{"a\\"b": "\\u00e9\\\\", "nested": {}}',
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_there_stays(name: str) -> None:
    before = TEXTS[name]
    after, conflicts = merged_files.merge(before, WANTED, united=("recommendations",))
    assert conflicts == ()
    rest = iter(after)
    assert all(sign in rest for sign in before.strip())
    old, new = (
        merged_files.parse(before or "{}").value if before.strip() else {},
        merged_files.parse(after).value,
    )
    assert {key: new[key] for key in ("path", "nested")} == {key: WANTED[key] for key in ("path", "nested")}
    assert new["recommendations"] == list(dict.fromkeys([*old.get("recommendations", ()), "a.b", "c.d"])) or (
        set(new["recommendations"]) == {"a.b", "c.d", "e.f"}
    )
    assert {one["name"] for one in new["configurations"]} == {"ours", "mine"}
    assert {key: new[key] for key in old if key not in WANTED} == {
        key: old[key] for key in old if key not in WANTED
    }
    assert merged_files.merge(after, WANTED, united=("recommendations",)) == (after, ())


def test_a_comma_comes_before_the_comment() -> None:
    after, _ = merged_files.merge('{\n  "a": 1 // one\n}\n', {"b": 2})
    assert after == '{\n  "a": 1, // one\n  "b": 2\n}\n'


def test_another_value_stays_unless_forced() -> None:
    before = '{"a": {"b": [1, 2]}, /* x */ "list": [{"label": "t", "args": ["1"]}]}'
    wanted = {"a": {"b": [1]}, "list": [{"label": "t", "args": ["2"]}]}
    after, conflicts = merged_files.merge(before, wanted)
    assert after == before
    assert [(one.path, one.value, one.ours) for one in conflicts] == [
        ("a/b", [1, 2], [1]),
        ("list/t/args", ["1"], ["2"]),
    ]
    forced, none = merged_files.merge(before, wanted, force=True)
    assert none == ()
    assert merged_files.parse(forced).value == wanted
    assert "/* x */" in forced


def test_plain_json_is_what_json_reads() -> None:
    text = json.dumps({"a": [1, -2.5e3, True, None, "\u00e9\n", {}], "b": {"c": []}}, indent=1)
    assert merged_files.parse(text).value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[1]", 1),
        ("{\n  'a': 1\n}", 2),
        ('{"a": 1} x', 1),
        ('{\n"a"\n: 1\n "b": 2}', 4),
        ('{"a": [1', 1),
        ('{"a": 1e}', 1),
        ('{"a": "\\x"}', 1),
        ('{"a":' + "[" * 5000, 1),
        ("{/*", 1),
    ],
)
def test_what_it_cannot_read_is_an_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ValueError, match=f"line {line}: "):
        merged_files.merge(text, {"a": 1})
