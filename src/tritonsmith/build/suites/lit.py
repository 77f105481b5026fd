"""Lit tests: the call and its results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted

PASSED = ("PASS", "FLAKYPASS", "XFAIL")
FAILED = ("FAIL", "XPASS", "TIMEOUT", "UNRESOLVED")
ENVIRONMENT = {"LIT_OPTS": None, "LIT_FILTER": None}  # the user's own would choose other tests


@dataclass(frozen=True)
class LitResult:
    """The result of one test.

    Attributes:
        name: names of the suite and the test: `TRITON :: Triton/ops.mlir`.
        code: lit's result code: `PASS`, `FAIL`, `UNSUPPORTED`.
        seconds: duration.
        output: its output, if it failed or lit was verbose.
    """

    name: str
    code: str
    seconds: float = 0.0
    output: str = ""


def command(lit: str, report: Path, *tests: Path, wanted: str = "", jobs: int = 0) -> tuple[str, ...]:
    """Return the call of lit.

    A test is named by its path in the build folder, which has its configuration, though its file is in the
    sources: this works in every release, even where upstream's targets for a folder do not (triton#7965).

    Args:
        lit: path of lit.
        report: the file for the results.
        tests: files or folders, in the build folder.
        wanted: regular expression for names.
        jobs: number of parallel tests; 0 for lit's choice.
    """
    more = (("--filter", wanted) if wanted else ()) + ((f"-j{jobs}",) if jobs else ())
    return (lit, "-v", "--output", str(report), *more, *map(str, tests))


def read(report: Path) -> tuple[LitResult, ...]:
    """Read the results, sorted by name; none if lit did not write any."""
    records: list[dict[str, Any]] = untrusted.read_json(report)["tests"] if report.is_file() else []
    results = (
        LitResult(
            str(record["name"]),
            str(record["code"]),
            float(record.get("elapsed") or 0),
            str(record.get("output") or ""),
        )
        for record in records
    )
    return tuple(sorted(results, key=lambda result: result.name))
