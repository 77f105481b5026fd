"""Define the errors by which the worker refuses a whole request, with the reason for the tool."""

from __future__ import annotations

from typing import Any

EXIT_REFUSED = 2


class RequestRefusedError(Exception):
    """The whole request cannot be served; `about` is reported to the tool."""

    def __init__(self, kind: str, what: str, **more: Any) -> None:
        super().__init__(what)
        self.about = dict(kind=kind, what=what, **more)


def unknown(what: str, stood: str = "", why: str = "") -> RequestRefusedError:
    """Return the error about an unknown value.

    Args:
        what: the whole sentence.
        stood: the stand-in, if any.
        why: the place in the file.
    """
    return RequestRefusedError("unknown", what, why=why, package=stood.partition(".")[0])
