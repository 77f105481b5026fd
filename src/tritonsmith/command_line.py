"""Commands of this program, written: for hints, and for what a manifest says made it.

Below everything that prints one; `tasks/option_task.py` reads them again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import chain


def command(task: str, *words: object, **flags: object) -> str:
    """`invoke TASK` with these `arguments`."""
    given = arguments(*words, **flags)
    return f"invoke {task} {given}" if given else f"invoke {task}"


def arguments(*words: object, **flags: object) -> str:
    """What comes after the name of a task, quoted for a shell.

    Args:
        words: that are no flags, in order.
        flags: see `flag_words`; one that is None, False or empty is left out.
    """
    given = [flag_words(*one) for one in flags.items() if one[1] not in (None, "")]
    return shlex.join((*map(str, words), *chain.from_iterable(given)))


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
