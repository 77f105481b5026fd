"""The tests that changed files can affect, by what the atlas knows of them.

Narrow where it is safe: a test affects itself; a source that implements passes and gives nothing else to
others affects the tests whose RUN lines name these passes. All else affects whole suites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tritonsmith import configs
from tritonsmith.atlas import native, uses
from tritonsmith.atlas.definition import Definition
from tritonsmith.atlas.index import Index
from tritonsmith.facts import lit_tests
from tritonsmith.suites import gtest
from tritonsmith.suites.gtest import UnitTest
from tritonsmith.suites.outcome import CONFIG, SUITES, SuiteName
from tritonsmith.suites.selection import LIT, SuiteSelection, SuiteTree

# A function at the left margin, in a namespace or not: what other files may call.
_EXPORTED = re.compile(
    r"^(?!static|#|//|template)[A-Za-z][\w:<>,&* ]*?[\s&*](?P<name>[\w:]+)\(", re.MULTILINE
)


@dataclass
class AffectedTests:
    """What changed files can affect.

    Attributes:
        reasons: file, and what it affects and why.
        whole: suites of which all tests may be affected.
        lit: files.
        cpp: programs.
        python: tests for pytest.
    """

    reasons: list[tuple[str, str]] = field(default_factory=list)
    whole: set[SuiteName] = field(default_factory=set)
    lit: set[str] = field(default_factory=set)
    cpp: set[UnitTest] = field(default_factory=set)
    python: set[str] = field(default_factory=set)

    def selection(self, tree: SuiteTree, asked: Iterable[SuiteName]) -> SuiteSelection:
        """The tests of the suites that are asked for; what else is affected is left out, and said."""
        wanted = set(asked)
        all_ = tree.whole(SUITES)
        found = SuiteSelection(
            all_.lit if "lit" in self.whole else tuple(sorted(self.lit)),
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
        return tuple(test for test in every if test.partition("::")[0] in self.python)


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
        found.lit.add(file)
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
    passes = _passes(index, file, text) if "lit" in suites else ()
    tests = {place.file for one in passes for place in uses.of_pass(index.tree, one.name)}
    if not tests:
        found.whole |= suites
        return _in_words(suites, why)
    found.lit |= {name for name in tests if name.startswith(f"{LIT}/")}
    makers = [maker for one in passes for maker in native.makers(one)]
    found.cpp |= {
        unit
        for unit in gtest.units(tree.root, tree.backends)
        if any(maker in index.tree.text(source) for source in unit.sources for maker in makers)
    }
    found.whole |= suites - {"lit", "cpp", "interpreter"}  # which compiles nothing
    names = ", ".join(one.name for one in passes)
    return f"{len(tests)} tests of lit's that run {names}; all of gpu-less"


def _passes(index: Index, file: str, text: str) -> tuple[Definition, ...]:
    """The passes of a source that gives nothing but these to others; none if it gives more."""
    if not file.endswith(".cpp"):
        return ()
    passes = tuple(
        one
        for one in index.definitions
        if one.kind == "pass"
        and (one.record in text or (one.constructor and one.constructor in text))
        and (found := native.implementation(index.tree, one.record, one.constructor))
        and found.file == file
    )
    makers = {maker for one in passes for maker in native.makers(one)}
    given = {match["name"].rpartition("::")[2] for match in _EXPORTED.finditer(text)} - makers
    callers = (place.file for one in passes for place in native.callers(index.tree, one))
    if any(_declared(index, name) for name in given) or any(not uses.is_test(file) for file in callers):
        return ()
    return passes


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
