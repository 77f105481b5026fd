"""Format commands of this program: for hints, and for the command in a manifest.

A layer below everything that prints a command; `cli/tasks/option_fields.py` parses them.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from tritonsmith.core import untrusted

BOOTSTRAP = "TRITONSMITH_BOOTSTRAP"  # how ./bootstrap was invoked
PIPE_WIDTH = 100  # columns of a file or a pipe, unless COLUMNS says otherwise
_SHELL_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+""")


def typed(text: str) -> str:
    """Rewrite commands as the user invoked this one: `./bootstrap TASK` works without an active venv.

    Sources always say `invoke TASK`.
    """
    # A hint must work where it is pasted: with the tool installed by pipx there is no `invoke` on PATH.
    name = Path(sys.argv[0]).name
    called = "tritonsmith" if name == "tritonsmith" else "invoke"
    if name == "__main__.py":  # python -m invoke
        called = os.environ.get(BOOTSTRAP) or called
    return re.sub(r"\binvoke (?=--|[a-z])", lambda _: f"{called} ", text)


def command(task: str, *words: object, **flags: object) -> str:
    """Return `invoke TASK` with these `arguments`."""
    text = arguments(*words, **flags)
    return f"invoke {task} {text}" if text else f"invoke {task}"


def installing(extra: str) -> str:
    """Return the command that gives this tool an extra, by the program that installed the tool.

    Args:
        extra: of pyproject.toml, such as `check`.
    """
    package, prefix = shlex.quote(f"tritonsmith[{extra}]"), Path(sys.prefix)
    # pip would install into some other Python: the environments of these programs belong to them.
    if "archive-v0" in prefix.parts:  # the cache of `uvx`, whatever UV_CACHE_DIR says
        return f"uvx --from {package} tritonsmith"
    if untrusted.is_file(prefix / "uv-receipt.toml"):
        return f"uv tool install {package}"
    if untrusted.is_file(prefix / "pipx_metadata.json"):
        kept = prefix.parent.name == "venvs"
        return f"pipx install --force {package}" if kept else f"pipx run --spec {package} tritonsmith"
    return f"pip install {package}, into the Python that runs the tool"


def arguments(*words: object, **flags: object) -> str:
    """Return the arguments of a task, quoted for a shell.

    Args:
        words: that are not flags, in order.
        flags: see `flag_words`; None, False and empty values are omitted.
    """
    parts = [flag_words(*flag) for flag in flags.items() if flag[1] not in (None, "")]
    return shlex.join((*map(str, words), *chain.from_iterable(parts)))


def flag_words(name: str, value: object) -> list[str]:
    """Return a flag and its value.

    Args:
        name: of the parameter: `num_warps`, `from_`.
        value: True for a flag without a value; a tuple or a list for a repeated flag.
    """
    flag = flag_of(name)
    # Before numbers: True is an int, and would become `--flag True`.
    if isinstance(value, bool):
        return [flag] if value else []
    values: Iterable[object] = value if isinstance(value, (tuple, list)) else (value,)
    return [word for item in values for word in _with_value(flag, str(item))]


def flag_of(name: str) -> str:
    """Return `--num-warps` for `num_warps`, and `--from` for `from_`."""
    # A parameter cannot be called `from`, which is a keyword of Python.
    return f"--{name.strip('_').replace('_', '-')}"


def _with_value(flag: str, value: str) -> tuple[str, ...]:
    """Return a flag and its value, as one word where necessary."""
    # Invoke would take the value of `--regions -1` for a flag, and drop an empty one.
    return (f"{flag}={value}",) if not value or value.startswith("-") else (flag, value)


def continued(command: str, width: int | None, indent: int = 4) -> list[str]:
    """Return a shell command as lines that a shell reads as one: each but the last ends with a backslash.

    Args:
        command: as it would be typed; one of several lines stays as it is.
        width: of a line; a longer word stays whole. None: any.
        indent: of all lines after the first, which the caller prints.
    """
    words = _SHELL_WORD.findall(command)
    # A command with a here-document or a comment is not all words: it is printed as it is, and can be pasted.
    if width is None or len(command) <= width or " ".join(words) != command:
        return [command]
    lines = [words[0]]
    for word in words[1:]:
        room = width - (indent if len(lines) > 1 else 0) - len(" \\")
        if len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]
