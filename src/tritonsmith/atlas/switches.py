"""Find the switches set from outside: environment variables, options of a backend, options of CMake."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from tritonsmith.atlas.pipeline import backend_of
from tritonsmith.atlas.source_files import Place, SourceFiles, line_of
from tritonsmith.core import untrusted

_READ = re.compile(
    r"\b(?:getBoolEnv|getStrEnv|isEnvValueBool|getenv|getenv_bool|env_\w+|environ(?:\.get|\.pop)?|check_env_flag"
    r"|get_env_with_keys|DEFINE_ENV)\s*[\(\[]\s*\[?\s*[\"']([A-Z][A-Z0-9_-]{2,})[\"']"
)
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
    """One of these switches.

    Attributes:
        name: of the variable or option.
        about: its description; may be empty.
        type: as written; may be empty.
        default: as written; may be empty.
        owner: the class of a backend's options, with its backend; else empty.
        places: where it is read or declared.
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


def composed(tree: SourceFiles) -> dict[str, tuple[Place, ...]]:
    """Return variables whose names Python composes, by the literals in calls of the code around.

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
    """A code that composes a name: the class or function around, the text with its hole, and its place."""

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
        if not (isinstance(node, ast.ClassDef) and node.name.endswith("Options")):
            continue
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                default = ast.unparse(field.value) if field.value else ""
                about = _comment(lines, field.lineno, field.end_lineno or field.lineno)
                owner = f"{node.name} of {backend_of(file) or file}"
                yield Switch(
                    field.target.id,
                    about,
                    ast.unparse(field.annotation),
                    default,
                    owner,
                    (Place(file, field.lineno),),
                )


def _comment(lines: list[str], first: int, last: int) -> str:
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
            options.append(Switch(match[1], match[2], "BOOL", match[3] or "OFF", "", (place,)))
        for match in _CMAKE_CACHE.finditer(text):
            place = Place(file, line_of(text, match.start(1)))
            options.append(Switch(match[1], match[4], match[3], match[2].strip('"'), "", (place,)))
    return tuple(options)
