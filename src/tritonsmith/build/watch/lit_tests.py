"""The lit tests of a checkout, as a command that runs again: a table of their results."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from tritonsmith.build.suites import lit
from tritonsmith.build.suites.lit import LitResult
from tritonsmith.build.watch.build import WatchedBuild
from tritonsmith.build.watch.command import OnPart
from tritonsmith.build.watch.outcome import RunOutcome
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files, process
from tritonsmith.core.ui import redact, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import checkout


class WatchedTests:
    """Lit tests of a build.

    Args:
        build: the build under test.
        wanted: regular expression for their names.

    Raises:
        FactError: lit is missing, or no test is configured.
    """

    def __init__(self, build: WatchedBuild, wanted: str) -> None:
        program = build.env.venv / "bin" / "lit"
        self._lit, self._wanted, self._folder = program, wanted, build.folder / "test"
        if not program.is_file():
            hints = ["invoke build-triton installs it into the environment"]
            raise FactError("this environment has no lit", where=program, hints=hints)
        if not (self._folder / checkout.LIT_SITE).is_file():
            raise FactError(
                "this build has no lit tests", where=self._folder, why=f"it has no {checkout.LIT_SITE}"
            )

    def run(self, on_part: OnPart) -> RunOutcome:
        """Run the tests, as described in `WatchedCommand`."""
        output: list[str] = []
        hide = redact.SecretLines()
        with files.scratch("lit-") as scratch:
            report = scratch / "tests.json"
            argv = lit.command(str(self._lit), report, self._folder, wanted=self._wanted)
            env = process.changed(os.environ, lit.ENVIRONMENT)
            code = process.stream(
                argv, cwd=self._folder, env=env, on_line=lambda line: output.append(hide(line))
            )
            results = lit.read(report)
        parts = tuple(_parts(results)) if results else tuple(output)
        for part in parts:
            on_part(part)
        return RunOutcome(code, parts)


def _parts(tests: Sequence[LitResult]) -> list[str | Grid]:
    """Return a table of the results, and the output of the failed tests."""
    chosen = [test for test in tests if test.code != "EXCLUDED"]
    rows = [(test.name, test.code) for test in chosen]
    styles = ["red" if code in lit.FAILED else "" for _, code in rows]
    counts = Counter(code for _, code in rows)
    parts: list[str | Grid] = [tables.plain("lit tests", ["test", "result"], rows, styles=styles)]
    for test in chosen:
        if test.code in lit.FAILED:
            parts += test.output.strip().splitlines()
    return [*parts, ", ".join(f"{number} {code}" for code, number in sorted(counts.items()))]
