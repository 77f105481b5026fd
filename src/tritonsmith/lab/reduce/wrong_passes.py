"""`reduce --when wrong`: passes that change what the functions of a file compute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonsmith.check.limited import LimitedChecks
from tritonsmith.compiler.replay.bindings import Call
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.reduce.oracles import BindingsOracle, OracleAnswer, PassRunner


class WrongPassRunner(PassRunner):
    """Passes of a libtriton that do not fail, and change what a kernel computes."""

    def oracle(self, folder: Path, limit: float, name: str = "in.mlir") -> WrongPassOracle:  # noqa: ARG002
        """One that runs the IR before and after these passes."""
        assert self.python is not None  # noqa: S101 - only bindings print the generic form
        return WrongPassOracle(self.python, self.calls, folder, limit)


class WrongPassOracle(BindingsOracle):
    """Reports how the passes change a result: only that has to stay, not which element it is."""

    def __init__(self, python: Path, calls: Sequence[Call], folder: Path, limit: float) -> None:
        super().__init__(python, calls, folder, limit)
        self._checks = LimitedChecks(max(round(limit), 1))

    def ask(self, text: str) -> OracleAnswer:
        """Test a text: nothing if it cannot be run, or if the passes fail."""
        before, log = self._generic(text, passes=False)
        if before is None:
            return OracleAnswer(None, began=False, log=log)
        after, log = self._generic(text, passes=True)
        if after is None:
            return OracleAnswer(None, began=True, log=log)
        change, log = self._checks.changed(before, after)
        return OracleAnswer(Failure("wrong", change) if change else None, began=True, log=log)

    def close(self) -> None:
        """Stop both workers."""
        self._checks.close()
        super().close()

    def _generic(self, text: str, *, passes: bool) -> tuple[str | None, str]:
        answer, log = self._run(text, passes=passes, generic=True)
        if answer.status != "ok":
            return None, f"{log.rstrip()}\n{answer.error}\n".lstrip()
        return self._out.read_text(encoding="utf-8"), log
