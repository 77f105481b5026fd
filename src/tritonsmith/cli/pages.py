"""The pages of the command line about itself: the start page, the list, help, and completion at Tab.

None of these imports Invoke, rich or a task: people wait for them, and a shell asks at each Tab. The options
of a task are read from an index in the workspace, which is valid as long as no file of the tool has changed.
"""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tritonsmith import __version__
from tritonsmith.cli import commands, interruptible, modes
from tritonsmith.core.command_line import PIPE_WIDTH
from tritonsmith.core.command_line import typed as as_typed

FILE = "command-line.json"  # in the workspace
_PACKAGE = Path(__file__).parents[1]
_EXAMPLES = {
    "invoke up": "install a released Triton, and try it",
    "invoke build-triton --debug": "build the current checkout",
    "invoke doctor": "diagnose the environment",
}
_WIDTH = 80  # columns
_WIDEST = 110  # columns of a page of help
_FLAGS = 30  # columns of flags, at most; a longer one has a line of its own
_HEAD = max(map(len, commands.GROUPS)) + 4
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
        required: it has no default.
        usage: see `option_fields.Option`, as for `about`.
        about: its help.
    """

    name: str
    value: str
    word: bool
    opposite: bool
    required: bool
    usage: str
    about: str

    @property
    def spellings(self) -> tuple[str, ...]:
        """The flag, and its `--no-` form."""
        return (self.name, f"--no-{self.name[2:]}") if self.opposite else (self.name,)


class Task(NamedTuple):
    """The content of a page about a task.

    Attributes:
        about: the lines of its docstring.
        flags: its flags and words, in order; `--wide` for every task, as a shell may offer it.
        tables: it takes `--wide`.
    """

    about: tuple[str, ...]
    flags: tuple[Flag, ...]
    tables: bool


def answered(words: Sequence[str]) -> bool:
    """Print the page that a command line asks for; return False if it asks for something else.

    Args:
        words: the arguments of the program.
    """
    if words[:1] == ["--complete"]:
        main(words)
        return True
    lines = _page(words)
    if lines is None:
        return False
    # As in `console.write`: to a terminal, printable characters only.
    shown = "".join(f"{line}\n" for line in lines)
    if sys.stdout and sys.stdout.isatty():
        from tritonsmith.core.redact import printable  # noqa: PLC0415 - many expressions to compile

        shown = printable(shown)
    print(shown, end="", flush=True)
    return True


def _page(words: Sequence[str]) -> Iterable[str] | None:
    """Return the lines of the page that a command line asks for, if this module has it."""
    match words:
        case []:
            return start_page()
        case ["--list" | "-l"]:
            return listing("Subcommands")
        case ["--help" | "-h", name] | [name, "--help" | "-h"] if name in commands.EVERY and not any(
            modes.old_names([name])
        ):
            return help_of(name)
    # Anything else may be wrong, and the program explains what is.
    return None


def start_page() -> Iterator[str]:
    """Yield the start page: at most 40 lines of at most 80 columns."""
    yield f"tritonsmith {__version__}: for people who hack on the Triton GPU compiler."
    yield "Builds LLVM/MLIR at the pin and a Debug Triton, compiles kernels for any GPU"
    yield "(none required), records the IR before every pass, diagnoses environments."
    yield ""
    for title, names in commands.GROUPS.items():
        head = f"  {title}".ljust(_HEAD)
        # `env-triton` must not be broken at its hyphen: names are copied from here.
        yield from textwrap.wrap(
            "  ".join(names),
            _WIDTH,
            initial_indent=head,
            subsequent_indent=" " * _HEAD,
            break_on_hyphens=False,
        )
    yield ""
    width = max(map(len, map(as_typed, _EXAMPLES)))
    for command, about in _EXAMPLES.items():
        yield f"  {as_typed(command).ljust(width)}  # {about}"
    yield ""
    yield as_typed("invoke --list: what each task does. invoke --help TASK: its flags.")
    yield 'Completion: eval "$(tritonsmith --print-completion-script=bash)"  # zsh, fish'


def listing(title: str, root: str = "") -> Iterator[str]:
    """Yield the list of commands, as Invoke would: `invoke --list`.

    Args:
        title: what is above the list.
        root: the commands that begin with `root.` only, without it; all if empty.
    """
    yield f"{title}:"
    yield ""
    prefix = f"{root}." if root else ""
    names = [name for name in sorted(commands.COMMANDS) if name.startswith(prefix)]
    shown = [f".{name.removeprefix(prefix)}" if root else name for name in names]
    width = max(map(len, shown)) + 5
    # Invoke has its width of the terminal alone, without COLUMNS.
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns or _WIDTH
    except (OSError, ValueError, AttributeError):
        columns = _WIDTH
    for name, text in zip(names, shown, strict=True):
        lines = textwrap.wrap(commands.COMMANDS[name].purpose, max(columns - width - 1, 1))
        for head, line in zip((f"  {text}", *[""] * len(lines)), lines, strict=False):
            yield f"{head.ljust(width)}{line}"
    yield ""


def help_of(name: str) -> Iterator[str]:
    """Yield the help of a task: usage, purpose, an example, its flags with their defaults, its modes.

    Args:
        name: in the registry.
    """
    task = task_of(name)
    words = [flag for flag in task.flags if flag.word]
    flags = [flag for flag in (task.flags if task.tables else task.flags[:-1]) if not flag.word]
    example = commands.EVERY[name].example
    # Invoke's parser knows nothing of a command after `--`, so the example has to say that the task takes
    # one.
    takes = " -- COMMAND" if " -- " in example else ""
    mode = modes.of_task(name)
    usage = mode.usage if mode else " ".join((name, *(_optional(word) for word in words)))
    yield f"Usage: {as_typed(f'invoke {usage}')} [options]{takes}"
    yield ""
    yield from (f"  {line}" if line else "" for line in task.about)
    yield ""
    yield "Example:"
    yield f"  {as_typed(f'invoke {example}')}"
    for title, options in (("Arguments", words), ("Options", flags)):
        yield from _section(title, [(option.usage, option.about) for option in options])
    yield from _section("Modes, each with its own options", list(_modes(name)))


def _optional(word: Flag) -> str:
    return word.usage if word.required else f"[{word.usage}]"


def _modes(command: str) -> Iterator[tuple[str, str]]:
    """Yield the modes of a command: its usage, and the first line of its help."""
    for mode in modes.of_command(command):
        yield mode.usage, commands.EVERY[mode.task].purpose


def _section(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    if rows:
        yield ""
        yield f"{title}:"
        width = min(_FLAGS, max(len(usage) for usage, _ in rows)) + 4
        for usage, about in rows:
            yield from _described(usage, about, width)


def _described(usage: str, about: str, width: int) -> Iterator[str]:
    # A usage that is wider than its column has a line of its own, as in the help of most programs.
    head = f"  {usage}"
    lines = textwrap.wrap(about, _columns() - width, break_on_hyphens=False, break_long_words=False)
    if len(head) > width - 2:
        yield head
        head = ""
    for line in lines:
        yield f"{head.ljust(width)}{line}"
        head = ""


def _columns() -> int:
    # COLUMNS comes first, so that a script and a test choose the width; of a pipe, the size cannot be asked.
    try:
        return min(
            _WIDEST, max(_WIDTH // 2, int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns))
        )
    except (OSError, ValueError):
        return PIPE_WIDTH


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
    flags = task_of(name).flags
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


def workspace_folder() -> Path:
    """Return the workspace, as `core.envs.workspace` does, whose import takes longer than a page.

    Raises:
        RuntimeError: this user has no home folder.
    """
    if home := os.environ.get("TRITONSMITH_HOME"):
        return Path(home).expanduser()
    import platformdirs  # noqa: PLC0415 - not free

    return platformdirs.user_data_path("tritonsmith")


def task_of(name: str) -> Task:
    """Return the content of a task's page; from the workspace if the tool has not changed since."""
    # Importing a task takes most of the time of a Tab.
    try:
        folder = workspace_folder()
        # Before the import of a task: a file that changes in between makes what is kept invalid.
        state = state_of_tool()
    # A user without a home folder, or files of the tool that cannot be read: help needs neither.
    except (OSError, RuntimeError):
        return _declared(name)
    kept: dict[str, Any] = {}
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        from tritonsmith.core import untrusted  # noqa: PLC0415 - not free, and the list needs none

        content = untrusted.read_json(folder / FILE)
        if content["state"] == state:
            kept = dict(content["tasks"])
            about, flags, tables = kept[name]
            return Task(tuple(map(_text, about)), tuple(map(_flag, flags)), bool(tables))
    task = _declared(name)
    from tritonsmith.core.plan import files  # noqa: PLC0415

    # The first task makes the workspace, which refuses a folder that holds files: a page leaves none there.
    with suppress(OSError):
        if files.is_marked(folder):
            tasks = {**kept, name: task}
            # What another process writes at the same time is as good, and help waits for nobody.
            files.write_atomically(folder / FILE, json.dumps({"state": state, "tasks": tasks}), wait=False)
    return task


def _text(value: object) -> str:
    """Return a text that can be printed.

    Raises:
        TypeError: it is no text.
        ValueError: it has half a character.
    """
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode()
    return value


def _flag(row: Sequence[object]) -> Flag:
    """Return a flag as it was kept; raises as `_text` does."""
    return Flag._make(part if isinstance(part, bool) else _text(part) for part in row)


def state_of_tool() -> str:
    """Return a text that changes whenever a file of the tool changes.

    Raises:
        OSError: a folder of it cannot be read.
    """
    # All files: the help of an option may be made of constants of any module, and of tables of configs/.
    files, folders = [], [str(_PACKAGE), *map(str, _PACKAGE.parents[1].glob("configs/"))]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                # Editors leave hidden files, and Emacs links that lead nowhere.
                if entry.name.endswith((".py", ".toml")) and not entry.name.startswith("."):
                    with suppress(FileNotFoundError):
                        status = entry.stat()
                        # The last one, because the others can be set: by `touch -r`, rsync and tar.
                        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
                        files.append(f"{entry.path} {times} {status.st_size}")
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    # With -OO, tasks have no docstrings.
    return "\n".join((__version__, sys.version, str(sys.flags.optimize), *sorted(files)))


def _declared(name: str) -> Task:
    import dataclasses  # noqa: PLC0415 - not free

    with interruptible():
        from tritonsmith.cli.tasks import namespace  # noqa: PLC0415 - the task, and Invoke
        from tritonsmith.cli.tasks.option_fields import WIDE  # noqa: PLC0415

    task = namespace.every[name]
    flags = (
        Flag(
            option.flag,
            option.placeholder,
            option.word,
            option.kind == "bool | None",
            option.default is dataclasses.MISSING,
            option.usage,
            option.help,
        )
        for option in (*task.options, WIDE)
    )
    return Task(tuple((task.__doc__ or "").splitlines()), tuple(flags), task.tables)


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
    from tritonsmith.core import untrusted  # noqa: PLC0415
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
