"""The tests that changed files can affect, according to the atlas.

Narrow where it is safe: a test affects itself; a source that implements passes and offers nothing else to
others affects the tests that run these passes, or passes that call them. Any other file affects whole suites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tritonsmith.atlas import mentions, native
from tritonsmith.atlas.definition import Definition
from tritonsmith.atlas.index import Index
from tritonsmith.build.suites import results
from tritonsmith.build.suites.results import CONFIG, SUITES, SuiteName, UnitTest
from tritonsmith.build.suites.selection import LIT, SuiteSelection, SuiteTree
from tritonsmith.core import configs
from tritonsmith.facts import checkout

# A function at the left margin, in a namespace or not: other files may call it.
_EXPORTED = re.compile(
    r"^(?!static|#|//|template)[A-Za-z][\w:<>,&* ]*?[\s&*](?P<name>[\w:]+)\(", re.MULTILINE
)

_DEFINED = re.compile(r"\b(?:class|struct)\s+(\w+)[^;{()]*\{")
_ANONYMOUS = re.compile(r"^namespace\s*\{", re.MULTILINE)
_BRACES = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|[{}]""", re.DOTALL)
# Calls that run passes despite `parses-only`, in other versions: `kernel.warmup()`, `kernel[grid]()`.
_COMPILES = re.compile(r"(?<!\bre\.)\bcompile\(|\bwarmup\b|\[(?:grid\b|\(|\d+\])[^\n]*\]\(|\bpass_manager\b")
_RUNS_PASS = re.compile(r"(?<=\s)--?[a-z][\w-]+")  # in a RUN line


@dataclass
class AffectedTests:
    """The tests that changed files can affect.

    Attributes:
        reasons: each file, with what it affects and why.
        whole: suites in which any test may be affected.
        lit: files, each with its cost as evidence: options of its RUN lines, and bytes.
        cpp: programs with unit tests.
        python: files for pytest.
        compiling: tests of gpu-less that run passes.
    """

    reasons: list[tuple[str, str]] = field(default_factory=list)
    whole: set[SuiteName] = field(default_factory=set)
    lit: dict[str, tuple[int, int]] = field(default_factory=dict)
    cpp: set[UnitTest] = field(default_factory=set)
    python: set[str] = field(default_factory=set)
    compiling: set[str] = field(default_factory=set)

    def selection(self, tree: SuiteTree, asked: Iterable[SuiteName]) -> SuiteSelection:
        """Select the affected tests of the requested suites, and list the others as left out."""
        requested = set(asked)
        all_ = tree.whole(SUITES)
        affected = SuiteSelection(
            all_.lit
            if "lit" in self.whole
            else tuple(sorted(self.lit, key=lambda test: (self.lit[test], test))),
            all_.cpp if "cpp" in self.whole else tuple(sorted(self.cpp, key=lambda unit: unit.name)),
            self._python(all_.gpu_less, "gpu-less"),
            self._python(all_.interpreter, "interpreter"),
        )
        rest = [suite for suite in affected.suites if suite not in requested]
        reason = "a changed file can affect it, and --{} is not given"
        left_out: list[tuple[str, str]] = [(suite, reason.format(suite)) for suite in rest]
        left_out += [row for row in all_.left_out if row[0] in self.whole & requested]
        left_out += [(file, what) for file, what in self.reasons if what.startswith("nothing")]
        return SuiteSelection(
            affected.lit if "lit" in requested else (),
            affected.cpp if "cpp" in requested else (),
            affected.gpu_less if "gpu-less" in requested else (),
            affected.interpreter if "interpreter" in requested else (),
            tuple(left_out),
        )

    def _python(self, every: tuple[str, ...], suite: SuiteName) -> tuple[str, ...]:
        if suite in self.whole:
            return every
        more = self.compiling if suite == "gpu-less" else set()
        return tuple(test for test in every if test in more or test.partition("::")[0] in self.python)


def of_files(
    index: Index, tree: SuiteTree, files: Iterable[str], deleted: Iterable[str] = ()
) -> AffectedTests:
    """Find the tests that files can affect.

    Args:
        index: names in the checkout.
        tree: its tests.
        files: changed files, relative to the checkout.
        deleted: files that no longer exist.
    """
    affected = AffectedTests()
    for file in files:
        affected.reasons.append((file, _one(index, tree, file, affected)))
    for file in deleted:
        suites, why = _by_rule(file)
        if not _is_test(file):
            affected.whole |= suites
        affected.reasons.append((file, f"deleted: {_in_words(suites, why)}"))
    return affected


def _one(index: Index, tree: SuiteTree, file: str, affected: AffectedTests) -> str:
    text = index.tree.text(file) if file in index.tree.names else ""
    if (
        file.startswith(f"{LIT}/")
        and file.endswith((".mlir", ".ll", ".py"))
        and checkout.is_lit_test(file, text)
    ):
        affected.lit[file] = (0, 0)
        return "itself: a lit test"
    units = {unit for unit in results.unit_tests(tree.root, tree.backends) if file in unit.sources}
    if units:
        affected.cpp |= units
        return f"unit tests {', '.join(sorted(unit.name for unit in units))}"
    if _is_test(file) and file.endswith(".py"):
        if not any(file == test.partition("::")[0] for test in (*tree.gpu_less, *tree.interpreter)):
            return "nothing here: its tests need a GPU"
        affected.python.add(file)
        return "itself: tests for pytest"
    suites, why = _by_rule(file)
    passes = _passes(index, file) if "lit" in suites else ()
    tests = {
        place.file for definition in passes for place in mentions.tests_of_pass(index.tree, definition.name)
    }
    if not tests:
        affected.whole |= suites
        return _in_words(suites, why)
    affected.lit |= {name: _cost(index.tree.text(name)) for name in tests if name.startswith(f"{LIT}/")}
    makers = [maker for definition in passes for maker in native.makers(definition)]
    affected.cpp |= {
        unit
        for unit in results.unit_tests(tree.root, tree.backends)
        if any(maker in index.tree.text(source) for source in unit.sources for maker in makers)
    }
    parsers = {row["test"] for row in configs.load(CONFIG)["gpu-less"] if row.get("parses-only")}
    compiling = {test for test in tree.gpu_less if test not in parsers or _compiles(index, test)}
    # The interpreter compiles nothing.
    affected.compiling |= compiling
    names = ", ".join(definition.name for definition in passes)
    return f"tests of lit's that run {names}: {len(tests)}; those of gpu-less that compile: {len(compiling)}"


def _cost(text: str) -> tuple[int, int]:
    """Return the cost of a test as evidence: the options of its RUN lines, and its length."""
    lines = (line for line in text.splitlines() if "RUN:" in line)
    return sum(len(_RUNS_PASS.findall(line)) for line in lines), len(text)


def _compiles(index: Index, test: str) -> bool:
    """Report whether a test for pytest compiles or launches a kernel in this checkout."""
    file, _, name = test.partition("::")
    text = index.tree.text(file)
    if name:
        begin = text.find(f"def {name}(")
        end = text.find("\ndef ", begin + 1)
        text = text[begin : end if end >= 0 else len(text)] if begin >= 0 else text
    return bool(_COMPILES.search(text))


def _passes(index: Index, file: str) -> tuple[Definition, ...]:
    """Return the passes of a source and of its callers' sources; none if one offers more to others."""
    passes: dict[str, Definition] = {}
    waiting, visited = [file], set[str]()
    while waiting:
        here = waiting.pop()
        if here in visited:
            continue
        visited.add(here)
        own = _own_passes(index, here)
        if not own:
            return ()
        passes |= {definition.name: definition for definition in own}
        callers = (place.file for definition in own for place in native.callers(index.tree, definition))
        waiting += [caller for caller in callers if not mentions.is_test(caller)]
    return tuple(passes.values())


def _own_passes(index: Index, file: str) -> tuple[Definition, ...]:
    """Return the passes of a source that offers nothing else to others; none if it offers more."""
    if not file.endswith(".cpp"):
        return ()
    text = index.tree.text(file)
    passes = tuple(
        definition
        for definition in index.definitions
        if definition.kind == "pass"
        and (definition.record in text or (definition.constructor and definition.constructor in text))
        and (place := native.implementation(index.tree, definition.record, definition.constructor))
        and place.file == file
    )
    makers = {maker for definition in passes for maker in native.makers(definition)}
    # A source that offers helpers to others affects whatever these do: then no single pass stands for it.
    return () if any(_declared(index, name) for name in _given(text) - makers) else passes


def _given(text: str) -> set[str]:
    """Return functions that others can call: neither methods of its own classes nor in `namespace {`."""
    local = {match[1] for match in _DEFINED.finditer(text)}
    names = (match["name"].split("::") for match in _EXPORTED.finditer(_without_anonymous(text)))
    return {name[-1] for name in names if local.isdisjoint(name[-2:-1])}


def _without_anonymous(text: str) -> str:
    """Return C++ without its anonymous namespaces; one without a known end stays."""
    while match := _ANONYMOUS.search(text):
        depth, end = 0, 0
        for token in _BRACES.finditer(text, match.start()):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if not depth and token[0] == "}":
                end = token.end()
                break
        if not end:
            break
        text = text[: match.start()] + text[end:]
    return text


def _declared(index: Index, name: str) -> bool:
    """Report whether a header mentions such a function, so that other files may call it."""
    sign = re.compile(rf"\b{name}\(")
    headers = (index.tree.text(file) for file in index.tree.having(".h", ".hpp"))
    return any(name in text and sign.search(text) for text in headers)


def _is_test(file: str) -> bool:
    folders, _, name = file.rpartition("/")
    return "test" in folders.split("/") and (name.startswith("test_") or name.endswith((".mlir", ".ll")))


def _by_rule(file: str) -> tuple[set[SuiteName], str]:
    for row in configs.load(CONFIG)["affects"]:
        if any(fnmatchcase(file, pattern) for pattern in row["files"]):
            return set(row["suites"]), row["why"]
    return set(SUITES), "which tests it affects is not known"


def _in_words(suites: Iterable[SuiteName], why: str) -> str:
    names = [suite for suite in SUITES if suite in suites]
    return f"all of {', '.join(names)}: {why}" if names else f"nothing: {why}"
