"""The normal form of a stage's text: equivalent compiles have equal text, line by line.

Removed: locations, debug information, comments, addresses, encodings, blank lines. Renamed: SSA values,
virtual registers, blocks and labels (after their definitions, see `renaming`), layouts, attribute groups and
metadata (after their content). Kept: order, types, versions, machine registers, names of functions.

A text is one module, or a part of it; of MLIR, in the pretty or the generic form. Nothing here raises,
whatever the input is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tritonsmith.ir.normalize import assembly
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

# Names and strings are matched possessively, as the text may be anyone's. A string that is not closed ends
# with its line, since a part of a text may be cut anywhere. `#ttg.blocked` and `#ttg<...>` are attributes of
# a dialect, no aliases, which is why a `.` or `<` may not follow a name.
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"?'
_VALUE = re.compile(rf"({_QUOTED}|%[\w$.-]++|\^[\w$.-]++|\#[A-Za-z_][\w$]*+(?:\.\d++)?+(?![.<\w]))")
_ATTRIBUTE = re.compile(rf"({_QUOTED}|\#[A-Za-z_][\w$]*+(?:\.\d++)?+(?![.<\w]))")
_ALIAS = re.compile(r"(\#[A-Za-z_][\w$]*+(?:\.\d++)?+) = (.+)")
_KIND = re.compile(r"(\w+)(?:<|$)")
_LOCATIONS = re.compile(r"^#(?:loc\w*|di_\w+) = .*\n?", re.MULTILINE)
_LOCATION = re.compile(
    rf"({_QUOTED})"
    r"| ?(?<![\w.$%#@])loc\((?:#\w+|unknown|"
    rf"{_QUOTED}(?:\(#\w+\)|:\d+:\d+)?|callsite\(#\w+ at #\w+\))\)"
)
_OPENED = re.compile(rf"({_QUOTED})| ?(?<![\w.$%#@])loc\(")
_BRACKET = re.compile(rf"[()\n]|{_QUOTED}")
_RESULTS = re.compile(r"(?::\d+)? = ")
_OPERATION = re.compile(r'"?([A-Za-z_][\w.]*)')
_FUNCTION = re.compile(r'\s*"?(?:\w+\.)+func\b')
_INTEGER = re.compile(
    r'(?:arith\.constant |llvm\.mlir\.constant\(|"arith\.constant"\(\) <\{value = )'
    r"(?:(-?\d+) : (i\d+|index)\b|(true|false)\b)"
)


def mlir(text: str) -> NormalForm:
    """Return the normal form of MLIR."""
    kept = [indented(line) for line in _without_locations(text).split("\n")]
    kept = [line for line in kept if line and not line.lstrip().startswith("//")]
    bodies = {
        match[1]: (_layout_stem(match[2]), match[2]) for line in kept if (match := _ALIAS.fullmatch(line))
    }
    known, aliases = by_meaning(bodies, _ATTRIBUTE)
    return named(in_order(kept, _ALIAS, aliases, known, _mlir_line), known, _unknown_stem)


def _mlir_line(text: str, known: dict[str, str]) -> IrLine:
    between, names = split(_VALUE, text)
    if not names:
        return IrLine(text, begins=_begins_function(text))
    begins = _begins_function(between[0])
    label = names[0][0] == "^" and not between[0].strip()
    for name in names:
        if name[0] == "#":
            known.setdefault(name, name)  # an attribute that this text does not define
    return IrLine(MARK.join(between), names, _defines(between, names, begins, label), label, begins)


def _begins_function(text: str) -> bool:
    return "func" in text and _FUNCTION.match(text) is not None


def _defines(between: list[str], names: list[str], begins: bool, label: bool) -> list[Define]:
    # Definitions are recognised by spelling: `%x = ...`, `%x, %y = ...`, and `%x: type` with no blank before
    # the colon, as parameters and block arguments have it; a use has one: `^bb1(%x : i32)`.
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
    # MLIR's printer, too, names integer constants by value (`%c64_i32`), and other constants `%cst`. A name
    # without a checksum is the same in two texts, whatever else differs between them.
    if "constant" in after and (match := _INTEGER.search(after)):
        return (f"%{match[3]}" if match[3] else f"%c{match[1]}_{match[2]}"), True
    what = operation[1].rpartition(".")[2] if operation else "value"
    return f"%{'cst' if what == 'constant' else what}", False


def _layout_stem(body: str) -> str:
    match = _KIND.search(body)
    return f"#{match[1]}" if match and not match[1][0].isdigit() else "#attribute"


def _unknown_stem(name: str) -> str:
    return "^bb" if name[0] == "^" else "%free"


def _without_locations(text: str) -> str:
    """Remove `loc(...)` with brackets of any depth; a truncated one is kept."""
    # The common forms go by one pattern; what is left has to have its brackets counted, which is slower.
    text = _LOCATIONS.sub("", text.replace(MARK, " "))
    text = _LOCATION.sub(lambda match: match[1] or "", text)
    parts, done = [], 0
    while opened := _OPENED.search(text, done):
        if opened[1]:  # a string, which may contain anything
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


_LLVM_STRING = r'"[^"\n]*+"?'  # a quote inside is spelled \22
_LLVM_NAME = re.compile(
    rf"(%{_LLVM_STRING}|{_LLVM_STRING}|%[\w$.-]++|\#(?:\d++|attrs_\w++)(?:\.\d++)?+|!(?:\d++|md_\w++)(?:\.\d++)?+)"
)
_NODE = re.compile(r"![0-9]++|!md_\w++(?:\.\d++)?+")
_COMMENT = re.compile(rf'^((?:[^";\n]|{_LLVM_STRING})*+);.*$', re.MULTILINE)
_DEBUG = re.compile(r",? !(?:dbg|srcloc|heapallocsite) (?:!\d+|!DILocation\([^)\n]*\))")
_LLVM_DROPPED = re.compile(
    r"^(?:source_filename = .*|\s*#dbg_\w+\(.*|.* @llvm\.dbg\.\w+\(.*|!llvm\.dbg\..*)(?:\n|\Z)", re.MULTILINE
)
_DEFINITION = re.compile(r"(?:attributes )?((?:!(?:\d+|md_)|#(?:\d+|attrs_))\w*(?:\.\d+)?) = (.*)")
_DEBUG_NODE = re.compile(r'(?:distinct )?!DI|!\{i32 \d+, !"(?:Debug Info|Dwarf) Version"')
_ITEM = re.compile(r"(?:, )?(!\d++|!md_\w++(?:\.\d++)?+)")
_LLVM_LABEL = re.compile(rf"%?([\w$.-]+|{_LLVM_STRING}):\s*$")
_TYPE = re.compile(rf"(%(?:[\w$.-]+|{_LLVM_STRING})) = type\b")
_OPCODE = re.compile(r" = (?:(?:tail|musttail|notail) )?([a-z]\w*)")


def llvm(text: str) -> NormalForm:
    """Return the normal form of LLVM IR."""
    text = _COMMENT.sub(r"\1", text.replace(MARK, " "))
    text = _LLVM_DROPPED.sub("", _DEBUG.sub("", text))
    kept = [indented(line) for line in text.split("\n")]
    bodies, debug = _llvm_definitions([line for line in kept if line])
    kept = [line for line in (_without_nodes(line, debug) for line in kept) if line]
    known, attributes = by_meaning(bodies, _LLVM_NAME)
    known |= {match[1]: match[1] for line in kept if (match := _TYPE.match(line))}
    return named(in_order(kept, _DEFINITION, attributes, known, _llvm_line), known, lambda _: "%free")


def _llvm_definitions(lines: list[str]) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Return attribute groups and used metadata nodes; and the nodes that are unused or for debugging."""
    # Nodes refer to each other. Those that only debug information needs are unused once it is gone.
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
    bodies = {name: ("!md", _without_nodes(body, debug)) for name, body in nodes.items() if name in used}
    groups = {name: ("#attrs", body) for name, body in definitions.items() if name[0] == "#"}
    return groups | bodies, nodes.keys() - used


def _without_nodes(line: str, debug: set[str]) -> str:
    """Remove references to some nodes from a line; empty if it defines one of them."""
    if "!" not in line or not debug:
        return line
    if (match := _DEFINITION.match(line)) and match[1] in debug:
        return ""
    # Only lists lose items. An attachment of an instruction (`!tbaa !5`) would lose its node and keep its
    # name, which is no LLVM IR.
    if not line.startswith("!") and "{" not in line:
        return line
    return _ITEM.sub(lambda item: "" if item[1] in debug else item[0], line).replace("!{, ", "!{")


def _llvm_line(text: str, known: dict[str, str]) -> IrLine:
    if text[0] not in " \t" and (match := _LLVM_LABEL.match(text)):
        return IrLine(f"{MARK}:", (f"%{match[1]}",), (Define(0, "%bb"),), label=True)
    between, names = split(_LLVM_NAME, text)
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


# By stage; and by language, for dumps between passes, which have no stage.
_READERS: Mapping[str, Callable[[str], NormalForm]] = {
    **dict.fromkeys(("mlir", "source", "ttir", "glir", "ttgir"), mlir),
    **dict.fromkeys(("llvm", "llir"), llvm),
    "ptx": assembly.ptx,
    "sass": assembly.sass,
    "amdgcn": assembly.amdgcn,
    "gcnasm": assembly.gcnasm,
}


def text(text: str, stage: str) -> str:
    """Return a text in normal form.

    Args:
        text: the text of a stage.
        stage: `ttir`, `ptx` ...; or `mlir`, `llvm`. A text of any other stage is returned unchanged.
    """
    if stage not in _READERS:
        return text
    return "".join(f"{line}\n" for line in form(text, stage).lines())


def form(text: str, stage: str) -> NormalForm:
    """Return the normal form, with the names separate from the lines."""
    if stage in _READERS:
        return _READERS[stage](text)
    # A text without a reader has no names: its lines are compared as they are.
    plain = [line.replace(MARK, " ") for line in text.splitlines()]
    return NormalForm(plain, [()] * len(plain), [()] * len(plain))
