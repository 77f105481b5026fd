"""Lit tests: the call, and the results that it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted

PASSED = ("PASS", "FLAKYPASS", "XFAIL")
FAILED = ("FAIL", "XPASS", "TIMEOUT", "UNRESOLVED")
ENVIRONMENT = {"LIT_OPTS": None, "LIT_FILTER": None}  # a user's own would choose other tests


@dataclass(frozen=True)
class LitResult:
    """The result of one test.

    Attributes:
        name: of the suite and the test: `TRITON :: Triton/ops.mlir`.
        code: lit's word: `PASS`, `FAIL`, `UNSUPPORTED`.
        seconds: that it took.
        output: what it printed, if it failed or lit was asked to be verbose.
    """

    name: str
    code: str
    seconds: float = 0.0
    output: str = ""


def command(lit: str, report: Path, *tests: Path, wanted: str = "", jobs: int = 0) -> tuple[str, ...]:
    """The call of lit.

    A test is named by its path in the build folder, where its configuration is, though its file is in the
    sources: that works in every release, also where upstream's targets for a folder do not (triton#7965).

    Args:
        lit: the program.
        report: the file for the results.
        tests: files or folders, in the build folder.
        wanted: a regular expression of names.
        jobs: tests at once; lit's choice if 0.
    """
    more = (("--filter", wanted) if wanted else ()) + ((f"-j{jobs}",) if jobs else ())
    return (lit, "-v", "--output", str(report), *more, *map(str, tests))


def read(report: Path) -> tuple[LitResult, ...]:
    """The results, by name; none if lit did not get that far."""
    told: list[dict[str, Any]] = untrusted.read_json(report)["tests"] if report.is_file() else []
    found = (
        LitResult(
            str(one["name"]), str(one["code"]), float(one.get("elapsed") or 0), str(one.get("output") or "")
        )
        for one in told
    )
    return tuple(sorted(found, key=lambda one: one.name))
