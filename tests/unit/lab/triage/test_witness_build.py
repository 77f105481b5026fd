"""Builds that say more: which one is asked, and what counts as an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.facts import libtriton
from tritonsmith.facts.libtriton import Libtriton
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.triage import other_tools
from tritonsmith.lab.triage import variant as variants
from tritonsmith.lab.triage.other_tools import BuildKind, WitnessBuild
from tritonsmith.lab.triage.variant import TriageChange

ASSERTED = "python: /src/lib/Coalesce.cpp:100: void f(int): Assertion `!x.empty()' failed.\nAborted\n"
UNREACHABLE = "unhandled type\nUNREACHABLE executed at /src/lib/Utility.cpp:12!\n"


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make an environment; its library has what its name says: assertions, asan."""

    def read(path: Path) -> Libtriton:
        text = path.read_text(encoding="utf-8")
        return Libtriton(path, asserts="asserts" in text, asan="asan" in text)

    monkeypatch.setattr(libtriton, "read", read)

    def made(name: str, has: str, commit: str = "", **more: object) -> Path:
        env = Workspace(tmp_path).env(name)
        env.python.parent.mkdir(parents=True)
        env.python.touch()
        package = env.venv / "lib" / "python3.11" / "site-packages" / "triton"
        receipt = {"schema": 1, "source": str(tmp_path / name), "commit": commit, "dirty": False}
        if commit:
            env.receipt("build-triton").parent.mkdir(parents=True)
            content = {**receipt, "build_type": "Debug", "finished": name, **more}
            env.receipt("build-triton").write_text(json.dumps(content), encoding="utf-8")
        for folder in (package, *([tmp_path / name / "python" / "triton"] if commit else [])):
            (folder / "_C").mkdir(parents=True)
            (folder / "_C" / "libtriton.so").write_text(has, encoding="utf-8")
            (folder / "__init__.py").write_text('__version__ = "3.9.0"\n', encoding="utf-8")
        return env.python

    return made


def found(kind: BuildKind, python: Path) -> WitnessBuild:
    """The build that is asked."""
    return other_tools.find_build(kind, python, "3.9.0", Workspace(python.parents[4]))


def test_the_same_commit_comes_first_and_then_the_newest(make: Callable[..., Path]) -> None:
    tested = make("tested", "", "a" * 40, build_type="Release")
    make("x older", "asserts", "b" * 40)
    make("y newer", "asserts", "c" * 40)
    assert (
        found("assertions", tested).about
        == f"by env y newer of {'c' * 10}, not {'a' * 10} as the one under test"
    )
    make("asserting", "asserts", "a" * 40)
    assert found("assertions", tested).about == f"by env asserting of {'a' * 10}, as the one under test"


def test_a_commit_with_changes_is_not_the_one_under_test(make: Callable[..., Path]) -> None:
    tested = make("tested", "", "a" * 40, build_type="Release")
    make("dev", "asserts", "a" * 40, dirty=True)
    assert found("assertions", tested).about == f"by env dev of {'a' * 10} with changes"


def test_a_build_of_one_target_does_not_make_the_library(make: Callable[..., Path]) -> None:
    wheel = make("wheel", "")
    python = make("dev", "asserts", "b" * 40, finished="2", targets=["triton-opt"])
    with pytest.raises(FactError, match="needs a build with assertions"):
        found("assertions", wheel)
    build = Workspace(python.parents[4]).env("dev").receipt("build-triton")
    older = json.loads(build.read_text(encoding="utf-8")) | {"commit": "a" * 40, "finished": "1"}
    build.with_name("install-triton.json").write_text(json.dumps(older), encoding="utf-8")
    assert found("assertions", wheel).about.startswith(f"by env dev of {'a' * 10},")
    build.write_text(
        json.dumps(older | {"commit": "b" * 40, "finished": "2", "targets": []}), encoding="utf-8"
    )
    assert found("assertions", wheel).about.startswith(f"by env dev of {'b' * 10},")


def test_the_commit_of_a_wheel_is_not_known(make: Callable[..., Path]) -> None:
    wheel = make("wheel", "")
    make("dev", "asserts", "b" * 40)
    assert found("assertions", wheel).about.endswith(", which need not be that of 3.9.0")


@pytest.mark.parametrize(
    ("kind", "has", "build_type"),
    [
        ("assertions", "", "Debug"),  # the install of another environment has replaced the library
        ("assertions", "asserts", "Release"),  # LLVM's only
        ("assertions", "asserts asan", "Debug"),
        ("address", "asserts", "Debug"),
    ],
)
def test_what_is_no_such_build(make: Callable[..., Path], kind: BuildKind, has: str, build_type: str) -> None:
    tested = make("tested", "", "a" * 40)
    make("dev", has, "b" * 40, build_type=build_type)
    with pytest.raises(FactError, match="needs a build with") as caught:
        found(kind, tested)
    name = "asan" if kind == "address" else "dev"
    assert f"invoke build-triton --env {name}" in caught.value.hints[0]


def test_a_build_that_is_not_installed_is_none(make: Callable[..., Path]) -> None:
    tested, other = make("tested", "", "a" * 40), make("dev", "asserts", "b" * 40)
    (other.parents[1] / "lib/python3.11/site-packages/triton/__init__.py").unlink()
    with pytest.raises(FactError, match="needs a build with assertions"):
        found("assertions", tested)


def test_a_triton_with_assertions_has_said_it(make: Callable[..., Path]) -> None:
    with pytest.raises(FactError, match="this Triton itself is a build with assertions"):
        found("assertions", make("wheel", "asserts"))


@pytest.mark.parametrize(
    ("seen", "log", "answer", "figures"),
    [
        (
            Verdict.BAD,
            ASSERTED,
            Verdict.OTHER,
            "Coalesce.cpp:100: void f(int): Assertion `!x.empty()' failed, by env",
        ),
        (
            Verdict.OTHER,
            UNREACHABLE,
            Verdict.OTHER,
            "UNREACHABLE executed at /src/lib/Utility.cpp:12!, by env",
        ),
        (Verdict.BAD, "RuntimeError: PassManager::run failed", Verdict.BAD, "it reports nothing, by env"),
        (Verdict.GOOD, "", Verdict.GOOD, "it reports nothing, by env"),
        (Verdict.OTHER, "No module named 'torch'", Verdict.SKIP, "by env"),
    ],
)
def test_what_is_an_answer(tmp_path: Path, seen: Verdict, log: str, answer: Verdict, figures: str) -> None:
    space = Workspace(tmp_path)
    build = WitnessBuild(space.env("dev"), "by env dev")
    [change] = [row.change for row in variants.every() if row.change.build == "assertions"]

    def look(one: TriageChange, python: Path) -> Observation:
        assert (one, python) == (replace(change, says=""), build.env.python)
        return Observation(seen, "exit code 1")

    told = other_tools.test_by_build(change, build, space, look, lambda _name: log)
    assert told.verdict is answer
    assert told.figures.startswith(figures)
    assert answer is not Verdict.SKIP or told.why == "an assertions build does not report it: exit code 1"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["READ of size 4 at 0x5020 thread T0", "    #0 0x7f in g(int) /s/lib/Coalesce.cpp:100:44"],
            "heap-buffer-overflow: READ of size 4 in g Coalesce.cpp:100:44",
        ),
        (
            [
                "WRITE of size 8 at 0x5020 thread T0",
                "    #0 0x5 in memcpy /b/sanitizer_common/sanitizer_common_interceptors.inc:827:5",
                "    #1 0x7f in (anonymous namespace)::P::run() /s/P.cpp:7",
            ],
            "heap-buffer-overflow: WRITE of size 8 in (anonymous namespace)::P::run P.cpp:7",
        ),
        (["    #0 0x7f (/lib/libx.so+0x1)"], "heap-buffer-overflow"),
    ],
)
def test_the_first_error_of_asan_in_short(lines: list[str], said: str) -> None:
    head = "AddressSanitizer: heap-buffer-overflow on address 0x5020 at pc 0x7f bp 0x7f sp 0x7f"
    assert other_tools.short_error(head, lines) == said


def test_no_error_is_no_text() -> None:
    assert other_tools.short_error("", []) == ""
