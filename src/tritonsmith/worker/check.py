"""Run a script as Python would, then check its values for `triage --check`."""

from __future__ import annotations

import os
import sys
import traceback
import types
from typing import TYPE_CHECKING, Any

from .border import read_request, text_of
from .messages import CheckedRow, CheckRequest

if TYPE_CHECKING:
    from .border import Table

CLOSE = {"rtol": 1e-5, "atol": 1e-8}  # as torch.allclose; torch's comparison chooses them by the dtypes


def run_script(request_path: str, script: str, *arguments: str) -> int:
    """Run a script, write whether the check holds, and return the script's exit code."""
    request = read_request(CheckRequest, request_path)
    place = os.path.abspath(script)
    with open(place, "rb") as file:
        code = compile(file.read(), place, "exec")
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(place))
    # The script has to be `__main__`: it guards its main part by that name, and pickle looks classes up
    # there.
    module = types.ModuleType("__main__")
    module.__file__ = place
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - what Python does with a script
    except SystemExit as end:
        if end.code:
            print(end.code, file=sys.stderr)
            return end.code if isinstance(end.code, int) else 1
    # The verdict goes to a file: a script may end with any exit code, and its output is its own.
    row = judge(request, module.__dict__)
    print(f"check: {row.status}: {row.text}")
    with open(request.result, "w", encoding="utf-8") as results:
        results.write(text_of(row) + "\n")
    return 0


def judge(request: CheckRequest, names: Table) -> CheckedRow:
    """Return whether the check holds; `names` are those of the script's top level."""
    try:
        left = _value(request.left, names)
        if request.right:
            _compare(left, _value(request.right, names), request)
            return CheckedRow("holds", "they are close")
        truth = left is None or (left.all() if hasattr(left, "all") else left)
        return CheckedRow("holds" if truth else "differs", "None" if left is None else str(bool(truth)))
    except AssertionError as error:
        return CheckedRow("differs", _line(error))
    except Exception as error:  # noqa: BLE001 - a name that is not there, shapes that no comparison takes
        traceback.print_exc()
        return CheckedRow("error", f"{type(error).__name__}: {_line(error)}")


def _value(text: str, names: Table) -> Any:
    """Evaluate an expression; a function of the script is called."""
    value = eval(text, names)  # noqa: S307 - the user writes it on the command line, beside the script
    return value() if callable(value) else value


def _compare(left: object, right: object, request: CheckRequest) -> None:
    # torch accepts both tolerances or neither. One alone means that the other is 0.
    chosen = {name: getattr(request, name) for name in CLOSE if getattr(request, name) is not None}
    tolerances = {**dict.fromkeys(CLOSE, 0.0), **chosen} if chosen else {}
    # Only what the script has imported: its values can be of no other package.
    torch, numpy = (sys.modules.get(name) for name in ("torch", "numpy"))
    if torch and hasattr(torch, "testing"):
        same = {"check_device": False, "check_dtype": False, "check_stride": False}
        torch.testing.assert_close(left, right, **same, **tolerances)
    elif numpy:
        numpy.testing.assert_allclose(left, right, **(tolerances or CLOSE), equal_nan=False)
    elif left != right:
        raise AssertionError(f"{left!r} is not {right!r}, and neither torch nor numpy compares them")


def _line(error: BaseException) -> str:
    return "; ".join(filter(None, map(str.strip, str(error).splitlines())))
