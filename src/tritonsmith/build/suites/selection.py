"""The tests to run: whole suites, or those that the user names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.suites import results
from tritonsmith.build.suites.results import CONFIG, SuiteName, UnitTest
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import UsageError
from tritonsmith.facts import checkout

LIT = "test"  # the folder, and its twin in the build folder
_PYTHON = "python/test"
_MARK = "mark.interpreter"


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
        rows = configs.load(CONFIG)["gpu-less"]
        return tuple(row["test"] for row in rows if self._has(row["test"]))

    def _has(self, test: str) -> bool:
        file, _, name = test.partition("::")
        path = self.root / file
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
