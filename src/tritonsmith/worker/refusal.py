"""What the worker refuses: the request as a whole, with what the tool is told of the reason."""

from __future__ import annotations

from typing import Any

EXIT_REFUSED = 2


class RequestRefusedError(Exception):
    """The request as a whole cannot be done; `about` is what the tool is told."""

    def __init__(self, kind: str, what: str, **more: Any) -> None:
        super().__init__(what)
        self.about = dict(kind=kind, what=what, **more)


def unknown(what: str, stood: str = "", why: str = "") -> RequestRefusedError:
    """The error about a value that nobody here knows.

    Args:
        what: the whole sentence.
        stood: the stand-in that it is about, if any.
        why: where in the file.
    """
    return RequestRefusedError("unknown", what, why=why, package=stood.partition(".")[0])
