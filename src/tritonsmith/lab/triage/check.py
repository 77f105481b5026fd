"""`--check "out ~ reference"`: what has to hold of a script's values when it has ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import call
from tritonsmith.core import brackets
from tritonsmith.core.errors import UsageError
from tritonsmith.worker.messages import CheckedRow, CheckRequest

_CLOSE = " ~ "
_TOLERANCE = re.compile(r"(rtol|atol)=(\d*\.?\d+(?:e-?\d+)?)", re.ASCII)
_FLAG = re.compile("-")
_HINTS = (
    '--check "out ~ reference": values or functions of the script\'s top level, compared as torch does',
    '--check "out ~ reference, rtol=1e-2, atol=1e-2"',
    '--check "torch.equal(out, reference)", or the name of a function that asserts',
)


@dataclass(frozen=True)
class ResultCheck:
    """One check.

    Attributes:
        text: as it was given.
        left: an expression in the script's names.
        right: what it has to be close to; empty where the left one says by itself whether it holds.
        rtol: relative tolerance; None for torch's own, by the dtypes.
        atol: absolute tolerance; both are given, or the other one is 0.
    """

    text: str
    left: str
    right: str = ""
    rtol: float | None = None
    atol: float | None = None

    def argv(self, argv: Sequence[str], folder: Path, name: str) -> tuple[tuple[str, ...], Path]:
        """The program followed by the check, and the file that will say whether it holds.

        Args:
            argv: `python script.py`, with flags of Python and arguments of the script.
            folder: for the request and the result.
            name: of both.
        """
        at = script_of(argv)
        request, result = folder / f"{name}.request.json", folder / f"{name}.json"
        content = CheckRequest(self.left, self.right, self.rtol, self.atol, str(result))
        python = argv[:at] or ("python",)
        return (*python, *call.script(content, request), *argv[at:]), result


def parse(text: str) -> ResultCheck:
    """Read one.

    Raises:
        UsageError: it is not Python, or a tolerance is not a number.
    """
    left, *rest = brackets.split(text, _CLOSE, quotes="\"'")
    if len(rest) > 1:
        raise UsageError(f"--check compares two, not {len(rest) + 1}", hints=_HINTS)
    right, *words = brackets.split(rest[0], ",", quotes="\"'") if rest else [""]
    tolerances: dict[str, float] = {}
    for word in words:
        if not (match := _TOLERANCE.fullmatch(word)):
            raise UsageError(f"--check: {word!r} is not a tolerance", hints=_HINTS)
        tolerances[match[1]] = float(match[2])
    for expression in (left, right) if rest else (left,):
        try:
            compile(expression, "--check", "eval")
        except SyntaxError as error:
            raise UsageError(f"--check: {expression!r} is not Python", why=error.msg, hints=_HINTS) from error
    return ResultCheck(text, left, right, **tolerances)


def script_of(argv: Sequence[str], what: str = "--check") -> int:
    """Return the position of the script in a command.

    Args:
        argv: the command.
        what: wants one.

    Raises:
        UsageError: the command is not `python script.py`.
    """
    at = next((number for number, word in enumerate(argv) if word.endswith(".py")), -1)
    if at < 0 or (at and "python" not in Path(argv[0]).name) or not all(map(_FLAG.match, argv[1:at])):
        raise UsageError(f"{what} is about a Python script", hints=["-- python script.py ARGUMENTS"])
    return at


def read(result: Path) -> tuple[str, str]:
    """Status and text; empty where the script ended before the check."""
    rows = call.results(result, CheckedRow)
    return (rows[0].status, rows[0].text) if rows else ("", "")
