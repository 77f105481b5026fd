"""Commands of this program, written: for hints, and for what a manifest says made it.

Below everything that prints one; `tasks/option_task.py` reads them again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def command(task: str, *words: object, **flags: object) -> str:
    """`invoke TASK`, quoted for a shell.

    Args:
        task: its whole name.
        words: that are no flags, in order.
        flags: see `flag_words`; one that is None, False or empty is left out.
    """
    return shlex.join(
        ("invoke", task, *map(str, words), *(word for one in flags.items() for word in _unless_empty(*one)))
    )


def flag_words(name: str, value: object) -> list[str]:
    """A flag and its value.

    Args:
        name: as a parameter is called: `num_warps`, `from_`.
        value: True for a flag that takes none; a tuple or a list for one that is repeated.
    """
    flag = flag_of(name)
    if isinstance(value, bool):
        return [flag] if value else []
    values: Iterable[object] = value if isinstance(value, (tuple, list)) else (value,)
    return [word for one in values for word in _with_value(flag, str(one))]


def flag_of(name: str) -> str:
    """`--num-warps` for `num_warps`, and `--from` for `from_`."""
    return f"--{name.strip('_').replace('_', '-')}"


def _with_value(flag: str, value: str) -> tuple[str, ...]:
    """In one word where a value of its own would be taken for a flag, or passed over."""
    return (f"{flag}={value}",) if not value or value.startswith("-") else (flag, value)


def _unless_empty(name: str, value: object) -> list[str]:
    return [] if value is None or value == "" else flag_words(name, value)
