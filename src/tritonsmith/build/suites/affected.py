"""The tests that changed files can affect, by what the atlas knows of them.

Narrow where it is safe: a test affects itself; a source that implements passes and gives nothing else to
others affects the tests that run these passes, or passes that call them. All else affects whole suites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tritonsmith.atlas import native, uses
from tritonsmith.atlas.definition import Definition
from tritonsmith.atlas.index import Index
from tritonsmith.build.suites import gtest
from tritonsmith.build.suites.gtest import UnitTest
from tritonsmith.build.suites.outcome import CONFIG, SUITES, SuiteName
from tritonsmith.build.suites.selection import LIT, SuiteSelection, SuiteTree
from tritonsmith.core import configs
from tritonsmith.facts import lit_tests

# A function at the left margin, in a namespace or not: what other files may call.
_EXPORTED = re.compile(
    r"^(?!static|#|//|template)[A-Za-z][\w:<>,&* ]*?[\s&*](?P<name>[\w:]+)\(", re.MULTILINE
)

_DEFINED = re.compile(r"\b(?:class|struct)\s+(\w+)[^;{()]*\{")
_ANONYMOUS = re.compile(r"^namespace\s*\{", re.MULTILINE)
_BRACES = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|[{}]""", re.DOTALL)
# What runs passes in spite of `parses-only`, in other versions: `kernel.warmup()`, `kernel[grid]()`.
_COMPILES = re.compile(r"(?<!\bre\.)\bcompile\(|\bwarmup\b|\[(?:grid\b|\(|\d+\])[^\n]*\]\(|\bpass_manager\b")
_RUNS_PASS = re.compile(r"(?<=\s)--?[a-z][\w-]+")  # in a RUN line


@dataclass
class AffectedTests:
    """What changed files can affect.

    Attributes:
        reasons: file, and what it affects and why.
        whole: suites of which all tests may be affected.
        lit: files, each with what it costs to learn something from it: options of its RUN lines, and bytes.
        cpp: programs.
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
        """The tests of the suites that are asked for; what else is affected is left out, and said."""
        wanted = set(asked)
        all_ = tree.whole(SUITES)
        found = SuiteSelection(
            all_.lit
            if "lit" in self.whole
            else tuple(sorted(self.lit, key=lambda test: (self.lit[test], test))),
            all_.cpp if "cpp" in self.whole else tuple(sorted(self.cpp, key=lambda one: one.name)),
            self._python(all_.gpu_less, "gpu-less"),
            self._python(all_.interpreter, "interpreter"),
        )
        rest = [suite for suite in found.suites if suite not in wanted]
        said = "a changed file can affect it, and --{} is not given"
        left_out: list[tuple[str, str]] = [(suite, said.format(suite)) for suite in rest]
        left_out += [one for one in all_.left_out if one[0] in self.whole & wanted]
        left_out += [(file, what) for file, what in self.reasons if what.startswith("nothing")]
        return SuiteSelection(
            found.lit if "lit" in wanted else (),
            found.cpp if "cpp" in wanted else (),
            found.gpu_less if "gpu-less" in wanted else (),
            found.interpreter if "interpreter" in wanted else (),
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
    """The tests that files can affect.

    Args:
        index: the names of the checkout.
        tree: its tests.
        files: that changed, below the checkout.
        deleted: that are no longer there.
    """
    found = AffectedTests()
    for file in files:
        found.reasons.append((file, _one(index, tree, file, found)))
    for file in deleted:
        suites, why = _by_rule(file)
        if not _is_test(file):
            found.whole |= suites
        found.reasons.append((file, f"deleted: {_in_words(suites, why)}"))
    return found


def _one(index: Index, tree: SuiteTree, file: str, found: AffectedTests) -> str:
    text = index.tree.text(file) if file in index.tree.names else ""
    if file.startswith(f"{LIT}/") and file.endswith((".mlir", ".ll", ".py")) and lit_tests.is_lit(file, text):
        found.lit[file] = (0, 0)
        return "itself: a test of lit's"
    units = {unit for unit in gtest.units(tree.root, tree.backends) if file in unit.sources}
    if units:
        found.cpp |= units
        return f"unit tests {', '.join(sorted(unit.name for unit in units))}"
    if _is_test(file) and file.endswith(".py"):
        if not any(file == test.partition("::")[0] for test in (*tree.gpu_less, *tree.interpreter)):
            return "nothing here: its tests need a GPU"
        found.python.add(file)
        return "itself: tests for pytest"
    suites, why = _by_rule(file)
    passes = _passes(index, file) if "lit" in suites else ()
    tests = {place.file for one in passes for place in uses.of_pass(index.tree, one.name)}
    if not tests:
        found.whole |= suites
        return _in_words(suites, why)
    found.lit |= {name: _cost(index.tree.text(name)) for name in tests if name.startswith(f"{LIT}/")}
    makers = [maker for one in passes for maker in native.makers(one)]
    found.cpp |= {
        unit
        for unit in gtest.units(tree.root, tree.backends)
        if any(maker in index.tree.text(source) for source in unit.sources for maker in makers)
    }
    parsers = {row["test"] for row in configs.load(CONFIG)["gpu-less"] if row.get("parses-only")}
    compiling = {test for test in tree.gpu_less if test not in parsers or _compiles(index, test)}
    found.compiling |= compiling  # the interpreter compiles nothing
    names = ", ".join(one.name for one in passes)
    return f"tests of lit's that run {names}: {len(tests)}; those of gpu-less that compile: {len(compiling)}"


def _cost(text: str) -> tuple[int, int]:
    """What makes a test less specific and more expensive: options of its RUN lines, and its length."""
    lines = (line for line in text.splitlines() if "RUN:" in line)
    return sum(len(_RUNS_PASS.findall(line)) for line in lines), len(text)


def _compiles(index: Index, test: str) -> bool:
    """Whether a test for pytest compiles or launches a kernel in this checkout."""
    file, _, name = test.partition("::")
    text = index.tree.text(file)
    if name:
        begin = text.find(f"def {name}(")
        end = text.find("\ndef ", begin + 1)
        text = text[begin : end if end >= 0 else len(text)] if begin >= 0 else text
    return bool(_COMPILES.search(text))


def _passes(index: Index, file: str) -> tuple[Definition, ...]:
    """The passes of a source, and those that add them to pipelines; none if it gives more to others."""
    found: dict[str, Definition] = {}
    waiting, seen = [file], set[str]()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        own = _own_passes(index, here)
        if not own:
            return ()
        found |= {one.name: one for one in own}
        callers = (place.file for one in own for place in native.callers(index.tree, one))
        waiting += [caller for caller in callers if not uses.is_test(caller)]
    return tuple(found.values())


def _own_passes(index: Index, file: str) -> tuple[Definition, ...]:
    """The passes of a source that gives nothing but these to others; none if it gives more."""
    if not file.endswith(".cpp"):
        return ()
    text = index.tree.text(file)
    passes = tuple(
        one
        for one in index.definitions
        if one.kind == "pass"
        and (one.record in text or (one.constructor and one.constructor in text))
        and (found := native.implementation(index.tree, one.record, one.constructor))
        and found.file == file
    )
    makers = {maker for one in passes for maker in native.makers(one)}
    return () if any(_declared(index, name) for name in _given(text) - makers) else passes


def _given(text: str) -> set[str]:
    """Functions that others can call: no methods of the source's own classes, nothing in `namespace {`."""
    local = {match[1] for match in _DEFINED.finditer(text)}
    names = (match["name"].split("::") for match in _EXPORTED.finditer(_without_anonymous(text)))
    return {name[-1] for name in names if local.isdisjoint(name[-2:-1])}


def _without_anonymous(text: str) -> str:
    """C++ without its anonymous namespaces; one whose end is not found stays."""
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
    """Whether a header has such a function, so that other files may call it."""
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
