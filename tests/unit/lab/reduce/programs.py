"""Programs that look like MLIR, and what tells whether they are well formed: no compiler is needed."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import strategies as st

VALUE = re.compile(r"%[\w]+")


def valid(text: str) -> bool:
    """Whether each value is defined once in its scope, and before its uses."""
    scopes: list[set[str]] = [set()]
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("}"):
            scopes.pop()
            if words.endswith("{"):  # } else {
                scopes.append(set())
            continue
        defined: list[str] = []
        inner: list[str] = []
        if words.startswith("tt.func"):
            inner, used = VALUE.findall(words), []
        elif " = scf.for " in f" {words}":
            head, _, rest = words.partition("scf.for ")
            defined = VALUE.findall(head)
            induction, _, bounds = rest.partition(" = ")
            before, _, carried = bounds.partition("iter_args(")
            pairs = [part.split(" = ") for part in carried.partition(")")[0].split(", ") if part]
            inner = [induction, *(name for name, _ in pairs)]
            used = [*VALUE.findall(before), *(start for _, start in pairs)]
        else:
            head, equals, rest = words.partition(" = ")
            defined = VALUE.findall(head) if equals else []
            used = VALUE.findall(rest if equals else words)
        if any(not any(name in scope for scope in scopes) for name in used):
            return False
        if any(name in scope for scope in scopes for name in [*defined, *inner]):
            return False
        scopes[-1].update(defined)
        if words.endswith("{"):
            scopes.append(set(inner))
    return len(scopes) == 1


def operations(text: str) -> Counter[str]:
    """How often each `test.NAME` is there."""
    return Counter(re.findall(r"\btest\.\w+", text))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A module of one or two functions, with loops and choices."""
    lines = [
        "#layout = #test.layout<{a = 1}>",
        "module attributes {test.one = 1 : i32, test.two = 2 : i32} {",
    ]
    for number in range(draw(st.integers(1, 2))):
        lines.append(
            f"  tt.func public @f{number}(%lo: i32, %hi: i32 {{tt.divisibility = 16 : i32}}, %on: i1) {{"
        )
        lines += _body(draw, ["%lo", "%hi"], "    ", 0, [0])
        lines += ["    tt.return", "  }"]
    return "\n".join([*lines, "}"]) + "\n"


def _body(draw: st.DrawFn, known: list[str], pad: str, depth: int, count: list[int]) -> list[str]:
    lines: list[str] = []
    known = list(known)
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["op", "op", "op", "sink", "for", "if"] if depth < 2 else ["op", "sink"]))
        one, other = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        count[0] += 1
        name = f"%v{count[0]}"
        if kind == "op":
            which = draw(st.sampled_from("abcde"))
            lines.append(f"{pad}{name} = test.{which} {one}, {other} {{x = 1 : i32}} : i32")
        elif kind == "sink":
            lines.append(f"{pad}test.store {one}, {other} : i32")
            continue
        elif kind == "for":
            lines.append(
                f"{pad}{name} = scf.for %i{count[0]} = %lo to %hi step %lo "
                f"iter_args(%c{count[0]} = {one}) -> (i32)  : i32 {{"
            )
            inner = [*known, f"%c{count[0]}", f"%i{count[0]}"]
            lines += _region(draw, inner, pad, depth, count)
        else:
            lines.append(f"{pad}{name} = scf.if %on -> (i32) {{")
            lines += _region(draw, known, pad, depth, count)[:-1]
            lines.append(f"{pad}}} else {{")
            lines += _region(draw, known, pad, depth, count)
        known.append(name)
    return lines


def _region(draw: st.DrawFn, known: list[str], pad: str, depth: int, count: list[int]) -> list[str]:
    lines = _body(draw, known, f"{pad}  ", depth + 1, count)
    given = draw(st.sampled_from(known))
    return [*lines, f"{pad}  scf.yield {given} : i32", f"{pad}}}"]
