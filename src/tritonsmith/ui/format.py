"""Numbers as a person reads them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Seconds as text: `0.4 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
