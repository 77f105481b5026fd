"""Normalize LLVM IR: no debug metadata, values and attributes named after their content."""

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

_STRING = r'"[^"\n]*+"?'  # a quote inside is spelled \22
_NAME = re.compile(
    rf"(%{_STRING}|{_STRING}|%[\w$.-]++|\#(?:\d++|attrs_\w++)(?:\.\d++)?+|!(?:\d++|md_\w++)(?:\.\d++)?+)"
)
_NODE = re.compile(r"![0-9]++|!md_\w++(?:\.\d++)?+")
_COMMENT = re.compile(rf'^((?:[^";\n]|{_STRING})*+);.*$', re.MULTILINE)
_DEBUG = re.compile(r",? !(?:dbg|srcloc|heapallocsite) (?:!\d+|!DILocation\([^)\n]*\))")
_DROPPED = re.compile(
    r"^(?:source_filename = .*|\s*#dbg_\w+\(.*|.* @llvm\.dbg\.\w+\(.*|!llvm\.dbg\..*)(?:\n|\Z)", re.MULTILINE
)
_DEFINITION = re.compile(r"(?:attributes )?((?:!(?:\d+|md_)|#(?:\d+|attrs_))\w*(?:\.\d+)?) = (.*)")
_DEBUG_NODE = re.compile(r'(?:distinct )?!DI|!\{i32 \d+, !"(?:Debug Info|Dwarf) Version"')
_ITEM = re.compile(r"(?:, )?(!\d++|!md_\w++(?:\.\d++)?+)")
_LABEL = re.compile(rf"%?([\w$.-]+|{_STRING}):\s*$")
_TYPE = re.compile(rf"(%(?:[\w$.-]+|{_STRING})) = type\b")
_OPCODE = re.compile(r" = (?:(?:tail|musttail|notail) )?([a-z]\w*)")


def form(text: str) -> NormalForm:
    """Return the normal form of LLVM IR."""
    text = _COMMENT.sub(r"\1", text.replace(MARK, " "))
    text = _DROPPED.sub("", _DEBUG.sub("", text))
    kept = [indented(line) for line in text.split("\n")]
    bodies, debug = _definitions([line for line in kept if line])
    kept = [line for line in (_without(line, debug) for line in kept) if line]
    known, attributes = by_meaning(bodies, _NAME)
    known |= {match[1]: match[1] for line in kept if (match := _TYPE.match(line))}
    return named(in_order(kept, _DEFINITION, attributes, known, _line), known, lambda _: "%free")


def _definitions(lines: list[str]) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Return attribute groups and used metadata nodes; and the nodes that are unused or for debugging."""
    definitions = {match[1]: match[2] for line in lines if (match := _DEFINITION.fullmatch(line))}
    nodes = {name: body for name, body in definitions.items() if name[0] == "!"}
    debug = {name for name, body in nodes.items() if _DEBUG_NODE.match(body)}
    waiting = [name for line in lines if not _DEFINITION.match(line) for name in _NODE.findall(line)]
    used: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in used and name not in debug:
            used.add(name)
            waiting += _NODE.findall(nodes[name])
    bodies = {name: ("!md", _without(body, debug)) for name, body in nodes.items() if name in used}
    groups = {name: ("#attrs", body) for name, body in definitions.items() if name[0] == "#"}
    return groups | bodies, nodes.keys() - used


def _without(line: str, debug: set[str]) -> str:
    """Remove references to some nodes from a line; empty if it defines one of them."""
    if "!" not in line or not debug:
        return line
    if (match := _DEFINITION.match(line)) and match[1] in debug:
        return ""
    if not line.startswith("!") and "{" not in line:
        return line
    return _ITEM.sub(lambda item: "" if item[1] in debug else item[0], line).replace("!{, ", "!{")


def _line(text: str, known: dict[str, str]) -> IrLine:
    if text[0] not in " \t" and (match := _LABEL.match(text)):
        return IrLine(f"{MARK}:", (f"%{match[1]}",), (Define(0, "%bb"),), label=True)
    between, names = split(_NAME, text)
    begins = text.startswith("define ")
    if not names:
        return IrLine(text, begins=begins)
    defines: list[Define] = []
    for place, name in enumerate(names):
        if name[0] != "%":
            known.setdefault(name, name)  # not defined in this text
        elif begins:
            defines.append(Define(place, f"%arg{len(defines)}", exact=True))
    if names[0][0] == "%" and not between[0].strip() and (opcode := _OPCODE.match(between[1])):
        defines = [Define(0, f"%{opcode[1]}")]
    return IrLine(MARK.join(between), names, defines, begins=begins)
