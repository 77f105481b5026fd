"""`--when wrong`: find the pass that changes a kernel's result. Checks its packages before the import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import EXIT_FAILURE, FactError, SmithError, UndecidedError, UsageError

WRONG = "wrong"
_NEEDED = ("xdsl", "ml_dtypes", "numpy")


def asked_for(when: Sequence[str]) -> bool:
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
    require()
    return True


def single(asked: CompileRequest) -> CompileRequest:
    """Return the request if it is one variant for one target.

    Raises:
        UsageError: it has several targets or variants.
    """
    if len(asked.targets) > 1:
        hints = [f"--target {target.asked_again()}" for target in asked.targets[:3]]
        raise UsageError("passes are checked for one target at a time", hints=hints)
    if asked.sweeps or asked.autotune:
        raise UsageError("passes are checked for one variant at a time", hints=["without --sweep"])
    return asked


@contextmanager
def deciding() -> Iterator[None]:
    """Give an error that is no verdict the exit code of an undecided search.

    Raises:
        UndecidedError: for an error that is no answer: a file that is not there, a folder that is no dump.
    """
    try:
        yield
    except SmithError as error:
        if error.exit_code != EXIT_FAILURE:
            raise
        raise UndecidedError(error.what, where=error.where, why=error.why, hints=error.hints) from error


def require() -> None:
    """Check that the packages of the check are installed.

    Raises:
        FactError: one is missing.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        hints = ["pip install 'tritonsmith[check]', into the Python that runs the tool"]
        text = f"passes.check needs packages that are not installed: {', '.join(missing)}"
        raise FactError(text, hints=hints)
