"""`--when wrong`, the term of the searches for a pass that changes a kernel's result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import command_line
from tritonsmith.core.errors import EXIT_FAILURE, FactError, SmithError, UndecidedError, UsageError

WRONG = "wrong"
# The extra `check` installs them, so they may be missing. Hence this module imports none of them, nor a
# module of the check that does; and a command that imports it imports the check itself in the function that
# runs the check.
_PACKAGES = ("xdsl", "ml_dtypes", "numpy")


def is_requested(when: Sequence[str]) -> bool:
    """Return whether `--when wrong` is requested.

    Args:
        when: the terms of `--when`.

    Raises:
        UsageError: it is combined with limits.
        FactError: a package that it needs is missing.
    """
    if WRONG not in when:
        return False
    if len(when) > 1:
        raise UsageError(f"--when {WRONG} and limits contradict each other", hints=["one search for each"])
    require_packages()
    return True


def require_single(request: CompileRequest) -> CompileRequest:
    """Return the request if it is one variant for one target.

    Raises:
        UsageError: it has several targets or variants.
    """
    if len(request.targets) > 1:
        hints = [f"--target {target.spelling()}" for target in request.targets[:3]]
        raise UsageError("passes are checked for one target at a time", hints=hints)
    many = [sweep for sweep in request.sweeps if len(sweep.texts) > 1]
    if many or request.runs_for_configs or len(request.configs) > 1:
        raise UsageError("passes are checked for one variant at a time", hints=["without --sweep"])
    return request


@contextmanager
def as_undecided() -> Iterator[None]:
    """Turn an error that is no verdict into that of an undecided search, with its exit code.

    Raises:
        UndecidedError: for an error that is no answer: a file that is not there, a folder that is no dump.
    """
    try:
        yield
    except SmithError as error:
        if error.exit_code != EXIT_FAILURE:
            raise
        raise UndecidedError(error.what, where=error.where, why=error.why, hints=error.hints) from error


def require_packages(command: str = "passes.check") -> None:
    """Check that the packages of the check are installed.

    Args:
        command: the command that needs them.

    Raises:
        FactError: one is missing.
    """
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        text = f"{command} needs packages that are not installed: {', '.join(missing)}"
        raise FactError(text, hints=[command_line.installing("check")])
