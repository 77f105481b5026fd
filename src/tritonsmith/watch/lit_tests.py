"""The lit tests of a checkout, as a command that runs again: a table of their results."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tritonsmith import untrusted
from tritonsmith.errors import FactError
from tritonsmith.facts import lit_tests
from tritonsmith.plan import files, process
from tritonsmith.ui import redact, tables
from tritonsmith.ui.tables import Grid
from tritonsmith.watch.build import WatchedBuild
from tritonsmith.watch.command import OnPart
from tritonsmith.watch.outcome import RunOutcome

_GOOD = ("PASS", "XFAIL", "UNSUPPORTED", "SKIPPED", "EXCLUDED")


class WatchedTests:
    """Lit tests of a build.

    Args:
        build: what they test.
        wanted: a regular expression of their names.

    Raises:
        FactError: there is no lit, or no test was configured.
    """

    def __init__(self, build: WatchedBuild, wanted: str) -> None:
        lit = build.env.venv / "bin" / "lit"
        self._lit, self._wanted, self._folder = lit, wanted, build.folder / "test"
        if not lit.is_file():
            hints = ["invoke build-triton installs it into the environment"]
            raise FactError("this environment has no lit", where=lit, hints=hints)
        if not (self._folder / lit_tests.SITE).is_file():
            raise FactError(
                "this build has no lit tests", where=self._folder, why=f"it has no {lit_tests.SITE}"
            )

    def run(self, on_part: OnPart) -> RunOutcome:
        """See `WatchedCommand`."""
        said: list[str] = []
        hide = redact.SecretLines()
        with files.scratch("lit-") as scratch:
            report = scratch / "tests.json"
            argv = (str(self._lit), "--output", str(report), "--filter", self._wanted, str(self._folder))
            env = process.changed(os.environ, {"LIT_OPTS": None, "LIT_FILTER": None})
            code = process.stream(
                argv, cwd=self._folder, env=env, on_line=lambda line: said.append(hide(line))
            )
            told = untrusted.read_json(report) if report.is_file() else {}
        parts = tuple(_parts(told["tests"])) if told.get("tests") else tuple(said)
        for part in parts:
            on_part(part)
        return RunOutcome(code, parts)


def _parts(tests: Sequence[Mapping[str, Any]]) -> list[str | Grid]:
    """A table of the results, and what the failed tests have printed."""
    chosen = sorted(
        (test for test in tests if test["code"] != "EXCLUDED"), key=lambda test: str(test["name"])
    )
    rows = [(str(test["name"]), str(test["code"])) for test in chosen]
    styles = ["" if code in _GOOD else "red" for _, code in rows]
    counts = Counter(code for _, code in rows)
    parts: list[str | Grid] = [tables.plain("lit tests", ["test", "result"], rows, styles=styles)]
    for test in chosen:
        if test["code"] not in _GOOD:
            parts += str(test.get("output", "")).strip().splitlines()
    return [*parts, ", ".join(f"{number} {code}" for code, number in sorted(counts.items()))]
