"""Choose the tests to run: whole suites, those that the user names, or those that changed files affect.

A changed file selects few tests only where that is safe: a test affects itself; a source that implements
passes and offers nothing else to others affects the tests that run these passes, or passes that call them.
Any other file affects whole suites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tritonsmith.atlas import mentions
from tritonsmith.atlas.index import Index
from tritonsmith.atlas.source_files import Definition, SourceFiles
from tritonsmith.build.suites import results
from tritonsmith.build.suites.results import CONFIG, SUITES, SuiteName, UnitTest
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import checkout, git

LIT = "test"  # the folder, and its twin in the build folder
_PYTHON = "python/test"
_MARK = "mark.interpreter"
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
USUAL_SUITES: tuple[SuiteName, ...] = ("lit", "cpp", "gpu-less")  # as upstream's `make test-nogpu`


@dataclass(frozen=True)
class SuiteSelection:
    """Tests by suite, as paths relative to the checkout.

    Attributes:
        lit: files and folders.
        cpp: programs with unit tests.
        gpu_less: files, or `FILE::NAME`.
        interpreter: files, or `FILE::NAME`.
        left_out: tests that are not run, and why.
    """

    lit: tuple[str, ...] = ()
    cpp: tuple[UnitTest, ...] = ()
    gpu_less: tuple[str, ...] = ()
    interpreter: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def suites(self) -> tuple[SuiteName, ...]:
        """The suites that have something to run."""
        pairs: tuple[tuple[SuiteName, Sequence[object]], ...] = (
            ("lit", self.lit),
            ("cpp", self.cpp),
            ("gpu-less", self.gpu_less),
            ("interpreter", self.interpreter),
        )
        return tuple(name for name, tests in pairs if tests)


@dataclass(frozen=True)
class SuiteTree:
    """The tests of a checkout.

    Attributes:
        root: its top folder.
        backends: the backends that are built.
    """

    root: Path
    backends: tuple[str, ...]

    def whole(self, suites: Iterable[SuiteName]) -> SuiteSelection:
        """Select all tests of some suites."""
        requested, left_out = set(suites), []
        tests_of: dict[SuiteName, tuple[str, ...]] = {
            "lit": (LIT,) if (self.root / LIT / "lit.cfg.py").is_file() else (),
            "gpu-less": self.gpu_less,
            "interpreter": self.interpreter,
        }
        units = results.unit_tests(self.root, self.backends)
        for name, tests in (*tests_of.items(), ("cpp", units)):
            if name in requested and not tests:
                left_out.append((str(name), configs.load(CONFIG)["missing"][name]))
        kept = {name: tests if name in requested else () for name, tests in tests_of.items()}
        return SuiteSelection(
            kept["lit"],
            units if "cpp" in requested else (),
            kept["gpu-less"],
            kept["interpreter"],
            tuple(left_out),
        )

    @property
    def gpu_less(self) -> tuple[str, ...]:
        """The tests for pytest that need no GPU (`configs/test-suites.toml`) and that this checkout has."""
        # Tests move between releases, so the rows of the configuration are for all of them.
        rows = configs.load(CONFIG)["gpu-less"]
        return tuple(row["test"] for row in rows if self._has(row["test"]))

    def _has(self, test: str) -> bool:
        file, _, name = test.partition("::")
        path = self.root / file
        # pytest ends with an error if a file has no test of that name, and runs none of the others.
        return path.is_file() and (not name or f"def {name}(" in untrusted.read_text(path))

    @property
    def interpreter(self) -> tuple[str, ...]:
        """The files with tests that upstream marks for the interpreter."""
        files = sorted((self.root / _PYTHON).rglob("test_*.py"))
        return tuple(self.name(file) for file in files if _MARK in untrusted.read_text(file))

    def name(self, path: Path) -> str:
        """Return a path relative to the checkout."""
        return path.relative_to(self.root).as_posix()

    def named(self, words: Iterable[str], suites: frozenset[SuiteName]) -> tuple[SuiteSelection, list[str]]:
        """Select the tests that the user names, and return the named files that are no tests.

        Args:
            words: paths, or `FILE::NAME` for pytest; relative to the current folder or to the checkout.
            suites: the requested suites; a test that fits none of them is an error.

        Raises:
            UsageError: a file does not exist, or no requested suite has it.
        """
        lit: list[str] = []
        cpp: list[UnitTest] = []
        python: list[str] = []
        rest: list[str] = []
        for word in words:
            file, mark, name = word.partition("::")
            path = self._path(file)
            units = [unit for unit in results.unit_tests(self.root, self.backends) if _covers(path, unit)]
            if path == LIT or path.startswith(f"{LIT}/"):
                lit += self._lit(path)
            elif units:
                cpp += units
            elif _is_python_test(path, self.root):
                python.append(f"{path}{mark}{name}")
            else:
                rest.append(path)
        # A path does not tell whether a test of Python's runs in the interpreter: the flag does.
        interpreted = "interpreter" in suites
        selection = SuiteSelection(
            tuple(dict.fromkeys(lit)),
            tuple(dict.fromkeys(cpp)),
            () if interpreted else tuple(python),
            tuple(python) if interpreted else (),
        )
        if suites and (others := set(selection.suites) - suites):
            raise UsageError(
                f"these are tests of {', '.join(sorted(others))}, and --{min(suites)} asks for others",
                hints=["name the tests without the flag of a suite"],
            )
        return selection, rest

    def _lit(self, path: str) -> Iterator[str]:
        if (self.root / path).is_file() and not checkout.is_lit_test(
            path, untrusted.read_text(self.root / path)
        ):
            raise UsageError("this is not a lit test", where=self.root / path, hints=["lit reads RUN lines"])
        yield path

    def _path(self, text: str) -> str:
        for path in (Path(text).expanduser().absolute(), self.root / text):
            # A path may be meant from the current folder or from the checkout's top.
            if path.exists() and path.resolve().is_relative_to(self.root.resolve()):
                return path.resolve().relative_to(self.root.resolve()).as_posix()
        raise UsageError(
            f"no such file or folder in this checkout: {text}",
            where=self.root,
            hints=["a path below the checkout: test/TritonGPU, python/test/unit/language/test_frontend.py"],
        )


def _covers(path: str, unit: UnitTest) -> bool:
    """Report whether a path is one of a program's sources, or a folder above them."""
    return path in unit.sources or unit.folder == path or unit.folder.startswith(f"{path}/")


def _is_python_test(path: str, root: Path) -> bool:
    parts = path.split("/")
    if not {"test", "tests", "tutorials"}.intersection(parts[1:]):
        return False
    return (root / path).is_dir() or path.endswith(".py")


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

    @property
    def effects(self) -> tuple[tuple[str, str], ...]:
        """The files that affect tests, each with its effect."""
        return tuple((file, effect) for file, effect in self.reasons if not effect.startswith("nothing"))

    def selection(self, tree: SuiteTree, suites: Iterable[SuiteName]) -> SuiteSelection:
        """Select the affected tests of the requested suites, and list the others as left out."""
        requested = set(suites)
        all_ = tree.whole(SUITES)
        # Tests that run the fewest passes on the least IR come first: their failure says the most.
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


def of_paths(tree: SuiteTree, paths: Sequence[str], suites: frozenset[SuiteName]) -> SuiteSelection:
    """Select tests by their files and folders; whole suites without any.

    Raises:
        UsageError: a path has no test of these suites.
    """
    if not paths:
        return tree.whole(suites or USUAL_SUITES)
    selection, rest = tree.named(paths, suites)
    if rest:
        raise UsageError(
            f"no test: {', '.join(rest)}",
            where=tree.root,
            hints=["a file or folder of test/, unittest/ or python/test/", "--changed: by your changes"],
        )
    return selection


def of_branch(tree: SuiteTree, base: str) -> tuple[AffectedTests, int, str]:
    """Find the tests that the changes of a branch can affect.

    Args:
        tree: the tests of the checkout.
        base: branch or commit to compare with; empty for upstream's main.

    Returns:
        The tests, the number of changed files, and the name of the base.
    """
    changes = git.branch_changes(tree.root, base)
    changed, deleted = (
        [path.relative_to(tree.root).as_posix() for path in paths]
        for paths in (changes.files, changes.deleted)
    )
    affected = of_files(Index(SourceFiles(tree.root)), tree, changed, deleted)
    return affected, len(changed) + len(deleted), changes.base


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
        affected.reasons.append((file, _add_effects(index, tree, file, affected)))
    for file in deleted:
        suites, why = _by_rule(file)
        # A deleted test can no longer fail; other files may still use what any other one offered.
        if not _is_test(file):
            affected.whole |= suites
        affected.reasons.append((file, f"deleted: {_in_words(suites, why)}"))
    return affected


def without_cpp(selection: SuiteSelection, sources: Path | None, *, required: bool) -> SuiteSelection:
    """Leave out the unit tests of C++, which need the sources of GoogleTest.

    Args:
        selection: the tests.
        sources: the folder that the user gave for GoogleTest, and that lacks it; None without one.
        required: the user requested the unit tests.

    Raises:
        FactError: they are required.
    """
    why = f"{sources} has no GoogleTest" if sources else "no sources of GoogleTest on this machine"
    hints = ["Debian: apt install googletest", "--googletest FOLDER: with its CMakeLists.txt"]
    if required:
        raise FactError("the unit tests cannot be built", why=why, hints=hints)
    return replace(selection, cpp=(), left_out=(*selection.left_out, ("cpp", f"{why}; {hints[0]}")))


def _add_effects(index: Index, tree: SuiteTree, file: str, affected: AffectedTests) -> str:
    text = index.tree.text(file) if file in index.tree.names else ""
    if (
        file.startswith(f"{LIT}/")
        and file.endswith((".mlir", ".ll", ".py"))
        and checkout.is_lit_test(file, text)
    ):
        # A test that was edited comes first, before those that only run the same pass.
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
    # A unit test names no pass: it calls the function that creates it.
    makers = [maker for definition in passes for maker in mentions.makers(definition)]
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
    return f"lit tests that run {names}: {len(tests)}; gpu-less tests that compile: {len(compiling)}"


def _cost(text: str) -> tuple[int, int]:
    """Return the cost of a test as evidence: the options of its RUN lines, and its length."""
    lines = (line for line in text.splitlines() if "RUN:" in line)
    return sum(len(_RUNS_PASS.findall(line)) for line in lines), len(text)


def _compiles(index: Index, test: str) -> bool:
    """Report whether a test for pytest compiles or launches a kernel in this checkout."""
    file, _, name = test.partition("::")
    text = index.tree.text(file)
    if name:
        # A test ends where the next definition begins at the left margin.
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
        # One caller that offers more than passes is enough: what it passes on cannot be followed by names.
        if not own:
            return ()
        passes |= {definition.name: definition for definition in own}
        callers = (place.file for definition in own for place in mentions.callers(index.tree, definition))
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
        and (place := mentions.implementation(index.tree, definition.record, definition.constructor))
        and place.file == file
    )
    makers = {maker for definition in passes for maker in mentions.makers(definition)}
    # A source that offers helpers to others affects whatever these do: then no single pass stands for it.
    return () if any(_declared(index, name) for name in _offered(text) - makers) else passes


def _offered(text: str) -> set[str]:
    """Return functions that others can call: neither methods of its own classes nor in `namespace {`."""
    # `Class::method(` looks like a function of a namespace, so classes that this very file defines are told
    # apart by name.
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
        # Braces may be unbalanced by macros. Then all counts as offered, which only selects more tests.
        if not end:
            break
        text = text[: match.start()] + text[end:]
    return text


def _declared(index: Index, name: str) -> bool:
    """Report whether a header mentions such a function, so that other files may call it."""
    sign = re.compile(rf"\b{name}\(")
    # Comments count as mentions, too, and only select more tests.
    headers = (index.tree.text(file) for file in index.tree.having(".h", ".hpp"))
    return any(name in text and sign.search(text) for text in headers)


def _is_test(file: str) -> bool:
    folders, _, name = file.rpartition("/")
    return "test" in folders.split("/") and (name.startswith("test_") or name.endswith((".mlir", ".ll")))


def _by_rule(file: str) -> tuple[set[SuiteName], str]:
    # The first row that matches decides: special files come before the folders that they lie in.
    for row in configs.load(CONFIG)["affects"]:
        if any(fnmatchcase(file, pattern) for pattern in row["files"]):
            return set(row["suites"]), row["why"]
    # A file that no row knows affects everything: too many tests cost time, and a missing one costs the
    # user's trust.
    return set(SUITES), "which tests it affects is not known"


def _in_words(suites: Iterable[SuiteName], why: str) -> str:
    names = [suite for suite in SUITES if suite in suites]
    return f"all of {', '.join(names)}: {why}" if names else f"nothing: {why}"
