"""Read a tree's calls of passes with their conditions, and its switches: variables and options.

Python files are parsed and never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from tritonsmith.atlas.mentions import PythonBinding
from tritonsmith.atlas.source_files import Place, SourceFiles, line_of
from tritonsmith.core import untrusted


@dataclass(frozen=True)
class PassCall:
    """A call of a pass in a pipeline.

    Attributes:
        name: the name as it is called: `passes.ttgpuir.add_coalesce`.
        arguments: the arguments as written, without the pass manager.
        backend: `nvidia`, `amd`; empty if the file belongs to none.
        stage: the function: `make_ttgir`.
        place: the line, with the conditions around it.
    """

    name: str
    arguments: tuple[str, ...]
    backend: str
    stage: str
    place: Place

    @property
    def in_words(self) -> Place:
        """The line, with the stage and the call."""
        stage = f"{self.stage}{f' of {self.backend}' if self.backend else ''}"
        call = f"{self.name}({', '.join(('pm', *self.arguments))})"
        return replace(self.place, what=f"{stage}: {call}")


def calls(tree: SourceFiles) -> tuple[PassCall, ...]:
    """Return every call of a pass in the Python of the backends and the compiler, by file and line."""
    pass_calls: list[PassCall] = []
    for file in tree.having(".py"):
        text = tree.text(file)
        # 2.1 calls the pass manager, `pm.add_cse_pass()`; later versions pass it on,
        # `passes.common.add_cse(pm)`.
        if "add_" in text and ("passes." in text or "pm.add" in text) and "test" not in file.split("/"):
            pass_calls += calls_in(text, file)
    return tuple(pass_calls)


def calls_in(text: str, file: str) -> Iterator[PassCall]:
    """Yield the calls of passes in one file; none in a template, which no backend runs."""
    try:
        parsed = untrusted.python_tree(text)
    except (SyntaxError, ValueError):
        return
    yield from _Visitor(file).visit_all(parsed)


def calls_of_binding(
    known: tuple[PassCall, ...], binding: PythonBinding, rivals: tuple[PythonBinding, ...]
) -> tuple[PassCall, ...]:
    """Return calls of a binding; if several share its name, those whose path has most of its words."""
    # Several backends have a pass of one name: the path `amd.passes.ttgpuir` tells whose it is.
    same = [rival for rival in rivals if rival.name == binding.name]
    return tuple(
        call
        for call in known
        if call.name.rpartition(".")[2] == binding.name and _nearest(call, same) is binding
    )


def _nearest(call: PassCall, candidates: list[PythonBinding]) -> PythonBinding:
    words = {*call.name.split("."), call.backend}
    # The most words in common; then the binding with the fewest others, which a longer path would have named.
    return max(
        candidates, key=lambda binding: (len(words & {*binding.words}), -len({*binding.words} - words))
    )


def backend_of(file: str) -> str:
    """Return the backend whose file this is: `nvidia` of `third_party/nvidia/backend/compiler.py`."""
    parts = file.split("/")
    for before in ("third_party", "backends"):
        if before in parts[:-2]:
            return parts[parts.index(before) + 1]
    return ""


class _Visitor:
    """Walks statements with the conditions around them."""

    def __init__(self, file: str) -> None:
        self._file = file

    def visit_all(self, tree: ast.AST) -> Iterator[PassCall]:
        yield from self._visit(tree, "", ())

    def _visit(self, node: ast.AST, stage: str, when: tuple[str, ...]) -> Iterator[PassCall]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # Conditions around a nested function hold where it is defined, not where it is called.
            stage, when = node.name, ()
        if isinstance(node, ast.Call) and (call := self._call(node, stage, when)):
            yield call
        if isinstance(node, (ast.If, ast.IfExp)):
            test = ast.unparse(node.test)
            body = node.body if isinstance(node.body, list) else [node.body]
            other = node.orelse if isinstance(node.orelse, list) else [node.orelse]
            for statement in body:
                yield from self._visit(statement, stage, (*when, test))
            # An elif is an If in orelse: its condition is added to the negated ones before it.
            for statement in other:
                yield from self._visit(statement, stage, (*when, f"not ({test})"))
            return
        if isinstance(node, (ast.For, ast.While)):
            head = (
                f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
                if isinstance(node, ast.For)
                else (f"while {ast.unparse(node.test)}")
            )
            for statement in node.body:
                yield from self._visit(statement, stage, (*when, head))
            return
        for child in ast.iter_child_nodes(node):
            yield from self._visit(child, stage, when)

    def _call(self, node: ast.Call, stage: str, when: tuple[str, ...]) -> PassCall | None:
        if not isinstance(node.func, ast.Attribute):
            return None
        name = ast.unparse(node.func)
        arguments = [
            *map(ast.unparse, node.args),
            *(f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in node.keywords),
        ]
        # Other objects have methods add_..., too: a pass manager, as the owner or the first argument, tells
        # them apart.
        by_manager = name.startswith("pm.")
        ours = node.func.attr.startswith("add_") or "passes" in name
        if not ours or not (by_manager or arguments[:1] == ["pm"]):
            return None
        return PassCall(
            name,
            tuple(arguments if by_manager else arguments[1:]),
            backend_of(self._file),
            stage,
            Place(self._file, node.lineno, name, when),
        )


_READ = re.compile(
    r"\b(?:getBoolEnv|getStrEnv|isEnvValueBool|getenv|getenv_bool|env_\w+|environ(?:\.get|\.pop)?|check_env_flag"
    r"|get_env_with_keys|DEFINE_ENV)\s*[\(\[]\s*\[?\s*[\"']([A-Z][A-Z0-9_-]{2,})[\"']"
)
# f"TRITON_{binary.upper()}_PATH" of knobs.py: a search for TRITON_PTXAS_PATH would find nothing.
_COMPOSED = re.compile(
    r"""\bf(?P<quote>["'])(?P<before>[A-Z][A-Z0-9_]*_)\{(?P<hole>[^{}\n]*)\}(?P<after>[A-Z0-9_]*)(?P=quote)"""
)
_HEAD = re.compile(r"^(?P<indent>[ \t]*)(?P<what>class|def) (?P<name>\w+)", re.MULTILINE)
_CMAKE_OPTION = re.compile(r'^\s*option\s*\(\s*(\w+)\s+"([^"]*)"\s*(\w*)', re.MULTILINE)
_CMAKE_CACHE = re.compile(r'^\s*set\s*\(\s*(\w+)\s+("[^"]*"|\S+)\s+CACHE\s+(\w+)\s+"([^"]*)"', re.MULTILINE)
_ENV = ("env", "Env", "ENV")  # one is in whatever reads a variable: getBoolEnv, getenv, DEFINE_ENV
_CODE = (".py", ".cpp", ".cc", ".h", ".hpp", ".c")


@dataclass(frozen=True)
class Switch:
    """An environment variable, an option of a backend, or an option of CMake.

    Attributes:
        name: the name of the variable or option.
        about: its description; may be empty.
        type: the type as written; may be empty.
        default: the default as written; may be empty.
        owner: the class of a backend's options, with its backend; else empty.
        places: the places that read or declare it.
    """

    name: str
    about: str
    type: str
    default: str
    owner: str
    places: tuple[Place, ...]


def variables(tree: SourceFiles) -> dict[str, tuple[Place, ...]]:
    """Return environment variables that code reads by a quoted name, with the places; tests aside."""
    places_of: dict[str, list[Place]] = {}
    for file in tree.having(*_CODE):
        # A test sets variables of its own, which nobody else reads.
        if not {"test", "tests", "unittest", "tutorials"} & {*file.split("/")}:
            text = tree.text(file)
            for match in _READ.finditer(text) if any(word in text for word in _ENV) else ():
                places_of.setdefault(match[1], []).append(Place(file, line_of(text, match.start(1))))
    return {name: tuple(places) for name, places in sorted(places_of.items())}


def composed_variables(tree: SourceFiles) -> dict[str, tuple[Place, ...]]:
    """Return variables whose names Python code composes, from the literals that it is called with.

    `f"TRITON_{binary.upper()}_PATH"` in a class or a function that is called with "ptxas" reads
    TRITON_PTXAS_PATH: the places are the call, and the text that makes the name.
    """
    files = [name for name in tree.having(".py") if not {"test", "tests", "tutorials"} & {*name.split("/")}]
    places_of: dict[str, list[Place]] = {}
    for file in files:
        text = tree.text(file)
        for match in _COMPOSED.finditer(text):
            if maker := _Maker.around(file, text, match):
                for name, place in chain(*(maker.names(other, tree.text(other)) for other in files)):
                    places_of[name] = [*places_of.get(name, [maker.place]), place]
    return {name: tuple(places) for name, places in places_of.items()}


@dataclass(frozen=True)
class _Maker:
    """Code that composes a name: the class or function around it, the text with its hole, and its place."""

    called: str
    before: str
    hole: str
    after: str
    place: Place

    @classmethod
    def around(cls, file: str, text: str, match: re.Match[str]) -> _Maker | None:
        """Return the maker of a composed text; None if it is in neither a class nor a function."""
        heads = [*_HEAD.finditer(text, 0, match.start())]
        if not heads:
            return None
        # A text in a method belongs to the class, because that is what others call.
        inner = heads[-1]
        classes = [head for head in heads if head["what"] == "class" and not head["indent"]]
        head = classes[-1] if inner["indent"] and classes else inner
        place = Place(file, line_of(text, match.start()), match[0])
        return cls(head["name"], match["before"], match["hole"], match["after"], place)

    def names(self, file: str, text: str) -> Iterator[tuple[str, Place]]:
        """Yield the names that the calls in a file make."""
        for call in (
            re.finditer(rf"\b{self.called}\(\s*[\"']([\w-]+)[\"']", text) if self.called in text else ()
        ):
            # The hole is not run, only looked at: these are the two calls that Triton has in such names.
            word = call[1].upper() if ".upper()" in self.hole else call[1]
            word = word.replace("-", "_") if ".replace('-', '_')" in self.hole.replace('"', "'") else word
            yield self.before + word + self.after, Place(file, line_of(text, call.start()), call[0] + ")")


def backend_options(tree: SourceFiles) -> tuple[Switch, ...]:
    """Return the fields of the data classes of options in each backend's `compiler.py`."""
    return tuple(field for file in tree.having("compiler.py") for field in _fields(file, tree.text(file)))


def _fields(file: str, text: str) -> Iterator[Switch]:
    try:
        parsed = untrusted.python_tree(text)
    except (SyntaxError, ValueError):
        return
    lines = text.splitlines()
    for node in parsed.body:
        # CUDAOptions, HIPOptions: a backend's options are a data class, whose annotated fields are the
        # options.
        if not (isinstance(node, ast.ClassDef) and node.name.endswith("Options")):
            continue
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                default = ast.unparse(field.value) if field.value else ""
                about = _field_comment(lines, field.lineno, field.end_lineno or field.lineno)
                owner = f"{node.name} of {backend_of(file) or file}"
                yield Switch(
                    field.target.id,
                    about,
                    ast.unparse(field.annotation),
                    default,
                    owner,
                    (Place(file, field.lineno),),
                )


def _field_comment(lines: list[str], first: int, last: int) -> str:
    """Return the comment above a field, or at its end."""
    above: list[str] = []
    for line in reversed(lines[: first - 1]):
        if not line.strip().startswith("#"):
            break
        above.insert(0, line.strip().lstrip("# "))
    _, mark, behind = lines[last - 1].partition("  #")
    return " ".join([*above, behind.strip()] if mark else above)


def cmake_options(tree: SourceFiles) -> tuple[Switch, ...]:
    """Return options and cache variables that Triton's own lists declare."""
    options = []
    for file in tree.having("CMakeLists.txt", ".cmake"):
        text = tree.text(file)
        for match in _CMAKE_OPTION.finditer(text):
            place = Place(file, line_of(text, match.start(1)))
            # An option without a value is OFF (cmake-commands(7)).
            options.append(Switch(match[1], match[2], "BOOL", match[3] or "OFF", "", (place,)))
        for match in _CMAKE_CACHE.finditer(text):
            place = Place(file, line_of(text, match.start(1)))
            options.append(Switch(match[1], match[4], match[3], match[2].strip('"'), "", (place,)))
    return tuple(options)
