"""Find definitions in C++ and Python that no table lists: classes, patterns, traits, functions, macros."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tritonsmith.atlas.answer import AtlasFacts
from tritonsmith.atlas.index import Index
from tritonsmith.atlas.mentions import is_test, last_change, tests_of_word
from tritonsmith.atlas.source_files import Place, SourceFiles, line_of
from tritonsmith.core import untrusted

CPP = (".h", ".hpp", ".cpp", ".cc", ".c")
_NAME = re.compile(r"(?:~?\w+(?:::|\.))*~?\w+")
_CLASS = r"(?:class|struct|union|enum(?:\s+class)?)"
_PATTERN = re.compile(r"\b\w*(?:Pattern|Rewrite)\w*\b")
_TRAIT = re.compile(r"\b(?:\w*Trait|TraitBase)\b")
# A word that may stand before a name and a parenthesis although it is not the type of a declaration.
_STATEMENT = re.compile(r"(?:return|else|case|throw|new|delete|goto|co_return|using|typedef|namespace)\b")
_TAIL = re.compile(
    r"(?:\s*(?:const|noexcept|override|final|&&?)\b)*\s*(?:->[^;{]{1,200})?\s*(?P<end>[{;]|=\s*(?:0|default)\s*;)"
)
_BEFORE = re.compile(r"(?:[\w:<>,&*\[\]]+\s+)*[\w:<>,]*[\w>][\s&*]+(?P<scope>(?:\w+::)*)")
_COMMENT = re.compile(r"(?://+!?|\*+|/\*+)\s?")
_NO_CODE = re.compile(r"^[ \t]*(?://|#).*\n", re.MULTILINE)
# Limits, because a quadratic search in a file of a megabyte would take minutes.
_LONGEST = 4000  # characters of a parameter list
_LONGEST_HEAD = 400  # characters of a declaration before its name


@dataclass(frozen=True)
class Symbol:
    """A definition or a declaration.

    Attributes:
        kind: `class`, `pattern`, `trait`, `function` or `macro`.
        language: `C++` or `Python`.
        head: its first lines without the body.
        about: the comment above it, or its docstring.
        place: the place of its first line.
        body: this is the definition, not a declaration.
    """

    kind: str
    language: str
    head: str
    about: str
    place: Place
    body: bool


def explain(index: Index, name: str, kind: str = "") -> AtlasFacts | None:
    """Return the answer for a name that C++ or Python defines; None if none does.

    Args:
        index: the names of a tree.
        name: the name, with or without its class.
        kind: the kind of symbol; empty for any.
    """
    # A checkout has too many of these to index, so they are searched for when nothing else has that
    # name.
    symbols = tuple(symbol for symbol in find_symbols(index.tree, name) if kind in ("", symbol.kind))
    if not symbols:
        return None
    # The comment is mostly in the header, beside a declaration, and the body elsewhere.
    first = next((symbol for symbol in symbols if symbol.about), symbols[0])
    # A function and a class may share a name; the comment of one says nothing of the other.
    if first.kind != symbols[0].kind:
        first = symbols[0]
    answer = AtlasFacts(symbols[0].kind, name, description=first.about)
    answer.facts |= {
        "language": ", ".join(dict.fromkeys(symbol.language for symbol in symbols)),
        "written": symbols[0].head,
    }
    bodies = tuple(symbol.place for symbol in symbols if symbol.body)
    answer.places["defined"] = bodies or tuple(symbol.place for symbol in symbols)
    if bodies and len(bodies) < len(symbols):
        answer.places["declared"] = tuple(symbol.place for symbol in symbols if not symbol.body)
    ops = [symbol for symbol in index.definitions if symbol.kind == "op"]
    if symbols[0].kind == "pattern" and (
        matched := [op.name for op in ops if _names(symbols[0].head, op.cpp)]
    ):
        answer.facts["matches"] = ", ".join(matched)
    if symbols[0].kind == "trait":
        answer.tables["ops with it"] = [(op.name, "", op.summary) for op in ops if name in op.traits]
    files = {place.file for place in bodies}
    answer.places["used"] = tuple(place for place in mentions(index.tree, name) if place.file not in files)
    short = re.split(r"::|\.", name)[-1]
    answer.places["tests"] = tests_of_word(index.tree, short, (*CPP, ".py", ".mlir"))
    answer.changes = tuple(filter(None, (last_change(index.tree, bodies[0]),))) if bodies else ()
    return answer


def _names(head: str, symbol: str) -> bool:
    return re.search(rf"<[^>]*\b{re.escape(symbol)}\b", head) is not None


def find_symbols(tree: SourceFiles, name: str) -> tuple[Symbol, ...]:
    """Return all definitions of a name, with or without its class; declarations after them."""
    if not _NAME.fullmatch(name):
        return ()
    short = re.split(r"::|\.", name)[-1]
    scope = name[: -len(short)].rstrip(":.")
    symbols: list[Symbol] = []
    for file in tree.names:
        # A plain search first, which leaves a handful of files to the regular expressions.
        if is_test(file) or short not in (text := tree.text(file)):
            continue
        if file.endswith(CPP):
            symbols += _cpp(file, text, short, scope.rpartition("::")[2])
        elif file.endswith(".py"):
            symbols += _python(file, text, short, scope)
    return tuple(sorted(symbols, key=lambda symbol: not symbol.body))


def mentions(tree: SourceFiles, name: str) -> tuple[Place, ...]:
    """Return files outside tests that use a name, those with most uses first."""
    short = re.split(r"::|\.", name)[-1]
    sign = re.compile(rf"\b{re.escape(short)}\b")
    places = []
    for file in tree.having(*CPP, ".td", ".py"):
        text = tree.text(file)
        if short in text and not is_test(file) and (every := [*sign.finditer(text)]):
            times = f"{len(every)} times" if len(every) > 1 else ""
            places.append((-len(every), Place(file, line_of(text, every[0].start()), times)))
    return tuple(place for _, place in sorted(places, key=lambda pair: (pair[0], pair[1].file)))


def _cpp(file: str, text: str, name: str, scope: str) -> Iterator[Symbol]:
    word = re.escape(name)
    # Macros have no class or namespace in front of them, and the code of a class is looked for by its bare
    # name.
    if not scope:
        for match in re.finditer(rf"^[ \t]*#[ \t]*define[ \t]+{word}\b.*", text, re.MULTILINE):
            yield _symbol("macro", file, text, match.start(), match[0].strip(), body=True)
        sign = rf"\b{_CLASS}\s+(?:\w+\s+)?{word}\b(?P<rest>[^;{{()]{{0,1000}})\{{"
        for match in re.finditer(sign, text):
            bases = match["rest"].partition(":")[2]
            kind = "trait" if _TRAIT.search(bases) else "pattern" if _PATTERN.search(bases) else "class"
            yield _symbol(kind, file, text, match.start(), match[0].rstrip("{"), body=True)
        for match in re.finditer(rf"\busing\s+{word}\s*=[^;]{{1,400}};", text):
            yield _symbol("class", file, text, match.start(), match[0], body=True)
    for match in re.finditer(rf"\b{word}\s*\(", text):
        begin = _statement(text, match.start())
        # A call looks like a declaration, but for the words before it in its statement.
        before = _BEFORE.fullmatch(text, begin, match.start())
        if before is None or _STATEMENT.match(text, begin):
            continue
        if scope and not f"::{before['scope']}".endswith(f"::{scope}::"):
            continue
        end = _closing(text, match.end())
        if tail := _TAIL.match(text, end):
            yield _symbol("function", file, text, begin, text[begin:end], body=tail["end"] == "{")


def _statement(text: str, at: int) -> int:
    """Return the start of the declaration that a name belongs to: after the last end of another one."""
    begin = max(0, at - _LONGEST_HEAD)
    # The result type may be on a line of its own, so the line's start is not the declaration's: that is where
    # whatever precedes it ends.
    begin = max(text.rfind(end, begin, at) + len(end) for end in (";", "{", "}", ")", "\n\n", "*/"))
    head = text[begin:at]
    if above := [*_NO_CODE.finditer(head)]:
        head = head[above[-1].end() :]
    return at - len(head.lstrip())


def _symbol(kind: str, file: str, text: str, at: int, head: str, *, body: bool) -> Symbol:
    line = line_of(text, at)
    words = " ".join(head.split())
    return Symbol(kind, "C++", words, _above(text, line), Place(file, line, words), body)


def _closing(text: str, at: int) -> int:
    """Return the end of a parameter list after its opening parenthesis."""
    depth = 1
    for place in range(at, min(len(text), at + _LONGEST)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place + 1
    return at


def _above(text: str, line: int) -> str:
    """Return the comment right above a line; `template <...>` may lie between."""
    lines = text.splitlines()[max(0, line - 80) : line - 1]
    while lines and lines[-1].lstrip().startswith("template"):
        lines.pop()
    kept: list[str] = []
    while lines and lines[-1].lstrip().startswith(("//", "*", "/*")):
        kept.insert(0, _COMMENT.sub("", lines.pop().strip(), count=1).removesuffix("*/"))
    return "\n".join(kept).strip().strip("/-=* \n")


def _python(file: str, text: str, name: str, scope: str) -> Iterator[Symbol]:
    if not re.search(rf"^\s*(?:class|(?:async )?def) {re.escape(name)}\b", text, re.MULTILINE):
        return
    try:
        parsed = untrusted.python_tree(text)
    except (SyntaxError, ValueError):
        return
    for node, around in _nested(parsed, ()):
        if node.name != name or (scope and scope.rpartition(".")[2] not in around[-1:]):
            continue
        is_class = isinstance(node, ast.ClassDef)
        inside = (
            ", ".join(map(ast.unparse, node.bases))
            if isinstance(node, ast.ClassDef)
            else ast.unparse(node.args)
        )
        head = f"{'class' if is_class else 'def'} {'.'.join((*around, node.name))}({inside})"
        about = ast.get_docstring(node) or ""
        kind = "class" if is_class else "function"
        yield Symbol(kind, "Python", head, about, Place(file, node.lineno, head), body=True)


def _nested(
    node: ast.AST, around: tuple[str, ...]
) -> Iterator[tuple[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, tuple[str, ...]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child, around
            yield from _nested(child, (*around, child.name))
        else:
            yield from _nested(child, around)
