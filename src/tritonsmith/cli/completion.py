"""Completion at Tab: tasks, flags, and the values of flags that come from a list.

A shell runs this for each Tab, so it must import little.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tritonsmith import __version__
from tritonsmith.cli import commands, modes
from tritonsmith.core import untrusted

FILE = "completion.json"  # in the workspace
_TASKS = Path(__file__).parent / "tasks"
_PLAIN = re.compile(r"[\w@%+=:,./-]+")

# Bash splits words at `=` and `:`, and replaces only what is behind the last of these. `compgen -W` would
# expand the values, and so run a `$(...)` in the name of a pass in somebody's dump.
BASH = r"""_complete_tritonsmith() {
    local word=${COMP_LINE:0:COMP_POINT} value
    word=${word##* }
    COMPREPLY=()
    while IFS= read -r value; do
        [[ $value == "${word##*=}"* ]] && COMPREPLY+=("$value")
    done < <(tritonsmith --complete -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
    fi
}
complete -F _complete_tritonsmith -o default tritonsmith"""


class Flag(NamedTuple):
    """A flag or word of a task.

    Attributes:
        name: the flag.
        value: the placeholder of its value in help; empty for a switch.
        word: it may be given without its name.
        opposite: it has a `--no-` form.
    """

    name: str
    value: str
    word: bool
    opposite: bool

    @property
    def spellings(self) -> tuple[str, ...]:
        """The flag, and its `--no-` form."""
        return (self.name, f"--no-{self.name[2:]}") if self.opposite else (self.name,)


def main(argv: Sequence[str]) -> None:
    """Print the candidates for a command line, one per line.

    Args:
        argv: the arguments of the program: `--complete -- LINE`.
    """
    # A Tab inserts the text as it is, and the name of a pass in somebody's dump may hold `$(...)`. No value
    # of ours needs a character that a shell reads otherwise.
    for text in filter(_PLAIN.fullmatch, candidates(typed(argv))):
        sys.stdout.write(f"{text}\n")


def typed(argv: Sequence[str]) -> list[str]:
    """Return the words before the cursor, the program's name first; the last word may be empty.

    Args:
        argv: after the program's name: `--complete -- LINE`; zsh and fish give the line in words.
    """
    # Split at blanks and not as a shell would: a quote that is still open is no error while somebody types.
    line = " ".join(argv[argv.index("--") + 1 :]) if "--" in argv else ""
    words = line.split()
    return [*words, ""] if line.endswith(" ") or not words else words


def candidates(words: Sequence[str]) -> Iterable[str]:
    """Return the candidates for the last word; none where the shell should offer files."""
    *typed_before, last = words[1:] or [""]
    before = modes.resolved(typed_before)
    name = next((word for word in before if word in commands.EVERY), "")
    if not name:
        # Tasks that only carry out a mode work by their own names, too, but the mode is what we show.
        hidden = {mode.task for mode in modes.MODES} - {mode.command for mode in modes.MODES}
        names = sorted(commands.EVERY.keys() - hidden)
        return names if not last.startswith("-") else ["--help", "--list", "--version"]
    flags = _flags_of(name)
    flag, equals, part = last.partition("=")
    # `--target=a` is one word, and after `--target a` the flag is the word before.
    name_of_flag, start = (flag, part) if equals else (before[-1], last)
    option = next((each for each in flags if each.name == name_of_flag and each.value), None)
    if option:
        return _values(option, start, before)
    if last.startswith("-"):
        selecting = {mode.by.partition(" ")[0] for mode in modes.of_command(name)}
        spellings = {spelling for each in flags for spelling in each.spellings}
        return sorted(spellings | {flag for flag in selecting if flag.startswith("--") and flag != "--"})
    # Only what follows the task counts, as flags of Invoke itself may stand before it.
    number = _words(before[before.index(name) + 1 :], flags)
    word = next(islice((each for each in flags if each.word), number, None), None)
    return _values(word, last, before) if word else ()


def _words(before: Sequence[str], flags: Iterable[Flag]) -> int:
    """Count the words that are neither flags nor values of flags."""
    valued = {flag.name for flag in flags if flag.value}
    return sum(
        not word.startswith("-") and previous not in valued
        for previous, word in zip(["", *before], before, strict=False)
    )


def _flags_of(name: str) -> tuple[Flag, ...]:
    """Return the flags of a task; from the workspace if no task has changed since they were kept."""
    # Importing a task takes most of the time of a Tab.
    home = os.environ.get("TRITONSMITH_HOME")
    folder = Path(home).expanduser() if home else None
    if folder is None:
        import platformdirs  # noqa: PLC0415 - not free

        folder = platformdirs.user_data_path("tritonsmith")
    state, kept = _state(), {}
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        content = untrusted.read_json(folder / FILE)
        if content["state"] == state:
            kept = dict(content["tasks"])
            return tuple(Flag(*flag) for flag in kept[name])
    flags = _declared(name)
    # The first task makes the workspace: a Tab alone must leave nothing on the disk.
    if folder.is_dir():
        from tritonsmith.core.plan import files  # noqa: PLC0415

        with suppress(OSError):
            tasks = {**kept, name: flags}
            files.write_atomically(folder / FILE, json.dumps({"state": state, "tasks": tasks}))
    return flags


def _state() -> str:
    """Return a text that changes whenever a file of the tasks changes."""
    with os.scandir(_TASKS) as entries:
        files = [entry for entry in entries if entry.name.endswith(".py")]
        times = sorted(f"{file.name} {file.stat().st_mtime_ns}" for file in files)
    return "\n".join((__version__, str(_TASKS), *times))


def _declared(name: str) -> tuple[Flag, ...]:
    from tritonsmith.cli.tasks import namespace  # noqa: PLC0415 - the task, and Invoke
    from tritonsmith.cli.tasks.option_fields import WIDE  # noqa: PLC0415

    return tuple(
        Flag(option.flag, option.placeholder, option.word, option.kind == "bool | None")
        for option in (*namespace.every[name].options, WIDE)
    )


def gpus() -> list[str]:
    """Return the names of GPUs that `--target` takes."""
    from tritonsmith.core import configs  # noqa: PLC0415

    return sorted({"native", "all", *configs.load("gpu-targets")["targets"]})


def _values(option: Flag, start: str, before: Sequence[str]) -> Iterable[str]:
    """Yield the values of an option; after a comma, with the values that are already typed in front."""
    done, comma, _ = start.rpartition(",")
    known = _KNOWN.get(option.value)
    values = known() if known else []
    if option.value == "PASS":
        # The passes of the dump on this line are what can be chosen; the list of all passes is for every
        # version.
        values = next(filter(None, map(_dumped, before)), values)
    return (f"{done}{comma}{value}" for value in values)


def _dumped(word: str) -> list[str]:
    """Return the names of the passes of a dump; none if the word is not the folder of a dump."""
    from tritonsmith.compiler.dump import index  # noqa: PLC0415
    from tritonsmith.core.errors import SmithError  # noqa: PLC0415

    if not untrusted.is_file(Path(word, index.FILE)):
        return []
    try:
        return sorted({dump.argument for dump in index.read(Path(word)).dumps if dump.argument})
    except SmithError:
        return []


def _environments() -> list[str]:
    from tritonsmith.core.envs import settings  # noqa: PLC0415

    return [name for name, _, _ in settings.available()]


def _passes() -> list[str]:
    from tritonsmith.core import configs  # noqa: PLC0415

    return sorted(configs.load("pass-names")["passes"])


def _checks() -> list[str]:
    from tritonsmith.doctor import run  # noqa: PLC0415

    ids = [check.id for check in run.ALL]
    return sorted({*ids, *(name.partition(".")[0] for name in ids)})


_KNOWN: dict[str, Callable[[], list[str]]] = {
    "ENV": _environments,
    "GPU": gpus,
    "PASS": _passes,
    "CHECK": _checks,
    "CHECKS": _checks,
}
