"""Normalize MLIR: no locations, values named after their definitions, layouts after their content.

The text is one module, one function or a part of one, in the pretty or the generic form. Definitions are
recognised by spelling: `%x = ...`, `%x, %y = ...`, and `%x: type` with no blank before the colon (parameters
and block arguments; a use has one: `^bb1(%x : i32)`).
"""

from __future__ import annotations

import re

from tritonsmith.ir.normalize.renaming import (
    MARK,
    Define,
    IrLine,
    NormalForm,
    by_meaning,
    in_order,
    indented,
    named,
    split,
)

_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
_NAME = re.compile(rf"({_STRING}|%[\w$.-]++|\^[\w$.-]++|\#[A-Za-z_][\w$]*+(?:\.\d++)?+(?![.<\w]))")
_ATTRIBUTE = re.compile(rf"({_STRING}|\#[A-Za-z_][\w$]*+(?:\.\d++)?+(?![.<\w]))")
_ALIAS = re.compile(r"(\#[A-Za-z_][\w$]*+(?:\.\d++)?+) = (.+)")
_KIND = re.compile(r"(\w+)(?:<|$)")
_LOCATIONS = re.compile(r"^#(?:loc\w*|di_\w+) = .*\n?", re.MULTILINE)
_LOCATION = re.compile(
    rf"({_STRING})"
    r"| ?(?<![\w.$%#@])loc\((?:#\w+|unknown|"
    rf"{_STRING}(?:\(#\w+\)|:\d+:\d+)?|callsite\(#\w+ at #\w+\))\)"
)
_OPENED = re.compile(rf"({_STRING})| ?(?<![\w.$%#@])loc\(")
_BRACKET = re.compile(rf"[()\n]|{_STRING}")
_RESULTS = re.compile(r"(?::\d+)? = ")
_OPERATION = re.compile(r'"?([A-Za-z_][\w.]*)')
_FUNCTION = re.compile(r'\s*"?(?:\w+\.)+func\b')
_INTEGER = re.compile(
    r'(?:arith\.constant |llvm\.mlir\.constant\(|"arith\.constant"\(\) <\{value = )'
    r"(?:(-?\d+) : (i\d+|index)\b|(true|false)\b)"
)


def form(text: str) -> NormalForm:
    """Return the normal form of MLIR."""
    kept = [indented(line) for line in _without_locations(text).split("\n")]
    kept = [line for line in kept if line and not line.lstrip().startswith("//")]
    bodies = {match[1]: (_stem(match[2]), match[2]) for line in kept if (match := _ALIAS.fullmatch(line))}
    known, aliases = by_meaning(bodies, _ATTRIBUTE)
    return named(in_order(kept, _ALIAS, aliases, known, _line), known, _unknown)


def _line(text: str, known: dict[str, str]) -> IrLine:
    between, names = split(_NAME, text)
    if not names:
        return IrLine(text, begins=_begins(text))
    begins = _begins(between[0])
    label = names[0][0] == "^" and not between[0].strip()
    for name in names:
        if name[0] == "#":
            known.setdefault(name, name)  # an attribute that this text does not define
    return IrLine(MARK.join(between), names, _defines(between, names, begins, label), label, begins)


def _begins(text: str) -> bool:
    return "func" in text and _FUNCTION.match(text) is not None


def _defines(between: list[str], names: list[str], begins: bool, label: bool) -> list[Define]:
    result, first, operation = [], 0, None
    if label:
        result.append(Define(0, "^bb"))
        first = 1
    elif not between[0].strip() and (count := _results(between)):
        after = between[count]
        operation = _OPERATION.match(after, after.index("= ") + 2)
        stem, exact = _result(after, operation)
        result += [Define(place, stem, exact) for place in range(count)]
        first = count
    else:
        operation = _OPERATION.search(between[0])
    what = operation[1].rpartition(".")[2] if operation else "bb"
    stem = "%arg" if begins else f"%{what}_arg"
    for place in range(first, len(names)):
        if names[place][0] == "%" and between[place + 1].startswith((": ", " = ")):
            result.append(Define(place, f"{stem}{len(result) - first}", exact=True))
    return result


def _results(between: list[str]) -> int:
    """Return the number of names in the list of results at the beginning of a line."""
    for place, text in enumerate(between[1:], start=1):
        if text != ", ":
            return place if _RESULTS.match(text) else 0
    return 0


def _result(after: str, operation: re.Match[str] | None) -> tuple[str, bool]:
    if "constant" in after and (match := _INTEGER.search(after)):
        return (f"%{match[3]}" if match[3] else f"%c{match[1]}_{match[2]}"), True
    what = operation[1].rpartition(".")[2] if operation else "value"
    return f"%{'cst' if what == 'constant' else what}", False


def _stem(body: str) -> str:
    match = _KIND.search(body)
    return f"#{match[1]}" if match and not match[1][0].isdigit() else "#attribute"


def _unknown(name: str) -> str:
    return "^bb" if name[0] == "^" else "%free"


def _without_locations(text: str) -> str:
    """Remove `loc(...)` with brackets of any depth; a truncated one is kept."""
    text = _LOCATIONS.sub("", text.replace(MARK, " "))
    text = _LOCATION.sub(lambda match: match[1] or "", text)
    parts, done = [], 0
    while opened := _OPENED.search(text, done):
        if opened[1]:  # a string may say anything
            cut = end = opened.end()
        elif (closed := _closed(text, opened.end())) is not None:
            cut, end = opened.start(), closed
        else:
            line = text.find("\n", opened.end())
            cut = end = line if line >= 0 else len(text)
        parts.append(text[done:cut])
        done = end
    return "".join([*parts, text[done:]])


def _closed(text: str, start: int) -> int | None:
    """Return the end of the bracket that was opened before `start`; None if not on this line."""
    depth = 1
    for match in _BRACKET.finditer(text, start):
        if match[0] == "\n":
            return None
        depth += (match[0] == "(") - (match[0] == ")")
        if not depth:
            return match.end()
    return None
