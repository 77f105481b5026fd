"""What `test` hands to pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.core.plan import programs


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[str], Mapping[str, str]]]:
    """Command lines with their variables, none of which is run."""
    seen: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def stream(argv: Sequence[str], *, env: Mapping[str, str], **_rest: object) -> int:
        seen.append((argv, env))
        return 0

    monkeypatch.setattr(programs, "stream", stream)
    return seen


def test_one_kind(smith: Smith, asked: list[tuple[Sequence[str], Mapping[str, str]]]) -> None:
    assert smith("test", "--only", "unit", "--args", "-k 'a or b'").code == 0
    ((argv, _),) = asked
    assert list(argv[argv.index("-m", 2) :]) == ["-m", "unit", "-o", "testpaths=tests/unit", "-k", "a or b"]


def test_a_kind_that_there_is_not(smith: Smith, asked: list[tuple[Sequence[str], Mapping[str, str]]]) -> None:
    answer = smith("test", "--only", "units")
    assert answer.code == 2
    assert "did you mean 'unit'?" in answer.err
    assert not asked


def test_processes_of_tests_compile_no_module_twice(
    smith: Smith, asked: list[tuple[Sequence[str], Mapping[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("MINE", "1")
    smith("test", "--only", "unit")
    ((_, environ),) = asked
    assert "PYTHONDONTWRITEBYTECODE" not in environ
    assert environ["MINE"] == "1"


@pytest.mark.parametrize(("ended", "code", "runs"), [(2, 0, 2), (1, 1, 1)])
def test_types_are_checked_by_one_process_where_those_of_mypy_did_not_start(
    smith: Smith, monkeypatch: pytest.MonkeyPatch, ended: int, code: int, runs: int
) -> None:
    checks: list[Sequence[str]] = []

    def stream(argv: Sequence[str], **_rest: object) -> int:
        if "mypy" not in argv:
            return 0
        checks.append(argv)
        return ended if "--num-workers=auto" in argv else 0

    monkeypatch.setattr(programs, "stream", stream)
    assert smith("lint").code == code
    assert len(checks) == runs


@pytest.mark.parametrize(
    ("flags", "does", "last"), [((), "build", "/site/index.html\n"), (("--serve",), "serve", "")]
)
def test_the_site_is_built_or_served_strictly(
    smith: Smith,
    asked: list[tuple[Sequence[str], Mapping[str, str]]],
    flags: Sequence[str],
    does: str,
    last: str,
) -> None:
    answer = smith("docs", *flags)
    ((argv, environ),) = asked
    assert list(argv[1:]) == ["-m", "mkdocs", does, "--strict"]
    assert environ["NO_MKDOCS_2_WARNING"]
    assert answer.out.endswith(last)
    assert bool(answer.out) == bool(last)
