"""Human-readable numbers."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return seconds as text: `0.4 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def age(seconds: float) -> str:
    """Return an age in its largest unit: `12 s`, `5 min`, `3 h`, `40 d`."""
    for length, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def size(count: int) -> str:
    """Return bytes as text: `512 B`, `41.9 KiB`, `2.0 GiB`."""
    power = min(max(count.bit_length() - 1, 0) // 10, 4)
    return f"{count / (1 << 10 * power):.1f} {' KMGT'[power]}iB" if power else f"{count} B"


def entries(count: int) -> str:
    """Return `1 entry`, `12 entries`."""
    return "1 entry" if count == 1 else f"{count} entries"


def counted(number: int, what: str) -> str:
    """Return `1 kernel`, `2 kernels`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
