"""Run scripts as Python would: one, whose values `triage --check` compares, or one after the other."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import os
import sys
import threading
import traceback
import types
from typing import TYPE_CHECKING, Any

from .border import read_request, request_of, text_of
from .messages import CheckedRow, CheckRequest, ReadyRow, ScriptRequest, ServedRow
from .processes import can_fork, die_with_parent, in_child

if TYPE_CHECKING:
    from .border import Table

CLOSE = {"rtol": 1e-5, "atol": 1e-8}  # as torch.allclose; torch's comparison chooses them by the dtypes


def run_script(request_path: str, script: str, *arguments: str) -> int:
    """Run a script, write whether the check holds, and return the script's exit code."""
    request = read_request(CheckRequest, request_path)
    code, names = _run(script, arguments)
    # The verdict goes to a file: a script may end with any exit code, and its output is its own.
    if not code:
        row = judge(request, names)
        print(f"check: {row.status}: {row.text}")
        with open(request.result, "w", encoding="utf-8") as results:
            results.write(text_of(row) + "\n")
    return code


def run_each(packages: str) -> int:
    """Run scripts until the input ends; a `ReadyRow` says whether they can be forks of this process.

    Args:
        packages: names of packages that scripts import, separated by commas.
    """
    die_with_parent()
    for name in filter(None, packages.split(",")):
        # What cannot be imported is the script's to report, and so is what a script imports from beside it.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if "triton" in sys.modules:
        _complete_triton()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page
    print(text_of(ReadyRow(ready=can_fork())), flush=True)
    for line in sys.stdin:
        request = request_of(ScriptRequest, line)
        act = functools.partial(_run_alone, request.script, request.arguments)
        answer = in_child(act, request.log, request.timeout)
        print(text_of(ServedRow(answer["status"], answer.get("value"), answer.get("error"))), flush=True)
    return 0


def _complete_triton() -> None:
    """Let Triton do what the first compile of each process would: import the rest, and hash its own files."""
    # The hash is part of its cache's keys, and takes longer than a small compile.
    with contextlib.suppress(Exception):
        importlib.import_module("triton.compiler.code_generator")
    for module in ("triton.runtime.cache", "triton.compiler.compiler"):  # by the release, one has it
        with contextlib.suppress(Exception):
            importlib.import_module(module).triton_key()


def _run_alone(script: str, arguments: tuple[str, ...]) -> int:
    """Run a script in a fork, to the end of its threads and exit handlers, and return its exit code."""
    # The input of this process are the tool's requests.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        code, _ = _run(script, arguments)
    except BaseException:  # noqa: BLE001 - KeyboardInterrupt, too: any exception ends a script with code 1
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # noqa: SLF001 - no public name calls them before the process ends
    return code


def _run(script: str, arguments: tuple[str, ...]) -> tuple[int, Table]:
    """Run a script as `__main__`, and return its exit code and the names of its top level."""
    place = os.path.abspath(script)
    with open(place, "rb") as file:
        code = compile(file.read(), place, "exec")
    sys.argv[:] = [script, *arguments]
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
            if not isinstance(end.code, int):
                print(end.code, file=sys.stderr)
            return int(end.code) if isinstance(end.code, int) else 1, module.__dict__
    return 0, module.__dict__


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
