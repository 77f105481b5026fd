"""`--when wrong`: a pass changes what a kernel computes; and what that needs, before it is imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from tritonsmith.errors import FactError, UsageError

WRONG = "wrong"
_NEEDED = ("xdsl", "ml_dtypes", "numpy")


def asked_for(when: Sequence[str]) -> bool:
    """Whether it is asked for.

    Args:
        when: terms of `--when`.

    Raises:
        UsageError: it is asked for together with limits.
        FactError: a package that it needs is missing.
    """
    if WRONG not in when:
        return False
    if len(when) > 1:
        raise UsageError(f"--when {WRONG} and limits contradict each other", hints=["one search for each"])
    require()
    return True


def require() -> None:
    """Check that its packages are there.

    Raises:
        FactError: one is not.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        hints = ["pip install 'tritonsmith[check]', into the Python that runs the tool"]
        raise FactError(f"passes.check needs {' and '.join(missing)}", hints=hints)
