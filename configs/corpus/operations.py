"""What all drivers of the public corpus share: operations that are called one after the other."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

_failed = 0


@contextmanager
def operation(name: str) -> Iterator[None]:
    """Call one public operation in the body of a `with`; its error is reported and ends nothing else."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a package raises without a GPU
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        print(f"not reached: {name}: {reason} ({place.filename}:{place.lineno})", file=sys.stderr)
